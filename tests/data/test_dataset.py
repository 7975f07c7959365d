"""Tables in every shape to graphs, and every result back on its row."""

from __future__ import annotations

import logging
from pathlib import Path

import networkx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from censnet import Graph
from censnet.data import DataError, Tables, load_data, write_table
from censnet.data.load import read_data
from censnet.ops.graph_set import GraphSet

NAMES = {"nodes": "nodes.csv", "edges": "edges.csv", "graphs": "graphs.csv"}


def tables(nodes: dict | None = None, edges: dict | None = None, graphs: dict | None = None) -> Tables:
    frames = (None if part is None else pd.DataFrame(part) for part in (nodes, edges, graphs))
    return Tables(*frames, names=NAMES)


@pytest.mark.parametrize(
    "ids",
    [
        ["ann", "bob", "eve"],
        [0, 1, 2],
        [-7, 10**18, 3],
        [2**63 + 1, 2**63 + 2, 5],
        [1.5, 2.0, -3.25],
        [10, 20, 30],
        ["1", "01", "1.0"],
        pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-03"]).tolist(),
        [b"a", b"b", b"c"],
        [True, False, "x"],
    ],
)
def test_ids_of_any_type_are_found(ids: list) -> None:
    order = [0, 2, 1, 0]
    edges = {"source": [ids[i] for i in order], "target": [ids[i] for i in reversed(order)], "w": [1.0, 2.0, 3.0, 5.0]}
    data = load_data(tables({"id": ids, "x": [1.0, 2.0, 4.0]}, edges))
    assert data.graph.ends[:, data.rows("edge")].tolist() == [order, order[::-1]]
    assert data.results("edge", pd.DataFrame({"y": range(4)}))["source"].tolist() == edges["source"]


def test_ids_of_two_types_are_compared_as_text() -> None:
    nodes = {"id": ["1", "2", "acct"], "x": [1.0, 2.0, 3.0]}
    assert load_data(tables(nodes, {"source": [1, 2], "target": [2, 1]})).graph.ends.tolist()[0] in ([0, 1], [0])
    nodes = {"id": [1, 2, 3], "x": [1.0, 2.0, 3.0]}
    data = load_data(tables(nodes, {"source": ["1", "3"], "target": ["3", "x"]}))
    assert data.graph.ends.tolist() == [[0], [2]]
    assert data.problems == {
        "edges": {1: "edges.csv, row 2, column target: no node has the id 'x' (nodes.csv has 3 ids)"}
    }


def test_edges_of_every_kind_keep_their_identity() -> None:
    """Parallel, reversed with other attributes, and loops are edges of their own; an isolated node stays."""
    edges = {"source": [0, 0, 1, 2], "target": [1, 1, 0, 2], "w": [1.0, 2.0, 3.0, 4.0]}
    data = load_data(tables({"id": [0, 1, 2, 9], "x": [1.0, 2.0, 3.0, 4.0]}, edges))
    assert data.graph.ends.tolist() == [[0, 0, 1, 2], [1, 1, 0, 2]]
    assert data.graph.num_nodes == 4
    assert data.rows("edge").tolist() == [0, 1, 2, 3]


def test_edges_that_are_there_twice_are_merged_and_it_is_said() -> None:
    edges = {"source": [5, 7, 6, 7, 5], "target": [6, 5, 5, 7, 7], "w": [1.0, 2.0, 1.0, 9.0, 2.0]}
    data = load_data(tables(None, edges))
    assert data.rows("edge").tolist() == [0, 1, 0, 2, 1]
    assert data.graph.num_edges == 3
    assert any("each edge is there twice, once in each direction: 5 rows are 3 edges" in note for note in data.notes)
    result = data.results("edge", pd.DataFrame({"score": [0.1, 0.2, 0.3]}))
    assert result["score"].tolist() == [0.1, 0.2, 0.1, 0.3, 0.2]
    assert result["source"].tolist() == edges["source"]


@pytest.mark.parametrize("change", ["attribute", "labels", "one missing"])
def test_edges_that_differ_by_direction_are_not_merged(change: str) -> None:
    edges = pd.DataFrame({"source": [0, 1, 1, 2], "target": [1, 0, 2, 1], "w": [1.0, 1.0, 2.0, 2.0], "y": list("aabb")})
    if change == "attribute":
        edges.loc[3, "w"] = 3.0
    elif change == "labels":
        edges["y"] = list("abab")
    else:
        edges = edges.iloc[:3]
    assert load_data(edges, target="edge:y").graph.num_edges == len(edges)


