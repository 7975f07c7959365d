"""Segment sums, always in the same order: the one primitive under every sparse product here.

On a CPU it is `torch.embedding_bag`, the fastest of the ways that torch has and level with hand-written C; on a GPU it
is a Triton kernel (`triton.py`). Neither uses atomic additions, so a sum is the same to the bit each time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from censnet.ops import triton
from censnet.ops.caching import cached, store

LONGEST = 512  # entries of a segment that are summed in one go: a longer one is chunked, for speed and rounding


def offsets(lengths: Tensor) -> Tensor:
    """The position where each run begins and the last one ends: (n,) -> (n + 1,)."""
    return torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])


def ranges(starts: Tensor, lengths: Tensor) -> Tensor:
    """The runs start, start + 1, ... of the given lengths, one after the other.

    >>> ranges(torch.tensor([10, 20]), torch.tensor([2, 3])).tolist()
    [10, 11, 20, 21, 22]
    """
    shift = starts - (lengths.cumsum(0) - lengths)
    return torch.repeat_interleave(shift, lengths) + torch.arange(int(lengths.sum()), device=starts.device)


@dataclass(frozen=True)
class SegmentChunks:
    """The chunks of long segments after each one's first."""

    long: Tensor  # (H,) the segments that were chunked
    offset: Tensor  # (H + 1,) where the further chunks of each begin
    segment: Tensor  # (P,) the segment of each chunk


@dataclass(frozen=True)
class Segments:
    """The rows of a table that are summed into each row of the result: `index[offset[r]:offset[r + 1]]` for row r.

    A segment of more than `LONGEST` entries is chunked: its first chunk is row r, further ones are rows after the last.
    """

    index: Tensor
    offset: Tensor
    chunks: SegmentChunks | None = None

    @property
    def chunk_segment(self) -> Tensor | None:
        """The segment of each chunk after the first; None where no segment is chunked."""
        return None if self.chunks is None else self.chunks.segment

    @property
    def num_rows(self) -> int:
        return len(self.offset) - 1 - (0 if self.chunks is None else len(self.chunks.segment))


@dataclass(frozen=True)
class EndPairs:
    """Segments of exactly two, such as the two ends of an edge: `index[2r]` and `index[2r + 1]` for row r."""

    index: Tensor

    def __len__(self) -> int:
        return len(self.index) // 2

    @cached
    def offset(self) -> Tensor:
        return torch.arange(0, len(self.index) + 1, 2, device=self.index.device, dtype=self.index.dtype)

    def part(self, start: int, stop: int) -> EndPairs:
        """The segments from start to stop alone."""
        part = EndPairs(self.index[2 * start : 2 * stop])
        store(part, offset=self.offset[: stop - start + 1])
        return part


def chunk_segments(lengths: Tensor) -> tuple[Tensor | None, Tensor, SegmentChunks | None]:
    """Chunk segments of these lengths: the new order of their entries (None: as they are), offsets, chunks."""
    further = ((lengths - 1) // LONGEST).clamp(min=0)
    long = further.nonzero().squeeze(1)
    if len(long) == 0:
        return None, offsets(lengths), None
    chunks = SegmentChunks(long, offsets(further[long]), torch.repeat_interleave(long, further[long]))
    number = ranges(torch.ones_like(long), further[long])
    rest = (lengths[chunks.segment] - LONGEST * number).clamp(max=LONGEST)
    rank = ranges(torch.zeros_like(lengths), lengths)
    order = torch.cat([(rank < LONGEST).nonzero(), (rank >= LONGEST).nonzero()]).squeeze(1)
    return order, offsets(torch.cat([lengths.clamp(max=LONGEST), rest])), chunks


def sum_segments(table: Tensor, segments: Segments, weight: Tensor | None = None) -> Tensor:
    """out[r] = sum over segment r of weight[k] * table[index[k]]. (n, d) -> (rows, d). No gradient."""
    table = table.contiguous()
    if triton.is_available(table):
        return add_chunks(triton.sum_segments(table, segments.index, segments.offset, weight), segments)
    return add_chunks(_sum_on_cpu(table, segments.index, segments.offset, weight), segments)


def add_chunks(out: Tensor, segments: Segments) -> Tensor:
    """Add the further chunks of long segments to their first ones, in place."""
    if segments.chunks is None:
        return out
    rows, further = out[: segments.num_rows], out[segments.num_rows :]
    every = torch.arange(len(further), device=out.device, dtype=segments.index.dtype)
    rows[segments.chunks.long] += sum_segments(further, Segments(every, segments.chunks.offset.to(every.dtype)))
    return rows


def sum_pairs(
    table: Tensor,
    pairs: EndPairs,
    weight: Tensor | None = None,
    own: Tensor | None = None,
    own_weight: Tensor | None = None,
) -> Tensor:
    """As `sum_segments`, and own_weight[r] * own[r] added to row r; own_weight is (rows, heads). No gradient."""
    table = table.contiguous()
    if triton.is_available(table):
        own = None if own is None else own.contiguous()
        return triton.sum_pairs(table, pairs.index, weight, own, own_weight)
    out = _sum_on_cpu(table, pairs.index, pairs.offset, weight)
    if own is not None and own_weight is not None:
        shape = (len(out), own_weight.shape[1], table.shape[1] // own_weight.shape[1])
        out.view(shape).addcmul_(own.reshape(shape), own_weight.unsqueeze(2))
    return out


def take_rows(table: Tensor, index: Tensor, weight: Tensor | None = None) -> Tensor:
    """weight * table[index] without a gradient, as segments of one: several times faster than indexing on a CPU."""
    each = torch.arange(len(index) + 1, dtype=index.dtype, device=index.device)
    return sum_segments(table, Segments(index.contiguous(), each), weight)


def _sum_on_cpu(table: Tensor, index: Tensor, offset: Tensor, weight: Tensor | None) -> Tensor:
    if table.shape[1] == 0 or index.shape[0] == 0:
        return table.new_zeros(offset.shape[0] - 1, table.shape[1])
    weight = None if weight is None else weight.to(table.dtype)
    out: Tensor = torch._embedding_bag_forward_only(table, index, offset, False, 0, False, weight, True)[0]
    return out


class _LinearMap(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, there: Callable[[Tensor], Tensor], back: Callable[[Tensor], Tensor]) -> Tensor:
        ctx.back = back
        return there(x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return ctx.back(grad), None, None


def linear_map(x: Tensor, there: Callable[[Tensor], Tensor], back: Callable[[Tensor], Tensor]) -> Tensor:
    """there(x), whose gradient is its transpose, `back`."""
    return cast(Tensor, _LinearMap.apply(x, there, back))  # type: ignore[no-untyped-call]
