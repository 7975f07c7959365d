"""Scores of the table `edges`, the same functions for every method: from labels and predictions to metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score

from censnet.data.splits.split_file import PARTS, Split
from censnet.errors import ArgumentError
from censnet.ops.arrays import Array

SCORED = PARTS[1:]
NAMES = {
    "auc": "AUC",
    "ap": "average precision",
    "f1": "F1",
    "accuracy": "accuracy",
    "rmse": "RMSE",
    "mae": "MAE",
    "nrmse": "normalized RMSE",
    "r2": "R²",
}


@dataclass(frozen=True, eq=False)
class Predicted:
    """Labels and predictions of one target in one part of a split.

    Args:
        labels: (n,) numbers, or classes counted from 0.
        values: (n,) numbers or probabilities of class 1, or (n, classes) probabilities.
        rare: of two classes, the one with fewer training rows.
    """

    labels: Array
    values: Array
    rare: int = 1


ByPart = dict[str, Predicted]


@dataclass(frozen=True, eq=False)
class Outcome:
    """Predictions of one method for one task.

    Args:
        predicted: column of each target -> part -> labels and predictions.
        chosen: what was selected on validation rows.
        num_candidates: number of settings that it was selected from.
    """

    predicted: Mapping[str, ByPart]
    chosen: dict[str, float] = field(default_factory=dict)
    num_candidates: int = 1


def by_part(labels: Array, values: Mapping[str, Array], rows: Mapping[str, Array], classes: bool) -> ByPart:
    """Put labels and predictions together.

    Args:
        labels: of all rows.
        values: part -> predictions of its rows.
        rows: part -> its rows.
        classes: whether labels are classes, of which the rarer one of the training rows is noted.
    """
    rare = int(np.mean(labels[rows["train"]] == 1) <= 0.5) if classes else 1
    return {part: Predicted(labels[rows[part]], values[part], rare) for part in SCORED}


def rows_by_part(split: Split) -> dict[str, Array]:
    """Part -> its rows."""
    return {part: rows.numpy() for part, rows in split.parts.items()}


def score_parts(metrics: Sequence[str], found: Mapping[str, Mapping[str, Predicted]]) -> dict[str, float]:
    """The metrics of a record: `METRIC` on test rows and `validation_METRIC` on validation rows.

    Args:
        metrics: of the cell, `METRIC` or `METRIC_COLUMN`.
        found: column of a target -> part -> predictions. A target that a method does not predict is absent, and so are
            its metrics.
    """
    scores = {}
    for name in metrics:
        metric, _, column = name.partition("_")
        column = column or next(iter(found))
        if column not in found:
            continue
        for part, prefix in (("test", ""), ("validation", "validation_")):
            scores[f"{prefix}{name}"] = score(metric, found[column][part])
    return scores


def score(metric: str, found: Predicted) -> float:
    """One metric.

    - `auc`: area under the ROC curve;
    - `ap`, `f1`: average precision, and F1 at a probability of 0.5, of the rarer class of two;
    - `accuracy`: share of rows whose most probable class is right;
    - `rmse`, `mae`: errors of numbers in their unit;
    - `nrmse`: RMSE divided by the standard deviation of the labels of the same rows;
    - `r2`: coefficient of determination, 1 - nrmse^2.

    Example:
        >>> score("nrmse", Predicted(np.array([0.0, 2.0]), np.array([0.5, 2.5])))
        0.5
    """
    labels, values = found.labels, found.values
    if metric in ("auc", "ap", "f1"):
        rare = values if found.rare == 1 else 1 - values
        asked = labels == found.rare
        if metric == "auc":
            return float(roc_auc_score(asked, rare))
        return float(average_precision_score(asked, rare) if metric == "ap" else f1_score(asked, rare > 0.5))
    if metric == "accuracy":
        chosen = values > 0.5 if values.ndim == 1 else values.argmax(1)
        return float(np.mean(chosen == labels))
    error = labels.astype(np.float64) - values
    if metric == "mae":
        return float(np.abs(error).mean())
    if metric in ("rmse", "nrmse", "r2"):
        rmse = float(np.sqrt(np.mean(error**2)))
        normalized = rmse / float(labels.astype(np.float64).std())
        return {"rmse": rmse, "nrmse": normalized, "r2": 1 - normalized**2}[metric]
    raise ArgumentError(f"there is no metric {metric!r}, expected one of {', '.join(NAMES)}")
