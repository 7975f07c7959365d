"""chemprop's conformal intervals of 90 % on given splits. Runs in chemprop's own environment, without censnet.

    python chemprop_intervals.py CELL.json.gz --to LINES.jsonl --seeds 0,1,2 [--device cpu|cuda] [--threads 1]

CELL.json.gz is written by `censnet_experiments.external`; `chemprop_splits.py` beside this file describes it, and the
defaults of chemprop. Each seed gives two lines, one for each way in which chemprop 2.3.1 makes such intervals for a
number: "residuals", its default regression with its conformal calibrator (one width for all molecules), and
"quantiles", a quantile regression whose quantiles the same calibrator moves (`chemprop train --task-type
regression-quantile --alpha 0.1`, `chemprop predict --uncertainty-method quantile-regression --calibration-method
conformal-regression --conformal-alpha 0.1`). Both are calibrated on the validation molecules and measured on the test
molecules. Lines that are there already are not made again.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent))
from chemprop_splits import add, numbers, read_predictions, write_parts

ALPHA = 0.1
Array = np.ndarray[Any, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description="chemprop's conformal intervals on given splits")
    parser.add_argument("cell", type=Path, help="a CELL.json.gz, as censnet_experiments.external writes it")
    parser.add_argument("--to", type=Path, required=True, help="where the lines are added")
    parser.add_argument("--seeds", default="0", help="such as 0,1,2")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--epochs", type=int, help="other than the default, to try this script out")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    cell = json.loads(gzip.decompress(options.cell.read_bytes()))
    for way, predict in (("residuals", residuals), ("quantiles", quantiles)):
        for seed in map(int, options.seeds.split(",")):
            if (seed, way) in recorded(options.to):
                continue
            begin, cpu = time.perf_counter(), time.process_time()
            with tempfile.TemporaryDirectory() as name:
                found = predict(cell, seed, Path(name), options)
            line = {"cell": cell["cell"], "split": seed, "way": way, **found}
            line |= {"seconds": time.perf_counter() - begin, "cpu_seconds": time.process_time() - cpu}
            add(options.to, line | {"chemprop": version("chemprop"), "torch": version("torch")})
            print(f"{cell['cell']}, split {seed}, {way}: {found}, {line['seconds']:.0f} s", flush=True)


def residuals(cell: dict[str, Any], seed: int, folder: Path, options: argparse.Namespace) -> dict[str, float]:
    """The default regression, calibrated with half intervals of 0, as the calibrator's documentation has it."""
    from chemprop.uncertainty.calibrator import RegressionConformalCalibrator

    scored = train(cell, seed, folder, options, ["--task-type", "regression"])
    found = read_predictions(folder / "out" / "model_0" / "test_predictions.csv", cell["targets"])
    parts = np.array([cell["parts"][str(seed)][row] for row in scored])
    labels = numbers([cell["labels"][row] for row in scored])
    known, new = (torch.from_numpy(np.stack([found, labels])[:, parts == code]) for code in (1, 2))
    calibrator = RegressionConformalCalibrator(alpha=ALPHA)
    calibrator.fit(known[0], torch.zeros_like(known[0]), known[1], torch.isfinite(known[1]))
    half = calibrator.apply(torch.zeros_like(new[0])).numpy()
    return measure(new[0].numpy(), half, new[1].numpy())


def quantiles(cell: dict[str, Any], seed: int, folder: Path, options: argparse.Namespace) -> dict[str, float]:
    """Its quantile regression, calibrated by its own commands."""
    train(cell, seed, folder, options, ["--task-type", "regression-quantile", "--alpha", str(ALPHA)])
    rows = [row for row, part in enumerate(cell["parts"][str(seed)]) if part == 2]
    labels = numbers([cell["labels"][row] for row in rows])
    test = folder / "test.csv"
    with open(test, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["smiles", *cell["targets"]])
        writer.writerows([cell["smiles"][row], *cell["labels"][row]] for row in rows)
    to = folder / "predicted.csv"
    call(
        "predict", "--test-path", str(test), "--cal-path", str(folder / "validation.csv"), "--output", str(to),
        "--model-paths", str(folder / "out" / "model_0" / "best.pt"), "--uncertainty-method", "quantile-regression",
        "--calibration-method", "conformal-regression", "--conformal-alpha", str(ALPHA), *place(options),
    )  # fmt: skip
    with open(to, newline="") as file:
        lines = list(csv.DictReader(file))
    middle, half = (
        numbers([[float(line[name + end]) for name in cell["targets"]] for line in lines]) for end in ("", "_unc")
    )
    return measure(middle, half, labels)


def train(cell: dict[str, Any], seed: int, folder: Path, options: argparse.Namespace, task: list[str]) -> list[int]:
    """Train by the command of chemprop. -> the scored rows: of validation, and of the test"""
    scored = write_parts(cell, seed, folder)
    files = [str(folder / f"{part}.csv") for part in ("train", "validation", "scored")]
    epochs = [] if options.epochs is None else ["--epochs", str(options.epochs)]
    call(
        "train", "--data-path", *files, "--output-dir", str(folder / "out"), *task, "--pytorch-seed", str(seed),
        "--data-seed", str(seed), *epochs, *place(options),
    )  # fmt: skip
    return scored


def place(options: argparse.Namespace) -> list[str]:
    return ["--accelerator", "gpu" if options.device == "cuda" else "cpu", "--devices", "1"]


def call(*arguments: str) -> None:
    """Run a command of chemprop here, without its progress bar."""
    from chemprop.cli.main import main as chemprop

    command: Callable[[], Any] = chemprop
    sys.argv = ["chemprop", *arguments]
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        command()


def measure(middle: Array, half: Array, labels: Array) -> dict[str, float]:
    """Coverage, mean width and error of intervals."""
    inside = np.abs(labels - middle) <= half
    return {
        "coverage": float(inside.mean()),
        "width": float(2 * half.mean()),
        "rmse": float(np.sqrt(((labels - middle) ** 2).mean())),
    }


def recorded(path: Path) -> set[tuple[int, str]]:
    """The splits and ways that have a whole line."""
    if not path.exists():
        return set()
    lines = map(json.loads, path.read_bytes().split(b"\n")[:-1])
    return {(line["split"], line["way"]) for line in lines}


if __name__ == "__main__":
    main()
