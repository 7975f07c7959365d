"""The incidence matrix T of a graph, never built: its entries in sorted order, and the degrees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor

from censnet.ops.caching import cached, forget, store, stored, unchecked
from censnet.ops.checks import check_floating, check_numbering, check_same_device, check_shape
from censnet.ops.segments import EndPairs, Segments, chunk_segments, linear_map, sum_pairs, sum_segments, take_rows
from censnet.text import plural

T = TypeVar("T")


@dataclass(frozen=True)
class IncidenceCSR:
    """The 2E entries of T in row order: at each node its edges, and the node at the other end of each."""

    edge: Segments
    other: Segments


@dataclass(frozen=True)
class OrderedPairs:
    """Edges by their start and end.

    Args:
        edges: the edges of each pair; None while a program is traced.
        pair: the pair of each edge.
        opposite: the pair of the edges in the opposite direction, or the number of pairs where there are none.
        count: the number of edges of each pair.
    """

    edges: Segments | None
    pair: Tensor
    opposite: Tensor
    count: Tensor


@dataclass(frozen=True, eq=False)
class Incidence:
    """The incidence matrix of a graph: the N x E matrix T with T[i, e] = 1 if edge e touches node i, as its entries.

    An edge is given once, by its two ends. Their order matters to S and R alone, which mark the node where an edge
    starts and that where it ends. Parallel edges are edges of their own. A loop has one end, so
    its column of T has a single 1. What depends on the ends alone (the sorted order, the degrees, the scalings) is
    computed when first needed, and cached.

    Args:
        ends: the two nodes of each edge, numbered from 0.
        num_nodes: N, isolated nodes included.
        owner: the graph of each node in a batch of many (PyG: ``batch``). No edge joins two graphs.
        num_graphs: the number of graphs in the batch.

    Shape:
        ends (2, E), owner (N,).

    Example:
        >>> path = Incidence(ends=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
        >>> path
        Incidence(3 nodes, 2 edges)
        >>> path.gather(torch.tensor([[1.0], [2.0], [3.0]])).tolist()
        [[3.0], [5.0]]
        >>> path.scatter(torch.tensor([[1.0], [10.0]])).tolist()
        [[1.0], [11.0], [10.0]]
        >>> path.node_degree.tolist(), path.edge_degree.tolist()
        ([2, 3, 2], [2, 2])
    """

    ends: Tensor
    num_nodes: int
    owner: Tensor | None = None
    num_graphs: int = 1

    def __post_init__(self) -> None:
        check_shape("ends", self.ends, (2, None), "(2, E), one column for each edge")
        if torch.compiler.is_compiling():
            return  # values cannot be looked at while a program is traced
        check_numbering("ends", self.ends, self.num_nodes, "node")
        self._check_owner()
        if self.ends.dtype != torch.int64:
            object.__setattr__(self, "ends", self.ends.long())

    def _check_owner(self) -> None:
        if self.owner is None:
            if self.num_graphs != 1:
                raise ValueError(
                    f"num_graphs is {self.num_graphs}, expected 1 without owner: give the graph of each node"
                )
            return
        check_shape("owner", self.owner, (self.num_nodes,), "(N,), one graph for each node")
        check_same_device("owner", self.owner, "ends", self.ends)
        check_numbering("owner", self.owner, self.num_graphs, "graph")
        first, second = self.owner[self.ends.long()]
        apart = (first != second).nonzero()
        if len(apart):
            edge = int(apart[0])
            raise ValueError(
                f"ends[:, {edge}] is {self.ends[:, edge].tolist()}, in the graphs {int(first[edge])} and "
                f"{int(second[edge])}, expected both in one: no edge joins two graphs of a batch"
            )

    @classmethod
    def from_known(
        cls, ends: Tensor, num_nodes: int, owner: Tensor | None = None, num_graphs: int = 1, **known: object
    ) -> Incidence:
        """An incidence that needs no check, with cached properties (such as `node_degree`) that are known already."""
        return unchecked(cls, ends=ends, num_nodes=num_nodes, owner=owner, num_graphs=num_graphs, **known)

    def __repr__(self) -> str:
        graphs = f", {self.num_graphs} {plural(self.num_graphs, 'graph')}" if self.owner is not None else ""
        nodes, edges = plural(self.num_nodes, "node"), plural(self.num_edges, "edge")
        return f"Incidence({self.num_nodes} {nodes}, {self.num_edges} {edges}{graphs})"

    @property
    def num_edges(self) -> int:
        return self.ends.shape[1]

    def to(self, device: torch.device | str) -> Incidence:
        """The same incidence on another device; cached properties are computed there again."""
        owner = None if self.owner is None else self.owner.to(device)
        return Incidence(self.ends.to(device), self.num_nodes, owner, self.num_graphs)

    # -- T and its transpose ------------------------------------------------------------------------------------

    def gather(self, nodes: Tensor) -> Tensor:
        """T^t x: on each edge, the sum over its two ends. (N, d) -> (E, d)."""
        self._check("nodes", nodes, self.num_nodes, "(N, d)")
        return linear_map(nodes, self._gather, self._scatter)

    def scatter(self, edges: Tensor) -> Tensor:
        """T z: on each node, the sum over its edges. (E, d) -> (N, d)."""
        self._check("edges", edges, self.num_edges, "(E, d)")
        return self.total(linear_map(edges, self._scatter, self._gather))

    def mean(self, edges: Tensor) -> Tensor:
        """D^-1 T z: on each node, the mean over its edges, 0 where there are none. (E, d) -> (N, d)."""
        self._check("edges", edges, self.num_edges, "(E, d)")
        at_entries, at_pairs = self._shares(torch.promote_types(edges.dtype, torch.float32))
        there = partial(sum_segments, segments=self.csr.edge, weight=at_entries)
        return self.total(linear_map(edges, there, partial(sum_pairs, pairs=self.pairs, weight=at_pairs)))

    def total(self, sums: Tensor, end: Literal[0, 1] | None = None) -> Tensor:
        """Sums over the edges at each node; where these are a part of a graph, over those of all parts (`parts`).

        They are over the edges that start (`end` 0) or end (1) at a node, or over all.
        """
        return sums

    # -- S and R, the two halves of T: where an edge starts, and where it ends --------------------------------------

    def gather_start(self, nodes: Tensor) -> Tensor:
        """S^t x: on each edge, the node where it starts. (N, d) -> (E, d)."""
        return self._gather_end_of(0, nodes)

    def gather_end(self, nodes: Tensor) -> Tensor:
        """R^t x: on each edge, the node where it ends. (N, d) -> (E, d)."""
        return self._gather_end_of(1, nodes)

    def scatter_start(self, edges: Tensor) -> Tensor:
        """S z: on each node, the sum over the edges that start there. (E, d) -> (N, d)."""
        return self._scatter_end_of(0, edges)

    def scatter_end(self, edges: Tensor) -> Tensor:
        """R z: on each node, the sum over the edges that end there. (E, d) -> (N, d)."""
        return self._scatter_end_of(1, edges)

    def scatter_both(self, edges: Tensor) -> tuple[Tensor, Tensor]:
        """S z and R z, whose gradient is one sum over both. (E, d) -> (N, d), (N, d)."""
        self._check("edges", edges, self.num_edges, "(E, d)")
        if torch.compiler.is_compiling():
            return self.scatter_start(edges), self.scatter_end(edges)
        both = linear_map(edges, self._scatter_both, lambda grad: sum_pairs(grad, self.stacked_pairs))
        both = self.total(both)
        return both[: self.num_nodes], both[self.num_nodes :]

    def _scatter_both(self, edges: Tensor) -> Tensor:
        return torch.cat([sum_segments(edges, segments) for segments in self.end_segments])

    def _gather_end_of(self, end: int, nodes: Tensor) -> Tensor:
        self._check("nodes", nodes, self.num_nodes, "(N, d)")
        if torch.compiler.is_compiling():
            return nodes[self.ends[end]]
        index, segments = self.end_index[end], self.end_segments[end]
        return linear_map(nodes, lambda x: take_rows(x, index), lambda grad: sum_segments(grad, segments))

    def _scatter_end_of(self, end: Literal[0, 1], edges: Tensor) -> Tensor:
        self._check("edges", edges, self.num_edges, "(E, d)")
        if torch.compiler.is_compiling():
            return edges.new_zeros(self.num_nodes, edges.shape[1]).index_add(0, self.ends[end], edges)
        index, segments = self.end_index[end], self.end_segments[end]
        sums = linear_map(edges, lambda z: sum_segments(z, segments), lambda grad: take_rows(grad, index))
        return self.total(sums, end)

    # -- B = R - S, whose columns change sign with the order of the ends; 0 for a loop --------------------------------

    def difference(self, nodes: Tensor) -> Tensor:
        """B^t x: on each edge, its end minus its start. (N, d) -> (E, d)."""
        self._check("nodes", nodes, self.num_nodes, "(N, d)")
        if torch.compiler.is_compiling():
            return nodes[self.ends[1]] - nodes[self.ends[0]]
        return linear_map(nodes, self._difference, self._divergence)

    def divergence(self, edges: Tensor) -> Tensor:
        """B z: on each node, the sum over the edges that end there minus those that start there. (E, d) -> (N, d)."""
        self._check("edges", edges, self.num_edges, "(E, d)")
        if torch.compiler.is_compiling():
            out = edges.new_zeros(self.num_nodes, edges.shape[1])
            return out.index_add(0, self.ends[1], edges).index_add(0, self.ends[0], edges, alpha=-1)
        return linear_map(edges, self._divergence, self._difference)

    def _difference(self, nodes: Tensor) -> Tensor:
        return sum_pairs(nodes, self.pairs, self.signs[0])

    def _divergence(self, edges: Tensor) -> Tensor:
        return sum_segments(edges, self.csr.edge, self.signs[1])

    @cached
    def signs(self) -> tuple[Tensor, Tensor]:
        """The entries of B in the order of `pairs`, and in that of `csr`: -1 at the start of an edge, 1 at its end."""
        node = torch.ones_like(self.ends).cumsum(0) * 2 - 3  # -1 and 1
        node = node if self.is_loop is None else node * ~self.is_loop
        edge = self.csr.edge.index.long()
        at_end = (
            self.ends[1][edge] != self.csr.other.index.long()
        )  # the node at the other end is not its end: it is here
        weight = torch.where(at_end, 1, -1)
        weight = weight if self.is_loop is None else weight * ~self.is_loop[edge]
        return node.t().reshape(-1).float(), weight.float()

    @cached
    def canonical(self) -> tuple[Incidence, Tensor]:
        """The same edges, each from its lower to its higher node, and for each -1 where that exchanged its ends. (E,)

        What is computed on these is the same to the bit, whatever the order of the ends was.
        """
        low, high = torch.minimum(*self.ends), torch.maximum(*self.ends)
        same = unchecked(Incidence, ends=torch.stack([low, high]), num_nodes=self.num_nodes, owner=self.owner,
                         num_graphs=self.num_graphs)  # fmt: skip
        known = stored(self, "edge_owner", "is_loop", "_by_graph", "node_degree", "edge_count", "edge_degree",
                       "multiplicity", "is_first")  # fmt: skip
        store(same, **known)
        return same, torch.where(self.ends[0] > self.ends[1], -1.0, 1.0)

    @cached
    def end_segments(self) -> tuple[Segments, Segments]:
        """The edges that start at each node, and those that end there; sorted once."""
        start, end = (self._segments_by(end, torch.bincount(end, minlength=self.num_nodes)) for end in self.ends)
        return start, end

    @cached
    def other_segments(self) -> tuple[Segments, Segments]:
        """The nodes at the other end of the edges that start at each node, and of those that end there."""
        start, end = (
            replace(segments, index=index.index_select(0, segments.index))
            for segments, index in zip(self.end_segments, self.end_index[::-1], strict=True)
        )
        return start, end

    @cached
    def end_index(self) -> tuple[Tensor, Tensor]:
        """The node where each edge starts, and that where it ends, as indices of segments. (E,) each"""
        start, end = self.ends.to(self._integer).contiguous().unbind(0)
        return start, end

    @cached
    def stacked_pairs(self) -> EndPairs:
        """Where each edge reads a table of all nodes as starts and, below, of all nodes as ends: s and N + t."""
        shift = torch.tensor([[0], [self.num_nodes]], device=self.ends.device)
        return EndPairs((self.ends + shift).t().reshape(-1).to(self._integer))

    @cached
    def end_degree(self) -> Tensor:
        """The number of edges that start at each node, and of those that end there; a loop does both. (2, N)"""
        ones = torch.ones_like(self.ends[0])
        none = torch.zeros(self.num_nodes, dtype=torch.int64, device=ones.device)
        return torch.stack([none.index_add(0, end, ones) for end in self.ends])

    @property
    def out_degree(self) -> Tensor:
        """The number of edges that start at each node, parallel ones each. (N,)"""
        return self.end_degree[0]

    @property
    def in_degree(self) -> Tensor:
        """The number of edges that end at each node, parallel ones each. (N,)"""
        return self.end_degree[1]

    @cached
    def neighbor_count(self) -> Tensor:
        """The number of distinct nodes that the edges of a node lead to, and of those that they come from. (2, N)"""
        first = (self.port == 0).long()
        none = torch.zeros(self.num_nodes, dtype=torch.int64, device=first.device)
        return torch.stack([none.index_add(0, end, first) for end in self.ends])

    # -- edges between the same two nodes ---------------------------------------------------------------------------

    def sum_parallel(self, edges: Tensor) -> Tensor:
        """On each edge, the sum over all edges with the same start and end, itself included. (E, d) -> (E, d)."""
        return self._sum_pairs_of(edges, self._ordered_pairs.pair)

    def sum_reciprocal(self, edges: Tensor) -> Tensor:
        """On each edge, the sum over the edges from its end to its start. (E, d) -> (E, d)."""
        return self._sum_pairs_of(edges, self._ordered_pairs.opposite)

    def _sum_pairs_of(self, edges: Tensor, read: Tensor) -> Tensor:
        self._check("edges", edges, self.num_edges, "(E, d)")
        known = self._ordered_pairs
        if torch.compiler.is_compiling():
            sums = edges.new_zeros(known.count.shape[0] + 1, edges.shape[1]).index_add(0, known.pair, edges)
            return sums[read]

        segments = known.edges
        assert segments is not None

        def multiply(z: Tensor) -> Tensor:  # symmetric: if e reads f, f reads e
            sums = sum_segments(z, segments)
            return take_rows(torch.cat([sums, sums.new_zeros(1, sums.shape[1])]), read.to(self._integer))

        return linear_map(edges, multiply, multiply)

    @property
    def parallel_count(self) -> Tensor:
        """The number of edges with the same start and end, itself included. (E,)"""
        return self._ordered_pairs.count[self._ordered_pairs.pair]

    @cached
    def reciprocal_count(self) -> Tensor:
        """The number of edges from its end to its start; a loop is its own. (E,)"""
        count = self._ordered_pairs.count
        return torch.cat([count, count.new_zeros(1)])[self._ordered_pairs.opposite]

    @cached
    def port(self) -> Tensor:
        """The number of edges with the same start and end that stand before an edge. (E,)"""
        pair, count = self._ordered_pairs.pair, self._ordered_pairs.count
        order = torch.argsort(pair, stable=True)
        rank = torch.arange(self.num_edges, device=order.device) - (torch.cumsum(count, 0) - count)[pair[order]]
        return torch.zeros_like(order).index_copy(0, order, rank)

    @cached
    def _ordered_pairs(self) -> OrderedPairs:
        start, end = self.ends
        key, back = start * self.num_nodes + end, end * self.num_nodes + start
        if torch.compiler.is_compiling():  # a pair is the place of its first edge: as many places as edges, some empty
            return self._pairs_of(key.sort().values, key, back)
        return self._pairs_of(torch.unique(key), key, back)

    def _pairs_of(self, known: Tensor, key: Tensor, back: Tensor) -> OrderedPairs:
        """The pair of each edge, as its first place in the sorted `known`."""
        pair, none = torch.searchsorted(known, key), known.shape[0]
        count = torch.zeros_like(known).index_add(0, pair, torch.ones_like(pair))
        at = torch.searchsorted(known, back)
        found = torch.cat([known, known.new_full((1,), -1)])[at] == back
        segments = None if torch.compiler.is_compiling() else self._segments_by(pair, count)
        return OrderedPairs(segments, pair, torch.where(found, at, none), count)

    # -- shared by both -------------------------------------------------------------------------------------------

    def _check(self, name: str, rows: Tensor, count: int, meaning: str) -> None:
        check_shape(name, rows, (count, None), meaning)
        check_floating(name, rows)
        check_same_device(name, rows, "incidence", self.ends)

    def _gather(self, nodes: Tensor) -> Tensor:
        return sum_pairs(nodes, self.pairs, self.pair_mask)

    def _scatter(self, edges: Tensor) -> Tensor:
        return sum_segments(edges, self.csr.edge, self.csr_mask)

    def _shares(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """One over the edges of the node, at each entry of `csr` and of `pairs`."""

        def make() -> tuple[Tensor, Tensor]:
            share = (1 / self.edge_count.clamp(min=1).double()).to(dtype)
            node = self.ends.sum(0)[self.csr.edge.index] - self.csr.other.index
            masked = (share[node], self.csr_mask), (share[self.pairs.index], self.pair_mask)
            of_csr, of_pairs = (each if mask is None else each * mask for each, mask in masked)
            return of_csr, of_pairs

        return self.cache(("share", dtype), make)

    # -- the order of the entries -------------------------------------------------------------------------------

    @cached
    def pairs(self) -> EndPairs:
        """The entries of T^t in row order: edge e's two ends."""
        return EndPairs(self.ends.t().reshape(-1).to(self._integer))

    @cached
    def csr(self) -> IncidenceCSR:
        """The entries of T in row order; sorted once."""
        entries = self.entries
        forget(self, "entries")  # seldom needed again, and as large as its copy here
        other = self.ends.flip(0).reshape(-1)[entries.index].to(self._integer)
        edge = entries.index % max(self.num_edges, 1)
        return IncidenceCSR(replace(entries, index=edge), replace(entries, index=other))

    @cached
    def entries(self) -> Segments:
        """At each node, which of the 2E ends (first ends first, then second ends) are there."""
        csr: IncidenceCSR | None = stored(self, "csr").get("csr")
        if csr is None or self.is_loop is not None:
            return self._segments_by(self.ends.reshape(-1), self._count_entries)
        edge = csr.edge.index
        is_second = self.ends[1].index_select(0, edge) != csr.other.index
        return replace(csr.edge, index=edge + self.num_edges * is_second)

    @cached
    def crossed(self) -> Tensor:
        """The node at the other end, of the first and of the second end of each edge. (2, E)"""
        return self.ends.flip(0).to(self._integer)

    def _segments_by(self, group: Tensor, lengths: Tensor) -> Segments:
        """The positions that belong to each group, in their order; `lengths` says how many."""
        order = torch.argsort(group, stable=True)
        chunk_order, offset, chunks = chunk_segments(lengths)
        if chunk_order is not None:
            order = order[chunk_order]
        return Segments(order.to(self._integer), offset.to(self._integer), chunks)

    @cached
    def is_loop(self) -> Tensor | None:
        """Which edges are loops, or None if none is."""
        loops = self.ends[0] == self.ends[1]
        return loops if bool(loops.any()) else None

    @cached
    def pair_mask(self) -> Tensor | None:
        """For each entry of `pairs`, 1, or 0 for the second end of a loop; None if all are 1."""
        if self.is_loop is None:
            return None
        return torch.stack([torch.ones_like(self.is_loop), ~self.is_loop], dim=1).reshape(-1)

    @cached
    def csr_mask(self) -> Tensor | None:
        """For each entry of `csr`, 1, or 0 for the second one of a loop; None if all are 1."""
        if self.is_loop is None:
            return None
        order = torch.argsort(self.csr.edge.index.long(), stable=True)  # brings the two entries of an edge together
        mask = torch.ones_like(order, dtype=torch.bool)
        mask[order[1::2]] = ~self.is_loop
        return mask

    @property
    def _integer(self) -> torch.dtype:
        return torch.int32 if 2 * self.num_edges < 2**31 and self.num_nodes < 2**31 else torch.int64

    # -- the graphs of a batch ----------------------------------------------------------------------------------

    @cached
    def edge_owner(self) -> Tensor | None:
        """The graph of each edge, (E,); None where there is one graph."""
        return None if self.owner is None else self.owner[self.ends[0]]

    def pool(self, rows: Tensor, side: Literal["node", "edge"]) -> Tensor:
        """The sum over the nodes, or the edges, of each graph. (N, d) or (E, d) -> (graphs, d)."""
        owner = self.owner if side == "node" else self.edge_owner
        if owner is None:
            return rows.sum(0, keepdim=True)
        if torch.compiler.is_compiling():
            return rows.new_zeros(self.num_graphs, rows.shape[1]).index_add(0, owner, rows)
        if side not in self._by_graph:
            self._by_graph[side] = self._segments_by(owner, self.count(side))
        segments = self._by_graph[side]
        return linear_map(rows, lambda x: sum_segments(x, segments), lambda grad: grad.index_select(0, owner))

    @cached
    def _by_graph(self) -> dict[str, Segments]:
        """The nodes, or edges, of each graph."""
        return {}

    def count(self, side: Literal["node", "edge"]) -> Tensor:
        """The number of nodes, or edges, of each graph. (graphs,)"""
        owner = self.owner if side == "node" else self.edge_owner
        if owner is None:
            return torch.tensor([self.num_nodes if side == "node" else self.num_edges], device=self.ends.device)
        return torch.zeros(self.num_graphs, dtype=torch.int64, device=owner.device).index_add(
            0, owner, torch.ones_like(owner)
        )

    @cached
    def present(self) -> dict[str, Tensor]:
        """ "node" and "edge" -> 1, or 0 for those of graphs that only pad the batch, (N,) and (E,); empty: all are."""
        return {}

    # -- degrees ------------------------------------------------------------------------------------------------

    @cached
    def _count_entries(self) -> Tensor:
        """The number of entries at each node, a loop's two among them."""
        ones = torch.ones_like(self.ends.reshape(-1))
        return torch.zeros(self.num_nodes, dtype=torch.int64, device=ones.device).index_add(
            0, self.ends.reshape(-1), ones
        )

    @cached
    def sorted_pairs(self) -> tuple[Tensor, Tensor]:
        """A number for each unordered pair of ends, and the edges sorted by it."""
        low, high = torch.minimum(*self.ends), torch.maximum(*self.ends)  # amin over two rows is forty times slower
        key = low * self.num_nodes + high
        return key, torch.argsort(key, stable=True)

    @cached
    def edge_count(self) -> Tensor:
        """The number of edges at each node, a loop once. (N,)"""
        loops = (self.ends[0] == self.ends[1]).long()
        return self._count_entries.index_add(0, self.ends[0], -loops)

    @cached
    def multiplicity(self) -> Tensor:
        """The number of edges with the same two ends, itself included. (E,)"""
        key, order = self.sorted_pairs
        ordered = key[order]
        return torch.searchsorted(ordered, key, right=True) - torch.searchsorted(ordered, key)

    @cached
    def is_first(self) -> Tensor:
        """Which edges are the first with their two ends: one for each set of parallel edges. (E,)"""
        key, order = self.sorted_pairs
        ordered = key[order]
        new = (ordered != ordered.roll(1)) | (torch.arange(self.num_edges, device=key.device) == 0)
        return torch.zeros_like(new).index_copy(0, order, new)

    @cached
    def node_degree(self) -> Tensor:
        """D_v, 1 + the number of distinct neighbors. (N,)"""
        low, high = self.ends
        new = (self.is_first & (low != high)).long()
        return torch.ones_like(self._count_entries).index_add(0, low, new).index_add(0, high, new)

    @cached
    def edge_degree(self) -> Tensor:
        """D_e, 1 + the number of other edges that share a node; deg u + deg v - m_uv, and deg u for a loop. (E,)"""
        low, high = self.edge_count[self.ends]
        return torch.where(self.ends[0] == self.ends[1], low, low + high - self.multiplicity)

    # -- tensors that follow from the ends, such as powers of the degrees, cached ---------------------------------

    @cached
    def _cache(self) -> dict[tuple[object, ...], Any]:
        return {}

    def cache(self, key: tuple[object, ...], make: Callable[[], T]) -> T:
        """The result of `make`, computed once for each key. Only for what follows from the ends and the key."""
        if torch.compiler.is_compiling():
            return make()
        if key not in self._cache:
            self._cache[key] = make()
        found: T = self._cache[key]
        return found
