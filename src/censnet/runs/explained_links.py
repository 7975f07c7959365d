"""Explain links: the pairs of nodes that a user names, and what their scores rest on."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import torch

from censnet.data.dataset import Dataset
from censnet.errors import ArgumentError, DataError, quote
from censnet.nn.model import Model, Outputs
from censnet.runs.links import link_table, node_names, number_pairs, one_graph


def find_pairs(dataset: Dataset, asked: Sequence[str | int]) -> list[tuple[int, int]]:
    """The pairs of nodes that a user names: by two ids joined by a comma, or as `#3`, or 3, for the third edge."""
    graph, rows, found = one_graph(dataset), dataset.rows("edge"), list[tuple[int, int]]()
    for one in asked:
        text = str(one).strip()
        number = text.removeprefix("#")
        if isinstance(one, int) or text.startswith("#"):
            edge = int(rows[int(number) - 1]) if number.isdigit() and 1 <= int(number) <= len(rows) else -1
            if edge < 0:
                raise DataError(f"no edge is row {quote(number)}, expected 1 to {len(rows):,}, or two ids as A,B")
            source, target = graph.ends[:, edge].tolist()
            found.append((source, target))
            continue
        found.append(_find_pair(dataset, text))
    return list(dict.fromkeys(found))


def _find_pair(dataset: Dataset, text: str) -> tuple[int, int]:
    """The nodes of two ids joined by a comma, of which ids may have some as well."""
    parts = text.split(",")
    if len(parts) < 2:
        raise ArgumentError(f"a row is {quote(text)}, expected two ids of nodes joined by a comma, such as a7,a12")
    splits = [(",".join(parts[:n]), ",".join(parts[n:])) for n in range(1, len(parts))]
    numbers, wrong = number_pairs(dataset, pd.DataFrame(splits, columns=["source", "target"], dtype="string"))
    good = [tuple(pair) for pair, why in zip(numbers.T.tolist(), wrong, strict=True) if why is None]
    if not good:
        why = str(wrong[0]).rpartition(": ")[2] if len(splits) == 1 else "no two nodes have these ids"
        raise DataError(f"{quote(text)} is no pair of nodes: {why}")
    return good[0][0], good[0][1]


def likeliest_pairs(
    dataset: Dataset, models: Sequence[Model], outputs: Sequence[Outputs], top: int
) -> list[tuple[int, int]]:
    """The most probable pairs without an edge, as `predict` gives them."""
    table = link_table(dataset, models, outputs, None, top, "ids", torch.device("cpu"))
    place = {name: number for number, name in enumerate(node_names(dataset))}
    return [(place[a], place[b]) for a, b in zip(table["source"], table["target"], strict=True)]


def pair_name(dataset: Dataset, pair: tuple[int, int]) -> str:
    """The ids of a pair, joined by a comma."""
    return ",".join(map(str, node_names(dataset)[list(pair)]))
