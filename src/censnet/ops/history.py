"""A graph whose edges happen in time: the lists that an edge joins, and what both of its ends have seen just before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from censnet.ops.caching import cached, store
from censnet.ops.checks import check_shape
from censnet.ops.incidence import Incidence
from censnet.ops.timed_lists import Reads, TimedLists

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
        as_of: when each node is looked at, after what happens at that time; after the last edge if None.

    Shape:
        times, arrivals (E,), as_of (N,), in float64.

    Example:
        >>> path = Incidence(torch.tensor([[0, 1, 0], [1, 2, 1]]), num_nodes=3)
        >>> history = History(path, torch.tensor([1.0, 2.0, 2.0]).double())
        >>> history.reads("in").count.tolist()  # at the start of each edge, at its end, and at the end of each node
        [0, 1, 0, 0, 0, 1, 0, 2, 1]
        >>> history.reads("pair").count.tolist()  # from start to end, then from end to start
        [0, 0, 1, 0, 0, 0]
    """

    incidence: Incidence
    times: Tensor
    arrivals: Tensor | None = None
    ties: Ties = "time"
    as_of: Tensor | None = None

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
        if self.as_of is not None:
            check_shape("as_of", self.as_of, (self.incidence.num_nodes,), "(N,), a time for each node")
        if self.ties not in get_args(Ties):
            raise ValueError(f"ties is {self.ties!r}, expected 'time' or 'row'")

    def __repr__(self) -> str:
        return f"History({self.incidence!r}, ties={self.ties!r})"

    def reads_last(self, relation: Relation, rows: Tensor) -> Reads:
        """The queries of `reads` for the labels of some edges alone, of those that arrived last: all of that time.

        Args:
            relation: whose lists are read.
            rows: the edges whose labels there are; the messages to be read have a row for each of these.
        """
        of_labels = self.arrivals is not None
        lists = self._lists[relation, of_labels]
        few = TimedLists(
            lists.key[rows],
            lists.time[rows],
            lists.num_lists,
            None if lists.instant is None else lists.instant[rows],
        )
        return self._all_reads(relation, few).of_last()

    def reads(self, relation: Relation, labels: bool = False, window: float | None = None) -> Reads:
        """The messages before each edge, at its start and then at its end, and before each node at its time.

        Of the relation "pair" it is what went from the start of an edge to its end, and then what came back.

        Args:
            relation: whose lists are read.
            labels: whether those of labels are read.
            window: how far back it sees; everything if None.

        Shape:
            2E + N queries, or 2E.
        """
        labels = labels and self.arrivals is not None
        key = (relation, labels, window)
        if key not in self._reads:
            if window is None:
                self._reads[key] = self._all_reads(relation, self.lists(relation, labels))
            else:
                whole = self.reads(relation, labels)
                self._reads[key] = whole.since(whole.time - window)
        return self._reads[key]

    def lists(self, relation: Relation, labels: bool = False) -> TimedLists:
        """The lists of edges, or of labels, of a relation."""
        return self._lists[relation, labels and self.arrivals is not None]

    def asked(self, relation: Relation) -> Tensor:
        """The list that each edge reads, at its start and then at its end, or there and then back. (2E,)"""
        return self._asked[relation == "pair"]

    def reads_of_pairs(self, pair: Tensor, edge: Tensor, labels: bool = False) -> Reads:
        """Messages between the nodes of some pairs (`find_pairs`) before some edges. (Q,) each"""
        lists = self.lists("pair", labels)
        return lists.before(pair, self.times[edge], None if self.instants is None else self.instants[edge])

    def find_pairs(self, start: Tensor, end: Tensor) -> Tensor:
        """The numbers of ordered pairs of nodes; `num_pairs` for those without an edge. (Q,)"""
        known = self._pair_codes
        wanted = start * self.incidence.num_nodes + end
        at = torch.searchsorted(known, wanted)
        found = (
            known[at.clamp(max=len(known) - 1)] == wanted if len(known) else torch.zeros_like(wanted, dtype=torch.bool)
        )
        return torch.where(found, at, len(known))

    @property
    def num_pairs(self) -> int:
        """The number of ordered pairs of nodes that have an edge."""
        return self._pair[1]

    @cached
    def is_first(self) -> Tensor:
        """A mask of the edges that are the first between their nodes, the same way. (E,)"""
        return self._first_of(self._pair[0], self._pair[1])

    @cached
    def contacts(self) -> tuple[Tensor, Tensor, Tensor]:
        """Of both nodes of each pair, whatever the direction: the node, the first edge, and the other node. (2P,) each

        Loops are left out.
        """
        lower, higher = self.incidence.ends.amin(0), self.incidence.ends.amax(0)
        known, pair = torch.unique(lower * self.incidence.num_nodes + higher, return_inverse=True)
        first = (self._first_of(pair, len(known)) & (lower != higher)).nonzero().squeeze(1)
        lower, higher = lower[first], higher[first]
        return torch.cat([lower, higher]), torch.cat([first, first]), torch.cat([higher, lower])

    @cached
    def instants(self) -> Tensor | None:
        """With ties by row, the number of each edge in the order of (time, row)."""
        return self._number if self.ties == "row" else None

    # -- inside -------------------------------------------------------------------------------------------------------

    def _all_reads(self, relation: Relation, lists: TimedLists) -> Reads:
        time, instant = self._both
        reads = lists.before(self.asked(relation), time, instant)
        if relation == "pair":
            return reads
        every = torch.arange(self.incidence.num_nodes, device=self.times.device)
        return reads.and_then(lists.until(every, self._until))

    @cached
    def _both(self) -> tuple[Tensor, Tensor | None]:
        """The times, and instants, at which edges read: at the start and at the end of each. (2E,)"""
        instants = None if self.instants is None else torch.cat([self.instants, self.instants])
        return torch.cat([self.times, self.times]), instants

    @cached
    def _until(self) -> Tensor:
        """The time at which each node is embedded. (N,)"""
        if self.as_of is not None:
            return self.as_of
        end = self.times.max() if len(self.times) else self.times.new_zeros(())
        return end.expand(self.incidence.num_nodes)

    def _first_of(self, key: Tensor, count: int) -> Tensor:
        """A mask of the edges that are the first of their key. (E,)"""
        first = self._number.new_full((count,), torch.inf).scatter_reduce_(0, key, self._number, "amin")
        return first[key] == self._number

    @cached
    def _number(self) -> Tensor:
        """The number of each edge in the order of (time, row), in float64."""
        order = self.times.argsort(stable=True)
        return torch.empty_like(self.times).index_copy_(
            0, order, torch.arange(len(order), device=order.device).to(self.times.dtype)
        )

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
            found[relation, False] = TimedLists(key, self.times, count, self.instants)
            if self.arrivals is not None:
                found[relation, True] = TimedLists(key, self.arrivals, count, self._label_instants)
        for labels in (False, True):
            same = [lists for (_, of), lists in found.items() if of == labels]
            for lists in same[1:]:
                store(lists, moments=same[0].moments, instants=same[0].instants)
        return found

    @cached
    def clocks(self) -> dict[tuple[object, ...], tuple[Tensor, Tensor, Tensor]]:
        """The results of `censnet.nn.clock` for some features of edges."""
        return {}

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
        pair = torch.searchsorted(self._pair_codes, start * self.incidence.num_nodes + end)
        return pair, len(self._pair_codes)

    @cached
    def _pair_codes(self) -> Tensor:
        """start * N + end of each pair, in order."""
        start, end = self.incidence.ends
        codes: Tensor = torch.unique(start * self.incidence.num_nodes + end)
        return codes

    @cached
    def _back(self) -> Tensor:
        """The pair in the opposite direction, or an empty one after the last."""
        start, end = self.incidence.ends
        return self.find_pairs(end, start)

    @cached
    def _sorted(self) -> Tensor:
        return self.times.sort().values

    @cached
    def _label_instants(self) -> Tensor | None:
        """The same of labels: that of their edge if they arrive with it, else before the next edge after that."""
        if self.instants is None or self.arrivals is None:
            return None
        later = torch.searchsorted(self._sorted, self.arrivals, right=True).double() - 0.5
        return torch.where(self.arrivals == self.times, self.instants, later)
