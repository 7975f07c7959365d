"""Sums of many small groups of rows, always in the same order: the one primitive under every sparse product here.

On a CPU it is `torch.embedding_bag`, the fastest of the ways that torch has and level with hand-written C; on a GPU it
is a Triton kernel (`fused.py`). Neither uses atomic additions, so a sum is the same to the bit each time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from censnet.ops import triton as fused
from censnet.ops.caching import cached

PIECE = 512  # the longest bag summed in one go: a longer one is cut, for speed and for rounding


def offsets(lengths: Tensor) -> Tensor:
    """Where each run begins and the last one ends: (n,) -> (n + 1,)."""
    return torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])


def ranges(starts: Tensor, lengths: Tensor) -> Tensor:
    """The runs start, start + 1, ... of the given lengths, one after the other.

    >>> ranges(torch.tensor([10, 20]), torch.tensor([2, 3])).tolist()
    [10, 11, 20, 21, 22]
    """
    shift = starts - (lengths.cumsum(0) - lengths)
    return torch.repeat_interleave(shift, lengths) + torch.arange(int(lengths.sum()), device=starts.device)


@dataclass(frozen=True)
class Pieces:
    """The pieces of cut bags after each one's first."""

    hubs: Tensor  # (H,) the bags that were cut
    offset: Tensor  # (H + 1,) where the further pieces of each begin
    hub: Tensor  # (P,) the bag that each piece is of


@dataclass(frozen=True)
class Segments:
    """Which rows of a table are summed into each row of the result: bag r is `index[offset[r]:offset[r + 1]]`.

    A bag of more than `PIECE` entries is cut: its first piece is row r, its further ones are rows after the last.
    """

    index: Tensor
    offset: Tensor
    pieces: Pieces | None = None

    @property
    def num_rows(self) -> int:
        return len(self.offset) - 1 - (0 if self.pieces is None else len(self.pieces.hub))


@dataclass(frozen=True)
class Pairs:
    """Bags of exactly two: bag r is `index[2r]` and `index[2r + 1]`."""

    index: Tensor

    def __len__(self) -> int:
        return len(self.index) // 2

    @cached
    def offset(self) -> Tensor:
        return torch.arange(0, len(self.index) + 1, 2, device=self.index.device, dtype=self.index.dtype)

    def part(self, start: int, stop: int) -> Pairs:
        """The bags from start to stop alone."""
        part = Pairs(self.index[2 * start : 2 * stop])
        part.__dict__["offset"] = self.offset[: stop - start + 1]
        return part


def cut(lengths: Tensor) -> tuple[Tensor | None, Tensor, Pieces | None]:
    """How bags of these lengths are cut: the order their entries are then in (None: as they are), offsets, pieces."""
    further = ((lengths - 1) // PIECE).clamp(min=0)
    hubs = further.nonzero().squeeze(1)
    if len(hubs) == 0:
        return None, offsets(lengths), None
    pieces = Pieces(hubs, offsets(further[hubs]), torch.repeat_interleave(hubs, further[hubs]))
    number = ranges(torch.ones_like(hubs), further[hubs])
    rest = (lengths[pieces.hub] - PIECE * number).clamp(max=PIECE)
    rank = ranges(torch.zeros_like(lengths), lengths)
    order = torch.cat([(rank < PIECE).nonzero(), (rank >= PIECE).nonzero()]).squeeze(1)
    return order, offsets(torch.cat([lengths.clamp(max=PIECE), rest])), pieces


def sum_bags(table: Tensor, bags: Segments, weight: Tensor | None = None) -> Tensor:
    """out[r] = sum over bag r of weight[k] * table[index[k]]. (n, d) -> (rows, d). No gradient."""
    table = table.contiguous()
    if fused.takes(table):
        return add_pieces(fused.sum_bags(table, bags.index, bags.offset, weight), bags)
    return add_pieces(_embedding_bag(table, bags.index, bags.offset, weight), bags)


def add_pieces(out: Tensor, bags: Segments) -> Tensor:
    """Add the further pieces of cut bags onto their first ones; `out` is changed."""
    if bags.pieces is None:
        return out
    rows, further = out[: bags.num_rows], out[bags.num_rows :]
    every = torch.arange(len(further), device=out.device, dtype=bags.index.dtype)
    rows[bags.pieces.hubs] += sum_bags(further, Segments(every, bags.pieces.offset.to(every.dtype)))
    return rows


def sum_pairs(
    table: Tensor,
    pairs: Pairs,
    weight: Tensor | None = None,
    own: Tensor | None = None,
    own_weight: Tensor | None = None,
) -> Tensor:
    """As `sum_bags`, and own_weight[r] * own[r] added to row r; own_weight is (rows, heads). No gradient."""
    table = table.contiguous()
    if fused.takes(table):
        own = None if own is None else own.contiguous()
        return fused.sum_pairs(table, pairs.index, weight, own, own_weight)
    out = _embedding_bag(table, pairs.index, pairs.offset, weight)
    if own is not None and own_weight is not None:
        shape = (len(out), own_weight.shape[1], table.shape[1] // own_weight.shape[1])
        out.view(shape).addcmul_(own.reshape(shape), own_weight.unsqueeze(2))
    return out


def take_rows(table: Tensor, index: Tensor) -> Tensor:
    """table[index] without a gradient, as bags of one: several times faster than indexing on a CPU."""
    each = torch.arange(len(index) + 1, dtype=index.dtype, device=index.device)
    return sum_bags(table, Segments(index.contiguous(), each))


def _embedding_bag(table: Tensor, index: Tensor, offset: Tensor, weight: Tensor | None) -> Tensor:
    if table.shape[1] == 0 or len(index) == 0:
        return table.new_zeros(len(offset) - 1, table.shape[1])
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
