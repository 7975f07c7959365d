"""Batched networks train as they do one by one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from censnet_experiments.batched_trainer import Adam, BestEpoch, NodeSplits, batch_networks, train
from censnet_experiments.data import NodeData
from censnet_experiments.models import NODE_MODELS, build_node_model
from censnet_experiments.plan import Recipe

OPTIONS: dict[str, dict[str, Any]] = {
    "adalnet": {"steps": 4, "long": [3, 6], "filter_width": 8, "embedding": 4},
    "gat": {"heads": 2, "hidden": 4},
    "lnet": {"steps": 4, "long": [3, 6], "filter_width": 8},
}


def make(name: str, data: NodeData, seeds: int, **options: Any) -> list[nn.Module]:
    given = {"dropout": 0.0} | OPTIONS.get(name, {"hidden": 8}) | options
    return [build_node_model(name, data.graph, data.num_classes, given, seed) for seed in range(seeds)]


@pytest.mark.slow
@pytest.mark.parametrize("name", NODE_MODELS)
def test_batched_training_is_the_loop(name: str, citations: NodeData) -> None:
    """Same weights, no dropout: the same epochs are best, with the same accuracy, for each split and learning rate."""
    models = make(name, citations, 4)
    rows, rates = NodeSplits(citations.labels, citations.parts["cora-3"]), [0.02, 0.01, 0.02, 0.005]
    recipe = Recipe(name, epochs=12, weight_decay=1e-3, decay_first=name == "gcn")
    one, all_at_once = (train(models, citations.graph, rows, rates, recipe, batched=count) for count in (1, 4))
    for field in ("validation", "test", "epoch"):
        torch.testing.assert_close(getattr(all_at_once, field), getattr(one, field))


@pytest.mark.parametrize("name", NODE_MODELS)
def test_logits_of_members_are_those_of_the_networks(name: str, citations: NodeData) -> None:
    models = make(name, citations, 3)
    inputs = models[0].inputs(citations.graph)
    together = batch_networks(models, torch.device("cpu")).forward(False, inputs)
    alone = torch.stack([model.eval()(*inputs) for model in models])
    torch.testing.assert_close(together, alone)


@pytest.mark.parametrize("name", ["censnet", "gcn", "gat"])
def test_members_have_independent_dropout(name: str, citations: NodeData) -> None:
    """Two members with the same weights have different outputs in training, and the same otherwise."""
    models = make(name, citations, 1, dropout=0.5) * 2
    network = batch_networks(models, torch.device("cpu"))
    inputs = models[0].inputs(citations.graph)
    first, second = network.forward(True, inputs)
    assert not torch.equal(first, second)
    first, second = network.forward(False, inputs)
    torch.testing.assert_close(first, second)


def test_the_loop_is_plain_training(citations: NodeData) -> None:
    """A loop written out, with torch's Adam and the rows of one split, finds the same best epoch."""
    (model,) = make("gcn", citations, 1)
    parts, labels = citations.parts["cora-3"][:1], citations.labels
    recipe = Recipe("gcn", epochs=15, weight_decay=5e-4)
    found = train([model], citations.graph, NodeSplits(labels, parts), [0.02], recipe)
    adam = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=5e-4)
    inputs = model.inputs(citations.graph)
    best = (0.0, 0.0, 0)
    for epoch in range(1, 16):
        adam.zero_grad()
        nn.functional.cross_entropy(model.train()(*inputs)[parts[0] == 0], labels[parts[0] == 0]).backward()
        adam.step()
        hit = (model.eval()(*inputs).argmax(1) == labels).float()
        validation, test = (float(hit[parts[0] == part].mean()) for part in (1, 2))
        if validation > best[0]:
            best = (validation, test, epoch)
    assert (float(found.validation), float(found.test), int(found.epoch)) == pytest.approx(best)


def test_networks_are_not_modified_by_training(citations: NodeData) -> None:
    models = make("censnet", citations, 2)
    before = [parameter.clone() for model in models for parameter in model.parameters()]
    rows = NodeSplits(citations.labels, citations.parts["cora-3"][:2])
    train(models, citations.graph, rows, [0.1, 0.1], Recipe("censnet", epochs=3), batched=2)
    for old, new in zip(before, (p for model in models for p in model.parameters()), strict=True):
        torch.testing.assert_close(new, old, rtol=0, atol=0)


@pytest.mark.slow
def test_early_stopping_of_a_member_does_not_stop_the_others(citations: NodeData) -> None:
    """With patience, the best epoch is the first one that nothing beats within so many epochs."""
    models = make("gcn", citations, 4)
    rows, recipe = NodeSplits(citations.labels, citations.parts["cora-3"]), Recipe("gcn", epochs=120, patience=5)
    rates = [0.02, 0.0005, 0.05, 0.01]
    one, all_at_once = (train(models, citations.graph, rows, rates, recipe, batched=count) for count in (1, 4))
    torch.testing.assert_close(one.epoch, all_at_once.epoch)
    patient = train(models, citations.graph, rows, rates, Recipe("gcn", epochs=120))
    assert bool((one.validation <= patient.validation).all())
    assert bool((one.epoch < patient.epoch).any())


def test_adam_is_torchs_for_each_member() -> None:
    draw = torch.Generator().manual_seed(1)
    start = torch.randn(3, 4, 2, dtype=torch.float64, generator=draw)
    rates, decay = [0.1, 0.01, 0.001], 0.05
    together = start.clone().requires_grad_()
    ours = Adam([together], torch.tensor(rates), [decay])
    alone = [start[m].clone().requires_grad_() for m in range(3)]
    theirs = [torch.optim.Adam([p], lr=rate, weight_decay=decay) for p, rate in zip(alone, rates, strict=True)]
    for _ in range(20):
        ours.step(torch.autograd.grad((together**4 - together).sum(), [together]))
        for p, optimizer in zip(alone, theirs, strict=True):
            optimizer.zero_grad()
            (p**4 - p).sum().backward()
            optimizer.step()
    torch.testing.assert_close(together.detach(), torch.stack(alone).detach())


def test_splits_without_labels_or_of_other_sizes_are_refused(citations: NodeData) -> None:
    parts = citations.parts["cora-3"].clone()
    parts[0, (parts[0] == 0).nonzero()[0]] = -1
    with pytest.raises(ValueError, match=r"\[8, 9, 9, 9\] training nodes, expected equally many"):
        NodeSplits(citations.labels, parts)
    with pytest.raises(ValueError, match="a node of a split has no label"):
        NodeSplits(torch.full((60,), -1), citations.parts["cora-3"])


def test_a_trained_classifier_beats_chance(citations: NodeData) -> None:
    models = make("censnet", citations, 2, hidden=32, gate_init="positive")
    rows = NodeSplits(citations.labels, citations.parts["cora-3"][:2])
    found: BestEpoch = train(models, citations.graph, rows, [0.02, 0.02], Recipe("censnet", epochs=40), batched=2)
    assert float(found.test.min()) > 0.5


@pytest.mark.parametrize("kernel", ["power", "pagerank", "lanczos"])
def test_members_of_censnet_take_every_kernel(kernel: str, citations: NodeData) -> None:
    models = make("censnet", citations, 3, kernel=kernel)
    nodes, edges, incidence = models[0].inputs(citations.graph)
    inputs = nodes, edges / 10, incidence  # ten hops of large gates would be beyond any float
    together = batch_networks(models, torch.device("cpu")).forward(False, inputs)
    alone = torch.stack([model.eval()(*inputs) for model in models])
    torch.testing.assert_close(together, alone, atol=1e-4, rtol=1e-4)
