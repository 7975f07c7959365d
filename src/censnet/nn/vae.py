"""CensNet-VAE: a variational auto-encoder of the links of a graph, and its decoder for graphs of any size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from censnet.nn.decoder import LinkDecoder
from censnet.nn.encoder import CensNet
from censnet.nn.layers import DEFAULT_OPTIONS, LayerOptions, letters_of, show_options
from censnet.ops.checks import check_numbering, check_shape
from censnet.ops.graph import Graph
from censnet.ops.incidence import Incidence
from censnet.ops.pairs import count_linked_pairs, count_ordered_pairs, has_edge, sample_ordered_pairs
from censnet.ops.propagate import propagate_nodes
from censnet.ops.sparse import matmul, products_with_all

BLOCK = 2**24  # pairs of nodes that are decoded at once: 64 MB in float32
ALL_PAIRS = 20_000  # nodes of the largest graph whose pairs are all decoded in each step


@dataclass(frozen=True)
class Latent:
    """The distribution of the nodes' embeddings: a Gaussian with a mean and a deviation for each node and channel."""

    mean: Tensor
    log_std: Tensor

    @property
    def embedding(self) -> Tensor:
        """The mean, by which pairs are scored."""
        return self.mean

    def to(self, device: torch.device | str) -> Latent:
        """The same on another device."""
        return Latent(self.mean.to(device), self.log_std.to(device))

    def sample(self) -> Tensor:
        """Draw M, so that a gradient passes through."""
        return self.mean + torch.randn_like(self.mean) * self.log_std.exp()

    def kl_divergence(self) -> Tensor:
        """KL[Q(M | X, Z, A~) || N(0, I)], summed over all nodes and channels."""
        return -0.5 * (1 + 2 * self.log_std - self.mean**2 - (2 * self.log_std).exp()).sum()


class VariationalDecoder(LinkDecoder):
    r"""Predict links from the nodes' embeddings, as CensNet-VAE does (section 4.4 of the paper).

    .. math::
        \mu = \tilde A_v H W_\mu, \qquad \log \sigma = \tilde A_v H W_\sigma, \qquad
        \hat A_v = \mathrm{sigmoid}(M M^\top)

    The loss is the negative of the paper's bound, for one sample of M, divided by the number P of ordered pairs:

    .. math::
        \tfrac{1}{P} \bigl( -c\, \textstyle\sum_{i,j} a_{ij} \log P(\tilde A_{ij} | m_i, m_j)
        + \mathrm{KL}[Q(M) \| N(0, I)] \bigr)

    where :math:`a_{ij}` is `positive_weight` for a linked pair and 1 for another, and c makes the mean of a 1. 1 is the
    loss as printed; in a sparse graph it is minimized by predicting no link at all. "balanced" gives both kinds of
    pairs the same weight in all, as does the code of the variational graph auto-encoder, on which the paper builds. In
    a batch of many graphs the pairs are those within one graph.

    **What is computed.** Up to 20,000 nodes all pairs, in blocks. Above, or where the graphs of a batch have more than
    a million pairs, all links against as many pairs (at least one for each node) sampled in each step, of which linked
    ones count nothing; with the factor P / (number sampled) the expectation is the sum over all pairs.

    Args:
        node_width: channels of each node's embedding.
        latent: channels of the latent embedding; 32 in the paper.
        positive_weight: how much more a linked pair counts than another.

    Shape:
        nodes (N, node_width) -> Latent of (N, latent).

    Example:
        >>> path = Graph(torch.randn(3, 4), torch.ones(2, 1), torch.tensor([[0, 1], [1, 2]]))
        >>> decoder = VariationalDecoder(node_width=4, latent=2)
        >>> latent = decoder(path.nodes, path.edges, path)
        >>> decoder.loss(latent, path).isfinite().item(), decoder.score(latent, torch.tensor([[0, 0], [1, 2]])).shape
        (True, torch.Size([2]))
    """

    def __init__(
        self, node_width: int, latent: int = 32, positive_weight: float | Literal["balanced"] = "balanced"
    ) -> None:
        super().__init__()
        number = isinstance(positive_weight, int | float) and 0 < positive_weight < float("inf")
        if positive_weight != "balanced" and not number:
            raise ValueError(f"positive_weight is {positive_weight!r}, expected a number above 0 or 'balanced'")
        self.positive_weight = positive_weight
        self.weight = nn.Parameter(torch.empty(node_width, 2 * latent))  # W_mu and W_sigma, concatenated
        self.reset_parameters()

    def extra_repr(self) -> str:
        return f"{self.weight.shape[0]} -> {self.weight.shape[1] // 2}"

    def reset_parameters(self) -> None:
        """Initialize both matrices by Glorot and Bengio."""
        for half in self.weight.data.chunk(2, dim=1):
            nn.init.xavier_uniform_(half)

    def forward(self, nodes: Tensor, edges: Tensor, graph: Graph) -> Latent:
        """The distribution of each node's latent embedding."""
        return self.encode(nodes, graph.incidence)

    def encode(self, nodes: Tensor, incidence: Incidence) -> Latent:
        """The same, from the incidence alone."""
        check_shape("nodes", nodes, (incidence.num_nodes, self.weight.shape[0]), "(N, node_width)")
        ones = nodes.new_ones(incidence.num_edges) / incidence.multiplicity.to(nodes.dtype)  # A_v is binary
        both = propagate_nodes(matmul(nodes, self.weight), ones, incidence, self_weight="one")
        mean, log_std = both.chunk(2, dim=1)
        return Latent(mean, log_std)

    def loss(
        self, inputs: Latent, graph: Graph, positives: Tensor | None = None, negatives: Tensor | None = None
    ) -> Tensor:
        """The loss of one sample of M for all links of `graph`; pairs that were drawn are not used."""
        pairs, linked = count_ordered_pairs(graph.incidence), count_linked_pairs(graph.incidence)
        balanced = max(pairs - linked, 1) / linked  # a complete graph has nothing to be balanced with
        weight = balanced if self.positive_weight == "balanced" else self.positive_weight
        scale = pairs / (pairs - linked + weight * linked)
        return self.negative_elbo(inputs, graph.incidence, weight, scale) / pairs

    def negative_elbo(
        self, latent: Latent, incidence: Incidence, positive_weight: float = 1.0, scale: float = 1.0
    ) -> Tensor:
        """-scale log P(A~ | M) + KL[Q(M) || N(0, I)] for one sample of M: the negative evidence lower bound. -> ()"""
        embedding = latent.sample()
        if incidence.owner is None and incidence.num_nodes <= ALL_PAIRS:
            pairs = reconstruction(embedding, incidence, positive_weight)
        else:
            links = (count_linked_pairs(incidence) - incidence.num_nodes) // 2
            sampled = sample_ordered_pairs(incidence, max(links, incidence.num_nodes))
            pairs = sampled_reconstruction(embedding, incidence, sampled, positive_weight)
        return scale * pairs + latent.kl_divergence()

    def score(self, inputs: Latent, pairs: Tensor) -> Tensor:
        """The logit of a link for each pair, the inner product of the means. (2, P) -> (P,)"""
        check_shape("pairs", pairs, (2, None), "(2, P), one column for each pair")
        check_numbering("pairs", pairs, len(inputs.mean), "node")
        first, second = pairs.to(inputs.mean.device)
        return (inputs.mean.index_select(0, first) * inputs.mean.index_select(0, second)).sum(1)

    @torch.no_grad()
    def score_all_pairs(self, inputs: Latent, nodes: Tensor, start: int = 0) -> Tensor:
        """The logits of links from some nodes to every node from `start` on. (k,) -> (k, N - start)"""
        return products_with_all(inputs.mean, nodes.to(inputs.mean.device), start)


