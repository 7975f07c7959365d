"""Rows of features that are gathered again and again: where few are distinct, those once and a number for each row.

Atoms are like that: the 113,568 of Lipophilicity are 235 distinct rows of 81 numbers. These fit a core's cache, where
the whole table does not, and a batch of them is gathered in half the time.
"""

from __future__ import annotations

import torch
from torch import Tensor

FEWEST = 4096  # rows, below which the whole table is in the cache anyway
MOST_DISTINCT = 1024
_BLOCK = 1 << 16
_BITS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


class DictionaryRows:
    """A table of which rows are taken. When all could have been taken once, it looks whether few are distinct.

    Example:
        >>> atoms = torch.eye(3)[torch.arange(9000) % 3]
        >>> palette = DictionaryRows(atoms)
        >>> [palette.take(torch.tensor([5, 0])).tolist() for _ in range(4501)][-1]
        [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
        >>> palette
        Palette(9000 rows, 3 distinct)
    """

    def __init__(self, table: Tensor) -> None:
        self._table, self._version = table, _version(table)
        self._distinct: Tensor | None = None
        self._code: Tensor | None = None
        self._asked, self._looked = 0, False

    def __repr__(self) -> str:
        distinct = "" if self._distinct is None else f", {len(self._distinct)} distinct"
        return f"Palette({len(self._table)} rows{distinct})"

    def take(self, rows: Tensor) -> Tensor:
        """table[rows]. (n,) -> (n, d)"""
        if not self._looked:
            self._asked += len(rows)
            if self._asked > len(self._table):
                self._looked = True
                self._look()
        if self._distinct is None or self._code is None or self._version != self._table._version:
            return self._table.index_select(0, rows)
        return self._distinct.index_select(0, self._code.index_select(0, rows))

    def _look(self) -> None:
        table = self._table
        if self._version is None or table.requires_grad or table.device.type != "cpu" or len(table) < FEWEST:
            return
        if table.element_size() not in _BITS or table.shape[1] < 2 or not table.is_contiguous():
            return
        found = _find_distinct(table[:: len(table) // FEWEST])
        if found is not None:
            found = _find_distinct(table)
        if found is not None:
            self._distinct, self._code = found


def _find_distinct(table: Tensor) -> tuple[Tensor, Tensor] | None:
    """The distinct rows and, for each row, which one it is, to the bit; None when they are many."""
    weights = torch.rand(table.shape[1], dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    blocks = [slice(start, start + _BLOCK) for start in range(0, len(table), _BLOCK)]
    key = torch.cat([table[block].double() @ weights for block in blocks])
    values, code = torch.unique(key, return_inverse=True)
    if len(values) > MOST_DISTINCT:
        return None
    first = torch.zeros_like(values, dtype=torch.int64)
    first[code] = torch.arange(len(table))  # any row with this key
    distinct, code = table[first], code.int()
    bits = _BITS[table.element_size()]
    for block in blocks:
        if not torch.equal(distinct.index_select(0, code[block]).view(bits), table[block].view(bits)):
            return None  # two rows with one key, or -0 beside 0
    return distinct, code


def _version(table: Tensor) -> int | None:
    """How often the table was changed in place; None where torch does not count."""
    return None if table.is_inference() else table._version
