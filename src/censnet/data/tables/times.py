"""The times of edges: a column of numbers, dates or timestamps as seconds, or as the numbers that they are."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict

from censnet.data.tables.columns import (
    Parsed,
    as_arrow,
    as_text,
    is_missing,
    is_number,
    missing_rows,
    read_dates,
    read_numbers,
)
from censnet.data.tables.notes import RowError
from censnet.errors import DataError, quote
from censnet.ops.arrays import Array, BoolArray, IntArray

Form = Literal["number", "seconds", "milliseconds", "microseconds", "nanoseconds", "date", "yyyymmdd"]

PER_SECOND = {"seconds": 1.0, "milliseconds": 1e3, "microseconds": 1e6, "nanoseconds": 1e9}
EPOCH = {form: (1e8 * factor, 1e11 * factor) for form, factor in PER_SECOND.items()}  # from 1973 on
LATEST = 4102444800.0  # the seconds until 2100
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
MAX_BAD = 0.1  # share of the values that may be no times, before the column is none of times
_HOURS = r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?"
_DAY_OR_MONTH = rf"^\s*([0-9]{{1,2}})([/.-])([0-9]{{1,2}})[/.-]([0-9]{{4}})(?:[ T,]+({_HOURS}))?\s*$"
_ZONE = r"[0-9](?:[zZ]|[+-][0-9]{2}(?::?[0-9]{2})?)\s*$"
_CLOCK = r"[0-9]:[0-9]{2}"
_DELAY = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([smhdw]?)\s*")


class TimeColumn(BaseModel):
    """The column of edges that says when each one happened.

    Args:
        name: of the column.
        form: what its values are: numbers of any unit, seconds since 1970 or parts of these, dates and timestamps, or
            dates written as 20240131.
        day_first: whether 03/04/2024 is the third of April; None where no value told, and such a date is refused.

    Example:
        >>> column, notes = TimeColumn.find("day", pd.Series(["2024-01-31", "2024-02-01"]))
        >>> column.form, column.read(pd.Series(["1970-01-02", "1970-01-01T01:00+01:00", "soon"])).numbers.tolist()
        ('date', [86400.0, 0.0, nan])
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    form: Form = "number"
    day_first: bool | None = None

    @classmethod
    def find(cls, name: str, column: pd.Series, file: str | None = None) -> tuple[TimeColumn, list[str]]:
        """The form of a column of times by all of its values, and remarks on how they are read."""

        def refuse(found: str, row: int | None = None) -> DataError:
            return DataError(found, file, row, name)

        values = as_arrow(column)
        there = ~missing_rows(values)
        if not there.any():
            raise refuse("holds no value in any row, expected the time of each edge")
        if pa.types.is_time(values.type):
            raise refuse("holds times of day, expected dates, timestamps or numbers")
        form, day_first = _find_form(values, there), cast(bool | None, None)
        if form is None and pa.types.is_string(values.type):
            form, day_first = "date", _is_day_first(values, refuse)
        if form is None:
            raise refuse(f"holds {values.type}, expected numbers, dates or timestamps")
        found = cls(name=name, form=form, day_first=day_first)
        times = found.read(column)
        if form == "number":
            _check_units(times.numbers, refuse)
        bad = len(times.bad) / int(there.sum())
        if bad > MAX_BAD:
            first = int(times.bad[0])
            raise refuse(f"{quote(column.iloc[first])} is no time, as {bad:.0%} of the values, {EXPECTED}", first)
        known = times.numbers[~np.isnan(times.numbers)]
        if known.min() == known.max():
            shown = f"all times are {found.show(float(known[0]))}"
            raise refuse(f"{shown}, expected different ones: without an order there is no past and no future")
        return found, found._remarks(values)

    @property
    def has_unit(self) -> bool:
        """Whether times are in seconds, rather than in an unknown unit."""
        return self.form != "number"

    def read(self, column: pd.Series) -> Parsed:
        """The times as numbers, NaN where there is none, and the rows whose value is no time."""
        values = as_arrow(column)
        if self.form == "date":
            return _read_dates(values, self.day_first)
        parsed = read_numbers(values)
        if self.form in PER_SECOND:
            least, most = EPOCH[self.form]
            numbers = parsed.numbers.astype(np.float64)
            other = (numbers < least) | (numbers >= most)
            bad = np.union1d(parsed.bad, np.flatnonzero(other))
            return Parsed(np.where(other, np.nan, numbers) / PER_SECOND[self.form], bad)
        if self.form == "yyyymmdd":
            return _read_dates(as_text(values), None)
        return Parsed(parsed.numbers.astype(np.float64), parsed.bad)

    def read_rows(self, column: pd.Series) -> tuple[Array, dict[int, RowError]]:
        """The time of each row, and what is wrong with those that have none."""
        times = self.read(column)
        errors = {int(row): RowError("the time is missing", "the time is missing") for row in _absent(times)}
        for row in times.bad.tolist():
            errors[row] = RowError("is no time", f"{quote(column.iloc[row])} is no time, {self._expected(column, row)}")
        return times.numbers, errors

    def read_one(self, value: object, name: str) -> float:
        """A time that the user writes, as the column has them; of dates also in seconds since 1970."""
        if is_missing(value):
            raise DataError(f"{name} has no value, expected a time such as those of column {self.name}")
        if self.form == "date" and isinstance(value, int | float):
            return float(value)
        number = self.read(pd.Series([value])).numbers[0]
        if np.isnan(number) and self.has_unit:
            number = _read_dates(as_arrow(pd.Series([str(value)])), self.day_first).numbers[0]
        if np.isnan(number):
            raise DataError(f"{name} has {quote(value)}, expected a time such as those of column {self.name}")
        return float(number)

    def read_delay(self, text: str | float) -> float:
        """A duration in the unit of the times: `7d`, `12h`, or a plain number.

        >>> TimeColumn(name="day", form="date").read_delay("7d"), TimeColumn(name="step").read_delay(3)
        (604800.0, 3.0)
        """
        found = _DELAY.fullmatch(str(text))
        if found is None:
            raise DataError(
                f"the label delay is {quote(text)}, expected a number, or one with a unit such as 7d (s, m, h, d or w)"
            )
        number, unit = float(found[1]), found[2]
        if unit and not self.has_unit:
            raise DataError(
                f"the label delay is {quote(text)}, expected a plain number: column {self.name} holds numbers, whose "
                "unit is unknown"
            )
        return number * UNITS.get(unit, 1.0)

    def show(self, time: float) -> str:
        """A time for the user.

        >>> TimeColumn(name="time", form="seconds").show(1.5e9), TimeColumn(name="step").show(12.5)
        ('2017-07-14 02:40', '12.5')
        """
        if not self.has_unit:
            return f"{time:,.10g}"
        try:
            moment = datetime.fromtimestamp(0, UTC) + timedelta(seconds=time)
        except OverflowError:
            return f"{time:,.10g} s"
        return f"{moment:%Y-%m-%d}" if time % UNITS["d"] == 0 else f"{moment:%Y-%m-%d %H:%M}"

    def show_duration(self, duration: float) -> str:
        """A duration for the user.

        >>> TimeColumn(name="time", form="date").show_duration(9000.0), TimeColumn(name="step").show_duration(3.0)
        ('2.5 h', '3')
        """
        if not self.has_unit:
            return f"{duration:,.4g}"
        unit = next((unit for unit in reversed(UNITS) if duration >= UNITS[unit]), "s")
        return f"{duration / UNITS[unit]:,.3g} {unit}"

    def describe(self, times: Array) -> str:
        """The form and the range of some times, for the user."""
        what = {"number": "numbers", "date": "dates, in UTC", "yyyymmdd": "dates as 20240131"}.get(self.form)
        what = what or f"{self.form} since 1970, in UTC"
        return f"{what}, from {self.show(float(times.min()))} to {self.show(float(times.max()))}"

    def _expected(self, column: pd.Series, row: int) -> str:
        """The expected form of a value that is no time."""
        if self.form in PER_SECOND and _is_finite_number(column.iloc[row]):
            least, most = EPOCH[self.form]
            return f"expected {self.form} since 1970 as in training, from {least:.0e} to {most:.0e}"
        return EXPECTED

    def _remarks(self, values: pa.ChunkedArray) -> list[str]:
        """Remarks on how dates are read."""
        if self.form != "date" or not pa.types.is_string(values.type):
            return []
        clock = _matches(values, _CLOCK)
        zoned = _matches(values, _ZONE) & clock
        plain = int((clock & ~zoned).sum())
        remarks = []
        if zoned.any() and plain:
            remarks.append(f"{plain:,} timestamps name no zone, and are read as UTC")
        if _matches(values, _DAY_OR_MONTH).any():
            remarks.append(f"the {'day' if self.day_first else 'month'} is first, as in 03/04/2024")
        return remarks


