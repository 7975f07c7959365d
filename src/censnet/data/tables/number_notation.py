"""The meaning of commas and points in a column of numbers as text, and numbers that are limits, such as `<5`."""

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

EXPONENT = r"(?:[eE][+-]?[0-9]{1,3})?"
NUMBER = rf"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+){EXPONENT}"
_GROUPED = r"^[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]*)?$"  # 1,175.36
_TWICE_GROUPED = r"^[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]*|,[0-9]{3})$"  # 1,175.36 and 1,234,567, not 1,175
_DECIMAL_COMMA = (
    rf"^[+-]?(?:[1-9][0-9]{{0,2}}(?:\.[0-9]{{3}})+|[0-9]*),[0-9]+{EXPONENT}$"  # 1,5 and 1.175,36; 1,175 too
)
_DOTTED = r"^[+-]?[1-9][0-9]{0,2}(?:\.[0-9]{3})+$"  # 1.175, which may be either
_FEWEST = 0.01  # of the values with a comma, those with one before decimals: a single one of many may be a slip

_BELOW, ABOVE = "<=|=<|<|≤|⩽", ">=|=>|>|≥|⩾"
_NUMBER = r"\s*([+-]?[.,]?[0-9].*)$"
LIMIT = rf"^\s*(?:{_BELOW}|{ABOVE}){_NUMBER}"


def find_notation(text: pa.ChunkedArray) -> Notation:
    """The notation of a column of text, by all of its values; `point` where there is no evidence against it.

    >>> find_notation(pa.chunked_array([["3,14", "1.234,56", "7"]])), find_notation(pa.chunked_array([["1,175"]]))
    ('comma', 'point')
    """
    commas = pc.utf8_trim_whitespace(text.filter(pc.fill_null(pc.match_substring(text, ","), False)))
    if len(commas) == 0:
        return "point"
    grouped = matches(commas, _GROUPED)
    before_decimals = matches(commas, _DECIMAL_COMMA) & ~grouped
    if not before_decimals.any():
        return "point"
    if before_decimals.sum() < _FEWEST * len(commas) or matches(commas, _TWICE_GROUPED).any() or _has_points(text):
        return "mixed"
    return "comma"


def is_ambiguous(text: pa.ChunkedArray) -> bool:
    """Whether commas are there that may group digits or stand before decimals, as in 1,175, and nothing tells which."""
    commas = pc.utf8_trim_whitespace(text.filter(pc.fill_null(pc.match_substring(text, ","), False)))
    if not matches(commas, _GROUPED).any() or _has_points(text):
        return False
    return not (matches(commas, _TWICE_GROUPED).any() or find_notation(text) != "point")


def to_plain(text: pa.ChunkedArray, notation: Notation) -> tuple[BoolArray, pa.ChunkedArray]:
    """A mask of the values that are numbers by their commas and points, and those as plain numbers; text is trimmed."""
    if notation == "comma":
        chosen = matches(text, _DECIMAL_COMMA) | matches(text, _DOTTED)
        return chosen, pc.replace_substring(pc.replace_substring(text.filter(pa.array(chosen)), ".", ""), ",", ".")
    chosen = matches(text, _GROUPED) if notation == "point" else np.zeros(len(text), bool)
    return chosen, pc.replace_substring(text.filter(pa.array(chosen)), ",", "")


def _has_points(text: pa.ChunkedArray) -> bool:
    """Whether a point stands before decimals in some number."""
    points = pc.utf8_trim_whitespace(text.filter(pc.fill_null(pc.match_substring(text, "."), False)))
    return bool((matches(points, f"^{NUMBER}$") & ~matches(points, _DOTTED)).any())


def matches(text: pa.ChunkedArray, pattern: str) -> BoolArray:
    """Whether each value matches a pattern; a missing one does not."""
    return np.asarray(pc.fill_null(pc.match_substring_regex(text, pattern), False).to_numpy(), dtype=bool)


def is_limit(value: object) -> bool:
    """Whether a value is written as a limit.

    >>> is_limit(">10"), is_limit("≤ 3"), is_limit("<5 minutes"), is_limit("10")
    (True, True, True, False)
    """
    return isinstance(value, str) and re.match(LIMIT, value) is not None
