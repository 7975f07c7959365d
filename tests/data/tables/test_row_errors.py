"""What is said of rows that cannot be used."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from censnet.data import Tables, load_data
from censnet.data.tables.notes import RowError
from censnet.data.tables.row_errors import locate, summarize_errors
from censnet.errors import location, name_columns, quote
from censnet.inspection.audit import audit


def payments() -> Tables:
    edges = pd.DataFrame(
        {
            "source": ["a", "b", "c", "d"] * 10,
            "target": ["b", "c", "d", "a"] * 10,
            "amount": ["1", "2", "3", "4"] * 10,
            "when": ["2024-01-31", "2024-02-01"] * 20,
        }
    )
    nodes = pd.DataFrame({"id": ["a", "b", "c", "d"], "age": [1, 2, 4, 8]})
    return Tables(nodes, edges, names={"nodes": "nodes.csv", "edges": "edges.csv"})


def test_several_causes_are_counted_the_largest_first(caplog: pytest.LogCaptureFixture) -> None:
    tables = payments()
    tables.edges.loc[[1, 2], "amount"] = ["lots", "it's 5"]
    tables.edges.loc[[2, 30], "when"] = "soon"
    tables.edges.loc[[5, 6, 7], "target"] = ["x", "y's", "z"]
    tables.edges.loc[9, "source"] = None
    data = load_data(tables)
    why = (
        "3 by column target (no node has the id ...), 2 by column amount (is not a finite number), "
        "1 by column source (the id is missing), 1 by others; "
        "the first: edges.csv, row 2, column amount: 'lots' is not a finite number"
    )
    (note,) = [note for note in data.notes if "cannot be used" in note]
    assert note == f"edges.csv: 7 of 40 rows cannot be used and get no result: {why}"
    assert [record.message for record in caplog.records] == [note]
    assert audit(data, {})[0].what == f"7 of 40 rows of edges.csv cannot be used: {why}"


def test_one_cause_is_told_by_its_first_row() -> None:
    numbers = {7: "no node has the id 12 (nodes.csv has 1,204 ids)", 3: "no node has the id -3.5 (nodes.csv has 9 ids)"}
    rows = {
        row: locate(RowError("no node has the id ...", text), "edges.csv", row, "target")
        for row, text in numbers.items()
    }
    assert summarize_errors(rows) == f"; the first: {rows[3]}"


def test_causes_are_counted_whatever_the_values_are() -> None:
    table = pd.DataFrame({"id": [7, 7, 8], "when": ["2024-01-31", "2024-01-31", "?"]})
    edges = pd.DataFrame({"source": [7, 8], "target": [8, 7]})
    data = load_data(Tables(table, edges, names={"nodes": "t.csv"}), overrides={"when": "date"})
    (note,) = [note for note in data.notes if note.kind == "row error"]
    why = "1 by column id (the id ... is in row ... already), 1 by column when (is not a date such as 2024-01-31);"
    assert why in note
    assert [error.cause for error in data.problems["nodes"].values()] == [
        "column id (the id ... is in row ... already)",
        "column when (is not a date such as 2024-01-31)",
    ]


def test_what_is_shown_of_a_value_or_a_name_fits_on_a_line() -> None:
    assert quote(np.eye(3)) == "array([[1., 0., 0.], [0., 1., 0.], [0., ..."
    assert quote(object()) == "<object object>"
    assert len(location("t.csv", 3, "x" * 10_000)) < 150
    assert len(name_columns(["x" * 10_000] * 100)) < 1000


def test_cells_and_categories_that_arrow_cannot_hold_are_text() -> None:
    tables = payments()
    nodes = tables.nodes.assign(
        half=pd.Series(["\ud800", "b", "\ud800", "b"], dtype=object), age_group=pd.cut(tables.nodes["age"], 2)
    )
    data = load_data(Tables(nodes, tables.edges))
    assert {"half", "age_group"} <= {column.name for column in data.schema.nodes.columns}
