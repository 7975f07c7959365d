"""The answer that is explained, as one number: log odds of a class, or a number in the user's unit."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from censnet.tasks.targets import Target


def answer_of(target: Target, columns: slice, chosen: int) -> Callable[[Tensor], Tensor]:
    """A function from outputs (B, width) to answers (B,).

    Log odds of the positive class of two, or of the chosen class against all others; a number in the user's unit.

    Args:
        target: what is predicted.
        columns: its outputs.
        chosen: of more than two classes, the one that is explained.

    Example:
        >>> age = Target(level="node", column="age", kind="regression", mean=40.0, scale=10.0)
        >>> answer_of(age, slice(1, 2), 0)(torch.tensor([[9.0, 0.5]]))
        tensor([45.])
    """

    def answer(outputs: Tensor) -> Tensor:
        mine = outputs[:, columns]
        if target.is_number:
            return mine[:, 0] * target.scale + target.mean
        if target.kind == "binary":
            return mine[:, 0]
        others = torch.cat([mine[:, :chosen], mine[:, chosen + 1 :]], dim=1)
        return mine[:, chosen] - others.logsumexp(1)

    return answer


def losses(target: Target, outputs: Tensor, labels: Tensor) -> Tensor:
    """The loss of each row: of a number its absolute error, of a class its negative log likelihood; NaN unlabeled."""
    known = ~labels.isnan()
    if target.is_number:
        return (outputs[:, 0] - labels).abs() * target.scale
    codes = labels.nan_to_num().long()
    if target.kind == "binary":
        found = torch.nn.functional.softplus(torch.where(codes == 1, -outputs[:, 0], outputs[:, 0]))
    else:
        found = -outputs.log_softmax(1).gather(1, codes[:, None])[:, 0]
    return torch.where(known, found, torch.nan)
