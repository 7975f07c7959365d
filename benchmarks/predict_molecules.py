"""`python -m benchmarks.predict_molecules`: predicting molecules against chemprop, each by its command.

From a CSV file of SMILES to one of predictions, by the default models of both, hardly trained: what they learned
costs nothing here. At least 1.5 times chemprop's molecules in a second of the CPU, with less memory than its. Time and
memory are those of the whole command, imports included, as the operating system counts them; children count. Without
descriptors, which chemprop has not by default.

CENSNET_CHEMPROP names the python of an environment that has chemprop, else it is `.bench-chemprop` of `make bench`.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

from benchmarks.records import write_record
from benchmarks.training import show
from censnet.data.datasets.download import find

TARGET = 1.5
TRAINED = 500  # molecules that the models are trained on
console = Console(width=120)


def work(command: Sequence[str], threads: int) -> dict[str, float]:
    """Run a command. -> its seconds, those of the CPU, and the most memory that one of its processes has had"""
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH" or command[0] == sys.executable}
    began = time.perf_counter()
    process = subprocess.Popen(
        command, env={**own, "OMP_NUM_THREADS": str(threads)}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command} ended with {process.returncode}: {said.decode()[-2000:]}")
    return {
        "s": time.perf_counter() - began,
        "CPU s": used.ru_utime + used.ru_stime,
        "GiB": used.ru_maxrss / 2**20,  # Linux counts in KiB
    }


def commands(home: Path, rows: int) -> Mapping[str, list[str]]:
    """The command of each that predicts, after it has trained a model."""
    table = pd.read_csv(find("lipophilicity")["Lipophilicity.csv"])[["smiles", "exp"]]
    table.head(TRAINED).to_csv(home / "train.csv", index=False)
    often = pd.concat([table] * -(-rows // len(table)))[["smiles"]]
    often.sample(rows, random_state=0).to_csv(home / "data.csv", index=False)
    python = os.environ.get("CENSNET_CHEMPROP", ".bench-chemprop/bin/python")
    chemprop = [str(Path(python).with_name("chemprop"))]
    ours = [sys.executable, "-m", "censnet"]
    places = str(home / "train.csv"), str(home / "data.csv")
    settings = ["--set", "training.epochs=1", "--set", "data.descriptors=false", "--device", "cpu"]
    work([*ours, "train", places[0], "--target", "graph:exp", "--out", str(home / "run"), *settings], 1)
    theirs = ["--accelerator", "cpu", "-n", "0"]
    trained = ["--target-columns", "exp", "--epochs", "3", "-o", str(home / "chemprop")]
    work([*chemprop, "train", "-i", places[0], "-s", "smiles", *trained, *theirs], 1)
    model, found = str(home / "chemprop" / "model_0" / "best.pt"), str(home / "chemprop.csv")
    return {
        "chemprop": [
            *chemprop, "predict", "-i", places[1], "-s", "smiles", "--model-paths", model, "-o", found, *theirs,
        ],
        "censnet": [
            *ours, "predict", str(home / "run"), places[1], "--to", str(home / "censnet.csv"), "--device", "cpu",
        ],
    }  # fmt: skip


def measure(rows: int, rounds: int, threads: int) -> dict[str, Any]:
    """Both commands, in turns."""
    found: dict[str, list[dict[str, float]]] = {"chemprop": [], "censnet": []}
    with tempfile.TemporaryDirectory() as place:
        every = commands(Path(place), rows)
        for _ in range(rounds):
            for name, command in every.items():
                Path(command[command.index("--to" if name == "censnet" else "-o") + 1]).unlink(missing_ok=True)
                found[name].append(work(command, threads))
        counts = {name: len(pd.read_csv(Path(place, f"{name}.csv"))) for name in every}
    if set(counts.values()) != {rows}:
        raise RuntimeError(f"predictions are {counts}, expected {rows} of each")
    best = {name: {part: min(one[part] for one in each) for part in each[0]} for name, each in found.items()}
    table = {
        name: {
            "molecules/CPU s": rows / row["CPU s"],
            "x chemprop": best["chemprop"]["CPU s"] / row["CPU s"],
            "s": row["s"],
            "GiB": row["GiB"],
        }
        for name, row in best.items()
    }
    return {"rows": rows, "threads": threads, "rounds": found, "table": table}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--no-record", action="store_true", help="leave benchmarks/results as it is")
    asked = parser.parse_args()
    measured = measure(asked.rows, asked.rounds, asked.threads)
    show(f"{asked.rows:,} molecules, from CSV to CSV (target {TARGET} x chemprop)", measured["table"])
    if not asked.no_record:
        device = f"{platform.machine()} CPU, {os.cpu_count()} cores"
        path = write_record(
            "predict_molecules", {**measured, "target": TARGET}, device, "python -m benchmarks.predict_molecules"
        )
        console.print(f"written to {path}")


if __name__ == "__main__":
    main()
