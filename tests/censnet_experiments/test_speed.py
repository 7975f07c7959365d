"""Times of epochs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from censnet_experiments import runner, speed
from censnet_experiments.batched_trainer import Compute
from censnet_experiments.data import NodeData
from censnet_experiments.plan import Plan, Recipe
from censnet_experiments.records import read
from censnet_experiments.spec import find_spec


def test_epochs_are_timed(citations: NodeData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "WARMUP", 1)
    plan = Plan("speed", "censnet", Recipe("censnet", find_spec("speed", "censnet").recipe.options, (0.01,), epochs=3))
    runner.run_plan(plan, ["cora-cpu"], citations, [0, 1], tmp_path, Compute(torch.device("cpu")))
    records = read(tmp_path / "speed/cora-cpu/censnet.jsonl")
    assert len(records) == 2
    assert all(0 < record.metrics["milliseconds"] < 1000 * record.seconds for record in records)
