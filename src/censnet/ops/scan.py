"""A segmented scan: along each of many lists, the running sum of its entries, which may decay with time.

    x_k = a_k x_{k-1} + m_k,    a_k = exp(-rate (t_k - t_{k-1})) <= 1, or 1,    x = 0 before the first entry of a list
    y_k = a_k (y_{k-1} + (t_k - t_{k-1}) x_{k-1})        the moment: the same sum, each entry times its age

A list is cut into chunks of `CHUNK` entries from its own start. Many chunks advance together, one entry a step. A chunk
that follows another one starts from what was before it, which a scan of the totals of inner chunks, those that others
follow, gives. Each list is thus
added up in an order of its own: no bit of it depends on another list, or on entries that come later. Sums are kept in
float64, on a CPU in blocks of chunks that stay in its cache, on a GPU in registers (`triton_scan.py`).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from censnet.ops import triton, triton_scan
from censnet.ops.segments import offsets, ranges, take_rows

CHUNK = {"cpu": 64, "cuda": 128}  # entries; a GPU would rather have fewer totals
BLOCK = {"cpu": 1 << 14}  # entries that are added up together; elsewhere all, since a launch costs more than they do


@dataclass(frozen=True, eq=False)
class Decay:
    """The decay of sums.

    Args:
        rate: of equal shares of the channels. (K,), float64
        gaps: the time since the entry before, at each packed row of a plan and then of the plans of its totals.
        age: how old each entry is when it is added; 0 if None.
    """

    rate: Tensor
    gaps: list[Tensor]
    age: Tensor | None = None

    @property
    def of_totals(self) -> Decay:
        return replace(self, gaps=self.gaps[1:], age=None)


@dataclass(frozen=True, eq=False)
class _Block:
    """Chunks that advance together: entry k of chunk c is at the packed row base[k] + c, for c < base[k + 1] - base[k].

    Args:
        base: where each step begins, and the last one ends.
        steps: the same on the device.
        size: entries of each chunk, the longest first.
        inner: the first so many chunks are followed by others, which start from their totals; where blocks are cut, all
            of a block or none.
        before: of each chunk, the packed row of the total before it in the plan of the totals, or -1.
    """

    base: list[int]
    steps: Tensor
    size: Tensor
    inner: int
    before: Tensor | None

    @property
    def rows(self) -> slice:
        return slice(self.base[0], self.base[-1])


class ScanPlan:
    """The order of the additions for lists of these lengths, whose entries are one list after the other.

    Sums are kept at packed rows: a block after the other, in it first the first entries of all chunks, then the second.

    Args:
        lengths: of the lists.

    Example:
        >>> plan = ScanPlan(torch.tensor([3, 0, 2]))
        >>> plan.scan(torch.tensor([[1.0], [2.0], [3.0], [10.0], [20.0]])).squeeze(1).tolist()
        [1.0, 3.0, 6.0, 10.0, 30.0]
    """

    def __init__(self, lengths: Tensor) -> None:
        self.starts = offsets(lengths)
        most = self.chunk = CHUNK.get(lengths.device.type, CHUNK["cpu"])
        chunks = (lengths + most - 1) // most  # of each list
        number = ranges(torch.zeros_like(chunks), chunks)  # of each chunk in its list
        start = torch.repeat_interleave(self.starts[:-1], chunks) + number * most
        size = (torch.repeat_interleave(self.starts[1:], chunks) - start).clamp(max=most)
        inner = number + 1 < torch.repeat_interleave(chunks, chunks)
        first, last = inner.nonzero().squeeze(1), (~inner).nonzero().squeeze(1)
        order = torch.cat([first, last[size[last].argsort(descending=True, stable=True)]])
        self.ends = (start + size)[first] - 1  # the last entries of inner chunks
        self.outer = ScanPlan((chunks - 1).clamp(min=0)) if len(first) else None
        before = None
        if self.outer is not None:
            total = (inner.long().cumsum(0) - 1).roll(1)  # the number of the chunk before among the inner ones
            before = torch.where(number > 0, self.outer.packed[total.clamp(min=0)], -1).int()[order]
        self.blocks = self._make_blocks(start, size, order, len(first), before)

    def _make_blocks(
        self, start: Tensor, size: Tensor, order: Tensor, num_inner: int, before: Tensor | None
    ) -> list[_Block]:
        """Number the packed rows and cut the chunks, in this order, into blocks."""
        each, ordered, most = self.chunk, size[order], BLOCK.get(size.device.type)
        earlier = ordered.cumsum(0) - ordered
        part = torch.zeros_like(earlier) if most is None else earlier // most
        if num_inner and most is not None:
            part[num_inner:] = (earlier[num_inner:] - num_inner * each) // most + (num_inner * each // most + 1)
        _, part, chunks = torch.unique_consecutive(part, return_inverse=True, return_counts=True)
        sizes = torch.bincount(part * (each + 1) + ordered, minlength=len(chunks) * (each + 1))
        longer = sizes.view(len(chunks), each + 1).flip(1).cumsum(1).flip(1)[:, 1:]  # chunks that have a step
        base = offsets(longer.flatten())
        bound = offsets(chunks)
        block, chunk = torch.empty_like(part), torch.empty_like(part)
        block[order], chunk[order] = part, torch.arange(len(order), device=order.device) - bound[part]
        step = ranges(torch.zeros_like(size), size)
        packed = base[torch.repeat_interleave(block * each, size) + step] + torch.repeat_interleave(chunk, size)
        self.packed = packed.int()  # row of each entry
        self.entry = torch.empty_like(self.packed)  # at each packed row
        self.entry[packed] = torch.arange(len(packed), dtype=torch.int32, device=packed.device)
        bases, bounds, found = base.tolist(), bound.tolist(), list[_Block]()
        for number, (low, high) in enumerate(itertools.pairwise(bounds)):
            steps = bases[number * each : (number + 1) * each + 1]
            steps = [row for row, more in zip(steps, [*steps[1:], -1], strict=True) if row != more]
            mine = None if before is None else before[low:high]
            device = torch.tensor(steps, device=size.device)
            found.append(_Block(steps, device, ordered[low:high], max(0, min(high, num_inner) - low), mine))
        return found

    def __len__(self) -> int:
        return len(self.packed)

    def gaps(self, times: Tensor) -> list[Tensor]:
        """The gaps of `Decay` for entries at these times, in order within each list. (M,), float64"""
        gap = times.diff(prepend=times[:1])
        starts = self.starts[:-1]
        gap[starts[starts < len(gap)]] = 0
        own = gap.index_select(0, self.entry)
        return [own] if self.outer is None else [own, *self.outer.gaps(times[self.ends])]

    def scan(self, values: Tensor, times: Tensor | None = None, rate: Tensor | None = None) -> Tensor:
        """The running sums. values (M, d), times (M,), rate (K,), which divides d -> (M, d)."""
        decay = None if times is None or rate is None else Decay(rate.double(), self.gaps(times))
        return read_sums(self.sums(values, self.entry, decay, dtype=values.dtype), self.packed, values.dtype)

    def sums(
        self,
        values: Tensor,
        source: Tensor,
        decay: Decay | None = None,
        moment: bool = False,
        dtype: torch.dtype = torch.float64,
    ) -> list[Tensor]:
        """The running sums at packed rows, and a row of zeros after them; the moments as well if asked.

        Args:
            values: (n, d).
            source: at each packed row, the row of `values` that is added.
            decay: how sums decay; they do not if None.
            moment: whether moments are computed.
            dtype: of the result.
        """
        found = self._sums([values.contiguous()], source, decay, 1 + moment, dtype)
        for one in found:
            one[len(self) :] = 0
        return found

    # -- inside -------------------------------------------------------------------------------------------------------

    def _sums(
        self, tables: list[Tensor], source: Tensor, decay: Decay | None, parts: int, dtype: torch.dtype
    ) -> list[Tensor]:
        """Here and below, lists have a tensor of the sums, and one of the moments if there are two parts.

        The last row of each is left as it is: totals are read where there are some.
        """
        width = tables[0].shape[1]
        carry = None
        if self.outer is not None:
            totals = [tables[0].new_empty(len(self.ends), width, dtype=torch.float64) for _ in range(parts)]
            at = 0
            for block in self.blocks:
                if block.inner:
                    some = [total[at : at + block.inner] for total in totals]
                    self._advance(block, tables, source, decay, None, [], some)
                    at += block.inner
            of_totals = None if decay is None else decay.of_totals
            carry = self.outer._sums(totals, self.outer.entry, of_totals, parts, torch.float64)
        found = [tables[0].new_empty(len(self) + 1, width, dtype=dtype) for _ in range(parts)]
        for block in self.blocks:
            self._advance(block, tables, source, decay, carry, found, [])
        return found

    def _advance(
        self,
        block: _Block,
        tables: list[Tensor],
        source: Tensor,
        decay: Decay | None,
        carry: list[Tensor] | None,
        out: list[Tensor],
        totals: list[Tensor],
    ) -> None:
        """Add up the chunks of a block: all sums to `out`, or the last ones to `totals`."""
        before = block.before if carry is not None else None
        if triton.is_available(tables[0]):
            times = (None, None, None) if decay is None else (decay.gaps[0], decay.age, decay.rate)
            size = block.size[: block.inner] if totals else block.size
            triton_scan.scan_chunks(block.steps, size, tables, source, times, before, carry or [], out, totals)
            return
        x = _load(block.rows, tables, source, decay, len(out) + len(totals))
        gap = None if decay is None else decay.gaps[0][block.rows]
        factor = None if decay is None or gap is None else by_age(gap, decay.rate)
        if before is not None and carry is not None:
            _start(x, before, carry, gap, factor)
        steps = [row - block.base[0] for row in block.base]
        for (low, middle), high in zip(itertools.pairwise(steps), steps[2:], strict=False):
            _step(
                [part[middle:high] for part in x],
                [part[low : low + high - middle] for part in x],
                None if gap is None else gap[middle:high],
                None if factor is None else factor[middle:high],
            )
        for part, mine in zip(x, out or totals, strict=True):
            mine.copy_(part[steps[-2] :]) if totals else mine[block.rows].copy_(part)


def _load(rows: slice, tables: list[Tensor], source: Tensor, decay: Decay | None, parts: int) -> list[Tensor]:
    """The entries at some packed rows, and their moments, in float64."""
    at = source[rows]
    x = [_take(table, at).double() for table in tables]
    if decay is not None and decay.age is not None:
        age = decay.age[rows]
        by_rate(x[0], decay.rate).mul_(by_age(age, decay.rate))
        x = [x[0], x[0] * age.unsqueeze(1)][:parts]
    return x if len(x) == parts else [x[0], torch.zeros_like(x[0])]


def _start(x: list[Tensor], before: Tensor, carry: list[Tensor], gap: Tensor | None, factor: Tensor | None) -> None:
    """Add what was before to the first entry of each chunk that follows another one."""
    chunk = (before >= 0).nonzero().squeeze(1)
    if len(chunk):
        at = before[chunk]
        here = [part.index_select(0, chunk) for part in x]
        carried = [part.index_select(0, at) for part in carry]
        _step(here, carried, None if gap is None else gap[chunk], None if factor is None else factor[chunk])
        for part, new in zip(x, here, strict=True):
            part.index_copy_(0, chunk, new)


def _step(x: list[Tensor], before: list[Tensor], gap: Tensor | None, factor: Tensor | None) -> None:
    """Add the sums before, decayed, and their moments, to entries."""
    if gap is None or factor is None:
        x[0] += before[0]
        return
    rates = factor.shape[1]
    if len(x) > 1:
        older = torch.addcmul(before[1], before[0], gap.unsqueeze(1))
        _shares(x[1], rates).addcmul_(_shares(older, rates), factor)
    _shares(x[0], rates).addcmul_(_shares(before[0], rates), factor)


def _take(table: Tensor, rows: Tensor) -> Tensor:
    """table[rows]; on a CPU the fastest way depends on the type."""
    return table.index_select(0, rows) if table.dtype == torch.float64 else take_rows(table, rows)


def _shares(rows: Tensor, rates: int) -> Tensor:
    return rows.view(len(rows), rates, rows.shape[1] // rates)


def by_rate(rows: Tensor, rate: Tensor) -> Tensor:
    """(n, d) -> (n, K, d / K): an equal share of the channels for each rate."""
    return _shares(rows, len(rate))


def by_age(age: Tensor, rate: Tensor) -> Tensor:
    """exp(-rate * age), at most 1. (n,), (K,) -> (n, K, 1)"""
    return torch.exp(-age.unsqueeze(1) * rate).unsqueeze(2)


def read_sums(
    sums: list[Tensor], at: Tensor, dtype: torch.dtype, age: Tensor | None = None, rate: Tensor | None = None
) -> Tensor:
    """The sums at packed rows, decayed since; or, if there are two tables, the moments, (y + age x) exp(-rate age).

    Shape:
        sums (M + 1, d), the last row 0, at (Q,), age (Q,), rate (K,) -> (Q, d).
    """
    if triton.is_available(sums[0]):
        return triton_scan.read_sums(sums, at, dtype, age, rate)
    if age is None or rate is None:
        return _take(sums[-1], at).to(dtype)
    out = sums[0].new_empty(len(at), sums[0].shape[1], dtype=dtype)
    for low in range(0, len(at), BLOCK["cpu"]):
        rows = slice(low, low + BLOCK["cpu"])
        ages, x = age[rows], _take(sums[-1], at[rows])
        if len(sums) > 1:
            x = x + ages.to(x.dtype).unsqueeze(1) * _take(sums[0], at[rows])
        out[rows] = (by_rate(x, rate) * by_age(ages, rate)).flatten(1)
    return out
