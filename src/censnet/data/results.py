"""Values of the tensors' rows, back on the rows of the user's table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from censnet.errors import DataError


def join_results(
    values: pd.DataFrame,
    frame: pd.DataFrame,
    rows: NDArray[Any],
    ids: Sequence[str],
    keep: Literal["all", "ids"],
    messages: Mapping[int, str],
) -> pd.DataFrame:
    """One result for each row of the user's table, in its order, behind its columns.

    Args:
        values: one row for each row of the tensors.
        frame: the user's table.
        rows: for each of its rows, the row of the tensors, or -1.
        ids: the columns that say who a row is.
        keep: whether to repeat all columns, or those.
        messages: why a row has no result.
    """
    bad = rows < 0
    bad[list(messages)] = True
    found = _with_gaps(values).reindex(np.where(bad, len(values), rows)) if bad.any() else values.iloc[rows]
    clash = [column for column in ids if column in values.columns]
    if clash:
        raise DataError(f"values has a column {clash[0]}, expected another name: it is an id of the user's")
    known = frame[[column for column in frame.columns if column in ids or keep == "all"]]
    taken = [*values.columns, *(["error"] if bad.any() else [])]
    known = known.rename(columns=rename_taken(known.columns, taken))
    parts: list[pd.DataFrame | pd.Series[Any]] = [known.reset_index(drop=True), found.reset_index(drop=True)]
    if bad.any():
        parts.append(pd.Series(messages, dtype="object", name="error").reindex(range(len(rows))))
    return pd.concat(parts, axis=1)


def rename_taken(columns: Iterable[str], taken: Sequence[str]) -> dict[str, str]:
    """A new name for each column whose own is taken."""
    columns, new = list(columns), dict[str, str]()
    for column in columns:
        name = column
        while name in taken or (name != column and name in [*columns, *new.values()]):
            name += "_"
        new[column] = name
    return new


def _with_gaps(values: pd.DataFrame) -> pd.DataFrame:
    """The same values in types that can be missing without turning whole numbers into fractions."""
    nullable = {"i": "Int64", "u": "UInt64", "b": "boolean"}
    types = {column: nullable[kind.kind] for column, kind in values.dtypes.items() if kind.kind in nullable}
    return values.reset_index(drop=True).astype(types)
