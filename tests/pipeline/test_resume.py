"""A training that was stopped goes on to the bits of one that was not: by an exception, by Ctrl-C, by a kill."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from crashes import CrashError, stop_at
from samples import content, payments, quick, shapes, smiles

from censnet.data.tables.files import Tables
from censnet.errors import TrainingStopped
from censnet.pipeline import resume_run, train
from censnet.runs import load_run
from censnet.training.checkpoint import load_tensors, save_tensors

STOCHASTIC = {
    "model__dropout": 0.4,
    "training__epochs": 9,
    "training__patience": 4,
    "training__learning_rate": 0.05,
    "training__batch_size": 16,
    "training__schedule": "warmup-cosine",
    "training__warmup": 0.2,
    "training__max_grad_norm": 1.0,
}


def dated() -> Tables:
    """Payments, each with its time."""
    data = payments()
    assert data.edges is not None
    return Tables(data.nodes, data.edges.assign(at=np.arange(len(data.edges)) // 2))


KINDS = {
    "whole graph": (payments, "edge:fraud", {}, 1),
    "batch norm": (payments, "edge:fee", {"model__norm": "batch", "model__residual": True}, 1),
    "many graphs": (shapes, "graph:ring", {"model__norm": "batch"}, 1),
    "neighbors": (
        payments,
        "edge:fraud",
        {
            "training__sampling": "neighbors",
            "training__fanout": 8,
            "training__ema_decay": 0.0,
            "model__norm": "batch",
            "model__layers": "ENE",
        },
        1,
    ),
    "known labels": (payments, "edge:fraud", {"model__known_labels": True, "model__triangles": True}, 1),
    "recomputed": (payments, "edge:fraud", {"model__norm": "batch", "training__recompute": True}, 1),
    "history": (
        dated,
        "edge:fraud",
        {
            "data__time": "at",
            "training__sampling": "history",
            "model__causal": True,
            "model__layers": "CC",
            "model__norm": "layer",
        },
        1,
    ),
    "balanced": (payments, "node:vip", {"training__imbalance": "sampling"}, 1),
    "links": (payments, ["node:vip", "link"], {}, 1),
    "pairs": (
        payments,
        "link",
        {"model__decoder": "pairwise", "training__edge_mask_ratio": 0.4, "training__negative_ratio": 2},
        1,
    ),
    "side by side": (payments, "node:tier", {"model__norm": "batch", "training__ema_decay": 0.9}, 3),
    "guesses": (payments, "node:tier", {"training__pseudo_label_weights": [0.0, 1.0]}, 1),
    "ego marks": (payments, "node:vip", {"model__ego_marks": True, "model__norm": "batch"}, 1),
    "one by one": (shapes, "graph:ring", {}, 2),
    "descriptors": (smiles, "graph:acid", {"data__descriptors": True}, 1),
}


def stop(monkeypatch: pytest.MonkeyPatch, step: int, how: str, kind: str, folder: Path, **more: object) -> None:
    """Train until something happens."""
    with monkeypatch.context() as patch:
        stop_at(patch, step, how)
        with pytest.raises(CrashError if how == "exception" else TrainingStopped):
            go(kind, folder, **more)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The run directory of each kind of training that nobody stops."""
    home, found = tmp_path_factory.mktemp("undisturbed"), {}

    def get(kind: str) -> dict[str, object]:
        if kind not in found:
            go(kind, home / kind)
            found[kind] = content(home / kind)
        return found[kind]

    return get


def go(kind: str, folder: Path, **more: object) -> None:
    data, target, settings, ensemble = KINDS[kind]
    changes = quick(**STOCHASTIC, **settings) | more.pop("settings", {})
    train(data(), target, folder, settings=changes, ensemble=ensemble, seed=1, **more)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "how"),
    [
        *((kind, "exception") for kind in KINDS),
        *((kind, "ctrl-c") for kind in ("whole graph", "history", "many graphs", "links", "pairs")),
    ],
)
def test_a_training_that_was_stopped_ends_with_the_same_bits(kind, how, undisturbed, tmp_path, monkeypatch):
    settings = {"training.checkpoint_seconds": 0}
    for step in (3, 2):  # twice, at different places
        stop(monkeypatch, step, how, kind, tmp_path / "run", if_exists="resume", settings=settings)
    go(kind, tmp_path / "run", if_exists="resume")
    assert content(tmp_path / "run") == undisturbed(kind)


def test_a_training_whose_last_checkpoint_is_old_ends_with_the_same_bits(undisturbed, tmp_path, monkeypatch):
    stop(monkeypatch, 7, "exception", "many graphs", tmp_path / "run")  # its only checkpoint is that of the start
    _, facts = load_tensors(tmp_path / "run" / "checkpoint" / "member-0.safetensors")
    assert facts["epoch"] == facts["step"] == 0
    go("many graphs", tmp_path / "run", if_exists="resume")
    assert content(tmp_path / "run") == undisturbed("many graphs")


