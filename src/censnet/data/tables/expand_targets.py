"""Targets as columns: `*` is every column that is left, and a column of lists one for each entry, `y[0]`, `y[1]`..."""

from __future__ import annotations

import difflib
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from censnet.data.tables.column_types import find_kind
from censnet.data.tables.columns import CHOICES, as_arrow, is_list, is_missing
from censnet.data.tables.files import Tables
from censnet.data.tables.keys import find_keys, table_overrides
from censnet.data.tables.notes import Note
from censnet.data.tables.target_spec import TargetSpec, quote_name
from censnet.errors import DataError, name_columns, quote
from censnet.levels import COLUMN_LEVELS

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


MAX_NAMED = 5  # columns that a note names one by one


class ResolvedTargets(NamedTuple):
    """Targets as columns of the tables.

    Args:
        tables: those that were read, where lists that are targets have become columns.
        specs: one target for each column; none where a schema says what is predicted.
        columns: table -> the columns that are no features: targets, and the other entries of their lists.
        notes: what `*` stands for.
    """

    tables: Tables
    specs: list[TargetSpec]
    columns: dict[str, list[str]]
    notes: list[Note]


def resolve_targets(
    specs: Sequence[TargetSpec],
    tables: Tables,
    overrides: Mapping[str, str] | None = None,
    known: Mapping[str, Sequence[str]] | None = None,
) -> ResolvedTargets:
    """The columns that targets mean, with lists spread over columns.

    Args:
        specs: as the user wrote them.
        tables: what was read.
        overrides: column -> kind or role, as in `load_data`.
        known: table -> targets, where a schema says so.
    """
    tables, notes = spread_list_targets(tables, target_columns(specs) if known is None else known), list[Note]()
    if known is None:
        specs, notes = expand_targets(specs, tables, overrides)
    return ResolvedTargets(tables, list(specs), with_siblings(target_columns(specs), tables), notes)


def target_columns(specs: Iterable[TargetSpec]) -> dict[str, list[str]]:
    """Table -> the columns to predict there; `*` is none yet.

    >>> from censnet.data.tables.target_spec import parse_targets
    >>> target_columns(parse_targets("node:age,sex=binary")[0])
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
