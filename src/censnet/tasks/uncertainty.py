"""Uncertainty of the predictions for one target, from validation rows: probabilities, intervals, sets, a threshold.

The threshold is the probability from which on a row is of the positive class: the one that costs or a recall imply.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Self

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator
from torch import Tensor

from censnet.errors import ArgumentError, RunError, quote
from censnet.ops.arrays import Array, BoolArray
from censnet.option_names import name_option
from censnet.tasks.calibration import ClassCalibration, Conformal
from censnet.tasks.targets import Target, output_slices

MAX_POINTS = 1000  # of a curve
RANKS = (10, 100, 1000)  # the k of precision and recall among the k rows of highest probability
COSTS = ("fp", "fn")
DECISIONS = ("accuracy", "f1", "cost", "precision", "recall")  # metrics that depend on the threshold
COVERAGE = 0.9  # of the intervals and sets that are scored, unless another is asked for
COVERAGE_METRICS = ("coverage", "width", "set_size")
MAX_CONFUSION = 12  # classes, above which there is no confusion table
Rows = dict[str, Tensor]


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


class TargetUncertainty(BaseModel):
    """How sure the predictions for one target are, from validation rows.

    Args:
        calibration: of the probabilities of its classes; None for a number.
        conformal: of its intervals or sets; None where no validation row has a label, and for very many classes.
        curve: of two classes, from which a threshold is chosen; None where no validation row is positive.
        decision: that threshold; None for 0.5.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    calibration: ClassCalibration | None = None
    conformal: Conformal | None = None
    curve: ValidationCurve | None = None
    decision: Decision | None = None

    @classmethod
    def fit(
        cls, target: Target, logits: Array, summary: Mapping[str, Array], labels: Array, exact: BoolArray
    ) -> TargetUncertainty:
        """From validation rows.

        Args:
            target: of the labels.
            logits: the combined outputs of the members. (n, target.width)
            summary: the predictions of these rows, by `tasks.predictions.summarize`.
            labels: as `Target.encode` gives them. (n,)
            exact: which labels are known and not censored. (n,)
        """
        calibration = None if target.is_number else ClassCalibration.fit(logits, labels)
        conformal = None if target.is_wide else Conformal.fit(target, summary, labels, exact)
        found = cls(calibration=calibration, conformal=conformal)
        if target.kind != "binary" or not exact.any():
            return found
        p = calibrate([target], [found], torch.from_numpy(logits[exact])).double().sigmoid().squeeze(1).numpy()
        return found.model_copy(update={"curve": ValidationCurve.fit(p, labels[exact] > 0.5)})

    @property
    def threshold(self) -> float:
        """The probability from which on a row is of the positive class."""
        return 0.5 if self.decision is None else self.decision.threshold

    def decide(self, target: Target, rule: Rule | None) -> TargetUncertainty:
        """The same with the threshold that a rule implies on validation rows; without one, 0.5."""
        if rule is None:
            return self.model_copy(update={"decision": None})
        if self.curve is None:
            raise RunError(
                f"{target.name} is {target.classes[1]} in no validation row, expected some to choose a threshold by"
            )
        return self.model_copy(update={"decision": Decision(threshold=self.curve.threshold(rule), rule=rule)})

    def refine(self, target: Target, summary: Mapping[str, Tensor], coverage: float | None) -> dict[str, Tensor]:
        """The entries of a summary that change or are added: calibrated `mean`, and `low` and `high`, or `set`.

        With a threshold of its own, `positive` says which rows are of the positive class.
        """
        found = dict[str, Tensor]()
        if self.calibration is not None and self.calibration.method != "none":
            p = summary["mean"].double().clamp(min=1e-30).log()
            logits = p[:, 1:] - p[:, :1] if target.kind == "binary" else p
            found["mean"] = probabilities(target, self.calibration(logits)).to(summary["mean"].dtype)
        if self.decision is not None:
            found["positive"] = found.get("mean", summary["mean"])[:, 1] >= self.decision.threshold
        if coverage is None or self.conformal is None:
            return found
        arrays = {name: values.numpy() for name, values in summary.items()}
        if target.is_number:
            half = torch.from_numpy(self.conformal.half_widths(arrays, coverage))
            return {**found, "low": summary["mean"] - half, "high": summary["mean"] + half}
        return {**found, "set": torch.from_numpy(self.conformal.sets(arrays, coverage))}

    def examine(self, target: Target, summary: Mapping[str, Tensor], labels: Tensor, coverage: float) -> Rows:
        """For each row: the probability or the class that is predicted, and whether the label is inside, and how wide.

        The latter two only where so many validation rows had a label that the coverage can be promised.
        """
        found = self.refine(target, summary, coverage)
        p, rows = found.get("mean", summary["mean"]), Rows()
        if target.kind == "binary":
            rows["p"] = p[:, 1]
        elif target.kind == "multiclass":
            rows["class"] = p.argmax(1)
        if self.conformal is None or self.conformal.limit < coverage:
            return rows
        if target.is_number:
            y = labels.double() * target.scale + target.mean
            return rows | {"inside": (found["low"] <= y) & (y <= found["high"]), "size": found["high"] - found["low"]}
        inside = found["set"][torch.arange(len(labels)), labels.long()]
        return rows | {"inside": inside, "size": found["set"].sum(1)}

    def score(self, target: Target, rows: Rows, labels: Tensor) -> Iterator[tuple[str, float]]:
        """Metrics of examined rows: of the decision between two classes, confusion, coverage and mean width."""
        if "inside" in rows:
            yield "coverage", float(rows["inside"].double().mean())
            yield ("width" if target.is_number else "set_size"), float(rows["size"].double().mean())
        if "p" in rows:
            yield from score_decision(rows["p"].numpy(), labels.numpy() > 0.5, self.decision)
        elif "class" in rows and len(target.classes) <= MAX_CONFUSION:
            yield from confusion(labels.long().numpy(), rows["class"].numpy(), len(target.classes))


def probabilities(target: Target, outputs: Tensor) -> Tensor:
    """Probability of each class: (..., target.width) -> (..., classes).

    >>> sick = Target(level="node", column="sick", kind="binary", classes=["no", "yes"])
    >>> probabilities(sick, torch.tensor([[0.0], [2.0]])).round(decimals=3)
    tensor([[0.5000, 0.5000],
            [0.1190, 0.8810]])
    """
    if target.kind == "binary":
        return torch.cat([(-outputs).sigmoid(), outputs.sigmoid()], dim=-1)
    return outputs.softmax(-1)


def calibrate(targets: Sequence[Target], uncertainty: Sequence[TargetUncertainty], outputs: Tensor) -> Tensor:
    """Combined outputs with calibrated logits. (n, width) -> (n, width)"""
    if all(each.calibration is None or each.calibration.method == "none" for each in uncertainty):
        return outputs
    parts = [outputs[:, part] for part in output_slices(targets)]
    found = [
        part if each.calibration is None else each.calibration(part)
        for part, each in zip(parts, uncertainty, strict=True)
    ]
    return torch.cat(found, dim=1)
