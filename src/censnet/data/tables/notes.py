"""Notes on how data were read, each of a kind."""

from __future__ import annotations

from typing import Literal, Self

NoteKind = Literal[
    "source",  # where the data came from
    "target",  # the columns that a target stands for
    "id",  # ids that are made, or that differ only in how they are written
    "column",  # columns that are left out or read in some way, and default features
    "edge",  # edges that are there twice
    "molecule",  # SMILES and structure files
    "notation",  # numbers that may mean something else
    "clipped",  # values too far from the training rows
    "unseen",  # categories that no training row had
    "row error",  # rows that cannot be used
    "known",  # rows that a run was trained on
]


class Note(str):
    """A sentence for the user on how data were read. Its `kind` says what it is about, so that nobody parses it.

    >>> note = Note("edge", "edges.csv: each edge is there twice, once in each direction: 10 rows are 5 edges")
    >>> note.kind, note.startswith("edges.csv")
    ('edge', True)
    """

    kind: NoteKind

    def __new__(cls, kind: NoteKind, text: str) -> Self:
        note = super().__new__(cls, text)
        note.kind = kind
        return note

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return self.kind, str(self)
