"""Batch norm and layer norm, for one model or a stack of members."""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Norm = Literal["batch", "layer"]


class BatchNorm(nn.BatchNorm1d):
    """Batch norm that normalizes a single sample, such as the one edge of a last batch, by the running statistics."""

    members = 1

    def extra_repr(self) -> str:
        return _size(self, self.members)

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - torch's name
        if self.training and len(input) < 2:
            return F.batch_norm(input, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
        return super().forward(input)


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
