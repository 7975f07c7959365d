"""Rows of other data that a run was trained on: how many there are, and which."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from censnet.data.dataset import Dataset
from censnet.data.digests import read_digests, row_digests
from censnet.levels import Level
from censnet.runs.links import node_names

COUNTS = ("rows", "known_train", "known_validation")  # beside the metrics of an evaluation
KNOWN = ("train", "validation")  # parts that training looked at
_BETWEEN = "\x1f"


def split_texts(splits: pd.DataFrame, written: bytes) -> pd.DataFrame:
    """splits.csv with all values as text, so that the id 007 is not 7."""
    return pd.read_csv(io.BytesIO(written), dtype="string") if written else splits


def known_rows(splits: pd.DataFrame, dataset: Dataset, level: str) -> dict[str, Tensor] | None:
    """Part -> which rows of the tensors are rows of that part of the training data; None if the run does not say."""
    if "digest" not in splits:
        return None
    mine = splits[splits["table"] == Level(level).table]
    digests, rows, found = row_digests(dataset, level), dataset.rows(level).numpy(), dict[str, Tensor]()
    for part in KNOWN:
        known = np.isin(digests, read_digests(mine.loc[mine["split"] == part, "digest"])) & (rows >= 0)
        here = torch.zeros(dataset.count(level), dtype=torch.bool)
        here[torch.from_numpy(rows[known])] = True
        found[part] = here
    return {**found, "validation": found["validation"] & ~found["train"]}  # equal rows may be in both


def count_known(labelled: Tensor, known: Mapping[str, Tensor]) -> dict[str, float]:
    """How many rows there are to judge by, and how many of them are of each part of the training data."""
    found = (labelled, *(labelled & known[part] for part in KNOWN))
    return {name: float(rows.sum()) for name, rows in zip(COUNTS, found, strict=True)}


def count_known_links(splits: pd.DataFrame, dataset: Dataset, links: Tensor) -> dict[str, float]:
    """The same of links: those between two nodes that a link of that part joined in training, by their ids."""
    if not {"source", "target"} <= set(splits.columns):
        return {}
    names = node_names(dataset)[links.numpy()]
    here, mine = _pairs(names[0], names[1]), splits[splits["table"] == "links"]
    found = [len(here)]
    for part in KNOWN:
        some = mine[mine["split"] == part]
        ends = (some[side].astype("string").fillna("").to_numpy(dtype=object) for side in ("source", "target"))
        found.append(int(np.isin(here, _pairs(*ends)).sum()))
    return dict(zip(COUNTS, map(float, found), strict=True))


def describe_known(scores: dict[str, float], table: str) -> str | None:
    """What the user should know of the rows that an evaluation had; None if all were new, or nothing is known."""
    rows, train, validation = (int(scores.get(name, 0)) for name in COUNTS)
    if not train + validation:
        return None
    return (
        f"{train + validation:,} of {rows:,} {table} to judge by are known from training ({train:,} trained on, "
        f"{validation:,} of validation): their scores do not show what the run is worth on new ones"
    )


def _pairs(first: Any, second: Any) -> NDArray[np.str_]:
    """Two ids of each pair as one text, whichever comes first."""
    return np.array([_BETWEEN.join(sorted(pair)) for pair in zip(first, second, strict=True)], dtype=str)
