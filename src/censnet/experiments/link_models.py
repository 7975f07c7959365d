"""Every method of Table 3, by name: each embeds the nodes of what is seen, and a pair's score is an inner product."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

from censnet.experiments.baselines.links import GraphAutoEncoder, SpectralClustering
from censnet.experiments.baselines.walks import DeepWalk
from censnet.experiments.readers import Readers, start_readers
from censnet.nn import CensNetVAE
from censnet.ops.graph import Graph


class LinkModel(Protocol):
    """Something that embeds the nodes of the graph it was made for."""

    def embed(self, epochs: int, learning_rate: float, seed: int) -> Tensor: ...


class CensNetAutoEncoder:
    """CensNet-VAE with the loss as printed, or with links weighed up as in VGAE.

    Args:
        graph: what is seen.
        balanced: whether links and non-links count the same in sum, as in the code of VGAE. As printed, all pairs count
            the same, and nearly all are not linked.
        readers: how p starts; see `readers.py`.
        options: of `CensNetVAE`.
    """

    options_of = CensNetVAE

    def __init__(self, graph: Graph, balanced: bool = False, readers: Readers = "drawn", **options: Any) -> None:
        self.graph, self.balanced, self.readers, self.options = graph, balanced, readers, options

    def embed(self, epochs: int, learning_rate: float, seed: int) -> Tensor:
        """Train, and give the mean of each node's embedding."""
        graph = self.graph
        torch.manual_seed(seed)
        model = CensNetVAE(graph.node_width, graph.edge_width, **self.options)
        start_readers(model.encoder, self.readers)
        model.to(graph.ends.device)
        adam = torch.optim.Adam(model.parameters(), lr=learning_rate)
        linked = 2 * graph.num_edges + graph.num_nodes  # ordered pairs, each node with itself among them
        weight = (graph.num_nodes**2 - linked) / linked if self.balanced else 1.0
        for _ in range(epochs):
            adam.zero_grad()
            latent = model(graph.nodes, graph.edges, graph.incidence)
            model.loss(latent, graph.incidence, weight).backward()  # type: ignore[no-untyped-call]
            adam.step()
        model.eval()
        with torch.no_grad():
            mean: Tensor = model(graph.nodes, graph.edges, graph.incidence).mean
        return mean


LINK_MODELS: dict[str, Callable[..., LinkModel]] = {
    "censnet-vae": CensNetAutoEncoder,
    "deepwalk": DeepWalk,
    "spectral": SpectralClustering,
    "vgae": GraphAutoEncoder,
}
