"""A target: a column to predict, its type, and its labels as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Self, get_args

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from torch import Tensor

from censnet.data.tables.number_notation import Notation
from censnet.data.tables.target_spec import TargetKind, TargetSpec, as_kind
from censnet.errors import DataError, quote
from censnet.levels import Level
from censnet.ops.arrays import BoolArray, IntArray
from censnet.tasks.labels import (
    LabelDtype,
    encode_labels,
    fits,
    infer_kind,
    infer_positive_class,
    label_dtype,
    match_word,
    notation_of,
    parse_boolean,
    read_finite,
    read_oriented,
    sort_words,
)
from censnet.text import count, plural

MAX_CLASSES = 2**24  # codes are kept as float32, which counts no further
WIDE = 200  # classes, from which on a row has the probabilities of the likeliest alone, and there is no AUC


class Target(BaseModel):
    """A column to predict, and how its labels become numbers.

    Args:
        level: whose column it is.
        column: its name.
        kind: `binary`, `multiclass`, `regression` or `oriented`, a number that changes sign with the order of the ends.
        classes: the names of the classes; of two, the positive one is the last.
        form: the type of the user's labels, so that predictions have the same.
        mean, scale: of the training labels of a number, which is learned as (y - mean) / scale. Of an oriented one the
            mean is 0 and the scale the root mean square, whatever the order of the ends.
        low, high: the least and the greatest of those; None where a label says that there is more beyond. Of an
            oriented number, minus and plus the largest.
        notation: of a number in text: what its commas and points mean.
        reason: why it is of this kind, for the user.

    Example:
        >>> target = Target.fit(pd.Series(["yes", "no", None, "no"]), "edge", "fraud")
        >>> target
        Target(edge:fraud, binary: no, yes)
        >>> target.encode(pd.Series([True, False, None, "perhaps"]))
        tensor([1., 0., nan, nan])
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    level: Level
    column: str = Field(min_length=1)
    kind: TargetKind
    classes: list[str] = []
    form: LabelDtype = "text"
    mean: float = Field(default=0.0, allow_inf_nan=False)
    scale: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    low: float | None = Field(default=None, allow_inf_nan=False)
    high: float | None = Field(default=None, allow_inf_nan=False)
    notation: Notation | None = None
    reason: str = ""

    @field_validator("kind", mode="before")
    @classmethod
    def _read_kind(cls, kind: Any) -> Any:
        return as_kind(kind)

    @model_validator(mode="after")
    def _check_classes(self) -> Self:
        count, wanted = len(self.classes), {"binary": "2", "multiclass": "2 or more"}.get(self.kind, "none")
        if not {"binary": count == 2, "multiclass": 2 <= count <= MAX_CLASSES}.get(self.kind, count == 0):
            raise ValueError(f"classes has {count} names, expected {wanted} for {self.kind}")
        if len(set(self.classes)) < count:
            raise ValueError("classes has a name twice, expected each once")
        if not fits(self.form, self.classes):
            raise ValueError(f"form is {self.form!r}, expected 'text' for classes such as {quote(self.classes[0])}")
        if self.kind == "oriented" and (self.level != "edge" or self.mean != 0 or self.low != _negative(self.high)):
            raise ValueError("kind is 'oriented', expected an edge, a mean of 0, and limits that differ in sign alone")
        return self

    def __repr__(self) -> str:
        shown = ", ".join(self.classes[:5]) + (f"... {len(self.classes)} in all" if len(self.classes) > 5 else "")
        tail = shown if self.classes else f"mean {self.mean:.4g}, scale {self.scale:.4g}"
        return f"Target({self.level}:{self.column}, {self.kind}: {tail})"

    __str__ = __repr__

    @property
    def name(self) -> str:
        """Level and column, as the user writes them."""
        return TargetSpec(self.level, self.column).name

    @property
    def width(self) -> int:
        """The number of outputs of the model for it."""
        return len(self.classes) if self.kind == "multiclass" else 1

    @property
    def is_number(self) -> bool:
        """Whether it is a number, oriented or not, rather than a class."""
        return self.kind in ("regression", "oriented")

    @property
    def is_wide(self) -> bool:
        """Whether there are too many classes to give a probability for each: the likeliest have to do."""
        return len(self.classes) > WIDE

    @classmethod
    def fit(
        cls,
        labels: pd.Series[Any],
        level: Level,
        column: str,
        rows: Tensor | None = None,
        kind: TargetKind | None = None,
        notation: Notation | None = None,
        positive: str | None = None,
    ) -> Target:
        """Find the kind and the classes of a column from all its labels, and the scale of a number from training rows.

        Args:
            labels: one for each input row.
            level: whose column it is.
            column: its name.
            rows: the input rows that train; all by default.
            kind: what the user says it is; found from the labels by default.
            notation: of numbers in text; found from the labels by default.
            positive: the positive class of two; the rarer one by default.
        """
        table, inferred, kind = Level.of_column(level).table, kind is None, as_kind(kind)
        if kind is not None and kind not in get_args(TargetKind):
            raise DataError(f"kind is {quote(kind)}, expected {', '.join(get_args(TargetKind))}", table, column=column)
        if kind is None:
            kind, reason = infer_kind(labels, table, column, notation)
        else:
            reason = "as asked"
        chosen = np.arange(len(labels)) if rows is None else _as_rows(rows, len(labels), table, column)
        if kind in ("regression", "oriented"):
            notation = notation or notation_of(labels)
            if kind == "oriented":
                found = _oriented_statistics(labels, table, column, chosen, notation)
            else:
                found = _number_statistics(labels, table, column, chosen, reason, notation)
            return cls(level=level, column=column, kind=kind, notation=notation, **found)
        codes, words = encode_labels(labels)
        counts = np.bincount(codes[codes >= 0], minlength=len(words))
        if len(words) == 0:
            raise DataError("has no label in any row, expected some to learn from", table, column=column)
        if len(words) == 1:
            raise DataError(f"is {quote(words[0])} in each labeled row, expected two or more classes to tell apart",
                            table, column=column)  # fmt: skip
        _check_some(codes[chosen] >= 0, table, column)
        if kind == "binary":
            if len(words) > 2:
                raise DataError(f"has {len(words):,} different values, expected two for binary: leave the kind out, or "
                                f"ask for {column}=multiclass", table, column=column)  # fmt: skip
            chosen_class, why = _choose_positive(words, counts.tolist(), positive, table, column)
            other = next(word for word in words if word != chosen_class)
            classes = [other, chosen_class]
            share = f"{100 * counts[words.index(chosen_class)] / counts.sum():.3g} % of the labels"
            reason = f"{reason}; positive: {chosen_class} ({', '.join(filter(None, (why, share)))})"
            if positive is None:
                reason += f", {TargetSpec(level, column, 'binary', other).text} makes it {other}"
        else:
            if len(words) > MAX_CLASSES:
                raise DataError(f"has {len(words):,} classes, expected at most {MAX_CLASSES:,}", table, column=column)
            classes = sort_words(words)
        if inferred and fits("float", words) and set(words) != {"0", "1"}:
            reason = f"{reason}; {TargetSpec(level, column).name}=regression learns them as numbers"
        seen = len(np.unique(codes[chosen][codes[chosen] >= 0]))
        if seen < len(words):
            reason = f"{reason}; classes without a row to train on: {len(words) - seen} of {len(words)}"
        form = label_dtype(labels, words)
        return cls(level=level, column=column, kind=kind, classes=classes, form=form, reason=reason)

    def encode(self, labels: pd.Series[Any]) -> Tensor:
        """Encoded labels, for each row: 0 or 1, the number of the class, or the standardized number; NaN if unknown.

        A class that was never seen is unknown too. Of a censored number it is the limit.
        """
        if self.is_number:
            numbers = read_finite(labels, self.level.table, self.column, self.notation)[0]
            with np.errstate(over="ignore"):
                standard = ((numbers - self.mean) / self.scale).astype(np.float32)
            far = np.flatnonzero(np.isinf(standard))
            if len(far):
                found = (
                    f"{numbers[far[0]]:g} is too far from the training labels, which are {self.mean:g} ± {self.scale:g}"
                )
                raise DataError(found, self.level.table, int(far[0]), self.column)
            return torch.from_numpy(standard)
        codes, words = encode_labels(labels)
        number = {name: float(code) for code, name in enumerate(self.classes)}
        truths = [parse_boolean(name) for name in self.classes]
        if None not in truths and len(set(truths)) == len(truths):  # True, yes and 1 are one class
            number = {word: float(truths.index(parse_boolean(word))) for word in words if parse_boolean(word) in truths}
        lookup = np.array([*(number.get(word, np.nan) for word in words), np.nan], dtype=np.float32)
        return torch.from_numpy(lookup[codes])

    def encode_censoring(self, labels: pd.Series[Any]) -> Tensor | None:
        """For each row -1 where its number is below the label, 1 where it is above, else 0; None if no row is censored.

        >>> Target(level="node", column="age", kind="regression").encode_censoring(pd.Series(["30", ">65", None]))
        tensor([0, 1, 0], dtype=torch.int8)
        """
        if self.kind != "regression":  # an oriented number is never censored
            return None
        censoring = read_finite(labels, self.level.table, self.column, self.notation)[2]
        return None if censoring is None else torch.from_numpy(censoring)


