"""Outputs for graphs come from their pooled vectors, each graph's from its own nodes and edges."""

from __future__ import annotations

import pytest
import torch

from censnet.nn import GraphHead
from censnet.ops.graph import Graph

ENDS, OWNER = torch.tensor([[0, 1, 3], [1, 2, 4]]), torch.tensor([0, 0, 0, 1, 1])
TWO = Graph(torch.ones(5, 1), torch.ones(3, 1), ENDS, OWNER, 2)


def test_outputs_are_linear_in_the_pooled_vector() -> None:
    nodes, edges = torch.randn(5, 4), torch.randn(3, 2)
    head = GraphHead(4, 2, 2, pool=("mean", "sum"), pool_from="both")
    pooled = head.embed(nodes, edges, TWO)
    means = [
        torch.cat([n.mean(0), n.sum(0), e.mean(0), e.sum(0)])
        for n, e in ((nodes[:3], edges[:2]), (nodes[3:], edges[2:]))
    ]
    torch.testing.assert_close(pooled, torch.stack(means))
    line = head.mlp[0]
    torch.testing.assert_close(head(nodes, edges, TWO), pooled @ line.weight.t() + line.bias)
    assert head(nodes, edges, TWO).shape == (2, 2)


def test_a_graph_is_predicted_as_if_alone() -> None:
    nodes, edges = torch.randn(5, 4), torch.randn(3, 2)
    head = GraphHead(4, 2, 2, "attention", "nodes", hidden_widths=[6])
    alone = head(nodes[3:], edges[2:], Graph(torch.ones(2, 1), torch.ones(1, 1), torch.tensor([[0], [1]])))
    torch.testing.assert_close(head(nodes, edges, TWO)[1:], alone)


def test_reset_parameters_restarts() -> None:
    torch.manual_seed(0)
    fresh = GraphHead(4, 2, 2, "attention").state_dict()
    head = GraphHead(4, 2, 2, "attention")
    torch.manual_seed(0)
    head.reset_parameters()
    assert all(head.state_dict()[name].equal(value) for name, value in fresh.items())


def test_sparse_nodes_are_named() -> None:
    with pytest.raises(ValueError, match="nodes is sparse, expected dense"):
        GraphHead(5, 2, 2)(torch.eye(5).to_sparse_csr(), torch.randn(3, 2), TWO)
