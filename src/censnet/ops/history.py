"""A graph whose edges happen in time: the lists that an edge joins, and what both of its ends have seen just before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from censnet.ops.caching import cached
from censnet.ops.causal import Reads, TimedLists
from censnet.ops.checks import check_shape
from censnet.ops.incidence import Incidence

Ties = Literal["time", "row"]
Relation = Literal["out", "in", "pair"]


@dataclass(frozen=True, eq=False)
class History:
    """The past of each edge, and of each node at a time.

    An edge e = (s, t) joins three lists: the edges that leave s ("out"), those that arrive at t ("in"), and those from
    s to t ("pair"). Just before it happens, e reads the first two at s and at t, and the last in both directions. Its
    own entry is never among them, also where it is a loop.

    Labels are entries of their own, which arrive later: that of f is seen by e if it arrived before e happened.

    Args:
        incidence: the graph; ends[0] is where an edge starts.
        times: when each edge happened.
        arrivals: when the label of each edge becomes known, infinite for never; with its edge if None.
        ties: "time": of two edges at the same time neither sees the other. "row": the later row sees the earlier one.

    Shape:
        times, arrivals (E,), in float64.

    Example:
        >>> path = Incidence(torch.tensor([[0, 1, 0], [1, 2, 1]]), num_nodes=3)
        >>> history = History(path, torch.tensor([1.0, 2.0, 2.0]).double())
        >>> history.reads("in").count.tolist()  # at the start of each edge, then at its end
        [0, 1, 0, 0, 0, 1]
        >>> history.reads("pair").count.tolist()  # from start to end, then from end to start
        [0, 0, 1, 0, 0, 0]
    """

    incidence: Incidence
    times: Tensor
    arrivals: Tensor | None = None
    ties: Ties = "time"

    def __post_init__(self) -> None:
        check_shape("times", self.times, (self.incidence.num_edges,), "(E,), a time for each edge")
        if self.arrivals is not None:
            check_shape("arrivals", self.arrivals, (self.incidence.num_edges,), "(E,), a time for each edge")
            early = (self.arrivals < self.times).nonzero()
            if len(early):
                edge = int(early[0])
                raise ValueError(
                    f"arrivals[{edge}] is {float(self.arrivals[edge])}, expected {float(self.times[edge])} or later: "
                    "a label arrives with its edge or after it"
                )
        if self.ties not in get_args(Ties):
            raise ValueError(f"ties is {self.ties!r}, expected 'time' or 'row'")

    def __repr__(self) -> str:
        return f"History({self.incidence!r}, ties={self.ties!r})"

    @property
    def end(self) -> float:
        """The time of the last edge, 0 if there is none."""
        return float(self.times.max()) if len(self.times) else 0.0

    def lists(self, relation: Relation, labels: bool = False) -> TimedLists:
        """The lists of a relation, of edges or of their labels."""
        return self._lists[relation, labels and self.arrivals is not None]

    def reads(self, relation: Relation, labels: bool = False, window: float | None = None) -> Reads:
        """What each edge sees just before it happens, at its start and then at its end: (2E,) queries.

        Of the relation "pair" it is what went from its start to its end, and then what came back.

        Args:
            relation: whose lists are read.
            labels: whether those of labels are read.
            window: how far back it sees; everything if None.
        """
        labels = labels and self.arrivals is not None
        key = (relation, labels, window)
        if key not in self._reads:
            time = torch.cat([self.times, self.times])
            instant = None if self._instants is None else torch.cat([self._instants, self._instants])
            asked, lists = self._asked[relation == "pair"], self._lists[relation, labels]
            self._reads[key] = (
                lists.before(asked, time, instant)
                if window is None
                else lists.window(asked, time, time - window, instant)
            )
        return self._reads[key]

    def reads_at(self, time: Tensor, relation: Relation, labels: bool = False, window: float | None = None) -> Reads:
        """What each node has seen up to a time, that time included. (N,) queries of the lists "out" or "in"."""
        every = torch.arange(self.incidence.num_nodes, device=time.device)
        return self.lists(relation, labels).until(every, time, None if window is None else time - window)

    # -- inside -------------------------------------------------------------------------------------------------------

    @cached
    def _lists(self) -> dict[tuple[Relation, bool], TimedLists]:
        start, end = self.incidence.ends
        pair, pairs = self._pair
        keys: dict[Relation, tuple[Tensor, int]] = {
            "out": (start, self.incidence.num_nodes),
            "in": (end, self.incidence.num_nodes),
            "pair": (pair, pairs + 1),
        }
        found = {}
        for relation, (key, count) in keys.items():
            found[relation, False] = TimedLists(key, self.times, count, self._instants)
            if self.arrivals is not None:
                found[relation, True] = TimedLists(key, self.arrivals, count, self._label_instants)
        return found

    @cached
    def _reads(self) -> dict[tuple[Relation, bool, float | None], Reads]:
        return {}

    @cached
    def _asked(self) -> tuple[Tensor, Tensor]:
        """The lists that an edge reads: of nodes, and of pairs. (2E,) each"""
        return torch.cat(list(self.incidence.ends)), torch.cat([self._pair[0], self._back])

    @cached
    def _pair(self) -> tuple[Tensor, int]:
        """The number of each edge's ordered pair of nodes, and how many there are."""
        start, end = self.incidence.ends
        known, pair = torch.unique(start * self.incidence.num_nodes + end, return_inverse=True)
        return pair, len(known)

    @cached
    def _back(self) -> Tensor:
        """The pair in the opposite direction, or an empty one after the last."""
        (start, end), (pair, pairs) = self.incidence.ends, self._pair
        known = torch.full((pairs + 1,), -1, device=pair.device)
        known[pair] = start * self.incidence.num_nodes + end
        back = end * self.incidence.num_nodes + start
        at = torch.searchsorted(known[:-1], back)
        return torch.where(known[at] == back, at, pairs)

    @cached
    def _sorted(self) -> Tensor:
        return self.times.sort().values

    @cached
    def _instants(self) -> Tensor | None:
        """With ties by row, the number of each edge in the order of (time, row)."""
        if self.ties == "time":
            return None
        order = self.times.argsort(stable=True)
        return torch.empty_like(self.times).index_copy_(
            0, order, torch.arange(len(order), device=order.device).to(self.times.dtype)
        )

    @cached
    def _label_instants(self) -> Tensor | None:
        """The same of labels: that of their edge if they arrive with it, else before the next edge after that."""
        if self._instants is None or self.arrivals is None:
            return None
        later = torch.searchsorted(self._sorted, self.arrivals, right=True).double() - 0.5
        return torch.where(self.arrivals == self.times, self._instants, later)
