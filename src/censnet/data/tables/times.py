"""The times of edges: a column of numbers, dates or timestamps as seconds, or as the numbers that they are."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import cast

import numpy as np
import pandas as pd
import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from censnet.data.tables.columns import Parsed, as_arrow, as_text, is_missing, missing_rows, read_numbers
from censnet.data.tables.notes import RowError
from censnet.data.tables.time_formats import (
    CLOCK,
    DAY_OR_MONTH,
    EPOCH,
    MAX_BAD,
    PER_SECOND,
    ZONE,
    Form,
    check_units,
    find_form,
    is_day_first,
    matches_pattern,
    read_written_dates,
)
from censnet.errors import DataError, quote
from censnet.ops.arrays import Array, IntArray

UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_DELAY = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([smhdw]?)\s*")


class TimeColumn(BaseModel):
    """The column of edges that says when each one happened.

    Args:
        name: of the column.
        form: what its values are: numbers of any unit, seconds since 1970 or parts of these, dates and timestamps, or
            dates written as 20240131.
        day_first: whether 03/04/2024 is the third of April; None where no value decides it, and such a date is refused.

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
        form, day_first = find_form(values, there), cast(bool | None, None)
        if form is None and pa.types.is_string(values.type):
            form, day_first = "date", is_day_first(values, refuse)
        if form is None:
            raise refuse(f"holds {values.type}, expected numbers, dates or timestamps")
        found = cls(name=name, form=form, day_first=day_first)
        times = found.read(column)
        if form == "number":
            check_units(times.numbers, refuse)
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
            return read_written_dates(values, self.day_first)
        parsed = read_numbers(values)
        if self.form in PER_SECOND:
            least, most = EPOCH[self.form]
            numbers = parsed.numbers.astype(np.float64)
            other = (numbers < least) | (numbers >= most)
            bad = np.union1d(parsed.bad, np.flatnonzero(other))
            return Parsed(np.where(other, np.nan, numbers) / PER_SECOND[self.form], bad)
        if self.form == "yyyymmdd":
            return read_written_dates(as_text(values), None)
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
            number = read_written_dates(as_arrow(pd.Series([str(value)])), self.day_first).numbers[0]
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
        clock = matches_pattern(values, CLOCK)
        zoned = matches_pattern(values, ZONE) & clock
        plain = int((clock & ~zoned).sum())
        remarks = []
        if zoned.any() and plain:
            remarks.append(f"{plain:,} timestamps name no zone, and are read as UTC")
        if matches_pattern(values, DAY_OR_MONTH).any():
            remarks.append(f"the {'day' if self.day_first else 'month'} is first, as in 03/04/2024")
        return remarks


EXPECTED = "expected a number, a date such as 2024-01-31, or a timestamp such as 2024-01-31T12:30+01:00"


def _is_finite_number(value: object) -> bool:
    try:
        return bool(np.isfinite(float(value)))  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False


def _absent(times: Parsed) -> IntArray:
    """The rows without a value."""
    return np.setdiff1d(np.flatnonzero(np.isnan(times.numbers)), times.bad)
