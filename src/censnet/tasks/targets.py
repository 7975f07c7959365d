"""A target: a column to predict, the kind of answer it takes, and its labels as numbers to learn from."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Literal, NamedTuple, Self, cast, get_args

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator
from torch import Tensor

from censnet.data.errors import DataError, quote
from censnet.data.tables.notations import Notation
from censnet.data.tables.targets import table_of
from censnet.tasks.infer import TargetKind, infer_kind, notation_of, read_finite
from censnet.tasks.words import Form, find_positive, fits, form_of, read_words, sort_words, truth_of
from censnet.text import count, plural

Level = Literal["node", "edge", "graph"]
MOST_CLASSES = 2**24  # codes are kept as float32, which counts no further
WIDE = 200  # classes, from which on a row has the probabilities of the likeliest alone, and there is no AUC


class Target(BaseModel):
    """A column to predict, and how its labels become numbers.

    Args:
        level: whose column it is.
        column: its name.
        kind: `binary`, `classes` or `number`.
        classes: the names of the classes; of two, the positive one is the last.
        form: what the user's classes are, so that answers are the same.
        mean, scale: of the training labels of a number, which is learnt as (y - mean) / scale.
        low, high: the least and the greatest of those.
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
    form: Form = "text"
    mean: float = Field(default=0.0, allow_inf_nan=False)
    scale: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    low: float | None = Field(default=None, allow_inf_nan=False)
    high: float | None = Field(default=None, allow_inf_nan=False)
    notation: Notation | None = None
    reason: str = ""

    @model_validator(mode="after")
    def _check_classes(self) -> Self:
        count, wanted = len(self.classes), {"binary": "2", "classes": "2 or more", "number": "none"}[self.kind]
        if not {"binary": count == 2, "classes": 2 <= count <= MOST_CLASSES, "number": count == 0}[self.kind]:
            raise ValueError(f"classes has {count} names, expected {wanted} for {self.kind}")
        if len(set(self.classes)) < count:
            raise ValueError("classes has a name twice, expected each once")
        if not fits(self.form, self.classes):
            raise ValueError(f"form is {self.form!r}, expected 'text' for classes such as {quote(self.classes[0])}")
        return self

    def __repr__(self) -> str:
        shown = ", ".join(self.classes[:5]) + (f"... {len(self.classes)} in all" if len(self.classes) > 5 else "")
        tail = shown if self.classes else f"mean {self.mean:.4g}, scale {self.scale:.4g}"
        return f"Target({self.level}:{self.column}, {self.kind}: {tail})"

    __str__ = __repr__

    @property
    def width(self) -> int:
        """How many outputs the network has for it."""
        return len(self.classes) if self.kind == "classes" else 1

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
    ) -> Target:
        """Find the kind and the classes of a column from all its labels, and the scale of a number from training rows.

        Args:
            labels: one for each input row.
            level: whose column it is.
            column: its name.
            rows: the input rows that train; all by default.
            kind: what the user says it is; found from the labels by default.
            notation: of numbers in text; found from the labels by default.
        """
        table = table_of(level)
        if kind is not None and kind not in get_args(TargetKind):
            raise DataError(f"kind is {quote(kind)}, expected {', '.join(get_args(TargetKind))}", table, column=column)
        if kind is None:
            kind, reason = infer_kind(labels, table, column, notation)
        else:
            reason = "as asked"
        chosen = np.arange(len(labels)) if rows is None else _as_rows(rows, len(labels), table, column)
        if kind == "number":
            return cls._fit_number(labels, level, column, chosen, reason, notation or notation_of(labels))
        codes, words = read_words(labels)
        counts = np.bincount(codes[codes >= 0], minlength=len(words))
        if len(words) == 0:
            raise DataError("has no label in any row, expected some to learn from", table, column=column)
        if len(words) == 1:
            raise DataError(f"is {quote(words[0])} in each labelled row, expected two or more classes to tell apart",
                            table, column=column)  # fmt: skip
        _check_some(codes[chosen] >= 0, table, column)
        if kind == "binary":
            if len(words) > 2:
                raise DataError(f"has {len(words):,} different values, expected two for binary: leave the kind out, or "
                                f"ask for {column}=classes", table, column=column)  # fmt: skip
            positive, why = find_positive(words, counts.tolist())
            classes = [next(word for word in words if word != positive), positive]
            reason = f"{reason}; {quote(positive)} is the positive one: {why}"
        else:
            if len(words) > MOST_CLASSES:
                raise DataError(f"has {len(words):,} classes, expected at most {MOST_CLASSES:,}", table, column=column)
            classes = sort_words(words)
        seen = len(np.unique(codes[chosen][codes[chosen] >= 0]))
        if seen < len(words):
            reason = f"{reason}; classes without a row to train on: {len(words) - seen} of {len(words)}"
        form = form_of(labels, words)
        return cls(level=level, column=column, kind=kind, classes=classes, form=form, reason=reason)

    @classmethod
    def _fit_number(
        cls,
        labels: pd.Series[Any],
        level: Level,
        column: str,
        rows: NDArray[np.int64],
        reason: str,
        notation: Notation | None,
    ) -> Target:
        table = table_of(level)
        numbers, bad = read_finite(labels, table, column, notation)
        known = numbers[~np.isnan(numbers)]
        if len(known) == 0:
            found = f"none is a number, the first is {quote(labels.iloc[bad[0]])}" if len(bad) else "all are missing"
            raise DataError(f"has no label that can be learnt: {found}", table, column=column)
        if known.min() == known.max():
            raise DataError(f"is {known[0]:g} in each labelled row, expected numbers that differ", table, column=column)
        train = numbers[rows]
        train = train[~np.isnan(train)]
        _check_some(train == train, table, column)
        if len(bad):
            left = f"{count(len(bad), 'label')} {plural(len(bad), 'is')} no number and left out"
            reason = f"{reason}; {left}, the first {quote(labels.iloc[bad[0]])}"
        with np.errstate(over="ignore", invalid="ignore"):
            mean, scale = float(train.mean()), float(train.std())
        if not (np.isfinite(mean) and np.isfinite(scale)):
            raise DataError(f"holds numbers as large as {np.abs(train).max():.3g}, expected some that can be squared: "
                            "divide them first", table, column=column)  # fmt: skip
        if scale < 1e-12 * max(abs(mean), np.finfo(np.float64).tiny):  # all the same, but for rounding
            scale, reason = 1.0, f"{reason}; all training rows have the same number"
        low, high = float(train.min()), float(train.max())
        return cls(
            level=level,
            column=column,
            kind="number",
            mean=mean,
            scale=scale,
            low=low,
            high=high,
            notation=notation,
            reason=reason,
        )

    def encode(self, labels: pd.Series[Any]) -> Tensor:
        """What is learnt, for each row: 0 or 1, the number of the class, or the standardised number; NaN if unknown.

        A class that was never seen is unknown too.
        """
        if self.kind == "number":
            numbers, _ = read_finite(labels, table_of(self.level), self.column, self.notation)
            with np.errstate(over="ignore"):
                standard = ((numbers - self.mean) / self.scale).astype(np.float32)
            far = np.flatnonzero(np.isinf(standard))
            if len(far):
                found = (
                    f"{numbers[far[0]]:g} is too far from the training labels, which are {self.mean:g} ± {self.scale:g}"
                )
                raise DataError(found, table_of(self.level), int(far[0]), self.column)
            return torch.from_numpy(standard)
        codes, words = read_words(labels)
        number = {name: float(code) for code, name in enumerate(self.classes)}
        truths = [truth_of(name) for name in self.classes]
        if None not in truths and len(set(truths)) == len(truths):  # True, yes and 1 are one answer
            number = {word: float(truths.index(truth_of(word))) for word in words if truth_of(word) in truths}
        lookup = np.array([*(number.get(word, np.nan) for word in words), np.nan], dtype=np.float32)
        return torch.from_numpy(lookup[codes])


