"""Edge masking and negative sampling: the links that a step hides and learns from, and as many pairs without a link."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from censnet.ops.arrays import unique_inverse
from censnet.ops.graph import Graph
from censnet.ops.pairs import NodePairs, OrderedNodePairs, sample_non_edges, sample_ordered_non_edges


class LinkBatch(NamedTuple):
    """Pairs of nodes for one step.

    Args:
        message_edges: the edges that message passing sees; None is all of them.
        positives: pairs whose edges are masked; all linked pairs where none is masked. (2, P)
        negatives: pairs without an edge, none twice. (2, Q)
    """

    message_edges: Tensor | None
    positives: Tensor
    negatives: Tensor


class LinkSampler:
    """Mask some links and sample negative pairs, in memory linear in the links: no matrix of all pairs is built.

    A pair of nodes is masked with all edges between them, in either direction: one left over would leak the label.
    Loops are never masked. Negative sampling is exact: no edge joins a negative pair. Where links are ordered, an
    ordered pair is masked with all edges in its direction, and negatives are ordered pairs, up to half of them masked
    links turned around: as held-out links are, see `censnet.data.splits.links`.

    Args:
        graph: the training links.
        mask_ratio: share of the links that is masked, at least one of them; 0 is none.
        negative_ratio: negative pairs for each positive one, as far as there are so many.
        ordered: whether the direction of a link is predicted.

    Example:
        >>> square = Graph(torch.ones(4, 1), torch.ones(5, 1), torch.tensor([[0, 1, 2, 3, 1], [1, 2, 3, 0, 0]]))
        >>> drawn = LinkSampler(square, 0.25, 2)(torch.Generator().manual_seed(0))
        >>> drawn.positives.shape, sorted(drawn.negatives.t().tolist())
        (torch.Size([2, 1]), [[0, 2], [1, 3]])
    """

    def __init__(self, graph: Graph, mask_ratio: float, negative_ratio: int, ordered: bool = False) -> None:
        self.mask_ratio, self.negative_ratio, self.device = mask_ratio, negative_ratio, graph.ends.device
        ends = graph.ends.cpu().numpy()
        self._space = OrderedNodePairs.of(graph) if ordered else NodePairs.of(graph)
        proper = np.flatnonzero(ends[0] != ends[1])
        self._links, pair_of = unique_inverse(self._space.rank(ends[0][proper], ends[1][proper]))
        self._link_of = torch.full((graph.num_edges,), len(self._links))
        self._link_of[torch.from_numpy(proper)] = torch.from_numpy(pair_of)

    def __call__(self, generator: torch.Generator) -> LinkBatch:
        """Sample the pairs of one step; the same generator gives the same."""
        count, chosen, message_edges = len(self._links), self._links, None
        if self.mask_ratio and count:
            masked = torch.randperm(count, generator=generator)[: max(1, round(self.mask_ratio * count))]
            chosen = self._links[masked.numpy()]
            visible = torch.ones(count + 1, dtype=torch.bool)  # the last one is for loops
            visible[masked] = False
            message_edges = visible[self._link_of].nonzero().squeeze(1).to(self.device)
        rng = np.random.default_rng(int(torch.randint(2**62, (), generator=generator)))
        num_negatives = min(self.negative_ratio * len(chosen), self._space.num_pairs - count)
        if isinstance(self._space, OrderedNodePairs):
            sampled = sample_ordered_non_edges(self._space, self._links, chosen, num_negatives, rng)
        else:
            sampled = sample_non_edges(self._space, self._links, num_negatives, rng)
        positives, negatives = (
            torch.from_numpy(self._space.pair(pairs)).to(self.device) for pairs in (chosen, sampled)
        )
        return LinkBatch(message_edges, positives, negatives)
