"""Inputs beside the user's columns: their widths, which labels are shown, and that no hidden label is read."""

from __future__ import annotations

import pytest
import torch

from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.ops.structure import edge_structure, node_structure
from censnet.tasks.inputs import ModelInputs, choose_widths, positional_encoding
from censnet.tasks.targets import Target

FRAUD = Target(level="edge", column="fraud", kind="binary", classes=["no", "yes"])
SORT = Target(level="edge", column="sort", kind="multiclass", classes=["a", "b", "c"])
WAIT = Target(level="edge", column="wait", kind="regression")
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


def fan(times: list[float], directed: bool = True) -> Graph:
    """Edges from node 0 to the others, at these times."""
    ends = torch.stack([torch.zeros(len(times), dtype=torch.int64), torch.arange(1, len(times) + 1)])
    nodes, edges = torch.ones(len(times) + 1, 1), torch.ones(len(times), 1)
    return Graph(nodes, edges, ends, directed=directed, times=torch.tensor(times, dtype=torch.float64))


def test_the_labels_in_windows_by_hand() -> None:
    inputs, plain = ModelInputs(known=[FRAUD], directed=True, widths=(2.0,)), fan([0, 1, 5])
    labels, shown = {"edge": torch.tensor([[1.0], [0.0], [1.0]])}, {"edge": torch.tensor([True, True, False])}
    seen = inputs.show(inputs.add(plain), labels, shown).edges
    windows = seen[:, -inputs.window_width :].view(3, 6, 2, 2, 2)  # edge, group, side, width, class
    out = windows[:, 0]  # of the edges that start where this one starts
    assert out[0].tolist() == [[[0, 0], [0, 0]], [[0.5, 0], [0.5, 0]]], "the next within 2 is no; the third is hidden"
    assert out[1].tolist() == [[[0, 0.5], [0, 0.5]], [[0, 0], [0, 0]]]
    assert out[2, 0, 0].tolist() == [0, 0], "none within 2"
    torch.testing.assert_close(out[2, 0, 1], torch.tensor([1 / 3, 1 / 3]))
    assert not windows[:, 1:].any()


def test_windows_do_not_show_a_hidden_label_and_never_its_own() -> None:
    inputs, plain = ModelInputs(known=[FRAUD, SORT], directed=True, widths=(1.0, 3.0)), fan([0, 1, 1, 5])
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(2, (4, 2), generator=generator).float()
    for row in range(4):
        other = labels.clone()
        other[row] = 1 - other[row]
        for shown in (torch.ones(4).bool(), torch.arange(4) != row):
            first, second = (inputs.label_windows(plain, values, shown)() for values in (labels, other))
            assert first[row].equal(second[row])
            assert bool(shown[row]) != first.equal(second), "others are shown it unless it is hidden"


def test_windows_of_edges_without_a_direction_do_not_depend_on_the_order_of_their_ends() -> None:
    inputs, plain = ModelInputs(known=[WAIT], widths=(2.0,)), fan([0, 1, 1, 5], directed=False)
    ends = plain.ends.clone()
    ends[:, 1:3] = ends[:, 1:3].flip(0)
    turned = Graph(plain.nodes, plain.edges, ends, times=plain.times)
    labels, shown = {"edge": torch.tensor([[1.0], [2.0], [NAN], [4.0]])}, {"edge": torch.ones(4).bool()}
    first, second = (inputs.show(inputs.add(one), labels, shown).edges for one in (plain, turned))
    torch.testing.assert_close(first, second)


def test_widths_of_windows_come_from_the_gaps_of_the_training_edges() -> None:
    times = [0.0, 1.0, 3.0, 103.0, 1103.0]
    assert choose_widths(fan(times)) == [1.0, 2.0, 100.0]
    assert choose_widths(fan(times), torch.tensor([0])) == [1.0]
    assert choose_widths(fan([2.0, 2.0])) == []
