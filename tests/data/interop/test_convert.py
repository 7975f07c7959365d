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
from torch_geometric.data import Batch, Data

from censnet.data import load_data
from censnet.data.interop.convert import to_tables
from censnet.data.interop.networkx_graphs import KEYS, from_networkx
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


def to_networkx(tables: Tables, attributes: dict[Any, Any]) -> Any:
    """The inverse of `from_networkx`: the same class, names, attributes, keys and order."""
    pairs = list(zip(tables.edges["source"].tolist(), tables.edges["target"].tolist(), strict=True))
    several = "key" in tables.edges or len({pair if tables.directed else frozenset(pair) for pair in pairs}) < len(
        pairs
    )
    kinds = ((nx.Graph, nx.MultiGraph), (nx.DiGraph, nx.MultiDiGraph))
    graph = kinds[bool(tables.directed)][several]()
    graph.graph.update(attributes)
    graph.add_nodes_from(zip(tables.nodes["id"].tolist(), fields_of(tables.nodes, ("id",)), strict=True))
    data = fields_of(tables.edges, ("source", "target", "key"))
    for row, (pair, found) in enumerate(zip(pairs, data, strict=True)):
        key = (tables.edges["key"].tolist()[row],) if "key" in tables.edges else ()
        graph.add_edges_from([(*pair, *key, found)])
    return graph


def fields_of(frame: pd.DataFrame, keys: tuple[str, ...]) -> list[dict[Any, Any]]:
    """The attributes of each row: what is not a key and not missing; `id_` is called `id`."""
    rows: list[dict[Any, Any]] = [{} for _ in range(len(frame))]
    for name in frame.columns.difference(keys, sort=False):
        shown = name.removesuffix("_") if isinstance(name, str) and name.rstrip("_") in KEYS else name
        absent = [value is pd.NA for value in frame[name]]
        for row, value, missing in zip(rows, frame[name].tolist(), absent, strict=True):
            if not missing:
                row[shown] = value
    return rows


@pytest.mark.slow
@given(networks())
@settings(max_examples=150, deadline=None)
def test_a_networkx_graph_comes_back_with_names_types_keys_and_gaps(graph):
    assert as_text(to_networkx(from_networkx(graph), graph.graph)) == as_text(graph)


def test_a_networkx_graph_is_directed_as_it_says():
    found = from_networkx(nx.DiGraph([("a", "b"), ("b", "a")]))
    assert found.directed is True
    assert found.edges[["source", "target"]].to_numpy().tolist() == [["a", "b"], ["b", "a"]]
    assert from_networkx(nx.Graph([("a", "b")])).directed is False


def test_attributes_become_typed_columns():
    network = nx.Graph()
    network.add_node("a", age=3, city="Oslo")
    network.add_node("b", age=5)
    network.add_edge("a", "b", weight=0.5)
    tables = from_networkx(network)
    assert tables.nodes["age"].dtype == np.int64
    assert tables.edges["weight"].dtype == np.float64
    assert tables.nodes["city"].isna().tolist() == [False, True]


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
