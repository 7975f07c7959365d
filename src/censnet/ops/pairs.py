"""Pairs of nodes that no edge joins, drawn without an N x N matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from censnet.ops.graph import Graph, GraphSet

Array = np.ndarray[Any, Any]


class PairSpace:
    """A number for each unordered pair of different nodes, in whole-number arithmetic, and the pair of each number.

    The n nodes of a graph stand in a circle. The pair u, v is named by the node its shorter arc starts from and by the
    length of that arc, 1 to (n - 1) // 2; where n is even, the n / 2 pairs of opposite nodes come after the others.
    With `owner`, pairs are within one graph, and graph after graph has its numbers.

    Example:
        >>> square = PairSpace(4)
        >>> square.num_pairs, square.rank(np.array([0, 3]), np.array([2, 0])), square.pair(np.array([4, 3])).tolist()
        (6, array([4, 3]), [[0, 0], [2, 3]])
    """

    def __init__(self, num_nodes: int, owner: Array | None = None) -> None:
        size = np.array([num_nodes]) if owner is None else np.bincount(owner)
        self._owner, self._size, self._start = owner, size, np.cumsum(size) - size
        if owner is not None:
            self._order = np.argsort(owner, kind="stable")
            self._place = np.empty(num_nodes, dtype=np.int64)
            self._place[self._order] = np.arange(num_nodes)
        pairs = size * (size - 1) // 2
        self._base, self.num_pairs = np.cumsum(pairs) - pairs, int(pairs.sum())

    def rank(self, first: Array, second: Array) -> Array:
        """The number of each pair."""
        if self._owner is None:
            return _rank(first, second, self._size[0])
        graph = self._owner[first]
        if (graph != self._owner[second]).any():
            edge = int(np.flatnonzero(graph != self._owner[second])[0])
            raise ValueError(f"edge {edge} joins two graphs of the union, expected both ends in one")
        u, v = self._place[first] - self._start[graph], self._place[second] - self._start[graph]
        return np.asarray(self._base[graph] + _rank(u, v, self._size[graph]))

    def pair(self, rank: Array) -> Array:
        """The pair with each number, the lower node first. (k,) -> (2, k)."""
        graph = np.searchsorted(self._base, rank, side="right") - 1
        n = np.maximum(self._size[graph], 1)
        rest, half = rank - self._base[graph], (n - 1) // 2
        opposite = rest >= n * half
        u = np.where(opposite, rest - n * half, rest // np.maximum(half, 1))
        arc = np.where(opposite, n // 2, rest % np.maximum(half, 1) + 1)
        nodes = self._start[graph] + np.stack([u, (u + arc) % n])
        return np.sort(nodes if self._owner is None else self._order[nodes], axis=0)


class TwoSided:
    """The same for pairs of one node of either side, as users and what they rate: no other pair could be a link.

    Example:
        >>> rated = TwoSided(np.array([0, 0, 1, 1, 1]))
        >>> rated.num_pairs, rated.rank(np.array([1, 4]), np.array([2, 0])), rated.pair(np.array([3, 2])).tolist()
        (6, array([3, 2]), [[1, 0], [2, 4]])
    """

    def __init__(self, side: Array) -> None:
        self._nodes = [np.flatnonzero(side == number) for number in range(2)]
        self._side, self._place = side, np.zeros(len(side), dtype=np.int64)
        for nodes in self._nodes:
            self._place[nodes] = np.arange(len(nodes))
        self.num_pairs = len(self._nodes[0]) * len(self._nodes[1])

    def rank(self, first: Array, second: Array) -> Array:
        """The number of each pair."""
        swap = self._side[first] == 1
        u, v = np.where(swap, second, first), np.where(swap, first, second)
        return np.asarray(self._place[u] * len(self._nodes[1]) + self._place[v])

    def pair(self, rank: Array) -> Array:
        """The pair with each number, the lower node first. (k,) -> (2, k)."""
        width = max(len(self._nodes[1]), 1)
        return np.sort(np.stack([self._nodes[0][rank // width], self._nodes[1][rank % width]]), axis=0)


def find_bipartition(graph: Graph) -> Tensor | None:
    """Where edges of a graph lead from nodes of one kind to nodes of another, the kind of each: 0, 1, or -1 of no edge.

    So they do if no node is both a source and a target, unless that may well be chance or no matter: edges are few for
    so many nodes, as in a list of couples, or join more than half of the pairs between the two, as in a star.

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
    joined = len(sorted_unique((source * graph.num_nodes + target).numpy()))
    first, second = (int((side == number).sum()) for number in range(2))
    return side if 3 * (first + second) <= 4 * joined <= 2 * first * second else None


