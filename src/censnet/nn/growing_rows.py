"""Rows of numbers that grow as new nodes and pairs of nodes appear."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from censnet.ops.arrays import Array

BITS = 10  # of the number of a row within its block


class GrowingRows:
    """Rows of numbers in blocks: zeros at first, more of them without a copy of the others.

    Example:
        >>> rows = GrowingRows(2)
        >>> rows.reserve(5000)
        >>> rows[5000][:] = 1
        >>> rows.stacked(5001).sum()
        np.float64(2.0)
    """

    def __init__(self, *shape: int) -> None:
        self.shape, self.blocks = shape, list[Array]()

    def __len__(self) -> int:
        return len(self.blocks) << BITS

    def __getitem__(self, row: int) -> Array:
        return cast(Array, self.blocks[row >> BITS][row & ((1 << BITS) - 1)])

    def reserve(self, row: int) -> None:
        """Make room for a row."""
        while row >= len(self.blocks) << BITS:
            self.blocks.append(np.zeros((1 << BITS, *self.shape)))

    def stacked(self, count: int) -> Array:
        """The first rows in one array."""
        blocks = [block[: max(0, count - (number << BITS))] for number, block in enumerate(self.blocks)]
        return np.concatenate(blocks) if blocks else np.zeros((0, *self.shape))

    def fill(self, rows: Array) -> None:
        """Set the first rows."""
        if len(rows):
            self.reserve(len(rows) - 1)
        for number, block in enumerate(self.blocks):
            part = rows[number << BITS : (number + 1) << BITS]
            block[: len(part)] = part


class PairRows:
    """A row for each ordered pair of nodes that had an edge; row 0 is that of all others, and stays empty.

    Args:
        neighbors: of each node that had an edge, in either direction; kept by those that look for triads alone.
    """

    def __init__(self, triads: bool = False) -> None:
        self.rows: dict[int, int] = {}  # whole numbers alone, which the garbage collector need not look at
        self.neighbors: dict[int, set[int]] | None = {} if triads else None

    def __len__(self) -> int:
        return len(self.rows) + 1

    def find(self, source: int, target: int) -> int:
        """The row of a pair, 0 if it has none."""
        return self.rows.get(source << 32 | target, 0)

    def add(self, source: int, target: int) -> int:
        """The row of a pair, a new one if it has none."""
        if self.neighbors is not None and source != target:
            self.neighbors.setdefault(source, set()).add(target)
            self.neighbors.setdefault(target, set()).add(source)
        return self.rows.setdefault(source << 32 | target, len(self.rows) + 1)

    def set_rows(self, keys: Sequence[int]) -> None:
        """Replace the pairs, by source << 32 | target, in the order of their rows."""
        self.rows = {}
        if self.neighbors is not None:
            self.neighbors = {}
        for key in keys:
            self.add(key >> 32, key & 0xFFFFFFFF)

    def between(self, source: int, target: int, most: int) -> list[int]:
        """The third nodes of triads: those that both had an edge with; none if both met more than so many nodes."""
        if self.neighbors is None or source == target:
            return []
        first, second = self.neighbors.get(source), self.neighbors.get(target)
        if not first or not second or min(len(first), len(second)) > most:
            return []
        return sorted(first & second)
