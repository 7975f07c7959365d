"""A disk that is full names the file, and what was there before is kept; --to writes over nothing that is read."""

from __future__ import annotations

import os
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest
from samples import content, payments, quick
from typer.testing import CliRunner, Result

from censnet.cli.app import app
from censnet.errors import RunError, WriteError
from censnet.files import atomic_write
from censnet.pipeline import train
from censnet.runs import load_run
from censnet.training.history import HistoryFile


@contextmanager
def small_files(most: int) -> Iterator[None]:
    """No file may grow beyond this, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("disk")
    (home / "town").mkdir()
    payments().nodes.to_csv(home / "town" / "nodes.csv", index=False)
    payments().edges.to_csv(home / "town" / "edges.csv", index=False)
    train(home / "town", "edge:fee", home / "run", settings=quick(training__epochs=2))
    return home


def test_a_file_that_does_not_fit_is_named_and_the_old_one_is_kept(tmp_path):
    atomic_write(tmp_path / "a.json", b"old")
    with small_files(1000), pytest.raises(WriteError, match=r"a\.json could not be written: File too large \(what it "):
        atomic_write(tmp_path / "a.json", b"x" * 2000)
    assert (tmp_path / "a.json").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"], "nothing of the new one is left"


def test_a_history_that_does_not_fit_is_named(tmp_path):
    record = HistoryFile(tmp_path / "history.csv")
    record.begin([], ["epoch", "loss"], 1)
    with small_files(20), pytest.raises(WriteError, match=r"history\.csv could not be written: File too large"):
        record.add([{"epoch": 1, "loss": 0.123456789}] * 10)


def test_a_training_on_a_full_disk_says_which_file_and_goes_on_when_there_is_room(home, tmp_path):
    def go(**more):
        return train(home / "town", "edge:fee", tmp_path / "run", settings=quick(training__epochs=2), **more)

    with small_files(9000), pytest.raises(RunError) as caught:
        go()
    text = str(caught.value)
    assert "could not be written: File too large" in text
    assert (
        f"censnet.pipeline.resume_run({str(tmp_path / 'run')!r}) goes on from its last checkpoint when there is room"
        in text
    )
    go(if_exists="resume")
    assert content(tmp_path / "run").keys() == content(home / "run").keys()


def test_a_full_disk_at_the_end_of_an_overwrite_keeps_the_old_run(home, tmp_path, monkeypatch):
    place = Path(shutil.copytree(home / "run", tmp_path / "run"))
    sync = os.fsync

    def full(file: int) -> None:
        if ".saving" in os.readlink(f"/proc/self/fd/{file}"):
            raise OSError(28, "No space left on device")
        sync(file)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(RunError, match=r"\.saving/\S+ could not be written: No space left on device"):
            train(home / "town", "edge:fraud", place, settings=quick(training__epochs=1), if_exists="overwrite")
    assert load_run(place).config.target_specs == ["edge:fee"]
    assert train(home / "town", "edge:fraud", place, settings=quick(training__epochs=1), if_exists="resume").levels == [
        "edge"
    ]


# -- data that changed ---------------------------------------------------------------------------------------------


def _more_rows(place: Path) -> None:
    with (place / "edges.csv").open("a") as file:
        file.write((place / "edges.csv").read_text().splitlines()[1] + "\n")


def _other_values(place: Path) -> None:
    frame = pd.read_csv(place / "nodes.csv")
    frame.loc[3, "age"] = 99.0
    frame.to_csv(place / "nodes.csv", index=False)


def _column_gone(place: Path) -> None:
    pd.read_csv(place / "nodes.csv").drop(columns="country").to_csv(place / "nodes.csv", index=False)


def _column_new(place: Path) -> None:
    pd.read_csv(place / "edges.csv").assign(late=[0.5, 1.5] * 45).to_csv(place / "edges.csv", index=False)


def _other_label(place: Path) -> None:
    frame = pd.read_csv(place / "edges.csv")
    frame.loc[3, "fee"] += 1
    frame.to_csv(place / "edges.csv", index=False)


CHANGES = {
    r"edges\.csv had 90 rows and now has 91": _more_rows,
    r"values of column 'age' of nodes\.csv are others": _other_values,
    r"nodes\.csv has no column 'country' any more": _column_gone,
    r"edges\.csv has a new column 'late'": _column_new,
    r"values of column 'fee' of edges\.csv are others": _other_label,
}


@pytest.mark.slow
@pytest.mark.parametrize(("message", "change"), CHANGES.items())
def test_data_that_changed_since_the_training_began_are_named(message, change, home, tmp_path):
    place = Path(shutil.copytree(home / "town", tmp_path / "town"))

    def go(**more):
        return train(place, "edge:fee", tmp_path / "run", settings=quick(training__epochs=2), **more)

    with small_files(9000), pytest.raises(RunError):
        go()
    change(place)
    with pytest.raises(
        RunError, match=f"run was started on other data: {message}: give the same, or if_exists='overwrite' to"
    ):
        go(if_exists="resume")


def test_a_split_that_changed_since_the_training_began_is_named(home, tmp_path):
    def go(**more):
        settings = quick(training__epochs=2, data__split="file", data__split_file=str(tmp_path / "splits.csv"))
        return train(home / "town", "edge:fee", tmp_path / "run", settings=settings, **more)

    splits = pd.read_csv(home / "run" / "splits.csv")
    splits.to_csv(tmp_path / "splits.csv", index=False)
    with small_files(9000), pytest.raises(RunError):
        go()
    moved = splits["split"] == "validation"
    splits.assign(split=splits["split"].where(~moved, "test")).to_csv(tmp_path / "splits.csv", index=False)
    with pytest.raises(RunError, match="was started on other data: the split of edge rows is another: give the same"):
        go(if_exists="resume")


# -- --to ----------------------------------------------------------------------------------------------------------


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "300"})


def test_predictions_are_not_written_over_what_is_read(home, tmp_path):
    town, run = (
        Path(shutil.copytree(home / "town", tmp_path / "town")),
        Path(shutil.copytree(home / "run", tmp_path / "r")),
    )
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    (tmp_path / "link.csv").symlink_to(town / "nodes.csv")
    (tmp_path / "folder.csv").mkdir()
    os.mkfifo(tmp_path / "pipe.csv")
    for words, message in [
        (["predict", run, town, "--to", town / "edges.csv"], "would be read as a table of the data in"),
        (["predict", run, town / "edges.csv", "--to", tmp_path / "r" / ".." / "town" / "edges.csv"], "is what is read"),
        (["predict", run, town, "--to", run / "splits.csv"], "is a file of the run, and would be written over"),
        (["predict", run, town, "--to", tmp_path / "link.csv"], "is a link to"),
        (["predict", run, town, "--to", tmp_path / "folder.csv"], "is a folder, expected a file, or none yet"),
        (["predict", run, town, "--to", tmp_path / "pipe.csv"], "is a pipe, expected a file, or none yet"),
        (["embed", run, town, "--to", town], "would be read as a table of the data in"),
        (["embed", run, town, "--to", town, "--format", "csv"], "would be read as a table of the data in"),
    ]:
        result = call(*words)
        assert result.exit_code == 2, words
        assert message in result.stderr, result.stderr
        assert len(result.stderr.splitlines()) == 1
    assert {path: path.read_bytes() for path in before} == before
    assert call("predict", run, town, "--to", tmp_path / "town" / "answers.csv").exit_code == 0
