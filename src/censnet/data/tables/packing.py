"""What tables become, and many graphs packed end to end."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from censnet.data.tables.files import Tables
from censnet.data.tables.ordering import places
from censnet.data.tables.row_errors import RowErrors
from censnet.data.tables.schema import Schema
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet

IntArray = NDArray[np.int64]
Bonds = NDArray[np.int16]


@dataclass(frozen=True)
class Fitted:
    """What it takes to fit the schema again, on other rows.

    Args:
        schema: as it was first found.
        node_source: for each node of the tensors, its row in `nodes`; empty for molecules.
        bonds: for each edge of the tensors, the kind of bond that the `paper` features of molecules go by.
        graph_source: for each graph of the tensors, its row in `graphs`, where graphs have features of their own.
        described: the descriptors of each row of `graphs`, where they are among those.
    """

    schema: Schema
    node_source: IntArray
    bonds: Bonds | None = None
    graph_source: IntArray | None = None
    described: pd.DataFrame | None = None


@dataclass(frozen=True)
class Assembled:
    """What became of the tables; the fields of `Dataset`. Nothing is `fitted` where the schema was given."""

    graph: Graph | GraphSet
    tables: Tables
    schema: Schema
    node_rows: Tensor
    edge_rows: Tensor
    graph_rows: Tensor
    fitted: Fitted | None = None


def pack(
    tables: Tables,
    schema: Schema,
    nodes: Tensor,
    edges: Tensor,
    ends: IntArray,
    graph: IntArray,
    node_rows: IntArray,
    edge_rows: IntArray,
    problems: RowErrors,
    fitted: Fitted | None,
) -> Assembled:
    """Many graphs end to end: nodes and edges sorted by graph, each graph's nodes numbered from 0."""
    frame = tables.frames()["graphs"]
    size = np.bincount(graph, minlength=len(frame))
    known = problems.found.get("graphs", {})
    column = schema.graphs.keys.get("graph", "graph")
    empty = [int(row) for row in np.flatnonzero(size == 0) if int(row) not in known]
    problems.add("graphs", column, dict.fromkeys(empty, "no node is in this graph"))
    present = np.flatnonzero(size)
    graph_rows = np.full(len(frame), -1, np.int64)
    graph_rows[present] = np.arange(len(present))

    number = graph_rows[graph]
    order = np.argsort(number, kind="stable")
    place = places(order)
    node_offset = np.concatenate([[0], np.cumsum(size[present])])
    edge_graph = number[ends[0]]
    edge_order = np.argsort(edge_graph, kind="stable")
    edge_offset = np.concatenate([[0], np.cumsum(np.bincount(edge_graph, minlength=len(present)))])
    local = place[ends[:, edge_order]] - node_offset[edge_graph[edge_order]]
    packed = GraphSet(
        nodes=nodes[torch.from_numpy(order)],
        edges=edges[torch.from_numpy(edge_order)],
        ends=torch.from_numpy(local),
        node_offset=torch.from_numpy(node_offset),
        edge_offset=torch.from_numpy(edge_offset),
    )
    if fitted is not None:
        fitted = replace(fitted, node_source=fitted.node_source[order])
    rows = _follow(node_rows, place), _follow(edge_rows, places(edge_order)), torch.from_numpy(graph_rows)
    return Assembled(packed, tables, schema, *rows, fitted)


def first_rows(became: IntArray, count: int) -> IntArray:
    """For each row of the tensors, the first input row that became it."""
    source = np.empty(count, np.int64)
    good = np.flatnonzero(became >= 0)[::-1]
    source[became[good]] = good
    return source


def _follow(rows: IntArray, place: IntArray) -> Tensor:
    """Where each row's node or edge went."""
    moved = np.full(len(rows), -1, np.int64)
    moved[rows >= 0] = place[rows[rows >= 0]]
    return torch.from_numpy(moved)
