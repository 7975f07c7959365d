"""ChebyNet, GCN, GraphSAGE and GAT for the nodes of one graph: two layers of PyTorch Geometric each, as published."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import ChebConv, GATConv, GCNConv, MessagePassing, SAGEConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from censnet.ops.graph import Graph


def both_ways(graph: Graph) -> Tensor:
    """Each edge once in either direction, as PyTorch Geometric has them. (2, 2 E)"""
    return torch.cat([graph.ends, graph.ends.flip(0)], dim=1)


def with_loops(graph: Graph) -> tuple[Tensor, Tensor]:
    """The edges both ways and a loop at every node, and the entries of D^-1/2 (A + I) D^-1/2 there."""
    index, weight = gcn_norm(both_ways(graph), num_nodes=graph.num_nodes, dtype=graph.edges.dtype)
    return index, weight


def dense(nodes: Tensor) -> Tensor:
    """Dense features, as the layers of PyTorch Geometric take them."""
    return nodes if nodes.layout == torch.strided else nodes.to_dense()


class TwoLayers(nn.Module):
    """Dropout, a layer, an activation, dropout, a layer. `inputs` computes the arguments of `forward` once."""

    drop_features = True  # whether there is dropout before the first layer

    activation: Callable[[Tensor], Tensor] = staticmethod(F.relu)

    def __init__(self, first: nn.Module, second: nn.Module, dropout: float) -> None:
        super().__init__()
        self.first, self.second, self.dropout = first, second, dropout

    def reset_parameters(self) -> None:
        """Re-initialize the parameters."""
        for layer in (self.first, self.second):
            cast(MessagePassing, layer).reset_parameters()

    def inputs(self, graph: Graph) -> tuple[Tensor, ...]:
        """The arguments of `forward`: the features, and the edges in the form of these layers."""
        return dense(graph.nodes), both_ways(graph)

    def forward(self, nodes: Tensor, *edges: Tensor) -> Tensor:
        """The logits. (N, node_width) -> (N, out_width)"""
        hidden = self.first(F.dropout(nodes, self.dropout, self.training and self.drop_features), *edges)
        hidden = F.dropout(self.activation(hidden), self.dropout, self.training)
        out: Tensor = self.second(hidden, *edges)
        return out


class GCN(TwoLayers):
    """Kipf and Welling 2017."""

    def __init__(
        self, graph: Graph, out_width: int, hidden: int = 32, dropout: float = 0.5, drop_features: bool = True
    ) -> None:
        super().__init__(
            GCNConv(graph.node_width, hidden, normalize=False), GCNConv(hidden, out_width, normalize=False), dropout
        )
        self.drop_features = drop_features

    def inputs(self, graph: Graph) -> tuple[Tensor, ...]:
        return dense(graph.nodes), *with_loops(graph)


class ChebyNet(TwoLayers):
    """Defferrard et al. 2016: polynomials of the Laplacian, `order` of them in each layer."""

    def __init__(self, graph: Graph, out_width: int, hidden: int = 32, order: int = 3, dropout: float = 0.5) -> None:
        super().__init__(_Chebyshev(graph.node_width, hidden, order), _Chebyshev(hidden, out_width, order), dropout)

    def inputs(self, graph: Graph) -> tuple[Tensor, ...]:
        scaled = cast(ChebConv, self.first).__norm__(
            both_ways(graph), graph.num_nodes, None, "sym", dtype=graph.edges.dtype
        )
        return dense(graph.nodes), *scaled


class _Chebyshev(ChebConv):  # type: ignore[misc]
    r"""The layer of PyTorch Geometric, given the entries of the scaled Laplacian 2 L / lambda_max - I.

    The sum of :math:`T_k(\tilde L)\, X W_k` is the same whichever product comes first. Here the channels are mixed
    first, since they become fewer, and the polynomials are added up by Clenshaw's recurrence.
    """

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        *others, last = [mix(x) for mix in self.lins]
        before = torch.zeros_like(last)
        for number, mixed in reversed(list(enumerate(others))):
            moved = self.propagate(edge_index, x=last, norm=edge_weight)
            last, before = mixed + (2 if number else 1) * moved - before, last
        out: Tensor = last + self.bias
        return out


class GraphSAGE(TwoLayers):
    """Hamilton et al. 2017, with the mean of all neighbors rather than of a sample."""

    def __init__(self, graph: Graph, out_width: int, hidden: int = 32, dropout: float = 0.5) -> None:
        super().__init__(_Mean(graph.node_width, hidden), _Mean(hidden, out_width), dropout)


class _Mean(SAGEConv):  # type: ignore[misc]
    """The layer of PyTorch Geometric, with the mean of the neighbors after the linear map, which has fewer channels."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        mixed = F.linear(x, self.lin_l.weight)
        near: Tensor = self.propagate(edge_index, x=(mixed, mixed), size=None)
        out: Tensor = near + self.lin_l.bias + self.lin_r(x)
        return out


class GAT(TwoLayers):
    """Velickovic et al. 2018: `heads` of `hidden` channels each, then one output head; dropout on attention too."""

    activation = staticmethod(F.elu)

    def __init__(self, graph: Graph, out_width: int, hidden: int = 8, heads: int = 8, dropout: float = 0.6) -> None:
        super().__init__(
            GATConv(graph.node_width, hidden, heads, dropout=dropout, add_self_loops=False),
            GATConv(heads * hidden, out_width, dropout=dropout, add_self_loops=False),
            dropout,
        )

    def inputs(self, graph: Graph) -> tuple[Tensor, ...]:
        return dense(graph.nodes), with_loops(graph)[0]
