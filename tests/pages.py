"""Run what a Markdown page shows: its Python, its commands, and what they print.

Blocks run in the order of the page, in one folder. A ```python block is executed, all of a page in one namespace. In a
```sh block `censnet` is called in this process, reading and writing the files behind `<` and `>`, anything else by a
shell. A ```text block right behind either is what
it prints, where `...` stands for anything. An ```output block is the same for a training, whose scores differ by
rounding between machines: numbers with decimals, and the shares of the counts in a row of a table, are within `NEAR` of
those shown, times and epochs are anything. Behind a command, `# Ctrl-C` stops it after some epochs, and
`# exits with N` is what it returns. Blocks of other languages are only shown.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

from typer.testing import CliRunner

from censnet.cli.app import app

ROOT = Path(__file__).parents[1]
RUN = ("python", "sh")
NEAR = 0.05  # how far a number of an ```output block may be from the one that is printed
NUMBER = re.compile(r"\d+\.\d+")
COUNTS = re.compile(r"(?<=\S)(?: {2,}[\d,]+){2,}$", re.MULTILINE)  # of a row of a table


class Block(NamedTuple):
    """A fenced block, the line it starts at, and what it prints, if the page says so."""

    language: str
    text: str
    line: int
    expected: str | None
    near: bool


class PageError(AssertionError):
    """A page shows what does not happen."""


def find_blocks(page: str) -> list[Block]:
    """The blocks of a page that are run."""
    found = list(re.finditer(r"^```(\w+)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE))
    blocks = []
    for number, match in enumerate(found):
        behind = found[number + 1] if number + 1 < len(found) else None
        adjacent = behind is not None and page[match.end() : behind.start()].strip() == ""
        printed = behind if behind is not None and adjacent and behind[1] in ("text", "output") else None
        if match[1] in RUN:
            line = page[: match.start()].count("\n") + 1
            expected, near = (None, False) if printed is None else (printed[2], printed[1] == "output")
            blocks.append(Block(match[1], match[2], line, expected, near))
    return blocks


def find_commands(text: str) -> list[tuple[str, str]]:
    """The commands of a shell block, each with its comment; a backslash at the end of a line goes on."""
    lines = text.replace("\\\n", " ").splitlines()
    parts = [line.partition(" #") for line in lines if line.strip() and not line.startswith("#")]
    return [(command.strip(), comment.strip()) for command, _, comment in parts]


def run_page(path: Path, folder: Path, names: dict[str, Any] | None = None) -> dict[str, Any]:
    """Run all of a page in a folder. -> what its Python defined"""
    names = {"__name__": "page"} if names is None else names
    with contextlib.chdir(folder):
        for block in find_blocks(path.read_text("utf-8")):
            place = f"{path.name}, line {block.line}"
            printed = _run_python(block, place, names) if block.language == "python" else _run_shell(block, place)
            if block.expected is not None:
                _compare(block.expected, printed, place, block.near)
    return names


def _run_python(block: Block, place: str, names: dict[str, Any]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block.text, place, "exec"), names)
    return printed.getvalue()


def _run_shell(block: Block, place: str) -> str:
    printed = []
    for command, comment in find_commands(block.text):
        stated = re.search(r"exits with (\d+)", comment)
        expected = 130 if "Ctrl-C" in comment else int(stated[1]) if stated else 0
        if command.startswith("censnet "):
            arguments = shlex.split(command)[1:]
            given, to = (_take_file(arguments, sign) for sign in "<>")
            given_bytes = None if given is None else given.read_bytes()
            with _ctrl_c(arguments) if "Ctrl-C" in comment else contextlib.nullcontext():
                result = CliRunner().invoke(app, arguments, input=given_bytes, env={"COLUMNS": "100"})
            code, text = result.exit_code, result.output
            if to is not None:
                to.write_bytes(result.stdout_bytes)
                text = result.stderr
            if result.exception is not None and not isinstance(result.exception, SystemExit):
                raise PageError(f"{place}: {command}\n{text}") from result.exception
        else:
            done = subprocess.run(command, shell=True, capture_output=True, text=True)
            code, text = done.returncode, done.stdout + done.stderr
        if code != expected:
            raise PageError(f"{place}: {command} exits with {code}, expected {expected}\n{text}")
        printed.append(text)
    return "".join(printed)


def _take_file(arguments: list[str], sign: str) -> Path | None:
    """Remove the file behind a sign from the arguments of a command."""
    if sign not in arguments:
        return None
    at = arguments.index(sign)
    _, name = arguments.pop(at), arguments.pop(at)
    return Path(name)


@contextlib.contextmanager
def _ctrl_c(arguments: list[str]) -> Any:
    """Press Ctrl-C once the run directory has a few epochs."""
    history, over = Path(arguments[arguments.index("--out") + 1]) / "history.csv", threading.Event()

    def press() -> None:
        while not over.is_set():
            if history.exists() and history.read_bytes().count(b"\n") > 3:
                os.kill(os.getpid(), signal.SIGINT)
                return
            time.sleep(0.01)

    thread = threading.Thread(target=press)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _shares(row: re.Match[str]) -> str:
    counts = [int(count.replace(",", "")) for count in row[0].split()]
    return "".join(f"  {count / max(sum(counts), 1):.6f}" for count in counts)


def matches(expected: str, printed: str, near: bool = False) -> bool:
    """Whether a text is what is expected: `...` is anything, nothing too, and white space is white space.

    Args:
        near: whether numbers with decimals need only be near, and epochs and seconds are anything.
    """
    if near:
        expected, printed = COUNTS.sub(_shares, expected), COUNTS.sub(_shares, printed)
    expected, printed = " ".join(expected.split()), " ".join(printed.split())
    shown: list[str] = []
    if near:
        expected, printed = (re.sub(r"\d[\d.]* s\b", "0 s", text) for text in (expected, printed))
        expected, printed = (re.sub(r"epoch \d+ of \d+", "epoch 0 of 0", text) for text in (expected, printed))
        shown = NUMBER.findall(expected)
    parts = re.split(r"\s*\.\.\.\s*", expected)
    pattern = r"\s*.*?\s*".join(re.escape(part) for part in parts)
    if near:
        pattern = re.sub(r"\d+\\\.\d+", lambda _: r"(\d+\.\d+)", pattern)
    found = re.fullmatch(pattern, printed, re.DOTALL)
    return found is not None and all(
        abs(float(one) - float(other)) <= NEAR for one, other in zip(shown, found.groups(), strict=True)
    )


def _compare(expected: str, printed: str, place: str, near: bool) -> None:
    if not matches(expected, printed, near):
        raise PageError(f"{place} prints something else. It says\n{expected}\nand prints\n{printed}")
