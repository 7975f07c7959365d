"""Rows that cannot be used: kept as rows with a message, or, when the user is strict, an error at the first one."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

import pandas as pd

from censnet.data.errors import DataError, place, quote
from censnet.data.tables.columns import is_missing
from censnet.data.tables.files import Tables

logger = logging.getLogger("censnet")


class Problems:
    """What is wrong with which row of which table. The first message of a row stays."""

    def __init__(self, tables: Tables, strict: bool) -> None:
        self.found: dict[str, dict[int, str]] = {}
        self._tables, self._strict = tables, strict

    def add(self, table: str, column: str, messages: Mapping[int, str]) -> None:
        """Note what was found in a column, by row."""
        file = self._tables.name(table)
        self.add_placed(table, {row: place(file, row, column) + message for row, message in messages.items()})

    def add_placed(self, table: str, messages: Mapping[int, str]) -> None:
        """Note messages that name file, row and column already."""
        if not messages:
            return
        if self._strict:
            raise DataError(messages[min(messages)])
        known = self.found.setdefault(table, {})
        for row, message in messages.items():
            known.setdefault(row, message)

    def add_ids(self, table: str, frame: pd.DataFrame, column: str, rows: Iterable[int], unknown: str) -> None:
        """Note ids that are missing, or that are not known; `unknown` may hold `{id}`."""
        rows = [int(row) for row in rows]
        values = frame[column].iloc[rows].tolist()
        self.add(
            table,
            column,
            {
                row: "the id is missing" if is_missing(value) else unknown.replace("{id}", quote(value))
                for row, value in zip(rows, values, strict=True)
            },
        )

    def notes(self, tables: Tables) -> list[str]:
        """One sentence for each table with bad rows: how many, and the first. It is logged as a warning too."""
        said = []
        for table, messages in self.found.items():
            frame = tables.frames().get(table)
            if messages and frame is not None:
                count = f"{len(messages):,} of {len(frame):,} rows"
                first = messages[min(messages)]
                said.append(f"{tables.name(table)}: {count} cannot be used and get no result; the first: {first}")
                logger.warning(said[-1])
        return said
