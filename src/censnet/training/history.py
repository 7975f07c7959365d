"""history.csv: a row for each epoch and member, on the disk as soon as the epoch is over."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from censnet.errors import WriteError
from censnet.files import atomic_write

Row = dict[str, float]  # one epoch of one member


def history_columns(monitor: str | None) -> list[str]:
    """The columns of a history; `monitor` is the metric that decides, or None where nothing is validated.

    >>> history_columns("auc")
    ['member', 'epoch', 'loss', 'learning_rate', 'validation_loss', 'validation_auc']
    """
    judged = [] if monitor is None else ["validation_loss", f"validation_{monitor}"]
    return list(dict.fromkeys(["member", "epoch", "loss", "learning_rate", *judged]))


def history_table(rows: Sequence[Row], monitor: str) -> pd.DataFrame:
    """The rows as a frame, with the columns that they have."""
    there = {name for row in rows for name in row}
    return pd.DataFrame(rows, columns=[name for name in history_columns(monitor) if name in there])


def history_csv(frame: pd.DataFrame) -> bytes:
    """The history of what was kept, in the form of `HistoryFile`."""
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return _lines([list(frame.columns), *([row[name] for name in frame.columns] for row in rows)])


class HistoryFile:
    """The file, which grows by the rows of each epoch. Each number is written so that it is read back the same.

    Args:
        path: the file.
        several: whether more than one network is trained; each then has its number in the column `member`.
    """

    def __init__(self, path: Path, several: bool = False) -> None:
        self.path, self.several = path, several
        self.first = self.after = 0  # the numbers of the networks that are trained now
        self.names: list[str] = []

    def begin(self, rows: Sequence[Row], names: Sequence[str], members: int) -> None:
        """The next network, or several side by side, with the epochs that are known from a checkpoint."""
        self.names = [name for name in names if name != "member" or self.several]
        before = self.path.read_bytes() if self.after else _lines([self.names])
        self.first, self.after = self.after, self.after + members
        atomic_write(self.path, before + self._text(rows))

    def add(self, rows: Sequence[Row]) -> None:
        """An epoch is over."""
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
