"""Trainings that a time budget ends, of every kind: they end in time, say so, and can go on."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import run as command
from samples import payments, quick, smiles

from censnet import load_run, train
from censnet.data.tables.files import Tables
from censnet.pipeline import replicate, resume_run
from censnet.runs.run import Run
from censnet.training import time_budget
from censnet.training.evaluator import Evaluator
from censnet.training.trainer import Trainer

SECONDS = 80.0
LONG = {"training.epochs": 4000, "training.patience": None, "model.hidden": 8}


class Clock:
    """A clock that steps of trainings set forward by a second, and validations by half of one."""

    now = 0.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found, step, evaluate = Clock(), Trainer._step, Evaluator.__call__

    def slow_step(*args, **more):
        found.now += 1.0
        return step(*args, **more)

    def slow_validation(*args, **more):
        found.now += 0.5
        return evaluate(*args, **more)

    monkeypatch.setattr(Trainer, "_step", slow_step)
    monkeypatch.setattr(Evaluator, "__call__", slow_validation)
    for module in (time_budget, sys.modules["censnet.cli.train"]):
        monkeypatch.setattr(module, "monotonic", lambda: found.now)
    return found


def timed_payments() -> Tables:
    draw = np.random.default_rng(0)
    source, target = draw.integers(0, 20, (2, 150))
    frame = {"source": source, "target": target, "time": np.sort(draw.integers(0, 10**5, 150)), "bad": target % 2}
    return Tables(None, pd.DataFrame(frame))


KINDS = {
    "candidates of recipes and gates": (lambda: "karate", "node:faction", {}, 1),
    "an ensemble of edges": (payments, "edge:fee", {}, 3),
    "links": (lambda: "karate", "link", {}, 1),
    "molecules": (smiles, "graph:acid", {"data.descriptors": "compare"}, 1),
    "sampled neighborhoods": (payments, "edge:fee", {"training.sampling": "neighbors", "training.batch_size": 8}, 2),
    "causal layers": (timed_payments, "edge:bad", {"data.time": "time"}, 2),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_training_ends_in_time_and_uses_it(kind: str, clock: Clock) -> None:
    data, target, changes, ensemble = KINDS[kind]
    settings = {**LONG, **changes, "training.time_budget": SECONDS}
    run = train(data(), target, settings=settings, ensemble=ensemble)
    record = run.config.time_budget
    assert record is not None
    assert (record.seconds, record.ended) == (SECONDS, True)
    assert len(record.planned_epochs) == ensemble
    assert all(epochs is not None and 1 <= epochs < 4000 for epochs in record.planned_epochs)
    assert 0.6 * SECONDS < clock.now <= SECONDS
    assert run.predictions
    assert run.metrics["validation"]


def test_a_time_that_suffices_is_stored_and_changes_nothing(clock: Clock) -> None:
    few = {**quick(), "training.epochs": 3}
    run = train(payments(), "edge:fee", settings=few, time_budget="2h")
    other = train(payments(), "edge:fee", settings=few)
    assert run.config.time_budget is not None
    assert run.config.time_budget.model_dump() == {"seconds": 7200.0, "planned_epochs": [None], "ended": False}
    assert other.config.time_budget is None
    pd.testing.assert_frame_equal(run.predictions["edge"], other.predictions["edge"])


def test_what_a_time_budget_ended_goes_on_and_the_run_stays_until_then(clock: Clock, tmp_path: Path) -> None:
    out = tmp_path / "run"
    one = {"training.epochs": 60, "training.gates": "learned", "training.self_training_rounds": 1}
    first = train("karate", "node:faction", out, settings=LONG | one, time_budget=30)
    assert (out / "checkpoint").is_dir()
    assert load_run(out).config.time_budget == first.config.time_budget
    done = first.config.time_budget.planned_epochs[0]  # type: ignore[union-attr]
    assert done is not None
    clock.now = 0.0
    longer = resume_run(out, settings={"training.time_budget": 40})
    assert longer.config.time_budget is not None
    assert longer.config.time_budget.ended
    assert longer.history["epoch"].max() > done
    assert clock.now <= 40
    whole = resume_run(out, settings={"training.time_budget": None})
    assert whole.config.time_budget is None
    assert whole.history["epoch"].max() == 60
    assert not (out / "checkpoint").exists()
    assert resume_run(out, settings={"training.time_budget": 5}).config.files == load_run(out).config.files


def test_finishing_what_a_time_budget_ended_removes_its_checkpoints(clock: Clock, tmp_path: Path) -> None:
    out = tmp_path / "run"
    first = train("karate", "node:faction", out, settings=LONG, time_budget=40)
    closed = resume_run(out, finish=True)
    assert not (out / "checkpoint").exists()
    assert closed.config.best_epoch == first.config.best_epoch


@pytest.mark.parametrize("together", [True, False])
def test_replicates_share_the_time(together: bool, clock: Clock) -> None:
    target = "node:faction" if together else "link"
    found = replicate("karate", target, replicates=3, settings=LONG | {"training.time_budget": 60})
    assert all(run.config.time_budget is not None and run.config.time_budget.ended for run in found.runs)
    assert 0.6 * 60 < clock.now <= 60


def test_the_command_ends_in_time_and_says_so(clock: Clock, tmp_path: Path) -> None:
    out = tmp_path / "run"
    changes = [f"--set={name}={'none' if value is None else value}" for name, value in LONG.items()]
    result = command("train", "karate", "--out", out, "--time-budget", "2m", *changes)
    assert result.exit_code == 0, result.output
    said = " ".join(result.stdout.split())
    assert "time budget 2 min, enough for" in said
    assert (
        f"censnet train --resume --out {out}" in " ".join(result.stdout.replace("\n", "").split()) or "goes on" in said
    )


@pytest.mark.parametrize("text", ["10x", "-3m", "0", "", "nan", "[1]"])
def test_a_bad_time_on_the_command_line_is_one_line(text: str, tmp_path: Path) -> None:
    result = command("train", "karate", "--out", tmp_path / "run", f"--time-budget={text}")
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert "such as 90s, 10m or 2h" in result.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_real_training_ends_in_time() -> None:
    train(payments(), "edge:fee", settings=quick())  # what is compiled and imported at the first training
    started = time.monotonic()
    run: Run = train(payments(), "edge:fee", settings=LONG | {"training.epochs": 10**6}, time_budget="12s")
    assert run.config.time_budget is not None
    assert run.config.time_budget.ended
    assert 2 < time.monotonic() - started < 14  # planned from the first steps, when others may load the machine
