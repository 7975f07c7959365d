"""Splits of molecules that a table of their atoms or bonds states."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd

from censnet.data.dataset import TypedData
from censnet.data.splits.split_file import SPELLINGS
from censnet.data.tables.keys import is_split, says_split
from censnet.errors import DataError
from censnet.levels import Level
from censnet.settings.schema import DataSettings

WORDS = {"nodes": "atoms", "edges": "bonds"}


def with_stated_column(data: TypedData, settings: DataSettings) -> TypedData:
    """The data, with a column of molecules for one that states a split in the table of atoms or bonds.

    A column `set` of train, validation and test states a split, too, where there is none of another name.
    """
    frames, name = data.tables.frames(), settings.split_column
    graphs = frames["graphs"]
    if settings.split not in ("auto", "column", "time") or (settings.split != "auto" and name in graphs.columns):
        return data
    if settings.split == "auto" and any(says_split(str(column)) for column in graphs.columns):
        return data
    for table in ("graphs", "edges", "nodes") if settings.split == "auto" else ("edges", "nodes"):
        frame, file = frames.get(table, pd.DataFrame()), data.tables.name(table)
        taken = data.schema.table(table).targets
        chosen = [
            column for column in map(str, frame.columns) if _states(column, frame, settings) and column not in taken
        ]
        if chosen:
            values = frame[chosen[0]] if table == "graphs" else _of_molecules(data, table, chosen[0])
            called = "split" if settings.split == "auto" else chosen[0]
            names = {**data.tables.names, "graphs": file} if table != "graphs" else data.tables.names
            tables = replace(data.tables, graphs=graphs.assign(**{called: values.to_numpy()}), names=names)
            return replace(data, tables=tables)
    return data


def _states(column: str, frame: pd.DataFrame, settings: DataSettings) -> bool:
    """Whether a column states the split that is asked for."""
    if settings.split != "auto":
        return column == (settings.split_column or "split")
    if column.strip().lower() != "set":
        return is_split(column)
    return bool(frame[column].dropna().astype(str).str.strip().str.lower().isin(list(SPELLINGS)).all())


def _of_molecules(data: TypedData, table: str, column: str) -> pd.Series[Any]:
    """For each molecule the value that a column of its atoms or bonds has; two different ones raise."""
    frame, level = data.tables.frames()[table], Level.of_table(table)
    rows = data.rows(level).numpy()
    used = frame[(rows >= 0) & frame[column].notna().to_numpy()]
    both = used.groupby("row")[column].nunique()
    if (both > 1).any():
        row = int(both.index[both > 1][0])
        values = " and ".join(map(str, used.loc[used["row"] == row, column].unique()[:2]))
        what = f"the molecule of row {row:,} is in {values}, expected one part for all of its {WORDS[table]}"
        raise DataError(what, data.tables.name(table), column=column)
    first = used.groupby("row")[column].first()
    return first.reindex(range(1, len(data.graph_rows) + 1)).astype(object).where(lambda found: found.notna(), None)
