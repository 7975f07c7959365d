"""One row is read as a table of one row is."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from censnet.data.tables.columns import as_arrow
from censnet.data.tables.feature_encoding import Column
from censnet.data.tables.row_encoding import RowEncoder, TimeReader, read_id, read_iso
from censnet.data.tables.schema import TableSchema
from censnet.data.tables.times import TimeColumn
from censnet.data.tables.typed_column import type_column
from censnet.data.tables.typed_table import TypedTable
from censnet.errors import DataError

TABLE = pd.DataFrame(
    {
        "amount": [5.0, None, 900.25, 0.0, -3.5, 12.0],
        "rare": [0, 0, 0, 0, 3, 0],
        "kind": ["a", "b", "a", None, "c", "b"],
        "code": [1, 2, 2, 1, 3, 1],
        "open": [True, False, None, True, True, False],
        "day": ["2024-01-31", "2024-02-01T10:00+02:00", None, "2024-03-01 12:30:15.25", "2023-01-01", "2024-01-31"],
        "point": [[1.0, 2.0], [3.0, None], None, [0.5, 1.0], [2.0, 2.0], [9.0, 1.0]],
        "comma": ["1,5", "2,25", "1.175,36", "3", None, "7,5"],
    }
)
SCHEMA = TypedTable.find(TABLE, overrides={"code": "category", "day": "date", "comma": "decimal-comma"}).fit()
VALUES: dict[str, list[Any]] = {
    "amount": [5, 5.0, "5", " 7.5 ", "1,175.36", None, "", "NA", "a lot", True, math.nan, math.inf, 10**30, [1], 1e300],
    "rare": [0, 1, None, "2"],
    "kind": ["a", "b", "zebra", None, "", 3, 3.0, False, "a "],
    "code": [1, 1.0, "1", 2.5, "two", None, 10**20],
    "open": [True, False, "yes", "No", 1, 0, 1.0, None, "perhaps"],
    "day": ["2024-02-29", "2024-02-30", "2024-02-28T23:59:59Z", "2024-02-28 23:59:59.1", None, 5, "1950-01-01 00:00"],
    "point": [[1, 2], [1.0], "[1, 2]", None, "x", [None, 2.0]],
    "comma": ["1,5", "2", 2, "1.5", None, "1.175,36", "x"],
}  # fmt: skip


def as_table(row: dict[str, Any]) -> np.ndarray | str:
    """The features of a table of one row, or what is wrong."""
    frame = pd.DataFrame({name: pd.Series([value], dtype=object) for name, value in row.items()})
    typed = TypedTable.read(SCHEMA, frame, "edges")
    if typed.errors:
        return str(typed.errors[0]).removeprefix("edges, row 1, ")
    found: np.ndarray = typed.encode(SCHEMA).numpy()[0]
    return found


@given(st.fixed_dictionaries({name: st.sampled_from(values) for name, values in VALUES.items()}))
def test_a_row_has_the_features_of_a_table_of_one_row(row: dict[str, Any]) -> None:
    expected = as_table(row)
    if isinstance(expected, str):
        with pytest.raises(DataError) as caught:
            RowEncoder(SCHEMA, "edges")(row)
        assert str(caught.value) == expected.split("; ")[0]
    else:
        np.testing.assert_array_equal(ENCODER(row), expected)


ENCODER = RowEncoder(SCHEMA, "edges")  # which remembers values from row to row


@given(st.dictionaries(st.sampled_from(["amount", "rare"]), st.floats() | st.integers(), min_size=2))
def test_numbers_are_scaled_to_the_same_bits(row: dict[str, Any]) -> None:
    whole = dict.fromkeys(VALUES, None) | row
    expected = as_table(whole)
    if not isinstance(expected, str):
        np.testing.assert_array_equal(ENCODER(whole), expected)


def test_a_column_that_is_not_there_is_an_error() -> None:
    with pytest.raises(DataError, match="column amount: is missing, expected a number as in training, or null"):
        ENCODER({"kind": "a"})
    assert RowEncoder(TableSchema(structure="constant"), "edges")({}).tolist() == [1.0]
    np.testing.assert_array_equal(ENCODER.unknown(), as_table(dict.fromkeys(VALUES, None)))


def test_oriented_columns_stand_last() -> None:
    kinds = {"rare": "oriented", "amount": None}
    columns = [type_column(name, as_arrow(TABLE[name]), kind).fit() for name, kind in kinds.items()]
    encoder = RowEncoder(TableSchema(columns=columns), "edges")
    assert encoder({"rare": 3, "amount": None})[-1] > 0


MOMENTS = st.datetimes(pd.Timestamp("1700-01-01"), pd.Timestamp("2200-01-01"))


@given(MOMENTS, st.sampled_from(["", "Z", "+05:30", "-08:00"]))
def test_iso_dates_are_those_of_a_column(moment: Any, zone: str) -> None:
    reader = TimeColumn(name="t", form="date")
    for text in (moment.isoformat(" ", "milliseconds"), moment.isoformat("T", "minutes"), moment.date().isoformat()):
        stamp = text + zone if ":" in text else text
        assert read_iso(stamp) == reader.read(pd.Series([stamp])).numbers[0]


@pytest.mark.parametrize(
    ("form", "value", "expected"),
    [
        ("number", 3, 3.0),
        ("number", "3.5", 3.5),
        ("milliseconds", 1_700_000_000_500, 1_700_000_000.5),
        ("yyyymmdd", 19700103, 2 * 86400.0),
        ("date", "03/01/1970 00:01", 2 * 86400 + 60.0),
        ("date", "1970-01-01T00:00:01.123456Z", 1.123),
        ("date", "soon", "'soon' is no time"),
        ("number", "soon", "'soon' is no time"),
        ("number", None, "the time is missing"),
        ("number", math.inf, "inf is no time"),
        ("date", 12, "12 is no time"),
        ("number", True, "True is no time"),
        ("seconds", 1_700_000_000_500, "1700000000500 is no time, expected seconds since 1970 as in training"),
        ("milliseconds", 1_700_000_000.5, "1700000000.5 is no time, expected milliseconds since 1970"),
    ],
)
def test_times_are_read_as_those_of_a_column(form: Any, value: object, expected: float | str) -> None:
    reader = TimeReader(TimeColumn(name="when", form=form, day_first=True))
    if isinstance(expected, str):
        with pytest.raises(DataError, match=f"column when: {expected}"):
            reader({"when": value})
    else:
        assert reader({"when": value}) == expected
    with pytest.raises(DataError, match="column when: is missing, expected the time of the event"):
        reader({})


def test_ids_are_text() -> None:
    values = [7, 7.0, "7", "007", True, 2.5]
    assert [read_id({"id": value}, "id") for value in values] == ["7", "7", "7", "007", "true", "2.5"]
    for value in (None, "", math.nan):
        with pytest.raises(DataError, match="column id: is missing, expected the id of a node"):
            read_id({"id": value}, "id")
    for odd in ([1], {"a": 1}, math.inf):
        with pytest.raises(DataError, match=r"column id: has .*, expected the id of a node"):
            read_id({"id": odd}, "id")


def test_a_column_does_not_remember_without_end() -> None:
    amount = Column(name="note", kind="category", mean=[1.0, 0.0], categories=["a"])
    encoder = RowEncoder(TableSchema(columns=[amount]), "edges")
    for number in range(10_050):
        encoder({"note": str(number)}) if number > 10_040 else encoder._columns[0]._known.setdefault(number, [])
    assert len(encoder._columns[0]._known) <= 10_000
