"""DeepWalk (Perozzi et al. 2014): skip-gram embeddings of nodes from random walks."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from censnet.ops.graph import Graph
from censnet_experiments.baselines.links import Score


def random_walks(graph: Graph, starts: Tensor, length: int, generator: torch.Generator) -> Tensor:
    """A random walk from each start; a walk at a node without neighbors stays there.

    Shape:
        (W,) -> (W, length), on the CPU.
    """
    ends = torch.cat([graph.ends, graph.ends.flip(0)], dim=1).cpu()
    order = ends[0].argsort(stable=True)
    neighbor = ends[1][order]
    degree = torch.bincount(ends[0], minlength=graph.num_nodes)
    first = degree.cumsum(0) - degree
    node = starts
    walk = [node]
    for _ in range(length - 1):
        drawn = (torch.rand(len(node), generator=generator, dtype=torch.float64) * degree[node]).long()
        there = (first[node] + drawn).clamp(max=max(len(neighbor) - 1, 0))
        node = torch.where(degree[node] > 0, neighbor[there], node) if len(neighbor) else node
        walk.append(node)
    return torch.stack(walk, dim=1)


def window_pairs(walks: Tensor, window: int) -> Tensor:
    """All pairs of nodes at most `window` steps apart on a walk, in either order. (2, pairs)"""
    pairs = []
    for gap in range(1, min(window, walks.shape[1] - 1) + 1):
        one, other = walks[:, :-gap].reshape(-1), walks[:, gap:].reshape(-1)
        pairs += [torch.stack([one, other]), torch.stack([other, one])]
    return torch.cat(pairs, dim=1)


class DeepWalk:
    """Skip-gram with negative sampling over the windows of random walks. Node features are not used.

    Many steps overfit the message graph. The embedding is therefore scored during training, and the best one on
    validation links is returned: the center vector of a node, or the sum of its center and context vectors, either as
    it is or normalized.

    Args:
        graph: the message graph.
        embedding: channels.
        walks: number in a step, as a share of the nodes; each starts at a random node.
        length: number of nodes of a walk.
        window: largest distance of two nodes of a pair.
        negatives: random nodes for each pair.
        score_every: steps between two scores.
    """

    def __init__(
        self,
        graph: Graph,
        embedding: int = 128,
        walks: float = 1 / 40,
        length: int = 40,
        window: int = 10,
        negatives: int = 1,
        score_every: int = 16,
    ) -> None:
        self.graph, self.embedding, self.length = graph, embedding, length
        self.walks, self.window, self.negatives, self.score_every = walks, window, negatives, score_every

    def embed(self, epochs: int, learning_rate: float, seed: int, score: Score) -> Tensor:
        """Train for `epochs` steps, and return the best embedding of each node. (N, embedding)"""
        device, count = self.graph.ends.device, self.graph.num_nodes
        generator = torch.Generator().manual_seed(seed)
        near = (torch.rand(count, self.embedding, generator=generator) - 0.5) / self.embedding
        near, far = near.to(device).requires_grad_(), torch.zeros(count, self.embedding, device=device).requires_grad_()
        adam = torch.optim.Adam([near, far], lr=learning_rate)
        best, best_score = near.detach().clone(), -1.0
        for step in range(1, epochs + 1):
            starts = torch.randperm(count, generator=generator)[: max(1, round(self.walks * count))]
            pairs = window_pairs(random_walks(self.graph, starts, self.length, generator), self.window)
            pairs = pairs[:, pairs[0] != pairs[1]]  # a walk that stays gives no pair
            if pairs.shape[1]:
                other = torch.randint(count, (pairs.shape[1], self.negatives), generator=generator)
                adam.zero_grad()
                _skip_gram(near, far, pairs.to(device), other.to(device)).backward()  # type: ignore[no-untyped-call]
                adam.step()
            if step % self.score_every == 0 or step == epochs:
                for found in (near.detach(), (near + far).detach()):
                    for embedding in (found, F.normalize(found, dim=1)):
                        reached = score(embedding)
                        if reached > best_score:
                            best, best_score = embedding.clone(), reached
        return best


def _skip_gram(near: Tensor, far: Tensor, pairs: Tensor, other: Tensor) -> Tensor:
    """-log sigmoid(u . v) - sum log sigmoid(-u . v') over the mean of the pairs."""
    u = near.index_select(0, pairs[0])
    together = (u * far.index_select(0, pairs[1])).sum(1)
    apart = [(u * far.index_select(0, drawn)).sum(1) for drawn in other.unbind(1)]
    return F.softplus(-together).mean() + sum(F.softplus(score).mean() for score in apart)
