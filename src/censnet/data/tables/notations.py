"""Notations of numbers in text: 1,175.36 or 1.175,36, and text that looks like a number in yet another notation."""

from __future__ import annotations

import re
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from censnet.ops.arrays import BoolArray

Notation = Literal["point", "comma", "mixed"]
"""Before decimals stands a point, and commas may group digits; or the other way round. In a `mixed` column, values with
a comma are no numbers."""

_EXPONENT = r"(?:[eE][+-]?[0-9]{1,3})?"
NUMBER = rf"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+){_EXPONENT}"
_GROUPED = r"^[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]*)?$"  # 1,175.36
_TWICE_GROUPED = r"^[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]*|,[0-9]{3})$"  # 1,175.36 and 1,234,567, not 1,175
_DECIMAL_COMMA = (
    rf"^[+-]?(?:[1-9][0-9]{{0,2}}(?:\.[0-9]{{3}})+|[0-9]*),[0-9]+{_EXPONENT}$"  # 1,5 and 1.175,36; 1,175 too
)
_DOTTED = r"^[+-]?[1-9][0-9]{0,2}(?:\.[0-9]{3})+$"  # 1.175, which may be either
_FEWEST = 0.01  # of the values with a comma, those with one before decimals: a single one of many may be a slip
_SAMPLE = 10_000

_MONEY = r"(?:[$€£¥₹₽]|EUR|USD|GBP|CHF|JPY|CNY|INR|SEK|NOK|DKK|PLN|CZK|AUD|CAD|kr\.?|zł)"
_GAP = r"[\s\x{00a0}\x{202f}\x{2009}]"
_DIGITS = rf"(?:[0-9]{{1,3}}(?:(?:[.,'_]|{_GAP})[0-9]{{3}})+|[0-9]+)(?:[.,][0-9]+)?|[.,][0-9]+"
_OTHER = rf"^\(?[+-]?{_GAP}*(?:{_MONEY}{_GAP}*)?[+-]?(?:{_DIGITS}){_EXPONENT}{_GAP}*(?:{_MONEY}|%|‰)?{_GAP}*[-]?\)?$"
_SIGNS = (
    (r"[%‰]", "a percent sign"),
    (_MONEY, "a currency sign"),
    (r"[\s\xa0\u202f\u2009]", "digits grouped by spaces"),
    (r"['_]", "digits grouped by marks"),
    (r"^\(|\)$", "parentheses"),
    (r"-$", "a minus behind it"),
    (r",", "a comma"),
    (r"\..*\.", "several points"),
)
_MIXED_LIST = r"^[\[\(].*[0-9],[0-9].*[\]\)]$"


def find_notation(text: pa.ChunkedArray) -> Notation:
    """The notation of a column of text, by all of its values; `point` where nothing speaks against it.

    >>> find_notation(pa.chunked_array([["3,14", "1.234,56", "7"]])), find_notation(pa.chunked_array([["1,175"]]))
    ('comma', 'point')
    """
    commas = pc.utf8_trim_whitespace(text.filter(pc.fill_null(pc.match_substring(text, ","), False)))
    if len(commas) == 0:
        return "point"
    grouped = _matches(commas, _GROUPED)
    before_decimals = _matches(commas, _DECIMAL_COMMA) & ~grouped
    if not before_decimals.any():
        return "point"
    if before_decimals.sum() < _FEWEST * len(commas) or _matches(commas, _TWICE_GROUPED).any() or _has_points(text):
        return "mixed"
    return "comma"


def is_ambiguous(text: pa.ChunkedArray) -> bool:
    """Whether commas are there that may group digits or stand before decimals, as in 1,175, and nothing tells which."""
    commas = pc.utf8_trim_whitespace(text.filter(pc.fill_null(pc.match_substring(text, ","), False)))
    if not _matches(commas, _GROUPED).any() or _has_points(text):
        return False
    return not (_matches(commas, _TWICE_GROUPED).any() or find_notation(text) != "point")


def to_plain(text: pa.ChunkedArray, notation: Notation) -> tuple[BoolArray, pa.ChunkedArray]:
    """A mask of the values that are numbers by their commas and points, and those as plain numbers; text is trimmed."""
    if notation == "comma":
        chosen = _matches(text, _DECIMAL_COMMA) | _matches(text, _DOTTED)
        return chosen, pc.replace_substring(pc.replace_substring(text.filter(pa.array(chosen)), ".", ""), ",", ".")
    chosen = _matches(text, _GROUPED) if notation == "point" else np.zeros(len(text), bool)
    return chosen, pc.replace_substring(text.filter(pa.array(chosen)), ",", "")


def find_other_notation(text: pa.ChunkedArray) -> tuple[str, str, float] | None:
    """Values that look like numbers but cannot be read as such: in what way, one of them, and their share.

    >>> find_other_notation(pa.chunked_array([["12 %", "3.5 %", "8 %"]]))
    ('a percent sign', '12 %', 1.0)
    """
    text = text.drop_null()
    if len(text) > _SAMPLE:
        text = text.take(pa.array(np.linspace(0, len(text) - 1, _SAMPLE).astype(np.int64)))
    text = pc.utf8_trim_whitespace(text)
    like = _matches(text, _OTHER)
    odd = like & ~_matches(text, f"^{NUMBER}$")
    if not odd.any():
        return None
    example = text.filter(pa.array(odd))[0].as_py()
    sign = next((what for pattern, what in _SIGNS if re.search(pattern, example)), "another notation")
    return sign, example, float(like.mean())


def find_doubtful_list(text: pa.ChunkedArray, width: int) -> str | None:
    """A list that may be something else, or None.

    Where numbers are separated by two different marks, a comma may stand before decimals; and one number in parentheses
    may be a negative one.
    """
    text = pc.utf8_trim_whitespace(text.drop_null().slice(0, _SAMPLE))
    odd = _matches(text, _MIXED_LIST) & _matches(text, r"[0-9]\s*;|[0-9]\s+[+-]?[0-9]")
    odd |= _matches(text, r"^\(") & (width == 1)
    return text.filter(pa.array(odd))[0].as_py() if odd.any() else None


def _has_points(text: pa.ChunkedArray) -> bool:
    """Whether a point stands before decimals in some number."""
    points = pc.utf8_trim_whitespace(text.filter(pc.fill_null(pc.match_substring(text, "."), False)))
    return bool((_matches(points, f"^{NUMBER}$") & ~_matches(points, _DOTTED)).any())


def _matches(text: pa.ChunkedArray, pattern: str) -> BoolArray:
    return np.asarray(pc.fill_null(pc.match_substring_regex(text, pattern), False).to_numpy(), dtype=bool)
