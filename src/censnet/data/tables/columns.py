"""The values of a column as numbers: text that holds numbers in some notation, dates or lists.

Every reader takes an Arrow column and gives numbers, NaN where a value is missing, and the rows whose value is neither
missing nor readable. None loops over rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from censnet.data.tables.number_notation import NUMBER, Notation, find_notation, to_plain
from censnet.ops.arrays import Array, BoolArray, IntArray

Kind = Literal["number", "boolean", "category", "date", "vector", "oriented", "text", "id", "constant", "drop"]
USED: tuple[Kind, ...] = ("number", "boolean", "category", "date", "vector", "oriented")
KINDS: tuple[Kind, ...] = (*USED, "text", "id", "constant", "drop")
DECIMAL_COMMA = "decimal-comma"  # a number with a comma before its decimals
CHOICES: tuple[str, ...] = (*KINDS, DECIMAL_COMMA)  # of the user

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "-nan", "-NaN", "null", "NULL", "None", "<NA>")
_ENTRY = rf"(?:{NUMBER}|[nN]a[nN]|NA|None|null)"
_LIST = rf"^[\[\(]\s*(?:{_ENTRY}(?:[,;\s]\s*{_ENTRY})*)?\s*,?\s*[\]\)]$"
_TRUE, _FALSE = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")


@dataclass(frozen=True)
class Parsed:
    """Numbers read from a column, NaN where missing or bad, and the rows that are bad, in order.

    Text was read in a `notation`: what its commas and points mean.
    """

    numbers: Array
    bad: IntArray
    notation: Notation = "point"

    @property
    def matrix(self) -> Array:
        """The numbers as a matrix, one column for each entry of a vector."""
        return self.numbers if self.numbers.ndim == 2 else self.numbers[:, None]

    def slice(self, start: int, length: int) -> Parsed:
        """Some rows, one behind the other."""
        first, last = np.searchsorted(self.bad, (start, start + length))
        return replace(self, numbers=self.numbers[start : start + length], bad=self.bad[first:last] - start)


def as_arrow(series: pd.Series) -> pa.ChunkedArray:
    """A column of any frame as Arrow's, its plain type; what Arrow cannot hold becomes text."""
    try:
        values = pa.array(series, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        text = [None if is_missing(value) else _writable(str(value)) for value in series]
        values = pa.array(text, pa.string())
    chunked = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
    return _plain(chunked)


def _writable(text: str) -> str:
    """Text that can be written as UTF-8; half of a surrogate pair, which no text has, is shown by its number."""
    return text.encode("utf-8", "backslashreplace").decode()


def as_text(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values as text, the same for 3, 3.0 and "3": a later file may hold the same categories or ids as another type."""
    kind = values.type
    if pa.types.is_string(kind):
        return values
    if pa.types.is_floating(kind):
        numbers = pc.cast(values, pa.float64())
        numbers = pc.if_else(pc.is_nan(numbers), pa.scalar(None, pa.float64()), numbers)
        whole = pc.and_(pc.equal(pc.floor(numbers), numbers), pc.less(pc.abs(numbers), 2.0**53))
        integers = pc.cast(pc.if_else(whole, numbers, 0.0), pa.int64())
        return pc.if_else(whole, pc.cast(integers, pa.string()), pc.cast(numbers, pa.string()))
    try:
        return pc.cast(values, pa.string())
    except pa.ArrowException:  # bytes, lists and other things without a text of their own
        text = [None if value is None else str(value) for value in values.to_pylist()]
        return pa.chunked_array([pa.array(text, pa.string())])


def read_numbers(values: pa.ChunkedArray, notation: Notation | None = None) -> Parsed:
    """Numbers from numbers, truth values or text; infinities are bad.

    In text, commas may group digits, as in 1,175.36, or stand before decimals, as in 1.175,36, by the `notation`; if
    None, the values say so.
    """
    if pa.types.is_string(values.type):
        return _numbers_in_text(values, notation)
    if pa.types.is_duration(values.type):
        values = pc.divide(pc.cast(pc.cast(values, pa.duration("us")), pa.int64()), 1e6)
    elif not (is_number(values.type) or pa.types.is_boolean(values.type) or pa.types.is_null(values.type)):
        return _all_bad(values)
    return _without_infinite(_to_numpy(values), _NONE)


def read_booleans(values: pa.ChunkedArray) -> Parsed:
    """0 and 1 from truth values, from 0 and 1, or from words such as yes and no."""
    if pa.types.is_boolean(values.type):
        return Parsed(_to_numpy(values), _NONE)
    words = pc.utf8_lower(pc.utf8_trim_whitespace(as_text(values)))
    true, false = (pc.is_in(words, value_set=pa.array(known)) for known in (_TRUE, _FALSE))
    numbers = np.where(_mask(true), 1.0, np.where(_mask(false), 0.0, np.nan))
    return Parsed(numbers, np.flatnonzero(np.isnan(numbers) & ~missing_rows(values)))


def read_dates(values: pa.ChunkedArray) -> Parsed:
    """Seconds since 1970, or since midnight for times of day, from dates or from ISO 8601 text."""
    kind = values.type
    if pa.types.is_time(kind):
        return Parsed(_to_numpy(pc.cast(pc.cast(values, pa.time64("us")), pa.int64())) / 1e6, _NONE)
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        if pa.types.is_date(kind):
            values = pc.cast(values, pa.timestamp("s"))
        milliseconds = pc.cast(values, pa.timestamp("ms", tz=values.type.tz), safe=False)
        return Parsed(_to_numpy(pc.cast(milliseconds, pa.int64())) / 1e3, _NONE)
    if not pa.types.is_string(kind):
        return Parsed(np.full(len(values), np.nan), _NONE) if pa.types.is_null(kind) else _all_bad(values)
    stamps = pd.to_datetime(values.to_pandas(), errors="coerce", format="ISO8601", utc=True)
    numbers = stamps.dt.as_unit("ms").astype("int64").to_numpy() / 1e3
    numbers[stamps.isna().to_numpy()] = np.nan
    return Parsed(numbers, np.flatnonzero(np.isnan(numbers) & ~missing_rows(values)))


def read_vectors(values: pa.ChunkedArray, width: int) -> Parsed:
    """A row of `width` numbers from each list, or from text such as `[1, 2, 3]`; another length is bad."""
    numbers = np.full((len(values), width), np.nan)
    absent = missing_rows(values)
    if pa.types.is_string(values.type):
        text = pc.utf8_trim_whitespace(values)
        lists = pc.match_substring_regex(text, _LIST)
        values = _split_lists(pc.if_else(lists, text, pa.scalar(None, pa.string())))
    if is_list(values.type):
        length = pc.list_value_length(values)
        right = _mask(pc.equal(length, width))
        flat = pc.list_flatten(values if right.all() else values.filter(pa.array(right)))
        rows = _to_numpy(flat).reshape(int(right.sum()), width)
        if right.all():
            numbers = rows
        else:
            numbers = numbers.astype(rows.dtype, copy=False)
            numbers[right] = rows
        infinite = np.zeros(len(numbers), bool)
        if not np.isfinite(numbers.sum(dtype=np.float64)):
            infinite = np.asarray(np.isinf(numbers).any(axis=1))
            numbers = np.where(infinite[:, None], numbers.dtype.type(np.nan), numbers)
        return Parsed(numbers, np.flatnonzero((~right | infinite) & ~absent))
    return Parsed(numbers, np.flatnonzero(~absent))


def list_width(values: pa.ChunkedArray) -> int:
    """The length that most lists of a column have; 0 if there is none."""
    if pa.types.is_string(values.type):
        text = pc.utf8_trim_whitespace(values)
        values = _split_lists(text.filter(pc.match_substring_regex(text, _LIST)))
    if not is_list(values.type):
        return 0
    length = pc.list_value_length(values).drop_null()
    return int(pc.mode(length)[0]["mode"].as_py()) if len(length) else 0


def share_of_lists(values: pa.ChunkedArray) -> float:
    """The share of a column of text that is written as lists of numbers."""
    listed = pc.match_substring_regex(pc.utf8_trim_whitespace(values), _LIST)
    return float(pc.mean(listed).as_py() or 0.0)


def is_list(kind: pa.DataType) -> bool:
    """Whether these are lists of numbers."""
    listed = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return listed and (is_number(kind.value_type) or pa.types.is_boolean(kind.value_type))


def is_number(kind: pa.DataType) -> bool:
    """Whether these are whole, floating or decimal numbers."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


_NONE: IntArray = np.zeros(0, np.int64)


def _all_bad(values: pa.ChunkedArray) -> Parsed:
    return Parsed(np.full(len(values), np.nan), np.flatnonzero(~missing_rows(values)))


def _without_infinite(numbers: Array, bad: IntArray) -> Parsed:
    with np.errstate(over="ignore", invalid="ignore"):
        total = numbers.sum()  # finite unless something is missing or infinite: one pass for nearly every column
    if not np.isfinite(total):
        infinite = np.flatnonzero(np.isinf(numbers))
        if len(infinite):
            numbers = numbers.copy()
            numbers[infinite] = np.nan
            bad = np.union1d(bad, infinite)
    return Parsed(numbers, bad)


def _plain(values: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = values.type
    if isinstance(kind, pa.BaseExtensionType):
        values = pa.chunked_array([chunk.storage for chunk in values.chunks], type=kind.storage_type)
        return _plain(values)
    if pa.types.is_dictionary(kind):
        if isinstance(kind.value_type, pa.BaseExtensionType):  # as intervals, which Arrow does not look up
            return _plain(pa.chunked_array([pa.array([str(value) for value in values.to_pylist()])]))
        return _plain(pc.cast(values, kind.value_type))
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        values = pc.cast(values, pa.string())
    if pa.types.is_string(values.type):
        empty = pc.equal(values, "")
        if pc.any(empty).as_py():
            values = pc.if_else(empty, pa.scalar(None, pa.string()), values)
    return values


def is_missing(value: object) -> bool:
    """Whether this is no value at all: None, NaN, NA or empty text."""
    if value is None or value is pd.NA or value is pd.NaT:
        return True
    return value == "" if isinstance(value, str) else isinstance(value, float) and value != value


def _mask(values: pa.ChunkedArray) -> BoolArray:
    return np.asarray(pc.fill_null(values, False).to_numpy(), dtype=bool)


def missing_rows(values: pa.ChunkedArray) -> BoolArray:
    """A mask of the rows without a value, or with a word such as NA."""
    missing = np.asarray(pc.is_null(values, nan_is_null=True).to_numpy(), dtype=bool)
    if pa.types.is_string(values.type):
        missing |= _mask(pc.is_in(pc.utf8_trim_whitespace(values), value_set=pa.array(MISSING)))
    return missing


def _to_numpy(values: pa.ChunkedArray | pa.Array) -> Array:
    """float64, or float32 where the column is; NaN for missing."""
    kind = values.type
    gaps = pa.types.is_integer(kind) and values.null_count
    if gaps or kind == pa.float16() or not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        values = pc.cast(values, pa.float64(), safe=False)
    chunked = isinstance(values, pa.ChunkedArray)
    numbers: Array = values.to_numpy() if chunked else values.to_numpy(zero_copy_only=False)
    return numbers if numbers.dtype in (np.float32, np.float64) else numbers.astype(np.float64)


def _numbers_in_text(values: pa.ChunkedArray, notation: Notation | None) -> Parsed:
    text = pc.utf8_trim_whitespace(values)
    numeric = pc.match_substring_regex(text, f"^{NUMBER}$")
    bad = np.flatnonzero(~_mask(numeric) & ~missing_rows(text))
    if notation is None:  # found from commas, which none of the others has
        notation = find_notation(text) if len(bad) else "point"
    if notation == "comma":  # 1.175 is read otherwise, too
        numeric = pc.match_substring_regex(text, r"^[+-]?[0-9]+(?:[eE][+-]?[0-9]{1,3})?$")
        bad = np.flatnonzero(~_mask(numeric) & ~missing_rows(text))
    numbers = _cast_numbers(pc.if_else(numeric, text, pa.scalar(None, pa.string())))
    if len(bad):  # commas are looked for in these alone
        chosen, plain = to_plain(text.take(pa.array(bad)), notation)
        if chosen.any():
            numbers = numbers.copy()
            numbers[bad[chosen]] = _cast_numbers(plain)
            bad = bad[~chosen]
    return replace(_without_infinite(numbers, bad), notation=notation)


def _cast_numbers(text: pa.ChunkedArray) -> Array:
    return _to_numpy(pc.cast(pc.utf8_ltrim(text, "+"), pa.float64()))


def _split_lists(text: pa.ChunkedArray) -> pa.ChunkedArray:
    inner = pc.utf8_trim(text, "[]() ,\t\r\n")
    spaced = pc.replace_substring_regex(pc.replace_substring_regex(inner, r"[,;\s]+", " "), r"(^| )\+", r"\1")
    items = pc.split_pattern(pc.replace_substring_regex(spaced, r"[A-Za-z]{2,}", "nan"), " ")
    empty = pc.equal(spaced, "")
    if pc.any(empty).as_py():
        items = pc.if_else(empty, pa.scalar(None, items.type), items)
    return pc.cast(items, pa.list_(pa.float64()))
