"""Some graphs of a set side by side: where their rows are, and what of the set's incidence becomes theirs.

A batch is made in every step of training, so few and narrow operations count here: what is known of the set is
gathered, never computed again, and numbers go in pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from censnet.ops.caching import cached
from censnet.ops.incidence import Incidence, IncidenceCSR
from censnet.ops.segments import PIECE, Pairs, Segments

_PAIR = 2**32 + 1  # one number twice, in the two halves of an int64


@dataclass(frozen=True)
class Chosen:
    """Where the rows of some graphs are in a set, and where they go.

    Shape:
        rows and owner (N,), edge_rows and edge_owner (E,): for each row of the batch, its row in the set and its graph.
        bounds (2, B + 1): where the nodes and the edges of each graph begin in the batch, and the last ones end.
        node_shift (B,), edge_shift (E,): how much further down in the set the nodes of a graph, and an edge, are.
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


def choose(starts: Tensor, numbers: Tensor) -> Chosen:
    """The rows of these graphs; `starts` (4, G) has where the nodes and edges of each begin, and how many there are."""
    picked = starts.index_select(1, numbers)
    bounds = picked.new_zeros(2, len(numbers) + 1)
    torch.cumsum(picked[2:], 1, out=bounds[:, 1:])
    num_nodes, num_edges = bounds[:, -1].tolist()
    owner = torch.repeat_interleave(picked[2], output_size=num_nodes)
    edge_owner = torch.repeat_interleave(picked[3], output_size=num_edges)
    shift = picked[:2].sub_(bounds[:, :-1])
    count = torch.arange(max(num_nodes, num_edges), device=numbers.device)
    rows = shift[0].index_select(0, owner).add_(count[:num_nodes])
    edge_shift = shift[1].index_select(0, edge_owner)
    edge_rows = edge_shift + count[:num_edges]
    return Chosen(rows, edge_rows, owner, edge_owner, bounds, shift[0], edge_shift, count)


@dataclass(frozen=True, eq=False)
class PackedIncidence:
    """What is known of the incidence of a whole set, for its batches.

    Args:
        whole: the incidence of all graphs side by side, in the order of the set.
        largest: the most nodes or edges that a graph has. A sum of more than `PIECE` is cut (`sums.py`), also around a
            hub: what is in pieces stands elsewhere, and a batch finds its own order.
    """

    whole: Incidence
    largest: int

    def of_batch(self, chosen: Chosen) -> Incidence:
        """The incidence of some graphs, with its sorted order and degrees.

        The two ends of an edge, and any two entries of T in sorted order, are two int32 side by side and are moved and
        renumbered as one int64. An edge has two entries, and graphs are contiguous, so those of the edges `edge_rows`
        are the entries of T in the batch.
        """
        if self.whole._integer != torch.int32:  # too many entries for pairs
            shift = chosen.node_shift.index_select(0, chosen.edge_owner)
            ends = self.whole.ends.index_select(1, chosen.edge_rows).sub_(shift)
            return Incidence(ends, len(chosen.rows), chosen.owner, len(chosen.node_shift))
        shift = chosen.node_shift.mul(_PAIR).index_select(0, chosen.edge_owner)
        of_edge = self._of_edges.index_select(0, chosen.edge_rows)
        around, degree = self._of_nodes.index_select(0, chosen.rows).view(torch.int32).view(-1, 2).unbind(1)
        ends, num_edges = (of_edge[:, 0] - shift).view(torch.int32), len(shift)
        incidence = Incidence.__new__(Incidence)  # what is gathered from a checked set needs no second check
        incidence.__dict__.update(
            ends=torch.empty(2, num_edges, dtype=torch.int64, device=ends.device).copy_(ends.view(-1, 2).t()),
            num_nodes=len(chosen.rows),
            owner=chosen.owner,
            num_graphs=len(chosen.node_shift),
            pairs=Pairs(ends),
            edge_owner=chosen.edge_owner,
            node_degree=degree.long(),
            edge_degree=of_edge[:, 1].contiguous(),
        )
        if self.whole.is_loop is None:
            incidence.__dict__["is_loop"] = None
        if self._ones is None:
            incidence.__dict__["multiplicity"] = self.whole.multiplicity.index_select(0, chosen.edge_rows)
        else:
            incidence.__dict__.update(
                multiplicity=self._ones[0].expand(num_edges), is_first=self._ones[1].expand(num_edges)
            )
        if of_edge.shape[1] == 4:
            edge = (of_edge[:, 2] - chosen.edge_shift * _PAIR).view(torch.int32)
            other = (of_edge[:, 3] - shift).view(torch.int32)
            offset = edge.new_zeros(len(around) + 1)
            torch.cumsum(around, 0, dtype=offset.dtype, out=offset[1:])
            incidence.__dict__["slots"] = IncidenceCSR(Segments(edge, offset), Segments(other, offset))
        if self.largest <= PIECE:
            count, bounds = chosen.count.int(), chosen.bounds.int()
            nodes, edges = (
                Segments(count[: len(of)], bounds[n]) for n, of in enumerate((chosen.rows, chosen.edge_rows))
            )
            incidence.__dict__["_members"] = {"node": nodes, "edge": edges}
        return incidence

    @cached
    def _of_edges(self) -> Tensor:
        """What a batch takes of each edge, side by side, so that it is fetched at once: its two ends, its degree, and,
        unless a hub is in pieces, two entries of T as edges and as other ends. (E, 4 or 2)"""
        slots, columns = self.whole.slots, [self.whole.pairs.index.view(torch.int64), self.whole.edge_degree]
        if slots.edge.pieces is None:
            columns += [slots.edge.index.view(torch.int64), slots.other.index.view(torch.int64)]
        for name in ("pairs", "slots"):
            del self.whole.__dict__[name]  # not needed again, and as large as what is kept of them here
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
