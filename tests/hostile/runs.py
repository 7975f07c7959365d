"""Runs to answer with: each is trained once, in a moment, into a folder that goes away with the process."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from samples import quick

from censnet.pipeline import train
from censnet.runs import Run, load_run
from hostile.tables import world, write_all

QUICK = quick(training__epochs=2)
IDS = [f"n{number}" for number in range(30)]
TARGETS: dict[str, tuple[str, list[str]]] = {  # name of a run -> its data, and its targets
    "node": ("folder", ["node:label"]),
    "number": ("folder", ["node:score"]),
    "edge": ("folder", ["edge:fraud"]),
    "fee": ("folder", ["edge:fee"]),
    "joint": ("folder", ["node:label", "edge:fee"]),
    "graph": ("many", ["graph:toxic"]),
    "smiles": ("smiles.csv", ["graph:size"]),
    "acid": ("smiles.csv", ["graph:acid"]),
    "link": ("folder", ["link"]),
}
CHAINS = [
    ("C" * length + end, int(end == "O"), length + len(end) / 10)
    for length in range(1, 9)
    for end in ("O", "N", "F", "Cl", "S")
]


@cache
def home() -> Path:
    """Where data and runs are; nothing in it is ever changed."""
    place = Path(tempfile.mkdtemp(prefix="hostile-runs-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    write_all(place / "folder", world(IDS))
    write_all(place / "many", world([str(number) for number in range(5)], many=True))
    frame = pd.DataFrame(CHAINS, columns=["smiles", "acid", "size"])
    frame.insert(0, "id", [f"m{number}" for number in range(len(frame))])
    frame.to_csv(place / "smiles.csv", index=False)
    return place


@cache
def trained(name: str) -> Run:
    """A run, read from its directory."""
    data, targets = TARGETS[name]
    torch.manual_seed(0)
    settings: dict[str, Any] = dict(QUICK)
    if all(target.startswith("node:") for target in targets):
        settings["training.recipe"] = "low_label"
    place = home() / f"run-{name}"
    train(home() / data, targets, place, settings=settings, device="cpu")
    return load_run(place)


def data_of(name: str) -> Path:
    """The data that a run was trained on."""
    return home() / TARGETS[name][0]


def copied(name: str, to: Path) -> Path:
    """A run directory of one's own, to be spoilt."""
    trained(name)
    return Path(shutil.copytree(home() / f"run-{name}", to))
