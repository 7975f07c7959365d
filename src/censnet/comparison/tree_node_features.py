"""Hand-made features of nodes, and of whole graphs, for boosted trees."""

from __future__ import annotations

import numpy as np
import pandas as pd

from censnet.comparison.tree_edge_features import number_pairs
from censnet.comparison.tree_graph import TreeGraph, aggregates, as_features, count_neighbors
from censnet.comparison.tree_labels import LabelSums, sum_by
from censnet.ops.arrays import Array


def node_features(graph: TreeGraph, known: LabelSums | None = None) -> pd.DataFrame:
    """Features of every node.

    - its own columns; its edges and distinct neighbors in each direction, and neighbors in both;
    - mean, minimum and maximum of the numeric columns of its edges and of its neighbors, in each direction;
    - with `known`: counts of the kinds of known labels of neighbors and their shares (mean and spread) by direction.

    A loop makes a node its own neighbor; its label is left out there. Edges without a direction are of one kind.

    Args:
        graph: the tables.
        known: the labels of nodes that may be seen, by every row but themselves.
    """
    u, v, count = graph.source, graph.target, graph.num_nodes
    everybody = np.arange(count)
    found: dict[str, Array] = {str(name): graph.nodes[name].to_numpy() for name in graph.nodes}
    if graph.directed:
        pair, reverse = number_pairs(u, v, count)
        mutual = np.isin(pair, reverse) & ~pd.Series(pair).duplicated().to_numpy() & (u != v)
        found["mutual neighbors"] = np.bincount(u[mutual], minlength=count)
    edge_numbers, node_numbers = graph.edge_numbers, graph.node_numbers
    for side in graph.sides:
        found[f"{side.way}: edges"] = np.bincount(side.node, minlength=count)
        found[f"{side.way}: neighbors"] = count_neighbors(side, count)
        found |= aggregates(edge_numbers.iloc[side.edge], side.node, everybody, count, side.way)
        neighbors = node_numbers.iloc[side.neighbor].add_prefix("neighbor ")
        found |= aggregates(neighbors, side.node, everybody, count, side.way)
        if known is not None:
            seen = known.channels[side.neighbor] * (side.node != side.neighbor)[:, None]
            found |= known.describe(sum_by(side.node, seen, count), f"{side.way}: known labels,")
    return as_features(found, count)


def graph_features(graph: TreeGraph, own: pd.DataFrame, node_owner: Array, structure: bool = True) -> pd.DataFrame:
    """Features of every graph of a set.

    - its own columns;
    - with `structure`: how many nodes and edges it has, and mean, minimum, maximum and sum of each numeric column of
      its nodes, of its edges, and of the number of edges of a node.

    Args:
        graph: the tables of all graphs.
        own: (G, .) the columns of the graphs themselves.
        node_owner: (N,) the graph of each node.
        structure: whether anything but the own columns is seen.
    """
    count = len(own)
    found: dict[str, Array] = {str(name): own[name].to_numpy() for name in own}
    if not structure:
        return as_features(found, count)
    edge_owner = node_owner[graph.source]
    degree = sum((np.bincount(side.node, minlength=graph.num_nodes) for side in graph.sides), np.zeros(graph.num_nodes))
    nodes = graph.node_numbers.assign(degree=degree)
    for name, columns, owner in (("node", nodes, node_owner), ("edge", graph.edge_numbers, edge_owner)):
        found[f"{name}s"] = np.bincount(owner, minlength=count)
        found |= aggregates(columns, owner, np.arange(count), count, name)
        total = sum_by(owner, columns.to_numpy(np.float64), count)
        found |= {f"{name}: {column} sum": total[:, place] for place, column in enumerate(columns)}
    return as_features(found, count)
