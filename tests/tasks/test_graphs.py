"""Answers for whole graphs come from their pooled vectors, each graph's from its own rows."""

from __future__ import annotations

import pytest
import torch

from censnet.nn.graph_task import GraphTask
from censnet.ops import Incidence
from censnet.tasks.targets import Target

TARGETS = [
    Target(level="graph", column="toxic", kind="binary", classes=["0", "1"]),
    Target(level="graph", column="weight", kind="regression"),
]
TWO = Incidence(torch.tensor([[0, 1, 3], [1, 2, 4]]), 5, torch.tensor([0, 0, 0, 1, 1]), 2)


def test_answers_are_a_line_over_the_pooled_vector() -> None:
    nodes, edges = torch.randn(5, 4), torch.randn(3, 2)
    task = GraphTask(TARGETS, 4, 2, pool=("mean", "sum"), over="both")
    pooled = task.embed(nodes, edges, TWO)
    means = [
        torch.cat([n.mean(0), n.sum(0), e.mean(0), e.sum(0)])
        for n, e in ((nodes[:3], edges[:2]), (nodes[3:], edges[2:]))
    ]
    torch.testing.assert_close(pooled, torch.stack(means))
    line = task.head.mlp[0]
    torch.testing.assert_close(task(nodes, edges, TWO), pooled @ line.weight.t() + line.bias)
    assert task(nodes, edges, TWO).shape == (2, 2)


def test_a_graph_is_answered_as_if_alone() -> None:
    nodes, edges = torch.randn(5, 4), torch.randn(3, 2)
    task = GraphTask(TARGETS, 4, 2, "attention", "nodes", hidden=[6])
    alone = task(nodes[3:], edges[2:], Incidence(torch.tensor([[0], [1]]), 2))
    torch.testing.assert_close(task(nodes, edges, TWO)[1:], alone)


def test_reset_parameters_restarts() -> None:
    torch.manual_seed(0)
    fresh = GraphTask(TARGETS, 4, 2, "attention").state_dict()
    task = GraphTask(TARGETS, 4, 2, "attention")
    torch.manual_seed(0)
    task.reset_parameters()
    assert all(task.state_dict()[name].equal(value) for name, value in fresh.items())


def test_sparse_nodes_are_named() -> None:
    with pytest.raises(ValueError, match="nodes is sparse, expected dense"):
        GraphTask(TARGETS, 5, 2)(torch.eye(5).to_sparse_csr(), torch.randn(3, 2), TWO)


def test_targets_of_another_level_are_named() -> None:
    other = Target(level="node", column="age", kind="regression")
    with pytest.raises(ValueError, match="target age is of the nodes, expected one of the graphs"):
        GraphTask([*TARGETS, other], 4, 2)
    with pytest.raises(ValueError, match="targets is empty, expected columns of the graphs"):
        GraphTask([], 4, 2)
