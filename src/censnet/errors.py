"""Errors of this library, each a message of one line: what was found, what was expected, and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from censnet.option_names import resume_option

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


class CensNetError(Exception):
    """Base of the errors that data, settings, arguments and run directories cause, in Python and on the command line.

    The building blocks in `censnet.nn`, `censnet.ops` and `censnet.pyg`, which a program composes, raise a `ValueError`
    for a wrong shape or option, as those of PyTorch do. Any other exception is a bug, or comes from another library.
    """


class DataError(CensNetError, ValueError):
    """Data that cannot be used, with their location: `FILE, row R, column C: what was found`.

    Args:
        found: what is wrong, and in brackets what to do about it.
        file: name of the file or table.
        row: the row, counted from 0 as a program does; it is shown from 1, as the user sees it.
        column: name of the column.

    Example:
        >>> raise DataError("no node has the id 'acct-40' (nodes.csv has 1,204 ids)", "edges.csv", 90, "target")
        Traceback (most recent call last):
        censnet.errors.DataError: edges.csv, row 91, column target: no node has the id 'acct-40' (nodes.csv has ...
    """

    def __init__(self, found: str, file: str | None = None, row: int | None = None, column: str | None = None) -> None:
        super().__init__(location(file, row, column) + found)
        self.found, self.file, self.row, self.column = found, file, row, column


class SettingsError(CensNetError, ValueError):
    """A setting that does not exist or cannot have this value."""


class RunError(CensNetError, ValueError):
    """A run directory that cannot be used as asked."""


class WriteError(RunError):
    """A file that could not be written, as on a full disk."""

    def __init__(self, path: Path, error: OSError, kept: str = "") -> None:
        why = error.strerror or str(error)
        super().__init__(f"{path} could not be written: {why}{f' ({kept})' if kept else ''}")


class TrainingStopped(CensNetError, RuntimeError):  # noqa: N818 - what happened, as KeyboardInterrupt says it
    """A training that ended early, as by divergence or lack of memory; its state is in the checkpoint."""


class TrainingInterrupted(TrainingStopped):
    """A training that was interrupted by Ctrl-C or a request to terminate.

    Args:
        reached: where it stopped, such as `stopped after epoch 2`.
        run_dir: the run directory with its checkpoint; None if nothing was saved.
    """

    def __init__(self, reached: str, run_dir: Path | None = None) -> None:
        how = "nothing was saved" if run_dir is None else f"{resume_option(run_dir)} goes on with it"
        super().__init__(f"{reached}: {how}")
        self.reached, self.saved = reached, run_dir is not None


class MissingDependencyError(CensNetError, ImportError):
    """An optional dependency that is not installed."""


class ArgumentError(CensNetError, TypeError, ValueError):
    """An argument of the wrong type or value."""


def location(file: str | None = None, row: int | None = None, column: str | None = None) -> str:
    """`FILE, row R, column C: `, of which any part may be missing; `row` counts from 0.

    >>> location("edges.csv", 90, "target")
    'edges.csv, row 91, column target: '
    """
    parts = [] if file is None else [file]
    if row is not None:
        parts.append(f"row {row + 1}")
    if column is not None:
        parts.append(f"column {shorten(column)}")
    return ", ".join(parts) + ": " if parts else ""


def shorten(name: object, longest: int = 100) -> str:
    """Shorten a name for a message.

    >>> shorten("amount"), shorten("x" * 1000, 10)
    ('amount', 'xxxxxxxxxx...')
    """
    text = str(name)
    return text[:longest] + "..." if len(text) > longest else text


def name_columns(names: Iterable[object], most: int = 20) -> str:
    """List the first columns of a table for a message.

    >>> name_columns(["source", "target", "amount"])
    'source, target, amount'
    """
    return ", ".join(" ".join(shorten(name, 40).split("\n")) for name in islice(names, most))


def first_few(names: Iterable[object], most: int = 5) -> str:
    """List the first few names, and the number of others.

    >>> first_few(["age", "sex"]), first_few(range(203), 3)
    ('age, sex', '0, 1, 2 and 200 more')
    """
    every = [str(name) for name in names]
    first = every if len(every) <= most + 1 else every[:most]  # one more takes no more room than saying so
    return ", ".join(first) + (f" and {len(every) - most:,} more" if len(first) < len(every) else "")


def quote(value: object, longest: int = 40) -> str:
    """Quote a value for a message: on one line, printable, and shortened.

    >>> quote("acct-40"), quote(7), quote("C" * 100)
    ("'acct-40'", '7', "'CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC...'")
    """
    if isinstance(value, str):
        return ascii(value[:longest])[:-1] + "...'" if len(value) > longest else repr(value[:longest])
    text = _ADDRESS.sub("", " ".join(repr(value).split()))
    return text[:longest] + "..." if len(text) > longest else text
