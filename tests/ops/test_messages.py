"""Messages with a weight for each channel: in blocks as at once, in batches as alone."""

from __future__ import annotations

import pytest
import torch
from strategies import fill, value_and_gradients
from torch import Tensor

from censnet.ops import Incidence, messages, propagate_nodes
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet

ENDS = torch.tensor([[0, 1, 2, 1, 3, 3, 3], [1, 2, 0, 0, 3, 0, 3]])  # parallel edges and loops


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = fill(Incidence(ENDS, 5), 4, 4, seed=2)

    def propagate(rows: Tensor, weight: Tensor) -> Tensor:
        return propagate_nodes(rows, weight, sample.incidence, 0.0)

    expected = value_and_gradients(propagate, sample.nodes, sample.edge_weight)
    monkeypatch.setattr(messages, "BLOCK", 2)
    for found, other in zip(value_and_gradients(propagate, sample.nodes, sample.edge_weight), expected, strict=True):
        assert found.equal(other)


def test_the_entries_of_a_batch_are_those_that_sorting_gives() -> None:
    path = Graph(torch.ones(3, 1), torch.ones(2, 1), torch.tensor([[0, 1], [1, 2]]))
    turned = Graph(torch.ones(4, 1), torch.ones(4, 1), torch.tensor([[3, 1, 0, 3], [0, 0, 2, 1]]))
    batch = GraphSet.pack([path, turned]).batch(torch.tensor([1, 0, 1])).incidence
    alone = Incidence(batch.ends, batch.num_nodes)
    assert batch.entries.index.equal(alone.entries.index)
    assert batch.entries.offset.equal(alone.entries.offset)


def test_the_mean_over_edges_counts_a_loop_once_and_leaves_0_where_there_are_none() -> None:
    incidence = Incidence(ENDS, 5)
    edges = torch.randn(7, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    incident = [(ends == ENDS).any(0).nonzero().squeeze(1) for ends in torch.arange(5)]
    expected = torch.stack([edges[rows].mean(0) if len(rows) else edges.new_zeros(3) for rows in incident])
    torch.testing.assert_close(incidence.mean(edges), expected)
    assert torch.autograd.gradcheck(incidence.mean, edges.requires_grad_())
