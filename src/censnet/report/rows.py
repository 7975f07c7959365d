"""Labels and predictions of each target, read back from the tables of predictions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from censnet.ops.arrays import Array
from censnet.runs.links import LINK
from censnet.tasks.targets import Target
from censnet.tasks.uncertainty import COVERAGE, TargetUncertainty

PARTS = ("train", "validation", "test", "all")  # `all` is other data than those of the training
_TINY = 1e-38  # a probability that was rounded to 0


@dataclass(frozen=True, eq=False)
class TargetRows:
    """The rows of one target: their part, labels and predictions.

    Args:
        target: whose they are.
        part: of each row, its number in `PARTS`; -1 for none.
        labels: as `Target.encode` gives them; NaN is no label.
        predicted: the code of the class, or the number; NaN for a row that cannot be used.
        probability: of each class; None for a number, and where there are very many classes.
        spread: the standard deviation over members, of a number.
        interval: the two ends of that of a number, where validation rows give one.
        censoring: as `Target.encode_censoring` gives it.
        threshold: the probability from which on a row is of the positive class of two.
        rule: what it was chosen for; empty for 0.5.

    Shape:
        all (n,), probability (n, classes).
    """

    target: Target
    part: Array
    labels: Array
    predicted: Array
    probability: Array | None = None
    spread: Array | None = None
    interval: tuple[Array, Array] | None = None
    censoring: Array | None = None
    threshold: float = 0.5
    rule: str = ""

    def of_part(self, part: str) -> Array:
        """The rows of a part that have a label and a prediction."""
        there = (self.part == PARTS.index(part)) & ~np.isnan(self.labels) & ~np.isnan(self.predicted)
        return np.flatnonzero(there if self.censoring is None else there & (self.censoring == 0))

    @property
    def parts(self) -> list[str]:
        """The parts that have labeled rows."""
        return [part for part in PARTS if len(self.of_part(part))]

    @property
    def outputs(self) -> Array | None:
        """The outputs of the model, from which metrics are computed; None where the table does not determine them."""
        target = self.target
        if target.is_number:
            return ((self.predicted - target.mean) / target.scale)[:, None]
        if self.probability is None:
            return None
        log_p = np.log(np.maximum(self.probability, _TINY))
        return log_p[:, 1:] - log_p[:, :1] if target.kind == "binary" else log_p

    @property
    def loss(self) -> Array:
        """How far each prediction is from its label: -log p of the label, or the absolute error."""
        if self.probability is None:
            difference = np.abs(self.predicted - self.labels)
            return difference if self.target.is_number else np.where(np.isnan(difference), np.nan, difference > 0)
        code = np.nan_to_num(self.labels).astype(np.int64)
        p = np.maximum(self.probability[np.arange(len(code)), code], _TINY)
        return np.where(np.isnan(self.labels) | np.isnan(self.predicted), np.nan, -np.log(p))


def read_rows(
    frame: pd.DataFrame, targets: Sequence[Target], sure: Sequence[TargetUncertainty] = ()
) -> list[TargetRows]:
    """The rows of each target of a level.

    Args:
        frame: its table of predictions, with labels and `split`.
        targets: of the level.
        sure: what validation rows say of each, from which numbers get intervals.
    """
    part = _parts(frame["split"])
    names = list(map(str, frame.columns))
    blocks, found = _find_blocks(names, targets), list[TargetRows]()
    for target, own in zip(targets, sure or [TargetUncertainty()] * len(targets), strict=True):
        if target.column not in blocks:
            continue
        label, columns = blocks[target.column]
        rows = _read_target(frame, target, part, label, columns)
        found.append(_with_intervals(rows, own) if target.is_number else _with_threshold(rows, own))
    return found


def read_links(frame: pd.DataFrame) -> TargetRows:
    """The held-out links, and the pairs without one, as rows of two classes."""
    p = frame["link_p"].to_numpy(np.float32).astype(np.float64)  # as the model gave it, whatever its digits in a file
    labels = frame["link"].to_numpy(np.float64)
    probability = np.stack([1 - p, p], axis=1)
    return TargetRows(LINK, _parts(frame["split"]), labels, (p > 0.5).astype(np.float64), probability)


def _with_intervals(rows: TargetRows, own: TargetUncertainty) -> TargetRows:
    """The same rows with the intervals that `predict` gives numbers with `COVERAGE`."""
    if own.conformal is None or own.conformal.limit < COVERAGE:
        return rows
    there = ~np.isnan(rows.predicted)
    summary = {"mean": rows.predicted[there]} | ({} if rows.spread is None else {"std": rows.spread[there]})
    half = np.full(len(there), np.nan)
    half[there] = own.conformal.half_widths(summary, COVERAGE)
    return replace(rows, interval=(rows.predicted - half, rows.predicted + half))


def _with_threshold(rows: TargetRows, own: TargetUncertainty) -> TargetRows:
    """The same rows with the classes that `predict` gives by the threshold of the run."""
    if own.decision is None or rows.probability is None:
        return rows
    p = rows.probability[:, 1]
    predicted = np.where(np.isnan(rows.predicted), np.nan, p.astype(np.float32) >= np.float32(own.threshold))
    return replace(rows, predicted=predicted, threshold=own.threshold, rule=str(own.decision.rule))


def _parts(column: pd.Series) -> Array:
    codes = {name: number for number, name in enumerate(PARTS)}
    return column.map(codes).fillna(-1).to_numpy(np.int64)


def _find_blocks(names: list[str], targets: Sequence[Target]) -> dict[str, tuple[str | None, list[str]]]:
    """Target -> the column of its labels and those of its predictions, by their order in the table.

    `COLUMN_predicted` begins the predictions of a target; its labels stand before it. Names that were taken have
    another ending.
    """
    starts = dict[str, int]()
    for target in targets:
        pattern = re.compile(re.escape(target.column) + r"_predicted(_\d+)?")
        taken = starts.values()
        place = next((n for n, name in enumerate(names) if pattern.fullmatch(name) and n not in taken), None)
        if place is not None:
            starts[target.column] = place
    found = {}
    order = sorted(starts.items(), key=lambda item: item[1])
    labels = {
        column: names[start - 1] if start and names[start - 1].rstrip("_") == column.rstrip("_") else None
        for column, start in order
    }
    for number, (column, start) in enumerate(order):
        last = len(names)
        if number + 1 < len(order):
            after, begin = order[number + 1]
            last = begin - (labels[after] is not None)
        found[column] = (labels[column], names[start:last])
    return found


def _read_target(
    frame: pd.DataFrame, target: Target, part: Array, label: str | None, columns: Sequence[str]
) -> TargetRows:
    there = frame[columns[0]].notna().to_numpy()
    empty = np.full(len(frame), np.nan)
    labels = empty if label is None else target.encode(frame[label]).numpy().astype(np.float64)
    censoring = None if label is None else target.encode_censoring(frame[label])
    if target.is_number:
        of = {name.removeprefix(f"{target.column}_"): _numbers(frame[name]) for name in columns[1:]}
        if label is not None:  # in the user's units
            labels = labels * target.scale + target.mean
        sides = None if censoring is None else censoring.numpy()
        return TargetRows(target, part, labels, _numbers(frame[columns[0]]), spread=of.get("std"), censoring=sides)
    if target.is_wide:
        return TargetRows(target, part, labels, target.encode(frame[columns[0]]).numpy().astype(np.float64))
    first = next(n for n, name in enumerate(columns) if name.startswith(f"{target.column}_p_"))
    p = frame[columns[first : first + len(target.classes)]].to_numpy(np.float32, na_value=np.nan).astype(np.float64)
    predicted = np.where(there, np.nan_to_num(p, nan=-1.0).argmax(1), np.nan)
    return TargetRows(target, part, labels, predicted, p)


def _numbers(column: pd.Series) -> Array:
    if column.dtype == object or str(column.dtype) in ("string", "str"):
        column = pd.to_numeric(column, errors="coerce")
    return column.to_numpy(np.float64, na_value=np.nan)
