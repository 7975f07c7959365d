"""A link decoder of directed graphs, which scores i -> j and j -> i apart."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from censnet.nn.directed import DirectedEdgeLayer
from censnet.nn.pair_decoder import STEP, SampledPairDecoder
from censnet.ops.checks import check_shape
from censnet.ops.graph import Graph
from censnet.ops.sparse import matmul, products_with_all, row_products


@dataclass(frozen=True, eq=False)
class DirectedPairInputs:
    """Per-node tensors that ordered pairs are scored from.

    Args:
        embedding: z as a start and, beside it, y as an end, each of length 1.
        at_start, at_end: what a virtual edge would read at its start and at its end: see `DirectedPairDecoder`; None
            where it is not read.
        features: the node's own, of length 1, dense or sparse CSR; None where they are not read.
        diffusion: k, the diffusion embedding, of length 1; None where it is not read.

    Shape:
        embedding (N, 2 latent), at_start and at_end (N, latent), features (N, node_width),
        diffusion (N, `diffusion.WIDTH`).
    """

    embedding: Tensor
    at_start: Tensor | None
    at_end: Tensor | None
    features: Tensor | None
    diffusion: Tensor | None

    def to(self, device: torch.device | str) -> DirectedPairInputs:
        """The same on another device."""
        maybe = self.at_start, self.at_end, self.features, self.diffusion
        return DirectedPairInputs(self.embedding.to(device), *(None if x is None else x.to(device) for x in maybe))


class DirectedPairDecoder(SampledPairDecoder):
    r"""Score links from i to j, each with the embedding that it would have as an edge.

    As `PairDecoder`, but a node has one embedding as the start of a link and another as its end:

    .. math::
        s_{ij} = a \cos(z_i, y_j) + c \cos(x_i, x_j) + g \cos(k_i, k_j) + w^\top \mathrm{ReLU}(e_{ij} + b)
        + \mathrm{bias}, \qquad z = H_v W_z, \quad y = H_v W_y

    The cosines of the input features x and of the diffusion embeddings k are symmetric: they tell whether two nodes
    belong together, the other terms also which way. :math:`e_{ij}` is the output of a `DirectedEdgeLayer` for a virtual
    edge from i to j without features.

    **What is computed.** The means of that layer are over the other edges, so that they are those of the graph as it
    is, and :math:`e_{ij} = a_i + b_j` with

    .. math::
        a = \operatorname{diag}(u_s) (D_o^{-1} S H_e W_1 + D_i^{-1} R H_e W_2) + H_v V_s, \qquad
        b = \operatorname{diag}(u_t) (D_o^{-1} S H_e W_3 + D_i^{-1} R H_e W_4) + H_v V_t

    once for all pairs in :math:`O(E d)`, and :math:`O(d)` for each pair; exact, whether or not i -> j is an edge.

    Args:
        node_width, edge_width, latent, features, edges, diffusion_steps: as in `PairDecoder`.

    Shape:
        nodes (N, node_width), edges (E, edge_width) -> DirectedPairInputs.

    Example:
        >>> graph = Graph(torch.eye(3), torch.ones(2, 1), torch.tensor([[0, 1], [1, 2]]), directed=True)
        >>> decoder = DirectedPairDecoder(node_width=4, edge_width=2, latent=8)
        >>> inputs = decoder(torch.randn(3, 4), torch.randn(2, 2), graph)
        >>> there, back = decoder.score(inputs, torch.tensor([[0, 1], [1, 0]]))
        >>> bool(there == back)
        False
    """

    is_ordered = True

    def _make_projections(self, node_width: int, edge_width: int, latent: int) -> None:
        self.projection = nn.Parameter(torch.empty(node_width, 2 * latent))  # W_z and W_y, beside each other
        self.edge_layer = DirectedEdgeLayer(node_width, edge_width, latent, gate="bounded") if self.edges else None
        if self.edge_layer is not None and self.edge_layer.root_weight is not None:
            self.edge_layer.root_weight.requires_grad_(False)  # a virtual edge has no features

    def extra_repr(self) -> str:
        return f"{self.projection.shape[0]} -> {self.projection.shape[1] // 2}{super().extra_repr()}"

    def reset_parameters(self) -> None:
        """Initialize: gates at 1, and a score that is near 0 for a pair of nodes with something in common."""
        for matrix in (*self.projection.data.chunk(2, dim=1), self.edge_weight):
            nn.init.xavier_uniform_(matrix)
        if self.edge_layer is not None:
            self.edge_layer.reset_parameters()
        super().reset_parameters()

    def forward(self, nodes: Tensor, edges: Tensor, graph: Graph) -> DirectedPairInputs:
        """Compute the tensors that pairs are scored from."""
        incidence = graph.incidence
        check_shape("nodes", nodes, (incidence.num_nodes, self.projection.shape[0]), "(N, node_width)")
        at_ends: tuple[Tensor | None, Tensor | None] = (None, None)
        if self.edge_layer is not None:
            at_ends = self.edge_layer.of_virtual_edges(nodes, edges, incidence)
        return DirectedPairInputs(self.embed_nodes(nodes), *at_ends, *self.own_embeddings(graph))

    def embed_nodes(self, nodes: Tensor) -> Tensor:
        """z and y beside each other, each of length 1. (N, node_width) -> (N, 2 latent)"""
        halves = matmul(nodes, self.projection).chunk(2, dim=1)
        return torch.cat([F.normalize(half, dim=1) for half in halves], dim=1)

    def _score(self, inputs: DirectedPairInputs, pairs: Tensor) -> Tensor:
        first, second = pairs
        z, y = inputs.embedding.chunk(2, dim=1)
        score = self.embedding_weight * (z.index_select(0, first) * y.index_select(0, second)).sum(1)
        for weight, rows in ((self.feature_weight, inputs.features), (self.diffusion_weight, inputs.diffusion)):
            if rows is not None:
                score = score + weight * row_products(rows, first, second)
        score = STEP * score + self.bias
        if inputs.at_start is None or inputs.at_end is None:
            return score
        return score + self._edge_score(inputs.at_start.index_select(0, first) + inputs.at_end.index_select(0, second))

    @torch.no_grad()
    def score_all_pairs(self, inputs: DirectedPairInputs, nodes: Tensor, start: int = 0) -> Tensor:
        """The logits of links from some nodes to every node from `start` on. (k,) -> (k, N - start)"""
        nodes = nodes.to(inputs.embedding.device)
        z, y = inputs.embedding.chunk(2, dim=1)
        score = self.embedding_weight * (z[nodes] @ y[start:].t())
        for weight, rows in ((self.feature_weight, inputs.features), (self.diffusion_weight, inputs.diffusion)):
            if rows is not None:
                score = score + weight * products_with_all(rows, nodes, start)
        score = STEP * score + self.bias
        if inputs.at_start is not None and inputs.at_end is not None:
            for row, node in zip(score, nodes.tolist(), strict=True):
                row += self._edge_score(inputs.at_start[node] + inputs.at_end[start:])
        return score

    def _edge_score(self, e: Tensor) -> Tensor:
        """w . ReLU(e + b), where b is the bias of the layer and is in e already. (P, latent) -> (P,)"""
        return e.relu().matmul(self.edge_weight)[:, 0]
