"""Every method of Table 3, by name: each embeds the nodes of what is seen, and a pair's score is an inner product.

What is trained is looked at every few iterations, and the embedding that does best on validation links is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

from censnet.nn import CensNetVAE
from censnet.nn.vae import Latent, reconstruction
from censnet.ops.graph import Graph
from censnet_experiments.baselines.links import GraphAutoEncoder, Score, SpectralClustering, best_of
from censnet_experiments.baselines.walks import DeepWalk


class LinkModel(Protocol):
    """Something that embeds the nodes of the graph it was made for."""

    def embed(self, epochs: int, learning_rate: float, seed: int, score: Score) -> Tensor: ...


class CensNetAutoEncoder:
    """CensNet-VAE with the loss as printed, or with links weighed up as in VGAE.

    Args:
        graph: what is seen.
        balanced: whether links and non-links count the same in sum, each half, as in the code of VGAE. As printed, all
            pairs count the same, and nearly all are not linked.
        options: of `CensNetVAE`.
    """

    options_of = CensNetVAE

    def __init__(self, graph: Graph, balanced: bool = False, **options: Any) -> None:
        self.graph, self.balanced, self.options = graph, balanced, options

    def embed(self, epochs: int, learning_rate: float, seed: int, score: Score) -> Tensor:
        """Train, and give the mean of each node's embedding after the best iteration."""
        graph = self.graph
        torch.manual_seed(seed)
        model = CensNetVAE(graph.node_width, graph.edge_width, **self.options)
        model.to(graph.ends.device)
        adam = torch.optim.Adam(model.parameters(), lr=learning_rate)
        linked = 2 * graph.num_edges + graph.num_nodes  # ordered pairs, each node with itself among them
        weight = (graph.num_nodes**2 - linked) / linked if self.balanced else 1.0

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


LINK_MODELS: dict[str, Callable[..., LinkModel]] = {
    "censnet-vae": CensNetAutoEncoder,
    "deepwalk": DeepWalk,
    "spectral": SpectralClustering,
    "vgae": GraphAutoEncoder,
}
