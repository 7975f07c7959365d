"""The nodes, edges and graphs that a map shows: all of them, or a sample in which every edge has both of its ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from censnet.levels import Level
from censnet.ops.arrays import Array
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet

MOST_GRAPHS = 10_000


@dataclass(frozen=True, eq=False)
class Shown:
    """The rows of the tensors that are shown; of many graphs the nodes and edges of the first graphs, in order."""

    nodes: Array
    edges: Array
    graphs: Array | None = None

    def of(self, level: str) -> Array | None:
        """The rows of a level; None for graphs where there is one alone."""
        return {Level.NODE: self.nodes, Level.EDGE: self.edges, Level.GRAPH: self.graphs}[Level(level)]


def choose_shown(graph: Graph | GraphSet, most: int, first: Mapping[str, Array]) -> Shown:
    """Choose at most so many points, at random.

    Args:
        graph: the graph, or many.
        most: points of all levels together.
        first: level -> rows that are shown in any case, as far as there is room, such as the worst errors.
    """
    rng = np.random.default_rng(0)
    if isinstance(graph, GraphSet):
        return _choose_graphs(graph, most, first, rng)
    ends = graph.ends.cpu().numpy()
    order = _order(graph.num_edges, first.get(Level.EDGE), rng)
    wanted = first.get(Level.NODE)
    wanted = np.empty(0, np.int64) if wanted is None else wanted[: most // 2]
    low, high = 0, graph.num_edges
    while low < high:  # the most edges that there is room for with their ends
        middle = (low + high + 1) // 2
        if middle + len(np.union1d(ends[:, order[:middle]], wanted)) <= most:
            low = middle
        else:
            high = middle - 1
    edges = np.sort(order[:low])
    nodes = np.union1d(ends[:, edges], wanted).astype(np.int64)
    others = np.setdiff1d(np.arange(graph.num_nodes), nodes)
    room = max(most - low - len(nodes), 0)
    others = others if len(others) <= room else rng.choice(others, room, replace=False)
    return Shown(np.union1d(nodes, others), edges)


def _choose_graphs(graph: GraphSet, most: int, first: Mapping[str, Array], rng: np.random.Generator) -> Shown:
    """Graphs as points, and the nodes and edges of as many of them as there is room for."""
    wanted = [first[Level.GRAPH]] if Level.GRAPH in first else []
    wanted += [level.owners(graph).cpu().numpy()[first[level]] for level in (Level.NODE, Level.EDGE) if level in first]
    order = _order(len(graph), np.concatenate(wanted) if wanted else None, rng)
    graphs = order[: min(MOST_GRAPHS, max(most // 2, 1))]
    size = (graph.node_offset.diff() + graph.edge_offset.diff()).cpu().numpy()[graphs]
    detailed = graphs[: int(np.searchsorted(size.cumsum(), most - len(graphs), side="right"))]
    numbers = torch.from_numpy(detailed)
    nodes, edges = (level.rows_of(graph, numbers).cpu().numpy() for level in (Level.NODE, Level.EDGE))
    return Shown(nodes, edges, graphs)


def _order(count: int, first: Array | None, rng: np.random.Generator) -> Array:
    """All numbers at random, some of them in front."""
    order = rng.permutation(count)
    if first is None or not len(first):
        return order
    _, place = np.unique(first, return_index=True)
    first = first[np.sort(place)]
    return np.concatenate([first, order[~np.isin(order, first)]])
