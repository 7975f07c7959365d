"""Columns of times: numbers, dates and timestamps, zones, and what is no time."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

from censnet.data.load import load_data
from censnet.data.tables.schema import Schema
from censnet.data.tables.times import TimeColumn
from censnet.errors import DataError

DAY = 86400.0


def edges(times: object, **columns: object) -> pd.DataFrame:
    count = len(times)  # type: ignore[arg-type]
    return pd.DataFrame({"source": range(count), "target": range(1, count + 1), "when": times, **columns})


@pytest.mark.parametrize(
    ("values", "form", "numbers"),
    [
        ([3, 1, 2], "number", [3, 1, 2]),
        ([-5.5, 0.0, 2.25], "number", [-5.5, 0, 2.25]),
        (["3", "1.5", "7"], "number", [3, 1.5, 7]),
        ([1.5e9, 1.6e9], "seconds", [1.5e9, 1.6e9]),
        ([1_500_000_000_250, 1_600_000_000_000], "milliseconds", [1_500_000_000.25, 1.6e9]),
        ([1_500_000_000_000_250, 1_600_000_000_000_000], "microseconds", [1_500_000_000.00025, 1.6e9]),
        ([20240131, 20240201], "yyyymmdd", [1706659200.0, 1706745600.0]),
        (["2024-01-31", "2024-02-01"], "date", [1706659200.0, 1706745600.0]),
        (["1970-01-02T00:00Z", "1970-01-02T00:00:00.5+01:00"], "date", [DAY, DAY - 3599.5]),
        (["1970-01-02 00:00", "1970-01-02T02:00-02:00"], "date", [DAY, DAY + 4 * 3600]),
        (pd.to_datetime(["1970-01-02", "1970-01-03"]), "date", [DAY, 2 * DAY]),
        (
            pd.to_datetime(["1970-01-02", "1970-01-03"]).tz_localize("Asia/Tokyo"),
            "date",
            [DAY - 32400, 2 * DAY - 32400],
        ),
        (["31/01/1970", "2/2/1970 12:30"], "date", [30 * DAY, 32 * DAY + 45000]),
        (["1/31/1970", "2/1/1970 12:30:15.5"], "date", [30 * DAY, 31 * DAY + 45015.5]),
        (["2.1.1970", "3.1.1970"], "date", [DAY, 2 * DAY]),
    ],
)
def test_times_of_each_form(values: object, form: str, numbers: list[float]) -> None:
    column, _ = TimeColumn.find("when", pd.Series(values))
    assert column.form == form
    assert column.read(pd.Series(values)).numbers.tolist() == pytest.approx(numbers, abs=1e-4, rel=0)


def test_what_is_read_is_said() -> None:
    notes = load_data(edges([1.5e9, 1.6e9]), time="when").notes
    assert any(
        "times of column when are seconds since 1970, in UTC, from 2017-07-14 02:40 to 2020-09-13 12:26" in note
        for note in notes
    )
    assert any("left out when (the time of each edge)" in note for note in notes)
    notes = load_data(edges(["2024-01-31 10:00", "2024-01-31T11:00Z"]), time="when").notes
    assert any("1 timestamps name no zone, and are read as UTC" in note for note in notes)
    notes = load_data(edges(["31/01/2024", "01/02/2024"]), time="when").notes
    assert any("the day is first, as in 03/04/2024" in note for note in notes)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            ["soon", "later", "2024-01-31"],
            "row 1, column when: 'soon' is no time, as 67% of the values, expected a",
        ),
        ([5, 5, 5], "column when: all times are 5, expected different ones: without an order there is no past"),
        (["2024-01-31"] * 2, "column when: all times are 2024-01-31, expected different ones"),
        ([None, None], "column when: holds no value in any row, expected the time of each edge"),
        ([True, False], "column when: holds bool, expected numbers, dates or timestamps"),
        (
            [1_700_000_000, 1_700_000_500, 1_700_000_900_000],
            "row 3, column when: 1700000900000 would be milliseconds since 1970, and 1700000000 in row 1 seconds, exp",
        ),
        (["03/04/2024", "05/06/2024"], "03/04/2024 may have the day or the month first, and no row decides"),
        (pd.to_datetime(["2024-01-01 10:00", "2024-01-01 11:00"]).time, "holds times of day, expected dates"),
    ],
)
def test_what_is_no_column_of_times_is_one_clear_line(values: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_data(edges(values), time="when")


def test_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises(DataError, match="column paid: is missing, expected the time of each edge, one of source, targ"):
        load_data(edges([1, 2]), time="paid")


def test_a_row_without_a_time_is_a_bad_row() -> None:
    rows = edges([*range(30), None, "soon"], x=range(32))
    data = load_data(rows, time="when")
    assert data.graph.num_edges == 30
    assert data.rows("edge").tolist()[30:] == [-1, -1]
    messages = [str(message) for _, message in sorted(data.problems["edges"].items())]
    assert "row 31, column when: the time is missing" in messages[0]
    assert "row 32, column when: 'soon' is no time" in messages[1]
    result = data.results("edge", pd.DataFrame({"p": np.zeros(30)}))
    assert result["error"].notna().tolist() == [False] * 30 + [True] * 2
    with pytest.raises(DataError, match="the time is missing"):
        load_data(rows, time="when", strict=True)


def test_times_stand_beside_their_edges_in_the_order_of_the_tensors() -> None:
    rows = pd.DataFrame({"source": [5, 1, 3], "target": [4, 2, 0], "when": [50.0, 10.0, 30.0], "x": [5.0, 1.0, 3.0]})
    data = load_data(rows, time="when", directed=True)
    assert data.graph.times is not None
    assert data.graph.times[data.rows("edge")].tolist() == [50, 10, 30]
    assert data.graph.times.dtype == torch.float64
    graphs = load_data(rows.assign(graph=["b", "a", "b"]), time="when")
    assert graphs.graph.times is not None
    assert graphs.graph.times[graphs.rows("edge")].tolist() == [50, 10, 30]


def test_the_schema_remembers_how_times_are_read() -> None:
    schema = Schema.from_json(load_data(edges(["31/01/2024", "01/02/2024"]), time="when").schema.to_json())
    later = load_data(edges(["03/04/2024"]), schema=schema)
    assert later.graph.times is not None
    assert later.graph.times.tolist() == [pd.Timestamp("2024-04-03").timestamp()]
    with pytest.raises(DataError, match="column when: is missing, expected the time of each edge"):
        load_data(edges([1]).drop(columns="when"), schema=schema)


def test_what_training_did_not_tell_is_refused_later() -> None:
    dates, _ = TimeColumn.find("when", pd.Series(["2024-01-31", "2024-02-01"]))
    found = dates.read(pd.Series(["03/04/2024", "03.04.2024", "2024-04-03"]))
    assert found.bad.tolist() == [0]
    assert found.numbers[1] == found.numbers[2]
    numbers, _ = TimeColumn.find("when", pd.Series([1e9, 5, 2e12]))  # no moments, for one of them is none
    assert numbers.form == "number"


@pytest.mark.parametrize(("factor", "form"), [(1, "seconds"), (1000, "milliseconds")])
def test_a_moment_in_another_unit_than_in_training_is_no_time(factor: int, form: str) -> None:
    column, _ = TimeColumn.find("when", pd.Series([1_600_000_000 * factor, 1_700_000_000 * factor]))
    other = pd.Series([1_700_000_001 * factor, 1_700_000_001_000_000 // factor**2])  # microseconds, seconds
    times, errors = column.read_rows(other)
    assert times[0] == 1_700_000_001
    assert list(errors) == [1]
    assert f"is no time, expected {form} since 1970 as in training, from 1e+" in str(errors[1])


def test_two_contacts_of_other_times_are_two_edges_though_each_is_there_in_both_directions() -> None:
    there = pd.DataFrame({"source": [0, 1], "target": [1, 2], "when": [1.0, 2.0]})
    back = there.rename(columns={"source": "target", "target": "source"})
    doubled = load_data(pd.concat([there, back], ignore_index=True), time="when")
    assert doubled.graph.num_edges == 2
    apart = pd.concat([there, back.assign(when=[3.0, 4.0])], ignore_index=True)
    assert load_data(apart, time="when").graph.num_edges == 4


def test_attributes_of_networkx_and_of_pyg_are_times() -> None:
    graph = nx.DiGraph()
    graph.add_edge("a", "b", when="2024-01-31", x=1.0)
    graph.add_edge("b", "c", when="2024-02-01", x=2.0)
    times = load_data(graph, time="when").graph.times
    assert times is not None
    assert sorted(times.tolist()) == [1706659200.0, 1706745600.0]
    ends = torch.tensor([[0, 1], [1, 2]])
    for name in ("time", "edge_time"):
        data = Data(x=torch.ones(3, 1), edge_index=ends, **{name: torch.tensor([4.0, 9.0])})
        times = load_data(data, time=name).graph.times
        assert times is not None
        assert times.tolist() == [4, 9]


def test_times_of_what_has_no_table_of_edges_are_refused() -> None:
    with pytest.raises(DataError, match="the time is column 'when', expected a table of edges that has it"):
        load_data(pd.DataFrame({"smiles": ["CC", "CCO"]}), time="when")


@pytest.mark.parametrize(
    ("text", "seconds"), [("7d", 604800), ("12h", 43200), ("1.5 m", 90), ("30", 30), ("2w", 1209600), (0.5, 0.5)]
)
def test_durations(text: str | float, seconds: float) -> None:
    assert TimeColumn(name="when", form="date").read_delay(text) == seconds


@pytest.mark.parametrize("text", ["-3d", "soon", "", "7 days", "nan"])
def test_what_is_no_duration_is_named(text: str) -> None:
    with pytest.raises(DataError, match=r"the label delay is .*, expected a number, or one with a unit such as 7d"):
        TimeColumn(name="when", form="date").read_delay(text)


def test_a_unit_of_time_without_a_unit_is_refused() -> None:
    with pytest.raises(DataError, match="the label delay is '7d', expected a plain number: column step holds numbers"):
        TimeColumn(name="step").read_delay("7d")
