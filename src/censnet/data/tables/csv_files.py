"""Text tables through Arrow's reader: encodings, separators, ids that must stay text, and what is wrong with a file."""

from __future__ import annotations

import codecs
import contextlib
import csv
import itertools
import mmap
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray

from censnet.data.tables.columns import MISSING
from censnet.data.tables.keys import ROLES
from censnet.errors import DataError, quote
from censnet.ops.arrays import Array

CANONICAL = re.compile(r"0|-?[1-9][0-9]*")
_MINUS, _ZERO, _NINE = b"-09"


def as_integers(text: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """A column of text as int64, if every value is missing or a canonical integer that fits; otherwise None.

    >>> as_integers(pa.chunked_array([["12", "-7", "NA", ""]])).to_pylist()
    [12, -7, None, None]
    >>> as_integers(pa.chunked_array([["12", "007"]]))
    """
    if not all(map(_has_digits_alone, text.chunks)):
        text = pc.if_else(pc.is_in(text, value_set=pa.array(MISSING)), pa.scalar(None, pa.string()), text)
        if not all(map(_has_digits_alone, text.chunks)):
            return None
    elif pc.any(pc.equal(text, "")).as_py():
        text = pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)
    try:
        return pc.cast(text, pa.int64())
    except pa.ArrowInvalid:  # 2^63 and beyond
        return None


