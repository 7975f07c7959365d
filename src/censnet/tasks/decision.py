"""The probability from which on a row is of the positive class: the one that costs or a recall imply on validation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator

from censnet.errors import ArgumentError, quote
from censnet.ops.arrays import Array, BoolArray
from censnet.option_names import name_option

MAX_POINTS = 1000  # of a curve
RANKS = (10, 100, 1000)  # the k of precision and recall among the k rows of highest probability
COSTS = ("fp", "fn")
DECISIONS = ("accuracy", "f1", "cost", "precision", "recall")  # metrics that depend on the threshold


class Rule(BaseModel):
    """What a threshold is chosen for: the least cost, or a recall with as few false positives as possible.

    Args:
        fp, fn: the cost of a false positive and of a false negative.
        recall: the share of rows of the positive class that are to be found.

    Example:
        >>> print(Rule(fp=1, fn=20), Rule(recall=0.9))
        cost fp=1,fn=20 recall 0.9
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    fp: float = Field(0.0, ge=0, allow_inf_nan=False)
    fn: float = Field(0.0, ge=0, allow_inf_nan=False)
    recall: float | None = Field(None, gt=0, le=1)

    @classmethod
    def of(cls, cost: Mapping[str, float] | None, recall: float | None) -> Rule | None:
        """The rule that a user asks for, if any."""
        if recall is None and not cost:
            return None
        if recall is not None and cost:
            both = f"{name_option('--cost')} and {name_option('--recall')}"
            raise ArgumentError(f"{both} are both given, expected one: each implies a threshold")
        if recall is not None:
            if not 0 < recall <= 1:
                raise ArgumentError(f"{name_option('--recall')} is {recall:g}, expected more than 0, at most 1")
            return cls(recall=recall)
        given = dict(cost or {})
        if set(given) != set(COSTS) or not all(0 < value < float("inf") for value in given.values()):
            found = ",".join(f"{name}={value:g}" for name, value in given.items())
            raise ArgumentError(f"{name_option('--cost')} is {quote(found)}, expected fp and fn, each more than 0")
        return cls(**given)

    def __str__(self) -> str:
        return f"cost fp={self.fp:g},fn={self.fn:g}" if self.recall is None else f"recall {self.recall:g}"


class ValidationCurve(BaseModel):
    """How many validation rows have at least a probability, and how many of these are positive.

    Args:
        probability: in descending order.
        rows, hits: those with at least this probability, and the positive ones of them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    probability: list[FiniteFloat] = Field(max_length=MAX_POINTS)
    rows: list[int]
    hits: list[int]

    @model_validator(mode="after")
    def _is_a_curve(self) -> Self:
        if not len(self.probability) == len(self.rows) == len(self.hits) > 0:
            raise ValueError("probability, rows and hits have other lengths")
        if np.any(np.diff(self.probability) >= 0) or np.any(np.diff(self.rows) <= 0) or np.any(np.diff(self.hits) < 0):
            raise ValueError("probability, rows or hits are not in order")
        return self

    @classmethod
    def fit(cls, p: Array, positive: BoolArray) -> ValidationCurve | None:
        """From labeled validation rows; None where none is positive."""
        if not positive.any():
            return None
        order = np.argsort(-p, kind="stable")
        p, hits = p[order].astype(np.float64), np.cumsum(positive[order])
        last = np.flatnonzero(np.append(np.diff(p) < 0, True))  # of equal probabilities
        last = last[np.unique(np.linspace(0, len(last) - 1, min(len(last), MAX_POINTS)).round().astype(np.int64))]
        return cls(probability=p[last].tolist(), rows=(last + 1).tolist(), hits=hits[last].tolist())

    def threshold(self, rule: Rule) -> float:
        """The probability from which on a row is positive; it lies between two of the curve.

        >>> curve = ValidationCurve(probability=[0.9, 0.5, 0.2], rows=[1, 2, 4], hits=[1, 1, 2])
        >>> curve.threshold(Rule(recall=0.5)), curve.threshold(Rule(recall=0.9)), curve.threshold(Rule(fp=1, fn=9))
        (0.7, 0.1, 0.1)
        """
        rows, hits = (np.array([0, *values]) for values in (self.rows, self.hits))
        if rule.recall is None:
            best = int(np.argmin(rule.fp * (rows - hits) + rule.fn * (hits[-1] - hits)))
        else:
            best = int(np.argmax(hits >= rule.recall * hits[-1] - 1e-9))
        p = [1.0, *self.probability, 0.0]
        return float(f"{(p[best] + p[best + 1]) / 2:.9g}") if best else 1.0


class Decision(BaseModel):
    """The threshold that `predict` uses, and the rule that it was chosen by."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    threshold: float = Field(gt=0, le=1)
    rule: Rule


def score_decision(
    p: Array, positive: BoolArray, decision: Decision | None, every: bool = False
) -> Iterator[tuple[str, float]]:
    """The confusion table of two classes, what follows from it, and precision and recall of the likeliest k rows.

    Args:
        p: probabilities of the positive class.
        positive: which rows are of it.
        decision: the threshold and its rule; None is 0.5.
        every: whether accuracy and F1 are given for 0.5, too, where other metrics have them.
    """
    chosen = p >= (0.5 if decision is None else decision.threshold)
    yield from confusion(positive.astype(np.int64), chosen.astype(np.int64), 2)
    hits, total = int((chosen & positive).sum()), int(positive.sum())
    if chosen.any():
        yield "precision", hits / int(chosen.sum())
    if total:
        yield "recall", hits / total
    if every or decision is not None:
        yield "accuracy", float((chosen == positive).mean())
        yield "f1", 2 * hits / max(total + int(chosen.sum()), 1)
    if decision is not None and decision.rule.recall is None:
        missed, false = total - hits, int(chosen.sum()) - hits
        yield "cost", (decision.rule.fp * false + decision.rule.fn * missed) / len(p)
    found = positive[np.argsort(-p, kind="stable")]
    for k in RANKS:
        if k < len(p) and total:
            yield f"precision@{k}", float(found[:k].mean())
            yield f"recall@{k}", float(found[:k].sum() / total)


def confusion(labels: Array, predicted: Array, classes: int) -> Iterator[tuple[str, float]]:
    """`confusion_I_J`: the number of rows of class I that are predicted to be of class J, by their numbers."""
    counts = np.bincount(labels * classes + predicted, minlength=classes**2)
    for number, value in enumerate(counts.tolist()):
        yield f"confusion_{number // classes}_{number % classes}", float(value)
