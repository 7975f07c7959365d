"""Batching: gather the rows and the pre-computed incidence of selected graphs of a `GraphSet`.

A batch is made in every step of training, so few and narrow operations count here: everything known of the set is
gathered, never computed again, and integers are moved in pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from censnet.ops.caching import cached, forget, store
from censnet.ops.incidence import Incidence, IncidenceCSR
from censnet.ops.segments import LONGEST, EndPairs, Segments

_PAIR = 2**32 + 1  # one number twice, in the two halves of an int64


@dataclass(frozen=True)
class BatchIndex:
    """The rows of selected graphs in a set, and their rows in the batch.

    Shape:
        rows and owner (N,), edge_rows and edge_owner (E,): for each row of the batch, its row in the set and its graph.
        bounds (2, B + 1): the offsets of the nodes and of the edges of each graph in the batch.
        node_shift (B,), edge_shift (E,): the row in the set minus the row in the batch, of nodes and of edges.
        count (N or E, whichever is more): 0, 1, 2, ...
    """

    rows: Tensor
    edge_rows: Tensor
    owner: Tensor
    edge_owner: Tensor
    bounds: Tensor
    node_shift: Tensor
    edge_shift: Tensor
    count: Tensor


def batch_index(starts: Tensor, graphs: Tensor, sizes: tuple[int, int] | None = None) -> BatchIndex:
    """The rows of these graphs; `starts` (4, G) has the first node and edge of each, and how many there are.

    Without `sizes`, the number of nodes and edges of them all, a GPU is waited for.
    """
    picked = starts.index_select(1, graphs)
    bounds = picked.new_zeros(2, len(graphs) + 1)
    torch.cumsum(picked[2:], 1, out=bounds[:, 1:])
    num_nodes, num_edges = bounds[:, -1].tolist() if sizes is None else sizes
    owner = torch.repeat_interleave(picked[2], output_size=num_nodes)
    edge_owner = torch.repeat_interleave(picked[3], output_size=num_edges)
    shift = picked[:2].sub_(bounds[:, :-1])
    count = torch.arange(max(num_nodes, num_edges), device=graphs.device)
    rows = shift[0].index_select(0, owner).add_(count[:num_nodes])
    edge_shift = shift[1].index_select(0, edge_owner)
    edge_rows = edge_shift + count[:num_edges]
    return BatchIndex(rows, edge_rows, owner, edge_owner, bounds, shift[0], edge_shift, count)


@dataclass(frozen=True, eq=False)
class PackedIncidence:
    """The incidence of a whole set, from which batches gather theirs.

    Args:
        whole: the incidence of all graphs as one batch, in the order of the set.
        largest: the most nodes or edges that a graph has. A segment of more than `LONGEST` is chunked (`segments.py`),
            also that of a hub: its entries are then in another order, and a batch sorts its own.
    """

    whole: Incidence
    largest: int

    def of_batch(self, index: BatchIndex) -> Incidence:
        """The incidence of some graphs, with its sorted order and degrees.

        The two ends of an edge, and any two entries of T in sorted order, are two adjacent int32, moved and renumbered
        as one int64. An edge has two entries, and graphs are contiguous, so those of the edges `edge_rows`
        are the entries of T in the batch.
        """
        if self.whole._integer != torch.int32:  # too many entries for pairs
            shift = index.node_shift.index_select(0, index.edge_owner)
            ends = self.whole.ends.index_select(1, index.edge_rows).sub_(shift)
            return Incidence(ends, len(index.rows), index.owner, len(index.node_shift))
        shift = index.node_shift.mul(_PAIR).index_select(0, index.edge_owner)
        of_edge = self._of_edges.index_select(0, index.edge_rows)
        around, degree = self._of_nodes.index_select(0, index.rows).view(torch.int32).view(-1, 2).unbind(1)
        ends, num_edges = (of_edge[:, 0] - shift).view(torch.int32), len(shift)
        incidence = Incidence.from_known(  # gathered from a checked set
            torch.empty(2, num_edges, dtype=torch.int64, device=ends.device).copy_(ends.view(-1, 2).t()),
            len(index.rows),
            index.owner,
            len(index.node_shift),
            pairs=EndPairs(ends),
            edge_owner=index.edge_owner,
            node_degree=degree.long(),
            edge_degree=of_edge[:, 1].contiguous(),
        )
        if self.whole.is_loop is None:
            store(incidence, is_loop=None, edge_count=around.long())
        if self._ones is None:
            store(incidence, multiplicity=self.whole.multiplicity.index_select(0, index.edge_rows))
        else:
            one, first = self._ones
            store(incidence, multiplicity=one.expand(num_edges), is_first=first.expand(num_edges))
        if of_edge.shape[1] == 4:
            edge = (of_edge[:, 2] - index.edge_shift * _PAIR).view(torch.int32)
            other = (of_edge[:, 3] - shift).view(torch.int32)
            offset = edge.new_zeros(len(around) + 1)
            torch.cumsum(around, 0, dtype=offset.dtype, out=offset[1:])
            store(incidence, csr=IncidenceCSR(Segments(edge, offset), Segments(other, offset)))
        if self.largest <= LONGEST:
            count, bounds = index.count.int(), index.bounds.int()
            nodes, edges = (Segments(count[: len(of)], bounds[n]) for n, of in enumerate((index.rows, index.edge_rows)))
            store(incidence, _by_graph={"node": nodes, "edge": edges})
        return incidence

    @cached
    def _of_edges(self) -> Tensor:
        """The columns that a batch gathers of each edge, in one go: its two ends, its degree, and, unless a hub is
        chunked, two entries of T as edges and as other ends. (E, 4 or 2)"""
        csr, columns = self.whole.csr, [self.whole.pairs.index.view(torch.int64), self.whole.edge_degree]
        if csr.edge.chunks is None:
            columns += [csr.edge.index.view(torch.int64), csr.other.index.view(torch.int64)]
        forget(self.whole, "pairs", "csr")  # not needed again, and as large as the copy here
        return torch.stack(columns, dim=1)

    @cached
    def _of_nodes(self) -> Tensor:
        """The number of entries around each node, and its degree, as a pair. (N,)"""
        return torch.stack([self.whole._count_entries, self.whole.node_degree], dim=1).int().view(torch.int64).view(-1)

    @cached
    def _ones(self) -> tuple[Tensor, Tensor] | None:
        """1 and True, if no two edges have the same two ends: then that is the multiplicity of all."""
        one = torch.ones(1, dtype=torch.int64, device=self.whole.ends.device)
        return (one, one.bool()) if bool((self.whole.multiplicity == 1).all()) else None
