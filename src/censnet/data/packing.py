"""What tables become, and many graphs packed end to end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from censnet.data.problems import Problems
from censnet.data.schema import Schema
from censnet.data.tables import Tables
from censnet.ops.graph import Graph, GraphSet

Whole = NDArray[np.int64]


@dataclass(frozen=True)
class Assembled:
    """What became of the tables; the fields of `Dataset`."""

    graph: Graph | GraphSet
    tables: Tables
    schema: Schema
    node_rows: Tensor
    edge_rows: Tensor
    graph_rows: Tensor


def pack(
    tables: Tables,
    schema: Schema,
    nodes: Tensor,
    edges: Tensor,
    ends: Whole,
    graph: Whole,
    node_rows: Whole,
    edge_rows: Whole,
    problems: Problems,
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
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    node_offset = np.concatenate([[0], np.cumsum(size[present])])
    edge_graph = number[ends[0]]
    edge_order = np.argsort(edge_graph, kind="stable")
    edge_place = np.empty_like(edge_order)
    edge_place[edge_order] = np.arange(len(edge_order))
    edge_offset = np.concatenate([[0], np.cumsum(np.bincount(edge_graph, minlength=len(present)))])
    local = place[ends[:, edge_order]] - node_offset[edge_graph[edge_order]]
    packed = GraphSet(
        nodes=nodes[torch.from_numpy(order)],
        edges=edges[torch.from_numpy(edge_order)],
        ends=torch.from_numpy(local),
        node_offset=torch.from_numpy(node_offset),
        edge_offset=torch.from_numpy(edge_offset),
    )
    rows = [_follow(node_rows, place), _follow(edge_rows, edge_place), torch.from_numpy(graph_rows)]
    return Assembled(packed, tables, schema, *rows)


def _follow(rows: Whole, place: Whole) -> Tensor:
    """Where each row's node or edge went."""
    moved = np.full(len(rows), -1, np.int64)
    moved[rows >= 0] = place[rows[rows >= 0]]
    return torch.from_numpy(moved)
