from __future__ import annotations

import math
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.utils import to_undirected

from censnet.data import load_data
from censnet.data.interop.convert import from_networkx, from_pandas, from_pyg, to_networkx, to_pandas, to_pyg, to_tables
from censnet.data.tables.files import Tables
from censnet.errors import DataError
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet


@st.composite
def graphs(draw: st.DrawFn, node_width: int | None = None, edge_width: int | None = None) -> Graph:
    """Small graphs with loops, parallel edges in both orientations, isolated nodes and few different attributes."""
    num_nodes = draw(st.integers(1, 6))
    node = st.integers(0, num_nodes - 1)
    ends = draw(st.lists(st.tuples(node, node), max_size=12))
    node_width = draw(st.integers(0, 2)) if node_width is None else node_width
    edge_width = draw(st.integers(0, 2)) if edge_width is None else edge_width
    dtype = draw(st.sampled_from([torch.float32, torch.float64]))
    few = st.sampled_from([0.0, 1.0, -2.5, math.nan, math.inf])
    nodes, edges = (
        draw(st.lists(st.lists(few, min_size=width, max_size=width), min_size=rows, max_size=rows))
        for rows, width in ((num_nodes, node_width), (len(ends), edge_width))
    )
    return Graph(
        torch.tensor(nodes, dtype=dtype).reshape(num_nodes, node_width),
        torch.tensor(edges, dtype=dtype).reshape(len(ends), edge_width),
        torch.tensor(ends, dtype=torch.long).reshape(-1, 2).t(),
    )


def assert_same(one: Graph | GraphSet, two: Graph | GraphSet) -> None:
    assert type(one) is type(two)
    for name in ("nodes", "edges", "ends", "node_offset", "edge_offset"):
        if hasattr(one, name):
            torch.testing.assert_close(getattr(one, name), getattr(two, name), rtol=0, atol=0, equal_nan=True)


# -- PyTorch Geometric ------------------------------------------------------------------------------------------------


@given(graphs())
@settings(max_examples=150, deadline=None)
def test_a_graph_comes_back_from_pyg(graph):
    data = to_pyg(graph, y=torch.arange(graph.num_nodes))
    loops = int((graph.ends[0] == graph.ends[1]).sum())
    assert data.edge_index.shape[1] == 2 * graph.num_edges - loops
    assert data.edge_attr.shape[0] == data.edge_index.shape[1]
    back = from_pyg(data)
    assert_same(back.graph, graph)
    assert torch.equal(back.extra["y"], torch.arange(graph.num_nodes))


@given(st.lists(graphs(node_width=2, edge_width=1), min_size=1, max_size=5))
@settings(max_examples=50, deadline=None)
def test_a_set_comes_back_from_a_batch_which_pyg_can_cut(graph_list):
    graph_list = [Graph(g.nodes.float(), g.edges.float(), g.ends) for g in graph_list]
    packed = GraphSet.pack(graph_list)
    batch = to_pyg(packed, y=torch.arange(len(packed)))
    assert_same(from_pyg(batch).graph, packed)
    expected = [to_pyg(graph, y=torch.tensor([number])) for number, graph in enumerate(graph_list)]
    for found, wanted in zip(batch.to_data_list(), expected, strict=True):
        for name in ("x", "edge_index", "edge_attr", "y"):
            torch.testing.assert_close(found[name], wanted[name], rtol=0, atol=0, equal_nan=True)
    assert_same(from_pyg(expected).graph, packed)


