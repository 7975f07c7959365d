"""Linear layers that can have members, and an MLP of them."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from censnet.nn.dropout import Dropout
from censnet.nn.ensemble import batched_linear


def mlp(width: int, hidden_widths: Sequence[int], out_width: int, dropout: float) -> nn.Sequential:
    """Linear layers with ReLU and dropout between them; without `hidden_widths`, one linear layer."""
    parts: list[nn.Module] = []
    for size in hidden_widths:
        parts += [Linear(width, size), nn.ReLU(), Dropout(dropout)]
        width = size
    return nn.Sequential(*parts, Linear(width, out_width))


class Linear(nn.Linear):
    """A linear layer with torch's initialization, which can have members: (M, out, in)."""

    members = 1

    def reset_parameters(self) -> None:
        if self.weight.dim() == 2:
            super().reset_parameters()
        else:
            bound = max(self.in_features, 1) ** -0.5
            nn.init.uniform_(self.weight, -bound, bound)
            nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - torch's name
        if self.members == 1:
            return super().forward(input)
        return batched_linear(input, self.weight.transpose(1, 2), self.bias)
