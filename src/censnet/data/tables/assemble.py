"""Tables to tensors: number the rows, encode the columns, merge doubled edges, and pack many graphs end to end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from censnet.data.tables.columns import CHOICES
from censnet.data.tables.default_features import add_default_features, count_degree, encode_degree, fit_degree
from censnet.data.tables.edge_form import EdgeRows, pair_edges
from censnet.data.tables.encoding import Column
from censnet.data.tables.files import Tables, check_names
from censnet.data.tables.keys import check_keys, find_keys, says_split, table_overrides
from censnet.data.tables.ordering import order_by_end, places, put_in_order
from censnet.data.tables.packing import Assembled, Fitted, IntArray, pack
from censnet.data.tables.resolve_ids import Keys, ResolvedIds, number_rows
from censnet.data.tables.row_errors import RowErrors
from censnet.data.tables.schema import Features, Schema, TableSchema, chosen_columns
from censnet.data.tables.suggest_keys import tell_ends
from censnet.errors import DataError, first_few, name_columns
from censnet.ops.graph import Graph

TrainRows = Mapping[str, IntArray]


def assemble(
    tables: Tables,
    schema: Schema | None,
    targets: Mapping[str, Sequence[str]],
    train_rows: TrainRows,
    overrides: Mapping[str, str] | None,
    problems: RowErrors,
    notes: list[str],
    features: Features = "rich",
) -> Assembled:
    """A graph, or many, from tables of nodes and edges. Without a schema, one is fitted on the training rows."""
    decided = table_overrides(overrides, {t: list(frame.columns) for t, frame in tables.frames().items()}, CHOICES)
    keys = find_table_keys(tables, schema, decided)
    numbered = number_rows(tables, keys, problems, notes)
    tables = numbered.tables
    nodes_frame = tables.frames()["nodes"]
    if tables.edges is None:
        tables = Tables(nodes_frame, pd.DataFrame({"source": [], "target": []}), tables.graphs, tables.names)
    edges_frame = tables.frames()["edges"]
    fitted = schema or _fit(tables, keys, numbered, targets, train_rows, decided, features)

    edges, bad = _edge_features(fitted.edges, edges_frame, tables.name("edges"))
    problems.add_placed("edges", bad)
    ends = numbered.ends
    good = _good_rows(ends, bad)
    if good is not None:
        ends, edges = ends[:, good], edges[torch.from_numpy(good)]
    pairing = pair_edges(
        None if schema is None else schema.edge_form,
        EdgeRows(
            edges_frame,
            tables.name("edges"),
            {"source": "source", "target": "target"} | dict(keys.get("edges", {})),
            fitted.edges,
            numbered.ends,
            np.arange(ends.shape[1]) if good is None else good,
            ends,
            len(numbered.rows),
            edges.numpy(),
        ),
        problems,
        notes,
    )
    if schema is None:
        fitted = fitted.model_copy(update={"edge_form": pairing.form})
        tables = replace(tables, edges=pairing.frame)
    edge_rows = np.arange(ends.shape[1])
    if pairing.first is not None:
        own = pairing.first == edge_rows
        kept = np.flatnonzero(own)
        edge_rows = np.where(pairing.first < 0, -1, (np.cumsum(own) - 1)[pairing.first])
        ends, edges = ends[:, kept], edges[torch.from_numpy(kept)]
    order = order_by_end(ends, len(numbered.rows))
    if order is not None:
        ends = ends[:, order]
        numbered = replace(numbered, ends=ends)  # the ends in input order are not kept beside it
        edges = put_in_order(edges, order)
        edge_rows = places(order) if pairing.first is None else np.where(edge_rows < 0, -1, places(order)[edge_rows])
    fresh = schema is None
    schema, nodes, bad = _node_features(fitted, nodes_frame, numbered, ends, train_rows, tables.name("nodes"))
    problems.add_placed("nodes", bad)
    notes += column_notes(tables, schema)
    refit = Fitted(schema, numbered.rows) if fresh else None

    node_rows = numbered.node_rows
    if bad:
        node_rows = node_rows.copy()
        node_rows[list(bad)] = -1
    if good is not None:
        every = np.full(len(edges_frame), -1, np.int64)
        every[good] = edge_rows
        edge_rows = every
    if numbered.graph is None:
        graph = Graph(nodes, edges, torch.from_numpy(np.ascontiguousarray(ends)))
        graph_rows = torch.zeros(0 if tables.graphs is None else len(tables.graphs), dtype=torch.long)
        became = torch.from_numpy(node_rows), torch.from_numpy(edge_rows), graph_rows
        return Assembled(graph, tables, schema, *became, refit)
    return pack(tables, schema, nodes, edges, ends, numbered.graph, node_rows, edge_rows, problems, refit)


def find_table_keys(tables: Tables, schema: Schema | None, decided: Mapping[str, Mapping[str, str]]) -> Keys:
    """Role -> column of every table: as in the schema, or else by name."""
    keys: dict[str, dict[str, str]] = {}
    for table, frame in tables.frames().items():
        check_names(frame.columns, tables.name(table))
        fitted = None if schema is None else schema.table(table)
        if fitted is not None and fitted.keys:
            named = find_keys(table, frame.columns, decided.get(table, {}))
            same = not set(fitted.keys.values()) <= set(frame.columns) and named.keys() >= fitted.keys.keys()
            keys[table] = named if same else dict(fitted.keys)
            check_keys(table, keys[table], list(frame.columns), tables.name(table))
        else:
            keys[table] = find_keys(table, frame.columns, decided.get(table, {}))
        if table == "edges" and not {"source", "target"} <= keys[table].keys():
            columns = name_columns(frame.columns)
            ids = None if tables.nodes is None or "id" not in keys["nodes"] else tables.nodes[keys["nodes"]["id"]]
            hint = tell_ends(frame, keys[table], ids)
            raise DataError(f"has the columns {columns}, expected source and target {hint}", tables.name(table))
    return keys


def _fit(
    tables: Tables,
    keys: Keys,
    numbered: ResolvedIds,
    targets: Mapping[str, Sequence[str]],
    train_rows: TrainRows,
    decided: Mapping[str, Mapping[str, str]],
    features: Features,
) -> Schema:
    """Type every table; the rows that statistics come from are those given, or those of the given graphs."""
    fitted: dict[str, TableSchema] = {}
    for table, frame in tables.frames().items():
        rows = _training_rows(table, numbered, train_rows)
        made = {"nodes": {"id": "id"}, "graphs": {"graph": "graph"}, "edges": {"source": "source", "target": "target"}}
        table_keys = dict(keys.get(table) or made[table])
        if table not in keys and table == "nodes" and "graph" in frame.columns:
            table_keys["graph"] = "graph"
        shares = features != "rich" and table == "nodes"
        named, file = targets.get(table, ()), tables.name(table)
        fitted[table] = TableSchema.fit(frame, rows, table_keys, named, decided.get(table), shares, file)
    graphs = fitted.get("graphs", TableSchema())
    many = numbered.graph is not None
    chosen = chosen_columns(graphs, decided.get("graphs", {})) if many else []
    return add_default_features(
        Schema(many=many, nodes=fitted["nodes"], edges=fitted["edges"], graphs=graphs, features=features, chosen=chosen)
    )


def _training_rows(table: str, numbered: ResolvedIds, train_rows: TrainRows) -> IntArray | None:
    """The rows that statistics of a table come from: those given, or those of the given graphs, or (None) all."""
    graph = numbered.graph
    if table in train_rows or "graphs" not in train_rows or graph is None:
        return train_rows.get(table)
    training = np.zeros(len(numbered.tables.frames()["graphs"]), bool)
    training[train_rows["graphs"]] = True
    if table == "nodes":
        return np.sort(numbered.rows[training[graph]])
    known = numbered.ends[0] >= 0
    return np.flatnonzero(known & training[graph[numbered.ends[0]]])


def _edge_features(schema: TableSchema, frame: pd.DataFrame, file: str) -> tuple[Tensor, dict[int, str]]:
    if schema.structure == "constant":
        return torch.ones(len(frame), 1), {}
    if len(frame) == 0 and "source" in frame.columns and len(frame.columns) == 2:
        return torch.zeros(0, schema.width), {}
    return schema.encode(frame, file)


def _node_features(
    schema: Schema, frame: pd.DataFrame, numbered: ResolvedIds, ends: IntArray, train_rows: TrainRows, file: str
) -> tuple[Schema, Tensor, dict[int, str]]:
    """The features of each node; where no column gives any, its degree and a constant."""
    if schema.nodes.structure != "degree":
        features, bad = schema.nodes.encode(frame, file)
        if len(numbered.rows) < len(frame):
            features = features[torch.from_numpy(numbered.rows)]
        return schema, features, bad
    degree = count_degree(ends, len(numbered.rows))
    if schema.nodes.degree is None:
        rows = _training_rows("nodes", numbered, train_rows)
        nodes = None if rows is None else numbered.node_rows[rows]
        schema = fit_degree(schema, degree, None if nodes is None else nodes[nodes >= 0])
    return schema, encode_degree(schema, degree), {}


def _good_rows(ends: IntArray, bad: Mapping[int, str]) -> IntArray | None:
    """The rows of edges that become edges, or None when all do."""
    if ends.shape[1] == 0 or (not bad and ends.min() >= 0):
        return None
    good = ends.min(axis=0) >= 0
    good[list(bad)] = False
    return np.flatnonzero(good)


def column_notes(tables: Tables, schema: Schema) -> list[str]:
    """What the user should know of the columns: which are left out, and what stands in where none is left."""
    notes = []
    for table in ("nodes", "edges") if schema.smiles is None else ():
        fitted, file = schema.table(table), tables.name(table)
        left_out = [column for column in fitted.left_out if not _says_split(column)]
        if left_out:
            notes.append(f"{file}: left out {_by_reason(left_out)}")
        notes += [f"{file}: {told}" for told in _of_values(fitted.columns)]
        if fitted.structure == "degree":
            notes.append(f"{file}: no column gives a feature, so each node has its degree and a constant")
        if fitted.structure == "constant":
            notes.append(f"{file}: no column gives a feature, so each edge has a constant")
    unused = [
        column.name
        for column in schema.graphs.columns
        if column.name not in schema.chosen and not (column.kind == "drop" or _says_split(column))
    ]
    if unused:
        columns = first_few(unused)
        whole = "a graph is described by its nodes and edges"
        if schema.smiles is not None:
            whole = "a molecule is described by its atoms and bonds"
        alone = "and the columns that were chosen" if schema.chosen else "alone"
        notes.append(f"{tables.name('graphs')}: {columns} not used: {whole} {alone}")
    return notes + [f"{tables.name('graphs')}: {told}" for told in _of_values(schema.of_graphs.columns)]


def _by_reason(columns: Sequence[Column]) -> str:
    """How many columns if there are many, and for each reason the first few of them."""
    reasons: dict[str, list[str]] = {}
    for column in columns:
        reasons.setdefault(column.reason, []).append(column.name)
    said = first_few((f"{first_few(names)} ({reason})" for reason, names in reasons.items()), 8)
    return said if len(columns) <= 8 else f"{len(columns):,} columns: {said}"


def _of_values(columns: Sequence[Column]) -> list[str]:
    """Of which columns the numbers have decimal commas, and which have statistics of all rows."""
    commas = [column.name for column in columns if column.notation == "comma" and column.width]
    silent = [column.name for column in columns if column.statistics == "all"]
    told = []
    if commas:
        told.append(f"{_count(commas)}: a comma stands before decimals, so 1.175,36 is 1175.36")
    if silent:
        told.append(f"{_count(silent)}: no two different values in training rows, so statistics are those of all rows")
    return told


def _count(names: Sequence[str]) -> str:
    return f"column {names[0]}" if len(names) == 1 else f"{len(names):,} columns ({first_few(names)})"


def _says_split(column: Column) -> bool:
    """Whether a column may be the split, of which the training says where it came from."""
    return column.kind == "id" and says_split(column.name)
