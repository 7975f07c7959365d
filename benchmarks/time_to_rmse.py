"""`python -m benchmarks.time_to_rmse`: how long to a validation RMSE of 0.62 on Lipophilicity, against chemprop.

Both train on the same random split (80/10/10) of each seed, one after the other on 2 threads: chemprop by the defaults
of its command, then our preset `strong`. The clock starts once everything is imported; reading SMILES, making graphs
and validation are in it. It stops with the first epoch whose validation RMSE is at most the aim, and training with it;
the learning rates follow the schedules of whole trainings. Target: at most half of chemprop's time.

chemprop has an environment of its own, `.bench-chemprop`, made by `make bench`; CENSNET_CHEMPROP names the python
of another that has it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from benchmarks.records import write_record
from censnet.pipeline.prepare import prepare
from censnet.selection.self_training import fit_ensemble
from censnet.training.callbacks import Callback
from censnet.training.devices import make_accelerator
from censnet_experiments.external import SPLITS, write_cells

AIM = 0.62
TARGET = 0.5
PEER = Path(__file__).parent / "peers" / "chemprop_splits.py"
console = Console(width=120)


class Course(Callback):
    """Records when each epoch ended and its validation error, and stops training at the aim."""

    def __init__(self, aim: float) -> None:
        self.aim, self.start = aim, time.perf_counter()  # the clock runs since before the data are read
        self.seconds: list[float] = []
        self.errors: list[float] = []

    def on_epoch_end(self, rows: Sequence[dict[str, float]], best: Sequence[float | None]) -> bool:
        self.seconds.append(time.perf_counter() - self.start)
        self.errors.append(rows[0]["validation_rmse"])
        return self.errors[-1] <= self.aim


def train_ours(seed: int, aim: float, epochs: int | None) -> dict[str, Any]:
    """What `censnet train lipophilicity --target graph:exp` does, up to the aim."""
    changes: dict[str, object] = {"data.split": SPLITS["random"]}
    if epochs is not None:
        changes["training.epochs"] = epochs
    course = Course(aim)
    prepared = prepare("lipophilicity", "graph:exp", "strong", changes, seed)
    accelerator = make_accelerator(device="cpu")
    fit_ensemble(prepared.task_data, prepared.settings, accelerator=accelerator, callbacks=[course])
    return find_aim(course.errors, course.seconds, aim)


def train_chemprop(cell: Path, seed: int, aim: float, epochs: int | None, threads: int) -> dict[str, Any]:
    """The same of chemprop, in its own environment."""
    python = os.environ.get("CENSNET_CHEMPROP", ".bench-chemprop/bin/python")
    lines = cell.with_name(f"{seed}.jsonl")
    command = [python, str(PEER), str(cell), "--to", str(lines), "--seeds", str(seed), "--until", str(aim)]
    command += ["--device", "cpu", "--threads", str(threads)] + ([] if epochs is None else ["--epochs", str(epochs)])
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(command, check=True, capture_output=True, env=own | {"OMP_NUM_THREADS": str(threads)})
    line = json.loads(lines.read_text())
    found = find_aim(line["curves"]["validation_rmse"], line["curves"]["seconds"], aim)
    return found | {"versions": line["versions"]}


def find_aim(errors: Sequence[float], seconds: Sequence[float], aim: float) -> dict[str, Any]:
    """The first epoch that reached the aim and when it ended; None for both where none did."""
    first = next((number for number, error in enumerate(errors) if error <= aim), None)
    return {
        "epoch": None if first is None else first + 1,
        "seconds": None if first is None else seconds[first],
        "validation rmse": list(errors),
        "seconds by epoch": list(seconds),
    }


def compare(runs: dict[str, dict[str, dict[str, Any]]]) -> dict[str, float]:
    """Our seconds over chemprop's on each split, and their median; splits where either did not arrive are left out."""
    ratios = {
        seed: both["censnet"]["seconds"] / both["chemprop"]["seconds"]
        for seed, both in runs.items()
        if both["censnet"]["seconds"] and both["chemprop"]["seconds"]
    }
    return ratios | ({"median": statistics.median(ratios.values())} if ratios else {})


def show(runs: dict[str, dict[str, dict[str, Any]]], ratios: dict[str, float], aim: float) -> None:
    table = Table("seed", "chemprop, s", "epoch", "censnet, s", "epoch", "censnet / chemprop", title=f"To RMSE {aim}")
    for seed, both in runs.items():
        cells = [
            "not reached" if value is None else f"{value:.4g}"
            for name in ("chemprop", "censnet")
            for value in (both[name]["seconds"], both[name]["epoch"])
        ]
        table.add_row(seed, *cells, f"{ratios[seed]:.2f}" if seed in ratios else "")
    console.print(table)
    if ratios:
        console.print(f"median {ratios['median']:.2f} of chemprop's time, target {TARGET}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--aim", type=float, default=AIM)
    parser.add_argument("--epochs", type=int, help="of both, to try this out")
    parser.add_argument("--no-record", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    runs: dict[str, dict[str, dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        cells = write_cells(Path(folder), range(options.seeds), ["lipophilicity"])
        cell = next(path for path in cells if "random" in path.name)
        for seed in range(options.seeds):
            theirs = train_chemprop(cell, seed, options.aim, options.epochs, options.threads)
            runs[str(seed)] = {"chemprop": theirs, "censnet": train_ours(seed, options.aim, options.epochs)}
    ratios = compare(runs)
    show(runs, ratios, options.aim)
    if not options.no_record:
        measured = {"aim": options.aim, "target": TARGET, "censnet / chemprop": ratios, "runs": runs}
        device = platform.processor() or "CPU"
        console.print(
            f"written to {write_record('time_to_rmse', measured, device, 'python -m benchmarks.time_to_rmse')}"
        )


if __name__ == "__main__":
    main()
