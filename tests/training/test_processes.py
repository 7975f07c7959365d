"""Several processes: many graphs are shared among them, one whole graph is not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from training.samples import shapes

from censnet.training import load_run

SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
from training.samples import payments, quick, shapes
from censnet.training import train
import torch
torch.set_num_threads(1)
data, target = (shapes(40), "graph:ring") if sys.argv[1] == "many" else (payments(), "edge:fraud")
settings = quick(training__epochs=4, training__batch_size=6, training__patience=2, model__norm="batch")
run = train(data, target, sys.argv[2], settings=settings, device="cpu")
total = sum(float(tensor.double().sum()) for tensor in run.learners[0].state_dict().values())
print("weights", total, len(run.history), flush=True)
"""


def launch(kind: str, folder: Path) -> subprocess.CompletedProcess[str]:
    script = folder / "script.py"
    script.write_text(SCRIPT.format(tests=str(Path(__file__).parents[1])))
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "0"]
    command += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", str(script), kind, str(folder / "run")]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=240)
    except (OSError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"two processes cannot be started here: {error}")


def test_two_processes_share_many_graphs_and_one_of_them_writes(tmp_path):
    done = launch("many", tmp_path)
    if "weights" not in done.stdout and "Error" not in done.stderr:
        pytest.skip(f"two processes cannot be started here: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stderr[-3000:]
    said = [line for line in done.stdout.splitlines() if line.startswith("weights")]
    assert len(said) == 2
    assert said[0] == said[1], "both end with the same weights and the same epochs"
    run = load_run(tmp_path / "run")
    assert run.evaluate(shapes(40)) == run.metrics
    names = sorted(path.name for path in (tmp_path / "run").iterdir())
    assert names == [
        "config.json", "history.csv", "metrics.json", "model.safetensors", "predictions.csv", "schema.json",
        "splits.csv",
    ]  # fmt: skip
    assert f"{len(run.history)}" == said[0].split()[-1]


def test_two_processes_refuse_one_whole_graph(tmp_path):
    done = launch("one", tmp_path)
    message = "2 processes would all do the same work on one whole graph: start one, or set training.sampling"
    if message not in done.stderr and "Error" not in done.stderr:
        pytest.skip(f"two processes cannot be started here: {done.stderr[-300:]}")
    assert done.returncode != 0
    assert message in done.stderr
