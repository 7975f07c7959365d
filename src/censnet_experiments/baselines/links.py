"""Baselines of Table 3: the variational graph auto-encoder and spectral clustering."""

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
SCORE_EVERY = 10  # iterations between scores on validation links


def best_of(step: Callable[[], None], embed: Callable[[], Tensor], steps: int, score: Score) -> Tensor:
    """Do a number of steps, score the embedding regularly, and return the best one."""
    best, highest = torch.empty(0), -float("inf")
    for number in range(1, steps + 1):
        step()
        if number % SCORE_EVERY == 0 or number == steps:
            with torch.no_grad():
                embedding = embed()
            found = score(embedding)
            if found > highest:
                best, highest = embedding, found
    return best


class VGAEEncoder(nn.Module):
    """A graph convolution, ReLU, and one convolution each for the mean and the log standard deviation."""

    def __init__(self, node_width: int, hidden: int, latent: int) -> None:
        super().__init__()
        self.first = GCNConv(node_width, hidden, normalize=False)
        self.mean = GCNConv(hidden, latent, normalize=False)
        self.log_std = GCNConv(hidden, latent, normalize=False)

    def forward(self, nodes: Tensor, index: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The mean and the log standard deviation of each node. (N, latent)"""
        hidden = self.first(nodes, index, weight).relu()
        return self.mean(hidden, index, weight), self.log_std(hidden, index, weight)


class GraphAutoEncoder:
    """VGAE (Kipf and Welling 2016), by PyTorch Geometric, with the loss of its authors' code: over all pairs of nodes.

    Positive pairs are weighted to balance the negative ones, and the sum has weight 1/2 beside the KL divergence. The
    loss of PyTorch Geometric samples as many negatives as positives instead.

    Args:
        graph: the message graph.
        hidden: channels after the first convolution; 32 in the original, 64 is what the paper gives CensNet-VAE.
        latent: channels of the embedding; 16 in the original, 32 in the paper.
    """

    def __init__(self, graph: Graph, hidden: int = 32, latent: int = 16) -> None:
        self.graph, self.hidden, self.latent = graph, hidden, latent

    def embed(self, epochs: int, learning_rate: float, seed: int, score: Score) -> Tensor:
        """Train, and return the mean of each node's embedding after the best iteration."""
        graph = self.graph
        torch.manual_seed(seed)
        model = VGAE(VGAEEncoder(graph.node_width, self.hidden, self.latent)).to(graph.ends.device)
        inputs = (dense(graph.nodes), *with_loops(graph))
        positives = 2 * graph.num_edges + graph.num_nodes
        weight = (graph.num_nodes**2 - positives) / positives
        adam = torch.optim.Adam(model.parameters(), lr=learning_rate)

        def step() -> None:
            model.train()
            adam.zero_grad()
            embedding = model.encode(*inputs)
            pairs = reconstruction(embedding, graph.incidence, weight) / graph.num_nodes
            (pairs / 2 + model.kl_loss()).backward()
            adam.step()

        def mean() -> Tensor:
            embedding: Tensor = model.eval().encode(*inputs)  # the mean itself in evaluation mode
            return embedding

        return best_of(step, mean, epochs, score)


class SpectralClustering:
    r"""The embedding behind spectral clustering (Tang and Liu 2011): eigenvectors of the random walk on the graph.

    A graph without its held-out links has many connected components, and the first eigenvectors then only indicate the
    component of a node. The regularized :math:`A + \tau / N` (Qin and Rohe 2013), which connects them, replaces A.

    Args:
        graph: the message graph; node features are not used.
        embeddings: candidates for the number of eigenvectors; 128 in the paper of VGAE.
        tau: the regularization.
    """

    def __init__(self, graph: Graph, embeddings: Sequence[int] = (64, 128), tau: float = 0.5) -> None:
        self.graph, self.embeddings, self.tau = graph, tuple(embeddings), tau

    def embed(self, epochs: int, learning_rate: float, seed: int, score: Score) -> Tensor:
        """The best number of eigenvectors. Nothing is trained: the seed is that of the start vector of the solver."""
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
        vectors = torch.from_numpy(root[:, None] * vectors[:, np.argsort(-values)]).float()
        return max((vectors[:, :width] for width in self.embeddings), key=score)
