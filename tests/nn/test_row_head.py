"""Outputs for nodes and edges: each side from its own embedding, edges with their ends, members stacked."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from censnet.nn.chunked import ChunkedOutputs
from censnet.nn.ensemble import stack_members
from censnet.nn.heads import RowHead
from censnet.ops.graph import Graph

ENDS = torch.tensor([[0, 1, 2, 1, 3, 3, 3], [1, 2, 0, 0, 3, 0, 3]])  # parallel, loops, an isolated node
TANGLE = Graph(torch.ones(5, 1), torch.ones(7, 1), ENDS)


def features(members: int = 1, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(5, members * 4, generator=generator), torch.randn(7, members * 3, generator=generator)


def test_nodes_are_predicted_from_nodes_and_edges_from_edges() -> None:
    nodes, edges = features()
    of_nodes, of_edges = RowHead("node", 4, 3, 4), RowHead("edge", 4, 3, 1)
    line = of_nodes.mlp[0]
    torch.testing.assert_close(of_nodes(nodes, edges, TANGLE), nodes @ line.weight.t() + line.bias)
    line = of_edges.mlp[0]
    torch.testing.assert_close(of_edges(nodes, edges, TANGLE), edges @ line.weight.t() + line.bias)
    assert of_nodes(nodes, edges, TANGLE).shape == (5, 4)


def test_an_edge_reads_the_sum_over_its_ends() -> None:
    nodes, edges = features()
    head = RowHead("edge", 4, 3, 1, reads_nodes=True)
    line = head.mlp[0]
    for edge, (first, second) in enumerate(TANGLE.ends.t().tolist()):
        ends = nodes[first] if first == second else nodes[first] + nodes[second]
        expected = torch.cat([edges[edge], ends]) @ line.weight.t() + line.bias
        torch.testing.assert_close(head(nodes, edges, TANGLE)[edge], expected)


def test_swapping_the_ends_changes_nothing_and_parallel_edges_differ_by_their_rows() -> None:
    nodes, edges = features()
    head = RowHead("edge", 4, 3, 1, hidden_widths=[8], reads_nodes=True)
    swapped = Graph(TANGLE.nodes, TANGLE.edges, TANGLE.ends.flip(0))
    found = head(nodes, edges, TANGLE)
    torch.testing.assert_close(head(nodes, edges, swapped), found)
    assert found[0] != found[3]  # 0-1 and 1-0, with rows of their own
    edges[3] = edges[0]
    torch.testing.assert_close(head(nodes, edges, TANGLE)[3], found[0])


@pytest.mark.parametrize("reads_nodes", [False, True])
@pytest.mark.parametrize("shared", ["none", "nodes", "edges", "both"])
def test_stacked_members_predict_as_each_alone(reads_nodes: bool, shared: str) -> None:
    alone = [RowHead("edge", 4, 3, 1, hidden_widths=[6], reads_nodes=reads_nodes) for _ in range(3)]
    nodes, edges = features(3)
    nodes = nodes[:, :4] if shared in ("nodes", "both") else nodes
    edges = edges[:, :3] if shared in ("edges", "both") else edges

    def own(rows: Tensor, width: int, member: int) -> Tensor:
        return rows if rows.shape[1] == width else rows[:, width * member : width * (member + 1)]

    expected = [head(own(nodes, 4, member), own(edges, 3, member), TANGLE) for member, head in enumerate(alone)]
    together = stack_members(alone)
    assert together.members == 3
    torch.testing.assert_close(together(nodes, edges, TANGLE), torch.cat(expected, dim=1))


def test_a_gradient_reaches_both_sides() -> None:
    nodes, edges = (side.requires_grad_() for side in features())
    RowHead("edge", 4, 3, 1, reads_nodes=True)(nodes, edges, TANGLE).sum().backward()
    assert nodes.grad is not None
    assert edges.grad is not None
    assert nodes.grad[:4].count_nonzero() == 16
    assert nodes.grad[4].count_nonzero() == 0  # the isolated node is no end
    assert edges.grad.count_nonzero() == 21


def test_a_graph_without_edges_has_no_outputs() -> None:
    empty = Graph(torch.ones(5, 1), torch.ones(0, 1), torch.zeros(2, 0, dtype=torch.long))
    assert RowHead("edge", 4, 3, 1, reads_nodes=True)(features()[0], torch.zeros(0, 3), empty).shape == (
        0,
        1,
    )


def test_reset_parameters_restarts() -> None:
    torch.manual_seed(0)
    fresh = RowHead("node", 4, 3, 4, hidden_widths=[6]).state_dict()
    head = RowHead("node", 4, 3, 4, hidden_widths=[6])
    torch.manual_seed(0)
    head.reset_parameters()
    assert all(head.state_dict()[name].equal(value) for name, value in fresh.items())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("graph", 4, 3, 1), "level is 'graph', expected 'node' or 'edge'"),
        (("node", 4, 3, 1, (), 0.0, True), "reads_nodes is set for nodes, expected it for edges alone"),
        (("node", 4, 3, 2, (), 0.0, False, torch.ones(2, 3)), r"target_range has shape \(2, 3\), expected \(2, 2\)"),
    ],
)
def test_arguments_that_do_not_fit_are_named(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RowHead(*arguments)


def test_sparse_nodes_are_read_but_not_summed() -> None:
    nodes, edges = features()
    sparse = nodes.to_sparse_csr()
    head = RowHead("node", 4, 3, 4)
    torch.testing.assert_close(head(sparse, edges, TANGLE), head(nodes, edges, TANGLE))
    with pytest.raises(ValueError, match=r"nodes is sparse, expected dense: let a node layer \(N\) come before"):
        RowHead("edge", 4, 3, 1, reads_nodes=True)(sparse, edges, TANGLE)


def test_embeddings_of_another_width_are_named() -> None:
    head = RowHead("edge", 4, 3, 1, reads_nodes=True)
    with pytest.raises(ValueError, match=r"shape \(7, 5\), expected \(7, 4\)|shape \(7, 5\), expected \(\*, 4\)"):
        head(torch.ones(5, 5), torch.ones(7, 3), TANGLE)


def test_outputs_are_clipped_to_the_target_range_and_chunks_too() -> None:
    nodes, edges = features()
    limits = torch.tensor([[-0.1, -1.0], [0.1, torch.inf]])
    head = RowHead("node", 4, 3, 2, target_range=limits).eval()
    outputs = head(nodes, edges, TANGLE)
    expected = torch.stack([outputs[:, 0].clamp(-0.1, 0.1), outputs[:, 1].clamp(min=-1)], dim=1)
    assert head.clip(outputs).equal(expected)
    chunked = head.clip(ChunkedOutputs(nodes, head.mlp, 2))
    assert chunked.compute().equal(expected)
    stack = stack_members([head, head])
    assert stack.clip(torch.cat([outputs, outputs], dim=1)).equal(torch.cat([expected, expected], dim=1))
