"""Answers for nodes and edges: each side from its own embedding, edges with their ends, members side by side."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from censnet.nn.ensemble import stack_members
from censnet.nn.row_task import RowTask
from censnet.ops import Incidence
from censnet.tasks.targets import Target

TANGLE = Incidence(torch.tensor([[0, 1, 2, 1, 3, 3, 3], [1, 2, 0, 0, 3, 0, 3]]), 5)  # parallel, loops, an isolated node
NODES = [
    Target(level="node", column="c", kind="multiclass", classes=["x", "y", "z"]),
    Target(level="node", column="n", kind="regression"),
]
EDGES = [Target(level="edge", column="b", kind="binary", classes=["no", "yes"])]


def features(members: int = 1, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(5, members * 4, generator=generator), torch.randn(7, members * 3, generator=generator)


def test_nodes_are_answered_from_nodes_and_edges_from_edges() -> None:
    nodes, edges = features()
    of_nodes, of_edges = RowTask("node", NODES, 4, 3), RowTask("edge", EDGES, 4, 3)
    line = of_nodes.head.mlp[0]
    torch.testing.assert_close(of_nodes(nodes, edges, TANGLE), nodes @ line.weight.t() + line.bias)
    line = of_edges.head.mlp[0]
    torch.testing.assert_close(of_edges(nodes, edges, TANGLE), edges @ line.weight.t() + line.bias)
    assert of_nodes(nodes, edges, TANGLE).shape == (5, 4)


def test_an_edge_reads_the_sum_over_its_ends() -> None:
    nodes, edges = features()
    task = RowTask("edge", EDGES, 4, 3, edge_head_reads_nodes=True)
    line = task.head.mlp[0]
    for edge, (first, second) in enumerate(TANGLE.ends.t().tolist()):
        ends = nodes[first] if first == second else nodes[first] + nodes[second]
        expected = torch.cat([edges[edge], ends]) @ line.weight.t() + line.bias
        torch.testing.assert_close(task(nodes, edges, TANGLE)[edge], expected)


def test_swapping_the_ends_changes_nothing_and_parallel_edges_differ_by_their_rows() -> None:
    nodes, edges = features()
    task = RowTask("edge", EDGES, 4, 3, hidden=[8], edge_head_reads_nodes=True)
    swapped = Incidence(TANGLE.ends.flip(0), 5)
    found = task(nodes, edges, TANGLE)
    torch.testing.assert_close(task(nodes, edges, swapped), found)
    assert found[0] != found[3]  # 0-1 and 1-0, with rows of their own
    edges[3] = edges[0]
    torch.testing.assert_close(task(nodes, edges, TANGLE)[3], found[0])


@pytest.mark.parametrize("edge_head_reads_nodes", [False, True])
@pytest.mark.parametrize("shared", ["none", "nodes", "edges", "both"])
def test_members_answer_as_each_alone(edge_head_reads_nodes: bool, shared: str) -> None:
    alone = [RowTask("edge", EDGES, 4, 3, hidden=[6], edge_head_reads_nodes=edge_head_reads_nodes) for _ in range(3)]
    nodes, edges = features(3)
    nodes = nodes[:, :4] if shared in ("nodes", "both") else nodes
    edges = edges[:, :3] if shared in ("edges", "both") else edges

    def own(rows: Tensor, width: int, member: int) -> Tensor:
        return rows if rows.shape[1] == width else rows[:, width * member : width * (member + 1)]

    expected = [task(own(nodes, 4, member), own(edges, 3, member), TANGLE) for member, task in enumerate(alone)]
    together = stack_members(alone)
    assert together.members == 3
    torch.testing.assert_close(together(nodes, edges, TANGLE), torch.cat(expected, dim=1))


def test_members_can_be_made_at_once() -> None:
    task = RowTask("node", NODES, 4, 3, hidden=[6], members=2)
    assert task(*features(2), TANGLE).shape == (5, 2 * 4)
    assert all(p.numel() % 2 == 0 for p in task.parameters())


def test_a_gradient_reaches_both_sides() -> None:
    nodes, edges = (side.requires_grad_() for side in features())
    RowTask("edge", EDGES, 4, 3, edge_head_reads_nodes=True)(nodes, edges, TANGLE).sum().backward()
    assert nodes.grad is not None
    assert edges.grad is not None
    assert nodes.grad[:4].count_nonzero() == 16
    assert nodes.grad[4].count_nonzero() == 0  # the isolated node is no end
    assert edges.grad.count_nonzero() == 21


def test_a_graph_without_edges_has_no_answers() -> None:
    empty = Incidence(torch.zeros(2, 0, dtype=torch.long), 5)
    assert RowTask("edge", EDGES, 4, 3, edge_head_reads_nodes=True)(features()[0], torch.zeros(0, 3), empty).shape == (
        0,
        1,
    )


def test_reset_parameters_restarts() -> None:
    torch.manual_seed(0)
    fresh = RowTask("node", NODES, 4, 3, hidden=[6]).state_dict()
    task = RowTask("node", NODES, 4, 3, hidden=[6])
    torch.manual_seed(0)
    task.reset_parameters()
    assert all(task.state_dict()[name].equal(value) for name, value in fresh.items())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("graph", NODES, 4, 3), "level is 'graph', expected 'node' or 'edge'"),
        (("node", EDGES, 4, 3), "target b is of the edges, expected one of the nodes"),
        (("edge", [], 4, 3), "targets is empty, expected columns of the edges"),
        (("node", NODES, 4, 3, (), 0.0, True), "read_ends is set for nodes, expected it for edges alone"),
    ],
)
def test_arguments_that_do_not_fit_are_named(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RowTask(*arguments)


def test_sparse_nodes_are_answered_but_not_summed() -> None:
    nodes, edges = features()
    sparse = nodes.to_sparse_csr()
    task = RowTask("node", NODES, 4, 3)
    torch.testing.assert_close(task(sparse, edges, TANGLE), task(nodes, edges, TANGLE))
    with pytest.raises(ValueError, match=r"nodes is sparse, expected dense: let a node layer \(N\) come before"):
        RowTask("edge", EDGES, 4, 3, edge_head_reads_nodes=True)(sparse, edges, TANGLE)


def test_embeddings_of_another_width_are_named() -> None:
    task = RowTask("edge", EDGES, 4, 3, edge_head_reads_nodes=True)
    with pytest.raises(ValueError, match=r"shape \(7, 5\), expected \(7, 4\)|shape \(7, 5\), expected \(\*, 4\)"):
        task(torch.ones(5, 5), torch.ones(7, 3), TANGLE)
