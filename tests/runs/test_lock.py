"""One training at a time in a run directory; the lock of a killed process blocks nobody."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
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
    with locked(folder), pytest.raises(RunError, match="run is being trained in by another process: wait for it, or"):
        train(payments(), "edge:fraud", folder, settings=quick(training__epochs=1))
    assert not folder.exists()
    with locked(folder), pytest.raises(RunError, match="run is being trained in by another process"):
        replicate(payments(), "edge:fraud", folder, replicates=2, settings=quick(training__epochs=1))
    run = train(payments(), "edge:fraud", folder, settings=quick(training__epochs=1))
    assert run.path == folder
    assert not (folder / LOCK).exists()


def test_a_lock_goes_with_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="stop"), locked(tmp_path):
        raise RuntimeError("stop")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_another_process_holds_it_while_it_lives_and_not_after_it_was_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        for path in (tmp_path, Path(os.path.relpath(tmp_path))):
            with pytest.raises(RunError, match="is being trained in by another process"), locked(path):
                pass
        other.kill()
    assert (tmp_path / LOCK).exists()
    with locked(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "{", '{"pid": 1, "host": "elsewhere", "started": 5.0}', "\0" * 4096])
def test_a_lock_file_that_no_process_holds_is_taken_over_whatever_it_holds(tmp_path: Path, text: str) -> None:
    (tmp_path / LOCK).write_text(text)
    with locked(tmp_path), pytest.raises(RunError, match="being trained in"), locked(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path.symlink_to(path.parent / "elsewhere"),
        lambda path: path.mkdir(),
        lambda path: os.mkfifo(path),
    ],
    ids=["link", "folder", "pipe"],
)
def test_a_lock_that_is_no_file_is_refused_and_left(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / LOCK)
    with pytest.raises(RunError, match=r"\.lock is a link, a folder or a pipe, expected a file: remove it"):
        train(payments(), "edge:fraud", tmp_path, settings=quick(training__epochs=1))
    assert [path.name for path in tmp_path.iterdir()] == [LOCK]


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("mine")
    with pytest.raises(RunError, match="run is a file, expected a directory"), locked(tmp_path / "run"):
        pass


@pytest.mark.parametrize("name", ["file/run", "x" * 300, "a\0b"])
def test_a_place_where_no_folder_can_be_is_named(name, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RunError, match=r"cannot be .*: choose another out"), locked(tmp_path / name):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
