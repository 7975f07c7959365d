"""Whether each edge is there once or twice: found in training data, stored, and applied to later data."""

from __future__ import annotations

import logging

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from censnet.data.dataset import Dataset
from censnet.data.load import load_data
from censnet.data.tables.edge_form import match_reverses
from censnet.data.tables.files import Tables
from censnet.data.tables.schema import Schema
from censnet.errors import DataError


def once() -> pd.DataFrame:
    """A ring of 12 nodes with chords; every edge has an amount, a kind and a label."""
    source = [*range(12), 0, 3, 6]
    target = [*[(node + 1) % 12 for node in range(12)], 6, 9, 10]
    amount = [round(1 + number * 0.37, 2) for number in range(15)]
    kind = ["card", "cash", "wire"] * 5
    return pd.DataFrame({"source": source, "target": target, "amount": amount, "kind": kind, "y": ["a", "b", "b"] * 5})


def reverse(edges: pd.DataFrame) -> pd.DataFrame:
    return edges.rename(columns={"source": "target", "target": "source"})[edges.columns]


def twice(edges: pd.DataFrame | None = None) -> pd.DataFrame:
    edges = once() if edges is None else edges
    return pd.concat([edges, reverse(edges)], ignore_index=True)


def later(edges: pd.DataFrame, schema: Schema, **options: bool) -> Dataset:
    return load_data(Tables(edges=edges, names={"edges": "edges.csv"}), schema=schema, **options)


def same_answers(data: Dataset, other: Dataset, rows: np.ndarray) -> None:
    """The same edges, with the same features and the same two ends, on these rows."""
    ids = [np.array(each.tables.nodes["id"].tolist()) for each in (data, other)]
    for row in rows.tolist():
        one, two = int(data.rows("edge")[row]), int(other.rows("edge")[row])
        assert torch.equal(data.graph.edges[one], other.graph.edges[two])
        ends = [
            {*names[each.graph.ends[:, edge]]} for names, each, edge in zip(ids, (data, other), (one, two), strict=True)
        ]
        assert ends[0] == ends[1]


def test_the_form_is_stored_in_the_schema_and_comes_back() -> None:
    for edges, form in ((twice(), "twice"), (once(), "once")):
        schema = load_data(edges, target="edge:y").schema
        assert schema.edge_form == form
        assert Schema.from_json(schema.to_json()) == schema


def test_a_schema_that_does_not_say_its_version_is_refused_in_one_line() -> None:
    text = load_data(once()).schema.to_json().replace(' "version": 2,\n', "")
    with pytest.raises(DataError, match=r"schema\.json: is of an earlier version.*: train again") as error:
        Schema.from_json(text)
    assert "\n" not in str(error.value)


def test_an_edge_without_its_reverse_gets_an_error_and_all_others_are_read_as_before() -> None:
    data = load_data(twice(), target="edge:y")
    far = pd.DataFrame({"source": [77], "target": [78], "amount": [2.0], "kind": ["card"]})
    near = pd.DataFrame({"source": [0], "target": [3], "amount": [2.0], "kind": ["card"]})
    for extra in (far, near):
        more = later(pd.concat([twice(), extra], ignore_index=True), data.schema)
        assert more.graph.num_edges == data.graph.num_edges
        assert more.rows("edge")[-1] == -1
        same_answers(data, more, np.arange(30))
        (row, message), *others = more.problems["edges"].items()
        assert row == 30
        assert not others
        assert message.startswith("edges.csv, row 31, column target: no row goes back from ")
        assert "add that row" in message
        with pytest.raises(DataError, match=r"edges\.csv, row 31, column target: no row goes back from"):
            later(pd.concat([twice(), extra], ignore_index=True), data.schema, strict=True)


def test_a_label_in_the_data_to_predict_changes_nothing() -> None:
    data = load_data(twice(), target="edge:y")
    for labels in (["a"] + ["b"] * 29, [None] * 30, list("ab") * 15):
        other = later(twice().assign(y=labels), data.schema)
        assert torch.equal(other.graph.ends, data.graph.ends)
        assert torch.equal(other.rows("edge"), data.rows("edge"))
        assert not other.problems