def describe_target(labels: pd.Series[Any], spec: TargetSpec) -> tuple[str, str]:
    """The kind of a target and why, as training would find it.

    >>> describe_target(pd.Series([1, 5, 3] * 4), TargetSpec("edge", "stars"))
    ('multiclass', '3 different whole numbers; edge:stars=regression learns them as numbers')
    """
    target = Target.fit(labels, spec.level, spec.column, kind=spec.kind, positive=spec.positive)
    return target.kind, target.reason


def output_slices(targets: Sequence[Target]) -> list[slice]:
    """The slice of the outputs that belongs to each target."""
    ends = accumulate(target.width for target in targets)
    return [slice(end - target.width, end) for target, end in zip(targets, ends, strict=True)]


def target_range(targets: Sequence[Target]) -> Tensor | None:
    """The least and the greatest training label of each output, infinite for classes; None if all are. (2, width)

    >>> target_range([Target(level="node", column="age", kind="regression", mean=40, scale=10, low=20, high=70)])
    tensor([[-2.],
            [ 3.]])
    """
    columns = []
    for target in targets:
        ends = (-np.inf if target.low is None else target.low, np.inf if target.high is None else target.high)
        columns += [[(end - target.mean) / target.scale for end in ends]] * target.width
    limits = (
        torch.tensor(columns, dtype=torch.float32, device="cpu").t().contiguous()
    )  # also where models are built without memory
    return limits if bool(limits.isfinite().any()) else None


