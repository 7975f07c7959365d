r"""Weisfeiler-Lehman colors: numbers for nodes that follow from their features and neighborhoods, not from their order.

The color of a node starts as a hash of its features. Where some nodes have the same, each round hashes the color of a
node together with the sum of the hashed colors of its neighbors,

.. math:: c_i \leftarrow h\Bigl(c_i + h\bigl(\textstyle\sum_{j \sim i} h(c_j)\bigr)\Bigr),

so that two nodes keep one color only if nothing within that many hops distinguishes them. All sums are of integers,
hence the same in any order of the nodes and edges, on any device.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from censnet.ops.graph_set import GraphSet
from censnet.ops.incidence import Incidence

ROUNDS = 4
_BLOCK = 2**20  # numbers hashed at once
_STEP = -0x61C8864680B583EB  # 2^64 / golden ratio: the increment and factors of splitmix64, as signed numbers
_FACTORS = (-0x40A7B892E31B1A47, -0x6B2FB644ECCEEE15)
_hashes: WeakIdKeyDictionary = WeakIdKeyDictionary()  # of features, while they live


def splitmix64(x: Tensor) -> Tensor:
    """A hash of each 64-bit integer, another for each (the finalizer of splitmix64)."""
    x = x + _STEP
    for shift, factor in zip((30, 27), _FACTORS, strict=True):
        x = (x ^ _shift_right(x, shift)) * factor
    return x ^ _shift_right(x, 31)


def _shift_right(x: Tensor, bits: int) -> Tensor:
    """A shift that brings in zeros, also for negative numbers."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def hash_rows(features: Tensor) -> Tensor:
    """A hash of each row of features, dense or sparse CSR, equal where the rows are; cached while they live. (N,)"""
    if features not in _hashes:
        _hashes[features] = _hash_sparse(features) if features.layout == torch.sparse_csr else _hash_dense(features)
    found: Tensor = _hashes[features]
    return found


def _hash_dense(features: Tensor) -> Tensor:
    width = features.shape[1]
    column = splitmix64(torch.arange(width, device=features.device))
    found = [splitmix64(_bits(part) + column).sum(1) for part in torch.split(features, max(1, _BLOCK // max(1, width)))]
    return torch.cat(found)


def _hash_sparse(features: Tensor) -> Tensor:
    first, column, value = features.crow_indices().long(), features.col_indices().long(), features.values()
    row = torch.arange(len(features), device=value.device).repeat_interleave(first.diff())
    return torch.zeros_like(first[1:]).index_add(0, row, splitmix64(_bits(value) + splitmix64(column)))


def _bits(values: Tensor) -> Tensor:
    """Numbers as integers, equal where the numbers are: -0 is 0."""
    return (values.double() + 0.0).view(torch.int64)


def node_colors(features: Tensor, incidence: Incidence, rounds: int = ROUNDS) -> Tensor:
    """A number for each node, different for each.

    Nodes that have the same color after all rounds are distinguished by their order alone.

    Args:
        features: of the nodes, dense or sparse CSR.
        incidence: of the graph.
        rounds: at most, where features alone do not distinguish all nodes.

    Shape:
        features (N, d) -> (N,) of 64-bit integers.

    Example:
        >>> path = Incidence(torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
        >>> colors = node_colors(torch.zeros(3, 1), path)
        >>> again = node_colors(torch.tensor([[0.0], [5.0], [7.0]]), path)
        >>> node_colors(torch.tensor([[7.0], [5.0], [0.0]]), path).flip(0).equal(again)
        True
    """
    color = hash_rows(features)
    low, high = incidence.ends
    other = low != high
    for _ in range(rounds):
        if not _has_ties(color):
            return color
        passed = splitmix64(color)
        around = torch.zeros_like(color)
        around = around.index_add(0, low, passed[high] * other).index_add(0, high, passed[low] * other)
        color = splitmix64(color + splitmix64(around))
    return color if not _has_ties(color) else splitmix64(color + splitmix64(_occurrence(color)))


def hash_graphs(graphs: GraphSet, rounds: int = ROUNDS) -> Tensor:
    """A hash of each graph with all its features, the same for any order of its nodes and edges. -> (graphs,)

    Graphs that differ only beyond `rounds` hops have the same hash.
    """
    node, edge = hash_rows(graphs.nodes), hash_rows(graphs.edges)
    every = torch.arange(len(graphs), device=node.device)
    owner, edge_owner = (every.repeat_interleave(offset.diff()) for offset in (graphs.node_offset, graphs.edge_offset))
    low, high = graphs.ends + graphs.node_offset[edge_owner]
    for _ in range(rounds):
        around = torch.zeros_like(node).index_add(0, low, splitmix64(edge + splitmix64(node[high])))
        node = splitmix64(3 * node + around.index_add(0, high, splitmix64(edge + splitmix64(node[low]))))
    return splitmix64(
        torch.zeros_like(every).index_add(0, owner, splitmix64(node)).index_add(0, edge_owner, splitmix64(edge))
    )


def _has_ties(color: Tensor) -> bool:
    ordered = color.sort().values
    return bool((ordered[1:] == ordered[:-1]).any())


def _occurrence(color: Tensor) -> Tensor:
    """The number of nodes before each that have its color. (N,)"""
    ordered, order = color.sort(stable=True)
    position = torch.arange(len(color), device=color.device)
    new = torch.ones_like(ordered, dtype=torch.bool)
    new[1:] = ordered[1:] != ordered[:-1]
    first = torch.cummax(torch.where(new, position, 0), 0).values
    return torch.empty_like(order).index_copy(0, order, position - first)


def rademacher(color: Tensor, width: int) -> Tensor:
    """For each node -1 or 1 in each channel, drawn by its color alone. (N,) -> (N, width), of 8-bit integers"""
    bit = torch.arange(64, device=color.device)
    words = [splitmix64(splitmix64(color) + number) for number in range((width + 63) // 64)]
    signs = [((word.unsqueeze(1) >> bit) & 1).to(torch.int8) * 2 - 1 for word in words]
    return torch.cat(signs, dim=1)[:, :width]