class Asked(NamedTuple):
    """A target as the user asks for it; without a kind, the labels decide."""

    level: Level
    column: str
    kind: TargetKind | None = None

    @property
    def plain(self) -> str:
        """As `load_data` takes it, without the kind."""
        return f"{self.level}:{self.column}"


def parse_targets(target: str | Sequence[str]) -> tuple[list[Asked], bool]:
    """The columns to predict, and whether links are, from `node:COLUMN,COLUMN=KIND`, `edge:...`, `graph:...`, `link`.

    >>> parse_targets(["node:age=number,sex", "link"])
    ([Asked(level='node', column='age', kind='number'), Asked(level='node', column='sex', kind=None)], True)
    """
    items = [target] if isinstance(target, str) else list(target)
    form = "expected node:COLUMN, edge:COLUMN, graph:COLUMN,COLUMN or link"
    if not items:
        raise DataError(f"there is no target, {form}")
    found: list[Asked] = []
    for item in items:
        level, _, columns = item.strip().partition(":")
        if item.strip() == "link":
            continue
        if level not in get_args(Level):
            raise DataError(f"target is {quote(item)}, {form}")
        for part in columns.split(","):
            column, equals, kind = part.rpartition("=") if "=" in part else (part, "", "")
            column, kind = column.strip(), kind.strip()
            if not column:
                raise DataError(f"target is {quote(item)} with a column that has no name, {form}")
            if equals and kind not in get_args(TargetKind):
                raise DataError(
                    f"target is {quote(item)} with the kind {quote(kind)}, expected binary, classes or number: a "
                    "column with = in its name needs its kind, too"
                )
            found.append(Asked(cast(Level, level), column, cast(TargetKind, kind) if equals else None))
    pairs = [asked.plain for asked in found]
    twice = next((pair for pair in pairs if pairs.count(pair) > 1), None)
    if twice is not None:
        raise DataError(f"target {twice} is given twice, expected each once")
    return found, any(item.strip() == "link" for item in items)