def test_everything_of_a_pyg_object_survives_the_round_trip():
    data = Data(
        x=torch.tensor([[1], [2], [3]]),  # whole numbers, as from_smiles makes them
        edge_index=torch.tensor([[2, 0, 1, 1, 1], [1, 1, 0, 2, 1]]),
        edge_attr=torch.tensor([[7], [5], [5], [7], [9]]),
        y=torch.tensor([0, 1, 0]),
        pos=torch.rand(3, 3),
        train_mask=torch.tensor([True, False, False]),
        edge_label=torch.tensor([1, 0, 0, 1, 1]),
        edge_label_index=torch.tensor([[0], [1]]),
        smiles="CCO",
        num_rings=2,
    )
    found = from_pyg(data)
    assert found.graph.ends.tolist() == [[2, 0, 1], [1, 1, 1]]
    assert found.graph.edges.tolist() == [[7.0], [5.0], [9.0]]
    assert found.edge_rows.tolist() == [0, 1, 1, 0, 2]
    back = found.to_pyg()
    assert set(back.keys()) == set(data.keys())
    for name in data.keys():  # noqa: SIM118 - a Data iterates over pairs
        same = torch.equal(back[name], data[name]) if isinstance(data[name], torch.Tensor) else back[name] == data[name]
        assert same, name


def test_embeddings_go_back_onto_both_directions_in_the_users_order():
    data = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[2, 0, 1, 1], [1, 1, 0, 2]]))
    back = from_pyg(data).to_pyg(nodes=torch.zeros(3, 5), edges=torch.tensor([[10.0], [20.0]]))
    assert back.edge_attr.squeeze(1).tolist() == [10, 20, 20, 10]
    assert back.x.shape == (3, 5)
    assert data.edge_attr is None
    assert data.x.shape == (3, 1)


def test_the_rth_copies_of_the_two_directions_are_one_edge():
    columns = torch.tensor([[0, 1, 0, 1], [1, 0, 1, 0]])
    found = from_pyg(Data(edge_index=columns, edge_attr=torch.tensor([[1.0], [1.0], [2.0], [2.0]]), num_nodes=2))
    assert found.edge_rows.tolist() == [0, 0, 1, 1]
    alike = from_pyg(Data(edge_index=columns, num_nodes=2))
    assert alike.edge_rows.tolist() == [0, 0, 1, 1]


def test_directions_that_list_parallel_edges_in_other_orders_are_paired_by_attributes():
    ends, value = torch.tensor([[0, 1], [1, 0]]), torch.tensor([[1.0], [2.0]])  # a: 0 -> 1, b: 1 -> 0
    data = Data(edge_index=torch.cat([ends, ends.flip(0)], 1), edge_attr=torch.cat([value, value]), num_nodes=2)
    found = from_pyg(data)
    assert found.edge_rows.tolist() == [0, 1, 0, 1]
    assert found.graph.edges.tolist() == [[1.0], [2.0]]


def test_edges_given_once_are_taken_and_said():
    found = from_pyg(Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1, 1], [1, 2, 0]])))
    assert found.graph.num_edges == 3
    assert found.notes == ["edge_index has each edge once (1 of 3 columns have no reverse)"]


def test_directions_with_different_attributes_are_edges_of_their_own():
    data = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), edge_attr=torch.tensor([[1.0], [2.0]]), num_nodes=2)
    found = from_pyg(data)
    assert found.graph.edges.tolist() == [[1.0], [2.0]]
    assert "different attributes" in found.notes[0]


def test_directions_are_compared_to_the_last_bit():
    value = torch.tensor([[1.0], [1.0 + 1e-12]], dtype=torch.float64)  # equal as float32
    found = from_pyg(Data(edge_index=torch.tensor([[0, 1], [1, 0]]), edge_attr=value, num_nodes=2))
    assert torch.equal(found.graph.edges, value)


def test_labels_that_differ_between_directions_are_said():
    data = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), edge_label=torch.tensor([0, 1]), num_nodes=2)
    assert "edge_label differs between the two directions of 1 edges" in from_pyg(data).notes


def test_edge_weights_are_features_where_there_are_no_attributes():
    data = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), edge_weight=torch.tensor([0.5, 0.5]), num_nodes=2)
    found = from_pyg(data)
    assert found.graph.edges.tolist() == [[0.5]]
    assert any("edge_weight" in note for note in found.notes)


