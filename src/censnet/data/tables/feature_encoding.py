"""One column as features: fitted on training rows, then encoded the same way wherever it comes from."""

from __future__ import annotations

import math
from typing import Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field, model_validator

from censnet.data.tables.column_statistics import normalize_rows
from censnet.data.tables.columns import (
    USED,
    Kind,
    Parsed,
    as_text,
    read_booleans,
    read_dates,
    read_numbers,
    read_vectors,
)
from censnet.data.tables.notes import RowError
from censnet.data.tables.number_notation import Notation, is_limit
from censnet.errors import quote
from censnet.ops.arrays import Array, BoolArray, FloatArray

CHOSEN = "chosen by the user"
FARTHEST = 1e6  # standard deviations; beyond them a value says nothing more and may not fit a float32
_CELLS = 1 << 22  # of a vector's rows that are scaled at a time
EXPECTED = {
    "number": "is not a finite number",
    "oriented": "is not a finite number",
    "boolean": "is not true or false",
    "date": "is not a date such as 2024-01-31",
}


class Column(BaseModel):
    """A column as features: its kind, and the statistics that scale it.

    Args:
        name: as in the table.
        kind: number, oriented, boolean, category, date and vector give features; text, id, constant and drop do not. An
            oriented number changes sign where the ends of its edge are exchanged: its mean is 0, it is never centered.
        reason: why this kind.
        mean: what a missing value becomes. One number, or one for each entry of a vector. Of a category, the shares of
            its words in training rows, others last: what a word becomes that none of them had.
        scale: divided by.
        centered: whether the mean of each entry is subtracted first. Where empty, it is for numbers and dates, and for
            vectors unless every scale is 1.
        entries: the entries of a vector that are features, in order; all where empty.
        categories: the known ones; where training rows had others, too, every other one falls into a last one.
        missing: whether training rows lacked it, so that an indicator follows its features.
        marked: the entries of a vector that training rows lacked, each with an indicator behind it.
        statistics: the rows that mean, scale and categories come from: all where those for training say nothing.
        row_normalized: whether a vector, of words that are counted, is divided by its sum in each row.
        notation: of numbers in text: what commas and points in it mean.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: str
    kind: Kind
    reason: str = ""
    mean: list[float] = Field(default_factory=list)
    scale: list[float] = Field(default_factory=list)
    centered: list[bool] = Field(default_factory=list)
    entries: list[int] = Field(default_factory=list)
    categories: list[str] = Field(default_factory=list)
    missing: bool = False
    marked: list[int] = Field(default_factory=list)
    statistics: Literal["training", "all"] = "training"
    row_normalized: bool = False
    notation: Notation = "point"

    @model_validator(mode="after")
    def _check_entries(self) -> Self:
        every = range(len(self.mean))
        features = set(self.entries or every)
        if self.entries != sorted(set(self.entries)) or self.marked != sorted(set(self.marked)):
            raise ValueError("entries and marked are not in order, expected each entry once")
        if not (features <= set(every) and set(self.marked) <= features and len(self.centered) in (0, len(every))):
            raise ValueError(f"entries, marked or centered do not fit a mean of {len(every)} numbers")
        if self.kind == "oriented" and (any(self.mean) or any(self.is_centered)):
            raise ValueError("an oriented column has a mean, expected 0: its sign is that of the order of the ends")
        return self

    @property
    def width(self) -> int:
        """The number of features."""
        if self.kind not in USED:
            return 0
        if self.kind == "category":
            return len(self.categories) + 1 + self.missing
        return len(self.entries or self.mean) + len(self.marked) + self.missing

    @property
    def names(self) -> list[str]:
        """The name of each feature."""
        if self.kind not in USED:
            return []
        if self.kind == "category":
            names = [f"{self.name}={category}" for category in self.categories] + [f"{self.name} is another"]
        elif self.kind == "vector":
            names, marked = [], set(self.marked)
            for entry in self.entries or range(len(self.mean)):
                names += [f"{self.name}[{entry}]"] + [f"{self.name}[{entry}] is missing"] * (entry in marked)
        else:
            names = [self.name]
        return names + [f"{self.name} is missing"] * self.missing

    @property
    def is_odd(self) -> list[bool]:
        """For each feature, whether it changes sign where the ends of its edge are exchanged."""
        return [self.kind == "oriented" and number == 0 for number in range(self.width)]

    @property
    def zeros(self) -> list[float]:
        """The value of the number 0 in each feature; NaN for a feature that is no number, or oriented."""
        found = [math.nan] * self.width
        if self.kind == "number":
            found[0] = -self.mean[0] / self.scale[0] if self.is_centered[0] else 0.0
        return found

    @property
    def categories_complete(self) -> bool:
        """Whether it is a category that has every word of the training rows, none being left for the last feature."""
        return self.kind == "category" and bool(self.mean) and self.mean[-1] == 0

    @property
    def chosen(self) -> bool:
        """Whether the user said what it is."""
        return self.reason == CHOSEN

    @property
    def is_centered(self) -> list[bool]:
        """Whether the mean of each entry is subtracted."""
        if self.centered:
            return self.centered
        raw = self.kind in ("boolean", "oriented") or (
            self.kind == "vector" and all(scale == 1 for scale in self.scale)
        )
        return [not raw] * len(self.mean)

    def encode(self, values: pa.ChunkedArray, out: FloatArray, parsed: Parsed | None = None) -> None:
        """Write the features of each row into `out` (rows, width); `parsed` are the values as `parse` gives them."""
        if self.kind == "category":
            self._encode_category(values, out)
            return
        parsed = self.parse(values) if parsed is None else parsed
        numbers = parsed.matrix
        absent = np.isnan(numbers)
        absent[parsed.bad] = False
        self._scale(normalize_rows(numbers) if self.row_normalized else numbers, absent, out)
        if self.missing:
            out[:, -1] = absent.all(axis=1)

    def parse(self, values: pa.ChunkedArray) -> Parsed:
        """The values as numbers, by the kind and the notation of this column."""
        return parse_values(self.kind, values, len(self.mean), self.notation)

    def _scale(self, numbers: Array, absent: BoolArray, out: FloatArray) -> None:
        """Write each entry, and its missing-value indicator, if it has one."""
        mean, scale = np.array(self.mean), np.array(self.scale)
        offset = np.where(self.is_centered, mean, 0.0)
        entries = np.array(self.entries or range(len(mean)))
        position = np.arange(len(entries)) + np.searchsorted(np.array(self.marked), entries)
        with np.errstate(over="ignore"):
            fill = np.clip((mean - offset) / scale, -FARTHEST, FARTHEST)[entries]
            plain = len(entries) == len(mean) == out.shape[1] - self.missing
            step = max(1, _CELLS // len(mean))
            for start in range(0, len(numbers), step):
                rows = slice(start, start + step)
                part = numbers[rows] if plain else numbers[rows, entries]
                scaled = np.subtract(part, offset[entries], dtype=np.float64)
                scaled /= scale[entries]
                np.clip(scaled, -FARTHEST, FARTHEST, out=scaled)  # NaN stays NaN
                np.copyto(scaled, fill, where=np.isnan(scaled))
                if plain:
                    out[rows, : len(mean)] = scaled
                else:
                    out[rows, position] = scaled
        if self.marked:
            out[:, position[np.searchsorted(entries, self.marked)] + 1] = absent[:, self.marked]

    def _encode_category(self, values: pa.ChunkedArray, out: FloatArray) -> None:
        known = len(self.categories)
        codes = pc.index_in(as_text(values), value_set=pa.array(self.categories, pa.string()))
        column = pc.fill_null(codes, known).to_numpy().astype(np.int64)
        absent = pc.is_null(values, nan_is_null=True).to_numpy().astype(bool)
        out[:] = 0
        present = np.flatnonzero(~absent)
        out[present, column[present]] = 1
        if self.mean:
            unseen = absent & (not self.missing)
            if self.categories_complete:
                unseen |= ~absent & (column == known)
            out[unseen, : known + 1] = self.mean
        if self.missing:
            out[:, -1] = absent

    def find_unseen(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """The words that training rows did not have, once for each row with one; none where that is not known."""
        text = as_text(values)
        if not self.categories_complete:
            return text.slice(0, 0)
        return text.filter(pc.invert(pc.is_in(text, value_set=pa.array([*self.categories, None], pa.string()))))

    def error_messages(self, values: pa.ChunkedArray, parsed: Parsed) -> dict[int, RowError]:
        """Row -> the value that cannot be read, and what was expected."""
        if len(parsed.bad) == 0:
            return {}
        found = values.take(pa.array(parsed.bad)).to_pylist()
        expected = EXPECTED.get(self.kind, f"is not a list of {len(self.mean)} numbers")
        limit = "is a limit (censored), expected a finite number: a feature has to be known"
        causes = [limit if self.kind in ("number", "oriented") and is_limit(value) else expected for value in found]
        return {
            int(row): RowError(cause, f"{quote(value)} {cause}")
            for row, value, cause in zip(parsed.bad, found, causes, strict=True)
        }


def parse_values(kind: Kind, values: pa.ChunkedArray, width: int, notation: Notation | None) -> Parsed:
    """The values of a column of this kind as numbers."""
    if kind == "vector":
        return read_vectors(values, width)
    if kind in ("number", "oriented"):
        return read_numbers(values, notation)
    return {"boolean": read_booleans, "date": read_dates}[kind](values)
