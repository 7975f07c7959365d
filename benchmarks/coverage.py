"""`python -m benchmarks.coverage`: how often labels of fresh rows are in their intervals and sets, over many splits.

A small model for each of 20 random splits of Lipophilicity and Tox21 (graphs), Cora (nodes) and the ratings of Bitcoin
OTC (edges). Coverage does not depend on how good a model is, so training is short. Measured on test rows: coverage and
size for 90 %, ECE and Brier score, and the share of rows that are marked as unlike training; of the Lipophilicity runs
also how many of four molecules that are unlike drugs are marked. Record: benchmarks/results/coverage.json. It exits
with 1 where a target is missed.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Cell:
    """A data set, its targets and the settings of its trainings."""

    level: str
    data: str
    target: Sequence[str]
    fractions: tuple[float, float, float]
    epochs: int
    ensemble: int = 1


CELLS = {
    "Lipophilicity": Cell("graph", "lipophilicity", ["graph:exp"], (0.6, 0.24, 0.16), 3, 2),
    "Tox21": Cell("graph", "tox21", DATASETS["tox21"].targets, (0.7, 0.15, 0.15), 3),
    "Cora": Cell("node", "cora", DATASETS["cora"].targets[:1], (0.13, 0.37, 0.5), 60),
    "OTC ratings": Cell("edge", "otc", ["edge:rating=regression"], (0.8, 0.1, 0.1), 20, 2),
}


def measure(cell: Cell, seed: int) -> dict[str, float]:
    """The scores of the test rows of one split."""
    changes = SMALL | {
        "data.split": "ratio", "data.fractions": cell.fractions, "training.epochs": cell.epochs
    }  # fmt: skip
    data: Any = cell.data
    if data == "otc":
        edges = read_otc().edges
        data = Tables(edges=edges.drop(columns="sign"), names={"edges": "bitcoin_otc.csv"})
    run = train(data, list(cell.target), settings=changes, seed=seed, ensemble=cell.ensemble)
    test, rows = run.metrics["test"][cell.level], run.predictions[cell.level]
    found = {key: test[key] for key in ("coverage", "width", "set_size", "ece", "brier") if key in test}
    found["marked"] = float(rows.loc[rows["split"] == "test", "unlike_training"].notna().mean())
    if cell.data == "lipophilicity":
        found["odd_marked"] = float(run.predict([*ODD.values(), peptide()])["unlike_training"].notna().sum())
    return found


def peptide() -> str:
    """A peptide of 60 residues."""
    from rdkit import Chem

    return str(Chem.MolToSmiles(Chem.MolFromSequence("ACDEFGHIKLMNPQRSTVWY" * 3)))


def missed(name: str, found: list[dict[str, float]]) -> list[str]:
    """The targets that the mean over splits misses."""
    average = {key: mean(each[key] for each in found) for key in found[0]}
    checks = {
        "coverage": average["coverage"] >= TARGETS["coverage"],
        "coverage of a number": "width" not in average or average["coverage"] <= TARGETS["number"],
        "ECE": average.get("ece", 0.0) <= TARGETS["ece"],
        "marked rows": average["marked"] <= TARGETS["marked"],
        "odd molecules": average.get("odd_marked", len(ODD) + 1) == len(ODD) + 1,
    }
    return [f"{name}: {check}" for check, holds in checks.items() if not holds]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--only", choices=list(CELLS), help="one data set, beside the others in the record")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    chosen = CELLS if asked.only is None else {asked.only: CELLS[asked.only]}
    how = {"settings": SMALL, "cells": {name: repr(cell) for name, cell in CELLS.items()}, "targets": TARGETS}
    old = json.loads(RECORD.read_text())["measured"] if RECORD.exists() else {}
    before = old["test rows"] if {**old, "test rows": {}} == {**how, "test rows": {}} else {}
    every, wrong = dict[str, list[dict[str, float]]](), list[str]()
    table = Table("", "coverage", "width", "set size", "ECE", "Brier", "marked", "odd molecules marked")
    for name, cell in chosen.items():
        done = before.get(name, [])[: asked.splits]  # of an earlier call, with the same settings
        every[name] = done + [measure(cell, seed) for seed in range(len(done), asked.splits)]
        average = {key: mean(each[key] for each in every[name]) for key in every[name][0]}
        columns = ("coverage", "width", "set_size", "ece", "brier", "marked", "odd_marked")
        table.add_row(name, *(f"{average[key]:.3f}" if key in average else "" for key in columns))
        wrong += missed(name, every[name])
    console.print(table)
    for line in wrong:
        console.print(f"missed: {line}")
    measured = {**how, "test rows": before | every}
    console.print(f"record: {write_record('coverage', measured, platform.machine(), 'python -m benchmarks.coverage')}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
