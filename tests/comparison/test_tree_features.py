from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from censnet.comparison.tree_edge_features import edge_features
from censnet.comparison.tree_gaps import time_gaps
from censnet.comparison.tree_graph import TreeGraph
from censnet.comparison.tree_labels import label_sums
from censnet.comparison.tree_node_features import node_features
from censnet.comparison.tree_triads import triad_sums
from censnet.errors import DataError


@pytest.fixture
def edges() -> pd.DataFrame:
    """A multigraph with parallel edges, reverse edges and loops."""
    draw = np.random.default_rng(0)
    ends = draw.integers(0, 12, (90, 2))
    return pd.DataFrame(
        {
            "source": ends[:, 0],
            "target": ends[:, 1],
            "amount": draw.normal(size=90),
            "channel": draw.choice(["card", "cash"], 90),
            "time": draw.integers(0, 40, 90).astype(float),
        }
    )


def test_features_of_a_small_graph_by_hand():
    edges = pd.DataFrame({"source": list("ababc"), "target": list("babca"), "amount": [1.0, 2, 3, 4, 5]})
    found = edge_features(
        TreeGraph.of(edges, edge_columns=["amount"]), label_sums(np.array([1, 0, 1, 1, 0]), np.ones(5, bool), False)
    )
    first = found.iloc[0]  # a -> b, which also goes in row 2
    assert first["source, outgoing: edges"] == 2
    assert first["source, outgoing: neighbors"] == 1
    assert first["source, incoming: edges"] == 2
    assert first["pair: edges"] == 2
    assert first["reverse: edges"] == 1
    assert first["reverse: amount mean"] == 2
    assert first["target, outgoing: amount max"] == 4
    assert first["source, outgoing: known labels, count of kind 1"] == 1  # row 2, not row 0 itself
    assert first["pair: known labels, share of kind 1"] == 1
    assert first["reverse: known labels, count of kind 0"] == 1
    assert first["source, incoming: known labels, count of kind 0"] == 2
    assert first["triads source towards, target away"] == 1  # c -> a and b -> c
    assert first["triads source towards of kind 0, target away of kind 1"] == 1


@pytest.mark.parametrize("numeric", [False, True])
def test_no_feature_of_an_edge_depends_on_its_own_label(edges, numeric):
    graph = TreeGraph.of(edges, edge_columns=["amount", "channel"])
    draw = np.random.default_rng(1)
    labels = draw.normal(size=90) if numeric else draw.integers(0, 2, 90)
    known = draw.random(90) < 0.7
    before = edge_features(graph, label_sums(labels, known, numeric), time=edges["time"].to_numpy())
    for row in np.flatnonzero(known)[:25]:
        other = labels.copy()
        other[row] = labels[row] + 3 if numeric else 1 - labels[row]
        after = edge_features(graph, label_sums(other, known, numeric), time=edges["time"].to_numpy())
        np.testing.assert_allclose(after.iloc[row], before.iloc[row], atol=1e-6)
        assert not after.equals(before)  # others see it


def test_labels_that_are_not_known_change_nothing(edges):
    graph, known = TreeGraph.of(edges), np.arange(90) < 60
    labels = np.random.default_rng(1).integers(0, 2, 90)
    hidden = np.where(known, labels, 1 - labels)
    one, other = (edge_features(graph, label_sums(seen, known, False)) for seen in (labels, hidden))
    pd.testing.assert_frame_equal(one, other)


def test_triads_are_counted_as_in_the_adjacency_matrix(edges):
    edges = edges.query("source != target")
    u, v = edges["source"].to_numpy(), edges["target"].to_numpy()
    adjacency = np.zeros((12, 12))
    np.add.at(adjacency, (u, v), 1)
    away, towards = adjacency, adjacency.T
    expected = [(one @ two.T)[u, v] for one in (away, towards) for two in (away, towards)]
    np.testing.assert_allclose(triad_sums(u, v, np.ones((len(u), 1)), 12), np.stack(expected, 1))


def test_triads_of_a_star_are_found_without_its_square():
    leaves = np.arange(1, 100_001)
    assert triad_sums(np.zeros_like(leaves), leaves, np.ones((100_000, 1)), 100_001).sum() == 0


def test_gaps_are_those_of_a_search_through_all_edges(edges):
    u, v, time = (edges[name].to_numpy() for name in ("source", "target", "time"))
    gaps = time_gaps(u, v, time, 12)
    rank = np.lexsort((np.arange(90), time)).argsort()
    for row in range(90):
        before, after = rank < rank[row], rank > rank[row]
        for name, there in {
            "source, incoming": v == u[row],
            "target, incoming": v == v[row],
            "reverse": (u == v[row]) & (v == u[row]),
        }.items():
            since, until = time[row] - time[there & before], time[there & after] - time[row]
            expected = since.min() if len(since) else np.nan, until.min() if len(until) else np.nan
            found = gaps[f"{name}: time since last"][row], gaps[f"{name}: time until next"][row]
            np.testing.assert_equal(found, expected)


def test_features_of_nodes_count_neighbors_as_networkx_does(edges):
    draw = np.random.default_rng(2)
    nodes = pd.DataFrame({"id": range(14), "x": draw.normal(size=14)})  # two without an edge
    graph = TreeGraph.of(edges, nodes, ["amount"], ["x"])
    labels, known = draw.integers(0, 2, 14), np.ones(14, bool)
    found = node_features(graph, label_sums(labels, known, False))
    net = nx.DiGraph(list(zip(edges["source"], edges["target"], strict=True)))
    net.add_nodes_from(range(14))
    for node in range(14):
        assert found["outgoing: neighbors"][node] == net.out_degree(node)
        assert found["incoming: neighbors"][node] == net.in_degree(node)
        both = set(net.successors(node)) & set(net.predecessors(node)) - {node}
        assert found["mutual neighbors"][node] == len(both)
        out = edges[edges["source"] == node]
        assert found["outgoing: edges"][node] == len(out)
        np.testing.assert_allclose(found["outgoing: amount mean"][node], out["amount"].mean(), rtol=1e-5)
        expected = nodes["x"][out["target"]].max()
        np.testing.assert_allclose(found["outgoing: neighbor x max"][node], expected, rtol=1e-5)
    changed = node_features(graph, label_sums(np.where(np.arange(14) == 3, 1 - labels, labels), known, False))
    pd.testing.assert_series_equal(changed.iloc[3], found.iloc[3])  # though node 3 may have a loop


def test_nodes_of_many_graphs_stay_apart():
    edges = pd.DataFrame({"graph": [0, 1], "source": [0, 0], "target": [1, 1]})
    nodes = pd.DataFrame({"graph": [0, 0, 1, 1], "id": [0, 1, 0, 1]})
    graph = TreeGraph.of(edges, nodes)
    assert graph.source.tolist() == [0, 2]
    assert edge_features(graph)["pair: edges"].tolist() == [1, 1]
    with pytest.raises(DataError, match="an end that is no id of the nodes"):
        TreeGraph.of(edges.assign(target=2), nodes)
