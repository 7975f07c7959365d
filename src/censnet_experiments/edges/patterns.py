"""Random circulant directed multigraphs whose nodes are labeled by the patterns that they are part of.

The graphs and tasks follow Egressy et al. (AAAI 2024, arXiv 2306.11586): does a network see direction and parallel
edges at all?
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import scipy.sparse as sp

from censnet.data.tables.files import Tables
from censnet.ops.arrays import Array

LONGEST_CYCLE = 6
LABELS = (
    "deg_in", "deg_out", "fan_in", "fan_out", "cycle2", "cycle3", "cycle4", "cycle5", "cycle6",
    "scatter_gather", "biclique",
)  # fmt: skip


def sample_patterns(seed: int, num_nodes: int = 8192, degree: int = 6, spread: float = 11.1) -> Tables:
    """Draw a circulant multigraph and label its nodes.

    Of each of the `num_nodes * degree / 2` directed edges the source u is uniform, and the target is rounded from
    N(u, spread), modulo the number of nodes. A loop is drawn again; parallel edges stay. With the defaults 35 % of the
    nodes have the label `deg_in`, as many `deg_out`, 33 % `fan_in`, as many `fan_out`, 19 % `cycle2`, 34 % `cycle3`.

    Args:
        seed: of the graph. Training, validation and test graphs have different ones.
        num_nodes: number of nodes.
        degree: mean number of edges at a node.
        spread: standard deviation of the distance between both ends.

    Returns:
        `nodes`: id and the columns of `LABELS`, 0 or 1; `edges`: source, target.
    """
    draw = np.random.default_rng(seed)
    source = draw.integers(0, num_nodes, num_nodes * degree // 2)
    target = source.copy()
    while (loop := source == target).any():
        target[loop] = np.rint(draw.normal(source[loop], spread)).astype(np.int64) % num_nodes
    nodes = pd.DataFrame({"id": np.arange(num_nodes), **label_nodes(source, target, num_nodes)})
    return Tables(nodes, pd.DataFrame({"source": source, "target": target}))


def label_nodes(source: Array, target: Array, num_nodes: int) -> dict[str, Array]:
    """The labels of every node of a directed multigraph, exactly.

    - `deg_in`, `deg_out`: more than 3 edges come in, or go out; parallel edges count each.
    - `fan_in`, `fan_out`: more than 3 distinct nodes send, or receive; parallel edges count once, loops not at all.
    - `cycle2` to `cycle6`: the node lies on a directed cycle of exactly that many distinct nodes. Chords do not matter.
    - `scatter_gather`: the node is the end (the sink) of a scatter-gather: some other node a has edges to two or more
      distinct nodes b, each of which has an edge to it; all of them are distinct.
    - `biclique`: the node is a receiver in a directed biclique K(2, 2): two nodes send to it, and both send to one
      other node as well; all four are distinct.

    Args:
        source, target: (E,) ends.
        num_nodes: N.

    Shape:
        every label (N,), 0 or 1.
    """
    ones = np.ones(len(source))
    simple = source != target
    adjacency = sp.csr_matrix((ones[simple], (source[simple], target[simple])), (num_nodes, num_nodes))
    adjacency.data[:] = 1  # parallel edges are added up at first
    found = {
        "deg_in": np.bincount(target, minlength=num_nodes) > 3,
        "deg_out": np.bincount(source, minlength=num_nodes) > 3,
        "fan_in": np.asarray(adjacency.sum(0)).ravel() > 3,
        "fan_out": np.asarray(adjacency.sum(1)).ravel() > 3,
    }
    cycles = on_cycles(adjacency)
    found |= {f"cycle{length}": cycles[length] for length in range(2, LONGEST_CYCLE + 1)}
    found["scatter_gather"] = _two_in_some_row(adjacency @ adjacency)  # of a and c, how many b with a -> b -> c
    found["biclique"] = _two_in_some_row(adjacency.T @ adjacency)  # of c and d, how many send to both
    return {name: values.astype(np.int64) for name, values in found.items()}


def on_cycles(adjacency: sp.csr_matrix) -> dict[int, Array]:
    """Whether each node lies on a directed cycle of 2, 3, ... distinct nodes: length -> (N,) bool.

    All directed paths without a repeated node are listed from each start, one step at a time, among nodes that are
    larger than the start; a path that has an edge back to its start is a cycle, which marks all its nodes.
    """
    num_nodes = adjacency.shape[0]
    start, ends = adjacency.indptr, adjacency.indices
    found = {length: np.zeros(num_nodes, bool) for length in range(2, LONGEST_CYCLE + 1)}
    paths = np.arange(num_nodes)[:, None]
    edge_keys = np.sort(np.repeat(np.arange(num_nodes), np.diff(start)).astype(np.int64) * num_nodes + ends)
    for length in range(2, LONGEST_CYCLE + 1):
        last = paths[:, -1]
        size = start[last + 1] - start[last]
        row = np.repeat(np.arange(len(paths)), size)
        offset = np.arange(len(row)) - np.repeat(np.cumsum(size) - size, size)
        step = ends[np.repeat(start[last], size) + offset].astype(np.int64)
        new = (step > paths[row, 0]) & (paths[row] != step[:, None]).all(1)
        paths = np.column_stack([paths[row[new]], step[new]])
        closing = paths[:, -1] * num_nodes + paths[:, 0]
        place = np.minimum(np.searchsorted(edge_keys, closing), max(len(edge_keys) - 1, 0))
        closed = edge_keys[place] == closing if len(edge_keys) else np.zeros(len(paths), bool)
        found[length][paths[closed].ravel()] = True
    return found


def _two_in_some_row(matrix: sp.csr_matrix) -> Array:
    """Whether a column has an entry of 2 or more off the diagonal."""
    matrix = matrix.tocoo()
    found = np.zeros(matrix.shape[1], bool)
    found[matrix.col[(matrix.data >= 2) & (matrix.row != matrix.col)]] = True
    return found