def test_a_row_whose_reverse_has_another_value_says_which() -> None:
    data = load_data(twice(), target="edge:y")
    edges = twice()
    edges.loc[4, "kind"] = "wire" if edges["kind"][4] != "wire" else "card"
    other = later(edges, data.schema)
    assert set(other.problems["edges"]) == {4, 19}
    assert "row 20 goes back from 5 to 4, but has another value in kind" in other.problems["edges"][4]
    assert "row 5 goes back from 4 to 5, but has another value in kind" in other.problems["edges"][19]
    same_answers(data, other, np.array([row for row in range(30) if row not in (4, 19)]))


def test_a_column_the_model_does_not_read_parts_no_pair() -> None:
    data = load_data(twice().assign(memo=[f"note {number}" for number in range(30)]), target="edge:y")
    assert data.schema.edge_form == "twice"
    other = later(twice().assign(memo=[f"other {number % 7}" for number in range(30)]), data.schema)
    assert not other.problems


def test_one_of_three_parallel_rows_too_many_gets_an_error() -> None:
    data = load_data(twice(), target="edge:y")
    again = pd.concat([twice(), twice().iloc[[2, 17, 2]]], ignore_index=True)
    other = later(again, data.schema)
    assert list(other.problems["edges"]) == [32]
    assert "row 18 goes back from 3 to 2, but is the reverse of another row" in other.problems["edges"][32]
    assert other.graph.num_edges == 16


def test_loops_need_no_reverse() -> None:
    loop = pd.DataFrame({"source": [4, 4], "target": [4, 4], "amount": [2.0, 3.0], "kind": "card", "y": "a"})
    data = load_data(pd.concat([twice(), loop], ignore_index=True), target="edge:y")
    assert data.schema.edge_form == "twice"
    assert data.graph.num_edges == 17
    other = later(pd.concat([twice(), loop, loop], ignore_index=True), data.schema)
    assert other.graph.num_edges == 19
    assert not other.problems


def test_data_in_which_no_row_has_its_reverse_are_refused_in_one_line() -> None:
    schema = load_data(twice(), target="edge:y").schema
    with pytest.raises(DataError, match=r"edges.csv: no row has its reverse.*add the reverse of each of the 15 rows"):
        later(once(), schema)


def test_doubled_data_after_training_on_edges_once_are_not_merged_and_it_is_said(caplog) -> None:
    data = load_data(once(), target="edge:y")
    with caplog.at_level(logging.INFO, "censnet"):
        other = later(twice(), data.schema)
    assert other.graph.num_edges == 30
    assert not other.problems
    said = "edges.csv: each edge is there twice, once in each direction with the same data; as in training, each row is"
    assert any(note.startswith(said) for note in other.notes)
    assert said in caplog.text


def test_labels_that_differ_between_most_directions_are_labels_of_directions() -> None:
    edges = twice()
    edges["y"] = ["up"] * 15 + ["down"] * 15
    data = load_data(edges, target="edge:y")
    assert data.schema.edge_form == "once"
    assert data.graph.num_edges == 30
    assert any("15 of 15 pairs have two labels in y" in note for note in data.notes)


def test_a_few_contradicting_labels_are_errors_of_their_rows_and_the_form_stays() -> None:
    edges = twice()
    edges.loc[20, "y"] = "c"
    data = load_data(Tables(edges=edges, names={"edges": "edges.csv"}), target="edge:y")
    assert data.schema.edge_form == "twice"
    assert data.problems["edges"] == {
        5: "edges.csv, row 6, column y: 'b' here, but 'c' in row 21, its reverse: give both rows of an edge the same "
        "label",
        20: "edges.csv, row 21, column y: 'c' here, but 'b' in row 6, its reverse: give both rows of an edge the same "
        "label",
    }
    plain = load_data(twice(), target="edge:y")
    assert torch.equal(data.graph.ends, plain.graph.ends), "labels decide nothing about the graph"
    labels = data.labels("edge", "y")
    assert labels.isna().tolist() == [row in (5, 20) for row in range(30)], "nothing is learnt from either"
    result = data.results("edge", pd.DataFrame({"p": np.arange(15.0)}), keep="ids")
    assert result["p"].isna().tolist() == labels.isna().tolist()
    assert result["error"].notna().tolist() == labels.isna().tolist()
    with pytest.raises(DataError, match=r"edges\.csv, row 6, column y: 'b' here, but 'c' in row 21"):
        load_data(Tables(edges=edges, names={"edges": "edges.csv"}), target="edge:y", strict=True)