class CensNetVAE(nn.Module):
    r"""A variational auto-encoder of a graph's links whose encoder reads the edges (section 4.4 of the paper).

    .. math::
        \mathrm{Encoder}_i(X, Z, \tilde A_v) = \tilde A_v\, \mathrm{ReLU}(\mathrm{CensNet}_N(X, Z, \tilde A_v))\, W_i

    for the mean and the logarithm of the deviation, and :math:`\hat A_v = \mathrm{sigmoid}(M M^\top)`. The loss is
    :math:`-\mathbb{E}_Q[\log P(\tilde A_v | M)] + \mathrm{KL}[Q(M) \| N(0, I)]`, the first term over all pairs of
    nodes, each with itself included since :math:`\tilde A_v` has ones there.

    **What is computed.** A `CensNet` and a `VariationalDecoder`. Of all N x N pairs only the sum of their softplus is
    needed, which is computed in blocks; neither :math:`\hat A_v` nor :math:`A_v` is built.

    Args:
        node_width: channels of each node.
        edge_width: channels of each edge.
        hidden: channels after the CensNet layers; 64 in the paper.
        latent: channels of the embedding; 32 in the paper.
        layers: the CensNet layers before the last propagation. "N" is the printed equation; the paper's figure draws
            one edge layer before it, which is "EN".
        dropout: after each CensNet layer.
        options, keywords: `LayerOptions`. As printed, a node without a link has no weight in its own update.

    Shape:
        nodes (N, node_width), edges (E, edge_width) -> Latent of (N, latent).

    Example:
        >>> path = Incidence(torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
        >>> model = CensNetVAE(node_width=4, edge_width=2)
        >>> latent = model(torch.randn(3, 4), torch.randn(2, 2), path)
        >>> latent.mean.shape
        torch.Size([3, 32])
        >>> model.loss(latent, path).isfinite().item()
        True
    """

    def __init__(
        self,
        node_width: int,
        edge_width: int,
        hidden: int = 64,
        latent: int = 32,
        layers: str = "N",
        dropout: float = 0.0,
        *,
        options: LayerOptions = DEFAULT_OPTIONS,
        **keywords: Any,
    ) -> None:
        super().__init__()
        if not layers.endswith(tuple(letters_of("node"))):
            raise ValueError(
                f"layers is {layers!r}, expected a sequence of N and E that ends in N: the latent is of nodes"
            )
        self.encoder = CensNet(node_width, edge_width, hidden, layers, dropout=dropout, options=options, **keywords)
        self.decoder = VariationalDecoder(hidden, latent, positive_weight=1.0)

    def reset_parameters(self) -> None:
        """Initialize all parameters."""
        self.encoder.reset_parameters()
        self.decoder.reset_parameters()

    def forward(self, nodes: Tensor, edges: Tensor, incidence: Incidence) -> Latent:
        """Encode: the distribution of each node's embedding."""
        embedded, _ = self.encoder(nodes, edges, incidence)
        return self.decoder.encode(embedded, incidence)

    def loss(self, latent: Latent, incidence: Incidence, positive_weight: float = 1.0) -> Tensor:
        """The negative of the paper's bound, for one sample of M, divided by the number of nodes.

        Args:
            latent: the result of `forward`.
            incidence: the links to predict; often fewer than the encoder has read.
            positive_weight: how much more a linked pair counts than another. 1 is the printed loss; the variational
                graph auto-encoder takes (N^2 - links) / links in sparse graphs.
        """
        return self.decoder.negative_elbo(latent, incidence, positive_weight) / incidence.num_nodes


