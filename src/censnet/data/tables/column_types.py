"""The kind of a column, and the reason, which is shown to the user."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from censnet.data.tables.columns import (
    Kind,
    is_list,
    is_number,
    list_width,
    read_booleans,
    read_dates,
    read_numbers,
    share_of_lists,
)
from censnet.data.tables.keys import says_split
from censnet.data.tables.number_notation import find_notation
from censnet.text import plural

_SAMPLE = 10_000
_FEWEST = 50  # rows, before a column 1, 2, 3... is taken for a count of them
_ID_NAME = re.compile(r"(?i:(^|[_\s-])(id|ids|uuid|guid)$|^(key|index|idx|unnamed: \d+)$)|[a-z](Id|ID)$")
_CONSTANT: tuple[Kind, str] = ("constant", "always the same")


def find_kind(name: str, values: pa.ChunkedArray) -> tuple[Kind, str]:
    """The kind of a column by its values and, for ids, its name.

    >>> find_kind("city", pa.chunked_array([["Oslo", "Rome", "Oslo", "Rome", "Oslo"]]))
    ('category', '2 categories')
    """
    if says_split(name):
        return "id", "states the split, and is not a feature"
    values = values.drop_null()
    if len(values) == 0:
        return "constant", "holds no value"
    kind = values.type
    if pa.types.is_boolean(kind):
        return _CONSTANT if pc.count_distinct(values).as_py() == 1 else ("boolean", "true or false")
    if is_number(kind) or pa.types.is_duration(kind):
        return _number(name, values)
    if pa.types.is_temporal(kind):
        return _CONSTANT if pc.count_distinct(values).as_py() == 1 else ("date", "dates or times")
    if is_list(kind):
        width = list_width(values)
        return (
            ("vector", f"lists of {width} {plural(width, 'number')}") if width else ("constant", "its lists are empty")
        )
    if pa.types.is_string(kind):
        return _text(name, values)
    return "text", f"holds {kind}, of which no feature is made"


def _number(name: str, values: pa.ChunkedArray) -> tuple[Kind, str]:
    if not pa.types.is_integer(values.type):
        return "number", "numbers"
    ends = pc.min_max(values)
    least, most = int(ends["min"].as_py()), int(ends["max"].as_py())
    if least == most:
        return _CONSTANT
    if _ID_NAME.search(name):
        return "id", "looks like an id by its name"
    if len(values) >= _FEWEST and least in (0, 1) and most - least == len(values) - 1:
        sample = values.slice(0, _SAMPLE)  # seldom all different, and then nothing need be sorted
        if pc.count_distinct(sample).as_py() == len(sample) and (np.diff(np.sort(values.to_numpy())) == 1).all():
            return "id", "counts the rows"
    return "number", "whole numbers"


def _text(name: str, values: pa.ChunkedArray) -> tuple[Kind, str]:
    count = len(values)
    evenly = np.linspace(0, count - 1, _SAMPLE).astype(np.int64) if count > _SAMPLE else None
    sample = values if evenly is None else values.take(pa.array(evenly))
    distinct = pc.count_distinct(sample).as_py()
    if distinct == 1 and pc.count_distinct(values).as_py() == 1:
        return _CONSTANT
    bad = read_numbers(sample, "mixed").bad
    if len(read_booleans(sample).bad) == 0 and distinct > 1 and len(bad):
        return "boolean", "yes or no in words"
    if _ID_NAME.search(name):
        return "id", "looks like an id by its name"
    numbers = "numbers"
    if len(bad):
        notation = find_notation(values)
        numbers += " with a comma before decimals" if notation == "comma" else ""
        bad = read_numbers(sample, notation).bad
    if len(bad) <= 0.1 * len(sample):
        return "number", numbers if len(bad) == 0 else f"{numbers}, with a few words among them"
    if share_of_lists(sample) >= 0.5:
        return "vector", f"lists of {list_width(sample)} numbers in text"
    if len(read_dates(sample).bad) <= 0.1 * len(sample):
        return "date", "dates or times in text"
    odd = pc.count_distinct(sample.take(pa.array(bad))).as_py()
    if len(bad) < 0.5 * len(sample) and odd == len(bad):
        return "number", f"{numbers}, with a few words among them"
    if pc.mean(pc.utf8_length(sample)).as_py() > 60:
        return "text", "free text"
    if distinct == len(sample) and distinct > 2:
        return "id", "every value is different"
    if distinct > 0.5 * len(sample) and distinct > 10:
        return "text", f"{distinct:,} different values in {len(sample):,} rows"
    distinct = distinct if evenly is None else pc.count_distinct(values).as_py()
    return "category", f"{distinct:,} categories"
