"""`python -m benchmarks.tables`: tables to a `Graph`, in multiples of what pandas takes merely to read the same files.

Ten million edges with 8 numeric columns and a million nodes with 4. The targets: Parquet at most 4 times
`pandas.read_parquet`, CSV at most 2 times `pandas.read_csv(engine="pyarrow")`, peak memory at most 6 times the tensors.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
from rich.console import Console

from benchmarks.records import RESULTS, take_turns, write_record
from censnet.data import load_data

console = Console(width=120)
TARGETS = {"parquet": 4.0, "csv": 2.0, "memory": 6.0}
SUFFIXES = ("parquet", "csv")


def make_tables(folder: Path, num_edges: int, ids: str, suffixes: Sequence[str]) -> None:
    """Nodes in a random order; ids are numbers from 0, numbers far apart, or text."""
    rng = np.random.default_rng(0)
    number = rng.permutation(num_edges // 10)
    if ids == "text":
        name = pa.array(number).cast(pa.string()).to_pandas().radd("acct-").to_numpy()
    else:
        name = number * 982_451_653 - 5 if ids == "far apart" else number
    nodes = pd.DataFrame({"id": name} | {f"x{column}": rng.normal(size=len(number)) for column in range(4)})
    ends = {end: name[rng.integers(0, len(number), num_edges)] for end in ("source", "target")}
    edges = pd.DataFrame(ends | {f"w{column}": rng.normal(size=num_edges) for column in range(8)})
    for table, frame in (("nodes", nodes), ("edges", edges)):
        for suffix in suffixes:
            (folder / suffix).mkdir(exist_ok=True)
            path = folder / suffix / f"{table}.{suffix}"
            if suffix == "csv":
                pa.csv.write_csv(pa.Table.from_pandas(frame), path)
            else:
                frame.to_parquet(path)


def read_with_pandas(folder: Path) -> list[pd.DataFrame]:
    if folder.name == "parquet":
        return [pd.read_parquet(folder / f"{table}.parquet") for table in ("nodes", "edges")]
    return [pd.read_csv(folder / f"{table}.csv", engine="pyarrow") for table in ("nodes", "edges")]


def measure_memory(folder: Path) -> dict[str, float]:
    """Peak memory of loading, in a process of its own, against the bytes of the graph's tensors."""
    command = [sys.executable, "-m", "benchmarks.tables", "--load", str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    memory: dict[str, float] = json.loads(done.splitlines()[-1])
    return memory


def peak_bytes() -> int:
    """The peak of this process alone; `getrusage` would count the parent's, from before the exec."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def load_and_report(folder: Path) -> None:
    before = peak_bytes()
    graph = load_data(folder).graph
    peak = peak_bytes()
    tensors = sum(part.numel() * part.element_size() for part in (graph.nodes, graph.edges, graph.ends))
    console.file.write(json.dumps({"tensors": tensors, "whole process": peak, "imports": before}) + "\n")


def measure(folder: Path, repetitions: int, target: float) -> dict[str, Any]:
    work = {"pandas": lambda: read_with_pandas(folder), "censnet": lambda: load_data(folder)}
    seconds = take_turns(work, repetitions, warm=1)
    memory = measure_memory(folder)
    ratio, peak = seconds["censnet"] / seconds["pandas"], memory["whole process"] / memory["tensors"]
    row = {
        "repetitions": repetitions,
        "pandas s": seconds["pandas"],
        "censnet s": seconds["censnet"],
        "x pandas": ratio,
        "at most": target,
        "tensors GB": memory["tensors"] / 1e9,
        "peak of the process GB": memory["whole process"] / 1e9,
        "of which imports GB": memory["imports"] / 1e9,
        "peak x tensors": peak,
        "peak at most": TARGETS["memory"],
    }
    console.print({name: round(value, 3) for name, value in row.items()})
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edges", type=int, default=10_000_000)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--only", default="", help="measure what has this in its title; keep the rest")
    parser.add_argument("--load", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.load:
        load_and_report(options.load)
        return
    record = RESULTS / "tables.json"
    measured = json.loads(record.read_text())["measured"]["tables"] if options.only and record.exists() else {}
    for ids in ("numbers", "far apart", "text"):
        suffixes = SUFFIXES if ids == "numbers" else SUFFIXES[:1]
        titles = {suffix: f"{suffix}, ids that are {ids}, {options.edges:,} edges" for suffix in suffixes}
        titles = {suffix: title for suffix, title in titles.items() if options.only in title}
        if not titles:
            continue
        with tempfile.TemporaryDirectory() as name:
            make_tables(Path(name), options.edges, ids, list(titles))
            for suffix, title in titles.items():
                console.print(title)
                measured[title] = measure(Path(name) / suffix, options.repetitions, TARGETS[suffix])
    libraries = {"pandas": pd.__version__, "pyarrow": pa.__version__}
    path = write_record(
        "tables",
        {"libraries": libraries, "cores": os.cpu_count(), "tables": measured},
        f"{platform.machine()} CPU",
        " ".join(["python -m benchmarks.tables", *sys.argv[1:]]),
    )
    console.print(f"written to {path.name}")


if __name__ == "__main__":
    main()