def test_parallel_edges_that_are_there_twice_pair_up_by_their_attributes() -> None:
    edges = {"source": [0, 0, 1, 1], "target": [1, 1, 0, 0], "w": [1.0, 2.0, 2.0, 1.0]}
    data = load_data(tables(None, edges))
    assert data.rows("edge").tolist() == [0, 1, 1, 0]


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 3)), min_size=1, max_size=15), st.data())
def test_doubling_and_shuffling_any_graph_gives_back_its_edges(rows: list, data: st.DataObject) -> None:
    once = pd.DataFrame(rows, columns=["source", "target", "w"])
    proper = once[once.source != once.target]
    twice = pd.concat([once, proper.rename(columns={"source": "target", "target": "source"})])
    order = data.draw(st.permutations(range(len(twice))))
    twice = twice.iloc[list(order)].reset_index(drop=True)
    loaded = load_data(twice, overrides={"w": "number"})
    if len(proper):
        assert loaded.graph.num_edges == len(once)
    ends, ids = loaded.graph.ends.numpy(), np.array(loaded.tables.nodes["id"].tolist())
    for row, edge in enumerate(loaded.rows("edge").tolist()):
        assert {*ids[ends[:, edge]].tolist()} == {twice.source[row], twice.target[row]}


def test_without_nodes_the_ids_come_from_the_edges() -> None:
    data = load_data(pd.DataFrame({"from": ["b", "a"], "to": ["c", "b"], "w": [1.0, 2.0]}))
    assert data.tables.nodes["id"].tolist() == ["b", "a", "c"]
    assert data.graph.ends.tolist() == [[0, 1], [2, 0]]
    assert data.results("node", pd.DataFrame({"y": [1, 2, 3]}))["y"].tolist() == [1, 2, 3]


def test_without_columns_nodes_get_degree_and_constants_as_default_features_and_it_is_said() -> None:
    data = load_data(tables({"id": [1, 2, 3, 4]}, {"source": [1, 1, 1], "target": [2, 3, 1]}))
    degree = np.array([4.0, 1.0, 1.0, 0.0])
    expected = np.stack([(degree - degree.mean()) / degree.std(), np.ones(4)], 1)
    np.testing.assert_allclose(data.graph.nodes.numpy(), expected, rtol=1e-5)
    assert data.graph.edges.tolist() == [[1.0]] * 3
    assert "nodes.csv: no column gives a feature, so each node has its degree and a constant" in data.notes
    assert "edges.csv: no column gives a feature, so each edge has a constant" in data.notes
    later = load_data(tables(None, {"source": ["x"], "target": ["y"]}), schema=data.schema)
    np.testing.assert_allclose(later.graph.nodes[0].tolist(), [(1 - degree.mean()) / degree.std(), 1], rtol=1e-5)


def test_a_graph_without_edges_is_a_graph() -> None:
    for edges in (None, {"source": [], "target": []}):
        data = load_data(tables({"id": ["a", "b"], "x": [1.0, 2.0]}, edges))
        assert (data.graph.num_nodes, data.graph.num_edges, data.graph.edge_width) == (2, 0, 1)
    schema = load_data(
        tables({"id": ["a"], "x": [1.0]}, {"source": ["a", "a"], "target": ["a", "a"], "w": [1, 2]})
    ).schema
    assert load_data(tables({"id": ["a", "b"]}), schema=schema).graph.edge_width == 1


