"""Triads of the past: for each edge, the pairs of earlier edges that join its two ends by way of a third node.

For an edge e = (s, t) and a node k that had an edge with s and one with t before it, there is a triad of each type of
`ops.triangles`, by the direction of both legs:

    0: s -> k -> t      1: s -> k <- t      2: s <- k -> t      3: s <- k <- t

Of a type, with n, m the number of edges and Y, Z the sums of the known labels of its two legs, all before e:

    edges     sum over k of n m                    known     the same, of edges whose labels are known
    labels    sum over k of Y_i Z_j                for each i and j; for i = j alone where labels have many channels

Nodes k are found from the one of both ends that has met fewer nodes so far, so the cost is the sum over edges of the
lesser number. An edge both of whose ends have met more than `MAX_DEGREE` nodes before has none: nothing later decides
that. The running sums of pairs of nodes are those that a `History` has anyway.
"""

from __future__ import annotations

import torch
from torch import Tensor

from censnet.ops.causal import TimedLists, prefix_sums
from censnet.ops.history import History
from censnet.ops.segments import Segments, linear_map, offsets, ranges, sum_segments
from censnet.ops.triangles import MAX_DEGREE

TYPES = 4
FULL = 4  # channels of labels up to which those of both legs are multiplied each with each
LEGS = ((0, 2), (0, 3), (1, 2), (1, 3))  # of each type, among s -> k, k -> s, k -> t, t -> k
_CHUNK = 1 << 20  # nodes k that are looked at together


def triad_width(label_width: int) -> int:
    """Channels of `past_triads` for one type."""
    return 2 + (label_width**2 if label_width <= FULL else label_width)


def past_triads(history: History, labels: Tensor, known: Tensor) -> Tensor:
    """The sums over the triads of each edge: edges, known, and labels.

    Args:
        history: of the edges.
        labels: of edges, zeros where one is not known. (E, k)
        known: 1 where it is. (E,)

    Shape:
        -> (E, TYPES, triad_width(k)), float64.

    Example:
        >>> from censnet.ops import Incidence
        >>> path = Incidence(torch.tensor([[0, 1, 0], [1, 2, 2]]), num_nodes=3)
        >>> history = History(path, torch.tensor([1.0, 2.0, 3.0]).double())
        >>> past_triads(history, torch.tensor([[5.0], [7.0], [9.0]]), torch.ones(3))[2].tolist()
        [[1.0, 1.0, 35.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    start, end = history.incidence.ends
    contacts = _contacts(history)
    met = [contacts.before(node, history.times, history.instants) for node in (start, end)]
    count = torch.stack([reads.count for reads in met])
    fewest, near = count.min(0)
    asked = ((fewest > 0) & (fewest <= MAX_DEGREE) & (start != end)).nonzero().squeeze(1)
    out = labels.new_zeros(len(start), TYPES, triad_width(labels.shape[1]), dtype=torch.float64)
    if len(asked) == 0:
        return out
    other = history.contacts[2]
    values = torch.cat([labels, known.unsqueeze(1)], dim=1).double()
    cost = fewest[asked]
    for some in torch.split(asked, torch.bincount((cost.cumsum(0) - cost) // _CHUNK).tolist()):
        size, side = fewest[some], near[some]
        first = contacts.offset[torch.where(side == 0, start[some], end[some])]
        edge = some.repeat_interleave(size)
        k = other[contacts.order[ranges(first, size)]]
        edge, k, legs = _joined(history, edge, k)
        sums = _legs(history, values, edge, legs)
        offset = offsets(torch.bincount(edge, minlength=len(start)))[torch.cat([some, some[-1:] + 1])]
        out[some] = _sum_by(offset, sums).view(len(some), *out.shape[1:])
    return out


def _sum_by(offset: Tensor, rows: Tensor) -> Tensor:
    """The sums of the rows from one offset to the next. (P, w) -> (n, w)"""
    segments = Segments(torch.arange(len(rows), device=rows.device), offset)
    row = torch.repeat_interleave(offset.diff())
    return linear_map(rows, lambda x: sum_segments(x, segments), lambda grad: grad[row])


def _contacts(history: History) -> TimedLists:
    """A list for each node of those that it meets, at the time of their first edge."""
    node, first, _ = history.contacts
    instant = None if history.instants is None else history.instants[first]
    return TimedLists(node, history.times[first], history.incidence.num_nodes, instant)


def _joined(history: History, edge: Tensor, k: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of edges and nodes k those with edges to both ends, and the lists of the four legs. (P,), (P,), (4, P)"""
    start, end = history.incidence.ends[:, edge]
    legs = torch.stack([history.find_pairs(a, b) for a, b in ((start, k), (k, start), (k, end), (end, k))])
    there = legs < history.num_pairs
    third = (k != start) & (k != end)
    both = (there[:2].any(0) & there[2:].any(0) & third).nonzero().squeeze(1)
    return edge[both], k[both], legs[:, both]


def _legs(history: History, values: Tensor, edge: Tensor, legs: Tensor) -> Tensor:
    """The products of both legs for each type, before an edge. (P, TYPES * width)"""
    asked, count = legs.flatten(), len(edge)
    edges = history.reads_of_pairs(asked, edge.repeat(len(legs))).count.double().view(len(legs), count)
    reads = history.reads_of_pairs(asked, edge.repeat(len(legs)), labels=True)
    sums = prefix_sums(values, reads).view(len(legs), count, values.shape[1])
    return legs_to_types(edges, sums[..., -1], sums[..., :-1]).flatten(1)


def legs_to_types(edges: Tensor, known: Tensor, labels: Tensor) -> Tensor:
    """The products of both legs for each type, from the sums of s -> k, k -> s, k -> t and t -> k.

    Shape:
        edges, known (4, P), labels (4, P, k) -> (P, TYPES, triad_width(k)).
    """
    found = []
    for a, b in LEGS:
        counts = [(edges[a] * edges[b]).unsqueeze(1), (known[a] * known[b]).unsqueeze(1)]
        found.append(torch.cat([*counts, _product(labels[a], labels[b])], dim=1))
    return torch.stack(found, dim=1)


def _product(first: Tensor, second: Tensor) -> Tensor:
    """Products of the channels of both, each with each, or equal ones alone where they are many. (P, k) -> (P, w)"""
    if first.shape[1] > FULL:
        return first * second
    return (first.unsqueeze(2) * second.unsqueeze(1)).flatten(1)
