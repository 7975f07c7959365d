"""Inputs beside the user's columns: their widths, which labels are shown, and that no hidden label is read."""

from __future__ import annotations

import pytest
import torch

from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.ops.structure import edge_structure, node_structure
from censnet.tasks.inputs import ModelInputs, positional_encoding
from censnet.tasks.targets import Target

FRAUD = Target(level="edge", column="fraud", kind="binary", classes=["no", "yes"])
SORT = Target(level="edge", column="sort", kind="multiclass", classes=["a", "b", "c"])
WEALTH = Target(level="node", column="wealth", kind="regression")
NAN = float("nan")


def graph(directed: bool = True) -> Graph:
    ends = torch.tensor([[0, 1, 2, 1, 3], [1, 2, 0, 0, 3]])
    return Graph(torch.randn(5, 4), torch.randn(5, 2), ends, directed=directed)


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("structure", [True, False])
@pytest.mark.parametrize("steps", [0, 3])
@pytest.mark.parametrize("known", [[], [FRAUD], [FRAUD, SORT, WEALTH]])
def test_widths_are_those_that_are_added(directed: bool, structure: bool, steps: int, known: list[Target]) -> None:
    inputs, plain = ModelInputs(structure, steps, known, directed), graph(directed)
    added = inputs.add(plain)
    assert added.node_width == plain.node_width + inputs.node_width
    assert added.edge_width == plain.edge_width + inputs.edge_width
    assert added.nodes[:, :4].equal(plain.nodes)
    assert added.edges[:, :2].equal(plain.edges)
    assert added.directed == directed
    assert added.ends.equal(plain.ends)
    if not (structure or steps or known):
        assert added is plain


def test_structure_and_positions_stand_behind_the_columns() -> None:
    plain = graph()
    added = ModelInputs(structure=True, position_steps=3, directed=True).add(plain)
    assert added.nodes[:, 4:8].equal(node_structure(plain.incidence, True))
    assert added.nodes[:, 8:].equal(positional_encoding(plain.nodes, plain.incidence, 3))
    assert added.edges[:, 2:].equal(edge_structure(plain.incidence, True))


def test_labels_are_hidden_until_they_are_shown() -> None:
    inputs = ModelInputs(known=[FRAUD, SORT, WEALTH])
    added = inputs.add(graph())
    assert inputs.levels == ["edge", "node"]
    assert (inputs.label_width("edge"), inputs.label_width("node"), inputs.label_width("graph")) == (5, 2, 0)
    assert not added.edges[:, 2:].any()
    assert not added.nodes[:, 4:].any()


def test_shown_labels_by_hand() -> None:
    inputs = ModelInputs(known=[FRAUD, SORT, WEALTH])
    labels = {
        "edge": torch.tensor([[1.0, 2.0], [0.0, NAN], [1.0, 1.0], [NAN, NAN], [0.0, 0.0]]),
        "node": torch.tensor([[1.5], [NAN], [-2.0], [0.0], [7.0]]),
    }
    shown = {"edge": torch.tensor([1, 1, 0, 1, 1]), "node": torch.tensor([1, 1, 1, 1, 0])}
    found = inputs.show(inputs.add(graph()), labels, shown)
    assert found.edges[:, 2:].tolist() == [
        [0, 1, 0, 0, 1],
        [1, 0, 0, 0, 0],
        [0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0],
        [1, 0, 1, 0, 0],
    ]
    assert found.nodes[:, 4:].tolist() == [[1.5, 1], [0, 0], [-2, 1], [0, 1], [0, 0]]


def test_a_hidden_label_changes_nothing() -> None:
    inputs = ModelInputs(structure=True, known=[FRAUD], directed=True)
    added, shown = inputs.add(graph()), {"edge": torch.tensor([True, False, True, False, True])}
    labels = torch.tensor([[0.0], [0.0], [1.0], [1.0], [1.0]])
    changed = torch.where(shown["edge"].unsqueeze(1), labels, 1 - labels)
    one, other = (inputs.show(added, {"edge": values}, shown) for values in (labels, changed))
    assert one.edges.equal(other.edges)
    assert one.nodes.equal(other.nodes)


def test_showing_other_labels_replaces_those_before() -> None:
    inputs = ModelInputs(known=[FRAUD])
    labels = {"edge": torch.tensor([[0.0], [1.0], [1.0], [0.0], [1.0]])}
    first = inputs.show(inputs.add(graph()), labels, {"edge": torch.tensor([1, 1, 1, 1, 1])})
    again = inputs.show(first, labels, {"edge": torch.tensor([0, 0, 1, 0, 0])})
    assert again.edges[:, 2:].sum(1).tolist() == [0, 0, 1, 0, 0]
    assert again.edge_width == first.edge_width


def test_many_graphs_have_structural_features_too() -> None:
    one = graph()
    both = GraphSet.pack([one, one])
    added = ModelInputs(structure=True, directed=True).add(both)
    assert added.nodes[:5, 4:].equal(node_structure(one.incidence, True))
    assert added.nodes[5:, 4:].equal(added.nodes[:5, 4:])
    assert added.edges[5:, 2:].equal(added.edges[:5, 2:])


def test_positions_of_nodes_have_a_variance_of_about_one() -> None:
    generator = torch.Generator().manual_seed(0)
    ends = torch.randint(300, (2, 900), generator=generator)
    found = positional_encoding(torch.ones(300, 1), Graph(torch.ones(300, 1), torch.ones(900, 1), ends).incidence, 3)
    assert 0.5 < float(found.square().mean()) < 1.5


def test_sparse_nodes_are_refused_beside_what_is_added() -> None:
    plain = graph()
    sparse = Graph(plain.nodes.to_sparse_csr(), plain.edges, plain.ends, directed=True)
    with pytest.raises(ValueError, match=r"^nodes is sparse, expected dense features beside structural ones"):
        ModelInputs(structure=True, directed=True).add(sparse)
    assert ModelInputs(known=[FRAUD]).add(sparse).edge_width == 4  # labels of edges alone leave the nodes as they are
