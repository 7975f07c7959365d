"""Products of dense matrices. On a CPU with AVX-512 large ones are oneDNN's.

torch multiplies float32 by MKL, which takes the half as wide instructions of AVX2 on processors that are not Intel's:
there oneDNN, which comes with torch, is more than twice as fast. The sums are the same to rounding.
"""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

LEAST = 2**20  # multiplications, below which oneDNN takes longer to begin than MKL to end
NARROWEST = 128  # channels, below which it does not win back the time that it needs for each new number of rows


def affine(rows: Tensor, matrix: Tensor, bias: Tensor | None = None, more: Tensor | None = None) -> Tensor:
    """X W + b + Y in one pass over the result.

    Shape:
        rows X (n, i), matrix W (i, o), bias b (o,), more Y (n, o) -> (n, o).

    Example:
        >>> affine(torch.ones(2, 3), torch.ones(3, 1), torch.ones(1)).tolist()
        [[4.0], [4.0]]
    """
    if _is_large(rows, matrix):
        return cast(Tensor, _Affine.apply(rows, matrix, bias, more))  # type: ignore[no-untyped-call]
    if more is not None:
        out = torch.addmm(more, rows, matrix)
        return out if bias is None else out + bias
    return rows @ matrix if bias is None else torch.addmm(bias, rows, matrix)


def _is_large(rows: Tensor, matrix: Tensor) -> bool:
    """Whether oneDNN is to multiply these."""
    return (
        not torch.compiler.is_compiling()  # shapes may be symbols then
        and rows.dtype == matrix.dtype == torch.float32
        and rows.device.type == "cpu"
        and rows.shape[0] * matrix.numel() >= LEAST
        and min(matrix.shape) >= NARROWEST
        and _has_wide()
        and bool(torch.backends.mkldnn.enabled)
        and not torch.is_autocast_enabled("cpu")
    )


@cache
def _has_wide() -> bool:
    """Whether this CPU has AVX-512, and torch the operation."""
    wide = torch.backends.cpu.get_cpu_capability().startswith("AVX512")
    return wide and torch._C._has_mkldnn and hasattr(torch.ops.mkldnn, "_linear_pointwise")


class _Affine(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, matrix: Tensor, bias: Tensor | None, more: Tensor | None) -> Tensor:
        ctx.save_for_backward(rows, matrix)
        out = _multiply(rows, matrix.t(), bias)
        return out if more is None else out.add_(more)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        rows, matrix = ctx.saved_tensors
        of_rows = _multiply(grad, matrix) if ctx.needs_input_grad[0] else None
        of_matrix = _sum_products(rows, grad) if ctx.needs_input_grad[1] else None
        of_bias = grad.sum(0) if ctx.needs_input_grad[2] else None
        return of_rows, of_matrix, of_bias, grad if ctx.needs_input_grad[3] else None


def _multiply(rows: Tensor, matrix: Tensor, bias: Tensor | None = None) -> Tensor:
    """X M^t + b."""
    count = rows.shape[0]
    beyond = -count % step_of(count)
    if beyond:  # at most 3 % more
        padded = rows.new_empty(count + beyond, rows.shape[1])
        padded[:count].copy_(rows)
        padded[count:].zero_()
        rows = padded
    out = _by_onednn(rows.contiguous(), matrix, bias)
    return out if beyond == 0 else out.resize_(count, matrix.shape[0])


def _sum_products(rows: Tensor, others: Tensor) -> Tensor:
    """X^t Y, the last rows, which make an unusual number of them, by torch's own product."""
    beyond = rows.shape[0] % step_of(rows.shape[0])
    x, y = (rows, others) if beyond == 0 else (rows[:-beyond], others[:-beyond])
    like = rows.new_empty(rows.shape[1], others.shape[1])
    dense = x.contiguous().to_mkldnn(), y.contiguous().to_mkldnn()
    out: Tensor = torch.ops.aten.mkldnn_linear_backward_weights(*dense, like, False)[0]  # without transposed copies
    return out if beyond == 0 else out.addmm_(rows[-beyond:].t(), others[-beyond:])


def step_of(count: int) -> int:
    """The step of numbers of rows about as large, so that few occur: oneDNN compiles, and keeps, a program for each."""
    return 1 << max(count.bit_length() - 6, 0)


def _by_onednn(rows: Tensor, matrix: Tensor, bias: Tensor | None = None) -> Tensor:
    return cast(Tensor, torch.ops.mkldnn._linear_pointwise(rows, matrix, bias, "none", [], ""))
