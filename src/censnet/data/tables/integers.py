"""Text that is integers in canonical form, as `7` and `-12` are and `007`, `+7`, ` 7`, `7.0`, `0x7` and `-0` are not.

Only such a column is read as integers: it is written back as it was read.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from censnet.ops.arrays import Array

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "-nan", "-NaN", "null", "NULL", "None", "<NA>")
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
    if _casts(trimmed, pa.int64()) is not None:
        return text
    numbers = _casts(trimmed, pa.float64())
    return text if numbers is None else numbers


def _casts(text: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
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
