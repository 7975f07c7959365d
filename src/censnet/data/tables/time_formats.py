"""Formats of times: how a column of times is written, and dates as seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from censnet.data.tables.columns import Parsed, is_number, read_dates, read_numbers
from censnet.errors import DataError
from censnet.ops.arrays import Array, BoolArray

Form = Literal["number", "seconds", "milliseconds", "microseconds", "nanoseconds", "date", "yyyymmdd"]
PER_SECOND = {"seconds": 1.0, "milliseconds": 1e3, "microseconds": 1e6, "nanoseconds": 1e9}
EPOCH = {form: (1e8 * factor, 1e11 * factor) for form, factor in PER_SECOND.items()}  # from 1973 on
LATEST = 4102444800.0  # the seconds until 2100
MAX_BAD = 0.1  # share of the values that may be no times, before the column is none of times
_HOURS = r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?"
DAY_OR_MONTH = rf"^\s*([0-9]{{1,2}})([/.-])([0-9]{{1,2}})[/.-]([0-9]{{4}})(?:[ T,]+({_HOURS}))?\s*$"
ZONE = r"[0-9](?:[zZ]|[+-][0-9]{2}(?::?[0-9]{2})?)\s*$"
CLOCK = r"[0-9]:[0-9]{2}"


class _Parts(NamedTuple):
    """Dates such as 03/04/2024 12:30, taken apart."""

    first: Array
    second: Array
    frame: pd.DataFrame


def find_form(values: pa.ChunkedArray, there: BoolArray) -> Form | None:
    """The form of numbers, dates and ISO 8601 text; None for anything else."""
    if pa.types.is_date(values.type) or pa.types.is_timestamp(values.type):
        return "date"
    is_text = pa.types.is_string(values.type)
    if not (is_text or is_number(values.type) or pa.types.is_duration(values.type)):
        return None
    parsed = read_numbers(values)
    if len(parsed.bad) > MAX_BAD * there.sum():
        dates = read_dates(values) if is_text else None
        return None if dates is None or len(dates.bad) > MAX_BAD * there.sum() else "date"
    numbers = parsed.numbers[~np.isnan(parsed.numbers)]
    if len(numbers) == 0:
        return None
    low, high = float(numbers.min()), float(numbers.max())
    if low >= 19000101 and high <= 21001231 and not (numbers % 1).any():
        stamps = pd.to_datetime(pd.Series(numbers.astype(np.int64).astype(str)), format="%Y%m%d", errors="coerce")
        if stamps.notna().all():
            return "yyyymmdd"
    for form, (least, most) in EPOCH.items():
        if low >= least and high < most:
            return form  # type: ignore[return-value]
    return "number"


def check_units(numbers: Array, refuse: Callable[[str, int | None], DataError]) -> None:
    """Raise where every number is a moment from 1973 to 2100, but some in another unit than others."""
    known = np.flatnonzero(~np.isnan(numbers))
    units = np.full(len(known), -1)
    for number, (form, (least, _)) in enumerate(EPOCH.items()):
        units[(numbers[known] >= least) & (numbers[known] < LATEST * PER_SECOND[form])] = number
    if len(known) == 0 or (units < 0).any():
        return
    first = known[np.flatnonzero(units != units[0])[:1]]
    if len(first):
        names, row = list(EPOCH), int(first[0])
        raise refuse(
            f"{numbers[row]:.0f} would be {names[int(units[known == row][0])]} since 1970, and {numbers[known[0]]:.0f} "
            f"in row {int(known[0]) + 1} {names[int(units[0])]}, expected one unit in all rows",
            row,
        )


def is_day_first(values: pa.ChunkedArray, refuse: Callable[[str], DataError]) -> bool | None:
    """Whether the day stands before the month in dates such as 03/04/2024; None where there are none."""
    parts = _take_apart(values)
    if len(parts.frame) == 0:
        return None
    if (parts.frame[1] == ".").all():
        return True
    day_first, month_first = bool((parts.first > 12).any()), bool((parts.second > 12).any())
    if not day_first and not month_first:
        found = parts.frame[0].iloc[0] + parts.frame[1].iloc[0] + parts.frame[2].iloc[0]
        raise refuse(
            f"{found}/{parts.frame[3].iloc[0]} may have the day or the month first, and no row decides: write dates as "
            "2024-01-31"
        )
    return day_first


def _take_apart(values: pa.ChunkedArray) -> _Parts:
    frame = values.to_pandas().astype("string").str.extract(DAY_OR_MONTH)
    frame = frame[frame[0].notna()]
    return _Parts(frame[0].to_numpy(np.float64), frame[2].to_numpy(np.float64), frame)


def read_written_dates(values: pa.ChunkedArray, day_first: bool | None) -> Parsed:
    """Dates of ISO 8601, and those with the day or the month first; with None, of these 31.01.2024 alone."""
    parsed = read_dates(values)
    if len(parsed.bad) == 0 or not pa.types.is_string(values.type):
        return parsed
    parts = _take_apart(values)
    if day_first is None:
        frame = parts.frame[parts.frame[1] == "."]
        parts, day_first = _Parts(frame[0].to_numpy(np.float64), frame[2].to_numpy(np.float64), frame), True
    day, month = (parts.first, parts.second) if day_first else (parts.second, parts.first)
    whole = {"year": parts.frame[3].to_numpy(np.float64), "month": month, "day": day}
    dates = pd.to_datetime(pd.DataFrame(whole, index=parts.frame.index), errors="coerce")
    clock = pd.to_timedelta(parts.frame[4].fillna("00:00").map(_full_clock), errors="coerce")
    stamps = dates + clock
    numbers = parsed.numbers.astype(np.float64, copy=True)
    read = stamps.notna().to_numpy()
    rows = parts.frame.index.to_numpy()[read]
    numbers[rows] = stamps[read].to_numpy().astype("datetime64[ms]").astype(np.int64) / 1e3
    return Parsed(numbers, np.setdiff1d(parsed.bad, rows))


def _full_clock(text: str) -> str:
    return text if text.count(":") == 2 else f"{text}:00"


def matches_pattern(values: pa.ChunkedArray, pattern: str) -> BoolArray:
    return np.asarray(pc.fill_null(pc.match_substring_regex(values, pattern), False).to_numpy(), bool)
