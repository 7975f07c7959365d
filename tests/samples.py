"""Small data for short trainings: payments between accounts, rings and chains, molecules; and settings for them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from censnet.data.splits.split_file import RESERVED, Split, part_rows
from censnet.data.tables.files import Tables, write_table
from censnet.nn.ensemble import stack_members
from censnet.nn.model import Model
from censnet.pipeline import replicate, replicates
from censnet.pipeline.prepare import Prepared
from censnet.pipeline.replicates import Replicates
from censnet.training.callbacks import Callback
from censnet.training.early_stopping import ValidationScore
from censnet.training.task_data import build_model
from censnet.training.trainer import FitResult

QUICK: dict[str, object] = {
    "training.epochs": 6,
    "model.hidden": 8,
    "model.layers": "NEN",
    "model.heads": 1,
    "model.kernel": "hop",
    "model.kernel_options": {},
    "model.structural_features": False,
    "model.position_steps": 0,
    "model.known_labels": False,
    "model.triangles": False,
    "training.weight_decay_by_name": {},
    "training.checkpoint_seconds": 1000,
}


RUN_FILES = (
    "calibration.json",
    "config.json",
    "history.csv",
    "metrics.json",
    "model.safetensors",
    "predictions.csv",
    "schema.json",
    "splits.csv",
)


def quick(**changes: object) -> dict[str, object]:
    """Settings of a short training of a model that reads columns alone; `training__epochs=3` is training.epochs."""
    return QUICK | {name.replace("__", "."): value for name, value in changes.items()}


def payments(accounts: int = 30, rows: int = 90, seed: int = 0) -> Tables:
    """Accounts and payments between them; some pairs pay each other more than once, in both directions.

    Whether an account is a vip and its tier follow from its age, its wealth from both; whether a payment is a fraud and
    its sort follow from its amount, its fee from both ends.
    """
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 80, accounts).round(2)
    names = [f"a{number}" for number in range(accounts)]
    nodes = pd.DataFrame(
        {
            "id": names,
            "age": age,
            "country": rng.choice(["fr", "de", "it"], accounts),
            "vip": np.where(age > 50, "yes", "no"),
            "tier": np.select([age < 40, age < 60], ["bronze", "silver"], "gold"),
            "wealth": (age * 3 + rng.normal(0, 1, accounts)).round(3),
        }
    )
    source = rng.integers(0, accounts, rows)
    target = (source + rng.integers(1, accounts, rows)) % accounts
    source[:6], target[:6] = [0, 0, 1, 1, 2, 3], [1, 1, 0, 2, 1, 4]  # parallel and reverse payments
    amount = rng.exponential(100, rows).round(2)
    edges = pd.DataFrame(
        {
            "source": [names[number] for number in source],
            "target": [names[number] for number in target],
            "amount": amount,
            "way": rng.choice(["card", "cash"], rows),
            "fraud": (amount > 100).astype(int),
            "sort": np.select([amount < 40, amount < 130], ["small", "medium"], "large"),
            "fee": (amount * 0.1 + age[source] * 0.01).round(4),
        }
    )
    return Tables(nodes=nodes, edges=edges)


def unscaled() -> Tables:
    """A graph whose features do not depend on the split, so that all seeds can share it."""
    rng = np.random.default_rng(0)
    side = np.arange(40) % 2
    source = rng.integers(0, 40, 160)
    same = rng.random(160) < 0.85
    target = np.where(same, (source + 2 * rng.integers(1, 20, 160)) % 40, (source + 1) % 40)
    vectors = [[float(a), 1.0, float(b)] for a, b in zip(rng.integers(0, 2, 40), side, strict=True)]
    nodes = pd.DataFrame({"id": range(40), "x": vectors, "side": np.where(side == 1, "left", "right")})
    return Tables(nodes, pd.DataFrame({"source": source, "target": target}))


def shapes(count: int = 40, seed: int = 0) -> Tables:
    """Many graphs: rings and chains of colored beads. Which one it is, its size, and labels with gaps."""
    rng = np.random.default_rng(seed)
    nodes: list[dict[str, Any]] = []
    edges: list[dict[str, Any]] = []
    graphs: list[dict[str, Any]] = []
    for number in range(count):
        name, size, ring = f"g{number}", int(rng.integers(3, 8)), int(number % 2)
        colors = rng.choice(["red", "blue"], size)
        nodes += [
            {"graph": name, "id": bead, "colour": color, "warm": int(color == "red")}
            for bead, color in enumerate(colors)
        ]
        for bead in range(size if ring else size - 1):
            ends = {"source": bead, "target": (bead + 1) % size}
            edges.append({"graph": name, **ends, "length": round(float(rng.uniform(1, 2)), 3)})
        red = float((colors == "red").mean())
        many = int(red > 0.5) if rng.random() < 0.7 else None
        graphs.append({"graph": name, "ring": ring, "many_red": many, "red": round(red, 4), "weight": size + red})
    frame = pd.DataFrame(graphs)
    frame["many_red"] = frame["many_red"].astype("Int64")
    return Tables(nodes=pd.DataFrame(nodes), edges=pd.DataFrame(edges), graphs=frame)


def smiles(count: int = 40, seed: int = 0) -> pd.DataFrame:
    """Molecules: chains with one end of a few, whether they can give a proton, and how long they are."""
    rng = np.random.default_rng(seed)
    ends = ["O", "N", "F", "Cl", "C(=O)O", "C#N"]
    chosen = rng.integers(0, len(ends), count)
    length = rng.integers(1, 9, count)
    return pd.DataFrame(
        {
            "smiles": ["C" * int(n) + ends[e] for n, e in zip(length, chosen, strict=True)],
            "acid": [int(ends[e] in ("O", "C(=O)O")) for e in chosen],
            "size": [float(n) + 0.1 * float(e) for n, e in zip(length, chosen, strict=True)],
        }
    )


def content(folder: Path) -> dict[str, object]:
    """Every file of a run, but for when and where it was made."""
    found: dict[str, object] = {
        str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }
    config = json.loads((folder / "config.json").read_text())
    found["config.json"] = {name: value for name, value in config.items() if name not in ("provenance", "sha256")}
    return found


def batch_replicates(monkeypatch: pytest.MonkeyPatch, yes: bool) -> None:
    """Whether replicates that can be trained as one batched ensemble are."""
    can_batch = replicates.can_batch
    monkeypatch.setattr(replicates, "can_batch", lambda *args: yes and can_batch(*args))


def replicate_both_ways(monkeypatch: pytest.MonkeyPatch, settings: dict[str, object]) -> dict[bool, Replicates]:
    """Four replicates as one batched ensemble (True), and one by one (False)."""
    found = {}
    for yes in (True, False):
        with monkeypatch.context() as patch:
            batch_replicates(patch, yes)
            found[yes] = replicate(unscaled(), "node:side", replicates=4, settings=settings)
    return found


def fit_result(values: Sequence[float], losses: Sequence[float], monitor: str = "accuracy") -> FitResult:
    """The result of a batched ensemble whose best epoch was the second."""
    rows = [
        {"member": member, "epoch": epoch, "validation_loss": loss + epoch - 2, f"validation_{monitor}": value}
        for epoch in (1, 2)
        for member, (value, loss) in enumerate(zip(values, losses, strict=True))
    ]
    best = [ValidationScore(value, loss) for value, loss in zip(values, losses, strict=True)]
    return FitResult(rows, monitor, best, [2] * len(values))


def untrained_model(prepared: Prepared, members: int = 1, seed: int = 0) -> Model:
    """The model of a training from its initial weights; several members are batched."""
    torch.manual_seed(seed)
    models = [build_model(prepared.task_data, prepared.settings) for _ in range(members)]
    return models[0] if members == 1 else stack_members(models)


class RecordWeights(Callback):
    """Records the weights of a model after every epoch, and how the callback was called."""

    def __init__(self, model: Model) -> None:
        self.model, self.steps, self.ended = model, 0, False
        self.seen: list[dict[str, Tensor]] = []

    def on_train_begin(self, epochs: int, done: int, steps: int, monitor: str) -> None:
        self.begun = (epochs, done, steps, monitor)

    def on_step_end(self) -> None:
        self.steps += 1

    def on_epoch_end(self, rows: object, best: object) -> None:
        self.seen.append({name: tensor.clone() for name, tensor in self.model.state_dict().items()})

    def on_train_end(self) -> None:
        self.ended = True


def write_splits(
    splits: Mapping[str, Split],
    path: str | os.PathLike[str],
    ids: Mapping[str, pd.DataFrame] | None = None,
    more: Sequence[pd.DataFrame] = (),
) -> None:
    """Write splits of tables as a user would: `table, row, split`, rows counted from 1, and the id columns.

    Args:
        splits: for each table (nodes, edges, graphs), its split.
        path: the file, as splits.csv.
        ids: for some of the tables, the columns that name its rows, such as `id`, or `source` and `target`.
        more: further rows of this form, such as those of `link_rows`.
    """
    frames = []
    for table, split in splits.items():
        frame = part_rows(table, split)
        if ids is not None and table in ids:
            names = ids[table].rename(columns={name: f"{name}_" for name in RESERVED})
            names = names.iloc[frame["row"] - 1].astype("string").reset_index(drop=True)
            frame = pd.concat([frame, names], axis=1)
        frames.append(frame)
    write_table(pd.concat([*frames, *more], ignore_index=True), Path(path))
