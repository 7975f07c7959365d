"""A data set as a notebook shows it: its size, its columns, and what was found."""

from __future__ import annotations

from collections.abc import Sequence

from censnet.data.tables.schema import Schema
from censnet.levels import COLUMN_LEVELS
from censnet.markup import Html, escape, table

MOST = 30  # columns of a table, and notes


def data_html(name: str, graph: object, schema: Schema, notes: Sequence[str]) -> Html:
    """The graph, each column with its type and use, and the notes on how the data were read."""
    parts = [f"<p><strong>{escape(name)}</strong>: {escape(graph)}</p>"]
    for level in COLUMN_LEVELS:
        found = schema.table(level.table)
        used = {column.name for column in schema.features_of(level.table).columns if column.width}
        rows = [[column, role] for role, column in found.keys.items()]
        rows += [[column, "target"] for column in found.targets]
        rows += [
            [column.name, f"{column.kind}, " + ("a feature" if column.name in used else "not used")]
            for column in found.columns
        ]
        if rows:
            more = f" (the first {MOST} of {len(rows):,} columns)" if len(rows) > MOST else ""
            parts.append(table(["column", "type"], rows[:MOST], level.table + more))
    parts += ["<ul>", *(f"<li>{escape(note, 400)}</li>" for note in notes[:MOST]), "</ul>"] if notes else []
    return Html("".join(parts))
