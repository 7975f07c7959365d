"""Statistics of columns on training rows: mean, scale and range, and rows of vectors that are normalized."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from censnet.ops.arrays import Array, BoolArray

_BLOCK = 1 << 15  # rows that fit a core's cache
_LAID_OUT = 1 << 24  # of a matrix that is laid out by columns at a time


class Summary(NamedTuple):
    """Statistics of the values of one column.

    Args:
        mean, deviation: over what is there; a deviation that rounding alone can make is 0.
        size: the root mean square of what is not 0; 0 where all is.
        sparse: whether values are 0 in more than half of the rows, or 0 and 1 alone.
        indicator: whether they are 0 and 1 alone.
    """

    mean: float
    deviation: float
    size: float
    sparse: bool
    indicator: bool

    def scale(self, centered: bool) -> float:
        """The divisor of the values; 0 where they have no scale."""
        return self.deviation if centered else self.size


def summarize(numbers: Array) -> Summary | None:
    """Statistics of one column; None if it has no value. NaN is missing."""
    absent = np.isnan(numbers)
    there = numbers[~absent] if absent.any() else numbers
    if len(there) == 0:
        return None
    mean, deviation = _statistics(numbers)
    others = there[there != 0]
    indicator = bool((others == 1).all())
    return Summary(mean, deviation, root_mean_square(others), indicator or 2 * len(others) < len(there), indicator)


def summarize_each(matrix: Array) -> list[Summary | None]:
    """Statistics of each column of a matrix, to the bit as `summarize` gives them for it alone."""
    step = max(1, _LAID_OUT // max(len(matrix), 1))
    found = list[Summary | None]()
    for start in range(0, matrix.shape[1], step):
        found += map(summarize, np.ascontiguousarray(matrix[:, start : start + step].T))
    return found


def different_columns(marks: BoolArray, columns: Sequence[int]) -> list[int]:
    """Of these columns of a matrix, those with a mark in some row, and of equal ones the first."""
    some, known, found = np.asarray(marks.any(axis=0)), set[bytes](), list[int]()
    for column in columns:
        pattern = np.packbits(marks[:, column]).tobytes() if some[column] else b""
        found += [column] if some[column] and pattern not in known else []
        known.add(pattern)
    return found


def normalize_rows(vectors: Array) -> Array:
    """Each row divided by its sum; one without a positive sum stays as it is."""
    total = np.nansum(vectors, axis=1, keepdims=True)
    divided: Array = np.divide(vectors, total, out=np.array(vectors, np.float64), where=total > 0)
    return divided


def root_mean_square(numbers: Array) -> float:
    if len(numbers) == 0:
        return 0.0
    size = float(np.abs(numbers).max())
    with np.errstate(under="ignore"):  # in units of the largest, so that no square overflows
        return float(np.sqrt(np.square(numbers.astype(np.float64) / size).mean())) * size


def _statistics(numbers: Array) -> tuple[float, float]:
    """Mean and standard deviation, over what is there."""
    quick = _quick_statistics(numbers)
    if quick is not None:
        return quick
    numbers = numbers.astype(np.float64, copy=False)
    size = float(np.nanmax(np.abs(numbers))) or 1.0
    with np.errstate(all="ignore"):  # in units of the largest, so that no square overflows
        mean = float(np.nan_to_num(np.nanmean(numbers[:, None] / size, axis=0, dtype=np.float64))[0] * size)
        deviation = float(np.nan_to_num(np.nanstd(numbers[:, None] / size, axis=0, dtype=np.float64))[0] * size)
    return mean, _without_rounding(mean, deviation)


def _quick_statistics(numbers: Array) -> tuple[float, float] | None:
    """The same in two passes without a copy; None when a value is missing or a square overflows."""
    with np.errstate(all="ignore"):
        mean = numbers.mean(dtype=np.float64)
        total = 0.0
        for start in range(0, len(numbers), _BLOCK):
            apart = numbers[start : start + _BLOCK] - mean
            total += float(np.square(apart, out=apart).sum())  # not BLAS: its threads wait for each other on blocks
    if not np.isfinite(total) or 0 < total < 1e-200:
        return None
    return float(mean), _without_rounding(float(mean), float(np.sqrt(total / len(numbers))))


def _without_rounding(mean: float, deviation: float) -> float:
    """A deviation that rounding alone can make is none."""
    return 0.0 if deviation <= 1e-12 * abs(mean) else deviation
