"""What each column became, with which statistics: fitted on training rows, stored as JSON, applied to later tables."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from torch import Tensor

from censnet.data.tables.columns import DECIMAL_COMMA, USED, as_arrow
from censnet.data.tables.encoding import WHOLE, Column
from censnet.data.tables.keys import LEVELS, ROLES, TABLES
from censnet.data.tables.notations import Notation
from censnet.errors import DataError, place

Structure = Literal["none", "degree", "constant"]
Features = Literal["rich", "paper", "released"]
_MOST_MESSAGES = 3  # on one row
EdgeForm = Literal["once", "twice"]
Standardize = Literal["none", "fragment", "parent", "tautomer"]
_BLOCK = 1 << 16  # rows encoded at a time, so that their features stay in the cache while column after column comes


class TableSchema(BaseModel):
    """The columns of one table: which are keys, which are targets, and what feature each other one became.

    Args:
        keys: role -> column: `id`, `source`, `target`, `graph`, `smiles`.
        targets: the columns that are predicted, never features.
        notations: of numbers in targets, where the user said what commas mean.
        columns: all other columns, those left out included, with the reason.
        structure: what stands in where no column is a feature: the degree and a constant, or a constant.
        degree: the statistics of that degree.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    keys: dict[str, str] = Field(default_factory=dict)
    targets: list[str] = Field(default_factory=list)
    notations: dict[str, Notation] = Field(default_factory=dict)
    columns: list[Column] = Field(default_factory=list)
    structure: Structure = "none"
    degree: Column | None = None

    @classmethod
    def fit(
        cls,
        frame: pd.DataFrame,
        rows: NDArray[np.int64] | None = None,
        keys: Mapping[str, str] | None = None,
        targets: Sequence[str] = (),
        overrides: Mapping[str, str] | None = None,
        shares: bool = False,
        file: str | None = None,
    ) -> TableSchema:
        """Type the columns of a table by all of its rows, and take their statistics from the given ones, or from all.

        With `shares`, vectors of counts are divided by their sum in each row. `file` is named in messages.
        """
        keys, overrides = dict(keys or {}), dict(overrides or {})
        taken = {*keys.values(), *targets}
        values = {name: as_arrow(frame[name]) for name in frame.columns if name not in taken}
        columns = [Column.fit(name, column, overrides.get(name), shares, rows, file) for name, column in values.items()]
        said: dict[str, Notation] = {DECIMAL_COMMA: "comma", "number": "point"}
        notations = {name: said[overrides[name]] for name in targets if overrides.get(name) in said}
        columns = _share_marks(columns, values, rows)
        return cls(keys=keys, targets=list(targets), notations=notations, columns=columns)

    def refit(self, frame: pd.DataFrame, rows: NDArray[np.int64] | None = None) -> TableSchema:
        """The same columns as the same kinds, with statistics from the given rows alone, or from all."""
        values = {column.name: as_arrow(frame[column.name]) for column in self.columns if column.width}
        columns = [column.refit(values[column.name], rows) if column.width else column for column in self.columns]
        return self.model_copy(update={"columns": _share_marks(columns, values, rows)})

    def encode(self, frame: pd.DataFrame, file: str = "the table") -> tuple[Tensor, dict[int, str]]:
        """The features of every row, and for each row with a value that cannot be read, the message.

        The order of the columns does not matter, and columns that are not in the schema are not looked at.
        """
        used = [column for column in self.columns if column.width]
        for column in used:
            if column.name not in frame.columns:
                raise DataError(f"is missing, expected a {column.kind} as in training", file, column=column.name)
        out = np.empty((len(frame), sum(column.width for column in used)), np.float32)
        values = [as_arrow(frame[column.name]) for column in used]
        ends = np.cumsum([0, *(column.width for column in used)])
        bad: dict[int, str] = {}
        counted = Counter[int]()
        for start in range(0, len(frame), _BLOCK):
            rows = slice(start, start + _BLOCK)
            for number, column in enumerate(used):
                part = values[number].slice(start, _BLOCK)
                found = column.encode(part, out[rows, ends[number] : ends[number + 1]])
                for row, message in found.items():
                    counted[start + row] += 1
                    if counted[start + row] <= _MOST_MESSAGES:
                        text = place(file, start + row, column.name) + message
                        bad[start + row] = f"{bad[start + row]}; {text}" if start + row in bad else text
        for row, count in counted.items():
            bad[row] += f"; and {count - _MOST_MESSAGES:,} more columns" if count > _MOST_MESSAGES else ""
        return torch.from_numpy(out), dict(sorted(bad.items()))

    @property
    def width(self) -> int:
        """How many features a row has."""
        return len(self.names)

    @property
    def names(self) -> list[str]:
        """What each feature says, in order."""
        if self.structure == "degree":
            return ["degree", "constant"]
        if self.structure == "constant":
            return ["constant"]
        return [name for column in self.columns for name in column.names]

    @property
    def left_out(self) -> list[Column]:
        """The columns of which no feature was made."""
        return [column for column in self.columns if not column.width]


