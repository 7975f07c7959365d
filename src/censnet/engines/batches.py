"""A batch of the edges of a graph, or of its nodes, in the place of the graph: what a layer computes on tables.

The rows of both nodes of an edge are beside the edge, so that a batch of E edges is a graph of its own with 2 E nodes.
A layer computes on it what it would on the whole graph, but for sums over the edges of a node, and over those between
two nodes. What each edge of the batch adds to such a sum is recorded, for SQL to sum over all edges; once that is done,
the layer is computed again, and goes on with the sum. `ops.parts` does the same with parts of a graph in memory.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, NoReturn

import torch
from torch import Tensor

from censnet.ops.caching import cached, unchecked
from censnet.ops.incidence import Incidence
from censnet.ops.released import LEAST_OTHER_DEGREE

Kind = Literal[
    "start", "end", "ends", "pair"
]  # what a sum is over: edges that start at a node, end there, or do either
KINDS: dict[Literal[0, 1] | None, Kind] = {0: "start", 1: "end", None: "ends"}
# whole numbers that a table has of each node and each edge
NODE_COUNTS = ("degree", "touching", "leaving", "arriving", "successors", "predecessors")
PROPERTIES = {  # of each edge, and the property of an incidence that it is
    "multiplicity": "multiplicity",
    "parallel": "parallel_count",
    "reciprocal": "reciprocal_count",
    "sharing": "edge_degree",
}
EDGE_COUNTS = tuple(PROPERTIES)


class CountMissing(Exception):  # noqa: N818 - no error, but the sign that a batch needs the nodes of its edges
    """A count that is asked for is not there."""


class Recorded(Exception):  # noqa: N818 - no error, but the end of what is computed in this pass
    """All sums of this pass are recorded."""


class Sum(NamedTuple):
    """What each edge of a batch adds to a sum: one row for each node of the batch, or for each edge."""

    kind: Kind
    rows: Tensor


@dataclass
class Sums:
    """The sums that a layer asks for, numbered in the order in which it does.

    Args:
        known: those that are computed already, for each node or edge of the batch.
        wanted: those to record; the layer is left when all are there. If None, all are recorded and none is left.
        recorded: what was recorded.
    """

    known: Mapping[int, Tensor] = field(default_factory=dict)
    wanted: Collection[int] | None = None
    recorded: dict[int, Sum] = field(default_factory=dict)
    asked: int = 0

    def __call__(self, kind: Kind, rows: Tensor, shape: tuple[int, ...] | None = None) -> Tensor:
        """The sum, of this shape; NaN where it is not known, so that what depends on it can be recognized."""
        number, self.asked = self.asked, self.asked + 1
        if number in self.known:
            return self.known[number].clone()  # it may be added to in its place
        if self.wanted is None or number in self.wanted:
            self.recorded[number] = Sum(kind, rows)
            if self.wanted is not None and len(self.recorded) == len(self.wanted):
                raise Recorded
        return torch.full(shape or rows.shape, torch.nan, dtype=rows.dtype)


class BatchIncidence(Incidence):
    """The edges of a batch, between nodes of their own, with the degrees that they have in the whole graph.

    Sums over the edges of a node, between two nodes and of a graph are those of `sums`.
    """

    sums: Sums

    def _missing(self) -> NoReturn:
        """Counts are given; those of the edges of the batch alone would be others."""
        raise CountMissing

    node_degree = cached(_missing)
    edge_count = cached(_missing)
    end_degree = cached(_missing)
    neighbor_count = cached(_missing)
    edge_degree = cached(_missing)
    multiplicity = cached(_missing)
    parallel_count = cached(_missing)
    reciprocal_count = cached(_missing)
    port = cached(_missing)
    is_first = cached(_missing)

    def total(self, sums: Tensor, end: Literal[0, 1] | None = None) -> Tensor:
        return self.sums(KINDS[end], sums)

    def scatter_both(self, edges: Tensor) -> tuple[Tensor, Tensor]:
        return self.scatter_start(edges), self.scatter_end(edges)

    def sum_parallel(self, edges: Tensor) -> Tensor:
        return self._pair_sums(edges)[0]

    def sum_reciprocal(self, edges: Tensor) -> Tensor:
        return self._pair_sums(edges)[1]

    @cached
    def _summed(self) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Edges whose sums by pairs of nodes were asked for, with these."""
        return []

    def _pair_sums(self, edges: Tensor) -> tuple[Tensor, Tensor]:
        """The sums over edges with the same start and end, and over those from the end to the start."""
        for known, parallel, reciprocal in self._summed:
            if known is edges:
                return parallel, reciprocal
        both = self.sums("pair", edges, (edges.shape[0], 2 * edges.shape[1]))
        parallel, reciprocal = both.chunk(2, dim=1)
        # alone between its nodes, an edge is the sum itself: no table has a row of it
        parallel = torch.where(torch.gt(self.parallel_count, 1).unsqueeze(1), parallel, edges)
        self._summed.append((edges, parallel, reciprocal))
        return parallel, reciprocal


def edge_batch(
    loop: Tensor, edge: Mapping[str, Tensor], start: Mapping[str, Tensor], end: Mapping[str, Tensor], sums: Sums
) -> BatchIncidence:
    """The incidence of a batch of edges, between 2 E nodes: those where they start, behind them those where they end.

    Args:
        loop: which edges have one node alone. (E,)
        edge: the counts of each edge that are known, by `EDGE_COUNTS`, and `least` (E, 2).
        start, end: the counts of the two nodes of each edge, by `NODE_COUNTS`; none where nodes are not read. (E,) each
        sums: over the edges of a node.
    """
    first = torch.arange(len(loop))
    ends = torch.stack([first, torch.where(loop, first, first + len(loop))])
    nodes = {name: torch.cat([start[name], end[name]]) for name in start}
    return _make(ends, 2 * len(loop), nodes, edge, sums)


def node_batch(node: Mapping[str, Tensor], sums: Sums) -> BatchIncidence:
    """The incidence of a batch of nodes without any edges."""
    none = torch.zeros(0, dtype=torch.int64)
    edge = dict.fromkeys(EDGE_COUNTS, none) | {"least": torch.zeros(0, 2, dtype=torch.float64)}
    return _make(none.new_zeros(2, 0), len(node[NODE_COUNTS[0]]), node, edge, sums)


def _make(
    ends: Tensor, num_nodes: int, node: Mapping[str, Tensor], edge: Mapping[str, Tensor], sums: Sums
) -> BatchIncidence:
    known: dict[str, object] = {PROPERTIES[name]: values for name, values in edge.items() if name in PROPERTIES}
    known["_cache"] = {(LEAST_OTHER_DEGREE,): edge["least"].t()} if "least" in edge else {}
    if node:
        known |= {
            "node_degree": node["degree"],
            "edge_count": node["touching"],
            "end_degree": torch.stack([node["leaving"], node["arriving"]]),
            "neighbor_count": torch.stack([node["successors"], node["predecessors"]]),
        }
    return unchecked(BatchIncidence, ends=ends, num_nodes=num_nodes, owner=None, num_graphs=1, sums=sums, **known)
