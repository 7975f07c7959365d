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
        mask = _mask(x, p)
        out = x * mask
        if relu:
            out.clamp_(min=0)  # relu(x) m = relu(x m), since m is not negative
        ctx.save_for_backward(mask, out if relu else None)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        mask, out = ctx.saved_tensors
        if out is not None:
            grad = torch.ops.aten.threshold_backward(grad, out, 0)
        return grad * mask, None, None


def _mask(x: Tensor, p: float) -> Tensor:
    """0, or else 1 / P(not 0), for each element. P(0) is p to within 2^-9, or 2^-17 where that is not exact."""
    dtype, levels = (torch.uint8, 2**8) if (p * 2**8).is_integer() else (torch.int16, 2**16)
    words = torch.empty(math.ceil(x.numel() * dtype.itemsize / 8), dtype=torch.int64)
    bits = words.random_(-(2**63), None).view(dtype)[: x.numel()].view(x.shape)
    dropped = min(max(round(p * levels), 1), levels - 1)
    lowest = 0 if dtype == torch.uint8 else -(2**15)
    return torch.ge(bits, lowest + dropped, out=bits).to(x.dtype).mul_(levels / (levels - dropped))


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
        dropout(torch.empty(0), p, training=False)  # checks p
        self.p = p

    def extra_repr(self) -> str:
        return f"p={self.p}"

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.p, self.training)
