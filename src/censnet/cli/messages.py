"""What the command line says: results, what went wrong in one line, notes as they come, how to go on after Ctrl-C."""

from __future__ import annotations

import json
import logging
import os
import shlex
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.console import RenderableType
from rich.table import Table

from censnet.console import Console, Text

WRONG, FAILED, INTERRUPTED = 1, 2, 130  # exit codes: the data have problems; it could not be done; Ctrl-C


@contextmanager
def report_errors(level: int = logging.ERROR) -> Iterator[None]:
    """What is wrong is said in one line, without a traceback; what is logged from `level` on, as it comes."""
    logger = logging.getLogger("censnet")
    before, handlers = logger.level, list[logging.Handler]()
    try:
        if level < logging.ERROR and is_main():
            handlers.append(ConsoleHandler(level))
            logger.addHandler(handlers[0])
        logger.setLevel(level)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse")  # torch: sparse tensors are in beta
            warnings.showwarning = _warn
            yield
    except (ValueError, ImportError, OSError) as error:
        raise failed(_message(error), FAILED) from None
    except KeyboardInterrupt:
        raise failed("stopped", INTERRUPTED) from None
    except (MemoryError, RuntimeError) as error:
        from censnet.training.interrupt import is_out_of_memory, out_of_memory

        if not is_out_of_memory(error):
            raise
        advice = "give fewer rows at a time, or use a machine with more memory"
        raise failed(str(out_of_memory(error, advice)), FAILED) from None
    finally:
        logger.setLevel(before)
        for handler in handlers:
            logger.removeHandler(handler)


@contextmanager
def handle_interrupt(place: Path, again: Sequence[str] | None = None) -> Iterator[None]:
    """After Ctrl-C, say in one line what was saved, and the command that goes on."""
    from censnet.errors import TrainingInterrupted, TrainingStopped
    from censnet.runs.resume import has_checkpoint

    try:
        yield
    except (TrainingInterrupted, KeyboardInterrupt) as error:
        what, _, rest = str(error).partition(": ")
        command = shlex.join(["censnet", *(again or ["train", "--resume", "--out", str(place)])])
        saved = rest != "nothing was saved" and (again is not None or has_checkpoint(place))
        how = f"{command} goes on with it" if saved else "nothing was saved"
        raise failed(f"{what or 'stopped'}: {how}", INTERRUPTED) from None
    except TrainingStopped as error:
        raise failed(str(error), FAILED) from None


def named_path(text: str | Path) -> Path:
    """A path as it was typed; an empty one, as of a variable that is not set, is not the working directory."""
    if not str(text).strip() or text == "":
        raise typer.BadParameter("it is empty, expected the name of a file or a folder")
    return Path(text)


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


def say_rows(text: bytes) -> None:
    """Print a table as CSV: as it is into a file or a pipe, printable in a terminal."""
    if sys.stdout.isatty():
        for line in text.decode("utf-8", "surrogateescape").removesuffix("\n").split("\n"):
            echo(line.removesuffix("\r"))
    else:
        typer.echo(text, nl=False)


def say_json(content: object) -> None:
    """Print something as JSON, of ASCII alone, in the first process alone."""
    if is_main():
        typer.echo(json.dumps(content, indent=1, default=str))


def failed(text: str, code: int) -> typer.Exit:
    """Say in one line what went wrong. -> what to raise"""
    line = Text.assemble(("error: " if code == FAILED else "", "bold red"), text)
    Console(stderr=True, soft_wrap=True).print(line)
    return typer.Exit(code)


def _message(error: Exception) -> str:
    """What an error says. A library may take several lines; in ours, a line feed is part of a name."""
    ours = type(error).__module__.partition(".")[0] == "censnet"
    return str(error) if ours else " ".join(str(error).split("\n"))


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: object = None,
    line: object = None,
) -> None:
    """A library's warning, as one of the notes."""
    Console(stderr=True, soft_wrap=True).print(Text(f"! {' '.join(str(message).split())} ({category.__name__})"))


class ConsoleHandler(logging.Handler):
    """What the library has to say, as a person reads it: a mark and a sentence, each sentence once."""

    def __init__(self, level: int = logging.INFO) -> None:
        super().__init__(level)
        self.said: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        from censnet.cli.render_report import MARKS

        text, console = record.getMessage(), Console(stderr=True)
        if text in self.said:
            return
        self.said.add(text)
        mark, letter, style = MARKS["warning" if record.levelno >= logging.WARNING else "note"]
        mark = mark if console.encoding.lower().startswith("utf") else letter
        if not console.is_terminal:
            console.print(Text(f"{mark} {text}"), soft_wrap=True)
            return
        line = Table.grid(padding=(0, 1))
        line.add_row(Text(mark, style), Text(text, style))
        console.print(line)