def test_many_graphs_are_packed_in_the_order_of_their_table() -> None:
    """Node ids are the graph's own; rows may come in any order; results return to them."""
    nodes = {"graph": ["q", "p", "q", "p", "p"], "id": [0, 0, 1, 1, 2], "x": [10.0, 1.0, 11.0, 2.0, 3.0]}
    edges = {"graph": ["q", "p", "p"], "source": [0, 2, 0], "target": [1, 1, 1], "w": [5.0, 6.0, 7.0]}
    graphs = {"graph": ["p", "none", "q"], "toxic": [0, 1, 1]}
    data = load_data(tables(nodes, edges, graphs), target="graph:toxic")
    assert isinstance(data.graph, GraphSet)
    assert data.graph.node_offset.tolist() == [0, 3, 5]
    assert data.graph.edge_offset.tolist() == [0, 2, 3]
    assert data.graph.ends.tolist() == [[0, 2, 0], [1, 1, 1]]
    assert data.rows("node").tolist() == [3, 0, 4, 1, 2]
    assert data.rows("edge").tolist() == [2, 1, 0]
    assert data.rows("graph").tolist() == [0, -1, 1]
    x = np.array(nodes["x"])
    expected = ((x - x.mean()) / x.std())[[1, 3, 4, 0, 2]]
    np.testing.assert_allclose(data.graph.nodes[:, 0], expected, rtol=1e-6)
    result = data.results("graph", pd.DataFrame({"p": [0.25, 0.75]}))
    assert result["graph"].tolist() == ["p", "none", "q"]
    assert result["p"].tolist()[::2] == [0.25, 0.75]
    assert result["error"][1] == "graphs.csv, row 2, column graph: no node is in this graph"


def test_many_graphs_without_a_table_of_graphs_or_of_nodes() -> None:
    edges = {"graph": [7, 3, 7], "source": ["a", "a", "b"], "target": ["b", "c", "c"], "w": [1.0, 2.0, 3.0]}
    data = load_data(tables(None, edges))
    assert data.tables.graphs["graph"].tolist() == [7, 3]
    assert data.graph.node_offset.diff().tolist() == [3, 2]
    assert data.graph.edge_offset.diff().tolist() == [2, 1]
    assert len(data.results("node", pd.DataFrame({"y": range(5)}))) == 5
    again = load_data(tables(None, edges), schema=data.schema)
    torch.testing.assert_close(again.graph.nodes, data.graph.nodes)
    nodes = {"graph": [7, 3, 7, 3, 7], "id": ["a", "a", "b", "c", "c"], "x": [1.0, 2.0, 3.0, 4.0, 5.0]}
    data = load_data(tables(nodes, edges))
    assert data.graph.node_offset.tolist() == [0, 3, 5]
    assert data.rows("node").tolist() == [0, 3, 1, 4, 2]


def test_ids_that_differ_across_graphs_need_no_graph_in_the_edges() -> None:
    nodes = {"graph": ["p", "p", "q"], "id": [1, 2, 3], "x": [1.0, 2.0, 3.0]}
    data = load_data(tables(nodes, {"source": [1, 1], "target": [2, 3]}))
    assert data.graph.edge_offset.tolist() == [0, 1, 1]
    assert data.problems["edges"] == {1: "edges.csv, row 2, column target: joins nodes of two graphs"}


def test_statistics_of_many_graphs_come_from_training_graphs_alone() -> None:
    nodes = {"graph": [1, 1, 2, 2], "id": [0, 1, 0, 1], "x": [1.0, 3.0, 100.0, 200.0]}
    edges = {"graph": [1, 1, 2], "source": [0, 1, 0], "target": [1, 1, 1], "w": [5.0, 7.0, 900.0]}
    graphs = {"graph": [1, 2], "y": [0, 1]}
    schema = load_data(tables(nodes, edges, graphs), target="graph:y", train_rows=torch.tensor([0])).schema
    assert schema.nodes.columns[0].mean == [2.0]
    assert schema.edges.columns[0].mean == [6.0]


