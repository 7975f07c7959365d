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
    count_linked_pairs,
    count_ordered_pairs,
    has_edge,
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
