"""Tensors as columns of a table: a group of channels is as many columns, so that SQL can sum each of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from censnet.ops.arrays import Array

ARROW = {torch.float32: pa.float32(), torch.float64: pa.float64(), torch.int64: pa.int64(), torch.bool: pa.bool_()}
SQL = {torch.float32: "FLOAT", torch.float64: "DOUBLE", torch.int64: "BIGINT", torch.bool: "BOOLEAN"}


@dataclass(frozen=True)
class Group:
    """Columns that are one tensor.

    Args:
        name: of the tensor; its columns are the name with a number behind it.
        width: their number.
        dtype: of the tensor.

    Example:
        >>> Group("x", 2).columns
        ['x_0', 'x_1']
    """

    name: str
    width: int
    dtype: torch.dtype = torch.float32

    @classmethod
    def of(cls, name: str, rows: Tensor) -> Group:
        """The group that holds these rows."""
        return cls(name, rows.shape[1], rows.dtype)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [f"{self.name}_{number}" for number in range(self.width)]

    @property
    def fields(self) -> list[pa.Field]:
        """The columns with their types."""
        return [pa.field(column, ARROW[self.dtype]) for column in self.columns]

    @property
    def sql_type(self) -> str:
        """The type of each column in SQL."""
        return SQL[self.dtype]

    def read(self, batch: pa.RecordBatch, prefix: str = "") -> Tensor:
        """The tensor of a batch. (n, width)"""
        if self.width == 0:
            return torch.empty(batch.num_rows, 0, dtype=self.dtype)
        values = [_numbers(batch.column(prefix + column)) for column in self.columns]
        return torch.from_numpy(np.stack(values)).to(self.dtype).t().contiguous()

    def arrays(self, rows: Tensor) -> list[pa.Array]:
        """The columns of a tensor."""
        return [pa.array(column) for column in rows.detach().to(self.dtype).t().contiguous().numpy()]


Groups = Mapping[str, Group]


def groups_of(tensors: Mapping[str, Tensor]) -> dict[str, Group]:
    """The groups that hold these tensors, by name."""
    return {name: Group.of(name, rows) for name, rows in tensors.items()}


def columns_of(groups: Iterable[Group]) -> list[str]:
    """The columns of some groups."""
    return [column for group in groups for column in group.columns]


def read_integers(batch: pa.RecordBatch, column: str) -> Tensor:
    """A column of whole numbers. (n,)"""
    return torch.from_numpy(np.array(batch.column(column).to_numpy(zero_copy_only=False), np.int64))


def schema_of(keys: Mapping[str, pa.DataType], groups: Iterable[Group] = ()) -> pa.Schema:
    """The schema of a table with these keys, and with groups of columns."""
    fields = [pa.field(name, kind) for name, kind in keys.items()]
    return pa.schema(fields + [field for group in groups for field in group.fields])


def write_batch(schema: pa.Schema, keys: Sequence[pa.Array], tensors: Iterable[tuple[Group, Tensor]]) -> pa.RecordBatch:
    """A batch of keys and tensors."""
    arrays = [*keys, *(array for group, rows in tensors for array in group.arrays(rows))]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _numbers(column: pa.Array) -> Array:
    found: Array = column.to_numpy(zero_copy_only=False)
    return found
