"""The run directory: what was written is read back the same, and a crash harms nothing."""

from __future__ import annotations

import os
import pickle
import shutil
from pathlib import Path

import pandas as pd
import pytest
import torch
from crashes import CrashError, KillError, kill_after, stop_at
from samples import RUN_FILES, content, payments, quick, shapes

from censnet.errors import RunError
from censnet.pipeline import train
from censnet.runs import Run, load_run
from censnet.runs.directory import MODEL, SAVING, dump_with_checksum, load_with_checksum
from censnet.runs.loading import read_frame


@pytest.fixture
def folder(home: Path, tmp_path: Path) -> Path:
    """A run that may be spoiled."""
    return Path(shutil.copytree(home / "a", tmp_path / "run"))


def test_a_run_directory_holds_what_the_design_says_and_no_pickle(home):
    assert sorted(path.name for path in (home / "a").iterdir()) == sorted(RUN_FILES)
    for path in (home / "a").iterdir():
        with pytest.raises(Exception):  # noqa: B017, PT011 - whatever a pickle cannot be
            pickle.loads(path.read_bytes())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "target", "ensemble"),
    [
        (payments, "node:vip", 1),
        (payments, ["edge:fee", "link"], 1),
        (shapes, "graph:ring", 2),
        (payments, "edge:sort", 2),
    ],
)
def test_a_run_that_is_read_back_says_the_same(data, target, ensemble, tmp_path):
    run = train(data(), target, tmp_path / "run", settings=quick(training__epochs=2), ensemble=ensemble)
    back = load_run(tmp_path / "run")
    assert repr(back) == repr(run)
    assert back.config.model_dump(exclude={"files"}) == run.config.model_dump(exclude={"files"})
    assert back.metrics == run.metrics
    assert back.schema == run.schema
    pd.testing.assert_frame_equal(back.history, run.history, check_exact=True)
    for level in run.levels:
        pd.testing.assert_frame_equal(back.predict(data(), level), run.predict(data(), level), check_exact=True)
    for one, other in zip(run.models, back.models, strict=True):
        assert not any(parameter.is_meta for parameter in other.parameters())
        for name, tensor in one.state_dict().items():
            assert torch.equal(other.state_dict()[name], tensor), name
    before = content(tmp_path / "run")
    assert content(back.save(tmp_path / "copy")) == before, "what was read is written again the same"


def test_an_unmutated_copy_is_accepted(folder):
    assert isinstance(load_run(folder), Run)


def test_reading_calls_nothing_that_could_execute(folder, monkeypatch):
    def never(*args: object, **kwargs: object) -> None:
        raise AssertionError("something from the directory was about to be executed")

    for module, name in ((pickle, "load"), (pickle, "loads"), (torch, "load"), (os, "system")):
        monkeypatch.setattr(module, name, never)
    monkeypatch.setattr("builtins.eval", never)
    load_run(folder)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "there is no run"),
        (lambda path: path.write_text("x"), "is not a directory, expected a run"),
        (lambda path: path.mkdir(), r"has no config\.json, expected a run directory that censnet train wrote"),
        (
            lambda path: (path / "checkpoint").mkdir(parents=True),
            r"is not finished: censnet\.pipeline\.resume_run\(\S+",
        ),
    ],
)
def test_what_is_no_run_is_named(make, message, tmp_path):
    make(tmp_path / "run")
    with pytest.raises(ValueError, match=message):
        load_run(tmp_path / "run")


def test_a_damaged_file_is_named(folder):
    (folder / "schema.json").write_bytes(b"{}")
    with pytest.raises(ValueError, match=r"schema\.json is not what was written \(its SHA-256 differs\)"):
        load_run(folder)
    (folder / "schema.json").unlink()
    with pytest.raises(ValueError, match=r"schema\.json is missing or is a link"):
        load_run(folder)


@pytest.mark.slow
@pytest.mark.parametrize("field", ["format", "made"])
def test_a_run_of_the_first_format_is_refused_in_one_line(field: str, folder: Path) -> None:
    path = folder / "config.json"
    config = load_with_checksum(path.read_bytes(), path)
    config = {**config, "format": 1} if field == "format" else {**config, "format": 1, "made": config["provenance"]}
    path.write_bytes(dump_with_checksum(config))
    with pytest.raises(RunError, match=r"config\.json has format 1, expected 2: an earlier version .*: train again$"):
        load_run(folder)
    run = train(payments(), "node:vip", folder, settings=quick(training__epochs=1), if_exists="overwrite")
    assert load_run(folder).metrics == run.metrics


def test_a_checkpoint_of_the_first_format_is_refused_in_one_line(tmp_path: Path, monkeypatch) -> None:
    with monkeypatch.context() as patch:
        stop_at(patch, 2, "exception")
        with pytest.raises(CrashError):
            train(payments(), "node:vip", tmp_path / "run", settings=quick())
    path = tmp_path / "run" / "checkpoint" / "start.json"
    start = load_with_checksum(path.read_bytes(), path)
    del start["format"]
    path.write_bytes(dump_with_checksum(start))
    with pytest.raises(RunError, match=r"start\.json has format 1, expected 2: an earlier version .*: train again$"):
        train(payments(), "node:vip", tmp_path / "run", settings=quick(), if_exists="resume")
    train(payments(), "node:vip", tmp_path / "run", settings=quick(training__epochs=1), if_exists="overwrite")


