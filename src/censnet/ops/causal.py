"""Sums over the past: what was sent to a list before a moment, exactly, in O(M d) for all moments of a history.

A message has a list (the edges that leave a node, those between two nodes, ...) and a time. A query (list, time) reads
the messages of its list that came before, an exclusive prefix in the order of time:

    sum        P_q = sum of m_f            over the messages f of the list with t_f < t_q
    decayed    P_q = sum of exp(-rate (t_q - t_f)) m_f
    window     P_q = sum of m_f with t_q - width <= t_f < t_q: the difference of two prefixes

`ops/scan.py` adds up, in float64 whatever comes in and goes out, and some lists at a time so that no copy in float64 is
kept. The gradient of a prefix sum is a prefix sum from the other end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from censnet.ops.caching import cached
from censnet.ops.checks import check_shape
from censnet.ops.scan import ScanPlan, by_rate, decay
from censnet.ops.segments import Segments, offsets, sum_segments

BLOCK = {"cpu": 1 << 13, "cuda": 1 << 22}  # messages that are added up together; a longer list is by itself
BLOCK_VALUES = 1 << 24  # numbers in float64 at a time, by which a long list is cut into some channels at a time


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
        return Reads(self, key, time, self._place(key, asked, self._by_instant))

    def window(self, key: Tensor, time: Tensor, since: Tensor, instant: Tensor | None = None) -> Reads:
        """Queries for what came before a time, or an instant, and not before `since`. (Q,) each.

        For two-sided windows `time` is the end of the window; what comes at that time is not in it.
        """
        found = self.before(key, time, instant)
        begin = torch.minimum(self._place(key, since, self._by_time), found.stop)
        return Reads(self, key, time, found.stop, begin)

    def until(self, key: Tensor, time: Tensor, since: Tensor | None = None) -> Reads:
        """Queries for what came up to a time, that time included, and not before `since`. (Q,) each."""
        after = torch.nextafter(time, torch.full_like(time, torch.inf))
        stop = self._place(key, after, self._by_time)
        begin = None if since is None else torch.minimum(self._place(key, since, self._by_time), stop)
        return Reads(self, key, time, stop, begin)

    def find(self, key: Tensor, time: Tensor) -> Tensor:
        """The place of the first message of a list that is not before a time. (Q,) each"""
        return self._place(key, time, self._by_time)

    # -- order --------------------------------------------------------------------------------------------------------

    @cached
    def order(self) -> Tensor:
        """The message at each place: one list after the other, each by instant, then time, then row. (M,)"""
        by_time = self.time.argsort(stable=True)
        values, rank = self._by_instant[:2]
        return by_time[(self.key * (len(values) + 1) + rank)[by_time].argsort(stable=True)]

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
    def _by_instant(self) -> tuple[Tensor, Tensor, Tensor]:
        return _ranks(self.key, self.time if self.instant is None else self.instant)

    @cached
    def _by_time(self) -> tuple[Tensor, Tensor, Tensor]:
        return self._by_instant if self.instant is None else _ranks(self.key, self.time)

    def _place(self, key: Tensor, asked: Tensor, ranks: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """The place of the first message of a list that is not before the time that is asked for. (Q,)"""
        values, _, sorted_code = ranks
        return torch.searchsorted(sorted_code, key * (len(values) + 1) + torch.searchsorted(values, asked))

    # -- blocks -------------------------------------------------------------------------------------------------------

    @cached
    def blocks(self) -> list[_Block]:
        """Lists that are added up together."""
        found, first, offset = [], 0, self.offset.cpu()
        size = BLOCK.get(self.key.device.type, BLOCK["cpu"])
        while first < self.num_lists:
            last = int(torch.searchsorted(offset, offset[first] + size, right=True)) - 1
            last = min(max(last, first + 1), self.num_lists)
            found.append(_Block(self, first, last, int(offset[first]), int(offset[last])))
            first = last
        return found


def _ranks(key: Tensor, time: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The different times, the number of each message's, and (list, number) of all messages as one sorted number."""
    values, rank = torch.unique(time, return_inverse=True)
    return values, rank, (key * (len(values) + 1) + rank).sort().values


