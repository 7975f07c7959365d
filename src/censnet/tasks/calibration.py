"""Calibration of class probabilities: temperature or isotonic scaling of logits, chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal, Self

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator
from scipy.special import log_expit, log_softmax
from torch import Tensor

from censnet.ops.arrays import Array, BoolArray
from censnet.text import count

Method = Literal["none", "temperature", "isotonic", "isotonic-top"]
MIN_ROWS = 50  # labeled validation rows, below which probabilities are left as they are
MIN_OF_CLASS = 5  # of each of two classes
FOLDS = 5
MAX_ROWS = 20_000  # validation rows that are used
MAX_KNOTS = 200
_LOWEST = 1e-15  # of a probability in float64
_AHEAD = 1e-4  # of the second likeliest class, in log odds: more than float32 rounds


class ClassCalibration(BaseModel):
    """An increasing function of the logits of one target, after which its probabilities are those of validation rows.

    It changes neither the order of rows by the logit of two classes, nor which of many classes is the likeliest.

    Args:
        method: `temperature` divides logits by a number. `isotonic` is the centered isotonic regression of labels on
            logits, of many classes on the logits of each against the rest (and then normalized). `isotonic-top`, of
            many classes, then does the same to the probability of the likeliest class, from whether it is right; those
            of the others keep their ratios.
        temperature: that number.
        knots: of the isotonic regression: pairs of a logit and what it becomes, both increasing. Between them it is
            linear, and beyond them it has slope 1.
        top: the same of the likeliest class.
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
    top: list[tuple[FiniteFloat, FiniteFloat]] = Field(default_factory=list, max_length=MAX_KNOTS)
    rows: int = Field(0, ge=0)
    log_loss: dict[Method, FiniteFloat] = Field(default_factory=dict)
    reason: str = ""

    @model_validator(mode="after")
    def _knots_increase(self) -> Self:
        needed = {"isotonic": ["knots"], "isotonic-top": ["knots", "top"]}.get(self.method, [])
        for name in needed:
            if not getattr(self, name):
                raise ValueError(f"{name} is empty, expected some for {self.method}")
        if any(b[0] <= a[0] or b[1] <= a[1] for knots in (self.knots, self.top) for a, b in pairwise(knots)):
            raise ValueError("knots do not increase")
        return self

    def __call__(self, logits: Tensor) -> Tensor:
        """Calibrated logits: (n, 1) of the positive one of two classes, or (n, classes)."""
        if self.method == "none":
            return logits
        if self.method == "temperature":
            return logits / self.temperature
        x = logits.double().numpy()
        if logits.shape[1] == 1:
            return torch.from_numpy(_interpolate(self.knots, x)).to(logits.dtype)
        found = log_expit(_interpolate(self.knots, _against_rest(x)))
        if self.method == "isotonic-top":
            found = self._with_top(found)
        return torch.from_numpy(found).to(logits.dtype)

    def _with_top(self, logits: Array) -> Array:
        """Log probabilities where that of the likeliest class is calibrated, which it stays by at least `_AHEAD`."""
        log_p, row = log_softmax(logits, axis=1), np.arange(len(logits))
        best, against = log_p.argmax(1), _against_rest(logits)
        own = _interpolate(self.top, against[row, best])
        others = log_p - np.log((-np.expm1(log_p[row, best])).clip(_LOWEST))[:, None]  # among themselves
        others[row, best] = -np.inf
        own = np.maximum(own, others.max(1) + _AHEAD)
        found: Array = others + log_expit(-own)[:, None]
        found[row, best] = log_expit(own)
        return found

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
        methods = [method for method in _FIT if method != "isotonic-top" or x.shape[1] > 1]
        losses = {method: np.empty(len(y)) for method in methods}
        for method, own in losses.items():
            for number in range(FOLDS):
                train, rest = fold != number, fold == number
                own[rest] = row_log_loss(_FIT[method](x[train], y[train])(torch.from_numpy(x[rest])).numpy(), y[rest])
        mean = {method: float(own.mean()) for method, own in losses.items()}
        chosen = min(mean, key=mean.__getitem__)
        reason = "" if chosen != "none" else "neither scaling lowers the log loss"
        return _FIT[chosen](x, y).model_copy(update={"rows": len(y), "log_loss": mean, "reason": reason})

    def __str__(self) -> str:
        how = f"temperature {self.temperature:.3g}" if self.method == "temperature" else self.method
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
    from scipy.optimize import minimize_scalar  # a moment, for which who only predicts shall not wait

    found = minimize_scalar(lambda log: row_log_loss(x / np.exp(log), y).mean(), bounds=(-3, 3), method="bounded")
    return ClassCalibration(method="temperature", temperature=float(np.exp(found.x)))


def _fit_isotonic(x: Array, y: Array) -> ClassCalibration:
    """Centered isotonic regression: each level set of the isotonic one is a knot, at its mean logit.

    A level set of n rows of which all, or none, are of the class counts as if half a row more were not.
    """
    if x.shape[1] == 1:
        return ClassCalibration(method="isotonic", knots=_knots(x[:, 0], y == 1))
    hit = y[:, None] == np.arange(x.shape[1])
    return ClassCalibration(method="isotonic", knots=_knots(_against_rest(x).ravel(), hit.ravel()))


def _fit_isotonic_top(x: Array, y: Array) -> ClassCalibration:
    """The isotonic regression, and one of whether the likeliest class is right on its logit against the rest."""
    first = _fit_isotonic(x, y)
    logits = first(torch.from_numpy(x)).numpy()
    best = logits.argmax(1)
    top = _knots(_against_rest(logits)[np.arange(len(y)), best], best == y)
    return first.model_copy(update={"method": "isotonic-top", "top": top})


def _knots(at: Array, hit: BoolArray) -> list[tuple[float, float]]:
    """Logits, and what the isotonic regression of whether something is true on them says."""
    from sklearn.isotonic import IsotonicRegression  # as above

    order = np.argsort(at, kind="stable")
    at, true = at[order], hit[order].astype(np.float64)
    level = IsotonicRegression().fit_transform(at, true)
    start = np.flatnonzero(np.diff(level, prepend=-1.0) > 0)
    rows = np.diff(np.append(start, len(at)))
    center, hits = np.add.reduceat(at, start) / rows, np.add.reduceat(true, start)
    p = np.clip(hits, 0.5, rows - 0.5) / rows
    value = np.maximum.accumulate(np.log(p / (1 - p).clip(_LOWEST)))
    few = np.unique(np.linspace(0, len(value) - 1, min(len(value), MAX_KNOTS)).round().astype(np.int64))
    knots: list[tuple[float, float]] = []
    for one, other in zip(center[few].tolist(), value[few].tolist(), strict=True):
        if not knots or (one > knots[-1][0] and other > knots[-1][1]):
            knots.append((one, other))
    return knots


def _interpolate(knots: Sequence[tuple[float, float]], x: Array) -> Array:
    at, value = (np.array(side) for side in zip(*knots, strict=True))
    found: Array = np.interp(x, at, value) + (x - np.clip(x, at[0], at[-1]))
    return found


_FIT: dict[Method, Callable[[Array, Array], ClassCalibration]] = {
    "none": _fit_none,
    "temperature": _fit_temperature,
    "isotonic": _fit_isotonic,
    "isotonic-top": _fit_isotonic_top,
}


def _against_rest(logits: Array) -> Array:
    """The logit of each class against all others: log p - log(1 - p). (n, classes)"""
    log_p = log_softmax(logits, axis=1)
    found: Array = log_p - np.log((-np.expm1(log_p)).clip(_LOWEST))
    return found
