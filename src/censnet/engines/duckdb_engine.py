"""The back end of DuckDB: each table is a Parquet file, and DuckDB joins and sums them within a memory limit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import torch

from censnet.engines.columns import Group
from censnet.engines.disk import explain_disk
from censnet.engines.engine import BATCH_ROWS, MAPPED, ROW, Work, fetch_one, sum_query
from censnet.engines.files import TableFile
from censnet.engines.sums import KeySums
from censnet.engines.writing import write_results
from censnet.errors import MissingDependencyError, RunError, quote
from censnet.option_names import name_option

ARRAY_SHARE = 4  # one part in so many of the memory is for sums by node, the rest for DuckDB
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?I?)B?\s*")
LEAST_MEMORY = 2**28


class DuckDBEngine:
    """Tables on a disk.

    Args:
        folder: of the tables, and of what does not fit into memory.
        memory_limit: such as 4GiB; the process takes more by what torch and one batch do.
    """

    dense = True

    def __init__(self, folder: Path, memory_limit: str) -> None:
        try:
            import duckdb
        except ImportError:
            raise MissingDependencyError(
                "engine duckdb needs DuckDB, which is not installed: pip install censnet[duckdb]"
            ) from None
        self.folder, self._duckdb, self._limit = folder, duckdb, memory_limit
        self._connection = duckdb.connect(config={"threads": max(1, torch.get_num_threads())})
        self._memory = read_size(memory_limit)
        with self._explained():
            self._set("memory_limit", f"{self._memory * (ARRAY_SHARE - 1) // ARRAY_SHARE // 2**20}MiB")
            self._set("temp_directory", str(folder / "spill"))
            self._set("preserve_insertion_order", "false")

    def close(self) -> None:
        """Give the memory back."""
        self._connection.close()

    def read(self, name: str, file: TableFile, work: Work, schema: pa.Schema) -> None:
        def batches() -> Iterator[pa.RecordBatch]:
            first = 0
            for batch in file.batches(BATCH_ROWS):
                numbers = pa.array(range(first, first + batch.num_rows), pa.int64())
                first += batch.num_rows
                yield pa.RecordBatch.from_arrays([numbers, *batch.columns], names=[ROW, *batch.schema.names])

        self._write(name, map(work, batches()), schema)

    def query(self, name: str, sql: str) -> None:
        with self._explained():
            self._copy(self._connection, name, sql)
        self._view(name)

    def map(self, name: str, sql: str, work: Work, schema: pa.Schema) -> None:
        self._write(name, map(work, self.fetch(sql)), schema)

    def sum(self, name: str, sql: str, work: Work, schema: pa.Schema, group: Group) -> None:
        mapped = map(work, self.fetch(sql))
        if len(schema.names) == 1 + group.width:
            (last,) = fetch_one(self, "SELECT max(node) AS n FROM nodes_base")
            sums = KeySums(schema, group, 2 * last + 2, self._memory // ARRAY_SHARE, self.folder)
            self._write(name, sums(mapped), schema)
            return
        with self._explained():
            cursor = self._connection.cursor()
            cursor.register(MAPPED, pa.RecordBatchReader.from_batches(schema, mapped))
            self._copy(cursor, name, sum_query(schema, group))
            cursor.unregister(MAPPED)
            cursor.close()
        self._view(name)

    def fetch(self, sql: str) -> Iterator[pa.RecordBatch]:
        with self._explained():
            cursor = self._connection.cursor()
            yield from cursor.sql(sql).to_arrow_reader(BATCH_ROWS)
            cursor.close()

    def write(self, to: Path, source: TableFile | str, kept: Sequence[str], results: str, names: Sequence[str]) -> int:
        rows = self.fetch(source) if isinstance(source, str) else source
        return write_results(to, rows, kept, self.fetch(results), names)

    def drop(self, *names: str) -> None:
        for name in names:
            self._connection.execute(f"DROP VIEW IF EXISTS {name}")
            self._path(name).unlink(missing_ok=True)

    # -- inside -------------------------------------------------------------------------------------------------------

    def _set(self, name: str, value: str) -> None:
        self._connection.execute(f"SET {name} = {_quote(value)}")

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.parquet"

    def _view(self, name: str) -> None:
        path = _quote(str(self._path(name)))
        self._connection.execute(f"CREATE OR REPLACE VIEW {name} AS SELECT * FROM read_parquet({path})")

    def _copy(self, cursor: Any, name: str, sql: str) -> None:
        path = _quote(str(self._path(name)))
        cursor.execute(f"COPY ({sql}) TO {path} (FORMAT parquet, COMPRESSION uncompressed)")

    def _write(self, name: str, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> None:
        counts = [field.name for field in schema if field.type == pa.int64()]
        with (
            self._explained(),
            pa.parquet.ParquetWriter(
                self._path(name), schema, compression="none", use_dictionary=counts, write_statistics=False
            ) as writer,
        ):
            for batch in batches:
                writer.write_batch(batch)
        self._view(name)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Errors of DuckDB and of the disk as ours."""
        try:
            yield
        except self._duckdb.OutOfMemoryException:
            raise RunError(
                f"engine duckdb needs more memory than {self._limit}: give it more by {name_option('--memory-limit')}"
            ) from None
        except (self._duckdb.Error, OSError) as error:
            raise explain_disk(error, self.folder) from None


def read_size(text: str) -> int:
    """A size in bytes.

    >>> read_size("4GiB"), read_size("512 MB")
    (4294967296, 512000000)
    """
    found = _SIZE.fullmatch(text.upper())
    size = 0 if found is None else int(float(found[1]) * _UNITS.get(found[2], 0))
    if size < LEAST_MEMORY:
        raise RunError(
            f"{name_option('--memory-limit')} is {quote(text)}, expected a size such as 4GiB, at least 256MiB"
        )
    return size


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
