"""The schema of tables: the kind and statistics of each column, fitted on training rows, stored as JSON."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)
from torch import Tensor

from censnet.data.tables.columns import DECIMAL_COMMA, USED, as_arrow
from censnet.data.tables.encoding import Column
from censnet.data.tables.fitting import WHOLE_COLUMN, TypedColumn, type_column
from censnet.data.tables.keys import TABLES
from censnet.data.tables.notations import Notation
from censnet.data.tables.notes import RowError
from censnet.data.tables.row_errors import locate
from censnet.errors import DataError
from censnet.levels import COLUMN_LEVELS, Level
from censnet.ops.arrays import IntArray

Structure = Literal["none", "degree", "constant"]
Features = Literal["rich", "paper", "released"]
_MAX_MESSAGES = 3  # on one row
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

    @property
    def width(self) -> int:
        """The number of features of a row."""
        return len(self.names)

    @property
    def names(self) -> list[str]:
        """The name of each feature, in order."""
        if self.structure == "degree":
            return ["degree", "constant"]
        if self.structure == "constant":
            return ["constant"]
        names = [name for column in self.columns for name in column.names]
        return [names[place] for place in self.feature_order]

    @property
    def odd_width(self) -> int:
        """The number of features, the last ones, that change sign where the ends of an edge are exchanged."""
        return sum(sum(column.is_odd) for column in self.columns)

    @property
    def feature_order(self) -> list[int]:
        """Of the features column by column, those in the order that they have: even ones first, then odd ones."""
        odd = [is_odd for column in self.columns for is_odd in column.is_odd]
        return sorted(range(len(odd)), key=odd.__getitem__)

    @property
    def feature_columns(self) -> list[Column]:
        """The column of each feature, in order."""
        columns = [column for column in self.columns for _ in range(column.width)]
        return [columns[place] for place in self.feature_order]

    @property
    def left_out(self) -> list[Column]:
        """The columns of which no feature was made."""
        return [column for column in self.columns if not column.width]


@dataclass(frozen=True, eq=False)
class TypedTable:
    """A table whose columns have kinds, and whose values are read: what can be said before the split is known.

    Args:
        schema: keys, targets and columns; statistics are there only if they were given.
        columns: the columns that are features, with their values.
        num_rows: the number of rows.
        file: the name of the table, for messages.

    Example:
        >>> table = pd.DataFrame({"id": ["a", "b", "c", "d"], "age": [20, 40, 30, 90], "fee": [5.0, 7.0, 5.0, 5.5]})
        >>> typed = TypedTable.find(table, keys={"id": "id"})
        >>> fitted = typed.fit(np.array([0, 1]))
        >>> typed.encode(fitted).tolist()
        [[-1.0, -1.0], [1.0, 1.0], [0.0, -1.0], [6.0, -0.5]]
    """

    schema: TableSchema
    columns: list[TypedColumn]
    num_rows: int
    file: str = "the table"

    @classmethod
    def find(
        cls,
        frame: pd.DataFrame,
        keys: Mapping[str, str] | None = None,
        targets: Sequence[str] = (),
        overrides: Mapping[str, str] | None = None,
        row_normalized: bool = False,
        file: str = "the table",
    ) -> TypedTable:
        """Type the columns of a table by all of its rows, and read them.

        Args:
            frame: the table.
            keys: role -> column.
            targets: the columns to predict.
            overrides: column -> kind, as the user says.
            row_normalized: whether vectors of counts are divided by their sum in each row.
            file: named in messages.
        """
        keys, overrides = dict(keys or {}), dict(overrides or {})
        taken = {*keys.values(), *targets}
        columns = [
            type_column(name, as_arrow(frame[name]), overrides.get(name), row_normalized, file)
            for name in frame.columns
            if name not in taken
        ]
        said: dict[str, Notation] = {DECIMAL_COMMA: "comma", "number": "point"}
        notations = {name: said[overrides[name]] for name in targets if overrides.get(name) in said}
        every = [typed.column for typed in columns]
        schema = TableSchema(keys=keys, targets=list(targets), notations=notations, columns=every)
        return cls(schema, [typed for typed in columns if typed.column.width], len(frame), file)

    @classmethod
    def read(cls, schema: TableSchema, frame: pd.DataFrame, file: str = "the table") -> TypedTable:
        """Read a later table as a fitted schema has it.

        The order of the columns does not matter, and columns that are not in the schema are not looked at.
        """
        columns = []
        for column in schema.columns:
            if not column.width:
                continue
            if column.name not in frame.columns:
                raise DataError(f"is missing, expected a {column.kind} as in training", file, column=column.name)
            values = as_arrow(frame[column.name])
            columns.append(TypedColumn(column, values, None if column.kind == "category" else column.parse(values)))
        return cls(schema, columns, len(frame), file)

    @property
    def errors(self) -> dict[int, RowError]:
        """Row -> the values in it that cannot be read, of the first few columns."""
        messages: dict[int, list[RowError]] = {}
        for typed in self.columns:
            for row, message in typed.errors.items():
                messages.setdefault(row, []).append(locate(message, self.file, row, typed.column.name))
        return {row: _join_messages(messages[row]) for row in sorted(messages)}

    def select(self, names: Collection[str]) -> TypedTable:
        """The table with these features alone."""
        columns = [typed for typed in self.columns if typed.column.name in names]
        schema = self.schema.model_copy(update={"columns": [c for c in self.schema.columns if c.name in names]})
        return replace(self, schema=schema, columns=columns)

    def fit(self, rows: IntArray | None = None, only: bool = False) -> TableSchema:
        """The schema with the statistics of some rows, or of all; see `TypedColumn.fit`."""
        fitted = _share_indicators([(typed, typed.fit(rows, only)) for typed in self.columns], rows)
        columns = [fitted.get(column.name, column) for column in self.schema.columns]
        return self.schema.model_copy(update={"columns": columns})

    def encode(self, fitted: TableSchema) -> Tensor:
        """The features of every row, scaled as the fitted schema says."""
        columns = {column.name: column for column in fitted.columns}
        used = [columns[typed.column.name] for typed in self.columns]
        ends = np.cumsum([0, *(column.width for column in used)])
        out = np.empty((self.num_rows, ends[-1]), np.float32)
        for start in range(0, self.num_rows, _BLOCK):
            for number, (column, typed) in enumerate(zip(used, self.columns, strict=True)):
                parsed = None if typed.parsed is None else typed.parsed.slice(start, _BLOCK)
                block = out[start : start + _BLOCK, ends[number] : ends[number + 1]]
                column.encode(typed.values.slice(start, _BLOCK), block, parsed)
        return torch.from_numpy(out if not fitted.odd_width else out[:, fitted.feature_order])


def _join_messages(messages: Sequence[RowError]) -> RowError:
    more = len(messages) - _MAX_MESSAGES
    text = "; ".join(messages[:_MAX_MESSAGES]) + (f"; and {more:,} more columns" if more > 0 else "")
    return RowError(messages[0].cause, text)


def _share_indicators(columns: Sequence[tuple[TypedColumn, Column]], rows: IntArray | None) -> dict[str, Column]:
    """The fitted columns by name; of those that are missing in the same rows, the first alone has an indicator.

    So a vector gives the same features as a column for each of its entries. What the user chose shares with its like:
    of the columns of `graphs`, no other is a feature.
    """
    known, found = set[tuple[bool, bytes]](), dict[str, Column]()
    for typed, column in columns:
        patterns = typed.missing_patterns(column, rows)
        new = {entry: (column.chosen, pattern) not in known for entry, pattern in patterns.items()}
        known |= {(column.chosen, pattern) for pattern in patterns.values()}
        if not all(new.values()):
            marked = [entry for entry in column.marked if new[entry]]
            missing = column.missing and new[WHOLE_COLUMN]
            column = column.model_copy(update={"marked": marked, "missing": missing})
        found[column.name] = column
    return found


def find_graph_columns(graphs: TableSchema, decided: Mapping[str, str]) -> list[str]:
    """The columns of `graphs` that are features: those alone that the user gave a kind of feature.

    Beside a molecule stand its other measurements as often as what is known of it, so nothing is taken by itself.
    """
    return [column.name for column in graphs.columns if decided.get(column.name) in (*USED, DECIMAL_COMMA)]


class MoleculeReading(BaseModel):
    """Options of reading a text as a molecule.

    Args:
        standardize: what rdkit's MolStandardize does to it; see `Standardizer`.
        dummies: whether dummy atoms (``*``) are atoms of no known element, as in polymers, or make a row a bad one.
        isotopes: whether isotope labels are kept. Then a labeled hydrogen is an atom of the graph; without them it is
            counted at its heavy atom like any other. The built-in sets keep them, as in the published results.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    standardize: Standardize = "none"
    dummies: bool = False
    isotopes: bool = True