def test_bad_rows_stay_rows_with_a_message_and_a_counted_warning(caplog: pytest.LogCaptureFixture) -> None:
    nodes = {"id": ["a", "b", None, "a", "c"], "age": ["1", "2", "3", "4", "old"]}
    edges = {"source": ["a", "z", "b", None], "target": ["b", "a", "a", "c"], "w": ["1", "2", "x", "4"]}
    with caplog.at_level(logging.WARNING, "censnet"):
        data = load_data(tables(nodes, edges), overrides={"w": "number"})
    assert data.problems == {
        "nodes": {
            2: "nodes.csv, row 3, column id: the id is missing",
            3: "nodes.csv, row 4, column id: the id 'a' is in row 1 already",
            4: "nodes.csv, row 5, column age: 'old' is not a finite number",
        },
        "edges": {
            1: "edges.csv, row 2, column source: no node has the id 'z' (nodes.csv has 3 ids)",
            2: "edges.csv, row 3, column w: 'x' is not a finite number",
            3: "edges.csv, row 4, column source: the id is missing",
        },
    }
    assert data.graph.num_nodes == 3  # c is there for its edges, though its age cannot be read
    assert data.graph.num_edges == 1
    assert "nodes.csv: 3 of 5 rows cannot be used" in caplog.text
    result = data.results("node", pd.DataFrame({"label": [4, 5, 6]}))
    assert result["label"].tolist() == [4, 5, pd.NA, pd.NA, pd.NA]
    assert result["error"].isna().tolist() == [True, True, False, False, False]
    assert list(result.columns) == ["id", "age", "label", "error"]


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
({"id": [1, 1]}, {"source": [1], "target": [1]}, "nodes.csv, row 2, column id: the id 1 is in row 1 already"),
        ({"id": [1, 2]}, {"source": [1, 1], "target": [2, 5]}, "edges.csv, row 2, column target: no node has the id 5"),
        ({"id": [1, 2], "x": ["1", "2"]}, {"source": [1] * 9, "target": [2] * 9, "w": [*"12345678", "nine"]},
         "edges.csv, row 9, column w: 'nine' is not a finite number"),
    ],
)  # fmt: skip
def test_strict_names_file_row_and_column(nodes: dict, edges: dict, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_data(tables(nodes, edges), strict=True)


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (tables({"id": [1], "x": [2.0]}, {"source": ["a"], "target": ["b"]}), {}, "none of its ids is in nodes.csv"),
        (tables({"id": []}), {}, "nodes.csv: has no row with an id"),
        (tables(None, {"source": [], "target": []}), {}, "neither a table of nodes nor an edge"),
        (tables({"id": [1]}, {"source": [1]}), {}, "edges.csv: has the columns source, expected source and target"),
        (tables({"id": [1]}, {"a": [1]}), {}, "edges.csv: has the columns a, expected source and target"),
        (tables({"id": [1]}, None, {"graph": [1, 2]}), {}, "no column graph in nodes or edges"),
        (tables(None, {"source": [1], "target": [2]}), {"target": "edge:y"}, "column y: is the target, but missing"),
        (tables(None, {"source": [1], "target": [2]}), {"target": "y"}, "target is 'y', expected node:COLUMN"),
        (
            tables(None, {"source": [1], "target": [2]}),
            {"train_rows": {"edge": [5]}},
            "train_rows of edge are not rows",
        ),
        (Tables(), {}, "there is no table"),
        (7, {}, "data is a int, expected a path"),
        ("no/such/thing", {}, "there is no such file, folder or data set"),
    ],
)
def test_what_cannot_be_loaded_is_said_in_one_line(data: object, options: dict, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_data(data, **options)


def test_targets_are_never_features_and_labels_follow_the_rows() -> None:
    edges = pd.DataFrame({"source": [1, 2], "target": [2, 3], "w": [1.0, 2.0], "fraud": [True, None]})
    data = load_data(edges, target=["edge:fraud", "link"])
    assert data.schema.edges.names == ["w"]
    assert data.labels("edge", "fraud").tolist() == [True, None]
    assert load_data(edges.drop(columns="fraud"), schema=data.schema).graph.edge_width == 1
    with pytest.raises(DataError, match="column colour: is missing: it has source, target, w, fraud"):
        data.labels("edge", "colour")


def test_what_is_left_out_is_said_with_the_reason() -> None:
    edges = {
        "source": [1, 2, 3],
        "target": [2, 3, 1],
        "payment_id": [7, 8, 9],
        "unit": ["eur"] * 3,
        "w": [1.0, 2.0, 3.0],
    }
    data = load_data(tables(None, edges))
    assert "edges.csv: left out payment_id (looks like an id by its name), unit (always the same)" in data.notes
    result = data.results("edge", pd.DataFrame({"y": [1, 2, 3]}))
    assert list(result.columns) == [*edges, "y"]
    result = data.results("edge", pd.DataFrame({"y": [1, 2, 3]}), keep="ids")
    assert list(result.columns) == ["source", "target", "payment_id", "y"]


def test_csv_and_parquet_give_the_same(tmp_path: Path) -> None:
    nodes = pd.DataFrame({"id": ["n1", "n2", "n3"], "age": [1.0, None, 3.0], "x": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]})
    edges = pd.DataFrame(
        {"source": ["n1", "n3"], "target": ["n2", "n1"], "day": pd.to_datetime(["2024-01-01", "2024-06-01"])}
    )
    loaded = []
    for suffix in ("csv", "parquet"):
        folder = tmp_path / suffix
        folder.mkdir()
        write_table(nodes, folder / f"nodes.{suffix}")
        write_table(edges, folder / f"edges.{suffix}")
        loaded.append(load_data(folder).graph)
    torch.testing.assert_close(loaded[0].nodes, loaded[1].nodes)
    torch.testing.assert_close(loaded[0].edges, loaded[1].edges)
    assert loaded[0].node_width == 4


