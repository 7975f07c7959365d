"""One training at a time in a run directory; what a killed one left behind is in nobody's way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from samples import payments, quick

from censnet.errors import RunError
from censnet.pipeline import replicate, train
from censnet.runs.lock import LOCK, locked

HOLD = """
import sys
from pathlib import Path
from censnet.runs.lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_directory_is_held_until_its_training_ends(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with locked(folder), pytest.raises(RunError, match=rf"run is being trained in by process {os.getpid()} on "):
        train(payments(), "edge:fraud", folder, settings=quick(training__epochs=1))
    assert not folder.exists()
    with locked(folder), pytest.raises(RunError, match="is being trained in by process"):
        replicate(payments(), "edge:fraud", folder, replicates=2, settings=quick(training__epochs=1))
    run = train(payments(), "edge:fraud", folder, settings=quick(training__epochs=1))
    assert run.path == folder
    assert not (folder / LOCK).exists()


def test_a_lock_goes_with_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="stop"), locked(tmp_path):
        raise RuntimeError("stop")
    assert list(tmp_path.iterdir()) == []


def test_another_process_holds_it_while_it_lives_and_not_after_it_was_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(RunError, match=f"by process {other.pid} on "), locked(tmp_path):
            pass
        other.kill()
    assert (tmp_path / LOCK).exists()
    with locked(tmp_path):
        assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "stale"),
    [
        ({"host": "elsewhere"}, False),
        ({}, True),  # this process, which could not remove it
        ({"started": 5.0}, True),  # the number of the process was given to another one since
        ({"pid": 2**30}, True),
        ({"pid": -1}, True),
        ({"pid": "me"}, True),
    ],
)
def test_a_lock_is_stale_when_its_process_cannot_be_running(tmp_path: Path, changes, stale) -> None:
    with locked(tmp_path):
        held = json.loads((tmp_path / LOCK).read_text())
    (tmp_path / LOCK).write_text(json.dumps(held | changes))
    if stale:
        with locked(tmp_path):
            pass
    else:
        with pytest.raises(RunError, match=r"remove .*/\.lock if it is gone"), locked(tmp_path):
            pass


@pytest.mark.parametrize("text", ["", "{", "[1]", "null"])
def test_a_lock_that_says_nothing_is_taken_over(tmp_path: Path, text: str) -> None:
    (tmp_path / LOCK).write_text(text)
    with locked(tmp_path):
        assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid()


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("mine")
    with pytest.raises(RunError, match="run is a file, expected a directory"), locked(tmp_path / "run"):
        pass


@pytest.mark.parametrize("name", ["file/run", "x" * 300, "a\0b"])
def test_a_place_where_no_folder_can_be_is_named(name, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RunError, match=r"cannot be .*: choose another --out"), locked(tmp_path / name):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
