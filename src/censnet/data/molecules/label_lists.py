"""Labels of atoms and bonds as a list for each molecule, in a column of the table of molecules."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from censnet.data.tables.columns import as_arrow, is_missing
from censnet.data.tables.notes import RowError
from censnet.errors import DataError, quote
from censnet.ops.arrays import IntArray

_GAP = re.compile(r"(?<![\w.\"'])(?:None|nan|NaN|NA|<NA>)(?![\w.\"'])")
_SPACED = re.compile(r"^\[\s*[^\s,\[\]\"']+(?:\s+[^\s,\[\]\"']+)*\s*\]$")  # as numpy writes an array


@dataclass(frozen=True, eq=False)
class LabelLists:
    """A column of lists, one after the other.

    Args:
        values: the entries of all lists.
        lengths: the length of each list, -1 where there is none.
        errors: row -> why it holds no list.
    """

    values: pa.Array
    lengths: IntArray
    errors: dict[int, RowError]

    @property
    def first(self) -> IntArray:
        """The position where each list begins."""
        length = np.maximum(self.lengths, 0)
        return np.cumsum(length) - length


def read_lists(column: pd.Series[Any], file: str) -> LabelLists:
    """Read lists of numbers or classes, as Arrow, numpy or text has them; a column without any raises.

    >>> found = read_lists(pd.Series(["[1.5, null]", "[]", None, "2"], name="charge"), "molecules.csv")
    >>> found.values.to_pylist(), found.lengths.tolist(), found.errors
    ([1.5, None], [2, 0, -1, -1], {3: "'2' is not a list"})
    """
    given = as_arrow(column)
    errors: dict[int, RowError] = {}
    if not _is_list(given.type):
        cells = [_parse(cell) for cell in given.to_pylist()]
        for row, cell in enumerate(cells):
            if not (cell is None or isinstance(cell, list)):
                errors[row] = RowError("is not a list", f"{quote(cell)} is not a list")
                cells[row] = None
        if errors and not any(isinstance(cell, list) for cell in cells):
            first = errors[min(errors)]
            raise DataError(f"{first}, expected one value for each atom or bond", file, min(errors), str(column.name))
        given = pa.chunked_array([_as_lists(cells)])
    lengths = np.asarray(pc.fill_null(pc.list_value_length(given), -1).to_numpy(), dtype=np.int64)
    flat = pc.list_flatten(given)
    values = flat.combine_chunks() if isinstance(flat, pa.ChunkedArray) else flat
    return LabelLists(values, lengths, errors)


def _parse(cell: object) -> object:
    """A list from text; what is no list stays as it is, and what is missing is None."""
    if is_missing(cell) or not isinstance(cell, str):
        return None if is_missing(cell) else cell
    text = cell.strip()
    if text in ("", "nan", "None", "null", "NA"):
        return None
    if text[0] + text[-1] in ("[]", "()"):
        inner = f"[{text[1:-1].strip().rstrip(',')}]"
        inner = re.sub(r"\s+", ", ", f"[{inner[1:-1].strip()}]") if _SPACED.match(inner) else inner
        inner = _GAP.sub("null", inner.replace("'", '"').replace(";", ","))
        inner = re.sub(r"(?<=[\d])\.(?=\s*[,\]])", ".0", re.sub(r"(?<=[\[,\s])\+?(?=\.?\d)", "", inner))
        inner = re.sub(r"(?<=[\[,\s-])\.(?=\d)", "0.", inner)
        try:
            found = json.loads(inner)
        except ValueError:
            return cell
        return found if not any(isinstance(entry, list | dict) for entry in found) else cell
    return cell


def _as_lists(cells: list[Any]) -> pa.Array:
    """Lists as Arrow's; of entries of several types, all are text."""
    kinds = {type(entry) for cell in cells if cell is not None for entry in cell if entry is not None}
    if kinds <= {int, float}:
        return pa.array(cells, pa.list_(pa.float64()))
    if kinds != {bool}:
        cells = [cell and [None if entry is None else str(entry) for entry in cell] for cell in cells]
        return pa.array(cells, pa.list_(pa.string()))
    return pa.array(cells, pa.list_(pa.bool_()))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))
