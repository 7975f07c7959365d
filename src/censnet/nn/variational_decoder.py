"""Which nodes are joined: the variational auto-encoder's part above the encoder, for graphs of any size."""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from censnet.nn.heads import LinkHead
from censnet.nn.vae import Latent, LatentHead, edge_pair_count, inner_products, reconstruction
from censnet.ops.incidence import Incidence
from censnet.ops.segments import offsets
from censnet.ops.sparse import products_with_all

ALL_PAIRS = 20_000  # nodes of the largest graph whose pairs are all decoded in each step
FEW_PAIRS = 2**20  # pairs of a union that are all decoded in each step


class VariationalDecoder(nn.Module):
    r"""Tell links from the nodes' embeddings, as CensNet-VAE does (section 4.4 of the paper).

    The loss is the negative of the paper's bound, for one sample of M, divided by the number P of ordered pairs:

    .. math::
        \tfrac{1}{P} \bigl( -c\, \textstyle\sum_{i,j} a_{ij} \log P(\tilde A_{ij} | m_i, m_j)
        + \mathrm{KL}[Q(M) \| N(0, I)] \bigr)

    where :math:`a_{ij}` is `positive_weight` for a joined pair and 1 for another, and c makes the mean of a 1. 1 is the
    loss as printed; in a sparse graph it is made small by saying that nothing is joined. "balanced" gives both kinds of
    pairs the same weight in all, as does the code of the variational graph auto-encoder, on which the paper builds. In
    a union of many graphs the pairs are those within one graph.

    **What is computed.** Up to 20,000 nodes all pairs, in blocks. Above, or where the graphs of a union have more than
    a million pairs, all links against as many pairs (at least one for each node) drawn afresh each time, of which
    those that are joined count nothing; with the factor P / (number drawn) the expectation is the sum over all pairs.

    Args:
        width: channels of each node's embedding.
        latent: channels that links are told from; 32 in the paper.
        positive_weight: how much more a joined pair counts than another.

    Shape:
        nodes (N, width) -> Latent of (N, latent).

    Example:
        >>> path = Incidence(torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
        >>> task = VariationalDecoder(width=4, latent=2)
        >>> latent = task(torch.randn(3, 4), path)
        >>> task.loss(latent, path).isfinite().item(), task.score(latent, torch.tensor([[0, 0], [1, 2]])).shape
        (True, torch.Size([2]))
    """

    def __init__(self, width: int, latent: int = 32, positive_weight: float | Literal["balanced"] = "balanced") -> None:
        super().__init__()
        number = isinstance(positive_weight, int | float) and 0 < positive_weight < float("inf")
        if positive_weight != "balanced" and not number:
            raise ValueError(f"positive_weight is {positive_weight!r}, expected a number above 0 or 'balanced'")
        self.positive_weight = positive_weight
        self.head = LatentHead(width, latent)
        self.decoder = LinkHead(latent)

    def reset_parameters(self) -> None:
        """Start afresh."""
        self.head.reset_parameters()

    def forward(self, nodes: Tensor, incidence: Incidence) -> Latent:
        """The distribution of each node's latent embedding."""
        latent: Latent = self.head(nodes, incidence)
        return latent

    def loss(self, latent: Latent, incidence: Incidence) -> Tensor:
        """The loss of one sample; `incidence` has the links to be told."""
        if incidence.num_nodes == 0:
            return latent.mean.sum()
        embedding = latent.sample()
        pairs, joined = PairNumbers(incidence), count_edges_between(incidence)
        weight = self._weight(pairs.count, joined)
        scale = pairs.count / (pairs.count - joined + weight * joined)
        if incidence.owner is None and incidence.num_nodes <= ALL_PAIRS:
            all_pairs = reconstruction(embedding, incidence, weight)
        else:
            links = (joined - incidence.num_nodes) // 2
            drawn = pairs.draw(max(links, incidence.num_nodes))
            all_pairs = pair_loss(embedding, incidence, pairs, drawn, weight)
        return (scale * all_pairs + latent.kl_divergence()) / pairs.count

    def _weight(self, num_pairs: int, joined: int) -> float:
        if self.positive_weight != "balanced":
            return self.positive_weight
        return max(num_pairs - joined, 1) / joined  # a complete graph has nothing to be balanced with

    def score(self, latent: Latent, pairs: Tensor) -> Tensor:
        """The logit of a link for each pair, from the means. (2, P) -> (P,)"""
        logits: Tensor = self.decoder(latent.mean, pairs)
        return logits

    @torch.no_grad()
    def score_all_pairs(self, latent: Latent, nodes: Tensor, start: int = 0) -> Tensor:
        """The logit of a link of some nodes with every node from `start` on. (k,) -> (k, N - start)"""
        return products_with_all(latent.mean, nodes, start)


