"""Types of numpy arrays, and their distinct values."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float32]
BoolArray = NDArray[np.bool_]


def sorted_unique(numbers: Array) -> Array:
    """The distinct numbers, sorted. (numpy's `unique` hashes integers, which is 50 times slower on many.)"""
    numbers = np.sort(numbers)
    return numbers[_changes(numbers)]


def unique_inverse(numbers: Array) -> tuple[Array, Array]:
    """The distinct numbers, sorted, and for each number its position among them."""
    order = np.argsort(numbers, kind="stable")
    new = _changes(numbers[order])
    position = np.empty(len(numbers), dtype=np.int64)
    position[order] = np.cumsum(new) - 1
    return numbers[order[new]], position


def _changes(numbers: Array) -> Array:
    new = np.ones(len(numbers), dtype=bool)
    new[1:] = numbers[1:] != numbers[:-1]
    return new
