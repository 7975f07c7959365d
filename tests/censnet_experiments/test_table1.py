"""Table 1: the learning rate of a record is selected on the validation set."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from censnet_experiments import table1
from censnet_experiments.batched_trainer import Compute
from censnet_experiments.data import NodeData
from censnet_experiments.plan import Plan, Recipe
from censnet_experiments.records import read
from censnet_experiments.runner import run_plan

CPU = torch.device("cpu")


def test_the_record_is_the_learning_rate_that_is_best_on_validation(citations: NodeData, tmp_path: Path) -> None:
    """The record is the best of two runs with one learning rate each, by validation alone."""
    plan = Plan("table1", "gcn", Recipe("gcn", {"hidden": 8, "dropout": 0.0}, (0.05, 0.0005), epochs=10), runs=2)
    run_plan(plan, ["cora-3"], citations, [0, 1], tmp_path, Compute(CPU, batched=4))
    found = read(tmp_path / "table1" / "cora-3" / "gcn.jsonl")
    for seed in (0, 1):
        alone = {}
        for rate in plan.recipe.learning_rates:
            single = replace(plan, recipe=replace(plan.recipe, learning_rates=(rate,)))
            alone[rate] = table1.train_seeds(single, "cora-3", citations, [seed], Compute(CPU))
        best = max(alone, key=lambda rate: float(alone[rate].validation))
        assert found[seed].chosen["learning_rate"] == best
        assert found[seed].metrics["test"] == pytest.approx(float(alone[best].test), abs=1e-5)
        assert found[seed].split_seed == seed
