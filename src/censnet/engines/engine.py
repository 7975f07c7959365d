"""What a plan asks of an engine: tables by name, queries in the SQL that engines share, functions of Arrow batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from censnet.engines.columns import Group
from censnet.engines.files import TableFile

Work = Callable[[pa.RecordBatch], pa.RecordBatch]
MAPPED = "mapped"  # the table of what a function gave, in the query that reads it
BATCH_ROWS = 65_536
ROW = "censnet_row"  # the column with the number of a row in its file, from 0


class Engine(Protocol):
    """Where tables are. Each step of a plan is one call, and its result a table that is on a disk when it returns.

    Attributes:
        dense: whether the engine is faster where the numbers of nodes have no gaps.
    """

    dense: bool

    def read(self, name: str, file: TableFile, work: Work, schema: pa.Schema) -> None:
        """A table of what a function gives for the rows of a file, behind the number of each, `ROW`."""
        ...

    def query(self, name: str, sql: str) -> None:
        """A table of the rows of a query."""
        ...

    def map(self, name: str, sql: str, work: Work, schema: pa.Schema) -> None:
        """A table of what a function gives for the rows of a query, batch by batch."""
        ...

    def sum(self, name: str, sql: str, work: Work, schema: pa.Schema, group: Group) -> None:
        """A table of the sums of a group of columns of what a function gives, by the other columns, which are keys."""
        ...

    def fetch(self, sql: str) -> Iterator[pa.RecordBatch]:
        """The rows of a query."""
        ...

    def write(self, to: Path, source: TableFile | str, kept: Sequence[str], results: str, names: Sequence[str]) -> int:
        """Write the user's rows with results behind them. -> the number of rows

        Args:
            to: a .csv, .tsv or .parquet file.
            source: the user's table, or a query for its rows in order.
            kept: the columns of it that are repeated.
            results: a query for a row for each of its rows, in the same order, behind the number of the row.
            names: of the columns of the results.
        """
        ...

    def close(self) -> None:
        """Give back what the engine holds."""
        ...

    def drop(self, *names: str) -> None:
        """Remove tables that are not needed any more."""
        ...


def fetch_one(engine: Engine, sql: str) -> list[int]:
    """The one row of a query for whole numbers; 0 where there is none."""
    rows = [row for batch in engine.fetch(sql) for row in batch.to_pylist()]
    return [value or 0 for value in rows[0].values()]


def sum_query(schema: pa.Schema, group: Group) -> str:
    """The query for the sums of a group of columns of `MAPPED`, by the other columns."""
    keys = ", ".join(name for name in schema.names if name not in group.columns)
    sums = [f"CAST(sum({name}) AS {group.sql_type}) AS {name}" for name in group.columns]
    return f"SELECT {', '.join([keys, *sums])} FROM {MAPPED} GROUP BY {keys}"