def test_roles_may_be_chosen(tmp_path: Path) -> None:
    path = tmp_path / "payments.csv"
    path.write_text("payer,payee,eur\n001,002,5\n002,003,7\n")
    data = load_data(path, overrides={"payer": "source", "payee": "target"})
    assert data.tables.nodes["id"].tolist() == ["001", "002", "003"]
    assert data.schema.edges.names == ["eur"]


def test_one_role_may_be_chosen_and_the_other_found() -> None:
    edges = pd.DataFrame({"payer": [1, 2], "target": [2, 3], "w": [1.0, 2.0]})
    assert load_data(edges, overrides={"payer": "source"}).graph.num_edges == 2
    assert load_data(edges.astype({"target": "int32"}), overrides={"payer": "source"}).graph.num_nodes == 3


def test_two_columns_with_one_role_are_an_error_that_names_both() -> None:
    edges = pd.DataFrame({"payer": [1, 2], "giver": [2, 1], "target": [2, 3], "w": [1.0, 2.0]})
    with pytest.raises(DataError, match="edges: payer and giver are both said to be the source, expected one"):
        load_data(edges, overrides={"payer": "source", "giver": "source"})


def test_a_later_table_may_call_its_ids_otherwise() -> None:
    schema = load_data(tables(None, {"source": [1, 1], "target": [2, 3], "w": [1.0, 2.0]})).schema
    later = tables({"node_id": [4, 5]}, {"src": [4], "dst": [5], "w": [2.0]})
    assert load_data(later, schema=schema).graph.edges.tolist() == [[1.0]]


def test_a_graph_or_a_set_is_data_already() -> None:
    path = Graph(torch.ones(3, 4), torch.ones(2, 1), torch.tensor([[0, 1], [1, 2]]))
    assert load_data(path).graph is path
    data = load_data(GraphSet.pack([path, path]))
    assert data.results("node", pd.DataFrame({"y": range(6)}))["graph"].tolist() == [0, 0, 0, 1, 1, 1]
    assert data.results("node", pd.DataFrame({"y": range(6)}))["id"].tolist() == [0, 1, 2, 0, 1, 2]


def test_results_need_one_value_for_each_row_of_the_tensors() -> None:
    data = load_data(pd.DataFrame({"source": [1], "target": [2]}))
    with pytest.raises(DataError, match="values has 3 rows, expected 2: one for each node"):
        data.results("node", pd.DataFrame({"y": [1, 2, 3]}))
    with pytest.raises(DataError, match="values has a column id, expected another name"):
        data.results("node", pd.DataFrame({"id": [1, 2]}))
    with pytest.raises(DataError, match="level is 'vertex', expected node, edge or graph"):
        data.results("vertex", pd.DataFrame({"y": [1, 2, 3]}))


def test_a_column_of_the_users_with_the_name_of_a_result_is_not_lost() -> None:
    edges = pd.DataFrame(
        {"source": [1, 9], "target": [2, 1], "score": [5, 6], "score_": [7, 8], "error": ["no", "yes"]}
    )
    data = load_data(Tables(pd.DataFrame({"id": [1, 2], "x": [1.0, 2.0]}), edges))
    result = data.results("edge", pd.DataFrame({"score": [0.5]}))
    assert list(result.columns) == ["source", "target", "score__", "score_", "error_", "score", "error"]
    assert result["score__"].tolist() == [5, 6]
    assert result["error_"].tolist() == ["no", "yes"]
    assert result["score"].tolist()[0] == 0.5
    assert "no node has the id 9" in result["error"][1]


