"""Some graphs of a set side by side: where their rows are, and what of the set's incidence becomes theirs.

A batch is made in every step of training, so few and narrow operations count here: what is known of the set is
gathered, never computed again, and numbers go in pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from censnet.ops.incidence import Incidence, Slots
from censnet.ops.kept import kept
from censnet.ops.sums import PIECE, Bags, Pairs

_PAIR = 2**32 + 1  # one number twice, in the two halves of an int64


@dataclass(frozen=True)
class Chosen:
    """Where the rows of some graphs are in a set, and where they go.

    Shape:
        rows and owner (N,), edge_rows and edge_owner (E,): for each row of the batch, its row in the set and its graph.
        bounds (B + 1, 2): where the nodes and the edges of each graph begin in the batch, and the last ones end.
        shift (B, 2): how much further down the nodes and the edges of each graph are in the set.
        count (N or E or more,): 0, 1, 2, ...
    """

    rows: Tensor
    edge_rows: Tensor
    owner: Tensor
    edge_owner: Tensor
    bounds: Tensor
    shift: Tensor
    count: Tensor


def choose(starts: Tensor, numbers: Tensor) -> Chosen:
    """The rows of these graphs; `starts` (G, 4) has where the nodes and edges of each begin, and how many there are."""
    picked = starts.index_select(0, numbers)
    bounds = picked.new_zeros(len(numbers) + 1, 2)
    torch.cumsum(picked[:, 2:], 0, out=bounds[1:])
    num_nodes, num_edges = bounds[-1].tolist()
    owner = torch.repeat_interleave(picked[:, 2], output_size=num_nodes)
    edge_owner = torch.repeat_interleave(picked[:, 3], output_size=num_edges)
    shift = picked[:, :2] - bounds[:-1]
    count = torch.arange(max(num_nodes, num_edges), device=numbers.device)
    rows = shift[:, 0].index_select(0, owner).add_(count[:num_nodes])
    edge_rows = shift[:, 1].index_select(0, edge_owner).add_(count[:num_edges])
    return Chosen(rows, edge_rows, owner, edge_owner, bounds, shift, count)


@dataclass(frozen=True, eq=False)
class SetOrder:
    """What is known of the incidence of a whole set, for its batches.

    Args:
        whole: the incidence of all graphs side by side, in the order of the set.
        largest: the nodes or edges, whichever are more, of the largest graph.
    """

    whole: Incidence
    largest: int

    def of_batch(self, chosen: Chosen) -> Incidence:
        """The incidence of some graphs, with its sorted order and degrees.

        The two ends of an edge, and any two entries of T in sorted order, are two int32 side by side and are moved and
        renumbered as one int64. An edge has two entries, and graphs are contiguous, so those of the edges `edge_rows`
        are the entries of T in the batch.
        """
        around = chosen.shift.mul(_PAIR).index_select(0, chosen.edge_owner)
        ends = self._ends.index_select(0, chosen.edge_rows).sub_(around[:, 0]).view(torch.int32)
        incidence = Incidence.__new__(Incidence)  # what is gathered from a checked set needs no second check
        incidence.__dict__.update(
            ends=torch.empty(2, len(around), dtype=torch.int64, device=ends.device).copy_(ends.view(-1, 2).t()),
            num_nodes=len(chosen.rows),
            owner=chosen.owner,
            num_graphs=len(chosen.shift),
            pairs=Pairs(ends),
            edge_owner=chosen.edge_owner,
            node_degree=self.whole.node_degree.index_select(0, chosen.rows),
            edge_degree=self.whole.edge_degree.index_select(0, chosen.edge_rows),
            _count_entries=self.whole._count_entries.index_select(0, chosen.rows),
        )
        if self.whole.is_loop is None:
            incidence.__dict__["is_loop"] = None
        if self.is_simple:
            one = torch.ones(1, dtype=torch.int64, device=ends.device)
            incidence.__dict__.update(multiplicity=one.expand(len(around)), is_first=one.bool().expand(len(around)))
        else:
            incidence.__dict__["multiplicity"] = self.whole.multiplicity.index_select(0, chosen.edge_rows)
        if self.largest <= PIECE:  # no hub and no graph is cut into pieces
            self._add_bags(incidence, chosen, around)
        return incidence

    def _add_bags(self, incidence: Incidence, chosen: Chosen, around: Tensor) -> None:
        edge = self._edge.index_select(0, chosen.edge_rows).sub_(around[:, 1]).view(torch.int32)
        other = self._other.index_select(0, chosen.edge_rows).sub_(around[:, 0]).view(torch.int32)
        offset = edge.new_zeros(len(chosen.rows) + 1)
        torch.cumsum(incidence._count_entries, 0, dtype=offset.dtype, out=offset[1:])
        count, bounds = chosen.count.int(), chosen.bounds.t().int()
        incidence.__dict__.update(
            slots=Slots(Bags(edge, offset), Bags(other, offset)),
            _members={
                "node": Bags(count[: len(chosen.rows)], bounds[0]),
                "edge": Bags(count[: len(chosen.edge_rows)], bounds[1]),
            },
        )

    @kept
    def is_simple(self) -> bool:
        """Whether no two edges have the same two ends."""
        return bool((self.whole.multiplicity == 1).all())

    @kept
    def _ends(self) -> Tensor:
        return self.whole.pairs.index.view(torch.int64)

    @kept
    def _edge(self) -> Tensor:
        return self.whole.slots.edge.index.view(torch.int64)

    @kept
    def _other(self) -> Tensor:
        return self.whole.slots.other.index.view(torch.int64)
