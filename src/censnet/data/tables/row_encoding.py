"""One row at a time, as a table of one row would be read: features, times and ids of a mapping of columns to values.

What comes as a number, a truth value, a word or an ISO 8601 date is read by plain Python, in microseconds. Anything
else takes the way of a table.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

import numpy as np
import pandas as pd

from censnet.data.tables.columns import as_arrow, as_text, is_missing
from censnet.data.tables.feature_encoding import FARTHEST, Column
from censnet.data.tables.schema import TableSchema
from censnet.data.tables.time_formats import EPOCH, PER_SECOND
from censnet.data.tables.times import EXPECTED, TimeColumn
from censnet.errors import DataError, quote
from censnet.ops.arrays import Array

Row = Mapping[str, object]
MAX_KNOWN = 10_000  # values whose features are remembered, of each column
_ISO = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,3}))?)?(?:(Z)|([+-])(\d{2}):(\d{2}))?)?",
    re.ASCII,
)
_EPOCH = date(1970, 1, 1).toordinal()


class RowEncoder:
    """The features of rows of one table, as `TypedTable.encode` gives them.

    A column that is a feature has to be there; None says that its value is not known.

    Args:
        fitted: the columns with their statistics.
        table: its name, for messages.

    Example:
        >>> amount = Column(name="amount", kind="number", mean=[40.0], scale=[10.0])
        >>> color = Column(name="color", kind="category", mean=[0.5, 0.5, 0.0], categories=["blue", "red"])
        >>> encoder = RowEncoder(TableSchema(columns=[amount, color]), "edges")
        >>> encoder({"amount": 60, "color": "red"}).tolist()
        [2.0, 0.0, 1.0, 0.0]
        >>> encoder({"amount": "a lot", "color": None})
        Traceback (most recent call last):
        censnet.errors.DataError: column amount: 'a lot' is not a finite number
    """

    def __init__(self, fitted: TableSchema, table: str) -> None:
        self.width, self.table = fitted.width, table
        self._order = fitted.feature_order if fitted.odd_width else None
        self._columns = [_ColumnEncoder(column) for column in fitted.columns if column.width]
        self._plain = fitted.structure != "none"

    def __call__(self, row: Row) -> Array:
        """The features of a row. (width,)"""
        if self._plain:
            return np.ones(self.width, np.float32)
        found: list[float] = []
        for column in self._columns:
            if column.name not in row:
                raise DataError(
                    f"is missing, expected a {column.kind} as in training, or null where it is not known",
                    column=column.name,
                )
            found += column(row[column.name])
        features = np.array(found, np.float32)
        return features if self._order is None else features[self._order]

    def unknown(self) -> Array:
        """The features of a row of which nothing is known."""
        return self({column.name: None for column in self._columns})


class _ColumnEncoder:
    """The features of values of one column."""

    def __init__(self, column: Column) -> None:
        self.column, self.name, self.kind = column, column.name, column.kind
        self._known = dict[object, list[float]]()
        self._number: Callable[[float], float] | None = None
        if column.kind in ("number", "oriented", "date") and not column.row_normalized:
            offset, scale = column.mean[0] if column.is_centered[0] else 0.0, column.scale[0]
            self._number = lambda x: min(max((x - offset) / scale, -FARTHEST), FARTHEST)
        self._indicator = [0.0] * column.missing

    def __call__(self, value: object) -> list[float]:
        kind = type(value)
        if self._number is not None:
            x = _plain_number(value) if self.kind != "date" else read_iso(value) if kind is str else None
            if x is not None:
                return [self._number(x), *self._indicator]
        elif kind not in (str, int, float, bool, type(None)):
            return self._as_table(value)
        try:
            key = kind, value
            found = self._known.get(key)
        except TypeError:
            return self._as_table(value)
        if found is None:
            found = self._as_table(value)
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            if value == value:
                self._known[key] = found
        return found

    def _as_table(self, value: object) -> list[float]:
        """By way of a table of one row."""
        column = self.column
        values, out = as_arrow(pd.Series([value], dtype=object)), np.empty((1, column.width), np.float32)
        parsed = None if column.kind == "category" else column.parse(values)
        if parsed is not None and len(parsed.bad):
            raise DataError(column.error_messages(values, parsed)[0], column=column.name)
        column.encode(values, out, parsed)
        found: list[float] = out[0].tolist()
        return found


def _plain_number(value: object) -> float | None:
    """A finite number that needs no reading; None for anything else."""
    if type(value) is float:
        return value if math.isfinite(value) else None
    return float(value) if type(value) is int and abs(value) < 2**63 else None


def read_iso(text: object) -> float | None:
    """Seconds since 1970 from the usual forms of ISO 8601; None for anything else.

    >>> read_iso("1970-01-02"), read_iso("1970-01-01T01:00:00.5+01:00"), read_iso("soon")
    (86400.0, 0.5, None)
    """
    found = _ISO.fullmatch(text) if type(text) is str else None
    if found is None:
        return None
    year, month, day, hour, minute, second, part, _, sign, zone_hour, zone_minute = found.groups()
    try:
        days = date(int(year), int(month), int(day)).toordinal() - _EPOCH
    except ValueError:
        return None
    h, m, s = int(hour or 0), int(minute or 0), int(second or 0)
    shift = 0 if sign is None else (int(zone_hour) * 60 + int(zone_minute)) * (-60 if sign == "-" else 60)
    if h > 23 or m > 59 or s > 59 or abs(shift) >= 86400:
        return None
    whole = ((days * 24 + h) * 60 + m) * 60 + s - shift
    return (whole * 1000 + int((part or "").ljust(3, "0"))) / 1e3


class TimeReader:
    """The time of a row as a number.

    >>> reader = TimeReader(TimeColumn(name="day", form="date"))
    >>> reader({"day": "1970-01-02"}), reader({"day": "03.01.1970"})
    (86400.0, 172800.0)
    """

    def __init__(self, column: TimeColumn) -> None:
        self.column = column

    def __call__(self, row: Row) -> float:
        name, form = self.column.name, self.column.form
        if name not in row:
            raise DataError("is missing, expected the time of the event", column=name)
        value = row[name]
        if type(value) is bool:
            raise DataError(f"{quote(value)} is no time, {EXPECTED}", column=name)
        found = read_iso(value) if form == "date" else None if form == "yyyymmdd" else _plain_number(value)
        least, most = EPOCH.get(form, (-math.inf, math.inf))
        if found is not None and least <= found < most:
            return found / PER_SECOND.get(form, 1.0)
        times, errors = self.column.read_rows(pd.Series([value], dtype=object))
        if errors:
            raise DataError(errors[0], column=name)
        return float(times[0])


def read_id(row: Row, name: str) -> str:
    """The id of a row as text: 3, 3.0 and "3" are one node, as in tables.

    >>> read_id({"to": 3.0}, "to"), read_id({"to": "acct-3"}, "to")
    ('3', 'acct-3')
    """
    value = row.get(name)
    if type(value) is str and value:
        return value
    if type(value) is int:
        return str(value)
    if is_missing(value):
        raise DataError("is missing, expected the id of a node", column=name)
    if not isinstance(value, str | int | float | bool) or (isinstance(value, float) and not math.isfinite(value)):
        raise DataError(f"has {quote(value)}, expected the id of a node: text or a whole number", column=name)
    found: Any = as_text(as_arrow(pd.Series([value], dtype=object)))[0].as_py()
    return str(found)