def _number_statistics(
    labels: pd.Series[Any], table: str, column: str, rows: IntArray, reason: str, notation: Notation | None
) -> dict[str, Any]:
    """The scaling of a target of numbers, their range, and the reason with what is remarkable of the labels."""
    numbers, bad, censoring = read_finite(labels, table, column, notation)
    exact = np.ones(len(numbers), bool) if censoring is None else censoring == 0
    present = ~np.isnan(numbers)
    known = numbers[present]
    if len(known) == 0:
        found = f"none is a number, the first is {quote(labels.iloc[bad[0]])}" if len(bad) else "all are missing"
        raise DataError(f"has no label that can be learned: {found}", table, column=column)
    if known.min() == known.max() and (censoring is None or np.ptp(censoring[present]) == 0):
        raise DataError(f"is {known[0]:g} in each labeled row, expected numbers that differ", table, column=column)
    if len(bad):
        left = f"{count(len(bad), 'label')} {plural(len(bad), 'is')} no number and left out"
        reason = f"{reason}; {left}, the first {quote(labels.iloc[bad[0]])}"
    if censoring is not None:
        below, above = int((censoring < 0).sum()), int((censoring > 0).sum())
        limits = f"{below + above:,} of {count(len(known), 'label')} {plural(below + above, 'is')} censored"
        reason = f"{reason}; {limits} ({below:,} <, {above:,} >), where only the wrong side costs"
    labeled = rows[present[rows]]
    _check_some(present[rows], table, column)
    measured = labeled[exact[labeled]]
    if len(measured) == 0:
        measured, reason = labeled, f"{reason}; no training row has a number that is none"
    train = numbers[measured]
    with np.errstate(over="ignore", invalid="ignore"):
        mean, scale = float(train.mean()), float(train.std())
    if not (np.isfinite(mean) and np.isfinite(scale)):
        raise DataError(f"holds numbers as large as {np.abs(train).max():.3g}, expected some that can be squared: "
                        "divide them first", table, column=column)  # fmt: skip
    if scale < 1e-12 * max(abs(mean), np.finfo(np.float64).tiny):  # all the same, but for rounding
        scale, reason = 1.0, f"{reason}; all training rows have the same number"
    low, high = _range(train, numbers[labeled], None if censoring is None else censoring[labeled])
    return {"mean": mean, "scale": scale, "low": low, "high": high, "reason": reason}


