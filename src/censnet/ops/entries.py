"""The entries of an incidence matrix in sorted order, what is counted on them, and the degrees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor

from censnet.ops.caching import cached, forget, stored
from censnet.ops.checks import check_numbering, check_same_device, check_shape
from censnet.ops.segments import EndPairs, Segments, chunk_segments

T = TypeVar("T")


@dataclass(frozen=True)
class IncidenceCSR:
    """The 2E entries of T in row order: at each node its edges, and the node at the other end of each."""

    edge: Segments
    other: Segments


@dataclass(frozen=True, eq=False)
class Entries:
    """The entries of an incidence matrix, sorted and counted when first needed, and cached. `Incidence` documents them.

    What depends on the ends alone is here; the products with the matrix are those of `Incidence`.
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

    @property
    def num_edges(self) -> int:
        return self.ends.shape[1]

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

    # -- starts and ends -----------------------------------------------------------------------------------------

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

    # -- degrees --------------------------------------------------------------------------------------------------

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

    # -- the graphs of a batch ------------------------------------------------------------------------------------

    @cached
    def edge_owner(self) -> Tensor | None:
        """The graph of each edge, (E,); None where there is one graph."""
        return None if self.owner is None else self.owner[self.ends[0]]

    def count(self, side: Literal["node", "edge"]) -> Tensor:
        """The number of nodes, or edges, of each graph. (graphs,)"""
        owner = self.owner if side == "node" else self.edge_owner
        if owner is None:
            return torch.tensor([self.num_nodes if side == "node" else self.num_edges], device=self.ends.device)
        return torch.zeros(self.num_graphs, dtype=torch.int64, device=owner.device).index_add(
            0, owner, torch.ones_like(owner)
        )

    @cached
    def _by_graph(self) -> dict[str, Segments]:
        """The nodes, or edges, of each graph."""
        return {}

    @cached
    def present(self) -> dict[str, Tensor]:
        """ "node" and "edge" -> 1, or 0 for those of graphs that only pad the batch, (N,) and (E,); empty: all are."""
        return {}

    # -- tensors that follow from the ends, such as powers of the degrees, cached -----------------------------------

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
