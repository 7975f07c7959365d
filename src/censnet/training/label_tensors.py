"""Labels, censoring and parts of rows as tensors."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from censnet.data.splits.split_file import Split
from censnet.tasks.targets import Target


def row_labels(targets: Sequence[Target], encoded: Sequence[Tensor], rows: Tensor, count: int) -> Tensor:
    """Labels of the nodes or edges of the graph, where input row r became number rows[r]. -> (count, k)."""
    labels = torch.full((count, len(targets)), torch.nan)
    good = (rows >= 0).nonzero().squeeze(1).flip(0)  # where rows were merged, the first label wins
    for column, values in enumerate(encoded):
        known = good[~values[good].isnan()]
        labels[rows[known], column] = values[known]
    return labels


def row_censoring(encoded: Sequence[Tensor | None], rows: Tensor, count: int) -> Tensor | None:
    """Side of each censored label, in the order of `row_labels`; None if no label is censored."""
    if all(values is None for values in encoded):
        return None
    censoring = torch.zeros(count, len(encoded), dtype=torch.int8)
    good = (rows >= 0).nonzero().squeeze(1).flip(0)
    for column, values in enumerate(encoded):
        if values is not None:
            censoring[rows[good], column] = values[good]
    return censoring


def row_parts(splits: Sequence[Split], rows: Tensor, count: int) -> Tensor:
    """Part of each node or edge of the graph for each member, from splits of the input rows. -> (count, members)."""
    return torch.stack([torch.from_numpy(split.to_graph(rows).codes(count)).long() for split in splits], dim=1)
