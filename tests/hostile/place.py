"""Where a case works: a folder of its own, the doors of the library, and what every answer and refusal must keep."""

from __future__ import annotations

import logging
import os
import re
import traceback
import unicodedata
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

import censnet
from censnet.cli.app import app
from censnet.data import Dataset, load_data
from censnet.pipeline.prepare import Prepared, prepare

LIBRARY = Path(censnet.__file__).parent
LONGEST_LINE = 900
_UNCLEAR = re.compile(r"Traceback|\[Errno|object at 0x|<class '|pydantic|pyarrow\.lib|ArrowInvalid|KeyError|TypeError")
_NAMED = {"\n", "\t"}  # may stand on a screen of several lines


class Refusal(str):
    """The one line that says why something cannot be done."""


@dataclass(frozen=True)
class Screen:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """All of it on one line, however it was wrapped."""
        return " ".join((self.out + " " + self.err).split())


@dataclass(frozen=True)
class Place:
    """A folder with `data`, empty at first, and `here`, the working directory, which stays empty."""

    folder: Path

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def load(self, data: object = None, **options: Any) -> Dataset | Refusal:
        """`load_data`, by default of the folder."""
        return self.attempt(lambda: load_data(self.data if data is None else data, **options))

    def prepare(self, target: Any, data: object = None, changes: Any = None, **options: Any) -> Prepared | Refusal:
        """All that happens before a training."""
        return self.attempt(lambda: prepare(self.data if data is None else data, target, "strong", changes, **options))

    def attempt(self, act: Callable[[], Any]) -> Any:
        """What a call gives, or its refusal; an exception that nobody meant is a failure, and so is a changed file."""
        with unchanged(self.data), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return act()
            except Exception as error:
                return check_refusal(error)

    def command(self, *arguments: object, stdin: str | None = None) -> Screen:
        """Run the command in this process."""
        with unchanged(self.data):
            result = CliRunner().invoke(app, [str(each) for each in arguments], input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise AssertionError("traceback: " + _last_of(result.exception))
        screen = Screen(result.exit_code, result.stdout, result.stderr)
        assert screen.code in (0, 1, 2), f"exit code {screen.code}: {screen.text[:300]}"
        if arguments[:1] != ("predict",) or "--to" in arguments:  # a CSV file on stdout holds what the user wrote
            check_screen(screen.out)
        check_screen(screen.err)
        if screen.code == 2 and "Usage:" not in screen.err:
            self.refusal(screen)
        return screen

    def refusal(self, screen: Screen) -> Refusal:
        """The line of a command that failed."""
        assert screen.code == 2, f"it was not refused: {screen.text[:300]}"
        lines = [line for line in screen.err.split("\n") if line.startswith("error: ")]
        assert len(lines) == 1, f"{len(lines)} lines of error: {screen.err[:500]!r}"
        assert screen.err.rstrip("\n").split("\n")[-1] == lines[0], f"the error is not the last: {screen.err[:500]!r}"
        return check_line(lines[0].removeprefix("error: "))


def check_refusal(error: Exception) -> Refusal:
    """A refusal is raised by the library itself, on purpose, and is one line."""
    where = traceback.extract_tb(error.__traceback__)[-1].filename
    meant = isinstance(error, ValueError | TypeError | ImportError) and Path(where).is_relative_to(LIBRARY)
    assert meant, "traceback: " + _last_of(error)
    return check_line(str(error))


def check_line(line: str) -> Refusal:
    """One line that a user can read."""
    assert 10 < len(line) < LONGEST_LINE, f"a line of {len(line)} characters: {line[:300]!r}"
    assert "\n" not in line.strip(), f"more than one line: {line[:300]!r}"
    found = _UNCLEAR.search(line)
    assert found is None, f"it shows the inside ({found and found[0]}): {line[:300]!r}"
    return Refusal(line)


def check_screen(text: str) -> None:
    """Nothing that moves the cursor, rings, colors, hides or turns text around reaches a screen."""
    for sign in sorted(set(text) - _NAMED):
        assert not is_control(sign), f"U+{ord(sign):04X} on the screen: {text[max(text.index(sign) - 60, 0) :][:120]!r}"


@cache
def is_control(sign: str) -> bool:
    """Whether a character does something instead of being seen."""
    return unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp") or (
        unicodedata.category(sign) == "Cf" and sign not in "\u200c\u200d\u00ad"  # joiners of words and emoji
    )


def says(line: object, *parts: str) -> Refusal:
    """A refusal that names all of these."""
    assert isinstance(line, Refusal), f"it was not refused, expected a line with {', '.join(parts)}"
    for part in parts:
        assert part.lower() in line.lower(), f"the line does not say {part!r}: {line[:400]!r}"
    return line


def snapshot(folder: Path) -> dict[str, object]:
    """Every entry under a folder: its bytes if it is a small plain file, where it leads if it is a link."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = os.readlink(path)
        elif path.is_file():
            found[name] = path.read_bytes() if path.stat().st_size < 1 << 22 else path.stat().st_size
        else:
            found[name] = path.stat().st_mode
    return found


@contextmanager
def unchanged(folder: Path) -> Iterator[None]:
    """Nothing in a folder is written, removed or added."""
    before = snapshot(folder)
    yield
    after = snapshot(folder)
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    assert not changed, f"files of the user's were changed: {changed[:5]}"


@contextmanager
def heard() -> Iterator[list[str]]:
    """What the library logs."""
    logger, lines = logging.getLogger("censnet"), list[str]()

    class _Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    ear, level = _Ear(logging.INFO), logger.level
    logger.addHandler(ear)
    logger.setLevel(logging.INFO)
    try:
        yield lines
    finally:
        logger.removeHandler(ear)
        logger.setLevel(level)


def _last_of(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(LIBRARY)] or frames
    where = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else "nowhere"
    return f"{type(error).__name__} at {where}: {str(error)[:300]}"