def pair_space(graph: Graph) -> PairSpace | TwoSided:
    """The pairs of nodes of a graph that could be links."""
    side = find_bipartition(graph)
    if side is not None:
        return TwoSided(side.numpy())
    return PairSpace(graph.num_nodes, None if graph.owner is None else graph.owner.cpu().numpy())


def _rank(u: Array, v: Array, n: Any) -> Array:
    """The number of each pair among those of its own graph, which has n nodes."""
    arc = v - u
    arc += np.where(arc < 0, n, 0)
    swap = (2 * arc > n) | ((2 * arc == n) & (u > v))
    u, arc = np.where(swap, v, u), np.where(swap, n - arc, arc)
    half = (n - 1) // 2
    return np.asarray(np.where(arc <= half, u * half + arc - 1, n * half + u))


def sorted_unique(numbers: Array) -> Array:
    """The different numbers, sorted. (numpy's `unique` hashes whole numbers, which is 50 times slower on many.)"""
    numbers = np.sort(numbers)
    return numbers[_changes(numbers)]


def unique_inverse(numbers: Array) -> tuple[Array, Array]:
    """The different numbers, sorted, and for each number its place among them."""
    order = np.argsort(numbers, kind="stable")
    new = _changes(numbers[order])
    place = np.empty(len(numbers), dtype=np.int64)
    place[order] = np.cumsum(new) - 1
    return numbers[order[new]], place


def _changes(numbers: Array) -> Array:
    new = np.ones(len(numbers), dtype=bool)
    new[1:] = numbers[1:] != numbers[:-1]
    return new


def sample_non_edges(space: PairSpace | TwoSided, pairs: Array, count: int, rng: np.random.Generator) -> Array:
    """`count` different numbers of pairs that are not among `pairs` (sorted), in random order.

    The k-th number missing from the sorted e is k + (how many e_j have e_j - j <= k), so what is drawn are positions
    among the missing ones: nothing has to be rejected for being a link, however dense the graph.
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


def negative_edges(graph: Graph, count: int, seed: int = 0) -> Tensor:
    """Distinct pairs of nodes that no edge of the graph joins, uniformly at random. (2, count), the lower node first.

    They are of those that could be links: see `pair_space`.

    Example:
        >>> triangle_and_dot = Graph(torch.ones(4, 1), torch.ones(3, 1), torch.tensor([[0, 1, 2], [1, 2, 0]]))
        >>> sorted(negative_edges(triangle_and_dot, 3).t().tolist())
        [[0, 3], [1, 3], [2, 3]]
    """
    ends = graph.ends.cpu().numpy()
    space = pair_space(graph)
    proper = ends[:, ends[0] != ends[1]]
    pairs = sorted_unique(space.rank(proper[0], proper[1]))
    return torch.from_numpy(space.pair(sample_non_edges(space, pairs, count, np.random.default_rng(seed))))


def global_ends(graph: Graph | GraphSet) -> Array:
    """The two end nodes of each edge, numbered over all graphs of a set. (2, E)"""
    ends = graph.ends.cpu()
    if isinstance(graph, GraphSet):
        ends = ends + graph.node_offset[:-1].cpu().repeat_interleave(graph.edge_offset.diff().cpu())
    return ends.numpy()
