"""Caching: properties that are computed once, values stored in their place, and dictionary-encoded features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

import torch
from torch import Tensor

T = TypeVar("T")
FEWEST = 4096  # rows, below which the whole table is in the cache anyway
MAX_DISTINCT = 1024
_BLOCK = 1 << 16
_BITS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


class cached(Generic[T]):  # noqa: N801 - a decorator, as property is
    """`functools.cached_property` without the lock it has in Python 3.11, which torch.compile cannot enter."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self.make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> cached[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> cached[T] | T:
        if instance is None:
            return self
        if self.name not in instance.__dict__:
            instance.__dict__[self.name] = self.make(instance)
        value: T = instance.__dict__[self.name]
        return value


def store(instance: object, **values: object) -> None:
    """Set cached properties to values that are known, so that they are not computed."""
    instance.__dict__.update(values)


def stored(instance: object, *names: str) -> dict[str, Any]:
    """Those of these cached properties that are computed or stored already."""
    return {name: instance.__dict__[name] for name in names if name in instance.__dict__}


def forget(instance: object, *names: str) -> None:
    """Drop cached properties, to be computed again if needed."""
    for name in names:
        instance.__dict__.pop(name, None)


def unchecked(kind: type[T], **values: object) -> T:
    """An instance of a frozen dataclass with these fields and cached properties, without its checks."""
    instance = kind.__new__(kind)
    instance.__dict__.update(values)
    return instance


class DictionaryRows:
    """Dictionary-encoded features: where few rows are distinct, these once and a code for each row.

    Atoms are like that: the 113,568 of Lipophilicity are 235 distinct rows of 81 numbers. These fit a core's cache,
    where the whole table does not, and a batch of them is gathered in half the time. The table is encoded once as many
    rows were taken as it has.

    Example:
        >>> atoms = torch.eye(3)[torch.arange(9000) % 3]
        >>> rows = DictionaryRows(atoms)
        >>> [rows.take(torch.tensor([5, 0])).tolist() for _ in range(4501)][-1]
        [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
        >>> rows
        DictionaryRows(9000 rows, 3 distinct)
    """

    def __init__(self, table: Tensor) -> None:
        self._table, self._version = table, _version(table)
        self._distinct: Tensor | None = None
        self._code: Tensor | None = None
        self._num_taken, self._is_searched = 0, False

    def __repr__(self) -> str:
        distinct = "" if self._distinct is None else f", {len(self._distinct)} distinct"
        return f"DictionaryRows({len(self._table)} rows{distinct})"

    def take(self, rows: Tensor) -> Tensor:
        """table[rows]. (n,) -> (n, d)"""
        if not self._is_searched:
            self._num_taken += len(rows)
            if self._num_taken > len(self._table):
                self._is_searched = True
                self._encode()
        if self._distinct is None or self._code is None or self._version != self._table._version:
            return self._table.index_select(0, rows)
        return self._distinct.index_select(0, self._code.index_select(0, rows))

    def _encode(self) -> None:
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
    """The distinct rows and the code of each row, exact to the bit; None when they are many."""
    weights = torch.rand(table.shape[1], dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    blocks = [slice(start, start + _BLOCK) for start in range(0, len(table), _BLOCK)]
    key = torch.cat([table[block].double() @ weights for block in blocks])
    values, code = torch.unique(key, return_inverse=True)
    if len(values) > MAX_DISTINCT:
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
    """The number of in-place changes of a table; None where torch does not count."""
    return None if table.is_inference() else table._version
