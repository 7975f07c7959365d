"""A segmented scan: along each of many lists, the running sum of its entries, which may decay with time.

    x_k = a_k x_{k-1} + m_k,    a_k = exp(-rate (t_k - t_{k-1})) <= 1, or 1,    a = 0 at the first entry of a list

A list is cut into chunks of `CHUNK` entries from its own start. All chunks advance together, one entry a step, and the
totals of the chunks of long lists are scanned in the same way. Each list is thus added up in an order of its own: no
bit of it depends on another list, or on entries that come later.
"""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

from censnet.ops.segments import offsets, ranges

CHUNK = 64


class ScanPlan:
    """The order of the additions for lists of these lengths, whose entries are one list after the other.

    Example:
        >>> plan = ScanPlan(torch.tensor([3, 0, 2]))
        >>> plan.scan(torch.tensor([[1.0], [2.0], [3.0], [10.0], [20.0]])).squeeze(1).tolist()
        [1.0, 3.0, 6.0, 10.0, 30.0]
    """

    def __init__(self, lengths: Tensor) -> None:
        starts = offsets(lengths)[:-1]
        chunks = (lengths + CHUNK - 1) // CHUNK  # of each list
        number = ranges(torch.zeros_like(chunks), chunks)  # of each chunk in its list
        start = torch.repeat_interleave(starts, chunks) + number * CHUNK
        end = torch.minimum(start + CHUNK, torch.repeat_interleave(starts + lengths, chunks))
        size, order = (end - start).sort(descending=True, stable=True)
        steps = torch.arange(CHUNK + 1, device=lengths.device)
        active = len(size) - torch.searchsorted(size.flip(0), steps, right=True)  # chunks of more than so many entries
        counts = [count for count in active.tolist() if count]
        first = start[order]
        places = [first[:count] + step for step, count in enumerate(counts)]
        place = torch.cat(places) if places else start
        self.bounds = list(itertools.accumulate(counts, initial=0))
        self.place = place.int()  # entry at each packed row: the first of all chunks, then the second, ...
        self.packed = torch.empty_like(self.place)
        self.packed[place] = torch.arange(len(place), dtype=torch.int32, device=place.device)
        self.outer: ScanPlan | None = None
        long = chunks > 1
        if bool(long.any()):
            inner = torch.repeat_interleave(long, chunks) & (number + 1 < torch.repeat_interleave(chunks, chunks))
            self.outer = ScanPlan(chunks[long] - 1)  # the totals of all chunks but a list's last
            self.end = end[inner] - 1  # where these are
            before = inner.long().cumsum(0) - 1  # the total before a chunk, if it is not the first
            chunk = torch.repeat_interleave(torch.arange(len(start), device=start.device), end - start)
            self.carry = torch.where(number[chunk] > 0, before[(chunk - 1).clamp(min=0)], -1).int()

    def scan(self, values: Tensor, times: Tensor | None = None, rate: Tensor | None = None) -> Tensor:
        """The running sums. values (M, d), times (M,), rate (K,), which divides d -> (M, d)."""
        return self.read(values, None, times, rate)

    def read(self, values: Tensor, at: Tensor | None, times: Tensor | None, rate: Tensor | None) -> Tensor:
        """The running sums after the entries `at` alone; all if None."""
        x = values.index_select(0, self.place)
        if rate is not None and times is not None:
            t = times.index_select(0, self.place)
        for (low, middle), high in zip(itertools.pairwise(self.bounds), self.bounds[2:], strict=False):
            here, before = x[middle:high], x[low : low + high - middle]
            if rate is None or times is None:
                here += before
            else:
                factor = decay(t[middle:high] - t[low : low + high - middle], rate)
                by_rate(here, rate).addcmul_(by_rate(before, rate), factor)
        out = x.index_select(0, self.packed if at is None else self.packed[at])
        if self.outer is None:
            return out
        inside = None if times is None else times[self.end]
        carry = self.outer.scan(x.index_select(0, self.packed[self.end]), inside, rate)
        number = self.carry if at is None else self.carry[at]
        rows = (number >= 0).nonzero().squeeze(1)
        number = number[rows]
        before = carry.index_select(0, number)
        if rate is not None and times is not None and inside is not None:
            now = times[rows] if at is None else times[at[rows]]
            before = (by_rate(before, rate) * decay(now - inside[number], rate)).flatten(1)
        return out.index_add_(0, rows, before)


def by_rate(rows: Tensor, rate: Tensor) -> Tensor:
    """(n, d) -> (n, K, d / K): an equal share of the channels for each rate."""
    return rows.view(len(rows), len(rate), rows.shape[1] // len(rate))


def decay(gap: Tensor, rate: Tensor) -> Tensor:
    """exp(-rate * gap), at most 1. (n,), (K,) -> (n, K, 1)"""
    return torch.exp(-gap.unsqueeze(1) * rate).unsqueeze(2)
