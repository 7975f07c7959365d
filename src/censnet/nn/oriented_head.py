"""The head of edges in an oriented graph: odd outputs, whose sign follows the order of the ends, and even ones."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from censnet.nn.ensemble import batched_linear, check_rows, init_members
from censnet.nn.heads import Head, RowHead
from censnet.nn.mlp import mlp
from censnet.ops.graph import Graph
from censnet.ops.normalization import by_head


class OrientedHead(Head):
    r"""Predict for each edge: odd outputs from its odd channels, the others from even functions alone.

    .. math::
        y = \bigl( (b\, W_1 + B^\top x\, W_2) \circ (1 + \mathrm{MLP}(a, |b|, T^\top x)) \bigr)\, g

    a and b are the even and odd channels of an edge, x its nodes. Nothing odd has a bias, so that y changes sign where
    the ends of the edge are exchanged, and is 0 for a loop. Without `hidden_widths` it is :math:`y = b\, g`.

    Args:
        node_width: channels of the embedded nodes.
        edge_width: channels of the embedded edges, [even | odd].
        odd_width: how many of these, the last ones, are odd.
        odd_outputs: for each output, whether it is odd.
        hidden_widths: widths of the MLP; the last is that of the odd channels that it gates.
        dropout: in the MLP.
        reads_nodes: whether the two nodes of an edge are read, as their sum and their difference.
        target_range: as in `Head`.

    Shape:
        nodes (N, node_width), edges (E, edge_width) -> (E, outputs).

    Example:
        >>> pipe = Graph(torch.ones(2, 4), torch.ones(1, 3), torch.tensor([[0], [1]]))
        >>> head = OrientedHead(4, 3, odd_width=1, odd_outputs=[True, False], hidden_widths=[8], reads_nodes=True)
        >>> head(pipe.nodes, pipe.edges, pipe).shape
        torch.Size([1, 2])
    """

    level, reads_odd = "edge", True

    def __init__(
        self,
        node_width: int,
        edge_width: int,
        odd_width: int,
        odd_outputs: Sequence[bool],
        hidden_widths: Sequence[int] = (),
        dropout: float = 0.0,
        reads_nodes: bool = False,
        target_range: Tensor | None = None,
    ) -> None:
        super().__init__(len(odd_outputs), target_range)
        self.widths, self.node_width = (edge_width - odd_width, odd_width), node_width
        self.reads_nodes = reads_nodes
        odd = [column for column, is_odd in enumerate(odd_outputs) if is_odd]
        others = [column for column, is_odd in enumerate(odd_outputs) if not is_odd]
        self.order = [(odd + others).index(column) for column in range(len(odd_outputs))]
        width = hidden_widths[-1] if hidden_widths else odd_width
        self.odd_weight = nn.Parameter(torch.empty(odd_width, width)) if hidden_widths else None
        reads_difference = bool(hidden_widths) and reads_nodes
        self.difference_weight = nn.Parameter(torch.empty(node_width, width)) if reads_difference else None
        self.out_weight = nn.Parameter(torch.empty(width, len(odd)))
        self.even_width = edge_width  # |b| beside a
        inputs = edge_width + reads_nodes * node_width
        self.gate = mlp(inputs, hidden_widths, width, dropout) if hidden_widths else None
        self.others = (
            RowHead("edge", node_width, edge_width, len(others), hidden_widths, dropout, reads_nodes)
            if others
            else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize all parameters."""
        super().reset_parameters()
        for weight in (self.odd_weight, self.difference_weight, self.out_weight):
            if weight is not None:
                init_members(weight, nn.init.xavier_uniform_)

    def forward(self, nodes: Tensor, edges: Tensor, graph: Graph) -> Tensor:
        """Compute the outputs."""
        check_rows("edges", edges, graph.num_edges, sum(self.widths), self.members, "(E, edge_width)")
        check_rows("nodes", nodes, graph.num_nodes, self.node_width, self.members, "(N, node_width)")
        (incidence, sign), each = graph.incidence.canonical, by_head(edges, self.members)
        sign = sign.to(edges.dtype).unsqueeze(1)
        odd = each[..., self.widths[0] :].flatten(1) * sign
        even = even_channels(edges, self.widths[1], self.members)
        if self.gate is not None and self.odd_weight is not None:
            read = by_head(even, self.members)
            if self.reads_nodes:
                read = torch.cat([read, by_head(incidence.gather(nodes), self.members)], dim=2)
            odd = batched_linear(odd, self.odd_weight)
            if self.difference_weight is not None:
                odd = odd + incidence.difference(batched_linear(nodes, self.difference_weight))
            odd = odd * (1 + self.gate(read.flatten(1)))
        outputs = [by_head(batched_linear(odd, self.out_weight) * sign, self.members)]
        if self.others is not None:
            outputs.append(by_head(self.others(nodes, even, graph), self.members))
        return torch.cat(outputs, dim=2)[..., self.order].flatten(1)


def even_channels(edges: Tensor, odd_width: int, members: int = 1) -> Tensor:
    """[a | |b|] of embedded edges [a | b]: what stays where the two ends of an edge are exchanged. (E, edge_width)"""
    each = by_head(edges, members)
    width = each.shape[2] - odd_width
    return torch.cat([each[..., :width], each[..., width:].abs()], dim=2).flatten(1)
