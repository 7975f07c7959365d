"""Triangles: for each edge, the pairs of other edges that join its two ends by way of a third node.

For an edge (s, t) and a node k that is joined to both, there is a pair (f, g): f joins s and k, g joins k and t. In a
directed graph the pair is of one of four types, by the directions of f and g:

    0: s -> k -> t      1: s -> k <- t      2: s <- k -> t      3: s <- k <- t, with the edge itself a cycle

Parallel edges give a pair each. The pairs of an edge are found from the one of its ends that has fewer edges, so the
cost is the sum over edges of the lesser degree. An edge both of whose ends have more than `MAX_DEGREE` edges has none.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from censnet.ops.incidence import Incidence
from censnet.ops.sampling import incident_edges
from censnet.ops.segments import Segments, ranges, sum_segments

TYPES = {True: 4, False: 1}  # of a pair in a directed graph and in another
MAX_DEGREE = 256
_CHUNK = 1 << 22  # pairs looked at together


@dataclass(frozen=True)
class Triangles:
    """The pairs of edges of each edge, sorted by edge and type.

    Args:
        first: f, the edge at the start of each. (P,)
        second: g, the edge at its end. (P,)
        segments: the pairs of each edge and type: row `types * e + type`.
        count: their number. (E, types)
    """

    first: Tensor
    second: Tensor
    segments: Segments
    count: Tensor

    def sum(self, values: Tensor) -> Tensor:
        """The sum over the pairs of each edge and type. (P, d) -> (E, types, d). No gradient."""
        found = sum_segments(values, self.segments)
        return found.view(*self.count.shape, values.shape[1])

    def label_sums(self, values: Tensor, known: Tensor) -> Tensor:
        """Of the labels of edges, 0 where they are not known: the sums over the pairs of each edge and type.

        Of f and of g where both are known, of their products, and the number of pairs where both are. (E, types, 4)
        """
        first, second = values[self.first], values[self.second]
        both = (known[self.first] & known[self.second]).to(values.dtype)
        return self.sum(torch.stack([first * both, second * both, first * second, both], dim=1))


def count_wedges(incidence: Incidence) -> int:
    """The number of pairs that `find_triangles` looks at."""
    degree = incidence.edge_count[incidence.ends].amin(0)
    return int(degree[degree <= MAX_DEGREE].sum())


def find_triangles(incidence: Incidence, directed: bool) -> Triangles:
    """The triangles of a graph; cached with its incidence.

    Example:
        >>> cycle = Incidence(torch.tensor([[0, 1, 2], [1, 2, 0]]), num_nodes=3)
        >>> found = find_triangles(cycle, directed=True)
        >>> found.count.tolist(), found.first.tolist(), found.second.tolist()
        ([[0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 1]], [2, 0, 1], [1, 2, 0])
    """
    return incidence.cache(triangles_key(directed), lambda: _find(incidence, directed))


def triangles_key(directed: bool) -> tuple[str, bool]:
    """The key under which an incidence caches them."""
    return "triangles", directed


def _find(incidence: Incidence, directed: bool) -> Triangles:
    ends, device = incidence.ends, incidence.ends.device
    degree = incidence.edge_count[ends]
    near = (degree[1] < degree[0]).long()  # the end with fewer edges
    asked = ((degree.amin(0) <= MAX_DEGREE) & (ends[0] != ends[1])).nonzero().squeeze(1)
    parts = [_of_edges(incidence, some, near[some]) for some in _chunks(asked, degree.amin(0)[asked])]
    edge, first, second, kind = (
        torch.cat([part[column] for part in parts]) if parts else torch.empty(0, dtype=torch.long, device=device)
        for column in range(4)
    )
    types = TYPES[directed]
    row = edge * types + (kind if directed else 0)
    count = torch.bincount(row, minlength=types * incidence.num_edges)
    segments = incidence._segments_by(row, count)
    return Triangles(first, second, segments, count.view(-1, types))


def _chunks(edges: Tensor, cost: Tensor) -> list[Tensor]:
    """Edges in runs whose cost adds up to a bounded number."""
    if len(edges) == 0:
        return []
    number = (cost.cumsum(0) - cost) // _CHUNK
    return list(torch.split(edges, torch.bincount(number).tolist()))


def _of_edges(incidence: Incidence, edges: Tensor, near: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """For some edges: the edge, f, g and the type of each pair, in the order of the edges."""
    ends, (around, offset) = incidence.ends, incident_edges(incidence)
    a, b = ends[near, edges], ends[1 - near, edges]
    start = offset[a].long()
    length = offset[a + 1].long() - start
    edge = edges.repeat_interleave(length)
    a, b, near = (values.repeat_interleave(length) for values in (a, b, near))
    f = around[ranges(start, length)].long()
    k = ends[:, f].sum(0) - a
    proper = (k != a) & (k != b)
    edge, a, b, near, f, k = (values[proper] for values in (edge, a, b, near, f, k))
    key, order = incidence.sorted_pairs
    ordered = key[order]
    wanted = torch.minimum(k, b) * incidence.num_nodes + torch.maximum(k, b)
    low, high = torch.searchsorted(ordered, wanted), torch.searchsorted(ordered, wanted, right=True)
    times = high - low
    edge, a, b, near, f, k = (values.repeat_interleave(times) for values in (edge, a, b, near, f, k))
    g = order[ranges(low, times)]
    # f joins the near end a and k, g joins k and the far end b
    leaves_a, leaves_k = ends[0, f] == a, ends[0, g] == k
    at_start = near == 0
    first, second = torch.where(at_start, f, g), torch.where(at_start, g, f)
    from_start = torch.where(at_start, leaves_a, ~leaves_k)  # whether the pair's first edge leaves s
    into_end = torch.where(at_start, leaves_k, ~leaves_a)  # whether its second edge arrives at t
    return edge, first, second, 2 * (~from_start).long() + (~into_end).long()