def test_history_is_rewritten_from_the_checkpoint(tmp_path, monkeypatch):
    stop(monkeypatch, 5, "exception", "whole graph", tmp_path / "run")
    history = tmp_path / "run" / "history.csv"
    assert len(history.read_text().splitlines()) == 5  # four epochs that no checkpoint knows
    stop(monkeypatch, 2, "exception", "whole graph", tmp_path / "run", if_exists="resume")
    assert len(history.read_text().splitlines()) == 2


def test_early_stopping_is_the_same_after_a_stop(undisturbed):
    """The trainings above do stop early, or they would not show that patience is kept."""
    rows = str(undisturbed("neighbors")["history.csv"], "utf-8").splitlines()
    assert len(rows) - 1 < 9


def test_resume_needs_no_data_where_they_have_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "town").mkdir()
    payments().nodes.to_csv("town/nodes.csv", index=False)
    payments().edges.to_csv("town/edges.csv", index=False)
    settings = quick(**STOCHASTIC, training__imbalance="none")
    train("town", "node:tier", "whole", settings=settings, preset="paper", seed=2)
    with monkeypatch.context() as patch:
        stop_at(patch, 3, "ctrl-c")
        with pytest.raises(TrainingStopped):
            train("town", "node:tier", "run", settings=settings, preset="paper", seed=2)
    run = resume_run("run")
    assert run.path == Path("run")
    assert content(Path("run")) == content(Path("whole"))
    assert resume_run("run").metrics == run.metrics, "one that is finished is only read"


def test_resume_says_what_it_cannot_do(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"has no training to go on with: a training with out"):
        resume_run(tmp_path / "nothing")
    stop(monkeypatch, 2, "ctrl-c", "whole graph", tmp_path / "run")
    with pytest.raises(
        ValueError, match="was trained on data that were in memory: call train again with if_exists='resume'"
    ):
        resume_run(tmp_path / "run")
    with pytest.raises(
        ValueError, match="holds an unfinished training, which if_exists='resume' goes on with: choose another"
    ):
        go("whole graph", tmp_path / "run")
    with pytest.raises(ValueError, match=r"is not finished: censnet.pipeline.resume_run\('\S*run'\) goes on with it"):
        load_run(tmp_path / "run")


def test_a_damaged_checkpoint_is_refused(tmp_path, monkeypatch):
    stop(monkeypatch, 2, "ctrl-c", "whole graph", tmp_path / "run")
    path = tmp_path / "run" / "checkpoint" / "member-0.safetensors"
    whole = path.read_bytes()
    for place in range(0, len(whole), 997):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(ValueError, match="damaged"):
            load_tensors(path)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"member-0\.safetensors cannot be read .*: it is damaged"):
        go("whole graph", tmp_path / "run", if_exists="resume")
    start = path.with_name("start.json")
    start.write_bytes(start.read_bytes().replace(b"edge:fraud", b"edge:fee__"))
    with pytest.raises(ValueError, match=r"start\.json is not what was written"):
        go("whole graph", tmp_path / "run", if_exists="resume")


def test_a_checkpoint_gives_back_what_was_put_in(tmp_path):
    tensors = {"a": torch.randn(3, 4), "b/c": torch.tensor(7), "empty": torch.empty(0, 2), "half": torch.ones(2).half()}
    facts = {"loss": [0.1, 1e-300], "best": None, "history": [{"epoch": 1}]}
    save_tensors(tmp_path / "x.safetensors", tensors, facts)
    found, back = load_tensors(tmp_path / "x.safetensors")
    assert back == facts
    assert found.keys() == tensors.keys()
    assert all(torch.equal(found[name], tensors[name]) for name in tensors)


def test_a_kill_before_anything_was_written_leaves_a_directory_to_start_in(undisturbed, tmp_path):
    (tmp_path / "run" / "checkpoint").mkdir(parents=True)
    (tmp_path / "run" / "checkpoint" / ".start.json.part").write_text('{"asked"')
    go("whole graph", tmp_path / "run", if_exists="resume")
    assert content(tmp_path / "run") == undisturbed("whole graph")


@pytest.mark.slow
def test_four_kills_are_survived():
    """The short form of `python -m benchmarks.kills`; CENSNET_KILLS=100 makes it long."""
    root = Path(__file__).parents[2]
    kills = os.environ.get("CENSNET_KILLS", "4")
    kinds = [] if "CENSNET_KILLS" in os.environ else ["--kinds", "molecules", "graph"]
    command = [sys.executable, "-m", "benchmarks.kills", "--kills", kills, "--no-record", *kinds]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stdout + done.stderr
