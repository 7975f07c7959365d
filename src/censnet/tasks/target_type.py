"""The type of a target by its labels (binary, multiclass, regression), and the reason, which is shown to the user."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from censnet.data.tables.censoring import Censoring, split_limits
from censnet.data.tables.columns import as_arrow, is_number, read_dates, read_numbers
from censnet.data.tables.notations import Notation, find_notation
from censnet.data.tables.target_spec import TargetKind
from censnet.errors import DataError, quote
from censnet.ops.arrays import Array, IntArray
from censnet.tasks.labels import encode_labels

MAX_INTEGERS = 20  # different whole numbers that are still taken for classes
MAX_INFERRED = 1_000  # classes that are learned without being asked for
ROWS_FOR_EACH = 3  # labeled rows for each whole number that is taken for a class
MAX_ODD = 0.1  # share of words among numbers in text

_PADDED = re.compile(r"[+-]?0[0-9]")
_NO_LABEL = "has no label in any row, expected some to learn from"
_DATES = "holds dates or times, expected numbers or classes: count the days from one of them"


def infer_kind(
    labels: pd.Series[Any], table: str, column: str, notation: Notation | None = None
) -> tuple[TargetKind, str]:
    """The kind of a column of labels, by its labeled rows; the `notation` of numbers in text is found if None.

    >>> infer_kind(pd.Series([0.0, 1.0, None, 1.0]), "nodes", "sick")
    ('binary', '0 or 1')
    """
    values = as_arrow(labels)
    kind = values.type
    if pc.all(pc.is_null(values, nan_is_null=True)).as_py() is not False:
        raise DataError(_NO_LABEL, table, column=column)
    if pa.types.is_boolean(kind):
        return "binary", "true or false"
    if is_number(kind) or pa.types.is_duration(kind):
        return _of_numbers(read_finite(labels, table, column)[0], "numbers")
    if pa.types.is_temporal(kind):
        raise DataError(_DATES, table, column=column)
    if not pa.types.is_string(kind):
        raise DataError(f"holds {kind}, expected one number or one class in each row", table, column=column)
    return _of_text(labels, table, column, notation)


def _of_numbers(numbers: Array, what: str) -> tuple[TargetKind, str]:
    numbers = numbers[~np.isnan(numbers)]
    distinct = np.unique(numbers)
    few = ROWS_FOR_EACH * len(distinct) <= len(numbers)
    if len(distinct) == 2 and (few or distinct.tolist() == [0, 1]):
        return "binary", f"{distinct[0]:g} or {distinct[1]:g}"
    if few and 2 < len(distinct) <= MAX_INTEGERS and bool((distinct == np.floor(distinct)).all()):
        return "multiclass", f"{len(distinct)} different whole numbers"
    return "regression", f"{len(distinct):,} different {what}" if len(distinct) <= MAX_INTEGERS else what


def _of_text(labels: pd.Series[Any], table: str, column: str, notation: Notation | None) -> tuple[TargetKind, str]:
    codes, words = encode_labels(labels)
    labeled = codes[codes >= 0]
    count, distinct = len(labeled), len(words)
    if distinct == 0:
        raise DataError(_NO_LABEL, table, column=column)
    limits, censoring = split_limits(pa.chunked_array([pa.array(words, pa.string())]))
    parsed = read_numbers(limits, notation)
    padded = [number for number, word in enumerate(words) if _PADDED.match(word)]  # 007 is a code
    odd = np.isin(labeled, [*parsed.bad, *padded])
    if censoring is not None:
        censored = np.isin(labeled, np.flatnonzero(censoring))
        if odd.mean() <= MAX_ODD and not (odd | censored).all():  # limits alone are words: <5 or >=5
            return "regression", "numbers and limits in text"
        parsed = read_numbers(pa.chunked_array([pa.array(words, pa.string())]), notation)
        odd = np.isin(labeled, [*parsed.bad, *padded])
    if odd.mean() <= MAX_ODD:
        comma = ", with a comma before decimals" if parsed.notation == "comma" else ""
        found = _of_numbers(parsed.numbers[labeled], f"numbers in text{comma}")
        if found[0] == "regression" or not odd.any():  # among classes, an odd word is one more
            return found
    if distinct <= 2:
        return "binary", "one of two words"
    crowded = distinct > MAX_INFERRED or (distinct > 10 and 2 * distinct > count)
    if (crowded or distinct == count) and len(read_dates(pa.chunked_array([words])).bad) == 0:
        raise DataError(_DATES, table, column=column)
    if crowded:
        raise DataError(
            f"has {distinct:,} different words in {count:,} labeled rows, expected numbers, or classes that come "
            f"again: if these are classes, ask for {column}=multiclass",
            table,
            column=column,
        )
    return "multiclass", f"{distinct:,} different words"


def read_finite(
    labels: pd.Series[Any], table: str, column: str, notation: Notation | None = None
) -> tuple[NDArray[np.float64], IntArray, Censoring | None]:
    """Numbers and limits, NaN where there is none; the rows whose label is no number; and the side of each limit.

    The side is -1 for `<5`, 1 for `>5`, 0 for a number; None where no row has a limit. An infinite number is an error.
    """
    values, censoring = split_limits(as_arrow(labels))
    parsed = read_numbers(values, notation)
    if len(parsed.bad) and is_number(values.type):
        raise DataError("is infinite, expected a number, or nothing", table, int(parsed.bad[0]), column)
    if censoring is not None:
        censoring[np.isnan(parsed.numbers)] = 0
        censoring = censoring if censoring.any() else None
    return parsed.numbers.astype(np.float64, copy=False), parsed.bad, censoring


def read_oriented(
    labels: pd.Series[Any], table: str, column: str, notation: Notation | None = None
) -> NDArray[np.float64]:
    """Numbers whose sign follows the order of the ends, NaN where there is none; a class or a limit is an error.

    >>> read_oriented(pd.Series([1.5, None, -2.0]), "edges", "flow").tolist()
    [1.5, nan, -2.0]
    """
    expected = f"expected a number that changes sign with the order of the ends, as {column}=oriented asks for"
    values = as_arrow(labels)
    if pa.types.is_boolean(values.type):
        row = int(np.flatnonzero(~labels.isna().to_numpy())[0]) if labels.notna().any() else None
        raise DataError(f"holds true and false, which are classes, {expected}", table, row, column)
    numbers, bad, censoring = read_finite(labels, table, column, notation)
    if len(bad):
        found = f"{quote(labels.iloc[bad[0]])} is no number, {expected}: leave it empty where it is not known"
        raise DataError(found, table, int(bad[0]), column)
    if censoring is not None:
        row = int(np.flatnonzero(censoring)[0])
        raise DataError(f"{quote(labels.iloc[row])} is a limit, {expected}", table, row, column)
    known = np.flatnonzero(~np.isnan(numbers))
    if len(known) == 0:
        raise DataError(_NO_LABEL, table, column=column)
    if np.isin(numbers[known], (0, 1)).all():
        row = int(known[0])
        raise DataError(f"is 0 or 1 in each labeled row, which are two classes, {expected}", table, row, column)
    return numbers


def notation_of(labels: pd.Series[Any]) -> Notation | None:
    """The notation of numbers in text, by all labels; None where the labels are no text."""
    values = split_limits(as_arrow(labels))[0]
    return find_notation(values) if pa.types.is_string(values.type) else None
