"""The order of rows in memory: nodes and edges by graph, edges by lower end. `Dataset.results` is the way back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.sparse
import torch

from censnet.data.tables.files import Tables
from censnet.data.tables.ids import ResolvedIds
from censnet.data.tables.notes import RowError
from censnet.data.tables.row_errors import RowErrors
from censnet.data.tables.schema import Schema
from censnet.data.tables.table_graph import Assembled, TableEncoder
from censnet.data.tables.typed_table import TypedTable
from censnet.levels import Level
from censnet.ops.arrays import Array, IntArray
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet

EMPTY = "no node is in this graph"


class Packed(NamedTuple):
    """Many graphs end to end, without features.

    Args:
        graphs: the structure.
        present: for each graph of the set, its number before; graphs without nodes are left out.
        node_order, edge_order: for each node and edge of the set, its number before.
    """

    graphs: GraphSet
    present: IntArray
    node_order: IntArray
    edge_order: IntArray


def pack(ends: IntArray, graph: IntArray, num_graphs: int) -> Packed:
    """Sort nodes and edges by graph, and number each graph's nodes from 0.

    Args:
        ends: the two nodes of each edge.
        graph: the graph of each node.
        num_graphs: how many there are, with those that have no node.
    """
    size = np.bincount(graph, minlength=num_graphs)
    present = np.flatnonzero(size)
    number = (np.cumsum(size > 0) - 1)[graph]
    order = np.argsort(number, kind="stable")
    node_offset = np.concatenate([[0], np.cumsum(size[present])])
    edge_graph = number[ends[0]]
    edge_order = np.argsort(edge_graph, kind="stable")
    edge_offset = np.concatenate([[0], np.cumsum(np.bincount(edge_graph, minlength=len(present)))])
    local = inverse_permutation(order)[ends[:, edge_order]] - node_offset[edge_graph[edge_order]]
    structure = GraphSet(
        nodes=torch.empty(len(order), 0),
        edges=torch.empty(len(edge_order), 0),
        ends=torch.from_numpy(local),
        node_offset=torch.from_numpy(node_offset),
        edge_offset=torch.from_numpy(edge_offset),
    )
    return Packed(structure, present, order, edge_order)


def order_by_end(ends: IntArray, num_nodes: int) -> Array | None:
    """The order of edges by their lower end, equal ones as they were; None when they are in this order already.

    A stable counting sort, O(N + E): the entries of a matrix with a row for each edge, by column. A propagation then
    finds the edges of a node beside each other.

    >>> order_by_end(np.array([[5, 1, 3, 0], [2, 3, 1, 4]]), 6)
    array([3, 1, 2, 0], dtype=int32)
    """
    low = np.minimum(ends[0], ends[1])
    count = len(low)
    if bool((low[1:] >= low[:-1]).all()):
        return None
    integer = np.int32 if max(count, num_nodes) < 2**31 else np.int64
    entries = (np.ones(count, bool), low.astype(integer), np.arange(count + 1, dtype=integer))
    return np.asarray(scipy.sparse.csr_array(entries, shape=(count, num_nodes)).tocsc().indices)


def inverse_permutation(order: Array) -> IntArray:
    """The position of each thing that is put in this order."""
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order))
    return position


def invert_rows(source: IntArray, count: int) -> IntArray:
    """For each of `count` rows its position in `source`, or -1 where it is not there.

    >>> invert_rows(np.array([2, 0]), 4).tolist()
    [1, -1, 0, -1]
    """
    position = np.full(count, -1, np.int64)
    position[source] = np.arange(len(source))
    return position


def lay_out(
    tables: Tables,
    schema: Schema,
    typed: Mapping[str, TypedTable],
    ids: ResolvedIds,
    usable: IntArray,
    first: IntArray | None,
    bad_nodes: Sequence[int],
    problems: RowErrors,
    times: Array | None = None,
) -> Assembled:
    """The order of nodes and edges in memory: by graph, and by the lower end of an edge.

    Args:
        tables, schema, typed, ids: as in `assemble`.
        usable: the rows of `edges` that can be used.
        first: for each of these, the first of the two rows that are its edge, or -1; None if each is an edge.
        bad_nodes: rows of `nodes` that cannot be used.
        problems: where graphs without a node are noted.
        times: of each row of `edges`, if they have times.
    """
    source, became = usable, np.arange(len(usable))
    if first is not None:
        own = first == became
        source, became = usable[own], np.where(first < 0, -1, (np.cumsum(own) - 1)[first])
    ends = ids.ends[:, source]
    order = order_by_end(ends, len(ids.rows))
    if order is not None:
        ends, source, became = ends[:, order], source[order], _follow(became, inverse_permutation(order))
    edge_rows = np.full(len(tables.frames()["edges"]), -1, np.int64)
    edge_rows[usable] = became
    node_rows, node_source = ids.node_rows.copy(), ids.rows
    node_rows[list(bad_nodes)] = -1
    graph: Graph | GraphSet
    present = np.zeros(0, np.int64)
    if ids.graph is None:
        graph_rows = np.zeros(0 if tables.graphs is None else len(tables.graphs), np.int64)
        empty = torch.empty(len(node_source), 0), torch.empty(len(source), 0)
        graph = Graph(*empty, torch.from_numpy(np.ascontiguousarray(ends)), directed=schema.directed)
    else:
        num_graphs = len(tables.frames()["graphs"])
        graph, present, node_order, edge_order = pack(ends, ids.graph, num_graphs)
        graph = replace(graph, directed=schema.directed)
        graph_rows = invert_rows(present, num_graphs)
        known = problems.found.get("graphs", {})
        without = [row for row in np.flatnonzero(graph_rows < 0).tolist() if row not in known]
        column = schema.graphs.keys.get("graph", "graph")
        problems.add("graphs", column, dict.fromkeys(without, RowError(EMPTY, EMPTY)))
        node_rows = _follow(node_rows, inverse_permutation(node_order))
        edge_rows = _follow(edge_rows, inverse_permutation(edge_order))
        node_source, source = node_source[node_order], source[edge_order]
    if times is not None:
        graph = graph.with_times(torch.from_numpy(times[source]))
    encoder = TableEncoder(schema, typed, node_rows, node_source, source)
    rows = {Level.NODE: node_rows, Level.EDGE: edge_rows, Level.GRAPH: graph_rows}
    graph_table = typed["graphs"].select(schema.graph_columns) if schema.graph_columns else None
    rows_by_level = {level: torch.from_numpy(found) for level, found in rows.items()}
    return Assembled(graph, tables, schema, rows_by_level, encoder, present, graph_table)


def _follow(rows: IntArray, position: IntArray) -> IntArray:
    """The rows after each thing has gone to its new position; -1 stays."""
    return np.where(rows < 0, -1, position[rows]) if len(position) else rows