def _oriented_statistics(
    labels: pd.Series[Any], table: str, column: str, rows: IntArray, notation: Notation | None
) -> dict[str, Any]:
    """The same of oriented numbers, scaled by their root mean square, never centered: each sign is arbitrary."""
    numbers = read_oriented(labels, table, column, notation)
    _check_some(~np.isnan(numbers[rows]), table, column)
    train = numbers[rows][~np.isnan(numbers[rows])]
    largest = float(np.abs(train).max())
    scale = float(np.sqrt(np.square(train / (largest or 1.0)).mean())) * largest
    reason = "as asked; its sign follows the order of the two ends"
    if (train >= 0).all() or (train <= 0).all():
        reason += ", and is the same in all training rows"
    reason = reason if scale else f"{reason}; it is 0 in all training rows"
    return {"scale": scale or 1.0, "low": -largest, "high": largest, "reason": reason}


def _choose_positive(
    words: Sequence[str], counts: Sequence[int], asked: str | None, table: str, column: str
) -> tuple[str, str]:
    """The positive one of two classes, and the reason."""
    if asked is None:
        return infer_positive_class(words, counts)
    found = match_word(asked, words)
    if found is None:
        labels = ", ".join(quote(word) for word in sort_words(words))
        raise DataError(
            f"the positive class is {quote(asked)}, expected one of the labels: {labels}", table, None, column
        )
    return found, ""


def _range(
    measured: NDArray[np.float64], numbers: NDArray[np.float64], censoring: NDArray[np.int8] | None
) -> tuple[float | None, float | None]:
    """The least and the greatest number, or None on a side where a label says that there are others beyond."""
    low, high = float(measured.min()), float(measured.max())
    if censoring is None:
        return low, high
    below, above = numbers[censoring < 0], numbers[censoring > 0]
    return (
        None if len(below) and below.min() <= low else low,
        None if len(above) and above.max() >= high else high,
    )


def _negative(number: float | None) -> float | None:
    return None if number is None else -number


def _as_rows(rows: Tensor, count: int, table: str, column: str) -> IntArray:
    chosen = rows.cpu().numpy()
    if (
        chosen.ndim != 1
        or chosen.dtype.kind not in "iu"
        or (len(chosen) and (chosen.min() < 0 or chosen.max() >= count))
    ):
        raise DataError(f"rows are not rows of this table, expected some from 0 to {count - 1}", table, column=column)
    return chosen


def _check_some(known: BoolArray, table: str, column: str) -> None:
    if not known.any():
        raise DataError("has no label in the training rows, expected some to learn from", table, column=column)