def _share_marks(
    columns: Sequence[Column], values: Mapping[str, pa.ChunkedArray], rows: NDArray[np.int64] | None
) -> list[Column]:
    """The same columns; of those that are missing in the same rows, the first alone has an indicator that says so.

    So a vector gives the same features as a column for each of its entries. What the user chose shares with its like:
    of the columns of `graphs`, no other is a feature.
    """
    known, found = set[tuple[bool, bytes]](), list[Column]()
    for column in columns:
        patterns = column.missing_patterns(values[column.name], rows) if column.width else {}
        new = {entry: (column.chosen, pattern) not in known for entry, pattern in patterns.items()}
        known |= {(column.chosen, pattern) for pattern in patterns.values()}
        if not all(new.values()):
            kept = [entry for entry in column.marked if new[entry]]
            column = column.model_copy(update={"marked": kept, "missing": column.missing and new[WHOLE]})
        found.append(column)
    return found


def chosen_columns(graphs: TableSchema, decided: Mapping[str, str]) -> list[str]:
    """The columns of `graphs` that are features: those alone that the user gave a kind of feature.

    Beside a molecule stand its other measurements as often as what is known of it, so nothing is taken by itself.
    """
    return [column.name for column in graphs.columns if decided.get(column.name) in (*USED, DECIMAL_COMMA)]


def find_roles(overrides: Mapping[str, str] | None, schema: Schema | None) -> dict[str, str]:
    """Column -> its role, where the user or a schema says so: such columns are read as they are written.

    >>> find_roles({"payer.no": "source", "edges.payee": "target", "amount": "number"}, None)
    {'payer.no': 'source', 'edges.payee': 'target', 'payee': 'target'}
    """
    found: dict[str, str] = {}
    for fitted in () if schema is None else (schema.nodes, schema.edges, schema.graphs):
        found |= {column: role for role, column in fitted.keys.items()}
    for column, role in (overrides or {}).items():
        if role in ROLES:
            found[column] = role
            table, _, rest = column.partition(".")
            if LEVELS.get(table, table) in TABLES and rest:
                found[rest] = role
    return found


class MoleculeReading(BaseModel):
    """How a text becomes a molecule.

    Args:
        standardize: what rdkit's MolStandardize does to it; see `Standardizer`.
        dummies: whether dummy atoms (``*``) are atoms of no known element, as in polymers, or make a row a bad one.
        isotopes: whether isotope labels are kept. Then a labelled hydrogen is an atom of the graph; without them it is
            counted at its heavy atom like any other. The built-in sets keep them, as in the published results.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    standardize: Standardize = "none"
    dummies: bool = False
    isotopes: bool = True


class Schema(BaseModel):
    """How a data set is read: one `TableSchema` for each table, and what features are made of them.

    Args:
        version: of this form.
        many: whether there are many graphs.
        edge_form: whether each edge is there once, or twice, once in each direction with the same features.
        nodes, edges, graphs: the columns of each table.
        smiles: the column of SMILES, if graphs are molecules.
        features: the set of features.
        vocabulary: of the `paper` features of molecules.
        reading: how SMILES become molecules.
        chosen: the columns of `graphs` that are features of each graph.
        descriptors: the descriptors of molecules that are, each as a column.

    Example:
        >>> edges = pd.DataFrame({"source": [1, 2, 3], "target": [2, 3, 1], "amount": [5.0, None, 7.0]})
        >>> fitted = TableSchema.fit(edges, keys={"source": "source", "target": "target"})
        >>> schema = Schema.from_json(Schema(edges=fitted).to_json())
        >>> schema.edges.encode(pd.DataFrame({"note": ["x", "y"], "amount": [6, None]}))[0].tolist()
        [[0.0, 0.0], [0.0, 1.0]]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[2] = 2
    many: bool = False
    edge_form: EdgeForm = "once"
    nodes: TableSchema = Field(default_factory=TableSchema)
    edges: TableSchema = Field(default_factory=TableSchema)
    graphs: TableSchema = Field(default_factory=TableSchema)
    smiles: str | None = None
    features: Features = "rich"
    vocabulary: list[str] = Field(default_factory=list)
    reading: MoleculeReading = MoleculeReading()
    chosen: list[str] = Field(default_factory=list)
    descriptors: TableSchema = Field(default_factory=TableSchema)

    @property
    def of_graphs(self) -> TableSchema:
        """The columns of `graphs` that are features."""
        columns = [column for column in self.graphs.columns if column.name in self.chosen]
        return self.graphs.model_copy(update={"columns": columns})

    @property
    def id_columns(self) -> set[str]:
        """The columns of any table that say which row it is: keys, and those that were taken for ids."""
        tables = (self.nodes, self.edges, self.graphs)
        keys = {column for fitted in tables for column in fitted.keys.values()}
        return keys | {column.name for fitted in tables for column in fitted.columns if column.kind == "id"}

    @property
    def targets(self) -> dict[str, list[str]]:
        """Table -> the columns that are predicted."""
        return {table: self.table(table).targets for table in ("nodes", "edges", "graphs")}

    def table(self, name: str) -> TableSchema:
        """The schema of `nodes`, `edges` or `graphs`."""
        found: TableSchema = getattr(self, name)
        return found

    def to_json(self) -> str:
        """The schema as JSON, which `from_json` reads back equal."""
        content = {"version": self.version, **self.model_dump(mode="json", exclude_defaults=True)}
        return json.dumps(content, indent=1, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str | bytes, file: str = "schema.json") -> Schema:
        """Read what `to_json` wrote."""
        try:
            schema = cls.model_validate_json(text)
            if "version" not in schema.model_fields_set:
                raise DataError("is of an earlier version, which does not say how edges are stored: train again", file)
            return schema
        except ValidationError as error:
            first: Any = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise DataError(f"is not a schema: {where + ': ' if where else ''}{first['msg']}", file) from None