def test_molecules_keep_their_rows(tmp_path: Path) -> None:
    """A text that is no molecule keeps its row, whatever featurizes the others."""
    path = tmp_path / "mols.csv"
    path.write_text("mol_id,canonical_smiles,exp\nm1,C,1\nm2,C1CC,2\nm3,,3\nm4,C,4\n")
    data = load_data(path, target="graph:exp")
    assert data.rows("graph").tolist() == [0, -1, -1, 1]
    where = "mols.csv, row 2, column canonical_smiles"
    assert data.problems["graphs"][1] == f"{where}: not a molecule: 'C1CC' (unclosed ring)"
    result = data.results("graph", pd.DataFrame({"logp": [0.5, 0.7]}))
    assert list(result.columns) == ["mol_id", "canonical_smiles", "exp", "logp", "error"]
    assert result["logp"].tolist()[::3] == [0.5, 0.7]
    with pytest.raises(DataError, match=r"mols.csv, row 2, column canonical_smiles: not a molecule: 'C1CC'"):
        load_data(path, strict=True)
    path.write_text("x,structure_text\n1,no\n")
    with pytest.raises(DataError, match="no row is a molecule; the first: not a molecule: 'no'"):
        load_data(path, overrides={"structure_text": "smiles"})


def test_a_pyg_graph_is_merged_to_single_edges() -> None:
    index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    data = load_data(Data(x=torch.eye(3), edge_index=index, edge_attr=torch.tensor([[1.0], [1.0], [2.0], [2.0]])))
    assert data.graph.num_edges == 2
    torch.testing.assert_close(data.graph.nodes, torch.eye(3))


def test_karate_is_built_in() -> None:
    data = load_data("karate", target="node:faction")
    assert (data.graph.num_nodes, data.graph.num_edges, data.graph.node_width) == (34, 78, 2)
    assert sorted(data.labels("node", "faction").value_counts().tolist()) == [17, 17]


def test_cora_is_built_in_and_stays_sparse(real_data: Path) -> None:
    data = load_data("cora")
    assert data.graph.nodes.layout == torch.sparse_csr
    assert (data.graph.num_nodes, data.graph.num_edges, data.graph.edge_width) == (2708, 5278, 3)
    assert data.labels("node", "label").nunique() == 7
    result = data.results("edge", pd.DataFrame({"p": np.arange(5278)}))
    assert result[["source", "target"]].to_numpy().T.tolist() == data.graph.ends.tolist()
    assert data.schema.from_json(data.schema.to_json()) == data.schema


def test_molecules_of_a_file_are_graphs_by_rows(tmp_path: Path) -> None:
    path = tmp_path / "mols.csv"
    path.write_text("smiles,exp\nCCO,1\nC1CC,2\nC,3\n")
    data = load_data(path, target="graph:exp")
    assert data.graph.node_offset.diff().tolist() == [3, 1]
    assert data.rows("graph").tolist() == [0, -1, 1]
    assert data.problems["graphs"][1].startswith("mols.csv, row 2, column smiles: not a molecule: 'C1CC'")
    again = load_data(path, schema=data.schema)
    torch.testing.assert_close(again.graph.nodes, data.graph.nodes)


def test_a_networkx_graph_is_data() -> None:
    data = load_data(networkx.karate_club_graph(), target="node:club")
    assert (data.graph.num_nodes, data.graph.num_edges) == (34, 78)
    assert data.labels("node", "club").nunique() == 2


@pytest.mark.parametrize("side", ["nodes", "edges"])
def test_tensors_without_channels_are_refused_with_what_to_do(side):
    widths = {"nodes": 2, "edges": 2} | {side: 0}
    graph = Graph(torch.ones(3, widths["nodes"]), torch.ones(2, widths["edges"]), torch.tensor([[0, 1], [1, 2]]))
    for one in (graph, GraphSet.pack([graph, graph])):
        with pytest.raises(DataError, match=rf"the {side} of the graph have no channels, .*len\(graph\.{side}\), 1\)"):
            load_data(one)


