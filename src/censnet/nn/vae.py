"""CensNet-VAE: embeddings of the nodes from which the links of the graph can be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from censnet.nn.encoder import CensNet
from censnet.nn.layers import GateInit, SelfWeight
from censnet.ops.checks import check_shape
from censnet.ops.incidence import Incidence
from censnet.ops.propagate import propagate_nodes
from censnet.ops.sparse import matmul

BLOCK = 2**24  # pairs of nodes that are decoded at once: 64 MB in float32


@dataclass(frozen=True)
class Latent:
    """The distribution of the nodes' embeddings: a Gaussian with a mean and a deviation for each node and channel."""

    mean: Tensor
    log_std: Tensor

    @property
    def places(self) -> Tensor:
        """Where each node is: what pairs are scored by."""
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


class LatentHead(nn.Module):
    r"""The variational part of CensNet-VAE: from embedded nodes to the distribution that the links are told from.

    .. math::
        \mu = \tilde A_v H W_\mu, \qquad \log \sigma = \tilde A_v H W_\sigma

    Args:
        width: channels of each node.
        latent: channels of the embedding; 32 in the paper.

    Shape:
        nodes (N, width) -> Latent of (N, latent).
    """

    def __init__(self, width: int, latent: int = 32) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width, 2 * latent))
        self.reset_parameters()

    def extra_repr(self) -> str:
        return f"{self.weight.shape[0]} -> {self.weight.shape[1] // 2}"

    def reset_parameters(self) -> None:
        """Start afresh."""
        for half in self.weight.data.chunk(2, dim=1):
            nn.init.xavier_uniform_(half)

    def forward(self, nodes: Tensor, incidence: Incidence) -> Latent:
        """The distribution of each node's embedding."""
        check_shape("nodes", nodes, (incidence.num_nodes, self.weight.shape[0]), "(N, width)")
        ones = nodes.new_ones(incidence.num_edges) / incidence.multiplicity.to(nodes.dtype)  # A_v is binary
        both = propagate_nodes(matmul(nodes, self.weight), ones, incidence, self_weight="one")
        mean, log_std = both.chunk(2, dim=1)
        return Latent(mean, log_std)


class CensNetVAE(nn.Module):
    r"""A variational auto-encoder of a graph's links whose encoder reads the edges (section 4.4 of the paper).

    .. math::
        \mathrm{Encoder}_i(X, Z, \tilde A_v) = \tilde A_v\, \mathrm{ReLU}(\mathrm{CensNet}_N(X, Z, \tilde A_v))\, W_i

    for the mean and the logarithm of the deviation, and :math:`\hat A_v = \mathrm{sigmoid}(M M^\top)`. The loss is
    :math:`-\mathbb{E}_Q[\log P(\tilde A_v | M)] + \mathrm{KL}[Q(M) \| N(0, I)]`, the first term over all pairs of
    nodes, each with itself included since :math:`\tilde A_v` has ones there.

    **What is computed.** Of all N x N pairs only the sum of their softplus is needed, which is taken in blocks of rows;
    neither :math:`\hat A_v` nor :math:`A_v` is built.

    Args:
        node_width: channels of each node.
        edge_width: channels of each edge.
        hidden: channels after the CensNet layers; 64 in the paper.
        latent: channels of the embedding; 32 in the paper.
        layers: the CensNet layers before the last propagation. "N" is the printed equation; the paper's figure draws
            one edge layer before it, which is "EN".
        dropout: after each CensNet layer.
        gate_init: how the vectors p start; see `NodeLayer`.
        self_weight: what a row gives itself; see `NodeLayer`. As printed, a node without a link gives itself nothing.

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
        gate_init: GateInit = "signed",
        self_weight: SelfWeight | None = None,
    ) -> None:
        super().__init__()
        if not layers.endswith("N"):
            raise ValueError(f"layers is {layers!r}, expected a word of N and E that ends in N: the latent is of nodes")
        self.encoder = CensNet(
            node_width, edge_width, hidden, layers, dropout=dropout, gate_init=gate_init, self_weight=self_weight
        )
        self.head = LatentHead(hidden, latent)

    def reset_parameters(self) -> None:
        """Start afresh."""
        self.encoder.reset_parameters()
        self.head.reset_parameters()

    @property
    def weight(self) -> Tensor:
        """W_mu and W_sigma, side by side."""
        return self.head.weight

    def forward(self, nodes: Tensor, edges: Tensor, incidence: Incidence) -> Latent:
        """Encode: the distribution of each node's embedding."""
        hidden, _ = self.encoder(nodes, edges, incidence)
        latent: Latent = self.head(hidden, incidence)
        return latent

    def loss(self, latent: Latent, incidence: Incidence, positive_weight: float = 1.0) -> Tensor:
        """The negative of the paper's bound, for one sample of M, divided by the number of nodes.

        Args:
            latent: what `forward` gave.
            incidence: the links to be told; often fewer than those that were read.
            positive_weight: how much more a pair that is joined counts than one that is not. 1 is the printed loss; the
                variational graph auto-encoder takes (N^2 - links) / links in sparse graphs.
        """
        embedding = latent.sample()
        return (self.reconstruction(embedding, incidence, positive_weight) + latent.kl_divergence()) / len(embedding)

    def reconstruction(self, embedding: Tensor, incidence: Incidence, positive_weight: float = 1.0) -> Tensor:
        """-log P(A~ | M) over all ordered pairs. (N, latent) -> ()."""
        return reconstruction(embedding, incidence, positive_weight)


def reconstruction(embedding: Tensor, incidence: Incidence, positive_weight: float = 1.0) -> Tensor:
    """-log P(A~ | M) over all ordered pairs of nodes, each with itself included. (N, latent) -> ()."""
    joined, own = inner_products(embedding, incidence)
    everywhere = cast(Tensor, _SoftplusOfAllPairs.apply(embedding))  # type: ignore[no-untyped-call]
    # softplus(-x) = softplus(x) - x, so a joined pair of weight a adds (a - 1) softplus(x) - a x
    extra = positive_weight - 1
    links = (edge_pair_count(incidence, joined.dtype) * (extra * F.softplus(joined) - positive_weight * joined)).sum()
    loops = (extra * F.softplus(own) - positive_weight * own).sum()
    return everywhere + links + loops


def inner_products(embedding: Tensor, incidence: Incidence) -> tuple[Tensor, Tensor]:
    """m_i . m_j for each edge i-j, and m_i . m_i for each node. (N, latent) -> (E,), (N,)."""
    check_shape("embedding", embedding, (incidence.num_nodes, None), "(N, latent)")
    first, second = incidence.ends
    return (embedding[first] * embedding[second]).sum(1), (embedding * embedding).sum(1)


def edge_pair_count(incidence: Incidence, dtype: torch.dtype) -> Tensor:
    """How many ordered pairs each edge stands for. (E,)

    A pair counts once each way, however many parallel edges join it; loops are on the diagonal, which has its ones
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
