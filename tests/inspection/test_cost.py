"""The estimate of memory and time, and what happens where memory is short."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

import censnet
from censnet.errors import SettingsError, TrainingStopped
from censnet.inspection import cost
from censnet.inspection.cost import check_memory, estimate_cost
from censnet.inspection.peak_memory import PeakMemory
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.settings.presets import make_settings
from censnet.tasks.targets import Target
from censnet.training.task_data import TaskData

SICK = Target(level="node", column="sick", kind="binary", classes=["no", "yes"])


def ring(size: int) -> TaskData:
    every = torch.arange(size)
    graph = Graph(torch.randn(size, 4), torch.randn(size, 2), torch.stack([every, every.roll(1)]))
    return TaskData(graph, [SICK], {"node": (every % 2).float().unsqueeze(1)}, {"node": every.unsqueeze(1) % 2})


def test_peak_memory_counts_what_is_alive_at_once() -> None:
    with PeakMemory() as memory:
        first = torch.ones(1000)
        for _ in range(5):
            first = first + torch.ones(1000)  # three at most, the old one, ones and the new one
    assert memory.peak == 12_000


def test_the_estimate_of_a_large_graph_grows_with_its_rows_and_is_measured_on_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cost, "peak_memory", lambda: 0)  # what other tests took is not of this one
    settings = make_settings("paper", "node", {"training.sampling": "full"})
    small, large = (estimate_cost(ring(size), settings) for size in (100_000, 400_000))
    assert large.measured_edges == small.measured_edges == cost.MAX_EDGES
    rows = 4 * 32 * 300_000
    assert 6 * rows < large.bytes - small.bytes < 40 * rows
    assert large.seconds > small.seconds > 0


def test_neighborhoods_of_a_large_graph_are_sampled_from_a_smaller_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "peak_memory", lambda: 0)
    draw = torch.Generator().manual_seed(0)
    graph = Graph(torch.randn(6000, 4), torch.randn(60_000, 2), torch.randint(6000, (2, 60_000), generator=draw))
    labels, parts = (torch.arange(6000) % 2).float().unsqueeze(1), torch.arange(6000).unsqueeze(1) % 3
    task_data = TaskData(graph, [SICK], {"node": labels}, {"node": parts})
    changes = {"training.sampling": "neighbors", "training.batch_size": 16, "training.fanout": 3}
    settings, found = make_settings("paper", "node", changes), []
    for most in (100_000, 20_000):
        monkeypatch.setattr(cost, "LARGE", most)
        found.append(estimate_cost(task_data, settings))
    whole, part = found
    assert whole.batches == 2000 // 16
    assert part.batches == pytest.approx(whole.batches, abs=1)
    assert part.measured_edges == pytest.approx(whole.measured_edges, rel=0.2)
    assert part.bytes == pytest.approx(whole.bytes, rel=0.1)


def test_memory_is_measured_without_the_compiler_of_torch() -> None:
    code = (
        "import sys, torch; from censnet.inspection.cost import PeakMemory\n"
        "with PeakMemory() as memory: torch.ones(1000) + 1\n"
        "print(memory.peak, 'torch._dynamo' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["8000", "False"]


@pytest.mark.slow
def test_many_graphs_are_measured_in_the_batches_that_are_trained() -> None:
    path = Graph(torch.ones(3, 1), torch.ones(2, 1), torch.tensor([[0, 1], [1, 2]]))
    target = Target(level="graph", column="mass", kind="regression")
    parts = torch.zeros(500, 1, dtype=torch.long)
    task_data = TaskData(GraphSet.pack([path] * 500), [target], {"graph": torch.randn(500, 1)}, {"graph": parts})
    found = estimate_cost(task_data, make_settings("strong", "graph"))
    assert (found.batches, found.measured_edges) == (31, 32)


@pytest.mark.slow
def test_the_estimated_memory_is_within_a_factor_of_two_of_what_a_training_takes() -> None:
    program = """
import numpy as np, pandas as pd, censnet
from censnet.inspection.cost import peak_memory
from censnet.pipeline import inspect_data
draw = np.random.default_rng(0)
rows = 12_000
ends = {"source": draw.integers(0, 3000, rows), "target": draw.integers(0, 3000, rows)}
table = pd.DataFrame({**ends, "x": draw.normal(size=rows), "late": draw.integers(0, 2, rows)})
before = peak_memory()
said = inspect_data(table, "edge:late", estimate=True).cost.bytes
censnet.train(table, "edge:late", settings={"training.epochs": 1}, device="cpu")
print(said - before, peak_memory() - before)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    said, used = map(int, done.stdout.split())
    assert used / 2 < said < used * 2


def test_a_training_that_does_not_fit_is_refused_before_it_begins(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "free_memory", lambda: 2**20)
    with pytest.raises(
        SettingsError, match=r"takes about .* GB of memory more, and 0.0 GB are free: lower model.hidden"
    ):
        censnet.train("karate", "node:faction", tmp_path / "run", device="cpu")
    assert not (tmp_path / "run").exists()
    with pytest.raises(SettingsError, match=r"lower model.hidden \(60,000\)"):
        censnet.train("karate", "node:faction", settings={"model.hidden": 60_000}, device="cpu")


@pytest.mark.parametrize(
    "name", ["model.hidden", "model.latent", "training.epochs", "training.fanout", "model.pre_layers"]
)
def test_settings_have_an_upper_bound(name: str) -> None:
    with pytest.raises(SettingsError, match=f"{name} is .*, expected at most"):
        make_settings("strong", "node", {name: 10**12})


def test_a_small_training_is_not_measured_beforehand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "estimate_cost", None)
    check_memory(ring(10), make_settings("paper", "node"), torch.device("cpu"))


def test_memory_that_runs_out_is_one_line_that_says_what_to_lower(monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(*_: object, **__: object) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 512 bytes. Error code 12")

    monkeypatch.setattr(sys.modules["censnet.pipeline.fit_run"], "fit_recipes", exhausted)
    with pytest.raises(TrainingStopped, match=r"^out of memory \(512 bytes were asked for\): lower model.hidden"):
        censnet.train("karate", "node:faction")