def test_an_id_that_is_written_otherwise_is_unknown_and_it_is_said_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id,x\n7,1\n8,2\n12,3\n")
    (tmp_path / "edges.csv").write_text("source,target\n7,8\n007,12\n 8,12\n8.0,12\n9,12\n")
    data = load_data(tmp_path)
    assert data.graph.num_edges == 1
    told = [data.problems["edges"][row] for row in (1, 2, 3, 4)]
    assert told[0] == (
        "edges.csv, row 2, column source: no node has the id '007' (there is '7': ids are compared as they are "
        "written, so write both alike)"
    )
    assert "no node has the id ' 8' (there is '8'" in told[1]
    assert "no node has the id '8.0' (there is '8'" in told[2]
    assert told[3].endswith("no node has the id '9' (nodes.csv has 3 ids)")
    (tmp_path / "edges.csv").write_text("source,target\n07,08\n08,12\n")
    with pytest.raises(DataError, match=r"the first is '07', and nodes.csv has '7' \(ids are compared as they are"):
        load_data(tmp_path)


def test_ids_that_differ_in_zeros_are_two_nodes_and_it_is_said() -> None:
    data = load_data(pd.DataFrame({"source": ["007", "7", "8"], "target": ["8", "8", "9"]}))
    assert data.graph.num_nodes == 4
    assert any("1 ids differ from others only in how they are written, such as '007' and '7'" in n for n in data.notes)


def test_an_id_of_another_graph_is_not_called_written_otherwise() -> None:
    nodes = {"graph": [1, 1, 2, 2], "id": ["a", "b", "a", "c"], "x": [1.0, 2.0, 3.0, 4.0]}
    edges = {"graph": [1, 1, 2], "source": ["a", "a", "a"], "target": ["b", "c", "c"]}
    assert (
        "no node has the id 'c' (in nodes.csv, in the same graph)"
        in load_data(tables(nodes, edges)).problems["edges"][1]
    )


@pytest.mark.parametrize("dtype", ["float64", "Float64", "double[pyarrow]", "float32", "float[pyarrow]"])
def test_integers_that_pandas_made_fractions_are_found(dtype: str) -> None:
    edges = pd.DataFrame({"source": pd.Series([1, None, 3], dtype=dtype), "target": [2, 3, 2]})
    data = load_data(Tables(pd.DataFrame({"id": [1, 2, 3], "x": [1.0, 2.0, 3.0]}), edges))
    assert data.rows("edge").tolist() == [0, -1, 1]
    far = pd.DataFrame({"source": pd.Series([2**24 + 1, 2.0**53], dtype=dtype), "target": [2, 3]})
    with pytest.raises(DataError, match=r"column source: .* is an id stored as a fraction, expected less than"):
        load_data(far)


@pytest.mark.parametrize("kind", ["category", "date32[pyarrow]", "uint64", "decimal", "bool"])
def test_ids_of_rare_types_are_found(kind: str) -> None:
    values = {
        "category": ["007", "7", "x"],
        "date32[pyarrow]": pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-03"]),
        "uint64": [2**64 - 1, 2**64 - 2, 3],
        "decimal": [2**64, 2**64 + 1, 1],
        "bool": [True, False, True],
    }[kind]
    ids = pd.Series(values).astype(pd.ArrowDtype(pa.decimal128(20, 0)) if kind == "decimal" else kind)
    edges = pd.DataFrame({"source": ids, "target": ids.iloc[[1, 2, 0]].array})
    data = load_data(edges)
    assert data.graph.num_nodes == ids.nunique()
    assert not data.problems


def test_one_id_as_text_and_as_a_number_is_refused_in_one_line() -> None:
    edges = pd.DataFrame({"source": pd.Series([1, "1", 2], dtype=object), "target": [5, 6, 7]})
    with pytest.raises(
        DataError, match="row 2, column source: '1' is an id, and so is 1 in row 1: give all ids one type"
    ):
        load_data(edges)


def test_ids_are_not_normalized() -> None:
    names = ["é", "e\u0301", "A", "a", "a\0b", "a"]
    data = load_data(pd.DataFrame({"source": names, "target": ["z"] * 6}))
    assert data.graph.num_nodes == 6
    assert data.results("edge", pd.DataFrame({"p": range(6)}))["source"].tolist() == names


def test_a_run_knows_the_columns_that_were_called_source_and_target(tmp_path: Path) -> None:
    (tmp_path / "pay.csv").write_text("payer.no,payee,w\n007,8,1\n7,007,2\n8,7,3\n")
    data = load_data(tmp_path / "pay.csv", overrides={"payer.no": "source", "edges.payee": "target"})
    assert data.graph.num_nodes == 3
    later = load_data(tmp_path / "pay.csv", schema=data.schema)
    assert torch.equal(later.graph.ends, data.graph.ends)
    assert later.tables.edges["payer.no"].tolist() == ["007", "7", "8"]


