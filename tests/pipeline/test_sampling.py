"""Sampled neighborhoods in training, whole ones in prediction: on a graph with hubs both trainings agree."""

from __future__ import annotations

import logging

import numpy as np
import pandas as pd
import pytest

from censnet.data.tables.files import Tables
from censnet.pipeline import resolve_inputs, resolve_sampling, train
from censnet.pipeline.prepare import prepare
from censnet.training import choose_sampling


def hubs(edges: int = 3000) -> Tables:
    """A label by means over the edges of both ends and by their numbers, in a graph of very unequal degrees."""
    rng = np.random.default_rng(0)
    nodes = edges // 15
    chance = 1 / np.arange(1, nodes + 1) ** 0.9
    source, target = (rng.choice(nodes, edges, p=chance / chance.sum()) for _ in range(2))
    amount = rng.normal(size=nodes)[source] + 0.5 * rng.normal(size=edges)
    out, into = (np.bincount(end, minlength=nodes) for end in (source, target))
    mean, size = np.bincount(source, amount, nodes) / np.maximum(out, 1), np.log1p(into)
    label = mean[source] - mean[target] + 0.5 * (size[source] - size[target]) > 0
    assert out.max() > 50 * np.median(out)
    columns = {"source": source, "target": target, "amount": amount, "label": np.where(label, "yes", "no")}
    return Tables(pd.DataFrame({"id": range(nodes)}), pd.DataFrame(columns))


@pytest.mark.slow
def test_sampled_and_full_training_agree_on_a_graph_with_hubs():
    tables, auc = hubs(), {}
    for sampling, epochs in (("full", 40), ("neighbors", 8)):
        settings = {"training.sampling": sampling, "training.epochs": epochs, "training.batch_size": 128}
        settings |= {"model.triangles": False, "data.fractions": (0.5, 0.1, 0.4)}
        auc[sampling] = train(tables, "edge:label", settings=settings).metrics["test"]["edge"]["auc"]
    assert min(auc.values()) > 0.99
    assert abs(auc["full"] - auc["neighbors"]) < 0.005


def test_a_large_graph_has_some_epochs_of_sampled_steps(monkeypatch, caplog):
    def training() -> tuple[int, int | None]:
        settings = prepare(hubs(), "edge:label", "strong", {}).settings.training
        return settings.epochs, settings.patience

    whole = training()
    assert whole == (300, 100), "one step an epoch"
    for module in (choose_sampling, resolve_inputs):
        monkeypatch.setattr(module, "MAX_FULL_BATCH", 2**16)
    with caplog.at_level(logging.INFO):
        sampled = training()
    assert "full-batch steps are slow, so neighbors are sampled" in caplog.text
    steps = 2400 // 1024
    assert sampled == (min(resolve_sampling.SAMPLED_STEPS // steps, 300), 100)
    monkeypatch.setattr(resolve_sampling, "SAMPLED_STEPS", 60)
    assert training() == (30, 10)
