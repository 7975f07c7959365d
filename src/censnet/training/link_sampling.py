"""Which links a step hides and learns from, and which pairs that are no links it tells them from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from censnet.ops.arrays import unique_inverse
from censnet.ops.graph import Graph
from censnet.ops.pairs import NodePairs, sample_non_edges


class LinkBatch(NamedTuple):
    """What a step draws.

    Args:
        seen: the edges that message passing sees; None is all of them.
        links: the pairs of nodes that are links and hidden; all links where none is hidden. (2, P)
        others: pairs that no edge joins, none twice. (2, Q)
    """

    seen: Tensor | None
    links: Tensor
    others: Tensor


class LinkSampler:
    """Draw links to hide and pairs that are none, a few numbers for each link, and no matrix of all pairs.

    What is hidden is a pair of nodes with all edges between them, in either direction: one that stayed would tell the
    answer. Loops are never hidden.

    Args:
        graph: the links that may be seen.
        mask: the share of them that is hidden, at least one; 0 is none.
        negatives: pairs that are no links for each that is, as far as there are any.

    Example:
        >>> square = Graph(torch.ones(4, 1), torch.ones(5, 1), torch.tensor([[0, 1, 2, 3, 1], [1, 2, 3, 0, 0]]))
        >>> drawn = LinkSampler(square, 0.25, 2)(torch.Generator().manual_seed(0))
        >>> drawn.links.shape, sorted(drawn.others.t().tolist())
        (torch.Size([2, 1]), [[0, 2], [1, 3]])
    """

    def __init__(self, graph: Graph, mask: float, negatives: int) -> None:
        self.mask, self.negatives, self.device = mask, negatives, graph.ends.device
        ends = graph.ends.cpu().numpy()
        self._space = NodePairs.of(graph)
        proper = np.flatnonzero(ends[0] != ends[1])
        self._links, pair_of = unique_inverse(self._space.rank(ends[0][proper], ends[1][proper]))
        self._link_of = torch.full((graph.num_edges,), len(self._links))
        self._link_of[torch.from_numpy(proper)] = torch.from_numpy(pair_of)

    def __call__(self, generator: torch.Generator) -> LinkBatch:
        """One draw; the same generator gives the same."""
        count, chosen, seen = len(self._links), self._links, None
        if self.mask and count:
            hidden = torch.randperm(count, generator=generator)[: max(1, round(self.mask * count))]
            chosen = self._links[hidden.numpy()]
            stays = torch.ones(count + 1, dtype=torch.bool)  # the last one is for loops
            stays[hidden] = False
            seen = stays[self._link_of].nonzero().squeeze(1).to(self.device)
        rng = np.random.default_rng(int(torch.randint(2**62, (), generator=generator)))
        missing = min(self.negatives * len(chosen), self._space.num_pairs - count)
        others = sample_non_edges(self._space, self._links, missing, rng)
        links, apart = (torch.from_numpy(self._space.pair(pairs)).to(self.device) for pairs in (chosen, others))
        return LinkBatch(seen, links, apart)
