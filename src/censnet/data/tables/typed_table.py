"""Typed tables: the kind of each column, its statistics on training rows, and features where no column gives any."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from censnet.data.tables.columns import DECIMAL_COMMA, as_arrow
from censnet.data.tables.feature_encoding import Column
from censnet.data.tables.notes import RowError
from censnet.data.tables.number_notation import Notation
from censnet.data.tables.row_errors import locate
from censnet.data.tables.schema import TableSchema
from censnet.data.tables.typed_column import WHOLE_COLUMN, TypedColumn, type_column
from censnet.errors import DataError
from censnet.ops.arrays import IntArray

_BLOCK = 1 << 16  # rows encoded at a time, so that their features stay in the cache while column after column comes
_MAX_MESSAGES = 3  # on one row


@dataclass(frozen=True, eq=False)
class TypedTable:
    """A table whose columns have kinds, and whose values are read: what can be said before the split is known.

    Args:
        schema: keys, targets and columns; statistics are there only if they were given.
        columns: the columns that are features, with their values.
        num_rows: the number of rows.
        file: the name of the table, for messages.
        first_row: the number of the first row in its file, where this is a part of it, for messages.

    Example:
        >>> table = pd.DataFrame({"id": ["a", "b", "c", "d"], "age": [20, 40, 30, 90], "fee": [5.0, 7.0, 5.0, 5.5]})
        >>> typed = TypedTable.find(table, keys={"id": "id"})
        >>> fitted = typed.fit(np.array([0, 1]))
        >>> typed.encode(fitted).tolist()
        [[-1.0, -1.0], [1.0, 1.0], [0.0, -1.0], [6.0, -0.5]]
    """

    schema: TableSchema
    columns: list[TypedColumn]
    num_rows: int
    file: str = "the table"
    first_row: int = 0

    @classmethod
    def find(
        cls,
        frame: pd.DataFrame,
        keys: Mapping[str, str] | None = None,
        targets: Sequence[str] = (),
        overrides: Mapping[str, str] | None = None,
        row_normalized: bool = False,
        file: str = "the table",
    ) -> TypedTable:
        """Type the columns of a table by all of its rows, and read them.

        Args:
            frame: the table.
            keys: role -> column.
            targets: the columns to predict.
            overrides: column -> kind, as the user says.
            row_normalized: whether vectors of counts are divided by their sum in each row.
            file: named in messages.
        """
        keys, overrides = dict(keys or {}), dict(overrides or {})
        taken = {*keys.values(), *targets}
        columns = [
            type_column(name, as_arrow(frame[name]), overrides.get(name), row_normalized, file)
            for name in frame.columns
            if name not in taken
        ]
        said: dict[str, Notation] = {DECIMAL_COMMA: "comma", "number": "point"}
        notations = {name: said[overrides[name]] for name in targets if overrides.get(name) in said}
        every = [typed.column for typed in columns]
        schema = TableSchema(keys=keys, targets=list(targets), notations=notations, columns=every)
        return cls(schema, [typed for typed in columns if typed.column.width], len(frame), file)

    @classmethod
    def read(cls, schema: TableSchema, frame: pd.DataFrame, file: str = "the table", first_row: int = 0) -> TypedTable:
        """Read a later table as a fitted schema has it.

        The order of the columns does not matter, and columns that are not in the schema are not looked at.
        """
        columns = []
        for column in schema.columns:
            if not column.width:
                continue
            if column.name not in frame.columns:
                raise DataError(f"is missing, expected a {column.kind} as in training", file, column=column.name)
            values = as_arrow(frame[column.name])
            columns.append(TypedColumn(column, values, None if column.kind == "category" else column.parse(values)))
        return cls(schema, columns, len(frame), file, first_row)

    @property
    def errors(self) -> dict[int, RowError]:
        """Row -> the values in it that cannot be read, of the first few columns."""
        messages: dict[int, list[RowError]] = {}
        for typed in self.columns:
            for row, message in typed.errors.items():
                messages.setdefault(row, []).append(locate(message, self.file, self.first_row + row, typed.column.name))
        return {row: _join_messages(messages[row]) for row in sorted(messages)}

    def select(self, names: Collection[str]) -> TypedTable:
        """The table with these features alone."""
        columns = [typed for typed in self.columns if typed.column.name in names]
        schema = self.schema.model_copy(update={"columns": [c for c in self.schema.columns if c.name in names]})
        return replace(self, schema=schema, columns=columns)

    def fit(self, rows: IntArray | None = None, only: bool = False) -> TableSchema:
        """The schema with the statistics of some rows, or of all; see `TypedColumn.fit`."""
        fitted = _share_indicators([(typed, typed.fit(rows, only)) for typed in self.columns], rows)
        columns = [fitted.get(column.name, column) for column in self.schema.columns]
        return self.schema.model_copy(update={"columns": columns})

    def encode(self, fitted: TableSchema) -> Tensor:
        """The features of every row, scaled as the fitted schema says."""
        columns = {column.name: column for column in fitted.columns}
        used = [columns[typed.column.name] for typed in self.columns]
        ends = np.cumsum([0, *(column.width for column in used)])
        out = np.empty((self.num_rows, ends[-1]), np.float32)
        for start in range(0, self.num_rows, _BLOCK):
            for number, (column, typed) in enumerate(zip(used, self.columns, strict=True)):
                parsed = None if typed.parsed is None else typed.parsed.slice(start, _BLOCK)
                block = out[start : start + _BLOCK, ends[number] : ends[number + 1]]
                column.encode(typed.values.slice(start, _BLOCK), block, parsed)
        return torch.from_numpy(out if not fitted.odd_width else out[:, fitted.feature_order])


def _join_messages(messages: Sequence[RowError]) -> RowError:
    more = len(messages) - _MAX_MESSAGES
    text = "; ".join(messages[:_MAX_MESSAGES]) + (f"; and {more:,} more columns" if more > 0 else "")
    return RowError(messages[0].cause, text)


def _share_indicators(columns: Sequence[tuple[TypedColumn, Column]], rows: IntArray | None) -> dict[str, Column]:
    """The fitted columns by name; of those that are missing in the same rows, the first alone has an indicator.

    So a vector gives the same features as a column for each of its entries. What the user chose shares with its like:
    of the columns of `graphs`, no other is a feature.
    """
    known, found = set[tuple[bool, bytes]](), dict[str, Column]()
    for typed, column in columns:
        patterns = typed.missing_patterns(column, rows)
        new = {entry: (column.chosen, pattern) not in known for entry, pattern in patterns.items()}
        known |= {(column.chosen, pattern) for pattern in patterns.values()}
        if not all(new.values()):
            marked = [entry for entry in column.marked if new[entry]]
            missing = column.missing and new[WHOLE_COLUMN]
            column = column.model_copy(update={"marked": marked, "missing": missing})
        found[column.name] = column
    return found
