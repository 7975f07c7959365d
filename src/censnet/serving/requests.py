"""What a request may say, field by field; a field that does not exist is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema
from pydantic.config import JsonDict

from censnet.errors import quote
from censnet.serving.limits import TOO_LARGE, WRONG, Limits, RefusedError
from censnet.serving.row_tables import Rows

ROW_EXAMPLE = '{"source": "a", "target": "b", "amount": 5}'


def _check_rows(value: object) -> Rows:
    """Rows are a list of objects, or a text of CSV."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise ValueError(f"expected a list of rows such as {ROW_EXAMPLE}, or CSV as one text")
    for number, row in enumerate(value):
        if not isinstance(row, dict):
            raise ValueError(f"row {number + 1} is {quote(row)}, expected an object of columns such as {ROW_EXAMPLE}")
    return value


def _table(what: str) -> Any:
    rows: JsonDict = {"type": "array", "items": {"type": "object", "additionalProperties": True}}
    return Field(None, description=what, json_schema_extra={"anyOf": [rows, {"type": "string"}]})


Table = Annotated[Any, PlainValidator(_check_rows), WithJsonSchema({})]
Id = Annotated[str, Field(max_length=1000)] | int


class Data(BaseModel):
    """Rows of tables, or SMILES, for one of the runs."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    run: str | None = Field(None, description="The name of the run; not needed where there is one.")
    smiles: list[str] | None = Field(None, description="Molecules, where the run reads SMILES.", min_length=1)
    nodes: Table = _table("Rows of nodes as objects of columns, or CSV as text.")
    edges: Table = _table("Rows of edges, likewise.")
    graphs: Table = _table("Rows of graphs, likewise: of molecules with their SMILES and other columns.")
    known_labels: bool = Field(
        True, description="Where the run reads known labels: whether those in the rows help to predict other rows."
    )

    @property
    def tables(self) -> dict[str, Rows]:
        """Table -> its rows, of those that are given."""
        every = {"nodes": self.nodes, "edges": self.edges, "graphs": self.graphs}
        return {name: rows for name, rows in every.items() if rows is not None}

    def check(self, limits: Limits) -> int:
        """Raise for a request beyond the limits, or without data. -> its number of rows"""
        given = self.tables
        if (self.smiles is None) == (not given):
            raise RefusedError(
                WRONG, "smiles and tables are both given, or neither: send smiles, or the tables that the run reads"
            )
        pairs = getattr(self, "pairs", None) or ()
        rows = len(self.smiles or ()) + sum(map(count_rows, given.values())) + len(pairs)
        if rows > limits.rows:
            raise RefusedError(
                TOO_LARGE, f"the request has {rows:,} rows, expected at most {limits.rows:,}: send fewer"
            )
        check_smiles(self.smiles or (), limits)
        return rows


class Pair(BaseModel):
    """Two nodes, by their ids."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    source: Id
    target: Id


class PredictRequest(Data):
    """Predictions for each row, as `censnet predict` gives them."""

    level: Literal["node", "edge", "graph", "link", "atom", "bond"] | None = Field(
        None, description="The level to predict, where the run has several; all of them if not given."
    )
    coverage: float | None = Field(
        None, gt=0, lt=1, description="Also give intervals of numbers, or sets of classes, that hold so many labels."
    )
    keep: Literal["ids", "all"] = Field("ids", description="The columns of the rows to repeat.")
    strict: bool = Field(False, description="Refuse all where a row cannot be used, rather than give it an error.")
    pairs: list[Pair] | None = Field(None, description="Of links: the pairs of nodes to score.", min_length=1)
    top: int | None = Field(None, ge=1, description="Of links: the most probable missing ones, so many.")

    def check(self, limits: Limits) -> int:
        if self.top is not None and self.top > limits.rows:
            raise RefusedError(TOO_LARGE, f"top is {self.top:,}, expected at most {limits.rows:,}")
        return super().check(limits)

    @property
    def companions(self) -> tuple[object, ...] | None:
        """Requests of equal values can be computed together; None for those that are computed alone."""
        if self.smiles is None or self.strict or self.pairs or self.top:
            return None
        return self.run, self.level, self.coverage, self.keep, self.known_labels


class ExplainRequest(Data):
    """Why rows have their answers, as `censnet explain` gives it."""

    rows: list[Id] | None = Field(
        None,
        description="Ids of rows; of several columns joined by a comma. A number is that row, from 1.",
        min_length=1,
    )
    top: int | None = Field(None, ge=1, description="Without rows: so many, of the highest score or loss.")
    by: Literal["score", "loss"] = Field("score", description="The order of top.")
    target: str | None = Field(None, description="The column, where the run predicts several.")
    level: Literal["node", "edge", "graph", "link", "atom", "bond"] | None = Field(None, description="Its level.")
    parts: int = Field(20, ge=1, le=200, description="The largest parts of each kind that are given.")
    drawing: bool = Field(True, description="Whether to draw the row, as SVG.")

    def check(self, limits: Limits) -> int:
        asked = self.top or len(self.rows or ())
        if asked > limits.explained:
            raise RefusedError(TOO_LARGE, f"{asked:,} rows are to be explained, expected at most {limits.explained}")
        return super().check(limits)


def count_rows(rows: Rows) -> int:
    """The number of rows; of CSV the lines below the first, of which a field in quotes may have several."""
    if isinstance(rows, str):
        return max(len(rows.splitlines()) - 1, 0) if '"' not in rows else 0
    return len(rows)


def check_smiles(smiles: Sequence[object], limits: Limits) -> None:
    """Raise for more atoms than a request may have, before any is read."""
    letters = sum(len(text) for text in smiles if isinstance(text, str))
    if letters > limits.smiles:
        raise RefusedError(
            TOO_LARGE,
            f"the SMILES have {letters:,} characters together, expected at most {limits.smiles:,}: send fewer",
        )


def describe_invalid(errors: Sequence[Mapping[str, Any]]) -> str:
    """What pydantic found, in one line: the first mistake, and how many more there are.

    >>> describe_invalid([{"type": "extra_forbidden", "loc": ("body", "smile"), "msg": "", "input": 1}])
    'smile is no field: /docs lists what a request may have'
    """
    first = errors[0]
    place = [step for step in first["loc"] if step != "body"]
    where = "".join(f"[{step}]" if isinstance(step, int) else f".{quote(step)[1:-1]}" for step in place).lstrip(".")
    more = f" (and {len(errors) - 1:,} more mistakes)" if len(errors) > 1 else ""
    if first["type"] == "extra_forbidden":
        return f"{where} is no field: /docs lists what a request may have{more}"
    said = first["msg"].removeprefix("Value error, ").replace("Input should be ", "expected ")
    said = said[:1].lower() + said[1:].replace("valid dictionary or object to extract fields from", "JSON object")
    if first["type"] == "missing":
        return f"{where or 'the body'} is missing: /docs lists what a request has{more}"
    found = f"is {quote(first.get('input'))}, " if first["type"] != "value_error" else ""
    return f"{where or 'the body'}{' ' if found else ': '}{found}{said}{more}"
