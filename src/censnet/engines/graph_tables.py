"""The tables of a graph from those of the user: nodes and edges by number, degrees, and the rows that cannot be used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import torch

from censnet.data.tables.assemble import find_table_keys
from censnet.data.tables.files import Tables, to_frame
from censnet.data.tables.schema import Schema
from censnet.engines import graph_queries as queries
from censnet.engines.batches import EDGE_COUNTS, NODE_COUNTS
from censnet.engines.columns import Group, columns_of
from censnet.engines.engine import Engine, fetch_one
from censnet.engines.files import TableFile
from censnet.engines.reading import ReadRows, find_key_types
from censnet.engines.row_messages import ERRORS, ExplainEdges, ExplainNodes
from censnet.engines.works import LEAST, GraphTables
from censnet.errors import DataError
from censnet.levels import Level
from censnet.runs.novelty import FeatureRange
from censnet.tasks.targets import Target
from censnet.text import count

PART = Group("part", 1, torch.int64)  # 0 for a row without a label, or the fold of one with, counted from 1


@dataclass(frozen=True)
class UserTable:
    """A table of the user's, and what became of its rows.

    Args:
        rows: a table of the number of each row, `ROW`, and of the node or edge that it is, `number`.
        errors: a table of the rows that cannot be used, and why.
        num_rows, num_bad: the number of rows, and of those that cannot be used.
        num_known: the number of nodes or edges with a known label.
        count: the number of nodes or edges.
    """

    rows: str
    errors: str
    num_rows: int
    num_bad: int
    num_known: int
    count: int


@dataclass(frozen=True)
class ReadGraph:
    """The user's tables as an engine has read them.

    Args:
        files: table -> its file; one that is made of another has none.
        ids: table -> role -> column.
        graph: the graph that they are.
        levels: level -> its table.
    """

    files: Mapping[str, TableFile]
    ids: Mapping[str, Mapping[str, str]]
    graph: GraphTables
    levels: Mapping[Level, UserTable]


class GraphReader:
    """Reads tables by a schema.

    Args:
        engine: that computes it.
        files: table -> its file.
        schema: of the training data.
        known: level -> the targets whose known labels are inputs.
        shares: whether edges have the number of edges that share a node with them.
        least: whether they have the least of these numbers at each node, which the released code reads.
        ranges: table -> the ranges of its features in training rows, with which rows are compared.
    """

    def __init__(
        self,
        engine: Engine,
        files: Mapping[str, TableFile],
        schema: Schema,
        known: Mapping[str, Sequence[Target]],
        shares: bool,
        least: bool,
        ranges: Mapping[str, Sequence[FeatureRange]],
    ) -> None:
        self.engine, self.files, self.schema, self.known, self.ranges = engine, files, schema, known, ranges
        self.shares, self.least = shares or least, least
        heads = {table: to_frame(file.head(), file.name) for table, file in files.items()}
        names = {table: file.name for table, file in files.items()}
        self.ids = find_table_keys(Tables(names=names).with_frames(heads), schema, {})
        self.types = find_key_types(files, self.ids)

    def __call__(self) -> ReadGraph:
        """Read all tables."""
        groups = {table: self._read(table) for table in self.files}
        if "nodes" in self.files:
            self.engine.query("ids", queries.ids_of_nodes("id" in self.ids["nodes"]))
        else:
            self._refuse_features_of_nodes()
            (rows,) = fetch_one(self.engine, "SELECT count(*) AS n FROM edges_read")
            self.engine.query("ids", queries.ids_of_ends(rows))
        (num_nodes,) = fetch_one(self.engine, "SELECT count(*) AS n FROM ids")
        if num_nodes == 0:
            table = "nodes" if "nodes" in self.files else "edges"
            raise DataError("has no row with an id, expected at least one node", self.files[table].name)
        self._explain("edges", num_nodes)
        self.engine.query("ends", queries.ends())
        self.engine.query("edge_rows", queries.edge_rows())
        self.engine.query("several", queries.several())
        self.engine.query("counts", queries.counts())
        node_groups = groups.get("nodes", [])
        self.engine.query("nodes_base", queries.nodes(_columns(node_groups), "nodes" in self.files))
        self.engine.query("node_rows", queries.node_rows("nodes" in self.files))
        self._explain("nodes", num_nodes)
        for table, has_rows in (("nodes", "nodes" in self.files), ("edges", True)):
            self.engine.query(f"{table}_unusual", queries.unusual(table if has_rows else "edges", has_rows))
        self.engine.query("edges_base", queries.edges(_columns(groups["edges"]), self.shares))
        if self.least:
            self.engine.query("least", queries.least_degrees())
            self.engine.query("edges_least", queries.edges_with_least())
        graph = GraphTables(
            "nodes_base",
            "edges_least" if self.least else "edges_base",
            _tensors(node_groups),
            _tensors(groups["edges"]),
            self._keys(("node", *NODE_COUNTS), node_groups),
            self._keys(("edge", "s", "t", *self._counts), groups["edges"])
            | (dict.fromkeys(LEAST.columns, pa.float64()) if self.least else {}),
        )
        levels = {level: self._count(level, graph) for level in (Level.NODE, Level.EDGE)}
        self.engine.drop("nodes_read", "edges_read", "several", "counts", "ends")
        return ReadGraph(self.files, self.ids, graph, levels)

    @property
    def _counts(self) -> list[str]:
        return [name for name in EDGE_COUNTS if name != "sharing" or self.shares]

    def _read(self, table: str) -> list[Group]:
        level, file = Level.of_table(table), self.files[table]
        targets = list(self.known.get(level, ()))
        read = ReadRows(level, file, self.schema, self.ids[table], self.types.get(table, {}), targets,
                        self.ranges.get(table, ()))  # fmt: skip
        self.engine.read(f"{table}_read", file, read, read.arrow_schema)
        return read.groups

    def _refuse_features_of_nodes(self) -> None:
        """Raise where nodes had features in training, and now are in no table."""
        column = next((column for column in self.schema.nodes.columns if column.width), None)
        if column is not None:
            file = f"nodes of {self.files['edges'].name}"
            raise DataError(f"is missing, expected a {column.kind} as in training", file, column=column.name)

    def _explain(self, table: str, num_nodes: int) -> None:
        """The rows of a table that cannot be used, with the reason."""
        if table not in self.files:
            self.engine.query(f"{table}_errors", queries.NO_ERRORS)
            return
        file, ids = self.files[table].name, self.ids[table]
        known = f"{self.files['nodes'].name} has {count(num_nodes, 'id')}" if "nodes" in self.files else ""
        explain = ExplainNodes(file, ids) if table == "nodes" else ExplainEdges(file, ids, known)
        self.engine.map(f"{table}_errors", queries.bad_rows(table, "id" in ids), explain, ERRORS)

    def _keys(self, names: Sequence[str], groups: Sequence[Group]) -> dict[str, pa.DataType]:
        parts = [PART.name] if any(group.name == "label" for group in groups) else []
        return dict.fromkeys((*names, *parts), pa.int64())

    def _count(self, level: Level, graph: GraphTables) -> UserTable:
        table, base = level.table, graph.nodes if level is Level.NODE else graph.edges
        keys = graph.node_keys if level is Level.NODE else graph.edge_keys
        known = f"sum(CASE WHEN {PART.name} > 0 THEN 1 ELSE 0 END)" if PART.name in keys else "0"
        (rows,) = fetch_one(self.engine, f"SELECT count(*) AS n FROM {level}_rows")
        (bad,) = fetch_one(self.engine, f"SELECT count(*) AS n FROM {table}_errors")
        number, labeled = fetch_one(self.engine, f"SELECT count(*) AS n, {known} AS k FROM {base}")
        return UserTable(f"{level}_rows", f"{table}_errors", rows, bad, labeled, number)


def _columns(groups: Sequence[Group]) -> list[str]:
    """The columns of the tensors of a table as it is read, in SQL."""
    found = columns_of(group for group in groups if group.name != "fold")
    labels = next((group for group in groups if group.name == "label"), None)
    if labels is None:
        return [f"r.{name} AS {name}" for name in found]
    unknown = " AND ".join(f"isnan(r.{name})" for name in labels.columns)
    part = f"CASE WHEN {unknown} THEN 0 ELSE 1 + r.fold_0 END"
    named = [f"CAST({part} AS BIGINT) AS {name}" for name in (PART.name, *PART.columns)]
    return [f"r.{name} AS {name}" for name in found] + named


def _tensors(groups: Sequence[Group]) -> dict[str, Group]:
    """The tensors of a graph, by name."""
    found = {group.name: group for group in groups if group.name != "fold"}
    return found | ({PART.name: PART} if "label" in found else {})
