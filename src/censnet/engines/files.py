"""The user's tables as Parquet files whose rows are read batch by batch; a CSV file is rewritten as one first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from censnet.data.tables.columns import MISSING
from censnet.data.tables.csv_files import CsvForm, as_integers, casts_to, explain_csv, tidy_csv
from censnet.data.tables.files import check_file, check_names, check_table_file, find_tables, is_parquet
from censnet.errors import DataError, quote

_BLOCK = 16 << 20
_CONVERSION = re.compile(r"In CSV column #(\d+): (?:Row #\d+: )?CSV conversion error to (\w+)")
_WIDER = {"null": pa.int64(), "int64": pa.float64()}  # a type -> the next that may hold a value it does not


@dataclass(frozen=True)
class TableFile:
    """A table of the user's.

    Args:
        path: a Parquet file, or a folder of some.
        name: as messages call it.
        schema: its columns, with the types that they have once `casts` are applied.
        casts: columns of text that are numbers.
    """

    path: Path
    name: str
    schema: pa.Schema
    casts: Mapping[str, pa.DataType] = field(default_factory=dict)

    def cast(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows with the types that the columns have."""
        columns = [
            _cast(column, self.casts[name]) if name in self.casts else column
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)

    def batches(self, size: int) -> Iterator[pa.RecordBatch]:
        """The rows as they are stored, in order."""
        paths = sorted(self.path.glob("*.parquet")) if self.path.is_dir() else [self.path]
        try:
            for path in paths:
                with open_parquet(path) as file:
                    for batch in file.iter_batches(size):
                        yield batch.select([name for name in batch.schema.names if name != "__index_level_0__"])
        except (pa.ArrowException, OSError, ValueError) as error:
            raise _unreadable(error, self.name) from None

    def head(self, rows: int = 1000) -> pa.Table:
        """The first rows."""
        first = next(self.batches(rows), None)
        return self.schema.empty_table() if first is None else pa.Table.from_batches([self.cast(first)])


def _cast(text: pa.Array, kind: pa.DataType) -> pa.Array:
    return pa.nulls(len(text)) if pa.types.is_null(kind) else pc.cast(_without_missing(text), kind)


def _without_missing(text: pa.Array) -> pa.Array:
    known = pc.is_in(text, value_set=pa.array(MISSING))
    return pc.if_else(known, pa.scalar(None, pa.string()), pc.utf8_trim_whitespace(text))


def open_tables(source: Path, roles: Mapping[str, str], folder: Path) -> dict[str, TableFile]:
    """Table -> its file, of a folder of tables or of one file.

    Args:
        source: the file or the folder.
        roles: column -> its role, of those that keep what is written in them.
        folder: where a Parquet file is made of each CSV file.
    """
    check_file(source, folder=True)
    found = find_tables(source) if source.is_dir() else {"edges": source}
    return {table: open_table(path, list(roles), folder) for table, path in found.items()}


def open_table(path: Path, keys: Sequence[str], folder: Path) -> TableFile:
    """A file as a table; that of a CSV file is a Parquet file in the folder."""
    check_table_file(path)
    if not is_parquet(path):
        return _rewrite_csv(path, keys, folder / f"{path.name}.parquet")
    try:
        schema = pa.parquet.read_schema(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _unreadable(error, path.name) from None
    kept = [number for number, name in enumerate(schema.names) if name != "__index_level_0__"]
    check_names([schema.names[number] for number in kept], path.name)
    return TableFile(path, path.name, pa.schema([schema.field(number).remove_metadata() for number in kept]))


def open_parquet(path: Path) -> pa.parquet.ParquetFile:
    """A Parquet file whose rows are read as they are taken: with Arrow's default all of it would be in memory."""
    return pa.parquet.ParquetFile(path, pre_buffer=False)


def _unreadable(error: Exception, name: str) -> DataError:
    line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return DataError(f"is not a Parquet file that can be read: {quote(line, 200)[1:-1]}", name)


def _rewrite_csv(path: Path, keys: Sequence[str], to: Path) -> TableFile:
    """A CSV file as Parquet, typed by all of its rows as `read_csv` types them."""
    form = CsvForm.find(path, keys)
    if form.is_header:
        raise DataError("has names of columns and no row below them, expected at least one row", path.name)
    types = dict.fromkeys(form.as_text, pa.string())
    reading: dict[str, Any] = {"block_size": _BLOCK, "encoding": form.encoding.removesuffix("-sig")}
    while True:
        parsing = pa.csv.ParseOptions(delimiter=form.delimiter, newlines_in_values=form.quoted)
        converting = pa.csv.ConvertOptions(null_values=list(MISSING), column_types=types)
        try:
            with pa.csv.open_csv(str(path), pa.csv.ReadOptions(**reading), parsing, converting) as stream:
                return _write(stream, form, path.name, to)
        except pa.ArrowInvalid as error:
            message = str(error)
            conversion = _CONVERSION.search(message)
            name = None if conversion is None else form.names[int(conversion[1])]
            if conversion is not None and name is not None and types.get(name) != pa.string():
                types[name] = _WIDER.get(conversion[2], pa.string())
                continue
            if ("straddl" in message or "block" in message) and reading["block_size"] < 1 << 30:
                reading["block_size"] *= 16  # one field is longer than a block
                continue
            raise explain_csv(path, form.encoding, form.delimiter, form.quoted, message) from None
        except (UnicodeError, pa.ArrowException) as error:
            raise DataError(f"cannot be read: {quote(str(error), 200)[1:-1]}", path.name) from None


def _write(stream: pa.csv.CSVStreamingReader, form: CsvForm, name: str, to: Path) -> TableFile:
    """Write the rows, and find the columns of text that are numbers in all of them."""
    whole = {column.strip(): True for column in form.integers}  # canonical integers
    plain = {column.strip(): column not in form.ids for column in form.integers}  # numbers, and none an odd integer
    some = set[str]()  # columns that hold a value
    schema = tidy_csv(stream.schema.empty_table(), name).schema
    check_names(schema.names, name)
    with pa.parquet.ParquetWriter(to, schema, compression="none") as writer:
        for batch in stream:
            table = tidy_csv(pa.Table.from_batches([batch]), name)
            writer.write_table(table)
            for column in whole:
                found = as_integers(table[column]) if whole[column] else None
                whole[column] = found is not None
                some |= {column} if found is not None and found.null_count < len(found) else set()
                if not whole[column] and plain[column]:
                    values = pa.chunked_array([_without_missing(chunk) for chunk in table[column].chunks], pa.string())
                    plain[column] = casts_to(values, pa.float64()) is not None
    casts = {column: pa.int64() if column in some else pa.null() for column, fits in whole.items() if fits}
    casts |= {column: pa.float64() for column, fits in plain.items() if fits and column not in casts}
    types = [pa.field(one.name, casts.get(one.name, one.type)) for one in schema]
    return TableFile(to, name, pa.schema(types), casts)
