"""The schema of tables: the kind and statistics of each column, fitted on training rows, stored as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from censnet.data.tables.columns import DECIMAL_COMMA, USED
from censnet.data.tables.feature_encoding import Column
from censnet.data.tables.keys import TABLES
from censnet.data.tables.number_notation import Notation
from censnet.data.tables.times import TimeColumn
from censnet.errors import DataError
from censnet.levels import COLUMN_LEVELS, Level

Structure = Literal["none", "degree", "constant"]
Features = Literal["rich", "paper", "released"]
EdgeForm = Literal["once", "twice"]
Standardize = Literal["none", "fragment", "parent", "tautomer"]
Hydrogens = Literal["implicit", "explicit"]
Descriptors = bool | Literal["auto", "compare"]


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
    def zeros(self) -> list[float]:
        """The value of the number 0 in each feature, in their order; NaN for a feature that is no number."""
        if self.structure != "none":
            return [math.nan] * len(self.names)
        found = [zero for column in self.columns for zero in column.zeros]
        return [found[number] for number in self.feature_order]

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
            counted at its heavy atom like any other. The built-in sets keep them, as in the published results, and so
            do molecules whose atoms or bonds are predicted, so that these are numbered as rdkit numbers them.
        hydrogens: whether each hydrogen is an atom of the graph (``explicit``), as rdkit's AddHs makes them, or counted
            at its heavy atom (``implicit``).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    standardize: Standardize = "none"
    dummies: bool = False
    isotopes: bool = True
    hydrogens: Hydrogens = "implicit"


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
        time: the column of edges that says when each one happened, if the user named one.

    Example:
        >>> import pandas as pd
        >>> from censnet.data.tables.typed_table import TypedTable
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
    time: TimeColumn | None = None

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
