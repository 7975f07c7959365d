"""Predictions of a run by an engine, on graphs that need not fit into memory: time, memory, and equality.

    python -m benchmarks.engines --edges 300000 3000000

Transfers between a tenth as many accounts, with 16 columns, of which a run of two layers of width 32 predicts a class.
Each way is measured in a process of its own, whose peak is that of its resident memory. Where the ordinary way would
not fit, `--in-memory-most` leaves it out.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet

from benchmarks.records import write_record
from censnet import train

FEATURES, BATCH = 16, 1_000_000
TRAINING_EDGES = 20_000
SETTINGS: dict[str, object] = {
    "model.layers": "NE",
    "model.hidden": 32,
    "model.triangles": False,
    "model.position_steps": 0,
    "model.known_labels": False,
    "training.epochs": 3,
}
MEASURE = """
import resource, subprocess, sys, time
start = time.perf_counter()
code = subprocess.run(sys.argv[1:]).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
cpu = used.ru_utime + used.ru_stime
print(f"{code} {time.perf_counter() - start:.2f} {cpu:.2f} {used.ru_maxrss / 2**20:.3f}")
"""


def make_table(edges: int, seed: int = 0, label: bool = False) -> pa.Table:
    """Transfers; whether one is odd follows from its numbers, and from those of its account."""
    random = np.random.default_rng(seed)
    accounts = max(10, edges // 10)
    columns: dict[str, Any] = {end: random.integers(0, accounts, edges) for end in ("source", "target")}
    numbers = random.standard_normal((FEATURES, edges), dtype=np.float32)
    columns |= {f"x{number}": values for number, values in enumerate(numbers)}
    if label:
        busy = np.bincount(columns["source"], minlength=accounts)[columns["source"]]
        columns["odd"] = numbers[0] + 0.2 * busy + random.standard_normal(edges) > 2
    return pa.table(columns)


def write_graph(path: Path, edges: int) -> None:
    """A Parquet file of this many edges, made a million at a time."""
    random = np.random.default_rng(1)
    accounts = max(10, edges // 10)
    writer: pa.parquet.ParquetWriter | None = None
    for start in range(0, edges, BATCH):
        count = min(BATCH, edges - start)
        columns: dict[str, Any] = {end: random.integers(0, accounts, count) for end in ("source", "target")}
        numbers = random.standard_normal((FEATURES, count), dtype=np.float32)
        table = pa.table(columns | {f"x{number}": values for number, values in enumerate(numbers)})
        writer = writer or pa.parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def measure(run: Path, data: Path, to: Path, *options: str) -> dict[str, float]:
    """Seconds, seconds of CPU and peak GiB of one prediction."""
    command = [
        sys.executable,
        "-m",
        "censnet",
        "predict",
        str(run),
        str(data),
        "--to",
        str(to),
        "--keep",
        "ids",
        *options,
    ]
    out = subprocess.run([sys.executable, "-c", MEASURE, *command], capture_output=True, text=True, check=True)
    code, seconds, cpu, peak = out.stdout.strip().splitlines()[-1].split()
    if code != "0":
        raise SystemExit(out.stderr)
    return {"seconds": float(seconds), "cpu_seconds": float(cpu), "peak_gib": float(peak)}


def measure_spark(folder: Path, edges: int) -> dict[str, Any]:
    """The same by executors of one core and 2 GiB on this machine: one of them, and two."""
    data, found = folder / "spark.parquet", dict[str, Any](edges=edges)
    write_graph(data, edges)
    for executors in (1, 2):
        master = f"local-cluster[{executors},1,2048]"
        to = folder / f"by_spark{executors}.parquet"
        seconds = measure(folder / "run", data, to, "--engine", "spark", "--master", master)["seconds"]
        found[f"seconds_{executors}"] = seconds  # executors are no children of the process, whose CPU time says nothing
    found["one_to_two"] = round(found["seconds_1"] / found["seconds_2"], 2)
    return found


def compare(one: Path, other: Path) -> float:
    """The greatest difference between two files of predictions, a million rows at a time."""
    worst = 0.0
    with pa.parquet.ParquetFile(one) as first, pa.parquet.ParquetFile(other) as second:
        pairs = zip(first.iter_batches(BATCH), second.iter_batches(BATCH), strict=True)
        for a, b in pairs:
            p, q = (batch.column("odd_p_True").to_numpy() for batch in (a, b))
            worst = max(worst, float(np.abs(p - q).max()))
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edges", type=int, nargs="+", default=[300_000, 3_000_000])
    parser.add_argument("--memory-limit", default="4GiB")
    parser.add_argument("--in-memory-most", type=int, default=3_000_000)
    parser.add_argument("--spark-edges", type=int, default=0, help="also by Spark, with one executor and with two")
    parser.add_argument("--folder", type=Path, default=None, help="where graphs are made")
    arguments = parser.parse_args()
    given = [word for word in sys.argv[1:] if word != "--folder" and word != str(arguments.folder)]
    command = f"python -m benchmarks.engines {' '.join(given)}"  # the folder is of this machine alone
    folder = Path(tempfile.mkdtemp(dir=arguments.folder))
    measured: dict[str, Any] = {}
    try:
        frame = make_table(TRAINING_EDGES, label=True).to_pandas()
        train(pd.DataFrame(frame), "edge:odd", folder / "run", settings=SETTINGS)
        for edges in arguments.edges:
            data = folder / f"edges{edges}.parquet"
            write_graph(data, edges)
            limit = ("--engine", "duckdb", "--memory-limit", arguments.memory_limit)
            found: dict[str, Any] = {"duckdb": measure(folder / "run", data, folder / "by_engine.parquet", *limit)}
            if edges <= arguments.in_memory_most:
                found["in_memory"] = measure(folder / "run", data, folder / "in_memory.parquet", "--device", "cpu")
                found["most_apart"] = compare(folder / "by_engine.parquet", folder / "in_memory.parquet")
            found["load"] = round(os.getloadavg()[1], 1)  # of the machine, over the last five minutes
            measured[str(edges)] = found
            print(edges, found, flush=True)
            data.unlink()
            write_record("engines", measured | scaling(measured), "cpu", command)
        if arguments.spark_edges:
            measured["spark"] = measure_spark(folder, arguments.spark_edges)
            print("spark", measured["spark"], flush=True)
    finally:
        shutil.rmtree(folder)
    print(write_record("engines", measured | scaling(measured), "cpu", command))


def scaling(measured: Mapping[str, Any]) -> dict[str, float]:
    """How many times as long each size takes as the one before."""
    found = {}
    for few, many in itertools.pairwise(sorted(int(name) for name in measured if name.isdigit())):
        for name in ("seconds", "cpu_seconds"):
            times = measured[str(many)]["duckdb"][name] / measured[str(few)]["duckdb"][name]
            found[f"{name}_{few}_to_{many}"] = round(times, 2)
    return found


if __name__ == "__main__":
    main()
