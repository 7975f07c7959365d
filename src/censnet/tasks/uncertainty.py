"""What validation rows say of the predictions for one target: calibrated probabilities, intervals and sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor

from censnet.ops.arrays import Array, BoolArray
from censnet.tasks.calibration import ClassCalibration
from censnet.tasks.conformal import Conformal
from censnet.tasks.targets import Target, output_slices

COVERAGE = 0.9  # of the intervals and sets that are scored, unless another is asked for
COVERAGE_METRICS = ("coverage", "width", "set_size")


class TargetUncertainty(BaseModel):
    """How sure the predictions for one target are, from validation rows.

    Args:
        calibration: of the probabilities of its classes; None for a number.
        conformal: of its intervals or sets; None where no validation row has a label, and for very many classes.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    calibration: ClassCalibration | None = None
    conformal: Conformal | None = None

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
        return cls(calibration=calibration, conformal=conformal)

    def refine(self, target: Target, summary: Mapping[str, Tensor], coverage: float | None) -> dict[str, Tensor]:
        """The entries of a summary that change or are added: calibrated `mean`, and `low` and `high`, or `set`."""
        found = dict[str, Tensor]()
        if self.calibration is not None and self.calibration.method != "none":
            p = summary["mean"].double().clamp(min=1e-30).log()
            logits = p[:, 1:] - p[:, :1] if target.kind == "binary" else p
            found["mean"] = probabilities(target, self.calibration(logits)).to(summary["mean"].dtype)
        if coverage is None or self.conformal is None:
            return found
        arrays = {name: values.numpy() for name, values in summary.items()}
        if target.is_number:
            half = torch.from_numpy(self.conformal.half_widths(arrays, coverage))
            return {**found, "low": summary["mean"] - half, "high": summary["mean"] + half}
        return {**found, "set": torch.from_numpy(self.conformal.sets(arrays, coverage))}

    def score(
        self, target: Target, summary: Mapping[str, Tensor], labels: Tensor, exact: Tensor, coverage: float
    ) -> Iterator[tuple[str, float]]:
        """The share of exact labels in their intervals or sets, and the mean width of these, in the user's units.

        Nothing where there is no such label, or where too few validation rows had one.
        """
        if self.conformal is None or not bool(exact.any()) or self.conformal.limit < coverage:
            return
        found = self.refine(target, {name: values[exact] for name, values in summary.items()}, coverage)
        if target.is_number:
            y = labels[exact].double() * target.scale + target.mean
            yield "coverage", float(((found["low"] <= y) & (y <= found["high"])).double().mean())
            yield "width", float((found["high"] - found["low"]).mean())
        else:
            code = labels[exact].long()
            yield "coverage", float(found["set"][torch.arange(len(code)), code].double().mean())
            yield "set_size", float(found["set"].sum(1).double().mean())


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
