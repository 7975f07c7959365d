"""Messages in lists in the order of time, and queries that read what came before a moment."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from censnet.ops.caching import cached
from censnet.ops.checks import check_shape
from censnet.ops.scan import ScanPlan
from censnet.ops.segments import offsets


@dataclass(frozen=True, eq=False)
class TimedLists:
    """Messages in lists, each in the order of time.

    Args:
        key: the list of each message, numbered from 0.
        time: when it was sent, or arrived.
        num_lists: the number of lists.
        instant: the order that decides what comes before what, if it is not that of `time` alone; it must not
            contradict it.

    Shape:
        key, time, instant (M,); time in float64.

    Example:
        >>> from censnet.ops.causal import prefix_sums
        >>> lists = TimedLists(torch.tensor([0, 0, 1]), torch.tensor([1.0, 2.0, 1.0]).double(), num_lists=2)
        >>> reads = lists.before(torch.tensor([0, 0, 1]), torch.tensor([2.0, 9.0, 1.0]).double())
        >>> reads.count.tolist()
        [1, 2, 0]
        >>> prefix_sums(torch.tensor([[1.0], [10.0], [100.0]]), reads).tolist()
        [[1.0], [11.0], [0.0]]
    """

    key: Tensor
    time: Tensor
    num_lists: int
    instant: Tensor | None = None

    def __post_init__(self) -> None:
        for name, values in (("time", self.time), ("instant", self.instant)):
            if values is not None:
                check_shape(name, values, (len(self.key),), "(M,), as key")
        if self.time.dtype != torch.float64:
            raise ValueError(f"time has dtype {self.time.dtype}, expected torch.float64")

    def before(self, key: Tensor, time: Tensor, instant: Tensor | None = None) -> Reads:
        """Queries for all that came before a time, or before an instant: (Q,) each."""
        asked = time if instant is None else instant
        return Reads(self, key, time, self._by_instant.find(key, asked))

    def until(self, key: Tensor, time: Tensor) -> Reads:
        """Queries for what came up to a time, that time included. (Q,) each."""
        after = torch.nextafter(time, torch.full_like(time, torch.inf))
        return Reads(self, key, time, self._by_time.find(key, after))

    def find(self, key: Tensor, time: Tensor) -> Tensor:
        """The place of the first message of a list that is not before a time. (Q,) each"""
        return self._by_time.find(key, time)

    # -- order --------------------------------------------------------------------------------------------------------

    @cached
    def order(self) -> Tensor:
        """The message at each place: one list after the other, each by instant, then time, then row. (M,)"""
        if self.instant is None:
            return self._by_instant.order
        by_time = self.time.argsort(stable=True)
        return by_time[self._by_instant.code[by_time].argsort(stable=True)]

    @cached
    def place(self) -> Tensor:
        """The place of each message. (M,)"""
        return invert(self.order)

    @cached
    def offset(self) -> Tensor:
        """The place where each list begins, and the last one ends. (num_lists + 1,)"""
        return offsets(torch.bincount(self.key, minlength=self.num_lists))

    @cached
    def sorted_time(self) -> Tensor:
        """The time of the message at each place; of those that never arrive, the last of all times. (M,)"""
        finite = self.time[self.time.isfinite()]
        return self.time[self.order].clamp(max=finite.max() if len(finite) else 0.0)

    @cached
    def plan(self) -> ScanPlan:
        """The order of the additions along the lists."""
        return ScanPlan(self.offset.diff())

    @cached
    def source(self) -> Tensor:
        """The message at each packed row of the plan. (M,)"""
        return self.order.int()[self.plan.entry]

    @cached
    def gaps(self) -> list[Tensor]:
        """The time since the message before, at packed rows: see `Decay`."""
        return self.plan.gaps(self.sorted_time)

    @cached
    def moments(self) -> Moments:
        """The times of messages, numbered; lists that have them in common can share them."""
        return Moments(self.time)

    @cached
    def instants(self) -> Moments:
        """The same of what decides what comes before what."""
        return self.moments if self.instant is None else Moments(self.instant)

    @cached
    def _by_instant(self) -> _Sorted:
        return _Sorted(self.key, self.instants)

    @cached
    def _by_time(self) -> _Sorted:
        return self._by_instant if self.instant is None else _Sorted(self.key, self.moments)


class Moments:
    """Numbers for moments, in order: 0 for the first one, and all that are equal the same.

    Args:
        time: of messages. (M,)
    """

    def __init__(self, time: Tensor) -> None:
        self.known, self.rank = torch.unique(time, return_inverse=True)
        self._asked: tuple[Tensor, Tensor] | None = None

    def find(self, asked: Tensor) -> Tensor:
        """The number of distinct moments before each of these. (Q,)"""
        if self._asked is None or self._asked[0] is not asked:
            self._asked = asked, torch.searchsorted(self.known, asked)
        return self._asked[1]


class _Sorted:
    """Messages sorted by (list, moment): one number each, `code`.

    Args:
        key: the list of each message.
        moments: of the messages.
    """

    def __init__(self, key: Tensor, moments: Moments) -> None:
        self.moments = moments
        self.code: Tensor = self._encode(key, moments.rank)
        self.sorted: Tensor
        self.order: Tensor
        self.sorted, self.order = self.code.sort(stable=True)

    def find(self, key: Tensor, asked: Tensor) -> Tensor:
        """The number of messages before a moment of a list, or in a list before it. (Q,)"""
        code, order = self._encode(key, self.moments.find(asked)).sort()  # a search in order stays in the cache
        return torch.empty_like(order).index_copy_(0, order, torch.searchsorted(self.sorted, code))

    def _encode(self, key: Tensor, rank: Tensor) -> Tensor:
        return key * (len(self.moments.known) + 1) + rank


def invert(order: Tensor) -> Tensor:
    """The place of each number in a permutation."""
    return torch.empty_like(order).index_copy_(0, order, torch.arange(len(order), device=order.device))


@dataclass(frozen=True, eq=False)
class Reads:
    """Queries of `TimedLists`: each reads the messages of a list from a place on, up to another one.

    Args:
        lists: the lists.
        key: the list of each query.
        time: its time.
        stop: the place of the first message that it does not see.
        begin: the place of the first message that it sees; that of the list if None.

    Shape:
        key, time, stop, begin (Q,).
    """

    lists: TimedLists
    key: Tensor
    time: Tensor
    stop: Tensor
    begin: Tensor | None = None

    def __len__(self) -> int:
        return len(self.key)

    def and_then(self, others: Reads) -> Reads:
        """These queries, and others of the same lists after them."""
        begins = None
        if self.begin is not None and others.begin is not None:
            begins = torch.cat([self.begin, others.begin])
        key, time = torch.cat([self.key, others.key]), torch.cat([self.time, others.time])
        return Reads(self.lists, key, time, torch.cat([self.stop, others.stop]), begins)

    def since(self, time: Tensor) -> Reads:
        """The same queries, which do not see what came before this time. (Q,)"""
        found = self.lists.find(self.key, time)
        return Reads(self.lists, self.key, self.time, self.stop, torch.minimum(found, self.stop))

    @cached
    def count(self) -> Tensor:
        """The number of messages that a query sees. (Q,), int64"""
        return self.stop - (self.lists.offset[self.key] if self.begin is None else self.begin)

    @cached
    def gap(self) -> Tensor:
        """The time since the last of them, infinite where there is none. (Q,), float64"""
        if len(self.lists.key) == 0:
            return torch.full_like(self.time, torch.inf)
        last = self.lists.sorted_time[(self.stop - 1).clamp(min=0)]
        return torch.where(self.count > 0, self.time - last, torch.inf)

    def of_last(self) -> Reads:
        """The same queries, of the messages that came last alone: those of one time."""
        if len(self.lists.key) == 0:
            return Reads(self.lists, self.key, self.time, self.stop, self.stop)
        begin = self.lists.find(self.key, self.lists.sorted_time[(self.stop - 1).clamp(min=0)])
        return Reads(self.lists, self.key, self.time, self.stop, torch.minimum(begin, self.stop))

    # -- sums ---------------------------------------------------------------------------------------------------------

    @cached
    def at_stop(self) -> Tensor:
        """The packed row of the last message before the stop, or the one after the last row if there is none. (Q,)"""
        return self._packed(self.stop)

    @cached
    def at_begin(self) -> Tensor:
        """The same of the last message before the begin. (Q,)"""
        assert self.begin is not None
        return self._packed(self.begin)

    @cached
    def age(self) -> Tensor:
        """The time since the last message that is seen; 0 where there is none. (Q,), float64"""
        return torch.where(self.count > 0, self.gap, 0.0)

    @cached
    def mirrored(self) -> list[Mirror]:
        """The reads of messages in turn, for gradients: the queries that see them are a sum of these, signs + and -."""
        return [Mirror.of(self, self.stop)] if self.begin is None else [
            Mirror.of(self, self.stop), Mirror.of(self, self.begin)
        ]  # fmt: skip

    def _packed(self, place: Tensor) -> Tensor:
        plan = self.lists.plan
        seen = (place > self.lists.offset[self.key]) & (self.count > 0)
        if len(plan) == 0:
            return torch.zeros_like(place, dtype=torch.int32)
        return torch.where(seen, plan.packed[(place - 1).clamp(min=0)], len(plan))


@dataclass(frozen=True, eq=False)
class Mirror:
    """Queries as entries of lists, the last one first, and the packed row of the last query that sees a message.

    Time runs backward: a query enters when the last message that it sees was sent.

    Args:
        plan: of the queries that see any message.
        source: the query at each packed row.
        at: of each message, the packed row of the last query, from the end, that sees it, or one after the last row.
        entered: when each query enters, in the order of the plan.
        age: the time from when a query enters to the query, at packed rows.
        time: when each message was sent.
    """

    plan: ScanPlan
    source: Tensor
    at: Tensor
    entered: Tensor
    age: Tensor
    time: Tensor

    @classmethod
    def of(cls, reads: Reads, stop: Tensor) -> Mirror:
        """The queries whose prefixes end at these places."""
        lists = reads.lists
        query = ((stop > lists.offset[reads.key]) & (reads.count > 0)).nonzero().squeeze(1)
        last, order = (stop[query] - 1).sort(descending=True, stable=True)
        query = query[order]
        counts = torch.bincount(last, minlength=len(lists.key))
        until = offsets(counts)  # queries before each place
        ends = until[lists.offset]
        plan = ScanPlan(ends.diff().flip(0))
        later = len(query) - until[:-1]  # from each place on, in all lists
        own = later - torch.repeat_interleave(len(query) - ends[1:], lists.offset.diff())
        packed = plan.packed[(later - 1).clamp(min=0)] if len(query) else later.int()
        at = torch.where(own > 0, packed, len(plan))[lists.place]
        entered, source = lists.sorted_time[last], query.int()[plan.entry]
        age = reads.time[source] - entered[plan.entry]
        return cls(plan, source, at, entered, age, lists.sorted_time[lists.place])

    @cached
    def gaps(self) -> list[Tensor]:
        """See `Decay`."""
        return self.plan.gaps(-self.entered)

    @cached
    def age_of_reads(self) -> Tensor:
        """The time from each message to when the last query that sees it enters; 0 where none does. (M,)"""
        if len(self.plan) == 0:
            return torch.zeros_like(self.time)
        entered = self.entered[self.plan.entry][self.at.clamp(max=len(self.plan) - 1)]
        return torch.where(self.at < len(self.plan), entered - self.time, 0.0)
