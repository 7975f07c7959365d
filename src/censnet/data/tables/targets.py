"""What is to be predicted, and from which rows it is learnt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from censnet.data.errors import DataError, quote
from censnet.data.tables.assemble import TrainRows
from censnet.data.tables.files import Tables
from censnet.data.tables.keys import LEVELS
from censnet.data.tables.list_targets import entry_columns

Rows = Tensor | np.ndarray[Any, Any] | Sequence[int]


def table_of(level: str) -> str:
    """The table of a level: `nodes` for `node`."""
    if level not in LEVELS:
        raise DataError(f"level is {quote(level)}, expected node, edge or graph")
    return LEVELS[level]


def find_targets(target: str | Sequence[str] | None, tables: Tables, required: bool = True) -> dict[str, list[str]]:
    """Table -> the columns to predict there, from `node:COLUMN` and the like; `link` names no column.

    >>> find_targets(["node:age,sex", "link"], Tables(), required=False)
    {'nodes': ['age', 'sex']}
    """
    found: dict[str, list[str]] = {}
    for item in [target] if isinstance(target, str) else list(target or ()):
        level, _, columns = item.partition(":")
        if item == "link":
            continue
        if level not in LEVELS or not columns:
            raise DataError(f"target is {quote(item)}, expected node:COLUMN, edge:COLUMN, graph:COLUMN or link")
        found.setdefault(LEVELS[level], []).extend(column.strip() for column in columns.split(","))
    for table, names in list(found.items()) if required else ():
        frame = tables.frames().get(table)
        known = [] if frame is None else list(frame.columns)
        found[table] = [
            part for name in names for part in ([] if name in known else entry_columns(known, name)) or [name]
        ]
        for column in found[table]:
            if frame is None or column not in frame.columns:
                there = "there is no such table" if frame is None else f"it has {', '.join(frame.columns[:20])}"
                raise DataError(f"is the target, but missing: {there}", tables.name(table), column=column)
    return found


def find_training_rows(
    rows: Rows | Mapping[str, Rows] | None, targets: Mapping[str, Sequence[str]], tables: Tables
) -> TrainRows:
    """Table -> the rows that statistics are taken from; a bare list is for the level of the one target."""
    if rows is None:
        return {}
    if not isinstance(rows, Mapping):
        if len(targets) != 1:
            raise DataError("train_rows are for one level, expected {'node': rows, ...} with as many targets")
        rows = {level: rows for level, table in LEVELS.items() if table in targets}
    found = {}
    for level, some in rows.items():
        table = table_of(level)
        frame = tables.frames().get(table)
        chosen = np.asarray(some, dtype=np.int64)
        count = 0 if frame is None else len(frame)
        if len(chosen) == 0 or chosen.min() < 0 or chosen.max() >= count:
            raise DataError(
                f"train_rows of {level} are not rows of {tables.name(table)}, expected some from 0 to {count - 1}"
            )
        found[table] = chosen
    return found
