"""Padding: graphs without a label, by which all batches of a size have the same number of nodes and of edges.

A recorded step (`step_graphs.py`) needs tensors of the same shapes each time. Padding graphs are graphs of the set like
others, so that nothing below this module knows of them, but for batch norm, which leaves them out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from censnet.ops.graph_set import GraphSet
from censnet.ops.segments import LONGEST, offsets

SPREAD = 4.0  # standard deviations around the mean size of a batch that padding covers
MOST_NODES, MOST_EDGES = 256, 512  # of one padding graph


@dataclass(frozen=True)
class Capacity:
    """The nodes and edges that a padded batch has beside those of the constant part of its padding graphs."""

    nodes: int
    edges: int


class Padding:
    """A set of graphs with padding graphs at its end, and which of these a batch takes.

    For each size in `edge_sizes` there is a graph with so many edges, and one with as many nodes without any edge; for
    each in `node_sizes` a graph with one node more than that, and one of a single node. A batch has one of each two, so
    that the number of its graphs is always the same, and its nodes and edges are what is asked for.

    Args:
        graphs: the set.
        index: the graphs that batches are drawn from.
        batch_size: of the largest batch.

    Example:
        >>> triangle = torch.tensor([[0, 1, 2], [1, 2, 0]])
        >>> path = torch.tensor([[0], [1]])
        >>> from censnet.ops.graph import Graph
        >>> both = [Graph(torch.ones(n, 4), torch.ones(e.shape[1], 2), e) for n, e in ((3, triangle), (2, path))]
        >>> padding = Padding(GraphSet.pack(both), torch.arange(2), batch_size=2)
        >>> sizes = set()
        >>> for chosen in ([0, 0], [0, 1], [1, 1]):
        ...     batch = padding.graphs.batch(padding.fill(torch.tensor(chosen)))
        ...     sizes.add((batch.num_nodes, batch.num_edges, batch.num_graphs))
        >>> len(sizes)
        1
    """

    def __init__(self, graphs: GraphSet, index: Tensor, batch_size: int) -> None:
        counts = torch.stack([graphs.node_offset.diff(), graphs.edge_offset.diff()]).cpu()
        own = counts[:, index.cpu()].double()
        self.counts, self.num_graphs = counts, len(graphs)
        self.mean, self.deviation = own.mean(1), own.std(1, correction=0)
        span = [2 * SPREAD * float(each) * math.sqrt(batch_size) + 2 for each in self.deviation]
        self.node_sizes, self.edge_sizes = sizes(math.ceil(span[0]), MOST_NODES), sizes(math.ceil(span[1]), MOST_EDGES)
        self.graphs = append(graphs, self._shapes())
        self.capacity: dict[int, Capacity] = {}

    def fill(self, chosen: Tensor) -> Tensor | None:
        """The graphs of a batch and their padding; None where the batch is too large, or too small, to be padded."""
        total = self.counts[:, chosen].sum(1)
        capacity = self._capacity(len(chosen))
        nodes = greedy(capacity.nodes - int(total[0]), self.node_sizes)
        edges = greedy(capacity.edges - int(total[1]), self.edge_sizes)
        if nodes is None or edges is None:
            return None
        taken = [2 * number + (not full) for number, full in enumerate((*edges, *nodes))]
        return torch.cat([chosen, self.num_graphs + torch.tensor(taken, dtype=torch.int64)])

    def _capacity(self, count: int) -> Capacity:
        if count not in self.capacity:
            most = self.mean * count + SPREAD * self.deviation * math.sqrt(count) + 1
            self.capacity[count] = Capacity(int(most[0]), int(most[1]))
        return self.capacity[count]

    def _shapes(self) -> list[tuple[int, Tensor]]:
        """The number of nodes and the ends of the edges of each padding graph, in pairs: full and empty."""
        shapes = []
        for size in self.edge_sizes:
            ends = first_pairs(size)
            width = int(ends.max()) + 1
            shapes += [(width, ends), (width, ends[:, :0])]
        for size in self.node_sizes:
            shapes += [(size + 1, torch.empty(2, 0, dtype=torch.int64)), (1, torch.empty(2, 0, dtype=torch.int64))]
        return shapes


def can_pad(graphs: GraphSet) -> bool:
    """Whether the steps of batches of these graphs do the same operations, whatever graphs are in them."""
    plain = not graphs.directed and graphs.times is None and not graphs.odd_width
    largest = int(max(graphs.node_offset.diff().max(), graphs.edge_offset.diff().max()))
    return plain and largest <= LONGEST and not bool((graphs.ends[0] == graphs.ends[1]).any())


def sizes(span: int, most: int) -> list[int]:
    """Sizes of which some sum to any number up to `span`, none larger than `most`, in falling order.

    >>> sizes(10, 4)
    [4, 4, 2, 1]
    """
    powers = [1 << power for power in range(most.bit_length()) if 1 << power <= min(most, max(span, 1))]
    further = max(0, math.ceil((span - sum(powers)) / most))
    return [most] * further + powers[::-1]


def greedy(total: int, falling: Sequence[int]) -> list[bool] | None:
    """Those of these sizes that sum to the total; None where none do.

    >>> greedy(6, [4, 4, 2, 1])
    [True, False, True, False]
    """
    taken = []
    for size in falling:
        taken.append(size <= total)
        total -= size if taken[-1] else 0
    return taken if total == 0 else None


def first_pairs(count: int) -> Tensor:
    """So many edges between as few nodes as can have them, none parallel. (2, count)"""
    width = math.isqrt(2 * count) + 2
    second, first = torch.tril_indices(width, width, -1)
    return torch.stack([first, second])[:, :count]


def append(graphs: GraphSet, shapes: Sequence[tuple[int, Tensor]]) -> GraphSet:
    """The set with graphs of these numbers of nodes and these ends of edges at its end, all of whose features are 0."""
    device = graphs.nodes.device
    node_counts = torch.tensor([nodes for nodes, _ in shapes], device=device)
    edge_counts = torch.tensor([ends.shape[1] for _, ends in shapes], device=device)
    own = graphs.graph_features
    return GraphSet(
        nodes=_with_zeros(graphs.nodes, int(node_counts.sum())),
        edges=_with_zeros(graphs.edges, int(edge_counts.sum())),
        ends=torch.cat([graphs.ends, *(ends.to(device) for _, ends in shapes)], dim=1),
        node_offset=offsets(torch.cat([graphs.node_offset.diff(), node_counts])),
        edge_offset=offsets(torch.cat([graphs.edge_offset.diff(), edge_counts])),
        graph_features=None if own is None else _with_zeros(own, len(shapes)),
    )


def _with_zeros(rows: Tensor, count: int) -> Tensor:
    return torch.cat([rows, rows.new_zeros(count, rows.shape[1])])
