from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import samples

from censnet.comparison.tree_columns import edge_times, is_by_time, tree_graph
from censnet.comparison.tree_edge_features import edge_features
from censnet.comparison.tree_graph import TreeGraph
from censnet.comparison.tree_labels import label_sums
from censnet.comparison.tree_node_features import graph_features
from censnet.levels import Level
from censnet.ops.graph_set import GraphSet
from censnet.pipeline.prepare import prepare


def test_a_category_is_one_column_of_codes():
    edges = pd.DataFrame(
        {
            "source": list("aabbccddaa"),
            "target": list("bcdabdacdc"),
            "way": ["card", "wire", None, "card", "cash", "wire", "card", "cash", "wire", "card"],
            "amount": range(10, 20),
            "late": [0, 1] * 5,
        }
    )
    graph = tree_graph(prepare(edges, "edge:late"))
    assert list(graph.edges) == ["way", "amount"]
    assert graph.categories == {"way"}
    by_word = graph.edges["way"].groupby(pd.Series(_in_order(edges, graph)["way"]).fillna("-")).nunique()
    assert by_word.tolist() == [1, 1, 1, 1]
    assert graph.edges["way"].nunique() == 4


def _in_order(edges: pd.DataFrame, graph: TreeGraph) -> pd.DataFrame:
    """The rows in the order of the edges of the graph: amounts are scaled, and rise with those of the table."""
    rank = graph.edges["amount"].rank().astype(int) - 1
    return edges.iloc[rank].reset_index(drop=True)


def test_edges_without_a_direction_have_features_that_do_not_depend_on_the_order_of_their_ends():
    draw = np.random.default_rng(0)
    ends = draw.integers(0, 9, (2, 40))
    ends[1, 5] = ends[0, 5]  # a loop
    columns, nodes = pd.DataFrame({"x": draw.normal(size=40)}), pd.DataFrame({"y": draw.normal(size=9)})
    labels, known = draw.integers(0, 2, 40), draw.random(40) < 0.8
    flip = draw.random(40) < 0.5
    found = []
    for some in (np.zeros(40, bool), flip):
        source, target = np.where(some, ends[::-1], ends)
        graph = TreeGraph(source, target, nodes, columns, directed=False)
        found.append(edge_features(graph, label_sums(labels, known, False)))
    pd.testing.assert_frame_equal(*found)
    assert any(name.startswith("triads of kinds") for name in found[0])


@pytest.mark.parametrize("numeric", [False, True])
def test_no_feature_of_an_edge_without_a_direction_depends_on_its_own_label(numeric):
    draw = np.random.default_rng(1)
    source, target = draw.integers(0, 8, (2, 50))
    graph = TreeGraph(source, target, pd.DataFrame(index=range(8)), pd.DataFrame(index=range(50)), directed=False)
    labels = draw.normal(size=50) if numeric else draw.integers(0, 2, 50)
    known = draw.random(50) < 0.7
    before = edge_features(graph, label_sums(labels, known, numeric))
    for row in np.flatnonzero(known)[:20]:
        other = labels.copy()
        other[row] = labels[row] + 3 if numeric else 1 - labels[row]
        after = edge_features(graph, label_sums(other, known, numeric))
        np.testing.assert_allclose(after.iloc[row], before.iloc[row], atol=1e-6)
        assert not after.equals(before)


def test_incident_edges_are_those_of_either_end_by_hand():
    graph = TreeGraph(
        np.array([0, 2, 1]),
        np.array([1, 1, 3]),
        pd.DataFrame(index=range(4)),
        pd.DataFrame({"x": [1.0, 2.0, 4.0]}),
        directed=False,
    )
    found = edge_features(graph, label_sums(np.array([1, 0, 1]), np.ones(3, bool), False))
    assert found["lower, incident: edges"].tolist() == [1, 1, 1]
    assert found["higher, incident: edges"].tolist() == [3, 3, 3]
    assert found["higher, incident: known labels, count of kind 1"].tolist() == [1, 2, 1]
    np.testing.assert_allclose(found["higher, incident: x mean"], [7 / 3, 7 / 3, 4])


def test_features_of_graphs_are_aggregates_of_their_own_nodes_and_edges():
    prepared = prepare(samples.shapes(), "graph:ring")
    graphs = prepared.task_data.graph
    assert isinstance(graphs, GraphSet)
    graph = tree_graph(prepared)
    found = graph_features(graph, pd.DataFrame(index=range(len(graphs))), Level.NODE.owners(graphs).numpy())
    name = str(next(iter(graph.node_numbers)))
    for number in (0, 7):
        values = graphs[number].nodes[:, 0].numpy()
        np.testing.assert_allclose(found[f"node: {name} mean"][number], values.mean(), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(found[f"node: {name} sum"][number], values.sum(), rtol=1e-4, atol=1e-5)
        assert found["edges"][number] == graphs[number].num_edges
        assert found["node: degree sum"][number] == 2 * graphs[number].num_edges


def test_times_are_those_of_the_split_or_of_a_column_of_dates():
    days = pd.date_range("2024-01-01", periods=12).astype(str)
    edges = pd.DataFrame({"source": list("abcdef") * 2, "target": list("bcdefa") * 2, "day": days, "late": [0, 1] * 6})
    times = edge_times(prepare(edges, "edge:late"))
    assert times is not None
    assert len(np.unique(times)) == 12
    edges["turn"] = range(0, 36, 3)
    by_turn = edge_times(prepare(edges, "edge:late", changes={"data.split": "time", "data.split_column": "turn"}))
    assert by_turn is not None
    assert set(by_turn) == set(range(0, 36, 3))
    of_data = prepare(edges, "edge:late", changes={"data.time": "turn"})
    times = edge_times(of_data)
    assert times is not None
    assert set(times) == set(range(0, 36, 3))
    assert is_by_time(of_data)
    assert not is_by_time(prepare(edges, "edge:late"))
    assert edge_times(prepare(edges.drop(columns=["day"]), "edge:late")) is None


def test_a_column_of_very_many_categories_has_no_more_codes_than_trees_take():
    users = np.arange(3000) % 300
    edges = pd.DataFrame({"source": users, "target": (users + 1) % 300, "user": [f"u{user}" for user in users]})
    edges["rating"] = np.random.default_rng(0).normal(size=3000)
    prepared = prepare(edges, "edge:rating")
    graph = tree_graph(prepared)
    assert graph.categories == {"user"}
    assert graph.edges["user"].nunique() == 251
    assert len(prepared.data.schema.edges.columns[0].categories) > 251
