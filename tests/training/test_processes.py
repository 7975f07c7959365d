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
print("started", flush=True)
settings = quick(training__epochs=4, training__batch_size=6, training__patience=2, model__norm="batch")
run = train(shapes(40), "graph:ring", sys.argv[1] + "/many", settings=settings, device="cpu")
total = sum(float(tensor.double().sum()) for tensor in run.learners[0].state_dict().values())
print("weights", total, len(run.history), flush=True)
try:
    train(payments(), "edge:fraud", sys.argv[1] + "/one", settings=settings, device="cpu")
except ValueError as error:
    print("refused", error, flush=True)
"""


def test_two_processes_share_many_graphs_and_refuse_one_whole_graph(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(tests=str(Path(__file__).parents[1])))
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--rdzv-backend", "c10d"]
    command += ["--rdzv-endpoint", "localhost:0", str(script), str(tmp_path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    except OSError as error:
        pytest.skip(f"two processes cannot be started here: {error}")
    if "started" not in done.stdout:
        pytest.skip(f"two processes cannot be started here: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stderr[-3000:]
    lines = sorted(set(done.stdout.splitlines()))
    assert len(lines) == 3, "both processes end with the same weights and the same epochs"
    assert lines[0].startswith("refused 2 processes would all do the same work on one whole graph: start one, or set")
    assert not (tmp_path / "one").exists()
    run = load_run(tmp_path / "many")
    assert run.evaluate(shapes(40)) == run.metrics
    assert len(run.history) == int(lines[2].split()[-1])
    assert not (tmp_path / "many" / "checkpoint").exists()
