"""chemprop by its defaults on given splits. Runs in chemprop's own environment, and needs nothing of censnet.

    python chemprop_splits.py CELL.json.gz --to CELL.jsonl [--seeds 0,1,2,3,4] [--device cpu|cuda]

CELL.json.gz is written by `censnet_experiments.external`: SMILES, labels (null where there is none) and, for each seed,
the part of each molecule: 0 train, 1 validation, 2 test. Each seed gives one line of JSON: the metric on validation and
test molecules, seconds, the course of validation, and of numbers the coverage and the width of chemprop's own conformal
intervals, calibrated on validation molecules. A seed that has its line already is left out, so a run that was stopped
goes on where it was.

It is chemprop's own command, `chemprop train --task-type ...`, that is run, with three files for the three parts. The
file for testing holds the validation molecules, too: chemprop learns nothing from it and writes its predictions. Only
the seeds (`--pytorch-seed`, `--data-seed`) and the device are given; everything else is the command's default, which in
chemprop 2.3.1 is

- features: one-hot atoms (V2, 72 channels) and bonds (14 channels), no descriptors of molecules, graphs cached;
- network: messages on directed bonds, depth 3, width 300, ReLU, no dropout; the sum over atoms divided by 100
  (aggregation `norm`), no batch norm; one hidden layer of 300 units; one network, no ensemble;
- training: 50 epochs, batches of 64, Adam, learning rate linearly from 1e-4 to 1e-3 in 2 epochs and then exponentially
  down to 1e-4, no clipping; training is never stopped early, as the patience is the number of epochs;
- regression: targets scaled by mean and deviation of the training molecules, mean squared error; classification: binary
  cross-entropy over the labels that are there, classes not balanced;
- the selected epoch is the one with the lowest validation loss, in classification, too.

With a seed, chemprop also asks torch for deterministic algorithms. Its own record of these settings, `config.toml`, is
copied into each line.
"""

from __future__ import annotations

import argparse
import csv
import fcntl
import gzip
import json
import os
import platform
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.metrics import roc_auc_score

Row = Sequence[float | None]
PACKAGES = ("chemprop", "torch", "lightning", "rdkit", "numpy")
OTHERS = re.compile(
    "data-|output-|pytorch-seed|accelerator|devices|split|num-replicates|(atom|bond)-"
)  # not the recipe


def main() -> None:
    parser = argparse.ArgumentParser(description="chemprop by its defaults on given splits")
    parser.add_argument("cell", type=Path, help="a CELL.json.gz, as censnet_experiments.external writes it")
    parser.add_argument("--to", type=Path, required=True, help="where the lines are added")
    parser.add_argument("--seeds", help="such as 0,1,2; all that the file has by default")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--threads", type=int, help="of torch on a CPU")
    parser.add_argument("--epochs", type=int, help="other than the default, to try this script out")
    parser.add_argument("--until", type=float, help="stop after the epoch with a validation RMSE of at most this")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    cell = json.loads(gzip.decompress(options.cell.read_bytes()))
    seeds = [int(seed) for seed in (options.seeds.split(",") if options.seeds else cell["parts"])]
    for seed in seeds:
        if seed not in recorded(options.to):
            line = train(cell, seed, options.device, options.epochs, options.until)
            add(options.to, line)
            print(f"{cell['cell']}, seed {seed}: {line['metrics']}, {line['seconds']:.0f} s", flush=True)


def train(
    cell: dict[str, Any], seed: int, device: str, epochs: int | None = None, until: float | None = None
) -> dict[str, Any]:
    """Train on one split and score. The clock starts when chemprop is imported and the three files are written."""
    from chemprop.cli.main import main as chemprop  # here, so that scoring can be tested without chemprop
    from chemprop.models import MPNN

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        scored = write_parts(cell, seed, folder)
        seeds = ["--pytorch-seed", str(seed), "--data-seed", str(seed)]
        place = ["--accelerator", "gpu" if device == "cuda" else "cpu", "--devices", "1"]
        files = [str(folder / f"{part}.csv") for part in ("train", "validation", "scored")]
        sys.argv = ["chemprop", "train", "--data-path", *files, "--output-dir", str(folder / "out"),
                    "--task-type", cell["kind"], *seeds, *place]  # fmt: skip
        if epochs is not None:
            sys.argv += ["--epochs", str(epochs)]
        clock = Clock(cell["kind"] == "regression", until)
        MPNN.on_validation_end = clock.hear
        with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):  # its progress bar
            clock.begin = time.perf_counter()
            chemprop()
        seconds = time.perf_counter() - clock.begin
        predictions = read_predictions(folder / "out" / "model_0" / "test_predictions.csv", cell["targets"])
        best = next((folder / "out" / "model_0" / "checkpoints").glob("best-epoch=*"))
        settings = read_settings(folder / "out" / "config.toml")
    parts = np.array([cell["parts"][str(seed)][row] for row in scored])
    labels = numbers([cell["labels"][row] for row in scored])
    found = re.match(r"best-epoch=(\d+)-", best.name)
    assert found is not None
    intervals = conformal(predictions, labels, parts == 1, parts == 2) if cell["kind"] == "regression" else {}
    return intervals | {
        "cell": cell["cell"],
        "seed": seed,
        "settings": settings,
        "epochs": len(clock.losses),
        "chosen": {"epoch": int(found[1]) + 1},
        "metrics": {
            part: score(cell["kind"], predictions[parts == code], labels[parts == code])
            for code, part in ((1, "validation"), (2, "test"))
        },
        "seconds": seconds,
        "device": torch.cuda.get_device_name() if device == "cuda" else f"cpu, {torch.get_num_threads()} threads",
        "versions": {"python": platform.python_version()} | {name: version(name) for name in PACKAGES},
        "curves": {"validation_loss": clock.losses, "validation_rmse": clock.errors, "seconds": clock.seconds},
    }


