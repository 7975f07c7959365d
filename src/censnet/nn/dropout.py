"""Dropout whose mask costs one random byte an element on a CPU; torch's own draws a double, on one thread."""

from __future__ import annotations

import math
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, p: float, relu: bool) -> Tensor:
        keep, ctx.scale = _keep_mask(x, p)
        if relu:
            keep.mul_(x > 0)
        ctx.save_for_backward(keep)
        return torch.mul(x, keep).mul_(ctx.scale)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (keep,) = ctx.saved_tensors
        return torch.mul(grad, keep).mul_(ctx.scale), None, None


def _keep_mask(x: Tensor, p: float) -> tuple[Tensor, float]:
    """0 or 1 for each element, and 1 / P(1). P(0) is p to within 2^-9, or 2^-17 where that is not exact."""
    dtype, levels = (torch.uint8, 2**8) if (p * 2**8).is_integer() else (torch.int16, 2**16)
    words = torch.empty(math.ceil(x.numel() * dtype.itemsize / 8), dtype=torch.int64)
    bits = words.random_(-(2**63), None).view(dtype)[: x.numel()].view(x.shape)
    dropped = min(max(round(p * levels), 1), levels - 1)
    lowest = 0 if dtype == torch.uint8 else -(2**15)
    return torch.ge(bits, lowest + dropped, out=bits), levels / (levels - dropped)


def dropout(x: Tensor, p: float, training: bool = True, relu: bool = False) -> Tensor:
    """Each element 0 with probability p, and else times 1 / (1 - p). Drawn from torch's default generator.

    p is met to the nearest 1/256 or 1/65,536, and the scale is that of the probability used, so the mean is exact. With
    `relu`, it is the dropout of relu(x), for which one mask does both.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"p is {p}, expected a probability from 0 to 1")
    if not training or p == 0 or p == 1 or x.device.type != "cpu" or torch.compiler.is_compiling():
        return F.dropout(F.relu(x) if relu else x, p, training)
    return cast(Tensor, _Dropout.apply(x, p, relu))  # type: ignore[no-untyped-call]


class Dropout(nn.Module):
    """`dropout` while training, nothing otherwise.

    Example:
        >>> Dropout(0.5)
        Dropout(p=0.5)
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        dropout(torch.empty(0), p, training=False)  # says what is wrong with p, if anything is
        self.p = p

    def extra_repr(self) -> str:
        return f"p={self.p}"

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.p, self.training)
