"""Rows that cannot be used: kept as rows with a message, or, when the user is strict, an error at the first one."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from censnet.data.tables.columns import is_missing
from censnet.data.tables.files import Tables
from censnet.data.tables.notes import Note, RowError
from censnet.errors import DataError, location, quote
from censnet.text import count, plural

logger = logging.getLogger(__name__)

MAX_CAUSES = 3


class RowErrors:
    """Errors by table and row. The first error of a row stays."""

    def __init__(self, tables: Tables, strict: bool) -> None:
        self.found: dict[str, dict[int, RowError]] = {}
        self._tables, self._strict = tables, strict
        self.num_rows: dict[str, int] = {}  # of the user's tables, where those in memory have others

    def name(self, table: str) -> str:
        """The file of a table."""
        return self._tables.name(table)

    def add(self, table: str, column: str, messages: Mapping[int, RowError]) -> None:
        """Note errors in a column, by row."""
        file = self._tables.name(table)
        self.add_located(table, {row: locate(error, file, row, column) for row, error in messages.items()})

    def add_located(self, table: str, messages: Mapping[int, RowError]) -> None:
        """Note errors that name file, row and column already."""
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
        known: str = "",
    ) -> None:
        """Note ids that are missing, or that are not known.

        Args:
            table, frame, column, rows: where they are.
            unknown: the message on an id that is not known, with `{id}` for it.
            alike: for each row a known id that is written otherwise, if there is one.
            known: an aside on the ids that are known, where none is alike.
        """
        rows = [int(row) for row in rows]
        missing, cause = RowError("the id is missing", "the id is missing"), unknown.replace("{id}", "...")
        errors = {}
        for row, value, other in zip(rows, frame[column].iloc[rows].tolist(), alike or [None] * len(rows), strict=True):
            aside = known
            if other is not None:
                aside = f"there is {quote(other)}: ids are compared as they are written, so write both alike"
            text = unknown.replace("{id}", quote(value)) + (f" ({aside})" if aside else "")
            errors[row] = missing if is_missing(value) else RowError(cause, text)
        self.add(table, column, errors)

    def notes(self, tables: Tables) -> list[Note]:
        """A note on each table with bad rows: how many, why, and the first. It is logged as a warning, too."""
        said = list[Note]()
        of_graphs = set(self.found.get("graphs", {}).values())
        for table, every in self.found.items():
            # a molecule that cannot be read is said once, and not of its atoms and bonds again
            messages = {row: text for row, text in every.items() if table == "graphs" or text not in of_graphs}
            frame = tables.frames().get(table)
            if messages and frame is not None:
                file, rows = (
                    tables.name(table),
                    f"{len(messages):,} of {count(self.num_rows.get(table, len(frame)), 'row')}",
                )
                lost = f"{rows} cannot be used and {plural(len(messages), 'gets')} no result"
                said.append(Note("row error", f"{file}: {lost}{summarize_errors(messages)}"))
                logger.warning("%s", said[-1])
        return said


def locate(error: RowError, file: str, row: int, column: str) -> RowError:
    """The error with its location; its cause is then of that column."""
    return RowError(f"column {column} ({error.cause})", location(file, row, column) + error)


def summarize_errors(errors: Mapping[int, RowError]) -> str:
    """The end of a sentence on bad rows: the first of them, behind the most frequent causes if there are several.

    >>> found = {3: "'a lot' is not a finite number", 8: "'?' is not a finite number"}
    >>> number = {row: RowError("is not a finite number", text) for row, text in found.items()}
    >>> rows = {row: locate(error, "loans.csv", row, "amount") for row, error in number.items()}
    >>> summarize_errors(rows)
    "; the first: loans.csv, row 4, column amount: 'a lot' is not a finite number"
    >>> missing = RowError("the id is missing", "the id is missing")
    >>> summarize_errors({**rows, 9: locate(missing, "loans.csv", 9, "from")})
    ": 2 by column amount (is not a finite number), 1 by column from (the id is missing); the first: loans.csv..."
    """
    causes = Counter(error.cause for error in errors.values())
    most = [f"{number:,} by {cause}" for cause, number in causes.most_common(MAX_CAUSES)]
    others = causes.total() - sum(number for _, number in causes.most_common(MAX_CAUSES))
    most += [f"{others:,} by others"] if others else []
    return (f": {', '.join(most)}" if len(causes) > 1 else "") + f"; the first: {errors[min(errors)]}"
