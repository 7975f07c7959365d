"""Nodes, edges and graphs by their ids in the tables, and rows with an id that is missing, unknown or taken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from censnet.data.tables.columns import as_text
from censnet.data.tables.files import Tables
from censnet.data.tables.id_index import IdIndex, find_alike, pair_up, read_ids, similar_id_notes
from censnet.data.tables.notes import Note, RowError
from censnet.data.tables.row_errors import RowErrors
from censnet.data.tables.suggest_keys import suggest_id
from censnet.errors import DataError, quote
from censnet.ops.arrays import IntArray
from censnet.option_names import column_option
from censnet.text import count

Keys = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class ResolvedIds:
    """The nodes, edges and graphs of some tables by number.

    Args:
        tables: the same tables, with those that had to be made: nodes from the ends of the edges, graphs from a column.
        rows: for each node, its row in `nodes`.
        node_rows: for each row of `nodes`, its node, or -1.
        ends: for each row of `edges`, its two nodes, or -1.
        graph: for each node, the row of `graphs` of its graph; None when all is one graph.
    """

    tables: Tables
    rows: IntArray
    node_rows: IntArray
    ends: IntArray
    graph: IntArray | None


@dataclass(frozen=True)
class _Graphs:
    """The graphs by id, and for each number the row of `graphs`."""

    known: IdIndex
    rows: IntArray


def resolve_ids(tables: Tables, keys: Keys, problems: RowErrors, notes: list[Note]) -> ResolvedIds:
    """Number nodes, edges and graphs by the ids in the tables; rows with ids that cannot be are problems."""
    graphs, tables = _resolve_graphs(tables, keys, problems)
    if tables.nodes is None:
        return _nodes_from_edges(tables, keys, graphs, problems, notes)
    nodes, name = tables.nodes, tables.name("nodes")
    id_column = keys["nodes"].get("id")
    if id_column is None:
        named = f"the nodes are called 0 to {len(nodes) - 1:,} by their row"
        notes.append(Note("id", f"{name}: no column of ids, so {named}"))
        ids = pa.chunked_array([pa.array(np.arange(len(nodes)))])
    else:
        ids = read_ids(nodes, id_column, name)
    of_row = None if graphs is None else _find_graphs("nodes", nodes, keys, graphs, problems)
    scoped = of_row is not None and (tables.edges is None or "graph" in keys["edges"])
    names = IdIndex(ids)
    notes += similar_id_notes(names, name)
    if scoped and of_row is not None:
        known = IdIndex(pair_up(of_row, names.codes, len(names)))
    elif of_row is not None and (of_row < 0).any():
        known = names = IdIndex(pc.if_else(pa.array(of_row >= 0), ids, pa.scalar(None, ids.type)))
    else:
        known = names
    node_rows = np.full(len(nodes), -1, np.int64)
    node_rows[known.rows] = np.arange(len(known))
    if len(known) < len(nodes) and id_column is not None:
        _explain(nodes, "nodes", id_column, known, problems)
    if len(known) == 0:
        raise DataError("has no row with an id, expected at least one node", name)
    graph = None if of_row is None else of_row[known.rows]
    if tables.edges is None:
        return ResolvedIds(tables, known.rows, node_rows, np.zeros((2, 0), np.int64), graph)
    edges = tables.edges
    edge_graph = _find_graphs("edges", edges, keys, graphs, problems) if scoped and graphs is not None else None
    ends = np.empty((2, len(edges)), np.int64)
    for side, role in enumerate(("source", "target")):
        column = keys["edges"][role]
        given = read_ids(edges, column, tables.name("edges"))
        position = names.find(given)
        ends[side] = position if edge_graph is None else known.find(pair_up(edge_graph, position, len(names)))
        if len(ends[side]) and ends[side].min() < 0:
            rows = np.flatnonzero((ends[side] < 0) & (True if edge_graph is None else edge_graph >= 0))
            alike = find_alike(given.take(pa.array(rows)), names)
            alike = [None if position[row] >= 0 else other for row, other in zip(rows, alike, strict=True)]
            if len(rows) == len(edges):
                first, known_first = edges[column].iloc[0], nodes[id_column].iloc[0] if id_column else 0
                found = f"none of its ids is in {name}: the first is {quote(first)}, and {name} has "
                hint = "" if alike[0] is None else " (ids are compared as they are written, so write both alike)"
                if id_column is None:
                    option = column_option((suggest_id(nodes, edges[column]) or "COLUMN", "id"))
                    hint = f", the number of a row, for it has no id (if one has another name: {option})"
                raise DataError(found + quote(alike[0] or known_first) + hint, tables.name("edges"), column=column)
            where = f"{name} has {count(len(known), 'id')}" if edge_graph is None else f"in {name}, in the same graph"
            problems.add_ids("edges", edges, column, rows, "no node has the id {id}", alike, where)
    if graph is not None and edge_graph is None:
        _check_one_graph(edges, ends, graph, keys, problems)
    return ResolvedIds(tables, known.rows, node_rows, ends, graph)


def _resolve_graphs(tables: Tables, keys: Keys, problems: RowErrors) -> tuple[_Graphs | None, Tables]:
    """The graphs by their ids, from `graphs` or, without it, from the column `graph` of nodes or edges."""
    holders = [table for table in ("nodes", "edges") if table in tables.frames() and "graph" in keys[table]]
    if not holders:
        if tables.graphs is not None and len(tables.graphs) != 1:
            raise DataError(f"there is no column graph in nodes or edges, expected one that says which of the "
                            f"{len(tables.graphs):,} graphs of {tables.name('graphs')} a row is in")  # fmt: skip
        return None, tables
    if tables.nodes is not None and "nodes" not in holders:
        raise DataError(f"has no column graph, expected one as in {tables.name('edges')}", tables.name("nodes"))
    if tables.graphs is None:
        source = tables.frames()[holders[0]]
        values = source[keys[holders[0]]["graph"]]
        known = IdIndex(read_ids(source, keys[holders[0]]["graph"], tables.name(holders[0])))
        made = pd.DataFrame({"graph": values.iloc[known.rows].reset_index(drop=True)})
        names = {"graphs": f"graphs of {tables.name(holders[0])}"}
        return _Graphs(known, np.arange(len(known))), tables.with_frames({"graphs": made}, names)
    if "graph" not in keys["graphs"]:
        raise DataError("has no column graph, expected the id of each graph", tables.name("graphs"))
    column = keys["graphs"]["graph"]
    known = IdIndex(read_ids(tables.graphs, column, tables.name("graphs")))
    if len(known) < len(tables.graphs):
        _explain(tables.graphs, "graphs", column, known, problems)
    return _Graphs(known, known.rows), tables


def _find_graphs(table: str, frame: pd.DataFrame, keys: Keys, graphs: _Graphs, problems: RowErrors) -> IntArray:
    """For each row, the row of its graph in `graphs`, or -1."""
    column = keys[table]["graph"]
    given = read_ids(frame, column, problems.name(table))
    found = graphs.known.find(given)
    if len(found) and found.min() < 0:
        rows = np.flatnonzero(found < 0)
        alike, known = find_alike(given.take(pa.array(rows)), graphs.known), f"there are {len(graphs.rows):,}"
        problems.add_ids(table, frame, column, rows, "no graph has the id {id}", alike, known)
    return np.where(found >= 0, graphs.rows[found], -1) if len(graphs.rows) else found


def _nodes_from_edges(
    tables: Tables, keys: Keys, graphs: _Graphs | None, problems: RowErrors, notes: list[Note]
) -> ResolvedIds:
    """Without a table of nodes, the nodes are the ends of the edges, in order of appearance."""
    edges = tables.edges
    if edges is None or len(edges) == 0:
        raise DataError("there is neither a table of nodes nor an edge: a graph needs a node", tables.name("edges"))
    columns = [keys["edges"]["source"], keys["edges"]["target"]]
    source, target = (read_ids(edges, column, tables.name("edges")) for column in columns)
    if source.type != target.type:
        both_whole = pa.types.is_signed_integer(source.type) and pa.types.is_signed_integer(target.type)
        source, target = (pc.cast(end, pa.int64()) if both_whole else as_text(end) for end in (source, target))
    ids = pa.chunked_array([*source.chunks, *target.chunks], type=source.type)
    of_edge = None if graphs is None else _find_graphs("edges", edges, keys, graphs, problems)
    known = names = IdIndex(ids)
    notes += similar_id_notes(names, tables.name("edges"))
    if of_edge is not None:
        known = IdIndex(pair_up(np.concatenate([of_edge, of_edge]), names.codes, len(names)))
    if len(known) == 0:
        raise DataError("has no row with two ids", tables.name("edges"), column=columns[0])
    ends = np.asarray(known.codes, np.int64).reshape(2, -1)
    for side, column in enumerate(columns):
        if ends[side].min() < 0:
            rows = np.flatnonzero(ends[side] < 0 if of_edge is None else (ends[side] < 0) & (of_edge >= 0))
            problems.add_ids("edges", edges, column, rows, "the id is missing")
    made = {"id": pd.Series(pd.arrays.ArrowExtensionArray(ids.take(pa.array(known.rows))))}
    graph = None
    if of_edge is not None and tables.graphs is not None:
        graph = of_edge[known.rows % len(edges)]
        column = keys["graphs"].get("graph", "graph") if "graphs" in keys else "graph"
        made["graph"] = tables.graphs[column].iloc[graph].reset_index(drop=True)
    names_of = {"nodes": f"nodes of {tables.name('edges')}"}
    every = np.arange(len(known))
    return ResolvedIds(tables.with_frames({"nodes": pd.DataFrame(made)}, names_of), every, every, ends, graph)


def _explain(frame: pd.DataFrame, table: str, column: str, known: IdIndex, problems: RowErrors) -> None:
    """Rows whose id is missing or was there before."""
    first = np.zeros(len(frame), bool)
    first[known.rows] = True
    again = np.flatnonzero(~first & (known.codes >= 0))
    earlier = known.rows[known.codes[again]]
    problems.add_ids(table, frame, column, np.flatnonzero(known.codes < 0), "the graph of {id} is not known")
    values, twice = frame[column].iloc[again].tolist(), "the id ... is in row ... already"
    problems.add(table, column, {
        int(row): RowError(twice, f"the id {quote(value)} is in row {int(before) + 1} already")
        for row, before, value in zip(again, earlier, values, strict=True)
    })  # fmt: skip


def _check_one_graph(edges: pd.DataFrame, ends: IntArray, graph: IntArray, keys: Keys, problems: RowErrors) -> None:
    """Without a column `graph` in edges, the two ends say which graph it is, and must agree."""
    apart = (ends.min(axis=0) >= 0) & (graph[ends[0]] != graph[ends[1]]) if ends.shape[1] else np.zeros(0, bool)
    if apart.any():
        rows, two_graphs = np.flatnonzero(apart), "joins nodes of two graphs"
        ends[:, rows] = -1
        problems.add("edges", keys["edges"]["target"], dict.fromkeys(rows.tolist(), RowError(two_graphs, two_graphs)))
