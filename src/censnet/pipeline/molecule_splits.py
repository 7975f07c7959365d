"""Splits of molecules that a table of their atoms or bonds states."""

from __future__ import annotations

from typing import Any

import pandas as pd

from censnet.data.dataset import TypedData
from censnet.data.splits.split_file import SPELLINGS
from censnet.data.tables.keys import is_split, says_split
from censnet.errors import DataError
from censnet.levels import Level
from censnet.settings.schema import DataSettings

WORDS = {"nodes": "atoms", "edges": "bonds"}


def find_split_column(data: TypedData, settings: DataSettings) -> tuple[pd.Series[Any], str, str] | None:
    """A column that states the part of each molecule, its file and its name, where no `split` of molecules does.

    A column `set` that holds train, validation and test alone states a split as `split` does, here and in the table of
    molecules.
    """
    frames = data.tables.frames()
    names, tables = list(map(str, frames["graphs"].columns)), list[str]()
    if settings.split == "column" and (settings.split_column or "split") not in names:
        tables = ["edges", "nodes"]
    elif settings.split == "auto" and not any(map(says_split, names)):
        tables = ["graphs", "edges", "nodes"]
    for table in tables:
        frame, targets = frames.get(table, pd.DataFrame()), data.schema.table(table).targets
        for column in map(str, frame.columns):
            if column not in targets and _states(column, frame, settings):
                values = frame[column] if table == "graphs" else _of_molecules(data, table, column)
                return values, data.tables.name(table), column
    return None


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
    return first.reindex(range(1, len(data.rows("graph")) + 1)).astype(object).where(lambda found: found.notna(), None)