@given(graphs(node_width=1))
@settings(max_examples=50, deadline=None)
def test_what_pyg_calls_undirected_is_merged(graph):
    simple = to_undirected(graph.ends, num_nodes=graph.num_nodes)
    found = from_pyg(Data(x=graph.nodes, edge_index=simple))
    pairs = {tuple(sorted(pair)) for pair in graph.ends.t().tolist()}
    assert sorted(tuple(sorted(pair)) for pair in found.graph.ends.t().tolist()) == sorted(pairs)


def test_sparse_nodes_stay_sparse_and_no_edges_are_no_trouble():
    found = from_pyg(Data(x=torch.eye(4).to_sparse_csr()))
    assert found.graph.nodes.layout == torch.sparse_csr
    assert found.graph.num_edges == 0
    assert to_pyg(found.graph).x.layout == torch.sparse_csr


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (HeteroData(), "data is a HeteroData, expected Data, Batch or a list"),
        ([], "the list of graphs is empty"),
        ([Data(x=torch.ones(1, 1)), Data(y=torch.ones(1))], "do not have the same attributes"),
        ([Data(x=torch.ones(1, 1)), 3], "item 1 of the list is a int, expected Data"),
        (
            Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [5]])),
            r"ends\[1, 0\] is 5, expected a node from 0 to 1",
        ),
        (
            Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]]), edge_attr=torch.ones(3, 1)),
            "edge_attr has shape",
        ),
    ],
)
def test_what_is_not_a_graph_is_refused_in_one_line(data, message):
    with pytest.raises(ValueError, match=message):
        from_pyg(data)


def test_pyg_as_tables_keeps_levels_apart():
    batch = Batch.from_data_list(
        [
            Data(
                x=torch.rand(2, 3),
                edge_index=torch.tensor([[0, 1], [1, 0]]),
                edge_attr=torch.rand(2, 2),
                y=torch.tensor([1.5]),
            ),
            Data(
                x=torch.rand(1, 3),
                edge_index=torch.empty(2, 0, dtype=torch.long),
                edge_attr=torch.rand(0, 2),
                y=torch.tensor([2.5]),
            ),
        ]
    )
    tables = to_tables(batch)
    assert tables.graphs["y"].tolist() == [1.5, 2.5]
    assert tables.nodes["graph"].tolist() == [0, 0, 1]
    assert np.asarray(tables.nodes["x"].tolist()) == pytest.approx(batch.x.numpy())
    assert np.asarray(tables.edges["edge_attr"].tolist()) == pytest.approx(batch.edge_attr.numpy())
    single = to_tables(
        Data(
            x=torch.rand(3, 2),
            y=torch.tensor([0, 1, 2]),
            edge_index=torch.tensor([[0], [1]]),
            train_mask=torch.tensor([True, False, False]),
            val_mask=torch.tensor([False, True, False]),
            test_mask=torch.tensor([False, False, False]),
        )
    )
    assert single.nodes["val_mask"].tolist() == [False, True, False]
    assert single.nodes["y"].tolist() == [0, 1, 2]
    assert to_tables("not a graph") is None


# -- pandas -----------------------------------------------------------------------------------------------------------


