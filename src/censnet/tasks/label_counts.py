"""Counts of the known labels around each node and each edge: what means over neighbors do not tell.

The mean label of the edges of a busy account hides that three of them were fraud, and boosted trees on a handful of
such counts beat a network that has labels alone. The sums are linear in the labels, so that those of a sampled subgraph
are the sums of the whole graph less the labels that a step hides. The label of a row is in none of its own counts.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from censnet.levels import Level
from censnet.ops.incidence import Incidence
from censnet.tasks.targets import Target

MAX_CLASSES = 16  # of a target, up to which its labels are counted


def is_counted(target: Target) -> bool:
    """Whether the labels of a target are counted: numbers, and those of a few classes."""
    return target.is_number or len(target.classes) <= MAX_CLASSES


def count_width(targets: Sequence[Target], level: Level, directed: bool) -> int:
    """Channels of the counts of the labels of these targets."""
    per_sum = sum(2 if target.is_number else 2 * len(target.classes) for target in targets if is_counted(target))
    return per_sum * _num_sums(level, directed)


def label_sums(values: Tensor, level: Level, incidence: Incidence, directed: bool) -> Tensor:
    """Sums of the labels of other rows around each row. (n, c) -> (n, sums, c), float64

    Of an edge (s, t), over the other edges that leave s, arrive at s, leave t and arrive at t, over those that are
    parallel to it, and over those from t to s; without direction, over the edges of s, those of t, and those between
    the two. Of a node, over its successors and its predecessors, or over its neighbors; a parallel edge counts again.

    Args:
        values: of each row, 0 where its label is not shown.
        level: whether rows are nodes or edges.
        incidence: of the graph.
        directed: whether sums are by direction.

    Example:
        >>> path = Incidence(torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
        >>> label_sums(torch.tensor([[5.0], [7.0]]), "edge", path, directed=True)[0].flatten().int().tolist()
        [0, 0, 7, 0, 0, 0]
        >>> label_sums(torch.tensor([[1.0], [2.0], [4.0]]), "node", path, directed=False).flatten().int().tolist()
        [2, 5, 2]
    """
    values = values.double()
    source, target = incidence.ends
    loop = (source == target).unsqueeze(1)
    if level == "node":
        other = ~loop
        after = incidence.scatter_start(incidence.gather_end(values) * other)
        before = incidence.scatter_end(incidence.gather_start(values) * other)
        return torch.stack([after, before] if directed else [after + before], dim=1)
    parallel, reciprocal = incidence.sum_parallel(values) - values, incidence.sum_reciprocal(values) - values * loop
    leaving, arriving = incidence.scatter_both(values)
    if directed:
        ends = [leaving[source] - values, arriving[source] - values * loop]
        ends += [leaving[target] - values * loop, arriving[target] - values]
        return torch.stack([*ends, parallel, reciprocal], dim=1)
    either = incidence.scatter(values)
    return torch.stack([either[source] - values, either[target] - values, parallel + reciprocal * ~loop], dim=1)


def count_channels(sums: Tensor, targets: Sequence[Target], level: Level, directed: bool) -> Tensor:
    """The sums as features. (n, sums, c) -> (n, width)

    Of each class log(1 + k) / 2 of its k labels and the share k / (n + 1) among all n; of numbers log(1 + n) / 2 and
    the mean, with one 0 more. The two ends of an undirected edge have no order: the sum of the features of both, and
    the size of their difference.

    Args:
        sums: of the labels as one-hot classes, or as a number and whether it is known, of all targets.
        targets: whose labels they are.
        level: whether rows are nodes or edges.
        directed: whether the sums are by direction.
    """
    found, start = [], 0
    for target in targets:
        width = label_width(target)
        mine, start = sums[..., start : start + width], start + width
        if not is_counted(target):
            continue
        counts = (mine[..., 1:] if target.is_number else mine).clamp(min=0)
        whole = counts.sum(-1, keepdim=True) + 1
        found += [counts.log1p() / 2, (mine[..., :1] if target.is_number else counts) / whole]
    features = torch.cat(found, dim=-1).float()
    if level == "edge" and not directed:
        one, other, pair = features.unbind(1)
        features = torch.stack([one + other, (one - other).abs(), pair], dim=1)
    return features.flatten(1)


def label_width(target: Target) -> int:
    """Channels of a known label: one-hot classes, or a number and whether it is known."""
    return 2 if target.is_number else len(target.classes)


def _num_sums(level: Level, directed: bool) -> int:
    if level == "node":
        return 2 if directed else 1
    return 6 if directed else 3