def test_the_best_epoch_is_stored_for_each_member(tmp_path: Path) -> None:
    settings = quick(training__epochs=8, training__patience=None, training__learning_rate=0.1)
    run = train(payments(), "edge:fee", tmp_path / "run", settings=settings, ensemble=2)
    back, history = load_run(tmp_path / "run"), run.history
    assert back.config.monitor == "rmse"
    best = history.loc[history.groupby("member")["validation_rmse"].idxmin(), "epoch"]
    assert back.config.best_epoch == best.tolist()
    last = train(payments(), "edge:fee", settings=settings | {"data.fractions": (0.8, 0.0, 0.2)})
    assert (last.config.monitor, last.config.best_epoch) == (None, [8])


# -- writing --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_crash_at_any_moment_of_saving_leaves_the_old_run_or_the_new_one(home, tmp_path, monkeypatch):
    old, new = load_run(home / "a"), load_run(home / "b")
    seen = set()
    for count in range(0, 1000, 2):
        folder = tmp_path / str(count)
        shutil.copytree(home / "a", folder)
        with monkeypatch.context() as patch:
            kill_after(patch, count)
            try:
                new.save(folder)
            except KillError:
                finished = False
            else:
                finished = True
        found = load_run(folder)
        assert found.metrics in (old.metrics, new.metrics)
        assert (found.config.settings == new.config.settings) == (found.metrics == new.metrics)
        seen.add(found.config.settings.seed)
        load_run(home / "b").save(folder)
        assert content(folder) == content(home / "b"), "and it can be saved again"
        if finished:
            break
    assert finished
    assert seen == {0, 1}, "some crashes were early, some late"


@pytest.mark.slow
def test_a_crash_while_a_training_is_saved_leaves_one_that_goes_on(tmp_path, monkeypatch):
    settings = quick(training__epochs=1, training__gates=["learned"], training__self_training_rounds=2)
    train(payments(), "node:vip", tmp_path / "whole", settings=settings)
    states = set()
    for count in range(1, 200, 8):
        folder = tmp_path / str(count)
        with monkeypatch.context() as patch:
            kill_after(patch, count)
            try:
                train(payments(), "node:vip", folder, settings=settings)
            except KillError:
                finished = False
            else:
                finished = True
        if finished:
            break
        try:
            load_run(folder)
            states.add("whole")
        except ValueError as error:
            states.add("unfinished" if "is not finished" in str(error) else "nothing")
        train(payments(), "node:vip", folder, settings=settings, if_exists="resume")
        assert content(folder) == content(tmp_path / "whole")
    assert finished
    assert states == {"whole", "unfinished", "nothing"}


def test_a_run_that_was_not_brought_to_its_place_is_read_where_it_is(folder, home):
    (folder / SAVING).mkdir()
    for path in (home / "b").iterdir():
        shutil.copy(path, folder / SAVING / path.name)
    assert load_run(folder).metrics == load_run(home / "b").metrics
    (folder / SAVING / MODEL).rename(folder / MODEL)
    assert load_run(folder).metrics == load_run(home / "b").metrics


@pytest.mark.slow
def test_a_run_is_replaced_only_if_asked(tmp_path):
    settings = quick(training__epochs=1)
    train(payments(), ["node:vip", "edge:fraud"], tmp_path / "run", settings=settings)
    (tmp_path / "run" / "my notes.txt").write_text("mine")
    with pytest.raises(
        ValueError, match="holds a finished run: choose another out, or if_exists='overwrite' to replace it"
    ):
        train(payments(), "node:vip", tmp_path / "run", settings=settings)
    run = train(payments(), "node:vip", tmp_path / "run", settings=settings, if_exists="overwrite")
    names = sorted(path.name for path in (tmp_path / "run").iterdir())
    assert names == sorted([*RUN_FILES, "my notes.txt"]), "nothing of the old run is left, and nothing else is touched"
    assert load_run(tmp_path / "run").metrics == run.metrics


def test_files_of_another_kind_are_not_cleared_away(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "metrics.json").write_text("mine")
    (tmp_path / "file").write_text("x")
    with pytest.raises(ValueError, match="is a file, expected a directory for the run"):
        train(payments(), "node:vip", tmp_path / "file", settings=quick())
    with pytest.raises(ValueError, match="is the target, but missing"):
        train(payments(), "node:unknown", tmp_path / "run", settings=quick())
    assert (tmp_path / "run" / "metrics.json").read_text() == "mine"


def test_a_long_table_whose_errors_are_few_is_read_without_a_word(recwarn):
    rows = ["a,error", *("1," for _ in range(300_000)), '2,"not a number"']  # pandas types such a column piece by piece
    frame = read_frame("\n".join(rows).encode(), Path("predictions.csv"))
    assert frame["error"].notna().sum() == 1
    assert not [warning for warning in recwarn if "mixed types" in str(warning.message)]
