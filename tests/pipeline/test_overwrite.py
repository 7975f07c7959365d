"""What is in --out already: a run is replaced when the new one is whole; files of the user's and links never are."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest
from crashes import KillError, kill_after, stop_at
from samples import content, payments, quick
from typer.testing import CliRunner

from censnet.cli.app import app
from censnet.errors import RunError, TrainingStopped
from censnet.pipeline import replicate, resume_run, train
from censnet.runs import load_run

ONE = quick(training__epochs=1)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An old run, and the run that is to replace it."""
    home = tmp_path_factory.mktemp("runs")
    train(payments(), ["node:vip", "edge:fraud"], home / "old", settings=ONE)
    train(payments(), "edge:fee", home / "new", settings=quick(training__epochs=3))
    return home


@pytest.fixture
def folder(home: Path, tmp_path: Path) -> Path:
    """The old run, with a file of the user's beside it."""
    folder = Path(shutil.copytree(home / "old", tmp_path / "run"))
    (folder / "notes.txt").write_text("mine")
    return folder


def replace_run(folder: Path, **more: object) -> None:
    settings = quick(training__epochs=3, training__checkpoint_seconds=0)
    train(payments(), "edge:fee", folder, settings=settings, **more)  # type: ignore[arg-type]


def same(folder: Path, other: Path) -> bool:
    """Whether two runs have the same content, but for how often checkpoints were written."""
    found = []
    for one in (folder, other):
        files = content(one)
        files.pop("notes.txt", None)
        files["config.json"].pop("start")  # type: ignore[attr-defined]
        files["config.json"]["settings"]["training"].pop("checkpoint_seconds")  # type: ignore[index]
        found.append(files)
    return found[0] == found[1]


def test_an_interrupted_overwrite_leaves_the_old_run_as_it_was_and_goes_on(folder, home, monkeypatch):
    before = content(home / "old")
    with monkeypatch.context() as patch:
        stop_at(patch, 2, "ctrl-c")
        with pytest.raises(TrainingStopped):
            replace_run(folder, if_exists="overwrite")
    assert load_run(folder).config.target_specs == ["node:vip", "edge:fraud"]
    assert {name: text for name, text in content(folder).items() if name in before} == before
    with pytest.raises(
        RunError, match="holds a finished run and an unfinished training, which if_exists='resume' goes on with"
    ):
        replace_run(folder)
    replace_run(folder, if_exists="resume")
    assert same(folder, home / "new")
    assert (folder / "notes.txt").read_text() == "mine"
    assert not (folder / "checkpoint").exists()


def test_a_failed_overwrite_leaves_the_old_run_and_another_overwrite_starts_anew(folder, home, monkeypatch):
    with monkeypatch.context() as patch:
        stop_at(patch, 2, "exception")
        with pytest.raises(Exception):  # noqa: B017, PT011 - a crash of any kind
            replace_run(folder, if_exists="overwrite")
    assert load_run(folder).metrics == load_run(home / "old").metrics
    replace_run(folder, if_exists="overwrite")
    assert same(folder, home / "new")


@pytest.mark.slow
def test_a_crash_at_any_moment_of_an_overwrite_leaves_the_old_run_or_the_new_one(folder, home, tmp_path, monkeypatch):
    """Every renaming, removal and new file of a training that replaces a run, one after the other."""
    old, new = load_run(home / "old"), load_run(home / "new")
    seen = []
    for count in range(1, 400, 23):
        place = Path(shutil.copytree(folder, tmp_path / f"{count}"))
        with monkeypatch.context() as patch:
            kill_after(patch, count)
            try:
                replace_run(place, if_exists="overwrite")
            except KillError:
                finished = False
            else:
                finished = True
        (place / ".lock").unlink(missing_ok=True)
        found = load_run(place)
        seen.append(found.config.target_specs == new.config.target_specs)
        assert found.metrics == (new if seen[-1] else old).metrics
        begun = (place / "checkpoint" / "start.json").exists()
        replace_run(place, if_exists="resume" if begun else "overwrite")
        assert same(place, home / "new"), count
        assert (place / "notes.txt").read_text() == "mine"
        shutil.rmtree(place)
        if finished:
            break
    assert finished
    assert seen == sorted(seen)
    assert set(seen) == {False, True}, "some crashes were early, some late"


