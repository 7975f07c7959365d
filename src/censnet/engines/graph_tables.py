"""The tables of a graph from those of the user: nodes and edges by number, degrees, and rows that cannot be used."""

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
from censnet.engines.engine import ROW, Engine, fetch_one
from censnet.engines.files import TableFile
from censnet.engines.reading import ReadRows, find_key_types
from censnet.engines.row_messages import ERRORS, ExplainRows
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
        graph_groups: the tensors of graphs, in the table `graphs_base`, if there are many.
    """

    files: Mapping[str, TableFile]
    ids: Mapping[str, Mapping[str, str]]
    graph: GraphTables
    levels: Mapping[Level, UserTable]
    graph_groups: Mapping[str, Group]


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
        holders = [table for table in ("nodes", "edges") if "graph" in self.ids.get(table, {})]
        self.form = queries.Form(
            many=bool(holders),
            scoped=bool(holders) and ("edges" not in files or "edges" in holders),
            twice=schema.edge_form == "twice",
            nodes_have_ids="id" in self.ids.get("nodes", {"id": "id"}),
        )
        self._check(holders)

    def __call__(self) -> ReadGraph:
        """Read all tables."""
        form, engine = self.form, self.engine
        groups = {table: self._read(table) for table in self.files if form.many or table != "graphs"}
        has_nodes, has_graphs = "nodes" in self.files, "graphs" in groups
        if form.many:
            engine.query("graph_ids", queries.graph_ids("graphs" if has_graphs else "nodes" if has_nodes else "edges"))
        if has_nodes:
            engine.query("ids", queries.ids_of_nodes(form))
        else:
            (rows,) = fetch_one(engine, "SELECT count(*) AS n FROM edges_read")
            engine.query("ids", queries.ids_of_ends(form, rows, engine.dense))
        (num_nodes,) = fetch_one(engine, "SELECT count(*) AS n FROM ids")
        if num_nodes == 0:
            raise DataError("has no row with an id, expected at least one node", self._file("nodes").name)
        if form.twice:
            self._pair_rows(groups["edges"])
        self._explain("edges", num_nodes)
        engine.query("ends", queries.ends(form))
        engine.query("edge_rows", queries.edge_rows(form))
        engine.query("several", queries.several())
        engine.query("counts", queries.counts())
        node_groups, graph_groups = groups.get("nodes", []), groups.get("graphs", [])
        engine.query("nodes_base", queries.nodes(form, _columns(node_groups), has_nodes))
        engine.query("node_rows", queries.numbered_rows("node", has_nodes))
        self._explain("nodes", num_nodes)
        for table in ("nodes", "edges", *(["graphs"] if form.many else [])):
            there = table in groups
            engine.query(f"{table}_unusual", queries.unusual(table if there else "edges", there))
        engine.query("edges_base", queries.edges(form, _columns(groups["edges"]), self.shares))
        if self.least:
            engine.query("least", queries.least_degrees())
            engine.query("edges_least", queries.edges_with_least())
        if form.many:
            engine.query("graphs_base", queries.graphs(_columns(graph_groups), has_graphs))
            engine.query("graph_rows", queries.numbered_rows("graph", has_graphs))
            self._explain("graphs", num_nodes)
        graph = GraphTables(
            "nodes_base",
            "edges_least" if self.least else "edges_base",
            _tensors(node_groups),
            _tensors(groups["edges"]),
            self._keys(("node", *NODE_COUNTS), node_groups),
            self._keys(("edge", "s", "t", *self._counts), groups["edges"])
            | (dict.fromkeys(LEAST.columns, pa.float64()) if self.least else {}),
        )
        tables = {Level.NODE: graph.nodes, Level.EDGE: graph.edges} | (
            {Level.GRAPH: "graphs_base"} if form.many else {}
        )
        levels = {level: self._count(level, table, graph) for level, table in tables.items()}
        engine.drop("nodes_read", "edges_read", "several", "counts", "ends")
        return ReadGraph(self.files, self.ids, graph, levels, _tensors(graph_groups))

    def _check(self, holders: Sequence[str]) -> None:
        """Raise where a table lacks a column that others imply, or that training had."""
        if "edges" not in self.files:
            raise DataError(
                "there is no table of edges, expected one: an engine computes on edges", self._file("nodes").name
            )
        if "nodes" in self.files and holders and "nodes" not in holders:
            raise DataError(
                f"has no column graph, expected one as in {self._file('edges').name}", self._file("nodes").name
            )
        if holders and "graphs" in self.files and "graph" not in self.ids["graphs"]:
            raise DataError("has no column graph, expected the id of each graph", self._file("graphs").name)
        if "nodes" in self.files:
            return
        column = next((column for column in self.schema.nodes.columns if column.width), None)
        if column is not None:  # nodes had features in training, and now are in no table
            file = f"nodes of {self._file('edges').name}"
            raise DataError(f"is missing, expected a {column.kind} as in training", file, column=column.name)

    def _file(self, table: str) -> TableFile:
        return self.files.get(table) or next(iter(self.files.values()))

    def _pair_rows(self, groups: Sequence[Group]) -> None:
        """Find the two rows of each edge."""
        columns = columns_of(groups)
        self.engine.query("reverses", queries.reverses(self.form, columns))
        rows, loops = fetch_one(
            self.engine, f"SELECT count(*) AS n, sum(CASE WHEN {ROW} = other THEN 1 ELSE 0 END) AS l FROM reverses"
        )
        (proper,) = fetch_one(self.engine, "SELECT count(*) AS n FROM edges_read WHERE source <> target")
        if rows == loops and proper:
            raise DataError(
                f"no row has its reverse with the same data, expected each edge twice, once in each direction, as in "
                f"training: add the reverse of each of the {proper:,} rows",
                self._file("edges").name,
            )
        keys = [ROW, "source", "target", *(["graph"] if self.form.scoped else []), "error", "unusual"]
        self.engine.query("edges_once", queries.edges_once([*keys, *columns]))

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

    def _explain(self, table: str, num_nodes: int) -> None:
        """The rows of a table that cannot be used, with the reason."""
        if table not in self.files:
            self.engine.query(f"{table}_errors", queries.NO_ERRORS)
            return
        nodes = self.files["nodes"].name if "nodes" in self.files else None
        known = "" if nodes is None else f"{nodes} has {count(num_nodes, 'id')}"
        if nodes is not None and self.form.scoped:
            known = f"in {nodes}, in the same graph"
        graphs = 0
        if self.form.many:
            (graphs,) = fetch_one(self.engine, "SELECT count(*) AS n FROM graph_ids")
        explain = ExplainRows(table, self.files[table].name, self.ids[table], known, graphs)
        self.engine.map(f"{table}_errors", queries.bad_rows(table, self.form), explain, ERRORS)

    def _keys(self, names: Sequence[str], groups: Sequence[Group]) -> dict[str, pa.DataType]:
        names = (*names, "graph") if self.form.many else names
        parts = [PART.name] if any(group.name == "label" for group in groups) else []
        return dict.fromkeys((*names, *parts), pa.int64())

    def _count(self, level: Level, table: str, graph: GraphTables) -> UserTable:
        keys = {Level.NODE: graph.node_keys, Level.EDGE: graph.edge_keys}.get(level, {})
        known = f"sum(CASE WHEN {PART.name} > 0 THEN 1 ELSE 0 END)" if PART.name in keys else "0"
        (rows,) = fetch_one(self.engine, f"SELECT count(*) AS n FROM {level}_rows")
        (bad,) = fetch_one(self.engine, f"SELECT count(*) AS n FROM {level.table}_errors")
        number, labeled = fetch_one(self.engine, f"SELECT count(*) AS n, {known} AS k FROM {table}")
        return UserTable(f"{level}_rows", f"{level.table}_errors", rows, bad, labeled, number)


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