def _assays(**columns: list) -> Tables:
    """Three little molecules as graphs, with labels."""
    names = ["a", "b", "c", "d"]
    nodes = pd.DataFrame({"graph": [name for name in names for _ in "12"], "id": [1, 2] * 4, "x": range(8)})
    edges = pd.DataFrame({"graph": names, "source": 1, "target": 2, "w": range(4)})
    return Tables(nodes, edges, pd.DataFrame({"graph": names, **columns}))


def test_a_star_is_every_column_that_is_no_key_no_split_no_id_and_not_said_to_be_a_feature() -> None:
    tables = _assays(
        **{"liver, bile": [0, 1, 1, 0], "heart": [1, 0, 0, 1], "kelvin": [1.5, 2, 3, 4], "split": ["train"] * 4},
        assay_id=[7, 8, 9, 9], empty=[None] * 4,
    )  # fmt: skip
    data = load_data(tables, target="graph:*", overrides={"kelvin": "number"})
    assert data.schema.graphs.targets == ["liver, bile", "heart"]
    (note,) = (note for note in data.notes if "graph:*" in note)
    assert note.startswith('graphs: graph:* is 2 columns: "liver, bile", heart; no target: split (')
    assert "assay_id (looks like an id by its name), empty (holds no value)" in note
    assert load_data(tables, target=["graph:*", "graph:heart"]).schema.graphs.targets == [
        "liver, bile", "kelvin", "heart",
    ]  # fmt: skip
    with pytest.raises(DataError, match=r"nodes: node:\* is no column"):
        load_data(tables, target="node:*", overrides={"x": "number"})


def test_a_star_of_many_columns_names_the_first_few() -> None:
    tables = _assays(**{f"task {number}": [0, 1, 1, 0] for number in range(27)})
    data = load_data(tables, target="graph:*")
    assert len(data.schema.graphs.targets) == 27
    assert "graph:* is 27 columns: task 0, task 1, task 2, task 3, task 4 and 22 more" in data.notes[0]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("graph:liver, bile", 'graphs, column liver: is the target, but missing: did you mean graph:"liver, bile"?'),
        ("graph:haert", "graphs, column haert: is the target, but missing: did you mean graph:heart?"),
        (("graph", "liver"), "graphs, column liver: is the target, but missing: did you mean"),
        ("graph:zzz", "is the target, but missing: it has graph, liver, bile, heart"),
    ],
)
def test_a_target_that_is_missing_names_what_may_be_meant(target: object, message: str) -> None:
    with pytest.raises(DataError) as found:
        load_data(_assays(**{"liver, bile": [0, 1, 1, 0], "heart": [1, 0, 0, 1]}), target=target)
    assert message in str(found.value)


def test_load_data_reads_targets_with_kinds_as_training_does() -> None:
    tables = _assays(**{"liver, bile": [0, 1, 1, 0], "heart": [1, 0, 0, 1]})
    for target in ('graph:"liver, bile"=binary:0,heart=regression', [("graph", "liver, bile"), "graph: heart "]):
        assert load_data(tables, target=target).schema.graphs.targets == ["liver, bile", "heart"]


def test_features_that_are_clipped_are_counted_in_a_note(caplog: pytest.LogCaptureFixture) -> None:
    edges = pd.DataFrame({"source": [0, 1, 2, 3], "target": [1, 2, 3, 0], "eur": [1.0, 2.0, 1.0, 5e9], "fee": range(4)})
    typed = read_data(edges)
    assert not any("clipped" in note for note in typed.encode().notes)
    said = "the table: values beyond 1,000,000 standard deviations are clipped, in eur (1 row)"
    encoded = typed.encode({"edge": [0, 1, 2]})
    assert [note for note in encoded.notes if "clipped" in note] == [said]
    assert not any("clipped" in note for note in typed.encode({"edge": [0, 1, 2, 3]}).notes)
    with caplog.at_level(logging.WARNING, "censnet"):
        assert said in load_data(edges, schema=encoded.schema).notes
    assert said in caplog.text
