"""Output of the command line: results, errors in one line, notes of the library, how to resume after Ctrl-C."""

from __future__ import annotations

import json
import logging
import os
import shlex
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.console import ConsoleRenderable, RenderableType
from rich.logging import RichHandler
from rich.table import Table

from censnet.console import Console, Text
from censnet.errors import CensNetError, TrainingInterrupted
from censnet.option_names import FLAGS

WRONG, FAILED, INTERRUPTED = 1, 2, 130  # exit codes: the data have problems; it could not be done; Ctrl-C
MARKS = {"problem": ("✗", "x", "bold red"), "warning": ("!", "!", "yellow"), "note": ("·", "-", "dim")}
LOGGER = logging.getLogger("censnet")


@contextmanager
def report_errors(debug: bool = False) -> Iterator[None]:
    """Report what a command raises in one line on stderr, and what the library logs as notes.

    Args:
        debug: whether to print the traceback before the line.
    """
    handler = ConsoleHandler() if is_main() else logging.NullHandler()
    before, token = LOGGER.level, FLAGS.set(True)
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse")  # torch: sparse tensors are in beta
            warnings.showwarning = _warn
            yield
    except (typer.Exit, typer.Abort, BrokenPipeError):
        raise
    except KeyboardInterrupt:
        raise failed("stopped", INTERRUPTED) from None
    except Exception as error:
        if hasattr(error, "format_message"):  # typer: a mistake in what was typed
            raise
        if debug:
            for line in "".join(traceback.format_exception(error)).splitlines():
                Console(stderr=True, soft_wrap=True).print(Text(line))
        raise failed(_describe(error), FAILED) from None
    finally:
        FLAGS.reset(token)
        LOGGER.setLevel(before)
        LOGGER.removeHandler(handler)


def show_notes(level: int = logging.INFO) -> None:
    """Show what the library logs from a level on, until the command ends."""
    LOGGER.setLevel(level)


@contextmanager
def handle_interrupt(run_dir: Path, again: Sequence[str] | None = None) -> Iterator[None]:
    """After Ctrl-C, say in one line what was saved, and the command that resumes.

    Args:
        run_dir: of the training.
        again: the arguments that resume it, where these are not `train --resume --out RUN_DIR`.
    """
    from censnet.runs.directory import has_checkpoint

    try:
        yield
    except (TrainingInterrupted, KeyboardInterrupt) as error:
        reached, saved = ("stopped", True) if isinstance(error, KeyboardInterrupt) else (error.reached, error.saved)
        command = shlex.join(["censnet", *(again or ["train", "--resume", "--out", str(run_dir)])])
        saved = saved and (again is not None or has_checkpoint(run_dir))
        how = f"{command} goes on with it" if saved else "nothing was saved"
        raise failed(f"{reached}: {how}", INTERRUPTED) from None


def is_main() -> bool:
    """Whether this is the first of the processes that `accelerate launch`, torchrun or MPI started, or the only one."""
    ranks = (os.environ.get(name) for name in ("RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK"))
    return next((rank for rank in ranks if rank), "0") == "0"


def echo(what: RenderableType) -> None:
    """Print a result, in the first process alone; a line of text is neither wrapped nor read as markup."""
    if not is_main():
        return
    if isinstance(what, str):
        Console(soft_wrap=True).print(Text(what))
    else:
        Console().print(what)


def echo_table(csv: bytes) -> None:
    """Print a table as CSV: unchanged into a file or a pipe, printable in a terminal."""
    if sys.stdout.isatty():
        for line in csv.decode("utf-8", "surrogateescape").removesuffix("\n").split("\n"):
            echo(line.removesuffix("\r"))
    else:
        typer.echo(csv, nl=False)


def echo_json(content: object) -> None:
    """Print JSON in ASCII, in the first process alone."""
    if is_main():
        typer.echo(json.dumps(content, indent=1, default=str))


def failed(text: str, code: int) -> typer.Exit:
    """Print in one line what went wrong, in one of the processes that train together. -> the exception to raise"""
    if not _speaks(code):
        return typer.Exit(code)
    line = Text.assemble(("error: " if code == FAILED else "", "bold red"), text)
    Console(stderr=True, soft_wrap=True).print(line)
    return typer.Exit(code)


def _speaks(code: int) -> bool:
    """Whether this process prints an error: the first that sees one, but of an interrupt, which all see, the main one.

    Before they have met, all of them see the same: what was typed.
    """
    if code == INTERRUPTED or "torch.distributed" not in sys.modules:
        return is_main()
    from censnet.training.processes import is_first_to_say

    return is_first_to_say()


def _describe(error: Exception) -> str:
    """An error in one line. What neither the library nor the file system raised on purpose is a bug."""
    if isinstance(error, CensNetError):
        return str(error)  # a line feed is part of a name
    text = " ".join(str(error).split("\n"))
    if isinstance(error, OSError):
        return text
    if isinstance(error, MemoryError | RuntimeError):
        from censnet.training.interrupt import is_out_of_memory, out_of_memory

        if is_out_of_memory(error):
            return str(out_of_memory(error, "give fewer rows at a time, or use a machine with more memory"))
    return f"{type(error).__name__}: {text} (this is a bug: run again with --debug to see where, and report it)"


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: object = None,
    line: object = None,
) -> None:
    """Print a warning of another library as one of the notes."""
    if not is_main():
        return
    Console(stderr=True, soft_wrap=True).print(Text(f"! {' '.join(str(message).split())} ({category.__name__})"))


class ConsoleHandler(RichHandler):
    """Log records as notes on the terminal: a mark and a sentence, each sentence once."""

    def __init__(self, level: int = logging.NOTSET) -> None:
        super().__init__(level, Console(stderr=True))
        self._shown: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        known = text in self._shown
        self._shown.add(text)
        return not known

    def render(self, *, record: logging.LogRecord, **_: object) -> ConsoleRenderable:
        mark, letter, style = MARKS["warning" if record.levelno >= logging.WARNING else "note"]
        mark = mark if self.console.encoding.lower().startswith("utf") else letter
        if not self.console.is_terminal:
            self.console.soft_wrap = True
            return Text(f"{mark} {record.getMessage()}")
        line = Table.grid(padding=(0, 1))
        line.add_row(Text(mark, style), Text(record.getMessage(), style))
        return line
