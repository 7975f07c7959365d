"""Which pairs of nodes are links, told pair by pair: nothing here is as large as all pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from censnet.nn.diffusion import walk
from censnet.ops.checks import check_numbering, check_shape
from censnet.ops.graph import Graph
from censnet.ops.incidence import Incidence
from censnet.ops.normalization import Power, scale_of
from censnet.ops.sparse import matmul, products_with_all, row_products, unit_rows

ONE_MORE = Power(-0.5, more=1)  # what an edge is scaled by once it has one neighbour more
STEP = 10.0  # how much faster than other weights those of cosines move: the optimiser's steps are small beside them
BLOCK = 2**18  # pairs that are scored at once where no gradient is wanted


@dataclass(frozen=True, eq=False)
class PairInputs:
    """What each node brings to a pair that it is a side of.

    Args:
        places: z, of length 1.
        around: what the edges around a node bring to an edge more, through its gate: `PairDecoder` has the formula.
        edge_count: how many edges touch it.
        features: the node's own, of length 1, dense or sparse CSR; None where they say nothing.
        walks: k, where walks from it lead, of length 1; None where that is not read.

    Shape:
        places (N, latent), around (N, latent), edge_count (N,), features (N, node_width),
        diffusion (N, `diffusion.WIDTH`).
    """

    places: Tensor
    around: Tensor
    edge_count: Tensor
    features: Tensor | None
    diffusion_steps: Tensor | None

    def to(self, device: torch.device | str) -> PairInputs:
        """The same on another device."""
        own = self.places, self.around, self.edge_count
        maybe = self.features, self.diffusion_steps
        return PairInputs(*(rows.to(device) for rows in own), *(None if x is None else x.to(device) for x in maybe))


class PairDecoder(nn.Module):
    r"""Tell links pair by pair, each pair with the embedding that it would have as an edge.

    The score of the pair i, j, the same for j, i, is the logit of a link:

    .. math::
        s_{ij} = a \cos(z_i, z_j) + c \cos(x_i, x_j) + g \cos(k_i, k_j) + w^\top \mathrm{ReLU}(e_{ij} + b)
        + \mathrm{shift}, \qquad z = H_v W_z

    where x are the nodes' features as they come in, k says where walks from a node lead (`nn.diffusion_steps`), and
    :math:`e_{ij}` is what an edge layer makes of an edge f between i and j that has nothing of its own. In the rule of
    `EdgeLayer`, on the graph with f in it, row f is

    .. math::
        e_{ij} = (D_e)_{ff}^{-1/2} \sum_{v \in \{i, j\}} u_v \sum_{g \ni v,\, g \ne f} (D_e)_{gg}^{-1/2} H_g W_e,
        \qquad u = 2\, \mathrm{sigmoid}(H_v p_v)

    **What is computed.** Every g that touches i or j has f as one neighbour more, so that its degree is the one it has
    in the graph plus 1, whatever the pair; and :math:`(D_e)_{ff} = \deg i + \deg j + 1`. So

    .. math::
        e_{ij} = (\deg i + \deg j + 1)^{-1/2} (r_i + r_j), \qquad r = \mathrm{diag}(u)\, T (D_e + I)^{-1/2} H_e W_e

    with r once for all pairs in :math:`O(E d)`, and :math:`O(d)` for each pair. It is exact for a pair that no edge
    joins. Where m edges do, :math:`(D_e)_{ff}` is less by m, which is left out: no pair is looked up.

    The loss is the mean of :math:`\mathrm{softplus}(-s)` over links plus that of :math:`\mathrm{softplus}(s)` over
    other pairs, so that both kinds weigh the same however many there are of each.

    Args:
        node_width: channels of each embedded node.
        edge_width: channels of each embedded edge.
        latent: channels of z and of e.
        features: whether the cosine of the nodes' features is read.
        edges: whether :math:`e_{ij}` is; without it, links are told from the nodes' cosines alone.
        walks: steps of the walks; with 0 there are none.

    Shape:
        nodes (N, node_width), edges (E, edge_width) -> PairSides.

    Example:
        >>> graph = Graph(torch.eye(3), torch.ones(2, 1), torch.tensor([[0, 1], [1, 2]]))
        >>> task = PairDecoder(node_width=4, edge_width=2, latent=8)
        >>> sides = task(torch.randn(3, 4), torch.randn(2, 2), graph)
        >>> task.score(sides, torch.tensor([[0, 0], [1, 2]])).shape
        torch.Size([2])
    """

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
            raise ValueError(f"walks is {diffusion_steps}, expected a number of steps, or 0 for none")
        self.features, self.edges, self.diffusion_steps = features, edges, diffusion_steps
        self.place = nn.Parameter(torch.empty(node_width, latent))
        self.weight = nn.Parameter(torch.empty(edge_width, latent), requires_grad=edges)
        self.gate_weight = nn.Parameter(torch.empty(node_width, 1), requires_grad=edges)
        self.bias = nn.Parameter(torch.empty(latent), requires_grad=edges)
        self.edge_weight = nn.Parameter(torch.empty(latent, 1), requires_grad=edges)
        self.scale = nn.Parameter(torch.empty(()))
        self.shift = nn.Parameter(torch.empty(()))
        self.likeness = nn.Parameter(torch.empty(()), requires_grad=features)
        self.nearness = nn.Parameter(torch.empty(()), requires_grad=diffusion_steps > 0)
        self.reset_parameters()

    def extra_repr(self) -> str:
        reads = ("" if self.features else ", features=False") + ("" if self.edges else ", edges=False")
        reads += f", walks={self.diffusion_steps}" if self.diffusion_steps else ""
        return f"{self.place.shape[0]}, {self.weight.shape[0]} -> {self.place.shape[1]}{reads}"

    def reset_parameters(self) -> None:
        """Start afresh: gates at 1, and a score that is near 0 for a pair of nodes with something in common."""
        for matrix in (self.place, self.weight, self.edge_weight):
            nn.init.xavier_uniform_(matrix)
        nn.init.zeros_(self.gate_weight)
        nn.init.zeros_(self.bias)
        nn.init.constant_(self.scale, 5.0 / STEP)
        nn.init.constant_(self.shift, -2.0)
        nn.init.constant_(self.likeness, 10.0 / STEP if self.features else 0.0)
        nn.init.constant_(self.nearness, 3.0 / STEP if self.diffusion_steps else 0.0)

    def forward(self, nodes: Tensor, edges: Tensor, graph: Graph) -> PairInputs:
        """What each node brings to a pair, from embedded nodes and edges and the graph they are of."""
        incidence = graph.incidence
        check_shape("nodes", nodes, (incidence.num_nodes, self.place.shape[0]), "(N, node_width)")
        check_shape("edges", edges, (incidence.num_edges, self.weight.shape[0]), "(E, edge_width)")
        return PairInputs(
            self.places(nodes),
            self._around(nodes, edges, incidence),
            incidence.edge_count.to(self.place.dtype),
            unit_rows(graph.nodes) if self.features else None,
            walk(graph.nodes, incidence, self.diffusion_steps, self.place.dtype) if self.diffusion_steps else None,
        )

    def places(self, nodes: Tensor) -> Tensor:
        """z, brought to length 1. (N, node_width) -> (N, latent)"""
        return F.normalize(matmul(nodes, self.place), dim=1)

    def _around(self, nodes: Tensor, edges: Tensor, incidence: Incidence) -> Tensor:
        """r = diag(u) T (D_e + I)^-1/2 H_e W_e. -> (N, latent)"""
        u = 2 * torch.sigmoid(matmul(nodes, self.gate_weight))
        mixed = matmul(edges, self.weight)
        scale = scale_of(incidence, "edge", ONE_MORE, mixed.dtype)
        assert scale is not None
        return u * incidence.scatter(scale.to(mixed.dtype).unsqueeze(1) * mixed)

    def score(self, sides: PairInputs, pairs: Tensor) -> Tensor:
        """The logit of a link for each pair. (2, P) -> (P,)"""
        check_shape("pairs", pairs, (2, None), "(2, P), one column for each pair")
        check_numbering("pairs", pairs, len(sides.places), "node")
        if torch.is_grad_enabled():
            return self._score(sides, pairs)
        return torch.cat([self._score(sides, part) for part in torch.split(pairs, BLOCK, dim=1)])

    @torch.no_grad()
    def score_all_pairs(self, sides: PairInputs, nodes: Tensor, start: int = 0) -> Tensor:
        """The logit of a link of some nodes with every node from `start` on. (k,) -> (k, N - start)"""
        score = self._nearness(sides, lambda rows: products_with_all(rows, nodes, start))
        if self.edges:
            around, count = sides.around[start:], sides.edge_count[start:]
            for row, node in zip(score, nodes.tolist(), strict=True):
                row += self._of_edge(_virtual_edge(sides.around[node] + around, sides.edge_count[node] + count))
        return score

    def _score(self, sides: PairInputs, pairs: Tensor) -> Tensor:
        score = self._nearness(sides, lambda rows: row_products(rows, *pairs))
        return score + self._of_edge(self.edge(sides, pairs)) if self.edges else score

    def _nearness(self, sides: PairInputs, products: Callable[[Tensor], Tensor]) -> Tensor:
        """What cosines say: of places, features and walks, from a function of rows of length 1 to their products."""
        cosine = self.scale * products(sides.places)
        for weight, rows in ((self.likeness, sides.features), (self.nearness, sides.diffusion_steps)):
            if rows is not None:
                cosine = cosine + weight * products(rows)
        return STEP * cosine + self.shift

    def _of_edge(self, e: Tensor) -> Tensor:
        """w . ReLU(e + b). (P, latent) -> (P,)"""
        return (e + self.bias).relu().matmul(self.edge_weight)[:, 0]

    def edge(self, sides: PairInputs, pairs: Tensor) -> Tensor:
        """e: what an edge layer would make of an edge between the two nodes. (2, P) -> (P, latent)"""
        first, second = pairs
        around = sides.around.index_select(0, first) + sides.around.index_select(0, second)
        return _virtual_edge(around, sides.edge_count[first] + sides.edge_count[second])

    def loss(self, sides: PairInputs, links: Tensor, others: Tensor) -> Tensor:
        """Both kinds of pairs weigh the same; a kind without any counts nothing. (2, P), (2, Q) -> ()"""
        total = 0 * sides.places.sum()
        for pairs, sign in ((links, -1), (others, 1)):
            if pairs.shape[1]:
                total = total + F.softplus(sign * self.score(sides, pairs).float()).mean()
        return total


def _virtual_edge(around: Tensor, edge_count: Tensor) -> Tensor:
    """e, from what two nodes bring to it and how many edges they have. (P, latent), (P,) -> (P, latent)"""
    return (edge_count + 1).rsqrt().to(around.dtype).unsqueeze(1) * around
