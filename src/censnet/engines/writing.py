"""The file of predictions: the user's rows with a result behind each, written whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from censnet.data.dataset import rename_taken
from censnet.data.tables.files import is_parquet, lists_as_text
from censnet.engines.engine import BATCH_ROWS
from censnet.engines.files import TableFile
from censnet.errors import DataError
from censnet.files import atomic_file


class Stream:
    """Batches of rows, taken a number of rows at a time."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches, self._rest = batches, list[pa.RecordBatch]()

    def take(self, count: int) -> pa.Table:
        """The next rows."""
        while sum(map(len, self._rest)) < count:
            self._rest.append(next(self._batches))
        every = pa.Table.from_batches(self._rest)
        self._rest = every.slice(count).to_batches()
        return every.slice(0, count)


def write_results(
    to: Path,
    source: TableFile | Iterator[pa.RecordBatch],
    kept: Sequence[str],
    results: Iterator[pa.RecordBatch],
    names: Sequence[str],
) -> int:
    """Write the user's columns and the results behind them. -> the number of rows

    Args:
        to: a .csv, .tsv or .parquet file.
        source: the user's table, or its rows.
        kept: the columns of it that are repeated.
        results: a row for each of its rows, in the same order, behind the number of the row.
        names: of the columns of the results.
    """
    stream, count = Stream(results), 0
    batches = map(source.cast, source.batches(BATCH_ROWS)) if isinstance(source, TableFile) else source
    renamed = rename_kept(kept, names)
    with _open(to) as write:
        for batch in batches:
            known = pa.Table.from_batches([batch]).select(list(kept)).rename_columns([renamed[name] for name in kept])
            found = stream.take(batch.num_rows)
            for name, column in zip(names, found.columns[1:], strict=True):
                known = known.append_column(name, column)
            write(known)
            count += len(known)
    return count


def rename_kept(kept: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """The name that each of the user's columns gets beside results."""
    return rename_taken(kept, names)


class _Writer:
    """Writes tables behind each other, to a file that the first of them begins."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file, self._path = file, path
        self._writer: pa.parquet.ParquetWriter | pa.csv.CSVWriter | None = None

    def __call__(self, table: pa.Table) -> None:
        table = table if is_parquet(self._path) else lists_as_text(table)
        if self._writer is None:
            self._writer = self._begin(table.schema)
        self._writer.write_table(table.cast(self._writer.schema) if is_parquet(self._path) else table)

    def _begin(self, schema: pa.Schema) -> pa.parquet.ParquetWriter | pa.csv.CSVWriter:
        if is_parquet(self._path):
            return pa.parquet.ParquetWriter(self._file, schema)
        delimiter = "\t" if self._path.suffix.lower() == ".tsv" else ","
        options = pa.csv.WriteOptions(delimiter=delimiter, quoting_style="needed")
        return pa.csv.CSVWriter(self._file, schema, write_options=options)

    def close(self) -> None:
        """Write the end of the file."""
        if self._writer is not None:
            self._writer.close()


@contextmanager
def _open(path: Path) -> Iterator[_Writer]:
    """A writer of a file that is there when all is written, and not before."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as file:
            writer = _Writer(file, path)
            yield writer
            writer.close()
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror or error}", str(path)) from None
