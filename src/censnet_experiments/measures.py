"""How good many networks are, on the device and all at once; scikit-learn takes one at a time, on the host."""

from __future__ import annotations

import torch
from torch import Tensor


def area_under_curve(scores: Tensor, labels: Tensor, chosen: Tensor) -> Tensor:
    """The area under the ROC curve of each task, its mean over the tasks in which both classes occur. -> (M,)

    It is the share of pairs of a positive and a negative row in which the positive has the higher score, equal scores
    counting half. Members without any such task get NaN.

    Args:
        scores: (M, rows, tasks)
        labels: (rows, tasks), 0 or 1, NaN for none.
        chosen: (M, rows), the rows that count for each member.

    Example:
        >>> scores = torch.tensor([[[0.1], [0.4], [0.35], [0.8]]])
        >>> labels = torch.tensor([[0.0], [0.0], [1.0], [1.0]])
        >>> area_under_curve(scores, labels, torch.ones(1, 4, dtype=torch.bool))
        tensor([0.7500])
    """
    score = scores.transpose(1, 2).contiguous()  # (M, tasks, rows)
    label, there = labels.t().contiguous(), chosen.unsqueeze(1)
    positive, negative = ((label == value) & there for value in (1, 0))
    ordered = torch.where(negative, score, torch.inf).sort(dim=2).values.contiguous()
    below, to = (torch.searchsorted(ordered, score, right=right) for right in (False, True))
    wins = (torch.where(positive, below + to, 0).sum(2) / 2).to(score.dtype)
    area = wins / (positive.sum(2) * negative.sum(2))  # 0 / 0 where a class is missing
    return area.nanmean(1)


def root_mean_square(errors: Tensor, chosen: Tensor) -> Tensor:
    """The root of the mean square of the chosen rows' errors. (M, rows), (M, rows) -> (M,)

    >>> root_mean_square(torch.tensor([[3.0, 4.0, 9.0]]), torch.tensor([[True, True, False]]))
    tensor([3.5355])
    """
    square = torch.where(chosen, errors.square(), 0)
    return (square.sum(1) / chosen.sum(1)).sqrt()
