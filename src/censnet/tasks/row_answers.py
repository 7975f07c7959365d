"""The prediction for one row, with the columns and numbers of `tasks.predictions`, without a frame around it."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any, cast

import numpy as np
import torch

from censnet.errors import RunError
from censnet.ops.arrays import Array
from censnet.tasks.calibration import ClassCalibration
from censnet.tasks.predictions import SEPARATOR, class_names, prediction_rows
from censnet.tasks.targets import Target, output_slices, target_range
from censnet.tasks.uncertainty import TargetUncertainty

_NONE: frozenset[str] = frozenset()
FARTHEST = -math.log(1e-30)  # of a logit before it is calibrated
DIGITS = 9  # of a number; a float32 has no more


class RowAnswers:
    """Answers in the user's labels and units, for one row after the other.

    Args:
        targets: of the outputs, which are concatenated.
        uncertainty: of each target.
        taken: names that no column may have.
        coverage: of intervals and sets, if they are wanted.
        clip: whether outputs are clipped to the range of training labels.

    Example:
        >>> sick = Target(level="node", column="sick", kind="binary", classes=["no", "yes"])
        >>> RowAnswers([sick])(np.array([[0.0986]], np.float32))
        {'sick_predicted': 'yes', 'sick_p_no': 0.475369..., 'sick_p_yes': 0.524630...}
    """

    def __init__(
        self,
        targets: Sequence[Target],
        uncertainty: Sequence[TargetUncertainty] | None = None,
        taken: Collection[str] = _NONE,
        coverage: float | None = None,
        clip: bool = False,
    ) -> None:
        self.targets, self.coverage, self.taken = targets, coverage, set(taken)
        self.uncertainty = list(uncertainty or [TargetUncertainty()] * len(targets))
        limits = target_range(targets) if clip else None
        self._limits = None if limits is None else limits.numpy()
        self._parts = list(zip(targets, self.uncertainty, output_slices(targets), strict=True))
        self._names = {id(target): class_names(target) for target in targets if not target.is_number}
        self._columns: list[str] | None = None
        self._is_plain = not any(
            target.is_wide or (target.kind == "multiclass" and _is_isotonic(own)) for target, own, _ in self._parts
        )

    def __call__(self, outputs: Array) -> dict[str, Any]:
        """Column -> value, from the outputs of each member. (members, width)"""
        raw = None if self._limits is None else outputs
        clipped = outputs if raw is None else np.clip(outputs, *self._limits)  # type: ignore[misc]
        if self._is_plain:
            values = [value for part in self._parts for value in self._of(part, clipped, raw)]
            if self._columns is None:
                self._columns = list(self._as_frame(clipped, raw))
            found = dict(zip(self._columns, values, strict=True))
        else:
            found = {name: _plain(value) for name, value in self._as_frame(clipped, raw).items()}
        for name, value in found.items():
            if isinstance(value, float) and not np.isfinite(value):
                raise RunError(f"{name} is {value}, expected a finite number: train again, or look at the features")
        return found

    def _as_frame(self, outputs: Array, raw: Array | None) -> dict[str, Any]:
        tensors = [None if each is None else torch.from_numpy(each)[:, None] for each in (outputs, raw)]
        frame = prediction_rows(
            self.targets, tensors[0], self.taken, tensors[1], self.uncertainty, self.coverage  # type: ignore[arg-type]
        )  # fmt: skip
        return {str(name): frame[name].iloc[0] for name in frame}

    def _of(self, part: tuple[Target, TargetUncertainty, slice], outputs: Array, raw: Array | None) -> list[Any]:
        """The values of one target, in the order of its columns."""
        target, own, place = part
        x = outputs[:, place].astype(np.float64)
        if target.is_number:
            return self._number(target, own, x[:, 0], None if raw is None else raw[:, place][:, 0])
        if target.kind == "binary" and len(x) == 1 and self.coverage is None:
            return self._binary(target, own, float(x[0, 0]))
        p = _probabilities(target, x)
        mean = _calibrate(target, own.calibration, p.mean(0))
        names = self._names[id(target)]
        positive = own.decision is not None and mean[1] >= own.decision.threshold
        chosen = int(positive) if own.decision is not None else int(mean.argmax())
        found = [_plain(names[chosen])]
        if self.coverage is not None and own.conformal is not None:
            inside = own.conformal.sets({"mean": p.mean(0)[None]}, self.coverage)[0]
            found.append(SEPARATOR.join(np.array(target.classes, dtype=object)[inside]))
        found += map(_round, mean.tolist())
        return found + (list(map(_round, p.std(0, ddof=1).tolist())) if len(p) > 1 else [])

    def _binary(self, target: Target, own: TargetUncertainty, x: float) -> list[Any]:
        """The values of one of two classes, from the logit of a single member."""
        if own.calibration is not None and own.calibration.method != "none":
            x = _calibrate_logit(own.calibration, min(max(x, -FARTHEST), FARTHEST))
        p = math.exp(-np.logaddexp(0, -x)), math.exp(-np.logaddexp(0, x))
        positive = x > 0 if own.decision is None else p[0] >= own.threshold
        return [_plain(self._names[id(target)][int(positive)]), _round(p[1]), _round(p[0])]

    def _number(self, target: Target, own: TargetUncertainty, x: Array, raw: Array | None) -> list[Any]:
        numbers = x * target.scale + target.mean
        free = numbers if raw is None else raw.astype(np.float64) * target.scale + target.mean
        mean, std = float(numbers.mean()), [float(free.std(ddof=1))] if len(free) > 1 else []
        found: list[Any] = [_round(mean)]
        if self.coverage is not None and own.conformal is not None:
            half = float(own.conformal.half_widths({"mean": numbers[:1], "std": np.array(std)}, self.coverage)[0])
            found += [_round(mean - half), _round(mean + half)]
        found += map(_round, std)
        return found if raw is None else [*found, bool((raw != x.astype(raw.dtype)).any()), _round(float(free.mean()))]


def _is_isotonic(own: TargetUncertainty) -> bool:
    return own.calibration is not None and own.calibration.method == "isotonic"


def _probabilities(target: Target, x: Array) -> Array:
    """The probability of each class, for each member. (members, classes)"""
    if target.kind == "binary":
        both: Array = 1 / (1 + np.exp(np.concatenate([x, -x], 1)))
        return both
    odds = np.exp(x - x.max(1, keepdims=True))
    found: Array = odds / odds.sum(1, keepdims=True)
    return found


def _calibrate(target: Target, calibration: ClassCalibration | None, p: Array) -> Array:
    """Calibrated probabilities; of many classes by temperature alone. (classes,)"""
    if calibration is None or calibration.method == "none":
        return p
    logits = np.log(np.maximum(p, 1e-30))
    if target.kind != "binary":
        return cast(Array, _probabilities(target, (logits / calibration.temperature)[None])[0])
    x = _calibrate_logit(calibration, float(logits[1] - logits[0]))
    return cast(Array, _probabilities(target, np.array([[x]]))[0])


def _calibrate_logit(calibration: ClassCalibration, x: float) -> float:
    if calibration.method == "temperature":
        return x / calibration.temperature
    at, value = zip(*calibration.knots, strict=True)
    return float(np.interp(x, at, value) + x - min(max(x, at[0]), at[-1]))


def _plain(value: Any) -> Any:
    """A value of Python."""
    value = value.item() if isinstance(value, np.generic) else value
    return _round(value) if isinstance(value, float) else value


def _round(x: float) -> float:
    return float(f"{x:.{DIGITS}g}")