show_options(CensNetVAE)


def reconstruction(embedding: Tensor, incidence: Incidence, positive_weight: float = 1.0) -> Tensor:
    """-log P(A~ | M) over all ordered pairs of nodes, each with itself included. (N, latent) -> ()."""
    linked, own = inner_products(embedding, incidence)
    everywhere = cast(Tensor, _SoftplusOfAllPairs.apply(embedding))  # type: ignore[no-untyped-call]
    # softplus(-x) = softplus(x) - x, so a linked pair of weight a adds (a - 1) softplus(x) - a x
    extra = positive_weight - 1
    links = (edge_pair_count(incidence, linked.dtype) * (extra * F.softplus(linked) - positive_weight * linked)).sum()
    loops = (extra * F.softplus(own) - positive_weight * own).sum()
    return everywhere + links + loops


def sampled_reconstruction(
    embedding: Tensor, incidence: Incidence, sampled: Tensor, positive_weight: float = 1.0
) -> Tensor:
    """-log P(A~ | M): exact for linked pairs, and for the others estimated from sampled pairs. (2, k) -> ()"""
    linked, own = inner_products(embedding, incidence)
    links = (edge_pair_count(incidence, linked.dtype) * F.softplus(-linked)).sum() + F.softplus(-own).sum()
    first, second = sampled
    negative = ~has_edge(incidence, first, second)
    x = (embedding[first] * embedding[second]).sum(1)
    others = torch.where(negative, F.softplus(x), 0).sum() * (count_ordered_pairs(incidence) / sampled.shape[1])
    return positive_weight * links + others


def inner_products(embedding: Tensor, incidence: Incidence) -> tuple[Tensor, Tensor]:
    """m_i . m_j for each edge i-j, and m_i . m_i for each node. (N, latent) -> (E,), (N,)."""
    check_shape("embedding", embedding, (incidence.num_nodes, None), "(N, latent)")
    first, second = incidence.ends
    return (embedding[first] * embedding[second]).sum(1), (embedding * embedding).sum(1)


def edge_pair_count(incidence: Incidence, dtype: torch.dtype) -> Tensor:
    """The number of ordered pairs that each edge stands for. (E,)

    A pair counts once each way, however many parallel edges it has; loops are on the diagonal, which has its ones
    already.
    """
    first, second = incidence.ends
    return torch.where(first == second, 0, 2 / incidence.multiplicity.to(dtype))


class _SoftplusOfAllPairs(torch.autograd.Function):
    """sum over all i, j of softplus(m_i . m_j), a block of rows at a time; its gradient is 2 sigmoid(M M^t) M."""

    @staticmethod
    def forward(ctx: Any, M: Tensor) -> Tensor:
        total = torch.zeros((), dtype=torch.float64, device=M.device)
        gradient = torch.empty_like(M) if ctx.needs_input_grad[0] else None
        rows = max(1, BLOCK // len(M))
        for start in range(0, len(M), rows):
            block = M[start : start + rows] @ M.t()
            total += F.softplus(block).sum(dtype=torch.float64)
            if gradient is not None:
                gradient[start : start + rows] = 2 * (block.sigmoid_() @ M)
        ctx.save_for_backward(gradient)
        return total.to(M.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (gradient,) = ctx.saved_tensors
        return cast(Tensor, grad * gradient)