def test_a_label_on_one_of_the_two_rows_contradicts_nothing() -> None:
    edges = twice()
    edges.loc[:14, "y"] = None
    data = load_data(edges, target="edge:y")
    assert data.schema.edge_form == "twice"
    assert not data.problems


def test_parallel_edges_that_are_alike_pair_up_by_their_labels() -> None:
    edges = pd.DataFrame({"source": [0, 0, 1, 1], "target": [1, 1, 0, 0], "y": ["a", "b", "b", "a"]})
    data = load_data(edges, target="edge:y")
    assert data.schema.edge_form == "twice"
    assert data.rows("edge").tolist() == [0, 1, 1, 0]
    assert not data.problems


def test_one_bad_row_in_training_does_not_part_all_others() -> None:
    edges = twice()
    edges["amount"] = edges["amount"].astype(object)
    edges.loc[3, "amount"] = "a lot"
    data = load_data(edges, target="edge:y")
    assert data.schema.edge_form == "twice"
    assert set(data.problems["edges"]) == {3, 18}
    assert "row 4 goes back from 3 to 4, but cannot be used" in data.problems["edges"][18]
    assert data.graph.num_edges == 14


def test_a_later_table_that_calls_its_ends_otherwise_is_read_in_the_same_form() -> None:
    schema = load_data(twice(), target="edge:y").schema
    edges = twice().iloc[:29].rename(columns={"source": "from", "target": "to"})
    assert list(later(edges, schema).problems["edges"]) == [14]


def test_a_missing_reverse_in_training_is_told() -> None:
    data = load_data(Tables(edges=twice().iloc[:29], names={"edges": "edges.csv"}), target="edge:y")
    assert data.schema.edge_form == "once"
    assert data.graph.num_edges == 29
    assert any(
        "28 of 29 rows have their reverse with the same data" in note and "row 15" in note for note in data.notes
    )


def test_directions_with_other_data_are_told() -> None:
    edges = twice()
    edges["amount"] = np.arange(30.0)
    data = load_data(edges, target="edge:y")
    assert data.schema.edge_form == "once"
    assert any("each row has its reverse, but 30 of 30 with other data" in note for note in data.notes)


def test_pyg_and_networkx_are_read_in_the_stored_form() -> None:
    edges = twice()
    columns = torch.tensor(edges[["source", "target"]].to_numpy()).t().contiguous()
    amount = torch.tensor(edges["amount"].to_numpy(), dtype=torch.float32)
    x = torch.arange(12.0)[:, None].repeat(1, 2)
    data = load_data(Data(x=x, edge_index=columns, edge_attr=amount, num_nodes=12))
    assert data.schema.edge_form == "twice"
    more = Data(
        x=x, edge_index=torch.cat([columns, torch.tensor([[0], [5]])], 1), edge_attr=torch.cat([amount, amount[:1]])
    )
    other = load_data(more, schema=data.schema)
    assert list(other.problems["edges"]) == [30]
    assert torch.equal(other.graph.ends, data.graph.ends)

    graph = nx.DiGraph()
    graph.add_weighted_edges_from(edges[["source", "target", "amount"]].itertuples(index=False))
    data = load_data(graph)
    assert (data.schema.edge_form, data.schema.directed, data.graph.directed) == ("once", True, True)
    data = load_data(graph, directed=False)
    assert (data.schema.edge_form, data.schema.directed, data.graph.directed) == ("twice", False, False)
    graph.add_edge(0, 5, weight=1.0)
    other = load_data(graph, schema=data.schema)
    assert len(other.problems["edges"]) == 1
    assert other.graph.num_edges == data.graph.num_edges


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 1)), min_size=1, max_size=25),
    st.lists(st.integers(0, 2), min_size=25, max_size=25),
)
def test_a_reverse_is_mutual_and_none_is_left_that_could_be_matched(rows: list, labels: list) -> None:
    table = np.array(rows, dtype=np.int64)
    ends, features = table[:, :2].T.copy(), table[:, 2:].astype(np.float32)
    reverse_of = match_reverses(ends, 5, features, np.array(labels[: len(rows)], dtype=np.uint64))
    alone = []
    for row, other in enumerate(reverse_of.tolist()):
        if other < 0:
            alone.append(tuple(table[row]))
            continue
        assert reverse_of[other] == row
        assert tuple(table[row]) == (table[other][1], table[other][0], table[other][2])
        assert (row == other) == (table[row][0] == table[row][1])
    assert not {(target, source, value) for source, target, value in alone} & set(alone)
