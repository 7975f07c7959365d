"""Rows and links to score that are known from training: how many, and a warning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from censnet.data.dataset import Dataset
from censnet.data.digests import read_digests, row_digests
from censnet.data.splits.links import LinkSplit
from censnet.levels import Level
from censnet.runs.links import node_names

COUNTS = ("rows", "known_train", "known_validation")  # beside the metrics of an evaluation
KNOWN = ("train", "validation")  # parts that training has used
_SEPARATOR = "\x1f"


def known_rows(splits: pd.DataFrame, dataset: Dataset, level: str) -> dict[str, Tensor] | None:
    """Part -> mask of the rows that are in that part of the training data; None if the run has no digests of them."""
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


def count_known(labeled: Tensor, known: Mapping[str, Tensor]) -> dict[str, float]:
    """The number of labeled rows, and of those in each part of the training data."""
    found = (labeled, *(labeled & known[part] for part in KNOWN))
    return {name: float(rows.sum()) for name, rows in zip(COUNTS, found, strict=True)}


def count_known_links(splits: pd.DataFrame, dataset: Dataset, hidden: LinkSplit) -> dict[str, float]:
    """The same for links: those between two nodes, by their ids, with a link in that part of the training data."""
    if not {"source", "target"} <= set(splits.columns):
        return {}
    names = node_names(dataset)[hidden.test_links.numpy()]
    here, mine = _pairs(names[0], names[1], hidden.ordered), splits[splits["table"] == "links"]
    found = [len(here)]
    for part in KNOWN:
        some = mine[mine["split"] == part]
        first, second = (some[side].astype("string").fillna("").to_numpy(dtype=object) for side in ("source", "target"))
        found.append(int(np.isin(here, _pairs(first, second, hidden.ordered)).sum()))
    return dict(zip(COUNTS, map(float, found), strict=True))


def describe_known(scores: dict[str, float], table: str) -> str | None:
    """A warning if rows of an evaluation are known from training; None if all are new, or nothing is known."""
    rows, train, validation = (int(scores.get(name, 0)) for name in COUNTS)
    if not train + validation:
        return None
    return (
        f"{train + validation:,} of {rows:,} {table} to score are known from training ({train:,} for training, "
        f"{validation:,} for validation): their scores do not show how the run generalizes to new ones"
    )


def _pairs(first: Any, second: Any, ordered: bool) -> NDArray[np.str_]:
    """The two ids of each pair as one text, in sorted order unless the order of a pair matters."""
    pairs = zip(first, second, strict=True)
    return np.array([_SEPARATOR.join(pair if ordered else sorted(pair)) for pair in pairs], dtype=str)
