"""Counts, gaps, windows and means of known labels: what the past of an edge says without any parameter."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from censnet.ops.causal import Reads, prefix_sums
from censnet.ops.history import History, Relation

NODE_RELATIONS: tuple[Relation, ...] = ("out", "in")


def clock_width(label_width: int, num_windows: int) -> int:
    """Channels of `describe` for one relation."""
    return 2 + (label_width + 1) + num_windows * (label_width + 2)


def describe(
    reads: Sequence[Reads], label_reads: Sequence[Reads], labels: Tensor, known: Tensor, unit: float
) -> Tensor:
    """What was seen of a relation, in channels.

    log(1 + count) of all that was seen, log(1 + gap / unit) since the last of it, the means of known labels,
    sum / (count + 1), with log(1 + count) of these; and for each window both counts and the means again.

    Args:
        reads: everything, then one for each window.
        label_reads: the same of labels.
        labels: (E, k), zeros where a label is not known.
        known: (E,), 1 where it is.
        unit: of gaps.

    Shape:
        -> (Q, clock_width(k, windows)).
    """
    whole = reads[0]
    gap = torch.where(whole.count > 0, whole.gap, 0.0)
    found = [_log(whole.count, labels.dtype), (gap / unit).log1p().to(labels.dtype).unsqueeze(1)]
    both = torch.cat([labels, known.unsqueeze(1)], dim=1)
    for number, (of_edges, of_labels) in enumerate(zip(reads, label_reads, strict=True)):
        if number:
            found.append(_log(of_edges.count, labels.dtype))
        sums = prefix_sums(both, of_labels)
        found += [sums[:, :-1] / (sums[:, -1:] + 1), sums[:, -1:].log1p()]
    return torch.cat(found, dim=1)


def clock_of_nodes(history: History, labels: Tensor, known: Tensor, windows: Sequence[float], unit: float) -> Tensor:
    """What nodes have seen leaving and arriving: both of each edge just before it, and all at their times.

    (2E + N, 2 * clock_width)
    """
    return torch.cat([_of(history, relation, labels, known, windows, unit) for relation in NODE_RELATIONS], dim=1)


def clock_of_pairs(history: History, labels: Tensor, known: Tensor, windows: Sequence[float], unit: float) -> Tensor:
    """What went between the ends of each edge before it, the same way and back. (E, 2 * clock_width)"""
    return torch.cat(_of(history, "pair", labels, known, windows, unit).chunk(2), dim=1)


def _of(
    history: History, relation: Relation, labels: Tensor, known: Tensor, windows: Sequence[float], unit: float
) -> Tensor:
    widths = (None, *windows)
    reads = [history.reads(relation, window=width) for width in widths]
    label_reads = [history.reads(relation, labels=True, window=width) for width in widths]
    return describe(reads, label_reads, labels, known, unit)


def _log(count: Tensor, dtype: torch.dtype) -> Tensor:
    return count.double().log1p().to(dtype).unsqueeze(1)
