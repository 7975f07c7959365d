from __future__ import annotations

from itertools import permutations

import networkx as nx
import numpy as np
import pytest

from censnet_experiments.edges.patterns import LABELS, label_nodes, sample_patterns


def brute_force(source: list[int], target: list[int], num_nodes: int) -> dict[str, set[int]]:
    """The positive nodes of every label, by looking at all cycles, paths and quadruples."""
    multi = nx.MultiDiGraph()
    multi.add_nodes_from(range(num_nodes))
    multi.add_edges_from(zip(source, target, strict=True))
    graph = nx.DiGraph(multi)
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    found: dict[str, set[int]] = {name: set() for name in LABELS}
    for node in range(num_nodes):
        for name, degree in (
            ("deg_in", multi.in_degree(node)),
            ("deg_out", multi.out_degree(node)),
            ("fan_in", graph.in_degree(node)),
            ("fan_out", graph.out_degree(node)),
        ):
            if degree > 3:
                found[name].add(node)
    for cycle in nx.simple_cycles(graph, length_bound=6):
        found[f"cycle{len(cycle)}"].update(cycle)
    for a, c in permutations(range(num_nodes), 2):
        if len((set(graph.successors(a)) & set(graph.predecessors(c))) - {a, c}) >= 2:
            found["scatter_gather"].add(c)
        if len((set(graph.predecessors(a)) & set(graph.predecessors(c))) - {a, c}) >= 2:
            found["biclique"].add(c)
    return found


@pytest.mark.parametrize("seed", range(12))
def test_labels_are_those_of_brute_force(seed):
    draw = np.random.default_rng(seed)
    num_nodes = int(draw.integers(5, 14))
    source, target = draw.integers(0, num_nodes, (2, int(num_nodes * draw.uniform(1, 2.5))))
    found, expected = label_nodes(source, target, num_nodes), brute_force(list(source), list(target), num_nodes)
    for name in LABELS:
        assert set(np.flatnonzero(found[name])) == expected[name], name


def test_a_scatter_gather_labels_its_sink_and_a_biclique_its_receivers():
    scatter = label_nodes(np.array([0, 0, 1, 2]), np.array([1, 2, 3, 3]), 4)
    assert scatter["scatter_gather"].tolist() == [0, 0, 0, 1]
    assert scatter["biclique"].sum() == 0
    clique = label_nodes(np.array([0, 0, 1, 1]), np.array([2, 3, 2, 3]), 4)
    assert clique["biclique"].tolist() == [0, 0, 1, 1]
    assert clique["scatter_gather"].sum() == 0


def test_no_edge_is_no_pattern():
    empty = np.empty(0, np.int64)
    assert all(values.sum() == 0 for values in label_nodes(empty, empty, 3).values())


def test_graphs_have_the_stated_sizes_and_are_one_for_each_seed():
    tables = sample_patterns(0, num_nodes=256)
    assert list(tables.nodes) == ["id", *LABELS]
    assert len(tables.edges) == 768
    assert (tables.edges["source"] != tables.edges["target"]).all()
    assert tables.edges.equals(sample_patterns(0, num_nodes=256).edges)
    assert not tables.edges.equals(sample_patterns(1, num_nodes=256).edges)


@pytest.mark.slow
def test_positive_shares_are_near_the_published_ones():
    share = np.mean([sample_patterns(seed).nodes[list(LABELS)].mean() for seed in range(2)], axis=0)
    expected = [0.352, 0.352, 0.324, 0.324, 0.191, 0.344]  # degree, fan, and cycles of 2 and 3, as published
    np.testing.assert_allclose(share[:6], expected, atol=0.015)
