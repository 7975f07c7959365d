"""What validation rows say of the predictions for one target: calibrated probabilities, intervals and sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor

from censnet.errors import RunError
from censnet.ops.arrays import Array, BoolArray
from censnet.tasks.calibration import ClassCalibration
from censnet.tasks.conformal import Conformal
from censnet.tasks.decision import Decision, Rule, ValidationCurve, confusion, score_decision
from censnet.tasks.targets import Target, output_slices

COVERAGE = 0.9  # of the intervals and sets that are scored, unless another is asked for
COVERAGE_METRICS = ("coverage", "width", "set_size")
MAX_CONFUSION = 12  # classes, above which there is no confusion table
Rows = dict[str, Tensor]


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
