"""Several processes: each has its share of the rows of every step, and all end with the same weights."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
import torch
from commands import SMALL, run
from pair import run_pairs
from samples import payments, quick, shapes

from censnet.data import DataError, Tables
from censnet.pipeline import train
from censnet.pipeline.prepare import prepare
from censnet.runs import load_run
from censnet.training import processes
from censnet.training.batches import make_batches, share_of

SAMPLED = quick(
    training__epochs=4, training__sampling="neighbors", training__batch_size=8, training__fanout=3, model__norm="layer",
    model__dropout=0.2, model__known_labels=True,
)  # fmt: skip


def test_shares_are_disjoint_and_alike():
    chosen = torch.randperm(23)
    shares = [share_of(chosen, process, 4) for process in range(4)]
    assert sorted(torch.cat(shares).tolist()) == list(range(23))
    assert [len(share) for share in shares] == [6, 6, 6, 5]
    assert share_of(chosen, 0, 1).equal(chosen)


def test_where_there_are_fewer_samples_than_processes_all_have_one():
    assert [share_of(torch.tensor([7, 9]), process, 5).tolist() for process in range(5)] == [[7], [9], [7], [9], [7]]


def test_each_share_of_a_proportional_batch_is_in_proportion():
    prepared = prepare(payments(), "node:vip", changes=SAMPLED | {"training.sampling": "proportional"})
    task_data = prepared.task_data.with_inputs(prepared.settings.model)
    batches = make_batches(task_data, prepared.settings.training, 2, processes=2)
    codes = task_data.parts["node"][:, 0]
    for step in batches.plan(torch.Generator().manual_seed(0)):
        counts = [codes[share_of(step, process, 2)].bincount(minlength=3) for process in range(2)]
        assert int((counts[0] - counts[1]).abs().max()) <= 1


def test_one_process_needs_nobody(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert processes.launched() == processes.count() == processes.per_machine() == 1
    assert processes.on_first(lambda: 3) == 3
    with pytest.raises(DataError, match="no such column"), processes.together():
        raise DataError("no such column")
    lost = RuntimeError("[gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:3432")
    assert not processes.is_lost(lost)
    monkeypatch.setattr(processes, "count", lambda: 2)
    assert processes.is_lost(lost)
    assert not processes.is_lost(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert processes.launched() == 4


EXACT = quick(
    training__sampling="neighbors", training__fanout=4096, training__epochs=3, training__max_grad_norm=1.0,
    training__lp_penalty=1e-4, training__ema_decay=0.9, model__norm="layer", model__dropout=0.0,
    training__patience=None,
)  # fmt: skip


def sparse_payments():
    """Payments of which most have no fee, so that the shares of a step have different numbers of labels."""
    tables = payments(30, 100)
    return Tables(tables.nodes, tables.edges.assign(fee=tables.edges["fee"].where(tables.edges.index % 5 == 0)))


@pytest.mark.slow
def test_two_processes_share_many_graphs_and_one_graph(tmp_path):
    (pair,) = run_pairs(
        tmp_path,
        f"""
settings = quick(training__epochs=4, training__batch_size=6, training__patience=2, model__norm="batch")
chosen = dict(weight="number")  # a column of graphs goes with its graph, to whichever process
run = train(shapes(40), "graph:ring", out + "/many", settings=settings, device="cpu", overrides=chosen)
say_weights(run)
say(len(run.history), run.metrics)
run = train(payments(), ["edge:fraud", "node:vip"], out + "/one", settings={SAMPLED!r}, device="cpu", ensemble=2)
say_weights(run)
say(len(run.history), run.metrics)
open(out + f"/rows-{{rank}}", "w").write(str(sum(map(len, run.predictions.values()))))
from training.test_processes import EXACT, sparse_payments
target, settings = ["edge:fraud", "edge:fee"], EXACT | {{"training.batch_size": 10}}
train(sparse_payments(), target, out + "/exact", settings=settings, device="cpu")
plain = quick(model__norm="layer", training__epochs=2)
run = train(payments(), "edge:fraud", out + "/chosen", settings=plain, device="cpu")
say(run.config.settings.training.sampling)
say_error(train, payments(), "edge:fraud", out + "/a", settings=quick(training__sampling="full"), device="cpu")
say_error(train, payments(), "link", out + "/b", device="cpu")
say_error(train, out + "/absent.csv" if rank else payments(), "edge:fraud", out + "/c", settings=plain, device="cpu")
say_error(train, payments(), "edge:fraud", out + "/one", settings=plain, device="cpu")
say_error(train, payments(), "edge:fraud", out + "/one", settings={SAMPLED!r}, device="cpu", finish=True)
""",
    )
    assert pair.codes == [0, 0], pair.stderr
    assert pair.first == pair.second, "all end with the same weights, epochs, scores and errors"
    many, one, chosen = (load_run(tmp_path / name) for name in ("many", "one", "chosen"))
    assert many.config.graph_width == 1
    assert many.evaluate(shapes(40)) == many.metrics
    assert one.evaluate(payments()) == one.metrics
    assert len(one.models) == 2
    assert chosen.config.start.processes == 2
    assert [(tmp_path / f"rows-{rank}").read_text() for rank in range(2)] == ["120", "0"]
    assert pair.first[4] == "neighbors"
    full, link, absent, there, finish = pair.first[5:]
    assert full.endswith("on one whole graph: start one process, or set training.sampling=neighbors")
    assert link.endswith("links are predicted, and each step needs all of them: start one process")
    assert "absent.csv" in absent, "one that cannot read its data stops all"
    assert "holds a finished run" in there
    assert finish.startswith("ArgumentError finish is given to 2 processes, expected one")
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["chosen", "exact", "many", "one"]
    assert not list(tmp_path.glob("*/checkpoint"))
    alone = train(
        sparse_payments(), ["edge:fraud", "edge:fee"], settings=EXACT | {"training.batch_size": 20}, device="cpu"
    )
    same_training(alone, load_run(tmp_path / "exact"))


def same_training(alone, both):
    """With all edges of each node and without dropout nothing differs but the order of a sum."""
    assert len(alone.history) == 3
    for column in ("loss", "learning_rate", "validation_loss"):
        found, expected = (torch.tensor(run.history[column].to_numpy()) for run in (both, alone))
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    for name, tensor in alone.models[0].state_dict().items():
        torch.testing.assert_close(both.models[0].state_dict()[name], tensor, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_a_killed_process_stops_the_other_and_resuming_ends_with_the_same_bits(tmp_path):
    settings = SAMPLED | {"training.checkpoint_seconds": 0.0, "training.epochs": 3, "training.batch_size": 12}
    pair, again = run_pairs(
        tmp_path,
        f"""
