"""A sample keeps within its size, has what is wanted, and every edge in it has both of its ends."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.report.sample import choose_shown


def graph(nodes: int, edges: int, seed: int) -> Graph:
    ends = torch.from_numpy(np.random.default_rng(seed).integers(0, nodes, (2, edges)))
    return Graph(torch.zeros(nodes, 1), torch.zeros(edges, 1), ends)


@settings(max_examples=30)
@given(st.integers(1, 60), st.integers(0, 150), st.integers(2, 120), st.integers(0, 9))
def test_a_sample_of_a_graph(nodes: int, edges: int, most: int, seed: int) -> None:
    whole = graph(nodes, edges, seed)
    wanted = {"edge": np.arange(min(edges, 2))}
    shown = choose_shown(whole, most, wanted)
    assert len(shown.nodes) + len(shown.edges) <= most
    assert set(whole.ends.numpy()[:, shown.edges].ravel()) <= set(shown.nodes)
    if nodes + edges <= most:
        assert (len(shown.nodes), len(shown.edges)) == (nodes, edges)
    if most >= 6:
        assert set(wanted["edge"]) <= set(shown.edges)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(1, 8), st.integers(0, 9)), min_size=1, max_size=20), st.integers(2, 200))
def test_a_sample_of_many_graphs_has_whole_graphs(sizes: list[tuple[int, int]], most: int) -> None:
    graphs = GraphSet.pack([graph(*size, seed=0) for size in sizes])
    shown = choose_shown(graphs, most, {"graph": np.array([len(sizes) - 1])})
    assert shown.graphs is not None
    assert len(shown.graphs) + len(shown.nodes) + len(shown.edges) <= max(most, 2)
    assert shown.graphs[0] == len(sizes) - 1
    nodes = 0
    for number in shown.graphs:
        inside = set(range(int(graphs.node_offset[number]), int(graphs.node_offset[number + 1])))
        if nodes < len(shown.nodes):
            assert inside == set(shown.nodes[nodes : nodes + len(inside)])
        nodes += len(inside)
