"""Training one graph by two processes against one, on a CPU: steps and rows a second, and the test AUC of both.

`python -m benchmarks.distributed` starts each training with torchrun, one thread a process, in turns; record:
benchmarks/results/distributed.json. Where the processes share two cores with other work, wall times tell little (two
processes get a larger share of a busy machine than one): rows for each second of CPU time, and what two processes would
gain by them on two free cores, are recorded beside them, and the load of the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import torch
from rich.console import Console
from rich.table import Table

from benchmarks.graphs import power_law
from benchmarks.records import write_record
from censnet.data import Tables
from censnet.pipeline.fit_run import fit_run
from censnet.pipeline.prepare import prepare
from censnet.training import processes
from censnet.training.devices import make_accelerator

NODES, EDGES = 20_000, 100_000
TRAININGS = {  # name -> processes, rows of each in a step
    "1 process, 1,024 rows": (1, 1024),
    "2 processes, 512 rows each": (2, 512),
    "2 processes, 1,024 rows each": (2, 1024),
}
WARM = 5  # steps that are not counted
console = Console(width=120)


class Clock:
    """The moments at which steps ended, by wall and by CPU; validation lies between epochs and is not counted."""

    def __init__(self) -> None:
        self.wall, self.cpu, self.seen = list[float](), list[float](), 0

    def on_train_begin(self, epochs: int, done: int, steps: int, monitor: str) -> None:
        self._mark()

    def on_step_end(self) -> None:
        wall, cpu = time.perf_counter(), time.process_time()
        self.seen += 1
        if self.seen > WARM:
            self.wall.append(wall - self.last[0])
            self.cpu.append(cpu - self.last[1])
        self._mark()

    def on_plan(self, epochs: int) -> None:
        pass

    def on_epoch_end(self, rows: Sequence[Any], best: Sequence[float | None]) -> None:
        self._mark()

    def on_train_end(self) -> None:
        pass

    def _mark(self) -> None:
        self.last = time.perf_counter(), time.process_time()


def payments() -> Tables:
    """Accounts and payments: a payment is bad by its amount, by what its two ends are, and by chance."""
    rng = np.random.default_rng(0)
    ends = power_law(NODES, EDGES, 0.6, ordered=False).numpy()
    age, trust = rng.normal(size=NODES), rng.normal(size=NODES)
    amount = rng.normal(size=EDGES)
    around = np.zeros(NODES)
    np.add.at(around, ends[0], trust[ends[1]])
    degree = np.bincount(ends[0], minlength=NODES).clip(1)
    logit = 0.7 * amount + trust[ends[0]] * trust[ends[1]] + (around / degree)[ends[1]] - 2
    bad = (rng.random(EDGES) < 1 / (1 + np.exp(-logit))).astype(int)
    nodes = pd.DataFrame({"id": np.arange(NODES), "age": age, "trust": trust})
    return Tables(nodes, pd.DataFrame({"source": ends[0], "target": ends[1], "amount": amount, "bad": bad}))


def train_once(rows: int, epochs: int, out: Path) -> None:
    """One training, in one of its processes; the first writes what it measured."""
    torch.set_num_threads(1)
    processes.join("cpu")
    started = time.monotonic()
    changes = {
        "training.sampling": "neighbors", "training.batch_size": rows, "training.epochs": epochs,
        "training.patience": None, "training.max_steps_per_epoch": None, "model.label_counts": False,
    }  # fmt: skip
    prepared, clock = prepare(payments(), "edge:bad", changes=changes), Clock()
    run = fit_run(prepared, 1, make_accelerator(device="cpu"), started, callbacks=[clock])
    step = statistics.median(clock.wall) if clock.wall else 0.0
    if processes.index() == 0:
        found = {
            "processes": processes.count(),
            "ms a step": 1e3 * step,
            "CPU ms a step": 1e3 * statistics.median(clock.cpu) * processes.count(),
            "rows/s": rows * processes.count() / step,
            "rows a CPU second": rows / statistics.median(clock.cpu),
            "steps an epoch": clock.seen / epochs,
            "peak MB of a process": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000,
            "test AUC": run.metrics["test"]["edge"]["auc"],
        }
        out.write_text(json.dumps(found))
    processes.leave()


def start(count: int, rows: int, epochs: int) -> dict[str, float]:
    """Start a training with torchrun, and read what it measured."""
    with TemporaryDirectory() as folder:
        out = Path(folder) / "measured.json"
        command = [
            sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count), "-m",
            "benchmarks.distributed", "--rows", str(rows), "--epochs", str(epochs), "--out", str(out),
        ]  # fmt: skip
        subprocess.run(command, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True)
        found: dict[str, float] = json.loads(out.read_text())
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, help="of a step, in one of the processes that this command starts")
    parser.add_argument("--out", type=Path, help="of one of these")
    options = parser.parse_args()
    if options.rows is not None:
        train_once(options.rows, options.epochs, options.out)
        sys.stdout.flush()
        os._exit(0)  # torch's threads may abort at a usual end
    torch.set_num_threads(1)
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in TRAININGS}
    load = []
    for _ in range(options.rounds):
        for name, (count, rows) in TRAININGS.items():
            load.append(os.getloadavg()[0])
            rounds[name].append(start(count, rows, options.epochs))
    table = {}
    for name, found in rounds.items():  # the least disturbed of the rounds
        table[name] = min(found, key=lambda one: one["ms a step"])
    for row in table.values():
        one = table["1 process, 1,024 rows"]
        row["rows/s, x one process"] = row["rows/s"] / one["rows/s"]
        row["x, by CPU time"] = row["rows a CPU second"] * row["processes"] / one["rows a CPU second"]
    shown = Table("", *next(iter(table.values())), title=f"{EDGES:,} edges, sampled, a thread for each process")
    for name, row in table.items():
        shown.add_row(name, *(f"{value:,.4g}" for value in row.values()))
    console.print(shown)
    measured = {"rounds": rounds, "table": table, "load before each": load, "cores": os.cpu_count()}
    command = f"python -m benchmarks.distributed --epochs {options.epochs} --rounds {options.rounds}"
    path = write_record("distributed", measured, platform.processor() or "CPU", command)
    console.print(f"written to {path}")


if __name__ == "__main__":
    main()
