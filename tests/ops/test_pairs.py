"""Pairs of nodes: one number for each, and the ordered pairs of a batch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import adjacency, incidences, within

from censnet.ops import Incidence
from censnet.ops.pairs import (
    NodePairs,
    OrderedNodePairs,
    count_linked_pairs,
    count_ordered_pairs,
    has_edge,
    sample_ordered_non_edges,
    sample_ordered_pairs,
)

UNION = Incidence(torch.tensor([[0, 1, 3, 3, 4], [2, 1, 4, 5, 3]]), 7, torch.tensor([0, 0, 0, 1, 1, 1, 2]), 3)
SHUFFLED = Incidence(torch.tensor([[0, 5, 2, 5], [2, 6, 4, 3]]), 7, torch.tensor([1, 0, 1, 2, 1, 2, 2]), 3)


def check_numbers(space: NodePairs, pairs: list[tuple[int, int]]) -> None:
    """Each of these pairs has one number, from 0 on, in either order."""
    assert space.num_pairs == len(pairs)
    first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    numbers = space.rank(first, second)
    assert sorted(numbers.tolist()) == list(range(len(pairs)))
    np.testing.assert_array_equal(space.pair(numbers), [first, second])
    np.testing.assert_array_equal(space.rank(second, first), numbers)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30))
@settings(max_examples=50, deadline=None)
def test_every_pair_of_one_graph_has_one_number(owner: list[int]) -> None:
    pairs = [(i, j) for j in range(len(owner)) for i in range(j) if owner[i] == owner[j]]
    check_numbers(NodePairs(len(owner), np.array(owner)), pairs)


@given(st.lists(st.integers(-1, 1), min_size=2, max_size=30))
@settings(max_examples=50, deadline=None)
def test_every_pair_of_two_sides_has_one_number(side: list[int]) -> None:
    pairs = [(i, j) for j in range(len(side)) for i in range(j) if {side[i], side[j]} == {0, 1}]
    check_numbers(NodePairs(len(side), bipartite=np.array(side)), pairs)


def test_edges_between_two_graphs_of_a_batch_are_named() -> None:
    with pytest.raises(ValueError, match="edge 1 joins two graphs of the batch, expected both ends in one"):
        NodePairs(4, np.array([0, 0, 1, 1])).rank(np.array([0, 1]), np.array([1, 2]))


@given(incidence=incidences())
def test_linked_pairs_are_those_of_the_matrix(incidence: Incidence) -> None:
    A, count = adjacency(incidence), count_ordered_pairs(incidence)
    first, second = sample_ordered_pairs(incidence, count)
    assert has_edge(incidence, first, second).double().equal(A[first, second])
    assert count_linked_pairs(incidence) == int(A.sum())
    assert count == int(within(incidence).sum())


@pytest.mark.parametrize("incidence", [UNION, SHUFFLED], ids=["in order", "shuffled"])
def test_pairs_of_a_batch_are_those_within_one_graph(incidence: Incidence) -> None:
    found = sample_ordered_pairs(incidence, count_ordered_pairs(incidence))
    expected = within(incidence).nonzero()
    assert count_ordered_pairs(incidence) == len(expected)
    assert sorted(found.t().tolist()) == expected.tolist()


# -- ordered pairs ----------------------------------------------------------------------------------------------------


@given(owner=st.lists(st.integers(0, 3), min_size=1, max_size=12))
def test_every_ordered_pair_of_one_graph_has_one_number(owner: list[int]) -> None:
    graph = np.array(owner)
    for space in (OrderedNodePairs(len(owner)), OrderedNodePairs(len(owner), graph)):
        apart = space._owner is not None
        pairs = [
            (u, v)
            for u in range(len(owner))
            for v in range(len(owner))
            if u != v and not (apart and owner[u] != owner[v])
        ]
        assert space.num_pairs == len(pairs)
        if pairs:
            first, second = np.array(pairs).T
            rank = space.rank(first, second)
            assert sorted(rank.tolist()) == list(range(len(pairs)))
            assert space.pair(rank).tolist() == [first.tolist(), second.tolist()]


def test_ordered_pairs_of_two_sides_go_one_way() -> None:
    space = OrderedNodePairs(5, bipartite=np.array([1, 0, 1, 0, 1]))
    assert space.num_pairs == 6
    assert {tuple(pair) for pair in space.pair(np.arange(6)).T.tolist()} == {(u, v) for u in (1, 3) for v in (0, 2, 4)}


@given(incidence=incidences(union=False), seed=st.integers(0, 2**16), share=st.floats(0, 1))
def test_ordered_negatives_are_no_edges_and_half_of_them_links_turned_around(
    incidence: Incidence, seed: int, share: float
) -> None:
    ends, space, rng = incidence.ends.numpy(), OrderedNodePairs(incidence.num_nodes), np.random.default_rng(seed)
    proper = ends[:, ends[0] != ends[1]]
    links = np.unique(space.rank(*proper))
    count = int(share * (space.num_pairs - len(links)))
    found = sample_ordered_non_edges(space, links, links, count, rng)
    assert len(found) == len(set(found.tolist())) == count
    assert not set(found.tolist()) & set(links.tolist())
    back = set(space.rank(*proper[::-1]).tolist()) - set(links.tolist())
    assert len(back & set(found.tolist())) >= min(len(back), count // 2)


def test_between_two_sides_no_link_is_turned_around() -> None:
    space = OrderedNodePairs(6, bipartite=np.array([0, 0, 0, 1, 1, 1]))
    links = np.sort(space.rank(np.array([0, 1]), np.array([3, 4])))
    found = space.pair(sample_ordered_non_edges(space, links, links, 7, np.random.default_rng(0)))
    assert (found[0] < 3).all()
    assert (found[1] >= 3).all()
