"""Ids of any type as numbers from 0: an index of the distinct ones, and ids that are written in two ways."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from censnet.data.tables.columns import as_arrow, as_text, is_missing
from censnet.data.tables.notes import Note
from censnet.errors import DataError, quote
from censnet.ops.arrays import Array, IntArray

_DIGITS = {"float": 24, "float32": 24, "halffloat": 11, "float16": 11}  # bits of a whole number that a fraction holds


class IdIndex:
    """The distinct ids of a column, numbered in order of their first row.

    Whole numbers that lie close together are found through an array, all others through a hash table.

    Example:
        >>> people = IdIndex(pa.chunked_array([["ann", "bob", None, "ann"]]))
        >>> len(people), people.rows.tolist(), people.codes.tolist()
        (2, [0, 1], [0, 1, -1, 0])
        >>> people.find(pa.chunked_array([["bob", "eve"]])).tolist()
        [1, -1]
    """

    def __init__(self, ids: pa.ChunkedArray) -> None:
        whole = whole_numbers(ids)
        self._least, self._table = 0, None
        if whole is not None and ids.null_count == 0 and len(whole):
            self._number_densely(whole)
        if self._table is None:
            self._number_by_hash(ids if whole is None else _from_whole(whole, ids))

    codes: Array
    """For each row, the number of its id; -1 where it is missing."""
    rows: IntArray
    """For each number, the first row with its id."""
    _known: pa.ChunkedArray | pa.Array
    _table: IntArray | None

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def text(self) -> pa.ChunkedArray:
        """The distinct ids as text, for a look-up across types."""
        known = self._known
        return as_text(known if isinstance(known, pa.ChunkedArray) else pa.chunked_array([known]))

    @property
    def text_alone(self) -> pa.ChunkedArray | None:
        """The distinct ids, if they are text."""
        return self.text if pa.types.is_string(self._known.type) else None

    def find(self, ids: pa.ChunkedArray) -> IntArray:
        """The number of each id, -1 where it is missing or unknown. Ids of another type are compared as text."""
        whole = whole_numbers(ids)
        if self._table is not None and whole is not None:
            return self._find_densely(self._table, whole, ids)
        if whole is not None and pa.types.is_integer(self._known.type):
            return _index_in(_from_whole(whole, ids), self._known)
        if ids.type == self._known.type:
            return _index_in(ids, self._known)
        return _index_in(as_text(ids), self.text)

    def _number_densely(self, whole: IntArray) -> None:
        least, most = int(whole.min()), int(whole.max())
        if most - least > 8 * len(whole) + 1_000_000:
            return
        position, count = whole - least if least else whole, len(whole)
        first = np.full(most - least + 1, -1, np.int64)
        first[position[::-1]] = np.arange(count - 1, -1, -1)  # the first row of an id is written last, and stays
        row = first[position]
        distinct = row == np.arange(count)
        self.rows = np.flatnonzero(distinct)
        if len(self.rows) == count:
            self._table, self.codes = first, row
        else:
            number = np.cumsum(distinct) - 1
            self.codes = number[row]
            self._table = np.where(first >= 0, number[first], -1)
        self._least, self._known = least, pa.array(whole if len(self.rows) == count else whole[self.rows])

    def _number_by_hash(self, ids: pa.ChunkedArray) -> None:
        encoded = ids.dictionary_encode()
        chunks = [pc.fill_null(chunk.indices, -1).to_numpy(zero_copy_only=False) for chunk in encoded.chunks]
        self.codes = np.concatenate(chunks).astype(np.int64) if chunks else np.zeros(0, np.int64)
        self._known = encoded.chunk(0).dictionary if encoded.num_chunks else pa.array([], ids.type)
        if len(self._known) == len(self.codes):
            self.rows = np.arange(len(self.codes))
        else:
            first = ~pd.Series(self.codes).duplicated().to_numpy() & (self.codes >= 0)
            self.rows = np.flatnonzero(first)

    def _find_densely(self, table: IntArray, whole: IntArray, ids: pa.ChunkedArray) -> IntArray:
        if len(whole) == 0:
            return np.zeros(0, np.int64)
        position = whole - self._least if self._least else whole
        if int(whole.min()) >= self._least and int(whole.max()) < self._least + len(table):
            found = table[position]
        else:
            inside = (whole >= self._least) & (whole < self._least + len(table))
            found = np.where(inside, table[np.where(inside, position, 0)], -1)
        return found if ids.null_count == 0 else np.where(pc.is_null(ids).to_numpy(), -1, found)


def whole_numbers(ids: pa.ChunkedArray) -> IntArray | None:
    """Ids as int64, 0 where missing; None when they are not whole numbers that fit."""
    if pa.types.is_floating(ids.type):  # what pandas makes of whole numbers with gaps
        numbers = pc.fill_null(pc.if_else(pc.is_finite(ids), ids, None), 0).to_numpy()
        infinite = pc.any(pc.is_inf(ids)).as_py()
        if infinite or (numbers != np.floor(numbers)).any() or (np.abs(numbers) >= 2.0**53).any():
            return None
        return np.asarray(numbers, np.int64)
    if not pa.types.is_integer(ids.type):
        return None
    try:
        whole = pc.cast(ids, pa.int64()) if ids.type != pa.int64() else ids
    except pa.ArrowInvalid:  # above 2^63
        return None
    return np.asarray((pc.fill_null(whole, 0) if whole.null_count else whole).to_numpy())


def as_ids(series: pd.Series) -> pa.ChunkedArray:
    """A column as ids: whole numbers and text as they are, all else by its text; NaN is a missing id."""
    ids = as_arrow(series)
    if pa.types.is_floating(ids.type):
        ids = pc.cast(ids, pa.float64())
        return pc.if_else(pc.is_nan(ids), pa.scalar(None, pa.float64()), ids) if pc.any(pc.is_nan(ids)).as_py() else ids
    return ids if pa.types.is_integer(ids.type) else as_text(ids)


def read_ids(frame: pd.DataFrame, column: str, file: str) -> pa.ChunkedArray:
    """The ids of a column, as `as_ids` gives them; raise where two of them cannot be distinguished."""
    series = frame[column]
    if series.dtype == object and pd.api.types.infer_dtype(series, skipna=True).startswith("mixed"):
        _check_mixed(series, column, file)
    ids = as_ids(series)
    if pa.types.is_floating(ids.type) and len(ids):
        most = 2.0 ** _DIGITS.get(str(series.dtype).lower().removesuffix("[pyarrow]"), 53)
        beyond = np.flatnonzero(pc.fill_null(pc.greater_equal(pc.abs(ids), most), False).to_numpy())
        if len(beyond):
            found = f"{quote(series.iloc[beyond[0]])} is an id stored as a fraction, expected less than {most:,.0f}"
            remedy = "beyond it ids cannot be distinguished, so save them as whole numbers or text"
            raise DataError(f"{found}: {remedy}", file, int(beyond[0]), column)
    return ids


def _check_mixed(series: pd.Series, column: str, file: str) -> None:
    """Raise where a column holds an id as text and as something else, as '1' and 1: one of them may be a mistake."""
    first: dict[str, tuple[bool, int]] = {}
    for row, value in enumerate(series.tolist()):
        if is_missing(value):
            continue
        is_text, before = first.setdefault(str(value), (isinstance(value, str), row))
        if is_text != isinstance(value, str):
            other = quote(series.iloc[before])
            raise DataError(
                f"{quote(value)} is an id, and so is {other} in row {before + 1}: give all ids one type",
                file,
                row,
                column,
            )


def find_alike(ids: pa.ChunkedArray, known: IdIndex) -> list[str | None]:
    """For each of some unknown ids, a known one that is written otherwise: with spaces, zeros before it, or `.0`.

    >>> find_alike(pa.chunked_array([["007", "8"]]), IdIndex(pa.chunked_array([["5", "7"]])))
    ['7', None]
    """
    position = _index_in(_normalize(as_text(ids)), _normalize(known.text))
    text = known.text
    return [None if number < 0 else str(text[number]) for number in position.tolist()]


def similar_id_notes(known: IdIndex, file: str) -> list[Note]:
    """A note if two nodes have ids that differ only in how they are written, as 007 and 7 do."""
    text = known.text_alone
    if text is None:
        return []
    odd = pc.or_(pc.starts_with(text, "0"), pc.starts_with(text, "+"))
    for mark in ("-0", " "):
        odd = pc.or_(odd, pc.starts_with(text, mark))
    for mark in (" ", ".0"):
        odd = pc.or_(odd, pc.ends_with(text, mark))
    if not pc.any(odd).as_py():
        return []
    odd_ids = text.filter(odd)
    position = _index_in(_normalize(odd_ids), text)
    pairs = [
        (str(one), str(text[number])) for one, number in zip(odd_ids, position.tolist(), strict=True) if number >= 0
    ]
    pairs = [(one, other) for one, other in pairs if one != other]
    if not pairs:
        return []
    such = f"such as {quote(pairs[0][0])} and {quote(pairs[0][1])}"
    what = f"{len(pairs):,} ids differ from others only in how they are written, {such}"
    return [Note("id", f"{file}: {what}: they are two nodes")]


def _normalize(text: pa.ChunkedArray) -> pa.ChunkedArray:
    text = pc.utf8_trim_whitespace(pc.utf8_normalize(text, form="NFC"))
    text = pc.replace_substring_regex(text, r"^([+-]?[0-9]+)\.0*$", r"\1")
    return pc.replace_substring_regex(pc.utf8_ltrim(text, "+"), r"^(-?)0+([0-9])", r"\1\2")


def pair_up(first: IntArray, second: IntArray, many: int) -> pa.ChunkedArray:
    """Two numbers as one id, missing where either is: a node is known by its graph and its id within."""
    absent = (first < 0) | (second < 0)
    return pa.chunked_array([pa.array(first * max(many, 1) + second, mask=absent)])


def _from_whole(whole: IntArray, ids: pa.ChunkedArray) -> pa.ChunkedArray:
    mask = pc.is_null(ids).to_numpy() if ids.null_count else None
    return pa.chunked_array([pa.array(whole, mask=mask)])


def _index_in(ids: pa.ChunkedArray, known: pa.Array | pa.ChunkedArray) -> IntArray:
    if isinstance(known, pa.ChunkedArray):
        known = known.combine_chunks()
    found = pc.index_in(ids, value_set=known, skip_nulls=True)
    return np.asarray(pc.fill_null(found, -1).to_numpy(), np.int64)
