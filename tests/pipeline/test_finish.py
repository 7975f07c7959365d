"""A training that is closed with its best epoch so far, or goes on for more or fewer epochs than it was begun with."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from pathlib import Path

import pandas as pd
import pytest
from crashes import stop_at
from samples import content, payments, quick, shapes
from typer.testing import CliRunner

from censnet.cli.app import app
from censnet.errors import RunError, TrainingStopped
from censnet.pipeline import resume_run, train
from censnet.runs import load_run

ALWAYS: dict[str, object] = {
    "training__checkpoint_seconds": 0,
    "training__patience": None,
    "training__schedule": "constant",
    "training__warmup": 0,
    "training__gates": "learned",
}


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Payments, as a folder that can be read again."""
    place = tmp_path_factory.mktemp("data") / "town"
    place.mkdir()
    payments().nodes.to_csv(place / "nodes.csv", index=False)
    payments().edges.to_csv(place / "edges.csv", index=False)
    return place


@pytest.fixture(scope="module")
def beads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rings and chains, as a folder that can be read again."""
    place = tmp_path_factory.mktemp("data") / "beads"
    place.mkdir()
    for name, frame in shapes().frames().items():
        frame.to_csv(place / f"{name}.csv", index=False)
    return place


def stop(monkeypatch: pytest.MonkeyPatch, step: int, *args: object, how: str = "ctrl-c", **more: object) -> None:
    """Train until the given step, counted over everything that is trained."""
    with monkeypatch.context() as patch:
        stop_at(patch, step, how)
        with pytest.raises((TrainingStopped, Exception)):
            train(*args, **more)  # type: ignore[arg-type]


def same(one: Path, other: Path) -> bool:
    return content(one) == content(other)


# -- epochs ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("change", [{}, {"training__validate_every": 2}, {"training__patience": 3}])
@pytest.mark.parametrize(("begun", "asked"), [(4, 8), (8, 4)])
def test_more_or_fewer_epochs_end_with_the_bits_of_having_asked_for_them(
    begun, asked, change, town, tmp_path, monkeypatch
):
    settings = quick(**ALWAYS | change, training__epochs=begun, model__dropout=0.3)
    train(town, "edge:fee", tmp_path / "whole", settings=settings | {"training.epochs": asked})
    stop(monkeypatch, 3, town, "edge:fee", tmp_path / "run", settings=settings)
    resume_run(tmp_path / "run", settings={"training.epochs": str(asked)})
    assert same(tmp_path / "run", tmp_path / "whole")


@pytest.mark.slow
def test_members_that_are_done_are_trained_further_too(beads, tmp_path, monkeypatch):
    settings = quick(**ALWAYS, training__epochs=2, training__batch_size=64)
    whole = train(beads, "graph:ring", tmp_path / "whole", settings=settings | {"training.epochs": 4}, ensemble=2)
    monkeypatch.setattr("censnet.training.ensemble.BATCHED_ON_CPU", 0)  # one after the other
    steps = len(whole.history) // 2 // 2
    stop(monkeypatch, steps + 2, beads, "graph:ring", tmp_path / "run", settings=settings, ensemble=2)
    run = resume_run(tmp_path / "run", settings={"training.epochs": 4})
    assert run.history.groupby("member")["epoch"].max().tolist() == [4, 4]
    assert run.config.members == 2


@pytest.mark.slow
def test_later_rounds_start_anew_when_the_first_is_trained_further(town, tmp_path, monkeypatch):
    rounds = {"training__pseudo_label_weights": [0.0, 1.0], "training__self_training_rounds": 2}
    settings = quick(**ALWAYS | rounds, training__epochs=2)
    train(town, "node:tier", tmp_path / "whole", settings=settings | {"training.epochs": 3})
    stop(monkeypatch, 4, town, "node:tier", tmp_path / "run", settings=settings)  # in the second round
    assert list((tmp_path / "run" / "checkpoint").glob("round-2-*"))
    resume_run(tmp_path / "run", settings={"training.epochs": 3})
    assert same(tmp_path / "run", tmp_path / "whole")


def test_with_a_schedule_that_falls_the_rate_follows_the_new_number_from_there_on(town, tmp_path, monkeypatch):
    settings = quick(**ALWAYS | {"training__schedule": "cosine"}, training__epochs=4)
    stop(monkeypatch, 3, town, "edge:fee", tmp_path / "run", settings=settings)
    rates = resume_run(tmp_path / "run", settings={"training.epochs": 8}).history["learning_rate"].tolist()
    whole = train(town, "edge:fee", settings=settings | {"training.epochs": 8}).history["learning_rate"].tolist()
    assert rates[3:] == whole[3:]
    assert rates[:2] != whole[:2]


def test_fewer_epochs_than_are_done_are_refused_and_so_is_any_other_setting(town, tmp_path, monkeypatch):
    settings = quick(**ALWAYS, training__epochs=8)
    stop(monkeypatch, 5, town, "edge:fee", tmp_path / "run", settings=settings)
    with pytest.raises(
        RunError, match=r"training\.epochs is 2, expected 5 or more, which are done: censnet.pipeline.resume_run"
    ):
        resume_run(tmp_path / "run", settings={"training.epochs": 2})
    with pytest.raises(
        RunError, match=r"was started with another settings model\.hidden: it was 8, now it is 16: give"
    ):
        resume_run(tmp_path / "run", settings={"model.hidden": 16, "training.epochs": 9})
    assert len(resume_run(tmp_path / "run").history) == 8, "nothing of what was refused is kept"


@pytest.mark.slow
def test_a_finished_run_is_trained_again_for_other_epochs_and_stays_until_then(town, tmp_path, monkeypatch):
    settings = quick(**ALWAYS, training__epochs=2)
    train(town, "edge:fee", tmp_path / "run", settings=settings)
    train(town, "edge:fee", tmp_path / "whole", settings=settings | {"training.epochs": 4})
    with monkeypatch.context() as patch:
        stop_at(patch, 2, "ctrl-c")
        with pytest.raises(TrainingStopped):
            resume_run(tmp_path / "run", settings={"training.epochs": 4})
    assert len(load_run(tmp_path / "run").history) == 2
    resume_run(tmp_path / "run")
    assert same(tmp_path / "run", tmp_path / "whole")
    again = train(town, "edge:fee", tmp_path / "run", settings=settings | {"training.epochs": 2}, if_exists="resume")
    assert len(again.history) == 2
    with pytest.raises(
        RunError, match=r"the run is finished: training\.max_grad_norm was 1\.0, and cannot become 0\.5: if_exists="
    ):
        resume_run(tmp_path / "run", settings={"training.max_grad_norm": 0.5})
    with pytest.raises(RunError, match="was started with another target"):
        train(town, "edge:fraud", tmp_path / "run", settings=settings | {"training.epochs": 3}, if_exists="resume")
    assert len(load_run(tmp_path / "run").history) == 2


# -- finish ----------------------------------------------------------------------------------------------------------


def test_an_unfinished_training_is_closed_with_its_best_epoch_so_far(town, tmp_path, monkeypatch):
    settings = quick(**ALWAYS, training__epochs=9)
    stop(monkeypatch, 5, town, "edge:fee", tmp_path / "run", settings=settings)
    result = CliRunner().invoke(app, ["train", "--finish", "--out", str(tmp_path / "run")], env={"COLUMNS": "100"})
    assert result.exit_code == 0, result.output
    run = load_run(tmp_path / "run")
    assert len(run.history) == 5
    assert run.config.finished_early
    assert not (tmp_path / "run" / "checkpoint").exists()
    whole = train(town, "edge:fee", settings=settings | {"training.epochs": 5})
    pd.testing.assert_frame_equal(run.predict(town), whole.predict(town))
    assert run.metrics == whole.metrics
    assert resume_run(tmp_path / "run", finish=True).metrics == run.metrics, "one that is closed is only read"


def test_data_in_memory_are_given_again_to_close_a_training(tmp_path, monkeypatch):
    settings = quick(**ALWAYS, training__epochs=9)
    stop(monkeypatch, 3, payments(), "edge:fee", tmp_path / "run", settings=settings)
    with pytest.raises(RunError, match="was trained on data that were in memory"):
        resume_run(tmp_path / "run", finish=True)
    assert len(train(payments(), "edge:fee", tmp_path / "run", settings=settings, finish=True).history) == 3


def test_without_an_epoch_there_is_nothing_to_close(town, tmp_path, monkeypatch):
    with pytest.raises(RunError, match="has no training to go on with"):
        resume_run(tmp_path / "nothing", finish=True)
    stop(monkeypatch, 1, town, "edge:fee", tmp_path / "run", settings=quick(**ALWAYS), how="exception")
    with pytest.raises(RunError, match=r"has no epoch yet that could be kept: censnet\.pipeline\.resume_run"):
        resume_run(tmp_path / "run", finish=True)
    assert len(resume_run(tmp_path / "run").history) == 6, "and it goes on"


@pytest.mark.slow
@pytest.mark.parametrize("step", [1, 3, 5])
def test_an_ensemble_is_closed_with_the_members_that_have_an_epoch(step, beads, tmp_path, monkeypatch):
    monkeypatch.setattr("censnet.training.ensemble.BATCHED_ON_CPU", 0)  # one after the other
    settings = quick(**ALWAYS, training__epochs=2, training__batch_size=64)
    stop(monkeypatch, step + 1, beads, "graph:ring", tmp_path / "run", settings=settings, ensemble=3, how="exception")
    run = resume_run(tmp_path / "run", finish=True)
    assert run.config.members == len(run.models) == (step + 1) // 2
    assert len(run.predict(beads)) == 40


@pytest.mark.slow
@pytest.mark.parametrize("step", [1, 2, 3])
@pytest.mark.parametrize("at_once", [True, False])
def test_of_candidates_and_rounds_those_are_compared_that_were_come_to(step, at_once, town, tmp_path, monkeypatch):
    if not at_once:
        monkeypatch.setattr("censnet.training.ensemble.BATCHED_ON_CPU", 0)
    settings = quick(
        **ALWAYS, training__epochs=2, training__pseudo_label_weights=[0.0, 1.0], training__self_training_rounds=2
    )
    stop(monkeypatch, step + 1, town, "node:tier", tmp_path / "run", settings=settings, how="exception")
    run = resume_run(tmp_path / "run", finish=True)
    assert run.config.selection is not None
    assert len(run.config.selection.best[0]) == len(run.config.selection.candidates) == 3
    assert run.config.selection.best[0][run.config.selection.selected[0]] is not None
    assert len(run.predict(town)) == 30


def test_a_replacement_is_closed_too(town, tmp_path, monkeypatch):
    train(town, "node:vip", tmp_path / "run", settings=quick(training__epochs=1))
    settings = quick(**ALWAYS, training__epochs=9)
    stop(monkeypatch, 3, town, "edge:fee", tmp_path / "run", settings=settings, if_exists="overwrite")
    assert load_run(tmp_path / "run").config.target_specs == ["node:vip"]
    assert resume_run(tmp_path / "run", finish=True).config.target_specs == ["edge:fee"]
    assert len(load_run(tmp_path / "run").history) == 3


@pytest.mark.slow
def test_trainings_killed_at_random_are_closed_or_say_that_there_is_no_epoch(town, tmp_path):
    rng, closed = random.Random(0), 0
    for number in range(4):
        place = tmp_path / str(number)
        settings = quick(**ALWAYS, training__epochs=400)
        child = os.fork()
        if child == 0:
            try:
                train(town, "edge:fee", place, settings=settings)
            finally:
                os._exit(0)
        time.sleep(rng.uniform(0.0, 1.0))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        try:
            run = resume_run(place, finish=True)
        except RunError as error:
            assert "has no epoch yet" in str(error) or "has no training to go on with" in str(error)  # noqa: PT017
        else:
            closed += 1
            assert run.metrics == load_run(place).metrics
            assert not (place / "checkpoint").exists()
        shutil.rmtree(place, ignore_errors=True)
    assert closed


def test_the_command_says_what_cannot_be_given_with_finish(town, tmp_path):
    for words in (["--finish"], ["--finish", "--out", "x", "--set", "training.epochs=3"], [str(town), "--finish"]):
        result = CliRunner().invoke(app, ["train", *words], env={"COLUMNS": "200"})
        assert result.exit_code == 2
        assert "there are no DATA" in result.output or "cannot be given with --finish" in result.output
