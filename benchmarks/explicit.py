"""The edge layer with the line graph written out, as peers have to: plainly, and with care; and the dense rule."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from censnet.ops import Incidence, textbook
from censnet.ops.segments import Segments, offsets, sum_segments


class LineGraph:
    """Every pair of edges that share a node, sorted by row: row e has f and the node v that both touch.

    An edge meets itself at both of its ends, so the entries number the sum over all nodes of deg^2.
    """

    def __init__(self, incidence: Incidence) -> None:
        csr, count = incidence.csr.edge, incidence.edge_count
        if csr.chunks is not None:
            order = torch.argsort(incidence.ends.reshape(-1), stable=True)
            around, offset = order % incidence.num_edges, offsets(count)
        else:
            around, offset = csr.index.long(), csr.offset.long()
        end = incidence.ends.t().reshape(-1)  # each edge, each of its ends, each edge there
        lengths = count[end]
        self.row = torch.repeat_interleave(torch.arange(incidence.num_edges).repeat_interleave(2), lengths)
        self.node = torch.repeat_interleave(end, lengths)
        begin = torch.repeat_interleave(offset[end] - (lengths.cumsum(0) - lengths), lengths)
        self.column = around[begin + torch.arange(len(begin))]
        scale = incidence.edge_degree.float().rsqrt()
        self.scale = scale[self.row] * scale[self.column]
        self.num_edges = incidence.num_edges
        self.bags = Segments(self.column.int(), offsets(lengths.view(-1, 2).sum(1)).int())

    def plain(self, edges: Tensor, u: Tensor) -> Tensor:
        """As it is written down first: gather every entry, weigh it, index_add."""
        message = edges[self.column] * (self.scale * u[self.node]).unsqueeze(1)
        return torch.zeros_like(edges).index_add(0, self.row, message)

    def careful_features_only(self, edges: Tensor, u: Tensor, given: Tensor) -> Callable[[], None]:
        """Sorted entries and embedding_bag, forward and the gradient of the features; that of u is left out.

        The matrix is symmetric, so the same entries serve both ways. A lower bound for any explicit version.
        """

        def run() -> None:
            weight = self.scale * u[self.node]
            sum_segments(edges, self.bags, weight)
            sum_segments(given, self.bags, weight)

        return run

    def careful(self, edges: Tensor, u: Tensor, given: Tensor) -> Callable[[], None]:
        """The same with the gradient of u: for each entry the dot product of two rows, summed at its node."""

        def run() -> None:
            weight = self.scale * u[self.node]
            sum_segments(edges, self.bags, weight)
            sum_segments(given, self.bags, weight)
            dots = (given[self.row] * edges[self.column]).sum(1)
            torch.zeros_like(u).index_add(0, self.node, self.scale * dots)

        return run


def dense_rule(incidence: Incidence) -> Callable[[Tensor, Tensor], Tensor]:
    """The printed edge rule with E x E matrices; T and A~_e are made beforehand."""
    T = textbook.incidence_matrix(incidence.ends, incidence.num_nodes, torch.float32)
    A = textbook.normalize(textbook.edge_adjacency(T))

    def rule(edges: Tensor, u: Tensor) -> Tensor:
        return (T.t() @ (u.unsqueeze(1) * T) * A) @ edges

    return rule