@pytest.mark.slow
def test_a_kill_before_and_after_each_rename_of_the_end_is_put_in_order(folder, home, tmp_path):
    """By SIGKILL, in a process of its own: each file is renamed when it is written, then all to their places."""
    files = sum(1 for path in (home / "new").iterdir() if path.is_file() and not path.name.startswith("."))
    states = set()
    for number in (0, files - 1, files, files + 1, 2 * files - 2, 2 * files - 1, 2 * files):
        place = Path(shutil.copytree(folder, tmp_path / f"kill-{number}"))
        child = os.fork()
        if child == 0:
            try:
                _kill_at_rename(place, number)
                replace_run(place, if_exists="overwrite")
            finally:
                os._exit(0)
        _, status = os.waitpid(child, 0)
        killed = os.WIFSIGNALED(status)
        states.add(load_run(place).config.target_specs[0])
        replace_run(place, if_exists="resume")
        assert same(place, home / "new"), number
        assert not (place / "checkpoint").exists()
        shutil.rmtree(place)
        assert killed == (number < 2 * files)
    assert states == {"node:vip", "edge:fee"}


def _kill_at_rename(place: Path, number: int) -> None:
    """From when the new run is being brought to its place, end the process before its renaming of this number."""
    rename, done = os.replace, 0

    def counted(source: object, target: object) -> None:
        nonlocal done
        if ".saving" in str(source):
            if done == number:
                os.kill(os.getpid(), signal.SIGKILL)
            done += 1
        rename(source, target)  # type: ignore[arg-type]

    os.replace = counted  # type: ignore[assignment]


# -- files that are no run's -----------------------------------------------------------------------------------------


def test_a_folder_with_files_of_the_users_is_refused_and_they_are_named(tmp_path):
    place = tmp_path / "mine"
    place.mkdir()
    for name in ("metrics.json", "a.csv", "b.csv", "c.csv"):
        (place / name).write_text("mine")
    for more in ({}, {"if_exists": "overwrite"}, {"if_exists": "resume"}):
        with pytest.raises(RunError, match=r"mine holds 'a.csv', 'b.csv', 'c.csv' and 1 more, which no training wrote"):
            train(payments(), "node:vip", place, settings=ONE, **more)
    with pytest.raises(RunError, match="which no training wrote"):
        replicate(payments(), "node:vip", place, replicates=2, settings=ONE)
    assert {path.name: path.read_text() for path in place.iterdir()} == dict.fromkeys(
        ("metrics.json", "a.csv", "b.csv", "c.csv"), "mine"
    )


@pytest.mark.parametrize("name", ["config.json", "checkpoint/start.json", "checkpoint/epoch-3.pt", ".saving/mine.csv"])
def test_what_has_the_name_of_a_file_of_ours_and_is_none_is_refused(name, tmp_path):
    place = tmp_path / "run" / name
    place.parent.mkdir(parents=True)
    place.write_text("{}")
    with pytest.raises(RunError, match="which no training wrote: choose another out, or an empty folder"):
        train(payments(), "node:vip", tmp_path / "run", settings=ONE, if_exists="overwrite")
    assert place.read_text() == "{}"


def test_an_empty_folder_is_fine_and_so_is_a_saved_run_elsewhere(home, tmp_path):
    (tmp_path / "empty").mkdir()
    run = train(payments(), "node:vip", tmp_path / "empty", settings=ONE)
    assert run.path == tmp_path / "empty"
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "history.csv").write_text("mine")
    with pytest.raises(RunError, match=r"data holds 'history\.csv', which no training wrote"):
        load_run(home / "old").save(tmp_path / "data")
    assert (tmp_path / "data" / "history.csv").read_text() == "mine"


