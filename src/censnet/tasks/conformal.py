r"""Split conformal prediction: intervals of numbers and sets of classes that hold the label with a stated frequency.

Of n validation rows each has a score of how unlike its label the prediction is. With a coverage of c, a new row has all
labels whose score is at most the :math:`\lceil (n + 1) c \rceil`-th smallest of them. If the row and the validation
rows are exchangeable, the label is among them with a probability of at least c.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, NonNegativeFloat, model_validator

from censnet.ops.arrays import Array, BoolArray
from censnet.tasks.targets import Target

MAX_SCORES = 2000  # that are stored


class Conformal(BaseModel):
    r"""The scores of validation rows for one target.

    The score of a number is :math:`|y - \hat y| / (s + s_0)`, where s is the standard deviation over the members of an
    ensemble before clipping and :math:`s_0` its median over validation rows; of a single model :math:`|y - \hat y|`.
    Censored labels have none. The score of a class is :math:`-\log p_y`, without calibration; of two classes each has
    its own list, so that the coverage holds for the rare one too.

    Args:
        scores: in ascending order; of many, evenly spaced ones.
        rows: how many there are.
        floor: :math:`s_0`; None for a single model, and for classes.

    Example:
        >>> Conformal(scores=[[1.0, 2.0, 3.0, 4.0]], rows=[4]).quantiles(0.5), Conformal(scores=[[1.0]], rows=[1]).limit
        ([3.0], 0.5)
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    scores: list[list[FiniteFloat]]
    rows: list[int]
    floor: NonNegativeFloat | None = Field(None, allow_inf_nan=False)

    @model_validator(mode="after")
    def _check_scores(self) -> Self:
        if not 1 <= len(self.scores) <= 2 or len(self.rows) != len(self.scores):
            raise ValueError("scores and rows have other lengths than one, or two of two classes")
        for values, rows in zip(self.scores, self.rows, strict=True):
            if len(values) != min(rows, MAX_SCORES) or any(b < a for a, b in pairwise(values)):
                raise ValueError("scores are not in order, or not as many as there are rows")
        return self

    @property
    def limit(self) -> float:
        """The highest coverage that so few rows can show: n / (n + 1)."""
        return max(rows / (rows + 1) for rows in self.rows)

    def quantiles(self, coverage: float) -> list[float]:
        """The greatest score of a label that is among those given, for each list; infinite where there are too few."""
        found = []
        for values, rows in zip(self.scores, self.rows, strict=True):
            rank = math.ceil(round((rows + 1) * coverage, 9))
            found.append(math.inf if rank > rows else values[max(math.ceil(rank * len(values) / rows), 1) - 1])
        return found

    @classmethod
    def fit(cls, target: Target, summary: Mapping[str, Array], labels: Array, exact: BoolArray) -> Conformal | None:
        """From labeled validation rows; None if there is no row.

        Args:
            target: of the labels.
            summary: the predictions of these rows, by `tasks.predictions.summarize`.
            labels: (n,), as `Target.encode` gives them.
            exact: which labels are known and not censored. (n,)
        """
        if not exact.any():
            return None
        y, known = labels[exact], {name: values[exact] for name, values in summary.items()}
        if target.is_number:
            floor = float(np.median(known["std"])) if "std" in known else None
            residual = np.abs(y.astype(np.float64) * target.scale + target.mean - known["mean"])
            spread = _spread(known, floor)
            lists = [residual / np.maximum(spread, np.finfo(np.float64).tiny) if floor else residual]
            floor = floor or None
        else:
            floor, code = None, y.astype(np.int64)
            scores = _class_scores(known["mean"])[np.arange(len(code)), code]
            lists = [scores[code == each] for each in (0, 1)] if target.kind == "binary" else [scores]
        rows = [len(each) for each in lists]
        return cls(scores=[_thin(np.sort(each)) for each in lists], rows=rows, floor=floor)

    def half_widths(self, summary: Mapping[str, Array], coverage: float) -> Array:
        """Half the width of the interval of each number. (n,)"""
        found: Array = self.quantiles(coverage)[0] * _spread(summary, self.floor)
        return found

    def sets(self, summary: Mapping[str, Array], coverage: float) -> BoolArray:
        """Which classes are in the set of each row; the likeliest one always is. (n, classes)"""
        p = summary["mean"]
        found: BoolArray = _class_scores(p) <= np.array(self.quantiles(coverage))
        found[np.arange(len(p)), p.argmax(1)] = True
        return found


def _spread(summary: Mapping[str, Array], floor: float | None) -> Array:
    """By what residuals are divided."""
    mean = summary["mean"]
    return np.ones(len(mean)) if floor is None else summary["std"].astype(np.float64) + floor


def _class_scores(p: Array) -> Array:
    found: Array = -np.log(p.astype(np.float64).clip(min=1e-300))
    return found


def _thin(values: Array) -> list[float]:
    """At most MAX_SCORES of them, each as great as all that it stands for."""
    kept = min(len(values), MAX_SCORES)
    ranks = np.ceil(np.arange(1, kept + 1) * len(values) / kept).astype(np.int64) if kept else np.empty(0, np.int64)
    return [float(f"{value:.9g}") for value in values[ranks - 1]]
