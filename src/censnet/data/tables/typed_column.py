"""Typed columns: the kind of a column, and its statistics on training rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from censnet.data.tables.column_statistics import Summary, different_columns, normalize_rows, summarize, summarize_each
from censnet.data.tables.column_types import find_kind
from censnet.data.tables.columns import DECIMAL_COMMA, USED, Kind, Parsed, as_text, list_width, read_numbers
from censnet.data.tables.feature_encoding import CHOSEN, EXPECTED, Column, parse_values
from censnet.data.tables.notes import RowError
from censnet.data.tables.number_notation import Notation
from censnet.errors import DataError, quote
from censnet.ops.arrays import Array, IntArray
from censnet.option_names import column_option

WHOLE_COLUMN = -1  # instead of the entry of a vector
ALWAYS_THE_SAME = "always the same"
CATEGORIES = 100  # the most frequent ones, which have features of their own however few rows they have
MOST_CATEGORIES = 1000  # that have such features
FREQUENT = 5  # training rows of a category beyond these 100, from which on it has a feature of its own
CATEGORY_VALUES = 2**24  # numbers that a column with more than 100 of them has in all rows


@dataclass(frozen=True, eq=False)
class TypedColumn:
    """A column whose kind is known, with its values as numbers.

    Args:
        column: kind, notation, entries and centering by all rows; its statistics are there only if they were given.
        values: all of them.
        parsed: the values as numbers; None for a category, and for a column that is no feature.
    """

    column: Column
    values: pa.ChunkedArray
    parsed: Parsed | None = None

    @property
    def errors(self) -> dict[int, RowError]:
        """Row -> the value that cannot be read."""
        return {} if self.parsed is None else self.column.error_messages(self.values, self.parsed)

    def fit(self, rows: IntArray | None = None, only: bool = False) -> Column:
        """The column with the statistics of some rows, or of all.

        Where the given rows have no two different values, the statistics are those of all rows.

        Args:
            rows: the training rows; all if None.
            only: whether nothing at all is taken from other rows, as from edges that are links to be predicted.
        """
        if self.column.kind not in USED:
            return self.column
        if self.parsed is None:
            return _fit_category(self.column, self.values, rows, only)
        column, parsed = self.column, self.parsed
        every = normalize_rows(parsed.matrix) if column.row_normalized else parsed.matrix
        training = every if rows is None else every[rows]
        absent = np.isnan(training)
        absent[np.isin(np.arange(len(every)) if rows is None else rows, parsed.bad)] = False
        mean, scale, statistics = list[float](), list[float](), "training"
        features = set(column.entries)
        fixed = column.kind == "boolean" or column.row_normalized  # truth values and shares are in scale already
        for entry, (found, centered) in enumerate(zip(summarize_each(training), column.is_centered, strict=True)):
            silent = found is None or (found.scale(centered) == 0 and not fixed)
            if silent and rows is not None and not only and (entry in features or not features):
                everywhere = summarize(np.ascontiguousarray(every[:, entry]))
                needed = found is None or (everywhere and everywhere.deviation > 0 and not everywhere.indicator)
                if everywhere is not None and needed:
                    found, statistics = everywhere, "all"
            mean.append(0.0 if found is None or column.kind == "oriented" else found.mean)
            scale.append(1.0 if found is None or fixed else found.scale(centered) or 1.0)
        marks: dict[str, object] = {"missing": bool(absent.all(axis=1).any())}
        if column.kind == "vector" and not column.row_normalized:
            marks = {"marked": different_columns(absent, column.entries or range(absent.shape[1]))}
        return column.model_copy(update={"mean": mean, "scale": scale, "statistics": statistics, **marks})

    def missing_patterns(self, fitted: Column, rows: IntArray | None) -> dict[int, bytes]:
        """The training rows that lack a value, for each entry with a missing-value indicator, or for `WHOLE_COLUMN`."""
        if self.parsed is None or not (fitted.missing or fitted.marked):
            return {}
        absent = np.isnan(self.parsed.matrix)
        absent[self.parsed.bad] = False
        absent = absent if rows is None else absent[rows]
        found = {entry: np.packbits(absent[:, entry]).tobytes() for entry in fitted.marked}
        return {**found, WHOLE_COLUMN: np.packbits(absent.all(axis=1)).tobytes()} if fitted.missing else found


def type_column(
    name: str, values: pa.ChunkedArray, kind: str | None = None, row_normalized: bool = False, file: str | None = None
) -> TypedColumn:
    """Find the kind of a column by all of its values, unless it is given, and read them.

    Args:
        name: of the column.
        values: all of them.
        kind: as the user says; it is an error if no value can be read so.
        row_normalized: whether a vector of counts is divided by its sum in each row.
        file: of the column, for messages.
    """
    reason, notation = CHOSEN, cast(Notation | None, None)
    if kind is None:
        kind, reason = find_kind(name, values)
    elif kind == DECIMAL_COMMA:
        kind, notation = "number", "comma"
    elif kind not in USED:
        kind = kind if kind in ("text", "id", "constant") else "drop"
    column = Column(name=name, kind=cast(Kind, kind), reason=reason)
    if column.kind not in USED:
        return TypedColumn(column, values)
    if column.kind == "category":
        if column.chosen and file is not None and as_text(values).null_count == len(values):
            asked = column_option((name, "category"))
            raise DataError(
                f"holds no value in any row, expected the category that {asked} asks for: leave that out",
                file,
                column=name,
            )
        return TypedColumn(column, values)
    width = list_width(values) if column.kind == "vector" else 1
    parsed = parse_values(column.kind, values, width, notation)
    numbers = parsed.matrix
    if width == 0 or not bool((~np.isnan(numbers)).any()):
        if column.chosen:
            _refuse(column, values, parsed, width, file)
        return TypedColumn(Column(name=name, kind="constant", reason="holds no value that can be read"), values)
    row_normalized = row_normalized and column.kind == "vector" and not bool((numbers < 0).any())
    column = _find_scaling(
        column.model_copy(update={"row_normalized": row_normalized, "notation": parsed.notation}), numbers
    )
    return TypedColumn(column, values, parsed if column.kind in USED else None)


def standardize_column(name: str, values: pa.ChunkedArray, reason: str) -> Column:
    """A number that is centered and scaled whatever its values are; a constant if they are all the same."""
    parsed = read_numbers(values)
    summary = summarize(parsed.numbers)
    if summary is None or summary.deviation == 0:
        found = "holds no value that can be read" if summary is None else ALWAYS_THE_SAME
        return Column(name=name, kind="constant", reason=found)
    column = Column(name=name, kind="number", reason=reason, mean=[0.0], scale=[1.0])
    return TypedColumn(column, values, parsed).fit()


def _find_scaling(column: Column, numbers: Array) -> Column:
    """The column with the entries that are features, and those that are centered, by all rows; or a constant."""
    width = numbers.shape[1]
    column = column.model_copy(update={"mean": [0.0] * width, "scale": [1.0] * width})
    if column.row_normalized:
        return column
    found = summarize_each(numbers)
    entries = [entry for entry, summary in enumerate(found) if summary is not None and summary.deviation > 0]
    if not entries and not column.chosen:
        return Column(name=column.name, kind="constant", reason=ALWAYS_THE_SAME)
    centered = [summary is None or not summary.sparse or column.kind == "date" for summary in found]
    if column.kind == "oriented":
        return column.model_copy(update={"centered": [False]})
    if column.kind == "vector":
        features = entries if 0 < len(entries) < width else []
        return column.model_copy(update={"centered": centered, "entries": features})
    if column.kind == "number" and not centered[0]:
        indicator = cast(Summary, found[0]).indicator
        reason = column.reason if column.chosen else "0 or 1" if indicator else f"{column.reason}, 0 in most rows"
        column = column.model_copy(update={"centered": centered, "reason": reason})
    return column


def _refuse(column: Column, values: pa.ChunkedArray, parsed: Parsed, width: int, file: str | None) -> NoReturn:
    """Raise, for the user said that a column is of a kind of which it has no value."""
    asked = f"{column_option((column.name, column.kind))} asks for: leave that out, or choose another kind"
    present = np.flatnonzero(~np.isnan(parsed.matrix).all(axis=1)) if width else np.zeros(0, np.int64)
    bad = parsed.bad if len(parsed.bad) else present
    if len(bad) == 0:
        raise DataError(f"holds no value in any row, expected the {column.kind} that {asked}", file, column=column.name)
    row = int(bad[0])
    expected = EXPECTED.get(column.kind, "is not a list of numbers such as [1, 2, 3]")
    found = f"{quote(values[row].as_py())} {expected}, nor is any other value"
    raise DataError(f"{found}, expected the {column.kind} that {asked}", file, row, column.name)


def _fit_category(column: Column, values: pa.ChunkedArray, rows: IntArray | None, only: bool) -> Column:
    """The categories of some rows, or of all where those have no two different ones and others do."""
    text, statistics = as_text(values), "training"
    training = text if rows is None else text.take(pa.array(rows))
    missing = bool(training.null_count)
    if rows is not None and not only and len(training.unique()) < 2 and len(text.drop_null().unique()) > 1:
        training, statistics = text, "all"
    counts = pc.value_counts(training.drop_null())
    words, times = counts.field("values").to_pylist(), counts.field("counts").to_pylist()
    order = sorted(zip(words, times, strict=True), key=lambda pair: (-pair[1], pair[0]))
    kept = _count_kept([count for _, count in order], len(values))
    frequent, total = dict(sorted(order[:kept])), sum(times)
    others = total - sum(frequent.values())
    reason = column.reason
    if others and not column.chosen:
        reason += f", of which the {kept:,} most frequent"
    return column.model_copy(
        update={
            "mean": [count / total for count in (*frequent.values(), others)] if total else [],
            "categories": list(frequent),
            "missing": missing,
            "statistics": statistics,
            "reason": reason,
        }
    )


def _count_kept(times: list[int], rows: int) -> int:
    """How many categories have features of their own.

    Ids that come back, such as users and articles, have one if there are enough training rows to learn it from. The
    features are dense, so that a long table has fewer.

    Args:
        times: the training rows of each category, most first.
        rows: of the whole table.

    >>> _count_kept([30] * 400 + [2] * 400, 10_000), _count_kept([4] * 800, 10_000), _count_kept([50] * 800, 10**6)
    (400, 100, 100)
    """
    most = max(CATEGORIES, min(MOST_CATEGORIES, CATEGORY_VALUES // max(rows, 1)))
    return min(len(times), max(CATEGORIES, sum(count >= FREQUENT for count in times[:most])))
