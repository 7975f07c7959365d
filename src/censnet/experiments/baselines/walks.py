"""DeepWalk (Perozzi et al. 2014): nodes that random walks pass together get embeddings that point the same way."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from censnet.ops.graph import Graph


def random_walks(graph: Graph, per_node: int, length: int, generator: torch.Generator) -> Tensor:
    """Walks from every node, each step to a neighbour at random; a node without neighbours stays where it is.

    Shape:
        (N * per_node, length), on the host.
    """
    ends = torch.cat([graph.ends, graph.ends.flip(0)], dim=1).cpu()
    order = ends[0].argsort(stable=True)
    neighbour = ends[1][order]
    degree = torch.bincount(ends[0], minlength=graph.num_nodes)
    first = degree.cumsum(0) - degree
    place = torch.arange(graph.num_nodes).repeat(per_node)
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

    Args:
        graph: whose widths do not matter.
        embedding: channels.
        per_node: walks from each node, drawn anew in every epoch.
        length: nodes of a walk.
        window: how far apart two nodes of a pair can be.
        negatives: nodes at random for each pair.
        steps: of a pass over all walks. However large the graph, more steps fit what is seen and lose what is hidden.
        unit: whether embeddings are brought to length 1, so that a pair's score is their cosine.
    """

    def __init__(
        self,
        graph: Graph,
        embedding: int = 128,
        per_node: int = 10,
        length: int = 40,
        window: int = 10,
        negatives: int = 1,
        steps: int = 128,
        unit: bool = False,
    ) -> None:
        self.graph, self.embedding, self.per_node, self.length = graph, embedding, per_node, length
        self.window, self.negatives, self.steps, self.unit = window, negatives, steps, unit

    def embed(self, epochs: int, learning_rate: float, seed: int, score: Callable[[Tensor], float]) -> Tensor:
        """Train, and give the embedding of each node after the last pass. (N, embedding)"""
        device, count = self.graph.ends.device, self.graph.num_nodes
        generator = torch.Generator().manual_seed(seed)
        near = (torch.rand(count, self.embedding, generator=generator) - 0.5) / self.embedding
        near, far = near.to(device).requires_grad_(), torch.zeros(count, self.embedding, device=device).requires_grad_()
        adam = torch.optim.Adam([near, far], lr=learning_rate)
        for _ in range(epochs):
            walks = random_walks(self.graph, self.per_node, self.length, generator)
            for some in torch.tensor_split(walks[torch.randperm(len(walks), generator=generator)], self.steps):
                pairs = window_pairs(some, self.window)
                pairs = pairs[:, pairs[0] != pairs[1]]  # a walk that stays has nothing to tell
                if not pairs.shape[1]:
                    continue
                other = torch.randint(count, (pairs.shape[1], self.negatives), generator=generator)
                adam.zero_grad()
                _skip_gram(near, far, pairs.to(device), other.to(device)).backward()  # type: ignore[no-untyped-call]
                adam.step()
        return F.normalize(near.detach(), dim=1) if self.unit else near.detach()


def _skip_gram(near: Tensor, far: Tensor, pairs: Tensor, other: Tensor) -> Tensor:
    """-log sigmoid(u . v) - sum log sigmoid(-u . v') over the mean of the pairs."""
    u = near[pairs[0]]
    together = (u * far[pairs[1]]).sum(1)
    apart = torch.bmm(far[other], u.unsqueeze(2)).squeeze(2)
    return F.softplus(-together).mean() + F.softplus(apart).sum(1).mean()
