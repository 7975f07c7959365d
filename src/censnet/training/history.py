"""history.csv: a row for each epoch and member, written as soon as the epoch is over."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from censnet.errors import WriteError
from censnet.files import atomic_write

Row = dict[str, float]  # one epoch of one member


def history_columns(monitor: str | None) -> list[str]:
    """The columns of a history; `monitor` is the validation metric, or None where nothing is validated.

    >>> history_columns("auc")
    ['member', 'epoch', 'loss', 'learning_rate', 'validation_loss', 'validation_auc']
    """
    validation = [] if monitor is None else ["validation_loss", f"validation_{monitor}"]
    return list(dict.fromkeys(["member", "epoch", "loss", "learning_rate", *validation]))


def history_table(rows: Sequence[Row], monitor: str) -> pd.DataFrame:
    """The rows as a data frame, with the columns that they have."""
    there = {name for row in rows for name in row}
    return pd.DataFrame(rows, columns=[name for name in history_columns(monitor) if name in there])


def history_csv(frame: pd.DataFrame) -> bytes:
    """A history as bytes, in the form of `HistoryFile`."""
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return _lines([list(frame.columns), *([row[name] for name in frame.columns] for row in rows)])


class HistoryFile:
    """The file of a history, which grows by the rows of each epoch. Numbers are written without loss.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.numbered = False  # whether several models are trained, whose numbers are in the column `member`
        self.first = self.after = 0  # numbers of the models that are trained now
        self.names: list[str] = []

    def begin(self, rows: Sequence[Row], names: Sequence[str], members: int) -> None:
        """Begin the next model, or a batched one, with the rows of the epochs that a checkpoint has."""
        self.names = [name for name in names if name != "member" or self.numbered]
        before = self.path.read_bytes() if self.after else _lines([self.names])
        self.first, self.after = self.after, self.after + members
        atomic_write(self.path, before + self._text(rows))

    def add(self, rows: Sequence[Row]) -> None:
        """Append the rows of an epoch."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        try:
            with os.fdopen(os.open(self.path, flags, 0o644), "ab") as file:
                file.write(self._text(rows))
        except OSError as error:
            raise WriteError(self.path, error) from None

    def _text(self, rows: Sequence[Row]) -> bytes:
        numbered = [{**row, "member": self.first + int(row.get("member", 0))} for row in rows]
        return _lines([[row.get(name) for name in self.names] for row in numbered])


def _lines(rows: Iterable[Sequence[object]]) -> bytes:
    return "".join(",".join("" if value is None else str(value) for value in row) + "\n" for row in rows).encode()
