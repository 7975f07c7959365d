"""Rows in JSON, or CSV as text, as the tables that `load_data` reads; a column is what it would be in a file."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from censnet.data.tables.files import Tables, read_table, to_frame
from censnet.data.tables.keys import TABLES
from censnet.data.tables.schema import Schema
from censnet.errors import DataError, quote, shorten
from censnet.serving.limits import TOO_LARGE, Limits, RefusedError
from censnet.text import count

Rows = Sequence[Mapping[str, Any]] | str  # objects of columns, or CSV
SCALARS = (str, int, float, bool)
LARGEST = 1.7e308  # a float; JSON may have larger integers
EXPECTED = "expected text, a finite number, true, false, null or a list of numbers"


def make_tables(given: Mapping[str, Rows], schema: Schema, limits: Limits) -> Tables:
    """The tables of a request.

    Args:
        given: table -> its rows.
        schema: of the run, which says which columns of CSV are ids.
        limits: of rows and columns.
    """
    frames = {}
    for table in TABLES:
        if table in given:
            rows = given[table]
            frames[table] = read_text(rows, table, schema) if isinstance(rows, str) else make_frame(rows, table, limits)
    rows_given = sum(map(len, frames.values()))
    if rows_given > limits.rows:
        raise RefusedError(
            TOO_LARGE, f"the tables have {rows_given:,} rows, expected at most {limits.rows:,}: send fewer"
        )
    for table, frame in frames.items():
        _check_columns(table, frame.shape[1], limits)
    return Tables().with_frames(frames)


def read_text(text: str, table: str, schema: Schema) -> pd.DataFrame:
    """A table from the text of a CSV file, by the reader of files."""
    with tempfile.TemporaryDirectory(prefix="censnet-") as folder:
        path = Path(folder) / f"{table}.csv"
        path.write_text(text, encoding="utf-8", newline="")
        frame = read_table(path, list(schema.table(table).keys.values()))
    if not len(frame):
        raise DataError("has names of columns and no row below them, expected at least one row", table)
    return frame


def make_frame(rows: Sequence[Mapping[str, Any]], table: str, limits: Limits) -> pd.DataFrame:
    """A table from rows, each an object of its columns; a column that a row lacks is empty there.

    >>> frame = make_frame([{"id": 7, "age": 31}, {"id": 8, "age": "unknown"}, {"id": 9}], "nodes", Limits())
    >>> frame["id"].tolist(), frame["age"].tolist()
    ([7, 8, 9], ['31', 'unknown', <NA>])
    """
    if not rows:
        raise DataError("has no row, expected at least one", table)
    names = dict.fromkeys(name for row in rows for name in row)
    _check_columns(table, len(names), limits)
    columns = {name: _column([row.get(name) for row in rows], table, name) for name in names}
    return to_frame(pa.table(columns), table)


def _check_columns(table: str, number: int, limits: Limits) -> None:
    if number > limits.columns:
        found = count(number, "column")
        raise RefusedError(
            TOO_LARGE, f"{table} has {found}, expected at most {limits.columns:,}: send those of the run"
        )


def _column(values: Sequence[Any], table: str, name: str) -> pa.Array:
    """A column of one type; of several types as text, as in a CSV file."""
    kinds = {type(value) for value in values} - {type(None)}
    if kinds == {list}:
        return pa.array([_vector(value, table, name, row) for row, value in enumerate(values)], pa.list_(pa.float64()))
    if not kinds <= set(SCALARS):
        row = next(row for row, value in enumerate(values) if value is not None and type(value) not in SCALARS)
        raise DataError(f"is {quote(values[row])}, {EXPECTED}", table, row, shorten(name))
    try:
        if kinds == {int, float}:
            return pa.array([None if value is None else float(value) for value in values])
        if len(kinds) <= 1:
            return pa.array(values)
    except (pa.ArrowException, OverflowError):  # integers of more than 64 bits
        pass
    return pa.array([_written(value) for value in values], pa.string())


def _vector(value: Sequence[Any] | None, table: str, name: str, row: int) -> list[float | None] | None:
    if value is None:
        return None
    for entry in value:
        if entry is not None and (type(entry) not in (int, float) or abs(entry) > LARGEST):
            raise DataError(f"has the entry {quote(entry)}, expected finite numbers", table, row, shorten(name))
    return [None if entry is None else float(entry) for entry in value]


def _written(value: Any) -> str | None:
    """A value as CSV has it."""
    if value is None or isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else repr(value)
