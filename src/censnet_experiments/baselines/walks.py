"""DeepWalk (Perozzi et al. 2014): nodes that random walks pass together get embeddings that point the same way."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from censnet.ops.graph import Graph
from censnet_experiments.baselines.links import Score


def random_walks(graph: Graph, starts: Tensor, length: int, generator: torch.Generator) -> Tensor:
    """A walk from each start, each step to a neighbour at random; a node without neighbours stays where it is.

    Shape:
        (W,) -> (W, length), on the host.
    """
    ends = torch.cat([graph.ends, graph.ends.flip(0)], dim=1).cpu()
    order = ends[0].argsort(stable=True)
    neighbour = ends[1][order]
    degree = torch.bincount(ends[0], minlength=graph.num_nodes)
    first = degree.cumsum(0) - degree
    place = starts
    walk = [place]
    for _ in range(length - 1):
        drawn = (torch.rand(len(place), generator=generator, dtype=torch.float64) * degree[place]).long()
        there = (first[place] + drawn).clamp(max=max(len(neighbour) - 1, 0))
        place = torch.where(degree[place] > 0, neighbour[there], place) if len(neighbour) else place
        walk.append(place)
    return torch.stack(walk, dim=1)


def window_pairs(walks: Tensor, window: int) -> Tensor:
    """Every two nodes at most `window` steps apart on a walk, in either order. (2, pairs)"""
    pairs = []
    for gap in range(1, min(window, walks.shape[1] - 1) + 1):
        one, other = walks[:, :-gap].reshape(-1), walks[:, gap:].reshape(-1)
        pairs += [torch.stack([one, other]), torch.stack([other, one])]
    return torch.cat(pairs, dim=1)


class DeepWalk:
    """Skip-gram with negative samples over the windows of random walks. An embedding of the nodes alone: no features.

    However large the graph, many steps fit what is seen and lose what is hidden. So the embedding is looked at on the
    way, and the one is taken that does best on validation links: a node's vector as the middle of a window, or the sum
    of that and its vector as a neighbour, either as it is or of length 1.

    Args:
        graph: whose widths do not matter.
        embedding: channels.
        walks: in a step, as a share of the nodes: each starts from a node at random.
        length: nodes of a walk.
        window: how far apart two nodes of a pair can be.
        negatives: nodes at random for each pair.
        look: steps between two looks.
    """

    def __init__(
        self,
        graph: Graph,
        embedding: int = 128,
        walks: float = 1 / 40,
        length: int = 40,
        window: int = 10,
        negatives: int = 1,
        look: int = 16,
    ) -> None:
        self.graph, self.embedding, self.length = graph, embedding, length
        self.walks, self.window, self.negatives, self.look = walks, window, negatives, look

    def embed(self, epochs: int, learning_rate: float, seed: int, score: Score) -> Tensor:
        """Train for so many steps, and give the best embedding of each node. (N, embedding)"""
        device, count = self.graph.ends.device, self.graph.num_nodes
        generator = torch.Generator().manual_seed(seed)
        near = (torch.rand(count, self.embedding, generator=generator) - 0.5) / self.embedding
        near, far = near.to(device).requires_grad_(), torch.zeros(count, self.embedding, device=device).requires_grad_()
        adam = torch.optim.Adam([near, far], lr=learning_rate)
        best, best_score = near.detach().clone(), -1.0
        for step in range(1, epochs + 1):
            starts = torch.randperm(count, generator=generator)[: max(1, round(self.walks * count))]
            pairs = window_pairs(random_walks(self.graph, starts, self.length, generator), self.window)
            pairs = pairs[:, pairs[0] != pairs[1]]  # a walk that stays has nothing to tell
            if pairs.shape[1]:
                other = torch.randint(count, (pairs.shape[1], self.negatives), generator=generator)
                adam.zero_grad()
                _skip_gram(near, far, pairs.to(device), other.to(device)).backward()  # type: ignore[no-untyped-call]
                adam.step()
            if step % self.look == 0 or step == epochs:
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
