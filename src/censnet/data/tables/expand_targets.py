"""The columns that targets stand for, and the rows that statistics come from."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from torch import Tensor

from censnet.data.tables.assemble import TrainRows
from censnet.data.tables.column_types import find_kind
from censnet.data.tables.columns import CHOICES, as_arrow
from censnet.data.tables.files import Tables
from censnet.data.tables.keys import find_keys, table_overrides
from censnet.data.tables.list_targets import entry_columns
from censnet.data.tables.notes import Note
from censnet.data.tables.target_spec import TargetSpec, quote_name
from censnet.errors import DataError, name_columns, quote
from censnet.levels import COLUMN_LEVELS, Level
from censnet.ops.arrays import Array

Rows = Tensor | Array | Sequence[int]
MAX_NAMED = 5  # columns that a note names one by one


def target_columns(specs: Sequence[TargetSpec]) -> dict[str, list[str]]:
    """Table -> the columns to predict there; `*` is none yet.

    >>> target_columns([TargetSpec(Level.NODE, "age"), TargetSpec(Level.NODE, "sex", "binary")])
    {'nodes': ['age', 'sex']}
    """
    found: dict[str, list[str]] = {}
    for spec in specs:
        if not spec.every:
            found.setdefault(spec.level.table, []).append(spec.column)
    return found


def expand_targets(
    specs: Sequence[TargetSpec], tables: Tables, overrides: Mapping[str, str] | None = None
) -> tuple[list[TargetSpec], list[Note]]:
    """One target for each column, `*` and lists written out, and notes of what `*` stands for.

    A column that is missing raises. One whose lists have become columns (`list_targets`) is a target for each of them.

    `*` is every column that is no key, not named beside it, and of which the user says nothing by `overrides`. One that
    says which rows train, that is an id, that holds lists or one value alone, is left out, and said.
    """
    found, notes = list[TargetSpec](), list[Note]()
    for spec in specs:
        table = spec.level.table
        frame = tables.frames().get(table)
        entries = (
            [] if frame is None or spec.column in frame.columns else entry_columns(list(frame.columns), spec.column)
        )
        if entries:
            found += [replace(spec, column=entry) for entry in entries]
            continue
        if frame is None or (not spec.every and spec.column not in frame.columns):
            there = "there is no such table" if frame is None else _near(spec, list(map(str, frame.columns)))
            others = [level for level in COLUMN_LEVELS if spec.column in tables.frames().get(level.table, ())]
            if others:
                meant = (TargetSpec(level, spec.column).name for level in others)
                there = f"did you mean {' or '.join(meant)}?"
            raise DataError(f"is the target, but missing: {there}", tables.name(table), column=spec.column)
        columns = {name: list(frame.columns) for name, frame in tables.frames().items()}
        decided = table_overrides(overrides, columns, CHOICES).get(table, {})
        if not spec.every:
            keys = find_keys(table, frame.columns, decided)
            if spec.column in keys.values():
                role = next(role for role, column in keys.items() if column == spec.column)
                raise DataError(f"is the {role} of each row, expected labels", tables.name(table), column=spec.column)
            found.append(spec)
            continue
        named = {other.column for other in specs if other.level == spec.level and not other.every}
        taken = {*find_keys(table, frame.columns, decided).values(), *decided, *named, *spec.without}
        left, odd = _sort_out(frame[[column for column in frame.columns if column not in taken]])
        if not left:
            raise DataError(f"{spec.name} is no column: all are keys, features or hold nothing", tables.name(table))
        found += [replace(spec, column=column, every=False, without=()) for column in left]
        aside = f"; no target: {_few([f'{name} ({why})' for name, why in odd.items()])}" if odd else ""
        few = _few([quote_name(name) for name in left])
        notes.append(Note("target", f"{tables.name(table)}: {spec.name} is {len(left):,} columns: {few}{aside}"))
    return found, notes


def _sort_out(frame: pd.DataFrame) -> tuple[list[str], dict[str, str]]:
    """The columns that can be learned, and those that cannot, with the reason."""
    kinds = {column: find_kind(str(column), as_arrow(frame[column])) for column in frame.columns}
    odd = {column: reason for column, (kind, reason) in kinds.items() if kind in ("id", "constant")}
    odd |= {column: "lists of numbers" for column, (kind, _) in kinds.items() if kind == "vector"}
    return [column for column in kinds if column not in odd], odd


def _near(spec: TargetSpec, columns: Sequence[str]) -> str:
    """A hint on a column that is not there: close names, or the columns there are."""
    split = [name for name in columns if "," in name and spec.column in [part.strip() for part in name.split(",")]]
    close = split or difflib.get_close_matches(spec.column, columns, n=3)
    if close:
        return f"did you mean {' or '.join(replace(spec, column=name).name for name in close[:3])}?"
    return f"it has {name_columns(columns)}"


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMED:,} more" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more


def find_training_rows(
    rows: Rows | Mapping[str, Rows] | None, targets: Mapping[str, Sequence[str]], tables: Tables
) -> TrainRows:
    """Table -> the rows that statistics are taken from; a bare list is for the level of the one target."""
    if rows is None:
        return {}
    if not isinstance(rows, Mapping):
        if len(targets) != 1:
            raise DataError("train_rows are for one level, expected {'node': rows, ...} with as many targets")
        rows = {level: rows for level in COLUMN_LEVELS if level.table in targets}
    found = {}
    for level, some in rows.items():
        table = Level.of_column(level).table
        frame = tables.frames().get(table)
        try:
            given = np.asarray(some)
            chosen = given.astype(np.int64)
        except (TypeError, ValueError, OverflowError):
            given = chosen = np.empty((0, 0), np.int64)
        if chosen.ndim != 1 or given.dtype.kind not in "iu":
            raise DataError(f"train_rows of {level} is {quote(some)}, expected a list of whole numbers, from 0")
        count = 0 if frame is None else len(frame)
        if len(chosen) == 0 or chosen.min() < 0 or chosen.max() >= count:
            raise DataError(
                f"train_rows of {level} are not rows of {tables.name(table)}, expected some from 0 to {count - 1}"
            )
        found[table] = chosen
    return found
