"""Columns of the table of graphs: no features unless the user says so, and then those of each graph as a whole."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from samples import shapes

from censnet.data import DataError, Tables, load_data
from censnet.data.load import read_data
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet


def dosed(values: list[object] | None = None) -> Tables:
    """Shapes with a dose, and a solvent, of each."""
    tables = shapes(8)
    assert tables.graphs is not None
    doses = values or [1, 2, 3, 4, 5, 6, 7, 8]
    graphs = tables.graphs.assign(dose=pd.Series(doses, dtype=object), solvent=["oil", "gas"] * 4)
    return Tables(tables.nodes, tables.edges, graphs)


CHOSEN = {"dose": "number", "graphs.solvent": "category"}


def test_a_column_of_graphs_is_no_feature_by_itself() -> None:
    data = load_data(dosed(), target="graph:ring")
    assert data.graph.graph_width == 0
    assert "dose, solvent not used" in next(note for note in data.notes if "not used" in note)


def test_a_column_that_was_chosen_is_a_feature_of_each_graph() -> None:
    data = load_data(dosed(), target="graph:ring", overrides=CHOSEN)
    assert isinstance(data.graph, GraphSet)
    dose = (torch.arange(1, 9) - 4.5) / np.std(np.arange(8))
    solvent = torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]] * 4)  # gas, oil, another
    torch.testing.assert_close(data.graph.graph_features, torch.cat([dose[:, None].float(), solvent], 1))
    assert not any("dose" in note for note in data.notes)


def test_its_statistics_are_those_of_training_rows() -> None:
    rows = {"graph": np.arange(4)}
    encoded = read_data(dosed(), target="graph:ring", overrides=CHOSEN).encode(rows)
    direct = load_data(dosed(), target="graph:ring", overrides=CHOSEN, train_rows=rows)
    assert isinstance(encoded.graph, GraphSet)
    assert isinstance(direct.graph, GraphSet)
    torch.testing.assert_close(encoded.graph.graph_features, direct.graph.graph_features, rtol=0, atol=0)
    assert encoded.graph.graph_features is not None
    torch.testing.assert_close(encoded.graph.graph_features[:4, 0].mean(), torch.tensor(0.0))
    assert float(encoded.graph.graph_features[4:, 0].min()) > 1
    again = load_data(dosed(), schema=encoded.schema).graph
    assert isinstance(again, GraphSet)
    torch.testing.assert_close(again.graph_features, encoded.graph.graph_features, rtol=0, atol=0)


def test_a_bad_value_is_a_row_without_a_result_and_the_others_stay() -> None:
    data = load_data(dosed([1, 2, "a lot", *range(4, 9)]), target="graph:ring", overrides=CHOSEN)
    assert list(data.problems["graphs"]) == [2]
    assert "column dose: 'a lot' is not a finite number" in data.problems["graphs"][2]
    assert data.rows("graph").tolist() == [0, 1, -1, 3, 4, 5, 6, 7]
    found = data.results("graph", pd.DataFrame({"answer": range(8)}))
    assert found["answer"].isna().tolist() == [row == 2 for row in range(8)]


def test_a_later_table_needs_the_column() -> None:
    schema = load_data(dosed(), target="graph:ring", overrides=CHOSEN).schema
    with pytest.raises(DataError, match="column dose: is missing, expected a number as in training"):
        load_data(shapes(3), schema=schema)


def test_molecules_have_such_columns_too() -> None:
    frame = pd.DataFrame({"smiles": ["C", "CC", "C1C", "CCC"], "dose": [1.0, 3.0, 100.0, None]})
    data = load_data(frame, overrides={"dose": "number"}, train_rows={"graph": [0, 1, 3]}, descriptors=True)
    assert isinstance(data.graph, GraphSet)
    assert data.graph.graph_features is not None
    assert data.graph.graph_features[:, :2].tolist() == [[-1, 0], [1, 0], [0, 1]], "the dose, and whether it is missing"
    assert data.graph.graph_width == 2 + data.schema.descriptors.width


def test_tensors_bring_their_own() -> None:
    graphs = GraphSet.pack(
        [
            Graph(torch.ones(2, 1), torch.ones(1, 1), torch.tensor([[0], [1]]), graph_features=torch.eye(3)[[n]])
            for n in (0, 1)
        ]
    )
    data = load_data(graphs)
    assert data.graph.graph_width == 3
    assert data.schema.of_graphs.width == 3
