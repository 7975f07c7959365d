"""Weisfeiler-Lehman colors follow nodes wherever they stand, and tell apart what can be told apart."""

from __future__ import annotations

import networkx as nx
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import incidences
from torch import Tensor

from censnet.ops import Incidence
from censnet.ops.colors import hash_graphs, hash_rows, node_colors, rademacher, splitmix64
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet


def test_the_hash_is_splitmix64() -> None:
    """Its first numbers from the state 0, as published with the generator."""
    step = -0x61C8864680B583EB
    found = [int(splitmix64(torch.tensor(step * count))) % 2**64 for count in (0, 1)]
    assert found == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4]


def test_rows_have_one_hash_where_they_are_equal_dense_or_sparse() -> None:
    rows = torch.tensor([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    dense, sparse = hash_rows(rows), hash_rows(rows.to_sparse_csr())
    for found in (dense, sparse):
        assert found[0] == found[1]
        assert found[3] == found[4]
        assert len(set(found.tolist())) == 3


@given(incidence=incidences(), seed=st.integers(0, 2**16))
def test_colors_move_with_their_nodes(incidence: Incidence, seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    count = incidence.num_nodes
    features = torch.randn(count, 2, generator=draw)  # no two alike
    order = torch.randperm(count, generator=draw)
    moved = torch.empty_like(features).index_copy(0, order, features)
    again = node_colors(moved, Incidence(order[incidence.ends], count))[order]
    assert again.equal(node_colors(features, incidence))
    assert len(set(again.tolist())) == count


def ends_of(graph: nx.Graph) -> Tensor:
    return torch.tensor(list(graph.edges)).t()


def test_neighborhoods_distinguish_nodes_without_features() -> None:
    """In a tree without symmetries every node has a color of its own, in any order."""
    tree = nx.Graph(
        [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (2, 6)]
    )  # the smallest tree that only identity maps to itself
    order = torch.tensor([4, 2, 6, 0, 3, 5, 1])
    found = node_colors(torch.ones(7, 1), Incidence(ends_of(tree), 7))
    again = node_colors(torch.ones(7, 1), Incidence(order[ends_of(tree)], 7))[order]
    assert again.equal(found)
    assert len(set(found.tolist())) == 7


def test_nodes_that_nothing_distinguishes_have_different_colors_all_the_same() -> None:
    ring = ends_of(nx.cycle_graph(9))
    assert len(set(node_colors(torch.ones(9, 1), Incidence(ring, 9)).tolist())) == 9


def test_what_is_not_connected_changes_no_color() -> None:
    path, features = torch.tensor([[0, 1], [1, 2]]), torch.tensor([[1.0], [2.0], [3.0], [9.0], [8.0]])
    alone = node_colors(features[:3], Incidence(path, 3))
    beside = node_colors(features, Incidence(torch.cat([path, torch.tensor([[3], [4]])], 1), 5))
    assert beside[:3].equal(alone)


@pytest.mark.parametrize("width", [1, 64, 65, 128])
def test_signs_are_as_if_drawn(width: int) -> None:
    signs = rademacher(torch.arange(4000), width)
    assert signs.shape == (4000, width)
    assert signs.abs().unique().tolist() == [1]
    together = signs.float().t() @ signs.float() / 4000
    assert (together - torch.eye(width)).abs().max() < 6 / 4000**0.5


def test_graphs_have_one_hash_in_any_order_and_another_with_other_edges() -> None:
    draw = torch.Generator().manual_seed(0)
    nodes, edges, ends = (
        torch.ones(6, 2),
        torch.randn(5, 1, generator=draw),
        torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]]),
    )
    order, rows = torch.randperm(6, generator=draw), torch.randperm(5, generator=draw)
    path = Graph(nodes, edges, ends)
    again = Graph(nodes, edges[rows], order[ends][:, rows].flip(0))
    other = Graph(nodes, edges.flip(0).roll(1, 0), ends)
    first, second, third = hash_graphs(GraphSet.pack([path, again, other])).tolist()
    assert first == second
    assert first != third
