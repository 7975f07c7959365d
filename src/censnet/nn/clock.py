"""Counts, gaps, windows, triads and means of known labels: features of the past of an edge, without parameters."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from censnet.ops.causal import Reads, prefix_sums
from censnet.ops.history import History, Relation
from censnet.ops.past_triads import TYPES, past_triads, triad_width

NODE_RELATIONS: tuple[Relation, ...] = ("out", "in")
COUNT_SCALE, GAP_SCALE = 2.0, 4.0  # of logarithms, so that channels are of about one size
FINE = 0.01  # of the unit of gaps: shorter ones are alike


def clock_width(label_width: int, num_windows: int) -> int:
    """Channels of `describe` for one relation."""
    return 5 + (2 * label_width + 1) + num_windows * (label_width + 2)


def node_clock_width(label_width: int, num_windows: int) -> int:
    """Channels of `clock_of_nodes`: those of two relations, each with a number of neighbors."""
    return len(NODE_RELATIONS) * (clock_width(label_width, num_windows) + 1)


def pair_clock_width(label_width: int, num_windows: int, triads: bool = False) -> int:
    """Channels of `clock_of_pairs`, with those of `clock_of_triads`."""
    return 2 * clock_width(label_width, num_windows) + triads * TYPES * triad_width(label_width)


def describe(
    reads: Sequence[Reads],
    label_reads: Sequence[Reads],
    last: Reads,
    labels: Tensor,
    known: Tensor,
    unit: float,
    widest: float,
) -> Tensor:
    """The past of a relation, in channels.

    log(1 + count) of all that was seen; of the gap g since the last of it log(1 + g / unit), which tells long gaps
    apart, and log(1 + widest / (g + unit / 100)), which tells short ones apart and is 0 where nothing was seen; the
    means of known labels, sum / (count + 1), with log(1 + count) of these; for each window both counts and the means
    again; and the means of the labels that arrived last, with the gap since then. Logarithms are divided by constants.

    Args:
        reads: everything, then one for each window.
        label_reads: the same of labels.
        last: of the known labels those that arrived last.
        labels: (E, k), zeros where a label is not known.
        known: (E,), 1 where it is.
        unit: of gaps.
        widest: the widest window.

    Shape:
        -> (Q, clock_width(k, windows)).
    """
    found = [_log(reads[0].count, labels.dtype), _gaps(reads[0], unit, widest).to(labels.dtype)]
    both = torch.cat([labels, known.unsqueeze(1)], dim=1)
    for number, (of_edges, of_labels) in enumerate(zip(reads, label_reads, strict=True)):
        if number:
            found.append(_log(of_edges.count, labels.dtype))
        sums = prefix_sums(both, of_labels)
        found += [sums[:, :-1] / (sums[:, -1:] + 1), sums[:, -1:].log1p() / COUNT_SCALE]
    latest = prefix_sums(labels[known > 0], last) / last.count.clamp(min=1).to(labels.dtype).unsqueeze(1)
    return torch.cat([*found, latest, _gaps(last, unit, widest).to(labels.dtype)], dim=1)


def clock_of_nodes(history: History, labels: Tensor, known: Tensor, windows: Sequence[float], unit: float) -> Tensor:
    """The edges that left and reached nodes: both nodes of each edge just before it, and all nodes at their times.

    And log(1 + the number of different nodes) that they have seen either way. (2E + N, node_clock_width)
    """
    found = [_of(history, relation, labels, known, windows, unit) for relation in NODE_RELATIONS]
    first = history.is_first.to(labels.dtype).unsqueeze(1)
    neighbors = [prefix_sums(first, history.reads(relation)).log1p() / COUNT_SCALE for relation in NODE_RELATIONS]
    return torch.cat([*found, *neighbors], dim=1)


def clock_of_pairs(history: History, labels: Tensor, known: Tensor, windows: Sequence[float], unit: float) -> Tensor:
    """The edges between the ends of each edge before it, the same way and back. (E, 2 * clock_width)"""
    return torch.cat(_of(history, "pair", labels, known, windows, unit).chunk(2), dim=1)


def clock_of_triads(history: History, labels: Tensor, known: Tensor) -> Tensor:
    """The paths by way of a third node before each edge: of each type of triads both counts, and means of labels.

    log(1 + count) of edges and of those with known labels, and the sums of products of labels by count + 1.
    (E, TYPES * triad_width)
    """
    return describe_triads(past_triads(history, labels, known)).to(labels.dtype).flatten(1)


def describe_triads(sums: Tensor) -> Tensor:
    """The channels of sums over triads, in float64. (..., w) -> (..., w)"""
    return torch.cat([sums[..., :2].log1p() / COUNT_SCALE, sums[..., 2:] / (sums[..., 1:2] + 1)], dim=-1)


def _gaps(reads: Reads, unit: float, widest: float) -> Tensor:
    """A channel for long gaps and one for short ones. (Q, 2), float64"""
    seen = reads.count > 0
    gap = torch.where(seen, reads.gap, 0.0)
    recent = torch.where(seen, (widest / (gap + FINE * unit)).log1p(), 0.0)
    return torch.stack([(gap / unit).log1p(), recent], dim=1) / GAP_SCALE


def _of(
    history: History, relation: Relation, labels: Tensor, known: Tensor, windows: Sequence[float], unit: float
) -> Tensor:
    widths = (None, *windows)
    reads = [history.reads(relation, window=width) for width in widths]
    label_reads = [history.reads(relation, labels=True, window=width) for width in widths]
    last = history.reads_last(relation, (known > 0).nonzero().squeeze(1))
    return describe(reads, label_reads, last, labels, known, unit, max(windows, default=unit))


def _log(count: Tensor, dtype: torch.dtype) -> Tensor:
    return (count.double().log1p() / COUNT_SCALE).to(dtype).unsqueeze(1)
