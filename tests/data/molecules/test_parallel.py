"""Work in several processes: the same results, wherever it is started from, and nothing left running."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from censnet.data import DataError
from censnet.data.molecules import parallel as workers
from censnet.data.molecules.parallel import parallel_map


def squares(items: Sequence[int]) -> list[int]:
    return [item * item for item in items]


def die(items: Sequence[int]) -> list[int]:
    if 500 in items:
        os._exit(9)
    return list(items)


def fail(items: Sequence[int]) -> list[int]:
    if 0 in items:
        raise ValueError("the first chunk is bad")
    time.sleep(0.2)
    return list(items)


def inner(_: object) -> list[list[int]]:
    return parallel_map(squares, range(3000))


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 5, 999])
def test_chunks_come_back_in_order(processes: int, count: int) -> None:
    found = parallel_map(squares, range(count), processes)
    assert [number for chunk in found for number in chunk] == [number * number for number in range(count)]


def test_every_process_has_several_chunks_to_even_out_their_times() -> None:
    assert len(parallel_map(squares, range(1000), 4)) >= 4 * workers.EACH
    assert len(parallel_map(squares, range(1000), 1)) == 4


def test_an_ended_process_is_said_in_one_line() -> None:
    with pytest.raises(DataError, match="a process that read a part of the rows was ended"):
        parallel_map(die, range(1000), 2)


@pytest.mark.slow
def test_an_error_in_a_process_ends_the_work_soon() -> None:
    start = time.perf_counter()
    with pytest.raises(ValueError, match="the first chunk is bad"):
        parallel_map(fail, range(16 * 40), 2)
    assert time.perf_counter() - start < 2.5  # and not the 3.2 s of all chunks


def test_a_daemon_works_alone() -> None:
    with multiprocessing.get_context("fork").Pool(1) as pool:
        found = pool.map(inner, [0])[0]
    assert sum(len(chunk) for chunk in found) == 3000


def test_a_child_or_one_of_several_on_the_machine_takes_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(8), raising=False)
    assert workers._num_cores() == 8
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert workers._num_cores() == 2
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: object())
    assert workers._num_cores() == 1


SCRIPT = """
from censnet.data.molecules import parallel as workers
workers.START = {start!r}
print("read", sum(workers.parallel_map(len, range(3000), processes=2)))
"""


@pytest.mark.slow
@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_a_script_without_a_guard_does_the_work_once(tmp_path: Path, start: str) -> None:
    """With spawn, a child runs the script again: it ends where it would start over, and one process does all."""
    path = tmp_path / "script.py"
    path.write_text(SCRIPT.format(start=start))
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "read 3000\n"
    assert "Traceback" not in done.stderr
    assert ("no other process could start" in done.stderr) == (start == "spawn")
