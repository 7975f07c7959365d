"""What CensNet-VAE is compared with: the variational graph auto-encoder, and spectral clustering."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, eigsh
from torch import Tensor, nn
from torch_geometric.nn import VGAE, GCNConv

from censnet.nn.vae import reconstruction
from censnet.ops.graph import Graph
from censnet_experiments.baselines.convolutions import both_ways, dense, with_loops

Score = Callable[[Tensor], float]
LOOK = 10  # iterations between looks at the validation links


def best_of(step: Callable[[], None], embed: Callable[[], Tensor], steps: int, score: Score) -> Tensor:
    """Do so many steps, look at the embedding now and then, and give the one with the highest score."""
    best, highest = torch.empty(0), -float("inf")
    for number in range(1, steps + 1):
        step()
        if number % LOOK == 0 or number == steps:
            with torch.no_grad():
                embedding = embed()
            found = score(embedding)
            if found > highest:
                best, highest = embedding, found
    return best


class Encoder(nn.Module):
    """A graph convolution, ReLU, and one more for the mean and for the logarithm of the deviation."""

    def __init__(self, node_width: int, hidden: int, latent: int) -> None:
        super().__init__()
        self.first = GCNConv(node_width, hidden, normalize=False)
        self.mean = GCNConv(hidden, latent, normalize=False)
        self.log_std = GCNConv(hidden, latent, normalize=False)

    def forward(self, nodes: Tensor, index: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The mean and the logarithm of the deviation of each node. (N, latent)"""
        hidden = self.first(nodes, index, weight).relu()
        return self.mean(hidden, index, weight), self.log_std(hidden, index, weight)


class GraphAutoEncoder:
    """VGAE (Kipf and Welling 2016), by PyTorch Geometric, with the loss of its authors' code: over all pairs of nodes.

    Links are weighed up to balance the others, and the sum counts half beside the divergence. PyTorch Geometric's own
    loss draws as many pairs at random as there are links instead.

    Args:
        graph: what is seen.
        hidden: channels after the first convolution; 32 in the original, 64 is what the paper gives CensNet-VAE.
        latent: channels of the embedding; 16 in the original, 32 in the paper.
    """

    def __init__(self, graph: Graph, hidden: int = 32, latent: int = 16) -> None:
        self.graph, self.hidden, self.latent = graph, hidden, latent

    def embed(self, epochs: int, learning_rate: float, seed: int, score: Score) -> Tensor:
        """Train, and give the mean of each node's embedding after the best iteration."""
        graph = self.graph
        torch.manual_seed(seed)
        model = VGAE(Encoder(graph.node_width, self.hidden, self.latent)).to(graph.ends.device)
        inputs = (dense(graph.nodes), *with_loops(graph))
        linked = 2 * graph.num_edges + graph.num_nodes
        weight = (graph.num_nodes**2 - linked) / linked
        adam = torch.optim.Adam(model.parameters(), lr=learning_rate)

        def step() -> None:
            model.train()
            adam.zero_grad()
            embedding = model.encode(*inputs)
            pairs = reconstruction(embedding, graph.incidence, weight) / graph.num_nodes
            (pairs / 2 + model.kl_loss()).backward()
            adam.step()

        def mean() -> Tensor:
            embedding: Tensor = model.eval().encode(*inputs)  # the mean itself, when it is not training
            return embedding

        return best_of(step, mean, epochs, score)


class SpectralClustering:
    r"""The embedding behind spectral clustering (Tang and Liu 2011): eigenvectors of the random walk on the graph.

    A graph whose links are partly hidden falls apart into many components, and the first eigenvectors then only say
    which one a node is in. So :math:`A + \tau / N` is taken in the place of A (Qin and Rohe 2013), which joins them.

    Args:
        graph: what is seen; its features are not.
        embeddings: how many eigenvectors are tried; 128 in the paper of VGAE.
        tau: the regularisation.
    """

    def __init__(self, graph: Graph, embeddings: Sequence[int] = (64, 128), tau: float = 0.5) -> None:
        self.graph, self.embeddings, self.tau = graph, tuple(embeddings), tau

    def embed(self, epochs: int, learning_rate: float, seed: int, score: Score) -> Tensor:
        """The eigenvectors, as many as score best. Nothing is trained: the seed is that of the solver's start."""
        ends, count = both_ways(self.graph).cpu().numpy(), self.graph.num_nodes
        adjacency = sp.coo_matrix((np.ones(ends.shape[1]), (ends[0], ends[1])), (count, count)).tocsr()
        root = (np.asarray(adjacency.sum(1)).ravel() + self.tau) ** -0.5

        def multiply(x: NDArray[np.float64]) -> NDArray[np.float64]:
            scaled = root * x.ravel()
            product: NDArray[np.float64] = root * (adjacency @ scaled + self.tau / count * scaled.sum())
            return product

        width = min(max(self.embeddings), count - 2)
        start = np.random.default_rng(seed).normal(size=count)
        matrix = LinearOperator((count, count), matvec=multiply, dtype=np.float64)
        values, vectors = eigsh(matrix, width, which="LA", v0=start)
        place = torch.from_numpy(root[:, None] * vectors[:, np.argsort(-values)]).float()
        return max((place[:, :width] for width in self.embeddings), key=score)
