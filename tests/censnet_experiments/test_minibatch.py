"""Mini-batch training by Algorithm 2 of the paper."""

from __future__ import annotations

import pytest
import torch

from censnet_experiments import minibatch
from censnet_experiments.batched_trainer import NodeSplits, train
from censnet_experiments.data import NodeData
from censnet_experiments.minibatch import train_in_batches
from censnet_experiments.models import build_node_model
from censnet_experiments.plan import Recipe


def test_one_batch_of_all_nodes_is_full_batch_training(citations: NodeData) -> None:
    models = [build_node_model("censnet", citations.graph, 3, {"hidden": 8}, seed) for seed in range(2)]
    rows, rates = NodeSplits(citations.labels, citations.parts["cora-3"][:2]), [0.02, 0.01]
    recipe = Recipe("censnet", epochs=12, weight_decay=1e-3, batch_size=citations.graph.num_nodes)
    parts = train_in_batches(models, citations.graph, rows, rates, recipe)
    whole = train(models, citations.graph, rows, rates, Recipe("censnet", epochs=12, weight_decay=1e-3))
    for field in ("validation", "test", "epoch"):
        torch.testing.assert_close(getattr(parts, field), getattr(whole, field))


def test_an_epoch_sees_every_node_once_and_training_nodes_in_proportion(
    citations: NodeData, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    original = minibatch.induced_subgraph
    record = lambda graph, nodes: seen.append(nodes) or original(graph, nodes)  # noqa: E731
    monkeypatch.setattr(minibatch, "induced_subgraph", record)
    model = build_node_model("censnet", citations.graph, citations.num_classes, {"hidden": 4}, 0)
    part = citations.parts["cora-3"][:1]
    half = -(-citations.graph.num_nodes // 2)
    recipe = Recipe("censnet", epochs=1, batch_size=half)
    train_in_batches([model], citations.graph, NodeSplits(citations.labels, part), [0.01], recipe)
    assert len(seen) == 2
    assert sorted(torch.cat(seen).tolist()) == list(range(citations.graph.num_nodes))
    count = [int((part[0][nodes] == 0).sum()) for nodes in seen]
    assert abs(count[0] - count[1]) <= 1