class PairNumbers:
    """A number for each ordered pair of nodes of one graph, a node with itself included.

    Args:
        incidence: of one graph, or of a union of many.

    Example:
        >>> two = Incidence(torch.tensor([[0], [1]]), num_nodes=3, owner=torch.tensor([0, 0, 1]), num_graphs=2)
        >>> pairs = PairNumbers(two)
        >>> pairs.count, pairs.pair(pairs.draw(5)).t().tolist()
        (5, [[0, 0], [0, 1], [1, 0], [1, 1], [2, 2]])
    """

    def __init__(self, incidence: Incidence) -> None:
        self.num_nodes, self.owner, self.device = incidence.num_nodes, incidence.owner, incidence.ends.device
        self.count = self.num_nodes**2
        if self.owner is not None:
            size = incidence.count("node")
            self._order, self._start = torch.argsort(self.owner, stable=True), offsets(size)
            self._offset = offsets(size[self.owner])  # node i has a pair with each node of its graph
            self.count = int(self._offset[-1])

    def draw(self, count: int) -> Tensor:
        """So many numbers at random, or all if there are not many anyway."""
        if self.count <= max(count, FEW_PAIRS):
            return torch.arange(self.count, device=self.device)
        return torch.randint(self.count, (count,), device=self.device)

    def pair(self, number: Tensor) -> Tensor:
        """The two nodes of each number. (k,) -> (2, k)"""
        if self.owner is None:
            return torch.stack([number // self.num_nodes, number % self.num_nodes])
        first = torch.searchsorted(self._offset, number, right=True) - 1
        second = self._order[self._start[self.owner[first]] + number - self._offset[first]]
        return torch.stack([first, second])


def count_edges_between(incidence: Incidence) -> int:
    """How many ordered pairs are joined, a node with itself included: the ones of A~."""
    return int(incidence.keep(("joined pairs",), lambda: incidence.node_degree.sum().cpu()))


def pair_loss(
    embedding: Tensor, incidence: Incidence, pairs: PairNumbers, drawn: Tensor, positive_weight: float
) -> Tensor:
    """-log P(A~ | M): that of the joined pairs, and of the others as estimated from the numbers drawn. -> ()"""
    joined, own = inner_products(embedding, incidence)
    links = (edge_pair_count(incidence, joined.dtype) * F.softplus(-joined)).sum() + F.softplus(-own).sum()
    first, second = pairs.pair(drawn)
    apart = ~has_edge(incidence, first, second)
    x = (embedding[first] * embedding[second]).sum(1)
    others = torch.where(apart, F.softplus(x), 0).sum() * (pairs.count / len(drawn))
    return positive_weight * links + others


def has_edge(incidence: Incidence, first: Tensor, second: Tensor) -> Tensor:
    """Whether an edge joins each pair; a node is joined with itself. (k,), (k,) -> (k,)"""
    if incidence.num_edges == 0:
        return first == second
    key, order = incidence.sorted_pairs
    known = incidence.keep(("sorted keys",), lambda: key[order])
    sought = torch.minimum(first, second) * incidence.num_nodes + torch.maximum(first, second)
    place = torch.searchsorted(known, sought).clamp(max=len(known) - 1)
    return (known[place] == sought) | (first == second)