@given(graphs(), st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_graph_comes_back_from_pandas(graph, named):
    ids = [f"n{number}" for number in range(graph.num_nodes)] if named else None
    tables = to_pandas(graph, node_ids=ids)
    back = from_pandas(tables.nodes, tables.edges)
    if graph.node_width == 0 or graph.edge_width == 0:  # an empty table has no type
        back = Graph(back.nodes.to(graph.nodes.dtype), back.edges.to(graph.edges.dtype), back.ends)
    assert_same(back, graph)


@given(st.lists(graphs(node_width=1, edge_width=2), min_size=1, max_size=4), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_a_set_comes_back_from_pandas_in_any_order_of_the_edges(graph_list, random):
    packed = GraphSet.pack([Graph(g.nodes.float(), g.edges.float(), g.ends) for g in graph_list])
    tables = to_pandas(packed)
    assert_same(from_pandas(tables.nodes, tables.edges), packed)
    order = list(range(len(tables.edges)))
    random.shuffle(order)
    shuffled = from_pandas(tables.nodes, tables.edges.iloc[order])
    assert sorted(shuffled.edge_offset.tolist()) == packed.edge_offset.tolist()
    torch.testing.assert_close(shuffled.nodes, packed.nodes, rtol=0, atol=0, equal_nan=True)


def test_sparse_features_come_back_from_pandas_sparse():
    graph = Graph(torch.eye(4).to_sparse_csr(), torch.ones(1, 1), torch.tensor([[0], [3]]))
    tables = to_pandas(graph)
    back = from_pandas(tables.nodes, tables.edges)
    assert back.nodes.layout == torch.sparse_csr
    torch.testing.assert_close(back.nodes.to_dense(), torch.eye(4))


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        ({"id": [1, 2]}, {"source": [1, 1], "target": [2, 9]}, r"edges, row 2, column target: no node has the id 9"),
        ({"id": [1, 1]}, {"source": [1], "target": [1]}, r"nodes, row 2, column id: the id 1 occurs twice"),
        (
            {"id": [1], "kind": ["a"]},
            {"source": [1], "target": [1]},
            r"nodes, column kind: has the type .* expected numbers",
        ),
        ({"name": [1]}, {"source": [1], "target": [1]}, r"nodes: no column id"),
        ({"id": [1], "graph": [0]}, {"source": [1], "target": [1]}, r"edges: the column graph is in one table only"),
    ],
)
def test_tables_that_are_no_graph_name_the_row(nodes, edges, message):
    with pytest.raises(DataError, match=message):
        from_pandas(pd.DataFrame(nodes), pd.DataFrame(edges))


# -- networkx ---------------------------------------------------------------------------------------------------------

NAMES = st.one_of(
    st.integers(-3, 10**20), st.text(max_size=3), st.tuples(st.integers(0, 3), st.text(max_size=1)), st.none().map(str)
)
VALUES = st.one_of(
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.booleans(),
    st.text(max_size=3),
    st.none(),
    st.lists(st.integers(), max_size=2),
)
ATTRIBUTES = st.dictionaries(st.sampled_from(["weight", "id", "id_", "source", "key", "color", 7]), VALUES, max_size=3)


@st.composite
def networks(draw: st.DrawFn) -> Any:
    graph = draw(st.sampled_from([nx.Graph, nx.MultiGraph, nx.DiGraph, nx.MultiDiGraph]))()
    names = draw(st.lists(NAMES, min_size=1, max_size=6, unique=True))
    graph.add_nodes_from((name, draw(ATTRIBUTES)) for name in names)
    for _ in range(draw(st.integers(0, 8))):
        first, second = draw(st.sampled_from(names)), draw(st.sampled_from(names))
        if graph.is_multigraph():
            key = graph.add_edge(first, second, draw(st.sampled_from([None, "a", 5])))
            graph.edges[first, second, key].update(draw(ATTRIBUTES))
        else:
            graph.add_edge(first, second)
            graph.edges[first, second].update(draw(ATTRIBUTES))
    graph.graph.update(draw(ATTRIBUTES))
    return graph


def exact(value: Any) -> Any:
    """A value that is equal only to the same value of the same type, NaN included."""
    return repr(value), type(value)


def as_text(graph: Any) -> tuple[Any, ...]:
    def fields(data: dict[Any, Any]) -> list[Any]:
        return sorted((repr(name), exact(value)) for name, value in data.items())

    edges = graph.edges(keys=True, data=True) if graph.is_multigraph() else graph.edges(data=True)
    return (
        type(graph),
        fields(graph.graph),
        [(exact(name), fields(data)) for name, data in graph.nodes(data=True)],
        [(*map(exact, edge[:-1]), fields(edge[-1])) for edge in edges],
    )


@given(networks())
@settings(max_examples=150, deadline=None)
def test_a_networkx_graph_comes_back_with_names_types_keys_and_gaps(graph):
    assert as_text(from_networkx(graph).to_networkx()) == as_text(graph)


