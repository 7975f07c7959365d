"""Several processes: many graphs are shared among them, one whole graph is not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from samples import shapes

from censnet.runs import load_run

SCRIPT = """
import os, socket, sys
sys.path.insert(0, {tests!r})
import torch
from samples import payments, quick, shapes
from censnet.pipeline import train

torch.set_num_threads(1)
with socket.socket() as free:
    free.bind(("localhost", 0))
    place = dict(MASTER_ADDR="localhost", MASTER_PORT=str(free.getsockname()[1]), WORLD_SIZE="2")
other = os.fork()  # what torchrun does, but for importing everything twice
rank = "1" if other == 0 else "0"
os.environ.update(place, RANK=rank, LOCAL_RANK=rank, ACCELERATE_USE_CPU="true")
said = open(sys.argv[1] + "/said-" + rank, "w")
settings = quick(training__epochs=4, training__batch_size=6, training__patience=2, model__norm="batch")
chosen = dict(weight="number")  # a column of graphs goes with its graph, to whichever process
run = train(shapes(40), "graph:ring", sys.argv[1] + "/many", settings=settings, device="cpu", overrides=chosen)
total = sum(float(tensor.double().sum()) for tensor in run.models[0].state_dict().values())
print(total, len(run.history), file=said)
try:
    train(payments(), "edge:fraud", sys.argv[1] + "/one", settings=settings, device="cpu")
except ValueError as error:
    print(error, file=said)
torch.distributed.destroy_process_group()
said.close()
if other:
    sys.exit(os.waitpid(other, 0)[1])
"""


@pytest.mark.slow
def test_two_processes_share_many_graphs_and_refuse_one_whole_graph(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(tests=str(Path(__file__).parents[1])))
    try:
        done = subprocess.run([sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, timeout=300)
    except OSError as error:
        pytest.skip(f"two processes cannot be started here: {error}")
    assert done.returncode == 0, done.stderr[-3000:]
    first, second = ((tmp_path / f"said-{rank}").read_text().splitlines() for rank in range(2))
    assert first == second, "both processes end with the same weights and the same epochs"
    assert first[1].startswith("2 processes would all do the same work on one whole graph: start one, or set")
    assert not (tmp_path / "one").exists()
    run = load_run(tmp_path / "many")
    assert run.config.graph_width == 1
    assert run.evaluate(shapes(40)) == run.metrics
    assert len(run.history) == int(first[0].split()[1])
    assert not (tmp_path / "many" / "checkpoint").exists()
