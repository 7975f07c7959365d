"""The order of rows in memory: nodes and edges by graph, edges by their lower end."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from censnet.ops.arrays import Array, IntArray
from censnet.ops.graph_set import GraphSet

BLOCK = 1 << 18


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


def take_rows(features: Tensor, rows: Array) -> Tensor:
    """These rows, written block by block: nothing else as large is needed. All of them in order are the same tensor."""
    if len(rows) == len(features) and np.array_equal(rows, np.arange(len(rows))):
        return features
    out, index = torch.empty(len(rows), features.shape[1], dtype=features.dtype), torch.from_numpy(rows)
    for start in range(0, len(rows), BLOCK):
        block = slice(start, start + BLOCK)
        torch.index_select(features, 0, index[block], out=out[block])
    return out


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
