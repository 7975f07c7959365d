"""Models of the paper's tables by the names that specs use: CensNet as each table builds it, and the baselines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from censnet.data.datasets.citation import released_links
from censnet.nn import CensNet, CensNetVAE
from censnet.nn.vae import Latent, reconstruction
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.ops.incidence import Incidence
from censnet.ops.sparse import map_values
from censnet_experiments.baselines.convolutions import GAT, GCN, ChebyNet, GraphSAGE
from censnet_experiments.baselines.links import GraphAutoEncoder, Score, SpectralClustering, best_of
from censnet_experiments.baselines.lnet import AdaLNet, LNet
from censnet_experiments.baselines.molecules import Forest, Linear, MoleculeGCN
from censnet_experiments.baselines.walks import DeepWalk


class NodeCensNet(nn.Module):
    """CensNet whose last node layer gives the logits, as in Table 1 of the paper.

    Args:
        graph: gives the input widths.
        out_width: number of classes.
        input_dropout: of the features, as GCN has it; the paper does not mention any.
        released_edges: whether the edge features are prepared as in the authors' code: the cosine distance rather than
            the similarity, one direction for papers that cite each other, and each row divided by its sum.
        options: of `CensNet`.
    """

    has_members = True
    options_of = CensNet

    def __init__(
        self, graph: Graph, out_width: int, input_dropout: float = 0.0, released_edges: bool = False, **options: Any
    ) -> None:
        super().__init__()
        self.input_dropout, self.released_edges = input_dropout, released_edges
        self.network = CensNet(graph.node_width, graph.edge_width, out_width=out_width, **options)

    def inputs(self, graph: Graph) -> tuple[Tensor, Tensor, Incidence]:
        """The arguments of `forward`."""
        return graph.nodes, released_links(graph.edges) if self.released_edges else graph.edges, graph.incidence

    def forward(self, nodes: Tensor, edges: Tensor, incidence: Incidence) -> Tensor:
        """The logits. (N, members * out_width)"""
        if self.input_dropout and self.training:
            nodes = _drop_features(nodes, self.input_dropout)
        logits, _ = self.network(nodes, edges, incidence)
        out: Tensor = logits
        return out


def _drop_features(nodes: Tensor, p: float) -> Tensor:
    if nodes.layout == torch.sparse_csr:
        return map_values(nodes, lambda values: F.dropout(values, p))
    return F.dropout(nodes, p)


class MoleculeCensNet(nn.Module):
    """CensNet on every molecule of a batch; the output is the mean over its atoms, as in Table 2 of the paper.

    Args:
        graph: gives the input widths.
        out_width: number of targets.
        end: the output of an atom. "layer" is the last node layer itself; "head" is a linear map after it, so that all
            layers have hidden channels.
        options: of `CensNet`.
    """

    has_members = True
    options_of = CensNet

    def __init__(
        self,
        graph: Graph | GraphSet,
        out_width: int,
        end: Literal["layer", "head"] = "layer",
        **options: Any,
    ) -> None:
        super().__init__()
        last = out_width if end == "layer" else None
        self.network = CensNet(graph.node_width, graph.edge_width, out_width=last, **options)
        self.head = nn.Linear(self.network.out_node_width, out_width) if end == "head" else nn.Identity()

    def inputs(self, batch: Graph) -> tuple[Tensor, Tensor, Incidence]:
        """The arguments of `forward`."""
        return batch.nodes, batch.edges, batch.incidence

    def forward(self, nodes: Tensor, edges: Tensor, incidence: Incidence) -> Tensor:
        """The outputs. (graphs, members * out_width)"""
        atoms: Tensor = self.head(self.network(nodes, edges, incidence)[0])
        return incidence.pool(atoms, "node") / incidence.count("node").unsqueeze(1)


class LinkModel(Protocol):
    """A method of Table 3: it embeds the nodes of its graph, and the score of a pair is an inner product.

    Trained embeddings are scored every few iterations, and the best one on validation links is returned.
    """

    def embed(self, epochs: int, learning_rate: float, seed: int, score: Score) -> Tensor: ...


class CensNetAutoEncoder:
    """CensNet-VAE with the loss as printed, or with positives weighted as in VGAE.

    Args:
        graph: the message graph.
        balanced: whether positive and negative pairs have the same total weight, each half, as in the code of VGAE. As
            printed, all pairs weigh the same, and nearly all are negative.
        options: of `CensNetVAE`.
    """

    options_of = CensNetVAE

    def __init__(self, graph: Graph, balanced: bool = False, **options: Any) -> None:
        self.graph, self.balanced, self.options = graph, balanced, options

    def embed(self, epochs: int, learning_rate: float, seed: int, score: Score) -> Tensor:
        """Train, and return the mean of each node's embedding after the best iteration."""
        graph = self.graph
        torch.manual_seed(seed)
        model = CensNetVAE(graph.node_width, graph.edge_width, **self.options)
        model.to(graph.ends.device)
        adam = torch.optim.Adam(model.parameters(), lr=learning_rate)
        positives = 2 * graph.num_edges + graph.num_nodes  # ordered pairs, each node with itself among them
        weight = (graph.num_nodes**2 - positives) / positives if self.balanced else 1.0

        def step() -> None:
            model.train()
            adam.zero_grad()
            latent = model(graph.nodes, graph.edges, graph.incidence)
            pairs = reconstruction(latent.sample(), graph.incidence, weight)
            loss = (pairs / 2 if self.balanced else pairs) + latent.kl_divergence()
            loss.backward()
            adam.step()

        def mean() -> Tensor:
            latent: Latent = model.eval()(graph.nodes, graph.edges, graph.incidence)
            return latent.mean

        return best_of(step, mean, epochs, score)


NODE_MODELS: dict[str, Callable[..., nn.Module]] = {
    "adalnet": AdaLNet,
    "censnet": NodeCensNet,
    "chebynet": ChebyNet,
    "gat": GAT,
    "gcn": GCN,
    "graphsage": GraphSAGE,
    "lnet": LNet,
}
MOLECULE_MODELS: dict[str, Callable[..., nn.Module]] = {"censnet": MoleculeCensNet, "gcn": MoleculeGCN}
CLASSICAL_MODELS: dict[str, Callable[..., Forest | Linear]] = {"forest": Forest, "linear": Linear}
LINK_MODELS: dict[str, Callable[..., LinkModel]] = {
    "censnet-vae": CensNetAutoEncoder,
    "deepwalk": DeepWalk,
    "spectral": SpectralClustering,
    "vgae": GraphAutoEncoder,
}
MODELS: dict[str, dict[str, Callable[..., Any]]] = {
    "table1": {**NODE_MODELS},
    "table2": {**MOLECULE_MODELS, **CLASSICAL_MODELS},
    "table3": {**LINK_MODELS},
    "speed": {**NODE_MODELS},
}


def build_node_model(name: str, graph: Graph, out_width: int, options: Mapping[str, Any], seed: int) -> nn.Module:
    """Build a model of Table 1 with the initial weights of this seed; torch's generator is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return NODE_MODELS[name](graph, out_width, **options)
