"""Memory and time to predict many edges, as the command does: read the tables, predict, write a CSV.

`python -m benchmarks.predict_memory` trains a strong edge classifier for a moment, then predicts in a process of its
own, whose largest memory (ru_maxrss) is what counts. Record: benchmarks/results/predict_memory.json. It exits with 1
above 4 GiB.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from benchmarks.records import write_record
from censnet.data.tables.files import write_table
from censnet.pipeline import train
from censnet.runs import load_run

MAX_GIB = 4.0
SMALL = 2_000  # rows that are trained on


def payments(folder: Path, rows: int, seed: int) -> Path:
    """Accounts and as many payments as asked, five for each account, as CSV files."""
    rng = np.random.default_rng(seed)
    accounts = rows // 5
    source = rng.integers(0, accounts, rows)
    amount = rng.exponential(100, rows).round(2)
    ends = {"source": source, "target": (source + rng.integers(1, accounts, rows)) % accounts}
    ways = rng.choice(["card", "cash", "wire", "cheque"], rows)
    edges = pd.DataFrame({**ends, "amount": amount, "way": ways, "fraud": (amount > 200).astype(int)})
    countries = rng.choice(["fr", "de", "it", "es", "pl"], accounts)
    nodes = pd.DataFrame({"id": range(accounts), "age": rng.uniform(18, 90, accounts).round(1), "country": countries})
    folder.mkdir(parents=True)
    write_table(nodes, folder / "nodes.csv")
    write_table(edges, folder / "edges.csv")
    return folder


def peak_gib() -> float:
    """Peak memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # Linux counts in KiB


def predict(run: Path, data: Path, to: Path) -> None:
    """The measured process; prints its time and memory."""
    imported, started = peak_gib(), time.perf_counter()
    found_rows = load_run(run).predict(data, device="cpu")
    predicted = time.perf_counter()
    write_table(found_rows, to)
    found = {"rows": len(found_rows), "imports, GiB": imported, "peak, GiB": peak_gib()}
    print(json.dumps({**found, "predict, s": predicted - started, "write, s": time.perf_counter() - predicted}))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows to predict")
    parser.add_argument("--predict", nargs=3, type=Path, metavar=("RUN", "DATA", "TO"), help=argparse.SUPPRESS)
    parser.add_argument("--no-record", action="store_true", help="leave benchmarks/results as it is")
    asked = parser.parse_args()
    torch.set_num_threads(2)
    if asked.predict:
        predict(*asked.predict)
        return 0
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        small, big = payments(home / "small", SMALL, 0), payments(home / "big", asked.rows, 1)
        train(small, "edge:fraud", home / "run", settings={"training.epochs": 3}, device="cpu")
        command = [sys.executable, "-m", "benchmarks.predict_memory", "--predict", str(home / "run"), str(big)]
        done = subprocess.run([*command, str(home / "predictions.csv")], stdout=subprocess.PIPE, text=True, check=True)
    measured = json.loads(done.stdout.splitlines()[-1])
    for name, value in measured.items():
        print(f"{name:>14}  {value:,.2f}" if isinstance(value, float) else f"{name:>14}  {value:,}")
    if not asked.no_record:
        command_line = f"python -m benchmarks.predict_memory --rows {asked.rows}"
        write_record("predict_memory", measured, f"{platform.machine()} CPU", command_line)
    return int(measured["peak, GiB"] > MAX_GIB)


if __name__ == "__main__":
    sys.exit(main())
