"""Calibration of class probabilities: temperature or isotonic scaling of logits, chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Self, get_args

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator
from scipy.optimize import minimize_scalar
from scipy.special import log_expit, log_softmax
from sklearn.isotonic import IsotonicRegression
from torch import Tensor

from censnet.ops.arrays import Array
from censnet.text import count

Method = Literal["none", "temperature", "isotonic"]
MIN_ROWS = 50  # labeled validation rows, below which probabilities are left as they are
MIN_OF_CLASS = 5  # of each of two classes
FOLDS = 5
MAX_ROWS = 20_000  # validation rows that are used
MAX_KNOTS = 200
_LOWEST = 1e-15  # of a probability in float64


class ClassCalibration(BaseModel):
    """An increasing function of the logits of one target, after which its probabilities are those of validation rows.

    It changes neither the order of rows by the logit of two classes, nor which of many classes is the likeliest.

    Args:
        method: `temperature` divides logits by a number. `isotonic` is the centered isotonic regression of labels on
            logits, of many classes on the logits of each against the rest (and then normalized).
        temperature: that number.
        knots: of the isotonic regression: pairs of a logit and what it becomes, both increasing. Between them it is
            linear, and beyond them it has slope 1.
        rows: the number of validation rows that it was fitted on.
        log_loss: of each method on these rows, cross-validated.
        reason: why there is none, where there is none.

    Example:
        >>> half = ClassCalibration(method="temperature", temperature=2.0)
        >>> half(torch.tensor([[4.0], [-1.0]]))
        tensor([[ 2.0000],
                [-0.5000]])
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    method: Method = "none"
    temperature: float = Field(1.0, gt=0, allow_inf_nan=False)
    knots: list[tuple[FiniteFloat, FiniteFloat]] = Field(default_factory=list, max_length=MAX_KNOTS)
    rows: int = Field(0, ge=0)
    log_loss: dict[Method, FiniteFloat] = Field(default_factory=dict)
    reason: str = ""

    @model_validator(mode="after")
    def _knots_increase(self) -> Self:
        if self.method == "isotonic" and not self.knots:
            raise ValueError("knots is empty, expected some for isotonic")
        if any(b[0] <= a[0] or b[1] <= a[1] for a, b in zip(self.knots, self.knots[1:], strict=False)):
            raise ValueError("knots do not increase")
        return self

    def __call__(self, logits: Tensor) -> Tensor:
        """Calibrated logits: (n, 1) of the positive one of two classes, or (n, classes)."""
        if self.method == "none":
            return logits
        if self.method == "temperature":
            return logits / self.temperature
        x = logits.double()
        if logits.shape[1] == 1:
            return self._interpolate(x).to(logits.dtype)
        return F.logsigmoid(self._interpolate(torch.from_numpy(_against_rest(x.numpy())))).to(logits.dtype)

    def _interpolate(self, x: Tensor) -> Tensor:
        at, value = (np.array(side) for side in zip(*self.knots, strict=True))
        inside = np.interp(x.numpy(), at, value)
        beyond = x.numpy() - np.clip(x.numpy(), at[0], at[-1])
        return torch.from_numpy(inside + beyond)

    @classmethod
    def fit(cls, logits: Array, labels: Array) -> ClassCalibration:
        """Fit on validation rows the method that has the least log loss on rows that it was not fitted on.

        Nothing is changed where there are too few rows, or where both methods are worse than nothing.

        Args:
            logits: (n, 1) or (n, classes).
            labels: the class of each row, NaN for none. (n,)
        """
        known = np.flatnonzero(~np.isnan(labels))
        shuffled = np.random.default_rng(0).permutation(known)[:MAX_ROWS]
        x, y = logits[shuffled].astype(np.float64), labels[shuffled].astype(np.int64)
        rarest = int(np.bincount(y, minlength=2).min()) if x.shape[1] == 1 and len(y) else len(y)
        if len(y) < MIN_ROWS or rarest < MIN_OF_CLASS:
            found = f"{count(len(y), 'validation row')}" if len(y) < MIN_ROWS else f"{rarest} of the rarer class"
            least = MIN_ROWS if len(y) < MIN_ROWS else MIN_OF_CLASS
            return cls(rows=len(y), reason=f"{found} with a label, expected at least {least}")
        fold = np.arange(len(y)) % FOLDS
        losses = {method: np.empty(len(y)) for method in get_args(Method)}
        for method, own in losses.items():
            for number in range(FOLDS):
                train, rest = fold != number, fold == number
                own[rest] = row_log_loss(_FIT[method](x[train], y[train])(torch.from_numpy(x[rest])).numpy(), y[rest])
        mean = {method: float(own.mean()) for method, own in losses.items()}
        chosen = min(mean, key=mean.__getitem__)
        reason = "" if chosen != "none" else "neither scaling lowers the log loss"
        return _FIT[chosen](x, y).model_copy(update={"rows": len(y), "log_loss": mean, "reason": reason})

    def __str__(self) -> str:
        how = {"none": "none", "temperature": f"temperature {self.temperature:.3g}", "isotonic": "isotonic"}[
            self.method
        ]
        return f"{how}: {self.reason}" if self.reason else f"{how}, from {count(self.rows, 'validation row')}"


