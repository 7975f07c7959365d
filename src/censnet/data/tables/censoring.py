"""Censored numbers: `<-5` or `>= 10` says on which side of a limit a number lies, and no more."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_BELOW, _ABOVE = "<=|=<|<|≤|⩽", ">=|=>|>|≥|⩾"
_NUMBER = r"\s*([+-]?[.,]?[0-9].*)$"
_LIMIT = rf"^\s*(?:{_BELOW}|{_ABOVE}){_NUMBER}"

Censoring = NDArray[np.int8]


def split_limits(values: pa.ChunkedArray) -> tuple[pa.ChunkedArray, Censoring | None]:
    """The values without the sign in front of a limit, and the side of each: -1 below, 1 above, 0 where there is none.

    Where no value has such a sign, there are no sides (None) and the values are as they were. Whether what is behind a
    sign is a number is for a reader of numbers to say.

    >>> values, censoring = split_limits(pa.chunked_array([["3.5", "<-5", None, ">= 10", "<NA>"]]))
    >>> values.to_pylist(), censoring.tolist()
    (['3.5', '-5', None, '10', '<NA>'], [0, -1, 0, 1, 0])
    """
    if not pa.types.is_string(values.type):
        return values, None
    limits = pc.fill_null(pc.match_substring_regex(values, _LIMIT), False)
    if not pc.any(limits).as_py():
        return values, None
    above = pc.match_substring_regex(values, rf"^\s*(?:{_ABOVE})")
    censoring = np.asarray(limits.to_numpy(), np.int8)
    censoring[np.asarray(limits.to_numpy(), bool) & ~np.asarray(pc.fill_null(above, False).to_numpy(), bool)] = -1
    bare = pc.replace_substring_regex(values, _LIMIT, r"\1")
    return pc.if_else(limits, bare, values), censoring


def is_limit(value: object) -> bool:
    """Whether a value is written as a limit.

    >>> is_limit(">10"), is_limit("≤ 3"), is_limit("<5 minutes"), is_limit("10")
    (True, True, True, False)
    """
    return isinstance(value, str) and re.match(_LIMIT, value) is not None
