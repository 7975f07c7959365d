"""Columns of text that may mean other numbers than were read, or numbers where none were."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from censnet.data.tables.columns import as_arrow, read_numbers
from censnet.data.tables.encoding import Column
from censnet.data.tables.files import Tables
from censnet.data.tables.notations import find_doubtful_list, find_notation, find_other_notation, is_ambiguous
from censnet.data.tables.schema import Schema
from censnet.errors import first_few, place, quote

MOST_COLUMNS = 5
NEARLY_ALL = 0.9  # of the values look like numbers, where those that are none are taken for a mistake
_PLAIN = "write plain numbers such as -1234.5"


def tell_notations(tables: Tables, schema: Schema) -> list[str]:
    """A sentence for each of the first few features and targets in doubt: an example, how it is read, what to do."""
    found, names = list[str](), list[str]()
    for table, name, column in _text_columns(tables, schema):
        frame = tables.frames()[table]
        doubt = _doubt(as_arrow(frame[name]), name, column)
        if doubt is not None:
            found.append(place(tables.name(table), column=name) + doubt)
            names.append(name)
    if len(found) > MOST_COLUMNS + 1:
        others = f"{len(found) - MOST_COLUMNS:,} more columns have numbers in a doubtful notation"
        return [*found[:MOST_COLUMNS], f"{others}: {first_few(names[MOST_COLUMNS:])}"]
    return found


def _text_columns(tables: Tables, schema: Schema) -> Iterator[tuple[str, str, Column | None]]:
    """Table and name of each column of text on whose notation something depends; a target comes without a column."""
    for table, frame in tables.frames().items():
        fitted = schema.of_graphs if table == "graphs" else schema.table(table)
        columns: dict[str, Column | None] = dict.fromkeys(set(fitted.targets) - set(fitted.notations))
        columns |= {column.name: column for column in fitted.columns if not column.chosen}
        for name in sorted(frame.columns, key=lambda name: name not in fitted.targets):  # these first
            if name in columns and pa.types.is_string(as_arrow(frame[name].iloc[:1000]).type):
                yield table, name, columns[name]


def _doubt(values: pa.ChunkedArray, name: str, column: Column | None) -> str | None:
    """What may be otherwise than it is read, and what to do about it; None where nothing may."""
    number = f"--column {name}=number"
    if column is not None and column.kind == "vector":
        listed = find_doubtful_list(values, len(column.mean))
        if listed is None:
            return None
        return (
            f"{quote(listed)} is read as {len(column.mean)} numbers in a list: for a comma before decimals write a "
            "point, and for a negative number a minus"
        )
    if column is not None and column.kind == "date":
        return None
    if is_ambiguous(values):
        example = next(value for value in values.to_pylist() if value is not None and "," in value).strip()
        read = example.replace(",", "")
        if len(read_numbers(values, "point").bad) <= (1 - NEARLY_ALL) * len(values):
            return (
                f"{quote(example)} is read as {read}, its comma grouping digits: if it stands before decimals, give "
                f"--column {name}=decimal-comma, and if not, {number}"
            )
    other = find_other_notation(values)
    if other is None or other[2] < NEARLY_ALL:
        return None
    sign, example, _ = other
    notation = find_notation(values)
    unread = len(read_numbers(values, notation).bad)
    if unread <= (1 - NEARLY_ALL) * (len(values) - values.null_count) and notation != "mixed":
        return None  # read as numbers; where some are not, their rows say so
    became: str = "classes" if column is None else column.kind
    if column is not None and column.kind == "number":
        became = f"numbers, {unread:,} of which cannot be read"
    if notation == "mixed":
        what = "some values have a comma before decimals and some a point or commas between digits"
        return f"{what}, such as {quote(example)}, so they are taken for {became}: {_PLAIN}"
    return f"values look like numbers with {sign}, such as {quote(example)}, and are taken for {became}: {_PLAIN}"
