"""A schema is fitted on training rows, stored as JSON, and reads later tables in whatever shape they come."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import torch

from censnet.data import DataError, Schema, Tables, load_data
from censnet.data.tables.typed_table import TypedTable


def tables(edges: pd.DataFrame) -> Tables:
    return Tables(edges=edges, names={"edges": "edges.csv"})


@pytest.fixture
def payments() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "source": ["a", "b", "c", "a"],
            "target": ["b", "c", "a", "c"],
            "amount": [1.0, 3.0, 1000.0, None],
            "city": ["Oslo", "Rome", "Paris", "Oslo"],
            "memo": [f"a long story about bread number {number}, told at length and once more" for number in range(4)],
        }
    )


def test_statistics_and_categories_come_from_training_rows_alone(payments: pd.DataFrame) -> None:
    schema = load_data(payments, train_rows={"edge": [0, 1]}).schema
    amount, city = schema.edges.columns[:2]
    assert (amount.mean, amount.scale, amount.missing) == ([2.0], [1.0], False)
    assert schema.edges.names == ["amount", "city=Oslo", "city=Rome", "city is another"]
    assert city.categories == ["Oslo", "Rome"]


def test_json_gives_the_same_schema_and_the_same_tensors(payments: pd.DataFrame) -> None:
    data = load_data(payments)
    text = data.schema.to_json()
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    again = load_data(payments, schema=Schema.from_json(text))
    assert again.schema == data.schema
    torch.testing.assert_close(again.graph.edges, data.graph.edges, rtol=0, atol=0)
    torch.testing.assert_close(again.graph.nodes, data.graph.nodes, rtol=0, atol=0)


def test_order_extra_columns_and_new_categories_do_not_matter(payments: pd.DataFrame) -> None:
    data = load_data(payments)
    later = payments[["city", "memo", "amount", "target", "source"]].copy()
    later["extra"] = 7
    torch.testing.assert_close(load_data(later, schema=data.schema).graph.edges, data.graph.edges)
    later["city"] = ["Lima", "Rome", "Rome", "Rome"]
    names = data.schema.edges.names
    first = load_data(later, schema=data.schema).graph.edges[0]
    assert [float(first[names.index(f"city={city}")]) for city in ("Oslo", "Rome", "Paris")] == [0.5, 0.25, 0.25]
    assert first[names.index("city is another")] == 0


def test_words_that_training_did_not_have_are_told_once_for_each_column(
    payments: pd.DataFrame, caplog: pytest.LogCaptureFixture
) -> None:
    data = load_data(tables(payments))
    assert caplog.records == []
    load_data(tables(payments.assign(city=["Lima", "Rome", "Bern", None], amount=7)), schema=data.schema)
    told = "edges.csv, column city: 2 of 4 rows have a word that no training row had, such as 'Lima': they count as an"
    assert [record.message[: len(told)] for record in caplog.records] == [told]
    caplog.clear()
    found = [note for note in data.notes if note.kind != "direction"]  # which is found once
    assert load_data(tables(payments), schema=data.schema).notes == found
    assert caplog.records == []


def test_a_missing_column_is_named(payments: pd.DataFrame) -> None:
    schema = load_data(payments).schema
    with pytest.raises(DataError, match="the table, column amount: is missing, expected a number as in training"):
        load_data(payments.drop(columns="amount"), schema=schema)
    with pytest.raises(DataError, match="column target: is missing"):
        load_data(tables(payments.drop(columns="target")), schema=schema)


def test_a_column_left_out_in_training_need_not_come_back(payments: pd.DataFrame) -> None:
    schema = load_data(payments).schema
    assert [column.name for column in schema.edges.left_out] == ["memo"]
    load_data(payments.drop(columns="memo"), schema=schema)


def test_a_later_column_of_another_type_is_read_as_the_kind_it_was(payments: pd.DataFrame) -> None:
    schema = load_data(payments).schema
    later = payments.assign(amount=["1.0", "3", "oops", ""])
    data = load_data(tables(later), schema=schema)
    assert data.problems["edges"] == {2: "edges.csv, row 3, column amount: 'oops' is not a finite number"}
    first = load_data(payments, schema=schema)
    torch.testing.assert_close(data.graph.edges[data.rows("edge")[:2]], first.graph.edges[first.rows("edge")[:2]])


def test_the_user_decides_with_overrides(payments: pd.DataFrame) -> None:
    data = load_data(payments, overrides={"amount": "category", "edges.city": "drop"})
    amount, city = data.schema.edges.columns[:2]
    assert (amount.kind, amount.reason, city.kind) == ("category", "chosen by the user", "drop")
    with pytest.raises(DataError, match=r"column amuont: no table has this column: did you mean amount\?"):
        load_data(payments, overrides={"amuont": "drop"})
    with pytest.raises(DataError, match="'colour' is not a kind of column, expected one of number, boolean"):
        load_data(payments, overrides={"amount": "colour"})


def test_a_file_that_is_no_schema_is_refused_in_one_line() -> None:
    for text in (
        "",
        "[]",
        "{",
        '{"version": 1}',
        '{"version": 3}',
        '{"nodes": {"columns": [{"name": "a", "kind": "colour"}]}}',
        '{"x": 1}',
    ):
        with pytest.raises(DataError, match=r"schema.json: is not a schema: .+") as error:
            Schema.from_json(text)
        assert "\n" not in str(error.value)


def test_two_bad_values_in_a_row_are_both_named() -> None:
    fitted = TypedTable.find(pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})).fit()
    bad = TypedTable.read(fitted, pd.DataFrame({"a": ["x", "1"], "b": ["y", "2"]}), "t.csv").errors
    assert bad == {
        0: "t.csv, row 1, column a: 'x' is not a finite number; t.csv, row 1, column b: 'y' is not a finite number"
    }


def test_the_features_are_as_wide_as_their_names(payments: pd.DataFrame) -> None:
    days = pd.date_range("2024-01-01", periods=4)
    fitted = TypedTable.find(payments.assign(x=[[1, 2]] * 3 + [None], day=days)).fit()
    features = TypedTable.read(fitted, payments.assign(x=[[1, 2]] * 4, day=days)).encode(fitted)
    assert features.shape == (4, fitted.width)
    assert len(fitted.names) == len(set(fitted.names))
    assert features.dtype == torch.float32
    assert np.isfinite(features.numpy()).all()


def test_entries_that_are_not_there_are_no_schema() -> None:
    data = load_data(
        pd.DataFrame({"source": [0, 1, 2], "target": [1, 2, 0], "x": [[1, 7, 2], [3, 7, None], [4, 7, 5]]})
    )
    column = json.loads(data.schema.to_json())["edges"]["columns"][0]
    assert (column["entries"], column["marked"]) == ([0, 2], [2])
    for changes in ({"entries": [0, 3]}, {"entries": [2, 0]}, {"marked": [1]}, {"centered": [True]}, {"entries": [-1]}):
        with pytest.raises(DataError, match="is not a schema"):
            Schema.from_json(json.dumps({"edges": {"columns": [{**column, **changes}]}}))