from censnet.training.trainer import Trainer
settings = {settings!r}
once = settings | {{"training.checkpoint_seconds": 1000.0}}
run = train(payments(), "edge:fraud", out + "/whole", settings=once, device="cpu")
say_weights(run)
step = Trainer._step

def die(self, chosen):
    if rank == 1 and self.progress.epoch == 1 and self.progress.step == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return step(self, chosen)

Trainer._step = die
say_error(train, payments(), "edge:fraud", out + "/killed", settings=settings, device="cpu")
say(sorted(os.listdir(out + "/killed")))
""",
        f"""
run = train(payments(), "edge:fraud", out + "/killed", settings={settings!r}, device="cpu", if_exists="resume")
say_weights(run)
""",
    )
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    assert pair.codes == [0, -signal.SIGKILL]
    assert len(pair.second) == 1
    assert pair.first[1].startswith("TrainingStopped one of the 2 processes has ended, so the others ended too: start ")
    assert "resume" in pair.first[1]
    assert pair.first[2] == "['checkpoint', 'history.csv']"
    assert again.codes == [0, 0], again.stderr
    assert again.first == again.second == pair.first[:1]
    for name in ("model.safetensors", "history.csv", "metrics.json", "predictions.csv"):
        assert (killed / name).read_bytes() == (whole / name).read_bytes(), name


@pytest.mark.slow
def test_torchrun_ends_with_a_line_after_a_kill_and_leaves_no_process(tmp_path):
    (tmp_path / "data").mkdir()
    for name, frame in payments().frames().items():
        frame.to_csv(tmp_path / "data" / f"{name}.csv", index=False)
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "censnet",
        "train", tmp_path / "data", "--target", "edge:fraud", "--out", tmp_path / "run", *SMALL, "--set",
        "training.epochs=100000", "--set", "training.checkpoint_seconds=0",
    ]  # fmt: skip
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    launcher = subprocess.Popen([*map(str, command)], stderr=subprocess.PIPE, text=True, env=environment)
    try:
        history = tmp_path / "run" / "history.csv"
        wait_for(lambda: history.exists() and len(history.read_text().splitlines()) > 2)  # both take steps
        workers = psutil.Process(launcher.pid).children()
        assert len(workers) == 2
        first = next(worker for worker in workers if worker.environ()["RANK"] == "0")
        first.send_signal(signal.SIGKILL)
        _, stderr = launcher.communicate(timeout=60)
    finally:
        launcher.kill()
    assert launcher.returncode != 0
    assert not any(worker.is_running() for worker in workers)
    lines = [line for line in stderr.splitlines() if line.startswith("error:")]
    assert len(lines) == 1
    assert lines[0].startswith("error: one of the 2 processes has ended, so the others ended too: start all of them")
    assert sum("2 processes share the training" in line for line in stderr.splitlines()) == 1
    assert not (tmp_path / "run" / "config.json").exists()
    assert json.loads((tmp_path / "run" / "checkpoint" / "start.json").read_text())["processes"] == 2
    refused = run("train", "--resume", "--out", tmp_path / "run")
    assert refused.exit_code == 2
    assert "was started by 2 processes, and now there is 1: give the same" in refused.output.replace("\n", " ")


def wait_for(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.05)