def test_an_empty_name_is_not_the_working_directory(tmp_path, monkeypatch, home):
    monkeypatch.chdir(tmp_path)
    for name in ("", " "):
        with pytest.raises(RunError, match="expected the name of a folder for the run"):
            train(payments(), "node:vip", name, settings=ONE)
        with pytest.raises(RunError, match="expected the name of a folder for the run"):
            load_run(home / "old").save(name)
        with pytest.raises(RunError, match="expected the name of a folder for the run"):
            resume_run(name)
        for words in (["train", "karate", "--out", name], ["predict", str(home / "old"), "karate", "--to", name],
                      ["embed", str(home / "old"), "karate", "--to", name]):  # fmt: skip
            result = CliRunner().invoke(app, words)
            assert result.exit_code == 2
            assert "it is empty, expected the name of a file" in " ".join(result.output.split())
    assert list(tmp_path.iterdir()) == []


def test_data_are_not_trained_into(tmp_path):
    (tmp_path / "town").mkdir()
    payments().nodes.to_csv(tmp_path / "town" / "nodes.csv", index=False)
    payments().edges.to_csv(tmp_path / "town" / "edges.csv", index=False)
    for out in (tmp_path / "town", tmp_path):  # the folder of the data, and the one that has it
        with pytest.raises(RunError, match="which no training wrote"):
            train(tmp_path / "town", "node:vip", out, settings=ONE)
    run = train(tmp_path / "town", "node:vip", tmp_path / "town" / "run", settings=ONE)  # where nobody reads tables
    assert len(run.predict(tmp_path / "town")) == 30


# -- links -----------------------------------------------------------------------------------------------------------


def test_a_run_directory_that_is_a_link_is_not_written_through(tmp_path, home):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunError, match=r"run is a link to \S+elsewhere, expected a folder: give that one as out"):
        train(payments(), "node:vip", tmp_path / "run", settings=ONE)
    with pytest.raises(RunError, match="is a link to"):
        load_run(home / "old").save(tmp_path / "run")
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", [".saving", "checkpoint", "history.csv", "config.json", ".history.csv.part"])
@pytest.mark.parametrize("state", ["empty", "a run"])
def test_links_in_a_run_directory_are_not_written_through(name, state, home, tmp_path):
    place, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    if state == "a run":
        shutil.copytree(home / "old", place)
        (place / name).unlink(missing_ok=True)
    else:
        place.mkdir()
    if name in (".saving", "checkpoint"):
        elsewhere.mkdir()
        (elsewhere / "mine").write_text("mine")
    else:
        elsewhere.write_text("mine")
    (place / name).symlink_to(elsewhere)
    with pytest.raises(RunError, match="is a link"):
        train(payments(), "node:vip", place, settings=ONE, if_exists="overwrite")
    with pytest.raises(RunError, match="is a link"):
        load_run(home / "new").save(place)
    assert (elsewhere / "mine" if elsewhere.is_dir() else elsewhere).read_text() == "mine"
    assert sorted(path.name for path in elsewhere.parent.iterdir()) == ["elsewhere", "run"]


def test_a_lock_that_is_a_link_or_a_pipe_is_neither_followed_nor_waited_for(tmp_path):
    place = tmp_path / "run"
    place.mkdir()
    (tmp_path / "precious").write_text("mine")
    (place / ".lock").symlink_to(tmp_path / "precious")
    with pytest.raises(RunError, match=r"\.lock is a link, a folder or a pipe, expected a file: remove it"):
        train(payments(), "node:vip", place, settings=ONE)
    assert (tmp_path / "precious").read_text() == "mine"
    (place / ".lock").unlink()
    os.mkfifo(place / ".lock")
    with pytest.raises(RunError, match=r"\.lock is a link, a folder or a pipe, expected a file: remove it"):
        train(payments(), "node:vip", place, settings=ONE)
