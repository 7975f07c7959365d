"""Rows that cannot be used: kept as rows with a message, or, when the user is strict, an error at the first one."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from censnet.data.tables.columns import is_missing
from censnet.data.tables.files import Tables
from censnet.data.tables.notes import Note
from censnet.errors import DataError, location, quote
from censnet.text import count, plural

logger = logging.getLogger(__name__)

MOST_CAUSES = 3
_VALUE = re.compile(  # in quotes, or a number
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|(?<![\w-])-?(?:[0-9]+(?:\.[0-9]*)?(?:e[+-]?[0-9]+)?|inf)(?![\w-])"""
)
_ASIDE = re.compile(r" \([^()]*\)$")


class RowErrors:
    """What is wrong with which row of which table. The first message of a row stays."""

    def __init__(self, tables: Tables, strict: bool) -> None:
        self.found: dict[str, dict[int, str]] = {}
        self._tables, self._strict = tables, strict

    def name(self, table: str) -> str:
        """The file of a table."""
        return self._tables.name(table)

    def add(self, table: str, column: str, messages: Mapping[int, str]) -> None:
        """Note what was found in a column, by row."""
        file = self._tables.name(table)
        self.add_placed(table, {row: location(file, row, column) + message for row, message in messages.items()})

    def add_placed(self, table: str, messages: Mapping[int, str]) -> None:
        """Note messages that name file, row and column already."""
        if not messages:
            return
        if self._strict:
            raise DataError(messages[min(messages)])
        known = self.found.setdefault(table, {})
        for row, message in messages.items():
            known.setdefault(row, message)

    def add_ids(
        self,
        table: str,
        frame: pd.DataFrame,
        column: str,
        rows: Iterable[int],
        unknown: str,
        alike: Sequence[str | None] | None = None,
    ) -> None:
        """Note ids that are missing, or that are not known; `unknown` may hold `{id}`.

        `alike` has for each row a known id that is written otherwise, if there is one.
        """
        rows = [int(row) for row in rows]
        values = frame[column].iloc[rows].tolist()
        hints = [unknown if other is None else _tell_alike(unknown, other) for other in alike or [None] * len(rows)]
        self.add(
            table,
            column,
            {
                row: "the id is missing" if is_missing(value) else message.replace("{id}", quote(value))
                for row, value, message in zip(rows, values, hints, strict=True)
            },
        )

    def notes(self, tables: Tables) -> list[Note]:
        """A note on each table with bad rows: how many, why, and the first. It is logged as a warning, too."""
        said = list[Note]()
        for table, messages in self.found.items():
            frame = tables.frames().get(table)
            if messages and frame is not None:
                file, rows = tables.name(table), f"{len(messages):,} of {count(len(frame), 'row')}"
                lost = f"{rows} cannot be used and {plural(len(messages), 'gets')} no result"
                said.append(Note("row error", f"{file}: {lost}{summarize_errors(messages, file)}"))
                logger.warning("%s", said[-1])
        return said


def _tell_alike(unknown: str, other: str) -> str:
    """The message on an unknown id, naming what may have been meant instead of how many there are."""
    hint = f"there is {quote(other)}: ids are compared as they are written, so write both alike"
    return f"{_ASIDE.sub('', unknown)} ({hint})"


def summarize_errors(messages: Mapping[int, str], file: str) -> str:
    """The end of a sentence on bad rows: the first of them, behind the most frequent causes if there are several.

    >>> found = {3: "'a lot' is not a finite number", 8: "'?' is not a finite number"}
    >>> rows = {row: location("loans.csv", row, "amount") + message for row, message in found.items()}
    >>> summarize_errors(rows, "loans.csv")
    "; the first: loans.csv, row 4, column amount: 'a lot' is not a finite number"
    >>> summarize_errors({**rows, 9: location("loans.csv", 9, "from") + "the id is missing"}, "loans.csv")
    ": 2 by column amount (is not a finite number), 1 by column from (the id is missing); the first: loans.csv..."
    """
    causes = Counter(_cause(message, location(file, row)[:-2]) for row, message in messages.items())
    most = [f"{count:,} by {cause}" for cause, count in causes.most_common(MOST_CAUSES)]
    others = causes.total() - sum(count for _, count in causes.most_common(MOST_CAUSES))
    most += [f"{others:,} by others"] if others else []
    return (f": {', '.join(most)}" if len(causes) > 1 else "") + f"; the first: {messages[min(messages)]}"


def _cause(message: str, where: str) -> str:
    """What a message says without its row and the values that are there; the first, if a row has several."""
    first = message.removeprefix(where).removeprefix(", ").split(f"; {where}", 1)[0]
    column, colon, what = first.partition(": ")
    what = _VALUE.sub("...", _ASIDE.sub("", what)).removeprefix("... ")
    return f"{column} ({what})" if colon else column
