"""All cases by kind, and one of them run: in a folder of its own, within bounds of time and memory."""

from __future__ import annotations

import importlib
import logging
import os
import random
import resource
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType

from hostile.place import Place

KINDS = (
    "csv_ids", "csv_cells", "csv_files", "parquet", "folders", "frames", "pyg", "networkx", "smiles", "names",
    "targets", "settings", "flags", "arguments", "run_files", "run_contents", "answers", "places", "resuming", "bodies",
)  # fmt: skip
logging.getLogger("censnet").addHandler(logging.NullHandler())  # what is logged is heard by those who listen
SECONDS = 20  # of computing that a case may take, and three times as many of waiting
MEGABYTES = 1500  # by which the process may grow in one


@dataclass(frozen=True)
class Case:
    """One input and what must come of it.

    Args:
        name: of the case, `KIND/WHAT`.
        check: builds the input in a place, hands it to the library, and raises AssertionError if the answer is wrong.
    """

    name: str
    check: Callable[[Place], None]

    @property
    def kind(self) -> str:
        return self.name.partition("/")[0]


@dataclass(frozen=True)
class Outcome:
    """What came of a case; `wrong` is empty if all is well."""

    case: Case
    wrong: str
    seconds: float


@cache
def cases(kind: str) -> tuple[Case, ...]:
    """The cases of one kind, always the same ones."""
    checks = importlib.import_module(f"hostile.{kind}").checks()
    found = tuple(Case(f"{kind}/{name}", check) for name, check in checks)
    names = [case.name for case in found]
    assert len(set(names)) == len(names), f"{kind} has two cases of one name: {_twice(names)}"
    return found


def sample(count: int, seed: int = 18) -> list[Case]:
    """So many cases, drawn from every kind by turns."""
    rng = random.Random(seed)
    left = {kind: rng.sample(cases(kind), len(cases(kind))) for kind in KINDS}
    drawn: list[Case] = []
    while len(drawn) < count and any(left.values()):
        drawn += [rest.pop() for rest in left.values() if rest][: count - len(drawn)]
    return drawn


def run_case(case: Case, seconds: int = SECONDS) -> Outcome:
    """Run a case in an empty folder; what it leaves in the working directory is wrong, too."""
    home = Path(tempfile.mkdtemp(prefix="hostile-"))
    for name in ("data", "here"):
        (home / name).mkdir()
    started, memory = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wrong = ""
    with _inside(home / "here"):
        try:
            with _at_most(seconds):
                case.check(Place(home))
            grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) // 1024
            assert grown < MEGABYTES, f"it took {grown:,} MB"
            left = sorted(os.listdir(home / "here"))
            assert not left, f"written to the working directory: {left[:5]}"
        except AssertionError as error:
            wrong = str(error) or "an assertion without a word"
        except Exception as error:  # of the case itself, or a refusal where none may come
            wrong = f"{type(error).__name__}: {error}"
    shutil.rmtree(home, ignore_errors=True)
    return Outcome(case, wrong, time.monotonic() - started)


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@contextmanager
def _at_most(seconds: int) -> Iterator[None]:
    def ring(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"no answer within {seconds} s")

    timers = ((signal.ITIMER_PROF, signal.SIGPROF, seconds), (signal.ITIMER_REAL, signal.SIGALRM, 3 * seconds))
    before = [signal.signal(number, ring) for _, number, _ in timers]
    for timer, _, limit in timers:
        signal.setitimer(timer, limit)
    try:
        yield
    finally:
        for (timer, number, _), handler in zip(timers, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


def _twice(names: list[str]) -> str:
    return next(name for name in names if names.count(name) > 1)