def row_log_loss(logits: Array, labels: Array) -> Array:
    """The log loss of each row: (n, 1) or (n, classes), (n,) -> (n,)."""
    if logits.shape[1] == 1:
        found: Array = log_expit(np.where(labels == 1, logits[:, 0], -logits[:, 0]))
    else:
        found = log_softmax(logits, axis=1)[np.arange(len(labels)), labels]
    return -found


def _fit_none(x: Array, y: Array) -> ClassCalibration:
    return ClassCalibration()


def _fit_temperature(x: Array, y: Array) -> ClassCalibration:
    found = minimize_scalar(lambda log: row_log_loss(x / np.exp(log), y).mean(), bounds=(-3, 3), method="bounded")
    return ClassCalibration(method="temperature", temperature=float(np.exp(found.x)))


def _fit_isotonic(x: Array, y: Array) -> ClassCalibration:
    """Centered isotonic regression: each level set of the isotonic one is a knot, at its mean logit.

    A level set of n rows of which all, or none, are of the class counts as if half a row more were not.
    """
    if x.shape[1] == 1:
        at, hit = x[:, 0], y == 1
    else:
        at, hit = _against_rest(x).ravel(), (y[:, None] == np.arange(x.shape[1])).ravel()
    order = np.argsort(at, kind="stable")
    at, hit = at[order], hit[order].astype(np.float64)
    level = IsotonicRegression().fit_transform(at, hit)
    start = np.flatnonzero(np.diff(level, prepend=-1.0) > 0)
    rows = np.diff(np.append(start, len(at)))
    center, hits = np.add.reduceat(at, start) / rows, np.add.reduceat(hit, start)
    p = np.clip(hits, 0.5, rows - 0.5) / rows
    value = np.maximum.accumulate(np.log(p / (1 - p).clip(_LOWEST)))
    few = np.unique(np.linspace(0, len(value) - 1, min(len(value), MAX_KNOTS)).round().astype(np.int64))
    knots: list[tuple[float, float]] = []
    for one, other in zip(center[few].tolist(), value[few].tolist(), strict=True):
        if not knots or (one > knots[-1][0] and other > knots[-1][1]):
            knots.append((one, other))
    return ClassCalibration(method="isotonic", knots=knots)


_FIT: dict[Method, Callable[[Array, Array], ClassCalibration]] = {
    "none": _fit_none,
    "temperature": _fit_temperature,
    "isotonic": _fit_isotonic,
}


def _against_rest(logits: Array) -> Array:
    """The logit of each class against all others: log p - log(1 - p). (n, classes)"""
    log_p = log_softmax(logits, axis=1)
    found: Array = log_p - np.log((-np.expm1(log_p)).clip(_LOWEST))
    return found