@dataclass(frozen=True, eq=False)
class _Block:
    """Some lists, from number `first` to `last`, whose messages are from place `low` to `high`."""

    lists: TimedLists
    first: int
    last: int
    low: int
    high: int

    @cached
    def plan(self) -> ScanPlan:
        return ScanPlan(self.lists.offset[self.first : self.last + 1].diff())

    @cached
    def mirror(self) -> Tensor:
        """The place in its list, counted from the end, of each message."""
        offset = self.lists.offset[self.first : self.last + 1] - self.low
        every = torch.repeat_interleave(offset[:-1] + offset[1:] - 1, offset.diff())
        return every - torch.arange(self.high - self.low, device=every.device)

    @property
    def order(self) -> Tensor:
        return self.lists.order[self.low : self.high]

    @cached
    def times(self) -> Tensor:
        """The times since the first of each list, in float64."""
        offset = self.lists.offset[self.first : self.last + 1] - self.low
        time = self.lists.sorted_time[self.low : self.high]
        return time - torch.repeat_interleave(time[offset[:-1].clamp(max=len(time) - 1)], offset.diff())

    def slices(self, width: int, shares: int) -> Iterator[slice]:
        """The channels that are added up at a time: `shares` of them or a multiple."""
        each = max(shares, BLOCK_VALUES // max(1, self.high - self.low) // shares * shares)
        yield from (slice(start, min(start + each, width)) for start in range(0, width, each))


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

    @cached
    def of_blocks(self) -> list[tuple[_Block, Tensor, list[tuple[Tensor, Tensor, float]]]]:
        """For each block that is read, its queries, and the prefixes that they read: (query, place of the last, sign).

        A prefix without messages is left out, and so is one that begins where it stops.
        """
        order = self.key.argsort(stable=True)
        key, found = self.key[order], []
        bounds = torch.tensor([block.first for block in self.lists.blocks] + [self.lists.num_lists], device=key.device)
        at = torch.searchsorted(key, bounds).tolist()
        for number, block in enumerate(self.lists.blocks):
            rows = order[at[number] : at[number + 1]]
            if len(rows) == 0 or block.low == block.high:
                continue
            start, parts = self.lists.offset[self.key[rows]], []
            for place, sign in ((self.stop, 1.0), (self.begin, -1.0)):
                if place is not None:
                    seen = (place[rows] > start) & (self.count[rows] > 0)
                    query = seen.nonzero().squeeze(1)
                    parts.append((query, place[rows[query]] - 1 - block.low, sign))
            found.append((block, rows, parts))
        return found


def prefix_sums(messages: Tensor, reads: Reads) -> Tensor:
    """P_q = the sum of the messages that query q sees. (M, d) -> (Q, d)"""
    _check(messages, reads)
    return cast(Tensor, _Prefix.apply(messages, None, reads))  # type: ignore[no-untyped-call]


def decayed_sums(messages: Tensor, rate: Tensor, reads: Reads) -> Tensor:
    """P_q = the sum of exp(-rate (t_q - t_f)) m_f over the messages that query q sees. (M, d), (K,) -> (Q, d)

    Args:
        messages: a row for each message of `reads.lists`.
        rate: decay rates, none negative, each of an equal share of the channels: the first of the first d / K.
        reads: queries without a window.
    """
    _check(messages, reads)
    check_shape("rate", rate, (None,), "(K,)")
    if reads.begin is not None:
        raise ValueError("reads has windows, expected none: a sum that decays has no window")
    if len(rate) == 0 or messages.shape[1] % len(rate):
        raise ValueError(f"rate has {len(rate)} rates, expected a divisor of the {messages.shape[1]} channels")
    return cast(Tensor, _Prefix.apply(messages, rate, reads))  # type: ignore[no-untyped-call]


def _check(messages: Tensor, reads: Reads) -> None:
    check_shape("messages", messages, (len(reads.lists.key), None), "(M, d), a row for each message of the lists")


class _Prefix(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, messages: Tensor, rate: Tensor | None, reads: Reads) -> Tensor:
        ctx.reads, needs_messages = reads, rate is not None and rate.requires_grad
        ctx.save_for_backward(messages if needs_messages else None, rate)
        ctx.like = messages.dtype
        out = messages.new_zeros(len(reads), messages.shape[1])
        rates = None if rate is None else rate.double()
        for block, rows, parts in reads.of_blocks:
            for channels, some in _shares(block, messages.shape[1], rates):
                values = messages[:, channels].index_select(0, block.order).double()
                found = values.new_zeros(len(rows), values.shape[1])
                for query, place, sign in parts:
                    prefix = block.plan.read(values, place, block.times if some is not None else None, some)
                    if some is not None:
                        gap = reads.time[rows[query]] - _time_at(block, place)
                        prefix = (by_rate(prefix, some) * decay(gap, some)).flatten(1)
                    found.index_add_(0, query, prefix, alpha=sign)
                out[:, channels].index_copy_(0, rows, found.to(out.dtype))
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        messages, rate = ctx.saved_tensors
        reads, lists = ctx.reads, ctx.reads.lists
        out = grad.new_zeros(len(lists.key), grad.shape[1], dtype=ctx.like) if ctx.needs_input_grad[0] else None
        rates = None if rate is None else rate.double()
        of_rate = None if messages is None or rates is None else torch.zeros_like(rates)
        for block, rows, parts in reads.of_blocks:
            for channels, some in _shares(block, grad.shape[1], rates):
                mine = grad[:, channels].index_select(0, rows).double()
                spread = mine.new_zeros(block.high - block.low, mine.shape[1])
                for query, place, sign in parts:
                    given = mine.index_select(0, query)
                    if some is not None:
                        gap = reads.time[rows[query]] - _time_at(block, place)
                        given = (by_rate(given, some) * decay(gap, some)).flatten(1)
                    spread.add_(_sum_by_place(given, place, len(spread)), alpha=sign)
                times = None if some is None else -block.times[block.mirror]
                found = block.plan.scan(spread[block.mirror], times, some)[block.mirror]
                if out is not None:
                    out[:, channels].index_copy_(0, block.order, found.to(out.dtype))
                if of_rate is not None and some is not None:
                    values = messages[:, channels].index_select(0, block.order).double()
                    change = _rate_change(block, values, spread, found, parts[0], mine, reads.time[rows], some)
                    of_rate[_rates_of(channels, grad.shape[1], len(of_rate))] += change
        return out, None if of_rate is None else of_rate.to(rate.dtype), None


def _rate_change(
    block: _Block,
    values: Tensor,
    spread: Tensor,
    gradient: Tensor,
    part: tuple[Tensor, Tensor, float],
    grad: Tensor,
    time: Tensor,
    rate: Tensor,
) -> Tensor:
    """The gradient of the rates: of sum_q g_q P_q it is -(sum_q t_q g_q P_q - sum_f t_f m_f g_f). (K,)

    With g_f the gradient of message f. Both sums have the same terms g_q m_f exp(..), once times t_q and once t_f.
    """
    query, place, _ = part
    sums = block.plan.scan(values, block.times, rate)
    gap = time[query] - _time_at(block, place)
    since = (gap + block.times[place]).unsqueeze(1)  # since the first message of the list
    given = (by_rate(grad.index_select(0, query), rate) * decay(gap, rate)).flatten(1)
    late = (since * given * sums.index_select(0, place)).sum(0)
    sent = (block.times.unsqueeze(1) * values * gradient).sum(0)
    return (sent - late).view(len(rate), -1).sum(1)


def _shares(block: _Block, width: int, rate: Tensor | None) -> Iterator[tuple[slice, Tensor | None]]:
    """Channels that are added up at a time, and their rates; with rates, all of a rate's channels."""
    if rate is None:
        yield from ((channels, None) for channels in block.slices(width, 1))
        return
    share = width // len(rate)
    for channels in block.slices(width, share):
        yield channels, rate[_rates_of(channels, width, len(rate))]


def _rates_of(channels: slice, width: int, rates: int) -> slice:
    share = width // rates
    return slice(channels.start // share, channels.stop // share)


def _time_at(block: _Block, place: Tensor) -> Tensor:
    return block.lists.sorted_time[block.low + place]


def _sum_by_place(rows: Tensor, place: Tensor, count: int) -> Tensor:
    """The sum of the rows of each place, in a fixed order. (q, d) -> (count, d)"""
    order = place.argsort(stable=True)
    offset = torch.searchsorted(place[order], torch.arange(count + 1, device=place.device))
    return sum_segments(rows, Segments(order, offset))