def output_slices(targets: Sequence[Target]) -> list[slice]:
    """Which outputs belong to each target: they stand side by side."""
    ends = accumulate(target.width for target in targets)
    return [slice(end - target.width, end) for target, end in zip(targets, ends, strict=True)]


def output_limits(targets: Sequence[Target]) -> Tensor | None:
    """The least and the greatest training label of each output, infinite for classes; None if all are. (2, width)

    >>> output_limits([Target(level="node", column="age", kind="number", mean=40, scale=10, low=20, high=70)])
    tensor([[-2.],
            [ 3.]])
    """
    columns = []
    for target in targets:
        known = target.low is not None and target.high is not None
        ends = (target.low, target.high) if known else (-np.inf, np.inf)
        columns += [[(cast(float, end) - target.mean) / target.scale for end in ends]] * target.width
    limits = (
        torch.tensor(columns, dtype=torch.float32, device="cpu").t().contiguous()
    )  # also where networks have no memory
    return limits if bool(limits.isfinite().any()) else None


def _as_rows(rows: Tensor, count: int, table: str, column: str) -> NDArray[np.int64]:
    chosen = rows.cpu().numpy()
    if (
        chosen.ndim != 1
        or chosen.dtype.kind not in "iu"
        or (len(chosen) and (chosen.min() < 0 or chosen.max() >= count))
    ):
        raise DataError(f"rows are not rows of this table, expected some from 0 to {count - 1}", table, column=column)
    return chosen


def _check_some(known: NDArray[np.bool_], table: str, column: str) -> None:
    if not known.any():
        raise DataError("has no label in the training rows, expected some to learn from", table, column=column)