EXPECTED = "expected a number, a date such as 2024-01-31, or a timestamp such as 2024-01-31T12:30+01:00"


class _Parts(NamedTuple):
    """Dates such as 03/04/2024 12:30, taken apart."""

    first: Array
    second: Array
    frame: pd.DataFrame


def _find_form(values: pa.ChunkedArray, there: BoolArray) -> Form | None:
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


def _check_units(numbers: Array, refuse: Callable[[str, int | None], DataError]) -> None:
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


def _is_finite_number(value: object) -> bool:
    try:
        return bool(np.isfinite(float(value)))  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False


def _is_day_first(values: pa.ChunkedArray, refuse: Callable[[str], DataError]) -> bool | None:
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
    frame = values.to_pandas().astype("string").str.extract(_DAY_OR_MONTH)
    frame = frame[frame[0].notna()]
    return _Parts(frame[0].to_numpy(np.float64), frame[2].to_numpy(np.float64), frame)


def _read_dates(values: pa.ChunkedArray, day_first: bool | None) -> Parsed:
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


def _absent(times: Parsed) -> IntArray:
    """The rows without a value."""
    return np.setdiff1d(np.flatnonzero(np.isnan(times.numbers)), times.bad)


def _matches(values: pa.ChunkedArray, pattern: str) -> BoolArray:
    return np.asarray(pc.fill_null(pc.match_substring_regex(values, pattern), False).to_numpy(), bool)
