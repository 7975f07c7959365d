"""Oriented data: numbers of edges that change sign where the two ends are exchanged, such as the flow in a pipe.

The order of the ends of a row is then arbitrary, so edges are undirected. Where each edge is there twice, once in each
order, what is oriented in one row is the negative of the other's.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from censnet.data.tables.columns import as_arrow, read_numbers
from censnet.errors import DataError
from censnet.ops.arrays import FloatArray, IntArray

NEGATIVE = (
    "expected the negative, since its sign follows the order of the ends: leave one row of each pair out, or negate"
)


def end_signs(ends: IntArray) -> FloatArray:
    """-1 where an edge goes from its higher to its lower node, else 1: two rows of an edge differ in it. (2, E) -> (E,)

    >>> end_signs(np.array([[0, 2], [1, 1]])).tolist()
    [1.0, -1.0]
    """
    return np.where(ends[0] > ends[1], -1, 1).astype(np.float32)


def codes_of_oriented(column: pd.Series, rows: IntArray, ends: IntArray) -> IntArray:
    """A number for each of these rows, equal where one label is that of the other in the opposite order; -1: none."""
    numbers = read_numbers(as_arrow(column)).numbers[rows].astype(np.float64) * end_signs(ends) + 0.0  # -0 is 0
    known = ~np.isnan(numbers)
    codes = np.full(len(rows), -1, np.int64)
    codes[known] = np.unique(numbers[known], return_inverse=True)[1].reshape(-1)
    return codes


def check_negated_labels(
    column: pd.Series, name: str, rows: IntArray, apart: IntArray, reverse: IntArray, file: str
) -> None:
    """Raise where most pairs of rows whose oriented labels do not fit have the same label, rather than two others.

    Args:
        column: all labels.
        name: of the column.
        rows: for each usable row, its row in the table.
        apart: the first rows, among usable ones, of pairs whose labels do not fit.
        reverse: for each usable row, its reverse.
        file: of edges.
    """
    numbers = read_numbers(as_arrow(column)).numbers[rows]
    same = apart[numbers[apart] == numbers[reverse[apart]]]
    if 2 * len(same) > len(apart):
        row, other = int(rows[same[0]]), int(rows[reverse[same[0]]])
        what = f"is {numbers[same[0]]:g} here and in row {other + 1}, its reverse"
        raise DataError(f"{what}, {NEGATIVE} the label in one of them", file, row, name)


def check_negated_features(
    written: FloatArray, reverse: IntArray, odd_width: int, names: list[str], rows: IntArray, file: str
) -> None:
    """Raise where each row has its reverse, whose oriented columns are the same rather than the negative.

    Args:
        written: the features of the usable rows as they stand in the table; the odd ones are last.
        reverse: for each of these rows, that with exchanged ends and equal features, or -1.
        odd_width, names: how many features are odd, and the column of each.
        rows: for each usable row, its row in the table.
        file: of edges.
    """
    even = written.shape[1] - odd_width
    if not odd_width or len(reverse) == 0 or reverse.min() < 0 or not written[:, even:].any():
        return
    first, entry = np.argwhere(written[:, even:] != 0)[0]
    row, other = int(rows[first]), int(rows[reverse[first]])
    raise DataError(f"is the same here and in row {other + 1}, its reverse, {NEGATIVE} the value in one of them",
                    file, row, names[even + entry])  # fmt: skip
