"""Batch norm and layer norm, for one model or a stack of members."""

from __future__ import annotations

from typing import Any, Literal, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

Norm = Literal["batch", "layer"]


class BatchNorm(nn.BatchNorm1d):
    """Batch norm that normalizes a single sample, such as the one edge of a last batch, by the running statistics.

    Rows that are not `present`, those of graphs that pad a batch, are in no statistics. (n,), 1 or 0
    """

    members = 1

    def extra_repr(self) -> str:
        return _size(self, self.members)

    def forward(self, input: Tensor, present: Tensor | None = None) -> Tensor:  # noqa: A002 - torch's name
        if self.training and len(input) < 2:
            return F.batch_norm(input, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
        if present is None or not self.training:
            return super().forward(input)
        return self._of_present(input, present)

    def _of_present(self, rows: Tensor, present: Tensor) -> Tensor:
        count = present.sum()
        found = _PresentBatchNorm.apply(rows, present, count, self.weight, self.bias, self.eps)  # type: ignore[no-untyped-call]
        out, mean, variance = cast(tuple[Tensor, Tensor, Tensor], found)
        if self.running_mean is not None and self.running_var is not None and self.num_batches_tracked is not None:
            with torch.no_grad():
                self.num_batches_tracked.add_(1)
                self.running_mean.lerp_(mean, self.momentum or 0.0)
                self.running_var.lerp_(variance / (1 - 1 / count.to(variance.dtype)), self.momentum or 0.0)
        return out


class _PresentBatchNorm(torch.autograd.Function):
    """Batch norm by the statistics of some rows; the gradient of other rows is taken to be 0."""

    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, present: Tensor, count: Tensor, weight: Tensor, bias: Tensor, eps: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        x = rows.float() if rows.dtype in (torch.bfloat16, torch.float16) else rows
        share = present.to(x.dtype) / count
        mean = share @ x
        centered = x - mean
        variance = share @ centered.square()
        inverse = torch.rsqrt(variance + eps)
        out = torch.addcmul(bias, centered, inverse * weight)
        ctx.save_for_backward(centered, inverse, share, weight)
        ctx.mark_non_differentiable(mean, variance)
        return out.to(rows.dtype), mean, variance

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        centered, inverse, share, weight = ctx.saved_tensors
        wide = grad.to(centered.dtype)
        normalized = centered * inverse
        of_bias = wide.sum(0)
        of_weight = (wide * normalized).sum(0)
        common = torch.addcmul(of_bias, normalized, of_weight)
        of_rows = torch.addcmul(wide, common, share.unsqueeze(1), value=-1) * (inverse * weight)
        return of_rows.to(grad.dtype), None, None, of_weight, of_bias, None


class LayerNorm(nn.LayerNorm):
    """Layer norm, of each member's channels by themselves."""

    members = 1

    def extra_repr(self) -> str:
        return _size(self, self.members)

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - torch's name
        if self.members == 1:
            return F.layer_norm(input, self.weight.shape, self.weight, self.bias, self.eps)
        return torch.group_norm(input, self.members, self.weight, self.bias, self.eps)


def _size(norm: nn.BatchNorm1d | nn.LayerNorm, members: int) -> str:
    width = str(len(norm.weight) // members)
    return width if members == 1 else f"{width}, members={members}"


def check_norm(norm: str | None) -> None:
    """Raise unless this is the name of a norm, or None."""
    if norm not in ("batch", "layer", None):
        raise ValueError(f"norm is {norm!r}, expected 'batch', 'layer' or None")


def make_norm(norm: Norm | None, width: int) -> nn.Module:
    """A norm of so many channels; the identity for None."""
    if norm is None:
        return nn.Identity()
    return BatchNorm(width) if norm == "batch" else LayerNorm(width)
