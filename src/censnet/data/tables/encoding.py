"""One column as features: fitted on training rows, then encoded the same way wherever it comes from."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from censnet.data.errors import DataError, quote
from censnet.data.tables.columns import (
    USED,
    Kind,
    Parsed,
    as_text,
    list_width,
    read_booleans,
    read_dates,
    read_numbers,
    read_vectors,
)
from censnet.data.tables.kinds import MOST_CATEGORIES, find_kind

_FARTHEST = 1e6  # standard deviations; beyond them a value says nothing more and may not fit a float32
_BLOCK = 1 << 15  # rows that fit a core's cache
_EXPECTED = {
    "number": "is not a finite number",
    "boolean": "is not true or false",
    "date": "is not a date such as 2024-01-31",
}


class Column(BaseModel):
    """What a column became.

    Args:
        name: as in the table.
        kind: number, boolean, category, date and vector give features; text, id, constant and drop do not.
        reason: why this kind.
        mean: subtracted; what a missing value becomes. One number, or one for each entry of a vector. Of a category,
            the shares of its words in training rows, others last: what a word becomes that none of them had.
        scale: divided by.
        categories: the known ones; where training rows had others, too, every other one falls into a last one.
        missing: whether training rows lacked it, so that an indicator follows its features.
        shares: whether a vector, of words that are counted, is divided by its sum in each row.
        decimal_comma: whether some text has a comma before decimals, so that 1,175 is no number.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: str
    kind: Kind
    reason: str = ""
    mean: list[float] = Field(default_factory=list)
    scale: list[float] = Field(default_factory=list)
    categories: list[str] = Field(default_factory=list)
    missing: bool = False
    shares: bool = False
    decimal_comma: bool = False

    @property
    def width(self) -> int:
        """How many features it gives."""
        if self.kind not in USED:
            return 0
        return (len(self.categories) + 1 if self.kind == "category" else len(self.mean)) + self.missing

    @property
    def names(self) -> list[str]:
        """What each feature says."""
        if self.kind not in USED:
            return []
        if self.kind == "category":
            names = [f"{self.name}={category}" for category in self.categories] + [f"{self.name} is another"]
        elif self.kind == "vector":
            names = [f"{self.name}[{entry}]" for entry in range(len(self.mean))]
        else:
            names = [self.name]
        return names + [f"{self.name} is missing"] * self.missing

    @property
    def knows_all(self) -> bool:
        """Whether it is a category that has every word of the training rows, none being left for the last feature."""
        return self.kind == "category" and bool(self.mean) and self.mean[-1] == 0

    @classmethod
    def fit(cls, name: str, values: pa.ChunkedArray, kind: str | None = None, shares: bool = False) -> Column:
        """Find the kind of a column, unless it is given, and its statistics; `shares` is for vectors of counts."""
        reason = "chosen by the user"
        if kind is None:
            kind, reason = find_kind(name, values)
        elif kind not in USED:
            kind = kind if kind in ("text", "id", "constant") else "drop"
        found = cast(Kind, kind)
        if found not in USED:
            return cls(name=name, kind=found, reason=reason)
        if found == "category":
            return _fit_category(name, values, reason)
        width = list_width(values) if found == "vector" else 1
        if width == 0:
            raise DataError("holds no list of numbers, expected vectors such as [1, 2, 3]", column=name)
        return cls._measure(name, found, reason, values, width, shares and found == "vector")

    def refit(self, values: pa.ChunkedArray) -> Column:
        """The same kind of column, of the same width if it is a vector, with the statistics of these values."""
        if self.kind not in USED:
            return self
        if self.kind == "category":
            column = _fit_category(self.name, values, self.reason)
            alone = len(column.categories) + column.missing <= 1
        else:
            column = self._measure(
                self.name, self.kind, self.reason, values, len(self.mean), self.shares, self.decimal_comma
            )
            alone = column.kind == "boolean" and not column.missing and column.mean[0] in (0.0, 1.0)
        return Column(name=self.name, kind="constant", reason="always the same") if alone else column

    @classmethod
    def _measure(
        cls,
        name: str,
        found: Kind,
        reason: str,
        values: pa.ChunkedArray,
        width: int,
        shares: bool,
        decimal_comma: bool | None = None,
    ) -> Column:
        parsed = _parse(found, values, width, decimal_comma)
        numbers = parsed.numbers if parsed.numbers.ndim == 2 else parsed.numbers[:, None]
        shares = shares and not bool((numbers < 0).any())
        numbers = _shares(numbers) if shares else numbers
        absent = np.isnan(numbers[:, 0]) if width == 1 else np.isnan(numbers).all(axis=1)
        if not bool((~absent).any()):
            return cls(name=name, kind="constant", reason="holds no value that can be read")
        mean, scale = _statistics(numbers)
        if found == "boolean" or (found == "vector" and np.nanmax(np.abs(numbers)) <= 10.0):
            scale = np.ones_like(scale)  # truth values, fingerprints and embeddings are in scale already
        elif found != "vector" and scale[0] == 0:
            return cls(name=name, kind="constant", reason="always the same")
        scale[scale == 0] = 1.0
        absent[parsed.bad] = False
        missing = bool(absent.any())
        return cls(
            name=name,
            kind=found,
            reason=reason,
            mean=mean.tolist(),
            scale=scale.tolist(),
            missing=missing,
            shares=shares,
            decimal_comma=parsed.decimal_comma,
        )

    def encode(self, values: pa.ChunkedArray, out: NDArray[np.float32]) -> dict[int, str]:
        """Write the features of each row into `out` (rows, width); for each bad row, what was found there."""
        if self.kind == "category":
            self._encode_category(values, out)
            return {}
        width = len(self.mean)
        parsed = _parse(self.kind, values, width, self.decimal_comma)
        if self.kind == "vector":
            mean, scale = np.array(self.mean), np.array(self.scale)
            raw = bool((scale == 1).all())
            numbers = _shares(parsed.numbers) if self.shares else parsed.numbers
            scaled = numbers if raw else (numbers - mean) / scale
            fill = mean.astype(np.float32) if raw else np.zeros(width, np.float32)
            np.clip(np.where(np.isnan(scaled), fill, scaled), -_FARTHEST, _FARTHEST, out=out[:, :width])
            absent = np.isnan(parsed.numbers).all(axis=1)
        else:
            absent = self._encode_scalar(parsed.numbers, out)
        if self.missing:
            absent[parsed.bad] = False
            out[:, -1] = absent
        return self._messages(values, parsed)

    def _encode_scalar(self, numbers: NDArray[Any], out: NDArray[np.float32]) -> NDArray[np.bool_]:
        offset = 0.0 if self.kind == "boolean" else self.mean[0]
        fill = self.mean[0] if self.kind == "boolean" else 0.0
        with np.errstate(over="ignore"):
            scaled = numbers - offset
            scaled /= self.scale[0]
        np.clip(scaled, -_FARTHEST, _FARTHEST, out=scaled)  # NaN stays NaN
        absent = np.isnan(scaled)
        if absent.any():
            scaled[absent] = fill
        out[:, 0] = scaled
        return absent

    def _encode_category(self, values: pa.ChunkedArray, out: NDArray[np.float32]) -> None:
        known = len(self.categories)
        codes = pc.index_in(as_text(values), value_set=pa.array(self.categories, pa.string()))
        column = pc.fill_null(codes, known).to_numpy().astype(np.int64)
        absent = pc.is_null(values, nan_is_null=True).to_numpy().astype(bool)
        out[:] = 0
        present = np.flatnonzero(~absent)
        out[present, column[present]] = 1
        if self.mean:
            untaught = absent & (not self.missing)
            if self.knows_all:
                untaught |= ~absent & (column == known)
            out[untaught, : known + 1] = self.mean
        if self.missing:
            out[:, -1] = absent

    def find_unseen(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """The words that training rows did not have, once for each row with one; none where that cannot be told."""
        text = as_text(values)
        if not self.knows_all:
            return text.slice(0, 0)
        return text.filter(pc.invert(pc.is_in(text, value_set=pa.array([*self.categories, None], pa.string()))))

    def _messages(self, values: pa.ChunkedArray, parsed: Parsed) -> dict[int, str]:
        if len(parsed.bad) == 0:
            return {}
        found = values.take(pa.array(parsed.bad)).to_pylist()
        expected = _EXPECTED.get(self.kind, f"is not a list of {len(self.mean)} numbers")
        return {int(row): f"{quote(value)} {expected}" for row, value in zip(parsed.bad, found, strict=True)}


def _parse(kind: Kind, values: pa.ChunkedArray, width: int, decimal_comma: bool | None) -> Parsed:
    if kind == "vector":
        return read_vectors(values, width)
    if kind == "number":
        return read_numbers(values, decimal_comma)
    return {"boolean": read_booleans, "date": read_dates}[kind](values)


def _shares(vectors: NDArray[Any]) -> NDArray[Any]:
    """Each row divided by its sum; one without a positive sum stays as it is."""
    total = np.nansum(vectors, axis=1, keepdims=True)
    divided: NDArray[Any] = np.divide(vectors, total, out=np.array(vectors, np.float64), where=total > 0)
    return divided


def _statistics(numbers: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation of each column, over what is there."""
    if numbers.shape[1] == 1:
        quick = _quick_statistics(numbers[:, 0])
        if quick is not None:
            return quick
    size = float(np.nanmax(np.abs(numbers))) or 1.0
    with np.errstate(all="ignore"):  # in units of the largest, so that no square overflows
        mean = np.nan_to_num(np.nanmean(numbers / size, axis=0, dtype=np.float64)) * size
        deviation = np.nan_to_num(np.nanstd(numbers / size, axis=0, dtype=np.float64)) * size
    return mean, _without_rounding(mean, deviation)


def _quick_statistics(numbers: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """The same for one column, in two passes without a copy; None when a value is missing or a square overflows."""
    with np.errstate(all="ignore"):
        mean = np.asarray([numbers.mean(dtype=np.float64)])
        total = 0.0
        for start in range(0, len(numbers), _BLOCK):
            apart = numbers[start : start + _BLOCK] - mean[0]
            total += float(np.square(apart, out=apart).sum())  # not BLAS: its threads wait for each other on blocks
    if not np.isfinite(total) or 0 < total < 1e-200:
        return None
    return mean, _without_rounding(mean, np.asarray([np.sqrt(total / len(numbers))]))


def _without_rounding(mean: NDArray[np.float64], deviation: NDArray[np.float64]) -> NDArray[np.float64]:
    """A deviation that rounding alone can make is none."""
    return np.where(deviation <= 1e-12 * np.abs(mean), 0.0, deviation)


def _fit_category(name: str, values: pa.ChunkedArray, reason: str) -> Column:
    text = as_text(values)
    counts = pc.value_counts(text.drop_null())
    words, times = counts.field("values").to_pylist(), counts.field("counts").to_pylist()
    order = sorted(zip(words, times, strict=True), key=lambda pair: (-pair[1], pair[0]))
    frequent, total = dict(sorted(order[:MOST_CATEGORIES])), sum(times)
    others = total - sum(frequent.values())
    missing = bool(pc.any(pc.is_null(values, nan_is_null=True)).as_py())
    return Column(
        name=name,
        kind="category",
        reason=reason,
        mean=[count / total for count in (*frequent.values(), others)] if total else [],
        categories=list(frequent),
        missing=missing,
    )
