"""Splits that a table states: a column of words, or masks of 0 and 1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.compute as pc
from numpy.typing import NDArray

from censnet.data.splits.split_file import PARTS, SPELLINGS
from censnet.data.splits.splitters import by_column
from censnet.data.tables.columns import as_arrow, is_list, read_booleans
from censnet.data.tables.keys import is_split, mask_part
from censnet.data.tables.schema import TableSchema
from censnet.errors import DataError, quote
from censnet.ops.arrays import BoolArray
from censnet.option_names import setting_option

Codes = NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class StatedSplit:
    """The parts that a table states of its rows.

    Args:
        codes: for each row 0 train, 1 validation, 2 test, or -1 for none.
        parts: the parts that are stated: those that have a mask, or that occur in the column.
        source: where it is stated, for the user.
    """

    codes: Codes
    parts: frozenset[int]
    source: str


def find_stated(frame: pd.DataFrame, schema: TableSchema, file: str, index: int | None = None) -> StatedSplit | None:
    """The split that a table states by the names of its columns; None if it has no such column.

    A column that the user called a feature, or left out, or that is predicted, states no split.

    Args:
        frame: the table.
        schema: what its columns became.
        file: what the table is called.
        index: which of several splits, where masks have a column for each.
    """
    columns = {column.name: column.kind for column in schema.columns}
    taken = {*schema.keys.values(), *schema.targets}
    names = [name for name in map(str, frame.columns) if name not in taken and columns.get(name, "id") == "id"]
    split = [name for name in names if is_split(name)]
    masks = {name: frame[name] for name in names if mask_part(name) is not None}
    if len(split) + bool(masks) > 1:
        every = ", ".join([*split, *masks])
        raise DataError(f"has {every}, which all state a split, expected one: leave out the others", file)
    if split:
        return read_column(frame[split[0]], file, split[0])
    return read_masks(masks, file, index) if masks else None


def read_column(values: pd.Series[Any], file: str, column: str) -> StatedSplit:
    """The split of a column: train, validation or test in each row, or nothing for a row in no part."""
    codes = by_column(values, file, column, gaps=True).codes(len(values))
    if not (codes >= 0).any() and len(codes):
        raise DataError("is empty, expected train, validation or test in some rows", file, column=column)
    return StatedSplit(codes, frozenset(np.unique(codes[codes >= 0]).tolist()), f"column {column} of {file}")


def read_masks(masks: Mapping[str, pd.Series[Any]], file: str, index: int | None = None) -> StatedSplit:
    """The split of masks: 1 or true in the rows of a part, 0, false or nothing in all others.

    >>> read_masks({"train_mask": pd.Series([1, 0, 0]), "test_mask": pd.Series([False, False, True])}, "nodes").codes
    array([ 0, -1,  2], dtype=int8)
    """
    read = {name: _read_mask(values, file, name) for name, values in masks.items()}
    wide = {name: mask.shape[1] for name, mask in read.items() if mask.shape[1] > 1}
    source = f"masks of the data, {', '.join(read)}"
    if len(set(wide.values())) > 1:
        sizes = ", ".join(f"{name} has {width}" for name, width in wide.items())
        raise DataError(f"{sizes} columns, expected as many: one for each split", file)
    if wide:
        name, width = next(iter(wide.items()))
        if index is None or index >= width:
            found = "data.split_index is not set" if index is None else f"data.split_index is {index}"
            raise DataError(
                f"{name} has {width:,} columns, each of them a split, and {found}, expected one from 0 to {width - 1}: "
                f"such as {setting_option('data.split_index', 0)}",
                file,
            )
        source = f"number {index} of {width} in the {source}"
    parts: dict[int, str] = {}
    codes = np.full(len(next(iter(read.values()))), -1, np.int8)
    for name, mask in read.items():
        part = SPELLINGS[str(mask_part(name))]
        if part in parts:
            raise DataError(f"{parts[part]} and {name} are both masks of {PARTS[part]} rows, expected one", file)
        rows = mask[:, index if mask.shape[1] > 1 else 0]
        both = np.flatnonzero(rows & (codes >= 0))
        if len(both):
            other = parts[int(codes[both[0]])]
            count = int((rows & (codes == codes[both[0]])).sum())
            raise DataError(
                f"{other} and {name} have {count:,} rows in common, the first is row {both[0] + 1}, expected none", file
            )
        codes[rows] = part
        parts[part] = name
    return StatedSplit(codes, frozenset(parts), source)


def has_wide_masks(frame: pd.DataFrame) -> bool:
    """Whether a mask of the table has several columns, each for a split of its own."""
    return any(mask_part(str(name)) is not None and is_list(as_arrow(frame[name].head(1)).type) for name in frame)


def _read_mask(values: pd.Series[Any], file: str, column: str) -> BoolArray:
    """A mask as (rows, splits)."""
    given, width = as_arrow(values), 1
    if is_list(given.type):
        lengths = pc.unique(pc.list_value_length(given).drop_null()).to_pylist()
        if len(lengths) != 1 or lengths[0] == 0 or given.null_count:
            raise DataError(
                "holds lists of different lengths, expected as many entries in each row", file, None, column
            )
        width, given = lengths[0], pc.list_flatten(given)
    parsed = read_booleans(given)
    if len(parsed.bad):
        row, found = int(parsed.bad[0]) // width, given[int(parsed.bad[0])].as_py()
        raise DataError(f"{quote(found)} is neither 0 nor 1, expected a mask of rows", file, row, column)
    return np.asarray(parsed.numbers == 1).reshape(-1, width)
