"""Features of edges on a scale of decades, beside the features themselves."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from censnet.ops.normalization import by_head

FINE = 1000.0  # values count by their ratio above this fraction of the middle one


class LogFeatures(nn.Module):
    r"""Each feature, and behind all of them :math:`\operatorname{asinh}((x - z) / u)` of each, standardized.

    z is what the number 0 of a column became when it was scaled, and u a small fraction of the middle of training rows.
    A column such as a resistance spans decades, and what it does to its network depends on ratios: most values look
    the same once the column is divided by its standard deviation.

    Args:
        width: of the features.

    Shape:
        (n, width) -> (n, 2 width).

    Example:
        >>> features = LogFeatures(2)
        >>> rows = torch.tensor([[0.01, 1.0], [0.1, 0.0], [1.0, 0.0], [10.0, 1.0], [100.0, 0.0]])
        >>> features.fit(rows, zero=torch.tensor([0.0, torch.nan]))
        >>> features(rows)[:, 2:].mul(10).round().int().T.tolist()
        [[-14, -7, 0, 7, 14], [0, 0, 0, 0, 0]]
    """

    members = 1

    def __init__(self, width: int) -> None:
        super().__init__()
        self.zero: Tensor
        self.unit: Tensor
        self.mean: Tensor
        self.weight: Tensor
        for name, value in (("zero", 0.0), ("unit", 1.0), ("mean", 0.0), ("weight", 1.0)):
            self.register_buffer(name, torch.full((width,), value))

    def fit(self, rows: Tensor, zero: Tensor) -> None:
        """Take the statistics of these rows; zero is NaN for a feature that is no number."""
        if len(rows) == 0:
            return
        numbers = rows.double() - torch.nan_to_num(zero.double())
        unit = torch.stack([_middle(column.abs()) for column in numbers.unbind(1)]) / FINE
        spread = torch.asinh(numbers / unit)
        deviation = spread.std(0, correction=0)
        weight = torch.where(zero.isnan() | (deviation < 1e-6), 0.0, 1 / deviation.clamp(min=1e-6))
        found = torch.nan_to_num(zero), unit, spread.mean(0), weight
        for buffer, value in zip((self.zero, self.unit, self.mean, self.weight), found, strict=True):
            buffer.copy_(value)

    def forward(self, rows: Tensor) -> Tensor:
        """Append the second features."""
        each = rows.unsqueeze(1).expand(-1, self.members, -1)
        zero, unit, mean, weight = (
            by_head(buffer.unsqueeze(0), self.members) for buffer in (self.zero, self.unit, self.mean, self.weight)
        )
        spread = (torch.asinh((each - zero) / unit) - mean) * weight
        return torch.cat([each, spread.to(each.dtype)], dim=2).flatten(1)


def _middle(sizes: Tensor) -> Tensor:
    """The median of what is positive; 1 where nothing is."""
    some = sizes[sizes > 0]
    return some.median() if len(some) else sizes.new_ones(())
