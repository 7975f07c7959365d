"""`python -m benchmarks.coverage`: how often labels of fresh rows are in their intervals and sets, over many splits.

    python -m benchmarks.coverage                                        what the record lacks, and the record
    python -m benchmarks.coverage --only Cora --start 5 --splits 10 --lines FILE.jsonl    splits 5 to 9, elsewhere
    python -m benchmarks.coverage --collect FILE.jsonl ...               such files into the record

A small model for each of 20 random splits of Lipophilicity and Tox21 (graphs), Cora (nodes) and the ratings of Bitcoin
OTC (edges). Coverage does not depend on how good a model is, so training is short; the width of an interval does, so
the strong preset is trained on 20 splits of Lipophilicity, too (`--only "Lipophilicity, strong"`; on a GPU). Measured
on test rows: coverage and size for 90 %, ECE and Brier score, and the share of rows that are marked as unlike training;
of the Lipophilicity runs also how many of four molecules that are unlike drugs are marked. Record:
benchmarks/results/coverage.json. It exits with 1 where a target is missed.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from benchmarks.records import RESULTS, write_record
from censnet.data.datasets.catalogue import DATASETS
from censnet.data.tables.files import Tables
from censnet.pipeline import train
from censnet_experiments.edges.otc import read_otc

SMALL: dict[str, object] = {
    "model.hidden": 32,
    "model.heads": 1,
    "model.layers": "NEN",
    "model.kernel": "hop",
    "model.kernel_options": {},
}
TARGETS = {"coverage": 0.88, "number": 0.93, "ece": 0.03, "marked": 0.05}
ODD = {
    "a chain of 600 carbons": "C" * 600,
    "buckminsterfullerene": (
        "c12c3c4c5c1c1c6c7c2c2c8c3c3c9c4c4c%10c5c5c1c1c6c6c%11c7c2c2c7c8c3c3c8c9c4c4c9c%10c5c5c1c1c6c6c%11c2c2c7c3c3c8"
        "c4c4c9c5c1c1c6c2c3c41"
    ),
    "cisplatin": "[NH3][Pt]([NH3])(Cl)Cl",
}
RECORD = RESULTS / "coverage.json"
console = Console(width=120)


Found = dict[str, float]


@dataclass(frozen=True)
class Cell:
    """A data set, its targets and the settings of its trainings."""

    level: str
    data: str
    target: Sequence[str]
    settings: Mapping[str, object] = field(default_factory=dict)
    ensemble: int = 1


def small(fractions: tuple[float, float, float], epochs: int) -> dict[str, object]:
    """Settings of a short training."""
    return SMALL | {"data.fractions": fractions, "training.epochs": epochs}


CELLS = {
    "Lipophilicity": Cell("graph", "lipophilicity", ["graph:exp"], small((0.6, 0.24, 0.16), 3), 2),
    "Lipophilicity, strong": Cell("graph", "lipophilicity", ["graph:exp"]),
    "Tox21": Cell("graph", "tox21", DATASETS["tox21"].targets, small((0.7, 0.15, 0.15), 3)),
    "Cora": Cell("node", "cora", DATASETS["cora"].targets[:1], small((0.13, 0.37, 0.5), 60)),
    "OTC ratings": Cell("edge", "otc", ["edge:rating=regression"], small((0.8, 0.1, 0.1), 20), 2),
}


def measure(cell: Cell, seed: int, device: str | None = None) -> Found:
    """The scores of the test rows of one split."""
    changes = {"data.split": "ratio", **cell.settings}
    data: Any = cell.data
    if data == "otc":
        edges = read_otc().edges
        data = Tables(edges=edges.drop(columns="sign"), names={"edges": "bitcoin_otc.csv"})
    run = train(data, list(cell.target), settings=changes, seed=seed, ensemble=cell.ensemble, device=device)
    test, rows = run.metrics["test"][cell.level], run.predictions[cell.level]
    found: Found = {key: test[key] for key in ("coverage", "width", "set_size", "ece", "brier", "rmse") if key in test}
    found["marked"] = float(rows.loc[rows["split"] == "test", "unlike_training"].notna().mean())
    if cell.data == "lipophilicity":
        found["odd_marked"] = float(run.predict([*ODD.values(), peptide()])["unlike_training"].notna().sum())
    return found


def peptide() -> str:
    """A peptide of 60 residues."""
    from rdkit import Chem

    return str(Chem.MolToSmiles(Chem.MolFromSequence("ACDEFGHIKLMNPQRSTVWY" * 3)))


def average(found: Mapping[str, Found]) -> Found:
    """The mean over splits."""
    every = list(found.values())
    return {key: mean(each[key] for each in every) for key in every[0]}


def missed(name: str, scores: Found) -> list[str]:
    """The targets that the mean over splits misses."""
    checks = {
        "coverage": scores["coverage"] >= TARGETS["coverage"],
        "coverage of a number": "width" not in scores or scores["coverage"] <= TARGETS["number"],
        "ECE": scores.get("ece", 0.0) <= TARGETS["ece"],
        "marked rows": scores["marked"] <= TARGETS["marked"],
        "odd molecules": scores.get("odd_marked", len(ODD) + 1) == len(ODD) + 1,
    }
    return [f"{name}: {check}" for check, holds in checks.items() if not holds]


def recorded() -> dict[str, dict[str, Found]]:
    """Cell -> split -> scores, of the cells of the record that have the present settings."""
    if not RECORD.exists():
        return {}
    old = json.loads(RECORD.read_text())["measured"]
    same = [name for name, cell in CELLS.items() if old["cells"].get(name) == repr(cell)]
    return {name: old["test rows"][name] for name in same if name in old["test rows"]}


def collect(paths: Sequence[Path], before: dict[str, dict[str, Found]]) -> dict[str, dict[str, Found]]:
    """The splits of the record and those of files."""
    found = {name: dict(splits) for name, splits in before.items()}
    for path in paths:
        for line in map(json.loads, path.read_text().splitlines()):
            if repr(CELLS[line["cell"]]) != line["settings"]:
                raise SystemExit(f"{path} has other settings of {line['cell']} than CELLS: measure it again")
            found.setdefault(line["cell"], {})[str(line["split"])] = line["found"]
    return {name: dict(sorted(splits.items(), key=lambda pair: int(pair[0]))) for name, splits in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--start", type=int, default=0, help="the first split")
    parser.add_argument("--only", choices=list(CELLS), help="one data set, beside the others in the record")
    parser.add_argument("--device", choices=("cpu", "cuda"))
    parser.add_argument("--lines", type=Path, help="where each split is written as it ends, in place of the record")
    parser.add_argument("--collect", type=Path, nargs="+", default=[], help="files of --lines for the record")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    every = collect(asked.collect, recorded())
    chosen = [] if asked.collect else [name for name in CELLS if asked.only in (None, name)]
    for name in chosen:
        for split in range(asked.start, asked.splits):
            if str(split) in every.setdefault(name, {}):
                continue
            every[name][str(split)] = found = measure(CELLS[name], split, asked.device)
            if asked.lines is not None:
                line = {"cell": name, "split": split, "settings": repr(CELLS[name]), "found": found}
                with asked.lines.open("a") as file:
                    file.write(json.dumps(line) + "\n")
    if asked.lines is None:
        finish(every)


def finish(every: Mapping[str, dict[str, Found]]) -> None:
    """Print the means, write the record, and exit with 1 where a target is missed."""
    table = Table("", "splits", "coverage", "width", "set size", "ECE", "Brier", "RMSE", "marked", "odd marked")
    wrong = list[str]()
    for name in filter(every.get, CELLS):
        scores = average(every[name])
        columns = ("coverage", "width", "set_size", "ece", "brier", "rmse", "marked", "odd_marked")
        texts = (f"{scores[key]:.3f}" if key in scores else "" for key in columns)
        table.add_row(name, str(len(every[name])), *texts)
        wrong += missed(name, scores)
    console.print(table)
    for line in wrong:
        console.print(f"missed: {line}")
    measured = {
        "cells": {name: repr(cell) for name, cell in CELLS.items()},
        "targets": TARGETS,
        "mean": {name: average(splits) for name, splits in every.items() if splits},
        "missed": wrong,
        "test rows": dict(every),
    }
    console.print(f"record: {write_record('coverage', measured, platform.machine(), 'python -m benchmarks.coverage')}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
