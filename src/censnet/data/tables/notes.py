"""Notes on how data were read, each of a kind, and errors of rows, each of a cause."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic_core import CoreSchema, core_schema

NoteKind = Literal[
    "source",  # where the data came from
    "target",  # the columns that a target stands for
    "id",  # ids that are made, or that differ only in how they are written
    "column",  # columns that are left out, and default features
    "values",  # how the values of columns are read and scaled
    "edge",  # edges that are there twice
    "molecule",  # SMILES and structure files
    "notation",  # numbers that may mean something else
    "clipped",  # values too far from the training rows
    "unseen",  # categories that no training row had
    "row error",  # rows that cannot be used
    "training",  # why none would begin
    "direction",  # of edges, and where it comes from
    "oriented",  # numbers of edges whose sign seems to follow the order of the ends
    "time",  # of edges, and how it is read
    "size",  # graphs larger than those of the training
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

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> CoreSchema:
        """In a pydantic model a note is itself, in JSON its text alone."""
        read = core_schema.no_info_after_validator_function(lambda text: cls("source", text), core_schema.str_schema())
        itself = core_schema.is_instance_schema(cls)
        return core_schema.union_schema([itself, read], serialization=core_schema.to_string_ser_schema())

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return self.kind, str(self)


class RowError(str):
    """The reason why a row cannot be used. Its `cause` is the same for all rows with the same mistake.

    >>> error = RowError("is not a finite number", "'a lot' is not a finite number")
    >>> error.cause
    'is not a finite number'
    """

    cause: str

    def __new__(cls, cause: str, text: str) -> Self:
        error = super().__new__(cls, text)
        error.cause = cause
        return error

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return self.cause, str(self)
