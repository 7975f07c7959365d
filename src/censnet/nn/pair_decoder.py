"""A link decoder that scores pair by pair, without a matrix of all pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from censnet.nn.decoder import LinkDecoder, LinkInputs
from censnet.nn.diffusion import diffusion_embedding
from censnet.nn.gates import bounded
from censnet.ops.checks import check_numbering, check_shape
from censnet.ops.graph import Graph
from censnet.ops.incidence import Incidence
from censnet.ops.normalization import DegreePower, scale_of
from censnet.ops.sparse import matmul, products_with_all, row_products, unit_rows

ONE_MORE = DegreePower(-0.5, more=1)  # the scaling of an edge once it has one neighbor more
STEP = 10.0  # how much faster the weights of cosines move than others: the optimizer's steps are small beside them
BLOCK = 2**18  # pairs that are scored at once without a gradient


@dataclass(frozen=True, eq=False)
class PairInputs:
    """Per-node tensors that pairs are scored from.

    Args:
        embedding: z, of length 1.
        incident_sum: r, the sum over a node's edges that a virtual edge at it would get: `PairDecoder` has the formula.
        edge_count: the number of edges of each node.
        features: the node's own, of length 1, dense or sparse CSR; None where they are not read.
        diffusion: k, the diffusion embedding, of length 1; None where it is not read.

    Shape:
        embedding (N, latent), incident_sum (N, latent), edge_count (N,), features (N, node_width),
        diffusion (N, `diffusion.WIDTH`).
    """

    embedding: Tensor
    incident_sum: Tensor
    edge_count: Tensor
    features: Tensor | None
    diffusion: Tensor | None

    def to(self, device: torch.device | str) -> PairInputs:
        """The same on another device."""
        own = self.embedding, self.incident_sum, self.edge_count
        maybe = self.features, self.diffusion
        return PairInputs(*(rows.to(device) for rows in own), *(None if x is None else x.to(device) for x in maybe))


class SampledPairDecoder(LinkDecoder):
    """A decoder that is trained on sampled pairs: its loss, its scores some pairs at a time, and the weights of terms.

    Args:
        node_width, edge_width, latent, features, edges, diffusion_steps: as in `PairDecoder`.
    """

    samples_pairs = True
    projection: nn.Parameter

    def __init__(
        self,
        node_width: int,
        edge_width: int,
        latent: int = 32,
        features: bool = True,
        edges: bool = True,
        diffusion_steps: int = 0,
    ) -> None:
        super().__init__()
        if diffusion_steps < 0:
            raise ValueError(f"diffusion_steps is {diffusion_steps}, expected a number of steps, or 0 for none")
        self.features, self.edges, self.diffusion_steps = features, edges, diffusion_steps
        self._make_projections(node_width, edge_width, latent)
        self.edge_weight = nn.Parameter(torch.empty(latent, 1), requires_grad=edges)
        self.embedding_weight = nn.Parameter(torch.empty(()))
        self.bias = nn.Parameter(torch.empty(()))
        self.feature_weight = nn.Parameter(torch.empty(()), requires_grad=features)
        self.diffusion_weight = nn.Parameter(torch.empty(()), requires_grad=diffusion_steps > 0)
        self.reset_parameters()

    def _make_projections(self, node_width: int, edge_width: int, latent: int) -> None:
        """Make the parameters of the embeddings: `projection` of nodes, and those of virtual edges."""
        raise NotImplementedError

    def extra_repr(self) -> str:
        reads = ("" if self.features else ", features=False") + ("" if self.edges else ", edges=False")
        reads += f", diffusion_steps={self.diffusion_steps}" if self.diffusion_steps else ""
        return reads

    def reset_parameters(self) -> None:
        """Initialize the weights of the terms: a score that is near 0 for a pair of nodes with something in common."""
        nn.init.constant_(self.embedding_weight, 5.0 / STEP)
        nn.init.constant_(self.bias, -2.0)
        nn.init.constant_(self.feature_weight, 10.0 / STEP if self.features else 0.0)
        nn.init.constant_(self.diffusion_weight, 3.0 / STEP if self.diffusion_steps else 0.0)

    def own_embeddings(self, graph: Graph) -> tuple[Tensor | None, Tensor | None]:
        """The input features of nodes and their diffusion embeddings, of length 1; None where they are not read."""
        features, diffusion = unit_rows(graph.nodes) if self.features else None, None
        if self.diffusion_steps:
            dtype = self.projection.dtype
            diffusion = diffusion_embedding(graph.nodes, graph.incidence, self.diffusion_steps, dtype)
        return features, diffusion

    def loss(
        self, inputs: Any, graph: Graph, positives: Tensor | None = None, negatives: Tensor | None = None
    ) -> Tensor:
        """The loss of positive and negative pairs; without pairs of a kind, that kind counts nothing."""
        return pair_loss(self, inputs, positives, negatives)

    def score(self, inputs: Any, pairs: Tensor) -> Tensor:
        """The logit of a link for each pair. (2, P) -> (P,)"""
        check_shape("pairs", pairs, (2, None), "(2, P), one column for each pair")
        check_numbering("pairs", pairs, len(inputs.embedding), "node")
        pairs = pairs.to(inputs.embedding.device)
        if torch.is_grad_enabled():
            return self._score(inputs, pairs)
        return torch.cat([self._score(inputs, part) for part in torch.split(pairs, BLOCK, dim=1)])

    def _score(self, inputs: Any, pairs: Tensor) -> Tensor:
        """The logit of a link for each pair of a block. (2, P) -> (P,)"""
        raise NotImplementedError


class PairDecoder(SampledPairDecoder):
    r"""Score links pair by pair, each pair with the embedding that it would have as an edge.

    The score of the pair i, j, the same for j, i, is the logit of a link:

    .. math::
        s_{ij} = a \cos(z_i, z_j) + c \cos(x_i, x_j) + g \cos(k_i, k_j) + w^\top \mathrm{ReLU}(e_{ij} + b)
        + \mathrm{bias}, \qquad z = H_v W_z

    where x are the nodes' input features, k their diffusion embedding (`censnet.nn.diffusion`), and :math:`e_{ij}` is
    the output of an edge layer for a virtual edge f between i and j without features. In the rule of `EdgeLayer`, on
    the graph with f in it, row f is

    .. math::
        e_{ij} = (D_e)_{ff}^{-1/2} \sum_{v \in \{i, j\}} u_v \sum_{g \ni v,\, g \ne f} (D_e)_{gg}^{-1/2} H_g W_e,
        \qquad u = 2\, \mathrm{sigmoid}(H_v p_v)

    **What is computed.** Every g that touches i or j has f as one neighbor more, so that its degree is the one it has
    in the graph plus 1, whatever the pair; and :math:`(D_e)_{ff} = \deg i + \deg j + 1`. So

    .. math::
        e_{ij} = (\deg i + \deg j + 1)^{-1/2} (r_i + r_j), \qquad r = \mathrm{diag}(u)\, T (D_e + I)^{-1/2} H_e W_e

    with r once for all pairs in :math:`O(E d)`, and :math:`O(d)` for each pair. It is exact for a pair without an edge.
    For a pair with m edges, :math:`(D_e)_{ff}` is less by m, which is left out: no pair is looked up.

    The loss is the mean of :math:`\mathrm{softplus}(-s)` over positive pairs plus that of :math:`\mathrm{softplus}(s)`
    over negative pairs, so that both weigh the same however many there are of each.

    Args:
        node_width: channels of each embedded node.
        edge_width: channels of each embedded edge.
        latent: channels of z and of e.
        features: whether the cosine of the nodes' features is read.
        edges: whether :math:`e_{ij}` is; without it, the score is made of cosines alone.
        diffusion_steps: steps of the diffusion embedding; with 0 there is none.

    Shape:
        nodes (N, node_width), edges (E, edge_width) -> PairInputs.

    Example:
        >>> graph = Graph(torch.eye(3), torch.ones(2, 1), torch.tensor([[0, 1], [1, 2]]))
        >>> decoder = PairDecoder(node_width=4, edge_width=2, latent=8)
        >>> inputs = decoder(torch.randn(3, 4), torch.randn(2, 2), graph)
        >>> decoder.score(inputs, torch.tensor([[0, 0], [1, 2]])).shape
        torch.Size([2])
    """

    def _make_projections(self, node_width: int, edge_width: int, latent: int) -> None:
        self.projection = nn.Parameter(torch.empty(node_width, latent))
        self.edge_projection = nn.Parameter(torch.empty(edge_width, latent), requires_grad=self.edges)
        self.gate_weight = nn.Parameter(torch.empty(node_width, 1), requires_grad=self.edges)
        self.edge_bias = nn.Parameter(torch.empty(latent), requires_grad=self.edges)

    def extra_repr(self) -> str:
        widths = f"{self.projection.shape[0]}, {self.edge_projection.shape[0]} -> {self.projection.shape[1]}"
        return f"{widths}{super().extra_repr()}"

    def reset_parameters(self) -> None:
        """Initialize: gates at 1, and a score that is near 0 for a pair of nodes with something in common."""
        for matrix in (self.projection, self.edge_projection, self.edge_weight):
            nn.init.xavier_uniform_(matrix)
        nn.init.zeros_(self.gate_weight)
        nn.init.zeros_(self.edge_bias)
        super().reset_parameters()

    def forward(self, nodes: Tensor, edges: Tensor, graph: Graph) -> PairInputs:
        """Compute the tensors that pairs are scored from."""
        incidence = graph.incidence
        check_shape("nodes", nodes, (incidence.num_nodes, self.projection.shape[0]), "(N, node_width)")
        check_shape("edges", edges, (incidence.num_edges, self.edge_projection.shape[0]), "(E, edge_width)")
        around, edge_count = self._incident_sum(nodes, edges, incidence), incidence.edge_count.to(self.projection.dtype)
        return PairInputs(self.embed_nodes(nodes), around, edge_count, *self.own_embeddings(graph))

    def embed_nodes(self, nodes: Tensor) -> Tensor:
        """z, of length 1. (N, node_width) -> (N, latent)"""
        return F.normalize(matmul(nodes, self.projection), dim=1)

    def _incident_sum(self, nodes: Tensor, edges: Tensor, incidence: Incidence) -> Tensor:
        """r = diag(u) T (D_e + I)^-1/2 H_e W_e. -> (N, latent)"""
        u = bounded(matmul(nodes, self.gate_weight))
        mixed = matmul(edges, self.edge_projection)
        scale = scale_of(incidence, "edge", ONE_MORE, mixed.dtype)
        assert scale is not None
        return u * incidence.scatter(scale.to(mixed.dtype).unsqueeze(1) * mixed)

    @torch.no_grad()
    def score_all_pairs(self, inputs: PairInputs, nodes: Tensor, start: int = 0) -> Tensor:
        """The logits of links from some nodes to every node from `start` on. (k,) -> (k, N - start)"""
        nodes = nodes.to(inputs.embedding.device)
        score = self._cosines(inputs, lambda rows: products_with_all(rows, nodes, start))
        if self.edges:
            around, count = inputs.incident_sum[start:], inputs.edge_count[start:]
            for row, node in zip(score, nodes.tolist(), strict=True):
                edge = _virtual_edge(inputs.incident_sum[node] + around, inputs.edge_count[node] + count)
                row += self._edge_score(edge)
        return score

    def _score(self, inputs: PairInputs, pairs: Tensor) -> Tensor:
        score = self._cosines(inputs, lambda rows: row_products(rows, *pairs))
        return score + self._edge_score(self.embed_edges(inputs, pairs)) if self.edges else score

    def _cosines(self, inputs: PairInputs, products: Callable[[Tensor], Tensor]) -> Tensor:
        """The part of the score made of cosines; `products` gives the inner products of rows of length 1."""
        cosine = self.embedding_weight * products(inputs.embedding)
        for weight, rows in ((self.feature_weight, inputs.features), (self.diffusion_weight, inputs.diffusion)):
            if rows is not None:
                cosine = cosine + weight * products(rows)
        return STEP * cosine + self.bias

    def _edge_score(self, e: Tensor) -> Tensor:
        """w . ReLU(e + b). (P, latent) -> (P,)"""
        return (e + self.edge_bias).relu().matmul(self.edge_weight)[:, 0]

    def embed_edges(self, inputs: PairInputs, pairs: Tensor) -> Tensor:
        """e: the output of an edge layer for an edge between the two nodes. (2, P) -> (P, latent)"""
        first, second = pairs
        around = inputs.incident_sum.index_select(0, first) + inputs.incident_sum.index_select(0, second)
        return _virtual_edge(around, inputs.edge_count[first] + inputs.edge_count[second])


def pair_loss(decoder: LinkDecoder, inputs: LinkInputs, positives: Tensor | None, negatives: Tensor | None) -> Tensor:
    """The mean cross entropy of positive pairs plus that of negative ones. (2, P), (2, Q) -> ()"""
    total = 0 * inputs.embedding.sum()
    for pairs, sign in ((positives, -1), (negatives, 1)):
        if pairs is not None and pairs.shape[1]:
            total = total + F.softplus(sign * decoder.score(inputs, pairs).float()).mean()
    return total


def _virtual_edge(around: Tensor, edge_count: Tensor) -> Tensor:
    """e, from the sums r at its two nodes and the number of their edges. (P, latent), (P,) -> (P, latent)"""
    return (edge_count + 1).rsqrt().to(around.dtype).unsqueeze(1) * around