class Schema(BaseModel):
    """The way a data set is read: one `TableSchema` for each table, and the features made of them.

    Args:
        version: of this form.
        many: whether there are many graphs.
        edge_form: whether each edge is there once, or twice, once in each direction with the same features.
        directed: whether edges go from their source to their target, rather than joining the two.
        tables: the columns of the table of each level. In JSON each stands by the name of its table, beside the others.
        smiles: the column of SMILES, if graphs are molecules.
        features: the set of features.
        vocabulary: of the `paper` features of molecules.
        reading: how SMILES become molecules.
        graph_columns: the columns of `graphs` that are features of each graph.
        descriptors: the descriptors of molecules that are, each as a column.

    Example:
        >>> edges = pd.DataFrame({"source": [1, 2, 3], "target": [2, 3, 1], "amount": [5.0, None, 7.0]})
        >>> fitted = TypedTable.find(edges, keys={"source": "source", "target": "target"}).fit()
        >>> schema = Schema.from_json(Schema(tables={Level.EDGE: fitted}).to_json())
        >>> later = TypedTable.read(schema.edges, pd.DataFrame({"note": ["x", "y"], "amount": [6, None]}))
        >>> later.encode(schema.edges).tolist()
        [[0.0, 0.0], [0.0, 1.0]]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[2] = 2
    many: bool = False
    edge_form: EdgeForm = "once"
    directed: bool = False
    tables: dict[Level, TableSchema] = Field(default_factory=dict)
    smiles: str | None = None
    features: Features = "rich"
    vocabulary: list[str] = Field(default_factory=list)
    reading: MoleculeReading = MoleculeReading()
    graph_columns: list[str] = Field(default_factory=list)
    descriptors: TableSchema = Field(default_factory=TableSchema)

    @model_validator(mode="before")
    @classmethod
    def _by_level(cls, content: Any) -> Any:
        """Tables that are given by name, as in JSON, and an empty one for each level that is absent."""
        if not isinstance(content, Mapping):
            return content
        named = {level: content[level.table] for level in COLUMN_LEVELS if level.table in content}
        rest = {name: value for name, value in content.items() if name not in TABLES}
        empty = {level: TableSchema() for level in COLUMN_LEVELS}
        return rest | {"tables": empty | dict(content.get("tables", {})) | named}

    @model_serializer(mode="wrap")
    def _by_name(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Each table by its name, where the field `tables` stands; one without content is left out."""
        found = dict[str, Any]()
        for name, value in write(self).items():
            by_level = value if name == "tables" else {}
            found |= {Level(level).table: fitted for level, fitted in by_level.items() if fitted}
            found |= {} if name == "tables" else {name: value}
        return found

    @property
    def nodes(self) -> TableSchema:
        """The columns of the table of nodes."""
        return self.tables[Level.NODE]

    @property
    def edges(self) -> TableSchema:
        """The columns of the table of edges."""
        return self.tables[Level.EDGE]

    @property
    def graphs(self) -> TableSchema:
        """The columns of the table of graphs."""
        return self.tables[Level.GRAPH]

    @property
    def of_graphs(self) -> TableSchema:
        """The columns of `graphs` that are features."""
        return self.features_of("graphs")

    @property
    def id_columns(self) -> set[str]:
        """The columns of any table that say which row it is: keys, and those that were taken for ids."""
        tables = self.tables.values()
        keys = {column for fitted in tables for column in fitted.keys.values()}
        return keys | {column.name for fitted in tables for column in fitted.columns if column.kind == "id"}

    @property
    def targets(self) -> dict[str, list[str]]:
        """Table -> the columns that are predicted."""
        return {level.table: fitted.targets for level, fitted in self.tables.items()}

    def table(self, name: str) -> TableSchema:
        """The schema of a table: of `nodes`, `edges` or `graphs`."""
        return self.tables[Level.of_table(name)]

    def features_of(self, table: str) -> TableSchema:
        """The schema of a table without the columns that cannot be features: of graphs, those that nobody chose."""
        fitted = self.table(table)
        if Level.of_table(table).takes_columns:
            return fitted
        columns = [column for column in fitted.columns if column.name in self.graph_columns]
        return fitted.model_copy(update={"columns": columns})

    def with_tables(self, tables: Mapping[str, TableSchema]) -> Schema:
        """The same with other tables, by name."""
        by_level = {Level.of_table(name): fitted for name, fitted in tables.items()}
        return self.model_copy(update={"tables": self.tables | by_level})

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
            place = first["loc"]
            if place[:1] == ("tables",):
                place = (*(Level(level).table for level in place[1:2]), *place[2:])
            where = ".".join(map(str, place))
            raise DataError(f"is not a schema: {where + ': ' if where else ''}{first['msg']}", file) from None