def as_plain(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of text that is no key: integers, or else numbers, where all of it is, spaces around them aside.

    It stays text if reading it as numbers would lose what a word is, as in 007 or 0x0D.
    """
    trimmed = pc.utf8_trim_whitespace(text)
    integers = as_integers(trimmed)
    if integers is not None:
        return integers
    trimmed = pc.if_else(pc.is_in(trimmed, value_set=pa.array(MISSING)), pa.scalar(None, pa.string()), trimmed)
    if casts_to(trimmed, pa.int64()) is not None:
        return text
    numbers = casts_to(trimmed, pa.float64())
    return text if numbers is None else numbers


def casts_to(text: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    try:
        return pc.cast(text, kind)
    except pa.ArrowInvalid:
        return None


def _has_digits_alone(text: pa.Array) -> bool:
    """Whether each value is empty, missing or a canonical integer, from the bytes: no value is looked at by itself."""
    offsets, content = _buffers(text.drop_null() if text.null_count else text)  # bytes under a gap do not count
    if len(content) == 0:
        return True
    if int(content.max()) > _NINE:
        return False
    start, length = offsets[:-1], np.diff(offsets)
    start, length = (start, length) if length.all() else (start[length > 0], length[length > 0])
    first = content[start]
    if int(content.min()) < _ZERO:
        signed = first == _MINUS
        if np.count_nonzero(content < _ZERO) != np.count_nonzero(signed) or bool((length[signed] < 2).any()):
            return False
        if bool((content[start[signed] + 1] == _ZERO).any()):
            return False
    return not bool(((first == _ZERO) & (length > 1)).any())


def _buffers(text: pa.Array) -> tuple[Array, NDArray[np.uint8]]:
    """The first byte of each value, the end of the last one, and the bytes of all values."""
    _, places, content = text.buffers()
    if len(text) == 0 or content is None:
        return np.zeros(len(text) + 1, np.int32), np.zeros(0, np.uint8)
    offsets = np.frombuffer(places, np.int32)[text.offset : text.offset + len(text) + 1]
    return offsets - offsets[0], np.frombuffer(content, np.uint8)[offsets[0] : offsets[-1]]


_SAMPLE = 1 << 20
_BLOCK = 4 << 20
_LARGE = 64 << 20
_REWRITTEN = re.compile(r"-?0[0-9]+|-0|-?0[xX][0-9a-fA-F]+")  # Arrow reads integers in these
_FOREIGN = re.compile(r"In CSV column #(\d+): .*invalid UTF8")
_NOT_UTF8 = "is not UTF-8 text (save the file as UTF-8)"
_KEY_NAMES = {name for names in ROLES.values() for name in names}
_MARKS = ((codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"), (codecs.BOM_UTF16_LE, "utf-16"),
          (codecs.BOM_UTF16_BE, "utf-16"), (codecs.BOM_UTF8, "utf-8-sig"))  # fmt: skip


@dataclass(frozen=True)
class CsvForm:
    """How a text table is written, by its first lines.

    Args:
        encoding, delimiter: of its text.
        names: of the columns.
        ids: columns of ids.
        text: columns that hold integers Arrow would change, such as 007.
        integers: columns whose first values are integers.
        quoted: whether a field may hold a line break.
        is_header: whether there is one line alone, which Arrow does not read without a line break behind it.
    """

    encoding: str
    delimiter: str
    names: list[str]
    ids: set[str]
    text: set[str]
    integers: set[str]
    quoted: bool
    is_header: bool

    @classmethod
    def find(cls, path: Path, keys: Sequence[str] = ()) -> CsvForm:
        """The form of a file."""
        sample, encoding = _sample(path)
        delimiter = _delimiter(sample)
        records = _records(sample, delimiter, path.name)
        columns = list(itertools.zip_longest(*records, fillvalue=""))[: len(records[0])]
        ids = {name for name, *_ in columns if name.strip() in keys or name.strip().lower() in _KEY_NAMES}
        text = {name for name, *values in columns if any(map(_REWRITTEN.fullmatch, values))}
        integers = {name for name, *values in columns if name not in text and _are_integers(values, name in ids)}
        is_header = len(records) == 1 and len(sample) < _SAMPLE // 4
        return cls(encoding, delimiter, records[0], ids, text, integers, _has_quotes(path), is_header)

    @property
    def as_text(self) -> set[str]:
        """The columns that are read as text, whatever they become."""
        return self.ids | self.text | self.integers


def read_csv(path: Path, keys: Sequence[str] = ()) -> pa.Table:
    """Read a text table; a row with too many or too few fields is an error that names it.

    Ids are as they are written. A column of ids, which its name or `keys` says, is integers only if every row is an
    integer in canonical form; any other column that starts as integers is so unless a later row is 007 or the like.
    """
    form = CsvForm.find(path, keys)
    if form.is_header:
        return tidy_csv(pa.table([pa.array([], pa.string())] * len(form.names), names=form.names), path.name)
    table = _read(path, form.encoding, form.delimiter, form.names, form.as_text, form.quoted)
    for number, name in enumerate(table.column_names):
        if name in form.integers and pa.types.is_string(table.schema.types[number]):
            values = table.column(number)
            found = as_integers(values)
            if found is None and name not in form.ids:
                found = as_plain(values)
            if found is not None:
                table = table.set_column(number, name, found if found.null_count < len(found) else pa.nulls(len(found)))
    return tidy_csv(table, path.name)


def _are_integers(values: Iterable[str], exact: bool) -> bool:
    """Whether all that a sample of a column has is integers; an empty one may still have some."""
    present = (value if exact else value.strip() for value in values)
    return all(CANONICAL.fullmatch(value) for value in present if value not in MISSING)


def _sample(path: Path) -> tuple[str, str]:
    """The first lines as text, and the encoding, which a mark at the start of the file may give."""
    with pa.input_stream(str(path)) as stream:  # Arrow unzips .gz
        start = stream.read(_SAMPLE)
    if not start.strip():
        raise DataError("is empty", path.name)
    encoding = next((name for mark, name in _MARKS if start.startswith(mark)), "utf-8")
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    try:
        sample = decoder.decode(start)
    except UnicodeError as error:
        raise DataError(f"is not UTF-8 text: {error.reason if isinstance(error, UnicodeDecodeError) else error} "
                        "(save it as UTF-8)", path.name) from None  # fmt: skip
    if not sample.strip():
        raise DataError("is empty", path.name)
    if "\0" in sample.lstrip("\r\n").split("\n", 1)[0]:
        raise DataError("holds NUL bytes in its first line, expected text (save it as UTF-8)", path.name)
    return sample, encoding


def _delimiter(sample: str) -> str:
    """Comma, tab or semicolon: what the first line has most of."""
    line = sample.lstrip("\r\n").split("\n", 1)[0]
    return max(",\t;", key=lambda mark: (line.count(mark), mark == ","))


def _records(sample: str, delimiter: str, name: str) -> list[list[str]]:
    lines = sample.splitlines(keepends=True)
    if len(lines) > 1 and len(sample) >= _SAMPLE // 4:
        lines = lines[:-1]  # may be cut
    records: list[list[str]] = []
    try:
        records.extend(record for record in csv.reader(lines[:2000], delimiter=delimiter) if record)
    except csv.Error as error:
        if not records:
            raise DataError(f"has a first line that cannot be read: {error}", name) from None
    if not records:
        raise DataError("has no line with names of columns", name)
    return records


def _has_quotes(path: Path) -> bool:
    """Only a file with quotes can have line breaks within a field; looking for one costs less than allowing for it."""
    if path.name.lower().endswith(".gz"):
        return True
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as memory:
        return memory.find(b'"') >= 0


def _read(path: Path, encoding: str, delimiter: str, names: Sequence[str], text: set[str], quoted: bool) -> pa.Table:
    parsing = pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=quoted)
    converting = pa.csv.ConvertOptions(null_values=list(MISSING), column_types=dict.fromkeys(text, pa.string()))
    reading = pa.csv.ReadOptions(block_size=_BLOCK, encoding=encoding.removesuffix("-sig"))
    if path.stat().st_size > _LARGE:
        # the stream never holds the file in memory, but knows the types from the first block alone
        with (
            contextlib.suppress(pa.ArrowInvalid, UnicodeError),
            pa.csv.open_csv(
                str(path), read_options=reading, parse_options=parsing, convert_options=converting
            ) as stream,
        ):
            return stream.read_all()
    while True:
        try:
            return pa.csv.read_csv(str(path), read_options=reading, parse_options=parsing, convert_options=converting)
        except pa.ArrowInvalid as error:
            message = str(error)
            foreign = _FOREIGN.search(message)
            if foreign is not None and int(foreign[1]) < len(names):
                raise DataError(_NOT_UTF8, path.name, column=names[int(foreign[1])].strip()) from None
            if ("straddl" in message or "block" in message) and reading.block_size < 1 << 30:
                reading.block_size *= 16  # one field is longer than a block
                continue
            raise explain_csv(path, encoding, delimiter, quoted, message) from None
        except (UnicodeError, pa.ArrowException) as error:
            raise DataError(f"cannot be read: {quote(str(error), 200)[1:-1]}", path.name) from None


def explain_csv(path: Path, encoding: str, delimiter: str, quoted: bool, message: str) -> DataError:
    """Find the first row with a wrong number of fields; read again for this, since rows are not counted in parallel."""
    first: list[pa.csv.InvalidRow] = []

    def note(row: pa.csv.InvalidRow) -> str:
        first.append(row)
        return "error"

    options = pa.csv.ReadOptions(use_threads=False, encoding=encoding.removesuffix("-sig"), block_size=_BLOCK)
    parsing = pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=quoted, invalid_row_handler=note)
    with contextlib.suppress(pa.ArrowException, UnicodeError):
        pa.csv.read_csv(str(path), read_options=options, parse_options=parsing)
    if first and first[0].number is not None:
        row = first[0]
        found = f"has {row.actual_columns} fields, expected {row.expected_columns}: {quote(row.text)}"
        return DataError(found, path.name, row.number - 2)
    return DataError(f"cannot be read: {quote(message.splitlines()[0], 200)[1:-1]}", path.name)


def tidy_csv(table: pa.Table, name: str) -> pa.Table:
    """Names without spaces around them, an unnamed column called as pandas does, and empty text as missing."""
    names = [column.strip() or f"Unnamed: {number}" for number, column in enumerate(table.column_names)]
    columns = []
    for column, values in zip(names, table.columns, strict=True):
        if pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type):
            raise DataError(_NOT_UTF8, name, column=column)
        if pa.types.is_string(values.type):
            values = pc.if_else(pc.equal(values, ""), pa.scalar(None, pa.string()), values)
        columns.append(values)
    return pa.table(columns, names=names)
