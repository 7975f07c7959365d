"""Targets that are columns of lists: each entry becomes a column of its own, `y[0]`, `y[1]`, ..."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from censnet.data.tables.columns import as_arrow, is_list, is_missing
from censnet.data.tables.files import Tables
from censnet.errors import DataError, quote

MAX_ENTRIES = 1_000
_ENTRY = re.compile(r"(.+)\[[0-9]+\]", re.DOTALL)


def spread_list_targets(tables: Tables, targets: Mapping[str, Sequence[str]]) -> Tables:
    """The same tables, where a column of lists that is a target has become a column for each entry of the lists.

    A target that holds anything but one value, or as many numbers, in each row is an error.

    Args:
        tables: what was read.
        targets: table -> the columns to predict there: `y`, or `y[1]` for an entry of the lists in `y`.

    Example:
        >>> tables = Tables(nodes=pd.DataFrame({"id": ["a", "b"], "y": [[1, 0], [0, 0]]}))
        >>> list(spread_list_targets(tables, {"nodes": ["y"]}).nodes.columns)
        ['id', 'y[0]', 'y[1]']
    """
    frames = tables.frames()
    for table, names in targets.items():
        frame = frames.get(table)
        if frame is None:
            continue
        for name in names:
            entry = _ENTRY.fullmatch(name)
            base = name if name in frame.columns else entry[1] if entry is not None else name
            if base in frame.columns:
                frame = _spread(frame, base, tables.name(table))
        frames[table] = frame
    return tables.with_frames(frames)


def entry_columns(columns: Sequence[Any], name: str) -> list[str]:
    """The columns that the entries of a column of lists became; none if it has no lists.

    >>> entry_columns(["id", "y[0]", "y[1]", "y"], "y")
    ['y[0]', 'y[1]']
    """
    return [str(column) for column in columns if re.fullmatch(re.escape(name) + r"\[[0-9]+\]", str(column))]


def with_siblings(targets: Mapping[str, Sequence[str]], tables: Tables) -> dict[str, list[str]]:
    """The targets, and the other entries of the lists that some of them are entries of: those are labels as well."""
    found: dict[str, list[str]] = {}
    for table, names in targets.items():
        every, columns = list(names), list(tables.frames()[table].columns) if table in tables.frames() else []
        for name in names:
            entry = _ENTRY.fullmatch(name)
            every += entry_columns(columns, entry[1]) if entry is not None else []
        found[table] = list(dict.fromkeys(every))
    return found


def _spread(frame: pd.DataFrame, name: str, file: str) -> pd.DataFrame:
    if frame[name].dtype == object:
        odd = next(
            (value for value in frame[name] if not (isinstance(value, Hashable | list) or is_array(value))), None
        )
        if odd is not None:
            raise DataError(f"holds {quote(odd)}, expected one number or one class in each row", file, column=name)
    values = as_arrow(frame[name])
    kind = values.type
    if not is_list(kind):
        if pa.types.is_nested(kind):
            raise DataError(
                f"holds {quote(str(kind))[1:-1]}, expected one number or one class in each row: give the part to "
                "predict a column of its own",
                file,
                column=name,
            )
        return frame
    length = pc.unique(pc.list_value_length(values).drop_null()).to_pylist()
    if len(length) != 1 or not 0 < length[0] <= MAX_ENTRIES:
        found = "no lists" if not length else f"lists of {min(length):,} to {max(length):,} numbers"
        raise DataError(
            f"holds {found}, expected as many in each row, at most {MAX_ENTRIES:,}, or one: give each number to "
            "predict a column of its own",
            file,
            column=name,
        )
    columns: dict[str, Any] = {}
    for column in frame.columns:
        if column != name:
            columns[column] = frame[column]
            continue
        for entry in range(length[0]):
            if f"{name}[{entry}]" in frame.columns:
                raise DataError(
                    f"is an entry of the lists in {name}, and a column as well", file, None, f"{name}[{entry}]"
                )
            part = pc.list_element(values, entry)
            columns[f"{name}[{entry}]"] = pd.Series(pd.arrays.ArrowExtensionArray(part), index=frame.index)
    return pd.DataFrame(columns, index=frame.index)


def is_array(value: object) -> bool:
    """Whether this is an array of numbers in a cell, which Arrow takes for a list."""
    return hasattr(value, "__array__") and not is_missing(value)
