"""Every network of Table 1, by name. Each is made for a graph's widths and says what it reads of a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from censnet.nn import CensNet
from censnet.ops.graph import Graph
from censnet.ops.incidence import Incidence
from censnet.ops.sparse import map_values
from censnet_experiments.baselines.convolutions import GAT, GCN, ChebyNet, GraphSAGE
from censnet_experiments.baselines.lnet import AdaLNet, LNet


class CensNetClassifier(nn.Module):
    """CensNet whose last node layer gives the logits, as in the paper.

    Args:
        graph: of these widths.
        out_width: the number of classes.
        input_dropout: of the features, as GCN has it; the paper says nothing of it.
        released_edges: whether the edge features are prepared as in the authors' code: the cosine distance rather than
            the similarity, one direction for papers that cite each other, and each row divided by its sum.
        options: of `CensNet`.
    """

    has_members = True
    options_of = CensNet

    def __init__(
        self,
        graph: Graph,
        out_width: int,
        input_dropout: float = 0.0,
        released_edges: bool = False,
        **options: Any,
    ) -> None:
        super().__init__()
        self.input_dropout, self.released_edges = input_dropout, released_edges
        self.network = CensNet(graph.node_width, graph.edge_width, out_width=out_width, **options)

    def inputs(self, graph: Graph) -> tuple[Tensor, Tensor, Incidence]:
        """What `forward` takes."""
        return graph.nodes, released_edges(graph.edges) if self.released_edges else graph.edges, graph.incidence

    def forward(self, nodes: Tensor, edges: Tensor, incidence: Incidence) -> Tensor:
        """The logits. (N, members * out_width)"""
        if self.input_dropout and self.training:
            nodes = _thin(nodes, self.input_dropout)
        logits, _ = self.network(nodes, edges, incidence)
        out: Tensor = logits
        return out


def released_edges(edges: Tensor) -> Tensor:
    """Cosine similarity and direction as the authors' code has them: cosine distance, one direction, rows of sum 1.

    >>> released_edges(torch.tensor([[0.5, 1.0, 0.0], [1.0, 1.0, 1.0]]))
    tensor([[0.3333, 0.6667, 0.0000],
            [0.0000, 1.0000, 0.0000]])
    """
    cosine, forwards, _ = edges.unbind(1)
    features = torch.stack([1 - cosine, forwards, 1 - forwards], dim=1)
    return features / features.sum(1, keepdim=True)


def _thin(nodes: Tensor, p: float) -> Tensor:
    if nodes.layout == torch.sparse_csr:
        return map_values(nodes, lambda values: F.dropout(values, p))
    return F.dropout(nodes, p)


CLASSIFIERS: dict[str, Callable[..., nn.Module]] = {
    "adalnet": AdaLNet,
    "censnet": CensNetClassifier,
    "chebynet": ChebyNet,
    "gat": GAT,
    "gcn": GCN,
    "graphsage": GraphSAGE,
    "lnet": LNet,
}


def build(name: str, graph: Graph, out_width: int, options: Mapping[str, Any], seed: int) -> nn.Module:
    """A classifier with the weights of this seed, whatever was drawn before; torch's generator is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return CLASSIFIERS[name](graph, out_width, **options)
