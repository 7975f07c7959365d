"""Pairs of nodes: numbering, negative sampling and bipartition, without an N x N matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from censnet.ops.arrays import Array, sorted_unique
from censnet.ops.graph import Graph
from censnet.ops.incidence import Incidence
from censnet.ops.segments import offsets

FEW_PAIRS = 2**20  # ordered pairs up to which all are taken in the place of a sample
REVERSED = 0.5  # share of the negative pairs of a directed graph that are links turned around, as far as there are any


class NodePairs:
    """A number for each unordered pair of different nodes, in integer arithmetic, and the pair of each number.

    The n nodes of a graph stand in a circle. The pair u, v is named by the node its shorter arc starts from and by the
    length of that arc, 1 to (n - 1) // 2; where n is even, the n / 2 pairs of opposite nodes come after the others.

    Args:
        num_nodes: of the graph, or of all graphs of a batch.
        owner: the graph of each node of a batch. Pairs are then within one graph, numbered graph after graph.
        bipartite: the side of each node of a bipartite graph, 0 or 1. Pairs are then of one node of either side.

    Example:
        >>> square = NodePairs(4)
        >>> square.num_pairs, square.rank(np.array([0, 3]), np.array([2, 0])), square.pair(np.array([4, 3])).tolist()
        (6, array([4, 3]), [[0, 0], [2, 3]])
        >>> rated = NodePairs(5, bipartite=np.array([0, 0, 1, 1, 1]))
        >>> rated.num_pairs, rated.rank(np.array([1, 4]), np.array([2, 0])), rated.pair(np.array([3, 2])).tolist()
        (6, array([3, 2]), [[1, 0], [2, 4]])
    """

    is_ordered = False

    def __init__(self, num_nodes: int, owner: Array | None = None, bipartite: Array | None = None) -> None:
        self._owner, self._side = owner, bipartite
        if bipartite is not None:
            self._sides = [np.flatnonzero(bipartite == number) for number in range(2)]
            self._position = np.zeros(num_nodes, dtype=np.int64)  # of each node on its side
            for nodes in self._sides:
                self._position[nodes] = np.arange(len(nodes))
            self.num_pairs = len(self._sides[0]) * len(self._sides[1])
            return
        size = np.array([num_nodes]) if owner is None else np.bincount(owner)
        self._size, self._start = size, np.cumsum(size) - size
        if owner is not None:
            self._order = np.argsort(owner, kind="stable")
            self._position = np.empty(num_nodes, dtype=np.int64)
            self._position[self._order] = np.arange(num_nodes)
        pairs = size * (size - 1) // (1 if self.is_ordered else 2)
        self._base, self.num_pairs = np.cumsum(pairs) - pairs, int(pairs.sum())

    @classmethod
    def of(cls, graph: Graph) -> NodePairs:
        """The pairs of nodes of a graph that could be links: see `find_bipartition`."""
        side = find_bipartition(graph)
        owner = None if graph.owner is None else graph.owner.cpu().numpy()
        return cls(graph.num_nodes, owner, None if side is None else side.numpy())

    @property
    def is_bipartite(self) -> bool:
        """Whether pairs are of one node of either side."""
        return self._side is not None

    def rank(self, first: Array, second: Array) -> Array:
        """The number of each pair."""
        if self._side is not None:
            swap = self._side[first] == 1
            u, v = np.where(swap, second, first), np.where(swap, first, second)
            return np.asarray(self._position[u] * len(self._sides[1]) + self._position[v])
        if self._owner is None:
            return self._rank(first, second, self._size[0])
        graph = self._owner[first]
        if (graph != self._owner[second]).any():
            edge = int(np.flatnonzero(graph != self._owner[second])[0])
            raise ValueError(f"edge {edge} joins two graphs of the batch, expected both ends in one")
        u, v = self._position[first] - self._start[graph], self._position[second] - self._start[graph]
        return np.asarray(self._base[graph] + self._rank(u, v, self._size[graph]))

    def _rank(self, u: Array, v: Array, n: Any) -> Array:
        """The number of each pair among those of its own graph, which has n nodes."""
        return _rank(u, v, n)

    def pair(self, rank: Array) -> Array:
        """The pair with each number, the lower node first. (k,) -> (2, k)."""
        if self._side is not None:
            width = max(len(self._sides[1]), 1)
            return np.sort(np.stack([self._sides[0][rank // width], self._sides[1][rank % width]]), axis=0)
        graph = np.searchsorted(self._base, rank, side="right") - 1
        n = np.maximum(self._size[graph], 1)
        rest, half = rank - self._base[graph], (n - 1) // 2
        opposite = rest >= n * half
        u = np.where(opposite, rest - n * half, rest // np.maximum(half, 1))
        arc = np.where(opposite, n // 2, rest % np.maximum(half, 1) + 1)
        nodes = self._start[graph] + np.stack([u, (u + arc) % n])
        return np.sort(nodes if self._owner is None else self._order[nodes], axis=0)


class OrderedNodePairs(NodePairs):
    """As `NodePairs` for ordered pairs: u, v and v, u have numbers of their own. Pairs of two sides are from 0 to 1.

    Example:
        >>> square = OrderedNodePairs(4)
        >>> square.num_pairs, square.rank(np.array([0, 3]), np.array([2, 0])), square.pair(np.array([1, 9])).tolist()
        (12, array([1, 9]), [[0, 3], [2, 0]])
    """

    is_ordered = True

    def _rank(self, u: Array, v: Array, n: Any) -> Array:
        return np.asarray(u * (n - 1) + v - (v > u))

    def pair(self, rank: Array) -> Array:
        """The pair with each number, the node where it starts first. (k,) -> (2, k)."""
        if self._side is not None:
            width = max(len(self._sides[1]), 1)
            return np.stack([self._sides[0][rank // width], self._sides[1][rank % width]])
        graph = np.searchsorted(self._base, rank, side="right") - 1
        rest, others = rank - self._base[graph], np.maximum(self._size[graph] - 1, 1)
        u, v = rest // others, rest % others
        nodes = self._start[graph] + np.stack([u, v + (v >= u)])
        return np.asarray(nodes if self._owner is None else self._order[nodes])


def find_bipartition(graph: Graph) -> Tensor | None:
    """The side of each node of a bipartite graph: 0, 1, or -1 without an edge; None if the graph is not bipartite.

    Bipartite is a graph in which no node is both a source and a target, unless that may well be chance or no matter:
    edges are few for so many nodes, as in a list of couples, or link more than half of the pairs between the two sides,
    as in a star.

    Example:
        >>> ratings = torch.tensor([[0, 0, 1, 2, 3, 3], [4, 6, 4, 5, 5, 6]])
        >>> find_bipartition(Graph(torch.ones(8, 1), torch.ones(6, 1), ratings))
        tensor([ 0,  0,  0,  0,  1,  1,  1, -1])
    """
    if graph.owner is not None or graph.num_edges == 0:
        return None
    source, target = graph.ends.cpu()
    side = torch.full((graph.num_nodes,), -1)
    side[source], side[target] = 0, 1
    if bool((side[source] == 1).any()):
        return None
    linked = len(sorted_unique((source * graph.num_nodes + target).numpy()))
    first, second = (int((side == number).sum()) for number in range(2))
    return side if 3 * (first + second) <= 4 * linked <= 2 * first * second else None


def _rank(u: Array, v: Array, n: Any) -> Array:
    """The number of each pair among those of its own graph, which has n nodes."""
    arc = v - u
    arc += np.where(arc < 0, n, 0)
    swap = (2 * arc > n) | ((2 * arc == n) & (u > v))
    u, arc = np.where(swap, v, u), np.where(swap, n - arc, arc)
    half = (n - 1) // 2
    return np.asarray(np.where(arc <= half, u * half + arc - 1, n * half + u))


def sample_non_edges(space: NodePairs, pairs: Array, count: int, rng: np.random.Generator) -> Array:
    """Negative sampling: `count` different numbers of pairs that are not among `pairs` (sorted), in random order.

    The k-th number missing from the sorted e is k + (how many e_j have e_j - j <= k), so positions
    among the missing ones are drawn: no pair has to be rejected for being a link, however dense the graph.
    """
    num_missing = space.num_pairs - len(pairs)
    if count > num_missing:
        raise ValueError(
            f"{count:,} pairs without a link were asked for, but only {num_missing:,} of the {space.num_pairs:,} pairs "
            "of nodes have none: hide fewer links"
        )
    if num_missing <= 4 * count:
        position = rng.permutation(num_missing)[:count]
    else:
        position = np.empty(0, dtype=np.int64)
        while len(position) < count:  # at most a quarter of the positions are taken: each turn fills most of the gap
            more = rng.integers(num_missing, size=count - len(position))
            position = sorted_unique(np.concatenate([position, more]))
    missing = position + np.searchsorted(pairs - np.arange(len(pairs)), position, side="right")
    return rng.permutation(missing)


def sample_ordered_non_edges(
    space: OrderedNodePairs, taken: Array, links: Array, count: int, rng: np.random.Generator
) -> Array:
    """Negative sampling in a directed graph: `count` different numbers of ordered pairs that are not among `taken`.

    Random pairs of nodes alone would not tell whether the direction of a link was learnt: nearly all of them are apart
    in both. So half of the negatives (`REVERSED`) are links turned around, whose reverse is not among `taken`; fewer
    where there are not so many, and none between two sides, where links go one way.

    Args:
        space: the numbers of the pairs.
        taken: the pairs that no negative may be, sorted: all edges, and negatives that were drawn before.
        links: the links to turn around.
        count: how many.
        rng: of the draw.
    """
    back = np.empty(0, dtype=np.int64)
    if not space.is_bipartite:
        first, second = space.pair(links)
        back = space.rank(second, first)
        back = rng.permutation(back[~np.isin(back, taken)])[: int(REVERSED * count)]
    others = sample_non_edges(space, sorted_unique(np.concatenate([taken, back])), count - len(back), rng)
    return np.concatenate([back, others])


def count_ordered_pairs(incidence: Incidence) -> int:
    """The number of ordered pairs of nodes of one graph, a node with itself included."""
    if incidence.owner is None:
        return incidence.num_nodes**2
    return int(incidence.cache(("ordered pairs",), lambda: incidence.count("node").square().sum().cpu()))


def count_linked_pairs(incidence: Incidence) -> int:
    """The number of ordered pairs with an edge, a node with itself included: the ones of A~."""
    return int(incidence.cache(("linked pairs",), lambda: incidence.node_degree.sum().cpu()))


def sample_ordered_pairs(incidence: Incidence, count: int) -> Tensor:
    """Ordered pairs of nodes of one graph at random, a node with itself included; all, if they are few. -> (2, k)

    Example:
        >>> two = Incidence(torch.tensor([[0], [1]]), num_nodes=3, owner=torch.tensor([0, 0, 1]), num_graphs=2)
        >>> sample_ordered_pairs(two, 5).t().tolist()
        [[0, 0], [0, 1], [1, 0], [1, 1], [2, 2]]
    """
    total, device = count_ordered_pairs(incidence), incidence.ends.device
    few = total <= max(count, FEW_PAIRS)
    number = torch.arange(total, device=device) if few else torch.randint(total, (count,), device=device)
    if incidence.owner is None:
        return torch.stack([number // incidence.num_nodes, number % incidence.num_nodes])
    size = incidence.count("node")
    order, start = torch.argsort(incidence.owner, stable=True), offsets(size)
    offset = offsets(size[incidence.owner])  # node i has a pair with each node of its graph
    first = torch.searchsorted(offset, number, right=True) - 1
    return torch.stack([first, order[start[incidence.owner[first]] + number - offset[first]]])


def has_edge(incidence: Incidence, first: Tensor, second: Tensor) -> Tensor:
    """Whether each pair of nodes has an edge; a node counts as linked to itself. (k,), (k,) -> (k,)"""
    if incidence.num_edges == 0:
        return first == second
    key, order = incidence.sorted_pairs
    known = incidence.cache(("sorted keys",), lambda: key[order])
    sought = torch.minimum(first, second) * incidence.num_nodes + torch.maximum(first, second)
    position = torch.searchsorted(known, sought).clamp(max=len(known) - 1)
    return (known[position] == sought) | (first == second)
