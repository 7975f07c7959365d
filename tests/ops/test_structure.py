"""Counts as features: by hand, against a slow count, and what does not change them."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from hypothesis import given
from strategies import incidences
from torch import Tensor

from censnet.ops.incidence import Incidence
from censnet.ops.structure import EDGE_WIDTH, NODE_WIDTH, assortativity, edge_port, edge_structure, node_structure


def counts(features: Tensor) -> list[list[int]]:
    return features.double().expm1().round().long().tolist()


def test_by_hand() -> None:
    # two parallel edges, one back, a loop, an isolated node
    incidence = Incidence(torch.tensor([[0, 0, 1, 2], [1, 1, 0, 2]]), 4)
    assert counts(2 * node_structure(incidence, directed=True)) == [
        [2, 1, 1, 1],
        [1, 2, 1, 1],
        [1, 1, 1, 1],
        [0, 0, 0, 0],
    ]
    assert counts(2 * node_structure(incidence, directed=False)) == [[3, 1], [3, 1], [1, 0], [0, 0]]
    assert counts(edge_structure(incidence, directed=True)) == [[1, 1], [1, 1], [0, 2], [0, 1]]
    assert counts(edge_structure(incidence, directed=False)) == [[2], [2], [2], [0]]
    assert counts(edge_port(incidence, directed=True)) == [[0], [1], [0], [0]]
    assert counts(edge_port(incidence, directed=False)) == [[0], [1], [2], [0]]


@given(incidence=incidences())
def test_against_a_slow_count(incidence: Incidence) -> None:
    rows = [tuple(pair) for pair in incidence.ends.t().tolist()]
    node, edge = counts(2 * node_structure(incidence, directed=True)), counts(edge_structure(incidence, directed=True))
    for i in range(incidence.num_nodes):
        out, into = [t for s, t in rows if s == i], [s for s, t in rows if t == i]
        assert node[i] == [len(out), len(into), len(set(out)), len(set(into))]
    of = Counter(rows)
    for number, (s, t) in enumerate(rows):
        assert edge[number] == [of[s, t] - 1, of[t, s]]
        assert counts(edge_port(incidence, directed=True))[number] == [rows[:number].count((s, t))]
    plain = [frozenset(pair) for pair in rows]
    for number, found in enumerate(counts(edge_structure(incidence, directed=False))):
        assert found == [plain.count(plain[number]) - 1]
        assert counts(edge_port(incidence, directed=False))[number] == [plain[:number].count(plain[number])]


@given(incidence=incidences())
def test_without_direction_the_order_of_the_ends_does_not_matter(incidence: Incidence) -> None:
    ends = incidence.ends.clone()
    ends[:, ::2] = ends[:, ::2].flip(0)
    swapped = Incidence(ends, incidence.num_nodes)
    for function in (node_structure, edge_structure, edge_port):
        assert function(swapped, directed=False).equal(function(incidence, directed=False))


@given(incidence=incidences())
def test_turning_all_edges_around_exchanges_what_leaves_and_what_arrives(incidence: Incidence) -> None:
    back = Incidence(incidence.ends.flip(0), incidence.num_nodes)
    assert node_structure(back, directed=True).equal(node_structure(incidence, directed=True)[:, [1, 0, 3, 2]])
    assert edge_structure(back, directed=True).equal(edge_structure(incidence, directed=True))


@pytest.mark.parametrize("directed", [True, False])
def test_widths_are_those_that_are_said(directed: bool) -> None:
    empty = Incidence(torch.empty(2, 0, dtype=torch.int64), 3)
    assert node_structure(empty, directed).shape == (3, NODE_WIDTH[directed])
    assert edge_structure(empty, directed).shape == (0, EDGE_WIDTH[directed])
    assert node_structure(empty, directed).dtype == torch.float32


def test_assortativity_is_that_of_networkx() -> None:
    networkx = pytest.importorskip("networkx")
    graph = networkx.gnm_random_graph(40, 120, seed=1)
    draw = torch.Generator().manual_seed(0)
    code, number = torch.randint(3, (40,), generator=draw), torch.randn(40, generator=draw, dtype=torch.float64)
    attributes = {node: {"code": int(code[node]), "number": float(number[node])} for node in graph}
    networkx.set_node_attributes(graph, attributes)
    ends = torch.tensor(list(graph.edges)).t()
    expected = networkx.attribute_assortativity_coefficient(graph, "code")
    assert assortativity(torch.eye(3)[code], ends) == pytest.approx(expected)
    expected = networkx.numeric_assortativity_coefficient(graph, "number")
    assert assortativity(number.unsqueeze(1), ends) == pytest.approx(expected)


def test_assortativity_leaves_unknown_nodes_out() -> None:
    values = torch.tensor([[0.0], [0.0], [1.0], [1.0], [torch.nan]])
    ends = torch.tensor([[0, 2, 0, 4, 4], [1, 3, 1, 0, 2]])
    assert assortativity(values, ends) == pytest.approx(1)
    assert assortativity(values[:2], ends[:, :1]) == 0, "no variance"
    assert assortativity(values[4:].expand(5, 1), ends) == 0, "nothing is known"
