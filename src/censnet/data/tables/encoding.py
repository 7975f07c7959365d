"""One column as features: fitted on training rows, then encoded the same way wherever it comes from."""

from __future__ import annotations

from typing import Any, Literal, NoReturn, Self, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from censnet.data.tables.censoring import is_limit
from censnet.data.tables.column_types import MOST_CATEGORIES, find_kind
from censnet.data.tables.columns import (
    DECIMAL_COMMA,
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
from censnet.data.tables.notations import Notation
from censnet.data.tables.statistics import Summary, different_columns, summarize, summarize_each, to_shares
from censnet.errors import DataError, quote

IntArray = NDArray[np.int64]

WHOLE = -1  # no entry of a vector
CHOSEN = "chosen by the user"
ALWAYS_THE_SAME = "always the same"
FARTHEST = 1e6  # standard deviations; beyond them a value says nothing more and may not fit a float32
_CELLS = 1 << 22  # of a vector's rows that are scaled at a time
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
        shares: whether a vector, of words that are counted, is divided by its sum in each row.
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
    shares: bool = False
    notation: Notation = "point"

    @model_validator(mode="after")
    def _check_entries(self) -> Self:
        every = range(len(self.mean))
        features = set(self.entries or every)
        if self.entries != sorted(set(self.entries)) or self.marked != sorted(set(self.marked)):
            raise ValueError("entries and marked are not in order, expected each entry once")
        if not (features <= set(every) and set(self.marked) <= features and len(self.centered) in (0, len(every))):
            raise ValueError(f"entries, marked or centered do not fit a mean of {len(every)} numbers")
        return self

    @property
    def width(self) -> int:
        """How many features it gives."""
        if self.kind not in USED:
            return 0
        if self.kind == "category":
            return len(self.categories) + 1 + self.missing
        return len(self.entries or self.mean) + len(self.marked) + self.missing

    @property
    def names(self) -> list[str]:
        """What each feature says."""
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
    def categories_complete(self) -> bool:
        """Whether it is a category that has every word of the training rows, none being left for the last feature."""
        return self.kind == "category" and bool(self.mean) and self.mean[-1] == 0

    @property
    def chosen(self) -> bool:
        """Whether the user said what it is."""
        return self.reason == CHOSEN

    @classmethod
    def fit(
        cls,
        name: str,
        values: pa.ChunkedArray,
        kind: str | None = None,
        shares: bool = False,
        rows: IntArray | None = None,
        file: str | None = None,
    ) -> Column:
        """Find the kind of a column by all of its values, unless it is given, and its statistics from some rows.

        Args:
            name: of the column.
            values: all of them.
            kind: what the user says it is; it is an error if no value can be read so.
            shares: whether a vector of counts is divided by its sum in each row.
            rows: those that train; all if None.
            file: of the column, for messages.
        """
        reason, notation = CHOSEN, cast(Notation | None, None)
        if kind is None:
            kind, reason = find_kind(name, values)
        elif kind == DECIMAL_COMMA:
            kind, notation = "number", "comma"
        elif kind not in USED:
            kind = kind if kind in ("text", "id", "constant") else "drop"
        column = cls(name=name, kind=cast(Kind, kind), reason=reason)
        if column.kind not in USED:
            return column
        if column.kind == "category":
            return _fit_category(column, values, rows, file)
        width = list_width(values) if column.kind == "vector" else 1
        parsed = _parse(column.kind, values, width, notation)
        numbers = _as_matrix(parsed)
        if width == 0 or not bool((~np.isnan(numbers)).any()):
            if column.chosen:
                _refuse(column, values, parsed, width, file)
            return cls(name=name, kind="constant", reason="holds no value that can be read")
        shares = shares and column.kind == "vector" and not bool((numbers < 0).any())
        column = column.model_copy(update={"shares": shares, "notation": parsed.notation})
        column = _find_scaling(column, numbers)
        return column._measured(parsed, rows) if column.kind in USED else column

    @classmethod
    def standardized(cls, name: str, values: pa.ChunkedArray, reason: str) -> Column:
        """A number that is centered and scaled whatever its values are; a constant if they are all the same."""
        parsed = read_numbers(values)
        summary = summarize(parsed.numbers)
        if summary is None or summary.deviation == 0:
            found = "holds no value that can be read" if summary is None else ALWAYS_THE_SAME
            return cls(name=name, kind="constant", reason=found)
        column = cls(name=name, kind="number", reason=reason, mean=[0.0], scale=[1.0])
        return column._measured(parsed, None)

    def refit(self, values: pa.ChunkedArray, rows: IntArray | None = None) -> Column:
        """The same features with the statistics of some rows, or of all. Where those say nothing, all do."""
        if self.kind not in USED:
            return self
        if self.kind == "category":
            return _fit_category(self, values, rows)
        return self._measured(_parse(self.kind, values, len(self.mean), self.notation), rows)

    def _measured(self, parsed: Parsed, rows: IntArray | None) -> Column:
        """The same with the statistics of these rows; of an entry of which they say nothing, those of all rows."""
        every = _as_matrix(parsed)
        every = to_shares(every) if self.shares else every
        training = every if rows is None else every[rows]
        absent = np.isnan(training)
        absent[np.isin(np.arange(len(every)) if rows is None else rows, parsed.bad)] = False
        mean, scale, statistics = list[float](), list[float](), "training"
        features = set(self.entries)
        fixed = self.kind == "boolean" or self.shares  # truth values and shares are in scale already
        for entry, (found, centered) in enumerate(zip(summarize_each(training), self._centered, strict=True)):
            silent = found is None or (found.scale(centered) == 0 and not fixed)
            if silent and rows is not None and (entry in features or not features):
                everywhere = summarize(np.ascontiguousarray(every[:, entry]))
                needed = found is None or (everywhere and everywhere.deviation > 0 and not everywhere.indicator)
                if everywhere is not None and needed:
                    found, statistics = everywhere, "all"
            mean.append(0.0 if found is None else found.mean)
            scale.append(1.0 if found is None or fixed else found.scale(centered) or 1.0)
        marks: dict[str, object] = {"missing": bool(absent.all(axis=1).any())}
        if self.kind == "vector" and not self.shares:
            marks = {"marked": different_columns(absent, self.entries or range(absent.shape[1]))}
        return self.model_copy(update={"mean": mean, "scale": scale, "statistics": statistics, **marks})

    def missing_patterns(self, values: pa.ChunkedArray, rows: IntArray | None = None) -> dict[int, bytes]:
        """Which of some rows lack it, for each entry that an indicator tells of, or for the `WHOLE` column."""
        if self.kind == "category" or not (self.missing or self.marked):
            return {}
        parsed = _parse(self.kind, values, len(self.mean), self.notation)
        absent = np.isnan(_as_matrix(parsed))
        absent[parsed.bad] = False
        absent = absent if rows is None else absent[rows]
        found = {entry: np.packbits(absent[:, entry]).tobytes() for entry in self.marked}
        return {**found, WHOLE: np.packbits(absent.all(axis=1)).tobytes()} if self.missing else found

    @property
    def _centered(self) -> list[bool]:
        """Whether the mean of each entry is subtracted."""
        if self.centered:
            return self.centered
        raw = self.kind == "boolean" or (self.kind == "vector" and all(scale == 1 for scale in self.scale))
        return [not raw] * len(self.mean)

    def encode(self, values: pa.ChunkedArray, out: NDArray[np.float32]) -> dict[int, str]:
        """Write the features of each row into `out` (rows, width); for each bad row, what was found there."""
        if self.kind == "category":
            self._encode_category(values, out)
            return {}
        parsed = _parse(self.kind, values, len(self.mean), self.notation)
        numbers = _as_matrix(parsed)
        absent = np.isnan(numbers)
        absent[parsed.bad] = False
        self._scale(to_shares(numbers) if self.shares else numbers, absent, out)
        if self.missing:
            out[:, -1] = absent.all(axis=1)
        return self._messages(values, parsed)

    def _scale(self, numbers: NDArray[Any], absent: NDArray[np.bool_], out: NDArray[np.float32]) -> None:
        """Write each entry, and whether it is missing where that is told."""
        mean, scale = np.array(self.mean), np.array(self.scale)
        offset = np.where(self._centered, mean, 0.0)
        entries = np.array(self.entries or range(len(mean)))
        place = np.arange(len(entries)) + np.searchsorted(np.array(self.marked), entries)
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
                    out[rows, place] = scaled
        if self.marked:
            out[:, place[np.searchsorted(entries, self.marked)] + 1] = absent[:, self.marked]

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
            if self.categories_complete:
                untaught |= ~absent & (column == known)
            out[untaught, : known + 1] = self.mean
        if self.missing:
            out[:, -1] = absent

    def find_unseen(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """The words that training rows did not have, once for each row with one; none where that cannot be told."""
        text = as_text(values)
        if not self.categories_complete:
            return text.slice(0, 0)
        return text.filter(pc.invert(pc.is_in(text, value_set=pa.array([*self.categories, None], pa.string()))))

    def _messages(self, values: pa.ChunkedArray, parsed: Parsed) -> dict[int, str]:
        if len(parsed.bad) == 0:
            return {}
        found = values.take(pa.array(parsed.bad)).to_pylist()
        expected = _EXPECTED.get(self.kind, f"is not a list of {len(self.mean)} numbers")
        limit = "is a limit (censored), expected a finite number: a feature has to be known"
        return {
            int(row): f"{quote(value)} {limit if self.kind == 'number' and is_limit(value) else expected}"
            for row, value in zip(parsed.bad, found, strict=True)
        }


def _parse(kind: Kind, values: pa.ChunkedArray, width: int, notation: Notation | None) -> Parsed:
    if kind == "vector":
        return read_vectors(values, width)
    if kind == "number":
        return read_numbers(values, notation)
    return {"boolean": read_booleans, "date": read_dates}[kind](values)


def _as_matrix(parsed: Parsed) -> NDArray[Any]:
    return parsed.numbers if parsed.numbers.ndim == 2 else parsed.numbers[:, None]


def _find_scaling(column: Column, numbers: NDArray[Any]) -> Column:
    """The same with what of it is a feature, and what is centered, by all of its rows; or a constant."""
    width = numbers.shape[1]
    column = column.model_copy(update={"mean": [0.0] * width, "scale": [1.0] * width})
    if column.shares:
        return column
    found = summarize_each(numbers)
    entries = [entry for entry, summary in enumerate(found) if summary is not None and summary.deviation > 0]
    if not entries and not column.chosen:
        return Column(name=column.name, kind="constant", reason=ALWAYS_THE_SAME)
    centered = [summary is None or not summary.sparse or column.kind == "date" for summary in found]
    if column.kind == "vector":
        kept = entries if 0 < len(entries) < width else []
        return column.model_copy(update={"centered": centered, "entries": kept})
    if column.kind == "number" and not centered[0]:
        indicator = cast(Summary, found[0]).indicator
        reason = column.reason if column.chosen else "0 or 1" if indicator else f"{column.reason}, 0 in most rows"
        column = column.model_copy(update={"centered": centered, "reason": reason})
    return column


def _refuse(column: Column, values: pa.ChunkedArray, parsed: Parsed, width: int, file: str | None) -> NoReturn:
    """Raise, for the user said that a column is of a kind of which it has no value."""
    asked = f"--column {column.name}={column.kind} asks for: leave that out, or choose another kind"
    present = np.flatnonzero(~np.isnan(_as_matrix(parsed)).all(axis=1)) if width else np.zeros(0, np.int64)
    bad = parsed.bad if len(parsed.bad) else present
    if len(bad) == 0:
        raise DataError(f"holds no value in any row, expected the {column.kind} that {asked}", file, column=column.name)
    row = int(bad[0])
    expected = _EXPECTED.get(column.kind, "is not a list of numbers such as [1, 2, 3]")
    found = f"{quote(values[row].as_py())} {expected}, nor is any other value"
    raise DataError(f"{found}, expected the {column.kind} that {asked}", file, row, column.name)


def _fit_category(column: Column, values: pa.ChunkedArray, rows: IntArray | None, file: str | None = None) -> Column:
    """The words of some rows, or of all where those have no two different ones and others do."""
    text, statistics = as_text(values), "training"
    if column.chosen and file is not None and text.null_count == len(text):
        raise DataError(f"holds no value in any row, expected the category that --column {column.name}=category asks "
                        "for: leave that out", file, column=column.name)  # fmt: skip
    training = text if rows is None else text.take(pa.array(rows))
    missing = bool(training.null_count)
    if rows is not None and len(training.unique()) < 2 and len(text.drop_null().unique()) > 1:
        training, statistics = text, "all"
    counts = pc.value_counts(training.drop_null())
    words, times = counts.field("values").to_pylist(), counts.field("counts").to_pylist()
    order = sorted(zip(words, times, strict=True), key=lambda pair: (-pair[1], pair[0]))
    frequent, total = dict(sorted(order[:MOST_CATEGORIES])), sum(times)
    others = total - sum(frequent.values())
    return column.model_copy(
        update={
            "mean": [count / total for count in (*frequent.values(), others)] if total else [],
            "categories": list(frequent),
            "missing": missing,
            "statistics": statistics,
        }
    )