@given(graphs())
@settings(max_examples=40, deadline=None)
def test_a_graph_comes_back_from_networkx(graph):
    network = to_networkx(graph)
    assert network.number_of_edges() == graph.num_edges
    assert network.number_of_nodes() == graph.num_nodes
    tables = from_networkx(network).tables
    back = from_pandas(tables.nodes, tables.edges.drop(columns="key", errors="ignore"))
    rows = [sorted(map(sorted, g.ends.t().tolist())) for g in (graph, back)]
    assert rows[0] == rows[1]
    torch.testing.assert_close(back.nodes.double(), graph.nodes.double(), equal_nan=True)
    assert sorted(map(str, back.edges.double().tolist())) == sorted(map(str, graph.edges.double().tolist()))


def test_a_directed_graph_is_taken_as_undirected_and_said():
    found = from_networkx(nx.DiGraph([("a", "b"), ("b", "a")]))
    assert found.notes == ["the graph is directed: its 2 arcs are taken as undirected edges"]
    assert found.tables.edges[["source", "target"]].to_numpy().tolist() == [["a", "b"], ["b", "a"]]


def test_attributes_become_typed_columns():
    network = nx.Graph()
    network.add_node("a", age=3, city="Oslo")
    network.add_node("b", age=5)
    network.add_edge("a", "b", weight=0.5)
    tables = from_networkx(network).tables
    assert tables.nodes["age"].dtype == np.int64
    assert tables.edges["weight"].dtype == np.float64
    assert tables.nodes["city"].isna().tolist() == [False, True]


def test_nodes_of_many_graphs_are_named_by_graph_and_number():
    path = Graph(torch.ones(2, 1), torch.ones(1, 1), torch.tensor([[0], [1]]))
    network = to_networkx(GraphSet.pack([path, path]))
    assert sorted(network.edges) == [((0, 0), (0, 1)), ((1, 0), (1, 1))]


def test_networkx_and_pyg_objects_load_with_a_result_for_each_of_their_edges():
    network = nx.MultiGraph()
    network.add_edges_from([(1, "1", {"w": 1.0}), ("1", (0, 0), {"w": 2.0}), (1, "1", {"w": 5.0})])
    data = load_data(network)
    assert (data.graph.num_nodes, data.graph.num_edges) == (3, 3)
    assert data.problems == {}
    pairs = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    both = load_data(
        Data(x=torch.rand(3, 2), edge_index=pairs, edge_attr=torch.tensor([[1.0, 2], [1, 2], [3, 4], [3, 4]]))
    )
    assert both.graph.num_edges == 2
    assert both.results("edge", pd.DataFrame({"p": [0.1, 0.9]}))["p"].tolist() == [0.1, 0.1, 0.9, 0.9]


def test_what_is_not_networkx_is_refused():
    with pytest.raises(ValueError, match="graph is a list, expected a networkx graph"):
        from_networkx([1, 2])
    with pytest.raises(ValueError, match="the tables have no edges"):
        to_networkx(Tables(nodes=pd.DataFrame({"id": [1]})))


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("x", torch.tensor(1.0), "x is one number, expected a row for each of"),
        ("x", "all", "x is a str, expected a row for each of"),
        ("edge_attr", torch.tensor(1.0), "edge_attr is one number, expected a row for each of 2 edges"),
        ("train_mask", torch.tensor(True), r"train_mask has shape \(\), expected a row for each row"),
    ],
)
def test_an_attribute_without_rows_is_refused(name, value, said):
    data = Data(edge_index=torch.tensor([[0, 1], [1, 2]]), y=torch.tensor([0, 1, 0]), num_nodes=3)
    data[name] = value
    with pytest.raises(DataError, match=said):
        load_data(data)


def test_graphs_of_a_list_have_features_of_one_width():
    ends = torch.tensor([[0], [1]])
    with pytest.raises(ValueError, match=r"x of graph 1 has shape \(2, 4\), expected as many columns as in graph 0"):
        load_data([Data(x=torch.ones(2, 3), edge_index=ends), Data(x=torch.ones(2, 4), edge_index=ends)])