def conformal(
    predictions: np.ndarray[Any, Any], labels: np.ndarray[Any, Any], validation: Any, test: Any
) -> dict[str, dict[str, float]]:
    """Coverage and mean width for 90 % of what `chemprop predict --calibration-method conformal-regression` gives."""
    from chemprop.uncertainty.calibrator import RegressionConformalCalibrator

    known, nothing = torch.from_numpy(~np.isnan(labels)), torch.zeros(predictions.shape, dtype=torch.float64)
    y, found = torch.from_numpy(labels), torch.from_numpy(predictions)
    fitted = RegressionConformalCalibrator(0.1).fit(
        found[validation], nothing[validation], y[validation], known[validation]
    )
    half = fitted.apply(nothing[test])
    inside = ((y[test] - found[test]).abs() <= half)[known[test]]
    return {"conformal": {"coverage": float(inside.double().mean()), "width": float(2 * half[known[test]].mean())}}


class Clock:
    """Callback: times and scores of validations; stops training at an aim."""

    def __init__(self, is_regression: bool, until: float | None) -> None:
        self.is_regression, self.until = is_regression, until
        self.begin = 0.0
        self.seconds: list[float] = []
        self.losses: list[float] = []
        self.errors: list[float] = []

    @property
    def hear(self) -> Any:
        """A hook of Lightning, which is called with the network."""

        def on_validation_end(network: Any) -> None:
            if network.trainer.sanity_checking:
                return
            self.seconds.append(time.perf_counter() - self.begin)
            self.losses.append(float(network.trainer.callback_metrics["val_loss"]))
            if self.is_regression:  # its loss is the mean square in units of the training targets' deviation
                self.errors.append(self.losses[-1] ** 0.5 * float(network.predictor.output_transform.scale))
                if self.until is not None and self.errors[-1] <= self.until:
                    network.trainer.should_stop = True

        return on_validation_end


def write_parts(cell: dict[str, Any], seed: int, folder: Path) -> list[int]:
    """Write a file for each part, the last with all scored molecules. -> the rows of that one"""
    parts = cell["parts"][str(seed)]
    rows = [[row for row, found in enumerate(parts) if found == code] for code in range(3)]
    scored = rows[1] + rows[2]
    for part, chosen in (("train", rows[0]), ("validation", rows[1]), ("scored", scored)):
        with open(folder / f"{part}.csv", "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["smiles", *cell["targets"]])
            writer.writerows([cell["smiles"][row], *cell["labels"][row]] for row in chosen)  # None becomes nothing
    return scored


def read_predictions(path: Path, targets: Sequence[str]) -> np.ndarray[Any, Any]:
    """The predictions of chemprop: numbers in the unit of the data, or probabilities."""
    with open(path, newline="") as file:
        return numbers([[float(row[target]) for target in targets] for row in csv.DictReader(file)])


def read_settings(path: Path) -> dict[str, str]:
    """What chemprop says it was run with. The file is called TOML, and is lines of NAME = TEXT."""
    pairs = (line.partition(" = ") for line in path.read_text().splitlines())
    return {name: value for name, _, value in pairs if not OTHERS.match(name)}


def numbers(rows: Sequence[Row]) -> np.ndarray[Any, Any]:
    """Rows as numbers, NaN for what is missing."""
    return np.array([[np.nan if value is None else value for value in row] for row in rows], dtype=np.float64)


def score(kind: str, predictions: np.ndarray[Any, Any], labels: np.ndarray[Any, Any]) -> float:
    """The mean over tasks of RMSE or of the area under the ROC curve, each over the rows that have its label.

    A task with one class alone has no area and is left out.
    """
    found = []
    for x, y in zip(predictions.T, labels.T, strict=True):
        known = ~np.isnan(y)
        if kind == "regression":
            found.append(float(np.sqrt(np.mean((x[known] - y[known]) ** 2))))
        elif len(np.unique(y[known])) == 2:
            found.append(float(roc_auc_score(y[known], x[known])))
    return float(np.mean(found))


def recorded(path: Path) -> set[int]:
    """The seeds that have a whole line."""
    if not path.exists():
        return set()
    return {json.loads(line)["seed"] for line in path.read_bytes().split(b"\n")[:-1]}


def add(path: Path, line: dict[str, Any]) -> None:
    """Add a line in one piece, after cutting off what a stopped run may have left; several processes may do so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a+b", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
        file.write(json.dumps(line, allow_nan=False, separators=(",", ":")).encode() + b"\n")
        os.fsync(file.fileno())


if __name__ == "__main__":
    main()
