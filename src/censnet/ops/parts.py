"""Parts of a graph, each with all nodes and some of the edges, on which an operation of the whole graph is computed.

An operation on edges is one on each of them, on what its nodes have, or a sum over the edges at each node. So it can be
computed a part at a time and exactly, if each such sum is taken over all parts before any of them goes on.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from censnet.ops.caching import store, stored
from censnet.ops.incidence import Incidence

MOST_KEPT = 16  # parts whose sorted order is kept


class _SumMissing(Exception):  # noqa: N818 - no error, but a pause
    """A sum that other parts have not computed yet."""


class _Sums:
    """The sums over the edges at each node in the order they are asked for, known ones or those of the next."""

    def __init__(self) -> None:
        self.known, self.asked = list[Tensor](), 0
        self.next: Tensor | None = None

    def __call__(self, sums: Tensor) -> Tensor:
        self.asked += 1
        if self.asked <= len(self.known):
            return self.known[self.asked - 1].clone()  # it may be added to in its place
        self.next = sums if self.next is None else self.next + sums
        raise _SumMissing


class PartialIncidence(Incidence):
    """The edges of a part between all nodes of a graph, with the degrees of the whole graph.

    What it sums over its edges, `Incidence.total` replaces by the sum over the edges of all parts.
    """

    def total(self, sums: Tensor, end: Literal[0, 1] | None = None) -> Tensor:
        found: Tensor = stored(self, "sums")["sums"](sums)
        return found


class Parts:
    """A graph in parts. Each has the edges of some nodes in a row, an edge being one of the lower of its two ends.

    Edges between the same two nodes are thus in one part.

    Args:
        incidence: of the whole graph.
        most_edges: of a part, unless one node has more.
        device: where parts are computed.

    Example:
        >>> path = Incidence(torch.tensor([[0, 1, 2], [1, 2, 3]]), num_nodes=4)
        >>> Parts(path, 2, "cpu")
        Parts(2 of 3 edges)
        >>> Parts(path, 2, "cpu").compute(lambda part, rows: part.scatter(torch.ones(len(rows), 1)).squeeze(1))[1]
        tensor([1., 2., 2., 1.])
    """

    def __init__(self, incidence: Incidence, most_edges: int, device: torch.device | str) -> None:
        low = torch.minimum(*incidence.ends).cpu()
        order = torch.argsort(low, stable=True)
        ends_at = torch.bincount(low, minlength=incidence.num_nodes).cumsum(0)
        bounds = [0]
        while bounds[-1] < len(order):
            node = int(torch.searchsorted(ends_at, bounds[-1] + most_edges, right=True)) - 1
            reached = int(ends_at[node]) if node >= 0 else 0
            if reached <= bounds[-1]:  # one node has more
                reached = int(ends_at[int(torch.searchsorted(ends_at, bounds[-1], right=True))])
            bounds.append(reached)
        pairs = list(itertools.pairwise(bounds)) or [(0, 0)]
        self.rows = [order[start:end] for start, end in pairs]
        self.device, self.whole = torch.device(device), incidence
        self._degrees = {
            name: getattr(incidence, name).to(device) for name in ("node_degree", "edge_count", "end_degree")
        }
        self._incidences: dict[int, PartialIncidence] = {}

    def __repr__(self) -> str:
        return f"Parts({len(self.rows)} of {self.whole.num_edges} edges)"

    def compute(self, work: Callable[[PartialIncidence, Tensor], Any]) -> Sequence[Any]:
        """Do some work on all parts, as it would be done on the whole graph. -> what it returns for each

        It is begun again for each sum over all edges that it asks for, and goes on with the sum.

        Args:
            work: part, numbers of its edges -> anything.
        """
        return list(self.each(work))

    def each(self, work: Callable[[PartialIncidence, Tensor], Any]) -> Iterator[Any]:
        """The result of `compute`, part by part, so that not all of it need be in memory at once."""
        sums = _Sums()
        while True:
            for number, rows in enumerate(self.rows):
                incidence = self._incidence(number, sums)
                try:
                    yield work(incidence, rows)
                except _SumMissing:
                    continue
            if sums.next is None:
                return
            sums.known.append(sums.next)
            sums.next = None

    def _incidence(self, number: int, sums: _Sums) -> PartialIncidence:
        """A part, whose sorted order is kept for the next time where parts are few: it has numbers of all nodes."""
        sums.asked = 0
        if len(self.rows) > MOST_KEPT:
            self._incidences.clear()
        if number not in self._incidences:
            ends = self.whole.ends[:, self.rows[number].to(self.whole.ends.device)].to(self.device)
            found = PartialIncidence.from_known(ends, self.whole.num_nodes, **self._degrees)
            assert isinstance(found, PartialIncidence)
            self._incidences[number] = found
        store(self._incidences[number], sums=sums)
        return self._incidences[number]
