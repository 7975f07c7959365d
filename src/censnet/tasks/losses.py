"""Losses: of labeled rows and of pseudo-labels, class weights, and the l^p penalty."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from censnet.ops.checks import check_shape
from censnet.tasks.targets import Target, output_slices

RegressionLoss = Literal["squared", "absolute", "huber"]


def row_loss(
    targets: Sequence[Target],
    outputs: Tensor,
    labels: Tensor,
    weight: Tensor | None = None,
    class_weight: Sequence[Tensor | None] | None = None,
    censoring: Tensor | None = None,
    regression_loss: RegressionLoss = "squared",
) -> Tensor:
    r"""The mean loss over all labeled entries of all columns, for each member. (n, M, w), (n, k) -> (M,)

    .. math::
        L = \frac{\sum_{r, c} w_r\, a_{y_{rc}}\, \ell_c(o_{rc}, y_{rc})}{\sum_{r, c} w_r}

    over the rows r and columns c with a label: :math:`\ell` is the cross entropy of a sigmoid (binary) or of a softmax
    (classes), or the squared error of the standardized number, or another loss of it; of a censored number, which is
    known to lie on one side of its label, a prediction on that side costs nothing. Class weights a are not in the
    denominator; those of `balanced_class_weights` have mean 1 there. Without any labeled entry it is 0, and so is its
    gradient.

    Args:
        targets: one for each column of the labels.
        outputs: of the model; the outputs of the targets are concatenated.
        labels: as `Target.encode` gives them; NaN is no label.
        weight: (n, M), how much a row counts for a member, 0 not at all.
        class_weight: for each target, a weight for each class (two for binary), or None.
        censoring: (n, targets), -1 where a number is below its label, 1 where it is above, else 0; None if all are 0.
        regression_loss: of the error of a standardized number, see `number_loss`.
    """
    check_shape("outputs", outputs, (None, None, sum(target.width for target in targets)), "(n, members, width)")
    check_shape("labels", labels, (len(outputs), len(targets)), "(n, targets)")
    if outputs.dtype in (torch.bfloat16, torch.float16):
        outputs = outputs.float()
    known = ~labels.isnan()
    count = label_count(labels, weight)
    class_weight = class_weight if class_weight is not None else [None] * len(targets)
    slices = output_slices(targets)
    each = []  # for each kind of column, the loss of each row and member
    for kind in ("binary", "number"):  # columns with one output each are taken together
        columns = [column for column, t in enumerate(targets) if (t.kind == kind if kind == "binary" else t.is_number)]
        if columns:
            x = _take(outputs, [slices[column].start for column in columns])
            y, there = (_take(values, columns).to(outputs.dtype).unsqueeze(1) for values in (labels, known))
            y = y.nan_to_num()
            if kind == "binary":
                weights = _binary_weights([class_weight[column] for column in columns], y)
                there = there if weights is None else there * weights
                entropy = F.binary_cross_entropy_with_logits(x, y.expand_as(x), reduction="none")
                each.append((entropy * there).sum(2))
            else:
                error = x - y
                if censoring is not None:
                    error = _one_sided(error, _take(censoring, columns).unsqueeze(1))
                each.append((number_loss(error, regression_loss) * there).sum(2))
    for column, (target, part) in enumerate(zip(targets, slices, strict=True)):
        if target.kind == "multiclass":
            each.append(_softmax_entropy(_take(outputs, part), labels[:, column], class_weight[column]))
    total = sum(each[1:], start=each[0])
    total = total.sum(0) if weight is None else (total * weight.to(total.dtype)).sum(0)
    return total / torch.where(count > 0, count, 1)


def number_loss(error: Tensor, kind: RegressionLoss) -> Tensor:
    r"""The loss of an error x: :math:`x^2`, \|x\|, or Huber's :math:`x^2` for \|x\| <= 1 and :math:`2 |x| - 1` beyond.

    The squared error fits means, the absolute one medians, which outliers move less. Huber's is between the two.

    >>> [number_loss(torch.tensor(3.0), kind).item() for kind in ("squared", "absolute", "huber")]
    [9.0, 3.0, 5.0]
    """
    if kind == "squared":
        return error.square()
    if kind == "absolute":
        return error.abs()
    return 2 * F.huber_loss(error, torch.zeros_like(error), reduction="none")


def label_count(labels: Tensor, weight: Tensor | None = None) -> Tensor:
    """The number of labels, or for each member the sum of the weights of their rows. (n, k) -> () or (M,)"""
    known = ~labels.isnan()
    return known.sum() if weight is None else (known.sum(1, keepdim=True) * weight).sum(0)


def soft_label_loss(target: Target, outputs: Tensor, soft_labels: Tensor, weight: Tensor) -> Tensor:
    r"""The cross entropy against pseudo-labels, for each member. (n, M, w), (n, M, C), (n, M) -> (M,)

    .. math::
        L_m = \sum_i w_{im} \Bigl( -\sum_k q_{imk} \log p_{imk} \Bigr)

    where p is the softmax of the outputs or, for a binary target with its one output o, sigmoid(o) and sigmoid(-o).

    Args:
        target: of classes, or binary.
        outputs: of the model, those of the target alone.
        soft_labels: q, the probability of each class; two for a binary target.
        weight: how much each row counts.
    """
    check_shape("outputs", outputs, (None, None, target.width), "(n, members, width)")
    check_shape("soft_labels", soft_labels, (*outputs.shape[:2], len(target.classes)), "(n, members, classes)")
    check_shape("weight", weight, tuple(outputs.shape[:2]), "(n, members)")
    if target.kind == "binary":
        each = F.binary_cross_entropy_with_logits(outputs[..., 0], soft_labels[..., 1], reduction="none")
    else:
        each = -(soft_labels * outputs.log_softmax(2)).sum(2)
    return (weight * each).sum(0)


def _take(values: Tensor, columns: Sequence[int] | slice) -> Tensor:
    """Some of the last channels; as a view where they are contiguous, which is nearly always."""
    if not isinstance(columns, slice):
        run = list(columns) == list(range(columns[0], columns[0] + len(columns)))
        if not run:
            return values[..., columns]
        columns = slice(columns[0], columns[0] + len(columns))
    return values if columns == slice(0, values.shape[-1]) else values[..., columns]


def _one_sided(error: Tensor, censoring: Tensor) -> Tensor:
    """The error where it counts: below a limit that the number is above, above one that it is below."""
    wrong = torch.where(censoring > 0, error.clamp(max=0), error.clamp(min=0))
    return torch.where(censoring == 0, error, wrong)


def _softmax_entropy(outputs: Tensor, labels: Tensor, class_weight: Tensor | None) -> Tensor:
    """The cross entropy of each row, 0 where there is no label. (n, M, C), (n,) -> (n, M)"""
    rows, members, classes = outputs.shape
    code = labels.nan_to_num(nan=-1).long()
    each = F.cross_entropy(
        outputs.reshape(-1, classes), code.repeat_interleave(members), ignore_index=-1, reduction="none"
    ).view(rows, members)
    if class_weight is not None:
        each = each * class_weight.to(each)[code.clamp(min=0)].unsqueeze(1)
    return each


def _binary_weights(class_weight: Sequence[Tensor | None], y: Tensor) -> Tensor | None:
    """The weight of each label that is 0 or 1; None if all are 1. y (n, 1, k)"""
    if all(weight is None for weight in class_weight):
        return None
    pairs = torch.stack([y.new_ones(2) if weight is None else weight.to(y) for weight in class_weight])
    return pairs[:, 0] + y * (pairs[:, 1] - pairs[:, 0])


def balanced_class_weights(targets: Sequence[Target], labels: Tensor) -> list[Tensor | None]:
    """Class weights inverse to the frequency of each class, of mean 1 over the labeled rows; None for numbers.

    With c classes there, a class with n_i of n labels weighs n / (c n_i). One without labels weighs 1.

    Args:
        targets: one for each column of the labels.
        labels: (n, targets), of training rows.
    """
    check_shape("labels", labels, (None, len(targets)), "(n, targets)")
    weights: list[Tensor | None] = []
    for target, column in zip(targets, labels.unbind(1), strict=True):
        if target.is_number:
            weights.append(None)
            continue
        count = torch.bincount(column[~column.isnan()].long(), minlength=len(target.classes)).to(torch.float32)
        weights.append(torch.where(count > 0, count.sum() / ((count > 0).sum() * count), 1.0))
    return weights


def penalty(parameters: Iterable[Tensor], power: float, members: int = 1) -> Tensor:
    """The l^p penalty: the sum of |theta|^p over all parameters, for each member. -> (members,)"""
    if not 1 <= power < float("inf"):
        raise ValueError(f"power is {power}, expected a number from 1: below, the slope at 0 is infinite")
    sizes = [theta.abs().pow(power).reshape(members, -1).sum(1) for theta in parameters]
    return torch.stack(sizes).sum(0) if sizes else torch.zeros(members)
