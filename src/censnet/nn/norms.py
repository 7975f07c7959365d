"""What brings rows to one scale: over a batch, or each row by itself; of each member its own."""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Norm = Literal["batch", "layer"]


class BatchNorm(nn.BatchNorm1d):
    """Batch norm that takes a single row, such as the one edge of a last batch, by the running statistics."""

    def __init__(self, width: int, members: int = 1) -> None:
        super().__init__(members * width)
        self.members = members

    def extra_repr(self) -> str:
        return _size(self, self.members)

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - torch's name
        if self.training and len(input) < 2:
            return F.batch_norm(input, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
        return super().forward(input)


class LayerNorm(nn.LayerNorm):
    """Layer norm, of each member's channels by themselves."""

    def __init__(self, width: int, members: int = 1) -> None:
        super().__init__(members * width)
        self.members = members

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


def make_norm(norm: Norm | None, width: int, members: int = 1) -> nn.Module:
    """A norm of so many channels; what leaves rows as they are where there is none."""
    if norm is None:
        return nn.Identity()
    return BatchNorm(width, members) if norm == "batch" else LayerNorm(width, members)
