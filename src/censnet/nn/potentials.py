"""The layer of potentials: every node and edge of an oriented graph depends on all others in one layer."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from censnet.nn.ensemble import batched_linear, check_rows, init_members
from censnet.nn.norms import Norm, make_norm
from censnet.nn.oriented import make_odd_norm
from censnet.ops.incidence import Incidence
from censnet.ops.normalization import by_head, scale_rows
from censnet.ops.potentials import solve_potentials

LARGEST = 12.0  # of the logarithm of a conductance
GROUND = -6.0  # the logarithm of a node's conductance to the ground before training: potentials reach some ten edges
STEEP = 10.0  # factor of the logarithms, so that conductances are learned over decades in few steps
SMALLEST = 1e-3  # of the mean flow of a network


class PotentialLayer(nn.Module):
    r"""Update the nodes and the odd channels of the edges by potentials and by the flows that they drive.

    .. math::
        \bigl( B \operatorname{diag}(w)\, B^\top + \operatorname{diag}(g) \bigr)\, \varphi &=
        x Q + g \circ x H + B (w \circ b\, S), \qquad f = w \circ (b\, S - B^\top \varphi) \\
        x' &= x + \operatorname{norm}(\varphi)\, V, \qquad b' = b + \operatorname{norm}(f / s)\, V_b, \qquad
        s^2 = \operatorname{mean}\, (f c)^2

    The letters are those of `OrientedNodeLayer`; :math:`w = e^{a W}` are conductances of edges and
    :math:`g = e^{x G}` those from nodes to the ground, bounded. So a channel is a linear network: Q injects, H are the
    potentials of sources such as reservoirs, S those of edges such as pumps. What a linear network would answer is
    there after one layer, whatever its diameter; layers around it learn what is not linear. Before Q and H stand the
    numbers of nodes as they are in the data, not centered: where 0 injects nothing, and nothing but a number does, a
    layer that has learned some networks is right on others. s is the size of the flows
    in a graph: what follows reads flows relative to it, and is the same for networks of large and of small flows. f is
    odd, :math:`\varphi` and s are even, so that parities are kept. See `solve_potentials`.

    Args:
        widths: channels of `node`, `even` and `odd` that come in.
        features: channels of the input features of nodes and even ones of edges, which are read beside the embeddings.
        potentials: channels of the potentials.
        norm: of potentials and flows.
        measures: whether the layer computes s; otherwise it is given that of another.

    Shape:
        nodes (N, node), even (E, even), odd (E, odd), features (N, i) and (E, j) -> nodes (N, node), odd (E, odd), and
        the size of flows in the graph of each edge (E, 1).

    Example:
        >>> path = Incidence(ends=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
        >>> layer = PotentialLayer({"node": 4, "even": 2, "odd": 1}, (3, 2), potentials=8, measures=True)
        >>> rows = torch.randn(3, 4), torch.randn(2, 2), torch.randn(2, 1)
        >>> nodes, odd, size = layer(*rows, (torch.randn(3, 3), torch.randn(2, 2)), path)
        >>> nodes.shape, odd.shape, size.shape
        (torch.Size([3, 4]), torch.Size([2, 1]), torch.Size([2, 1]))
    """

    members = 1

    def __init__(
        self,
        widths: dict[str, int],
        features: tuple[int, int],
        potentials: int,
        norm: Norm | None = None,
        measures: bool = False,
    ) -> None:
        super().__init__()
        self.widths, self.potentials = widths, potentials
        node, even, odd = widths["node"], widths["even"], widths["odd"]
        self.injection_weight = nn.Parameter(torch.empty(features[0], 2 * potentials))  # Q, H
        self.node_weight = nn.Parameter(torch.empty(node, potentials))  # G
        self.node_feature_weight = nn.Parameter(torch.empty(features[0], potentials))
        self.edge_weight = nn.Parameter(torch.empty(even, potentials))  # W
        self.edge_feature_weight = nn.Parameter(torch.empty(features[1], potentials))
        self.source_weight = nn.Parameter(torch.empty(odd, potentials))  # S
        self.node_out = nn.Parameter(torch.empty(potentials, node))  # V
        self.odd_out = nn.Parameter(torch.empty(potentials, odd))  # V_b
        self.size_weight = nn.Parameter(torch.empty(potentials, 1)) if measures else None  # c
        self.ground_bias = nn.Parameter(torch.empty(potentials))
        self.edge_bias = nn.Parameter(torch.empty(potentials))
        self.zero: Tensor
        self.is_number: Tensor
        self.register_buffer("zero", torch.zeros(features[0]))
        self.register_buffer("is_number", torch.ones(features[0]))
        self.norm, self.odd_norm = make_norm(norm, potentials), make_odd_norm(norm, potentials)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize all parameters."""
        for weight in (self.node_weight, self.node_feature_weight, self.edge_weight, self.edge_feature_weight):
            nn.init.zeros_(weight)
        for weight in (self.source_weight, self.node_out, self.odd_out):
            init_members(weight, nn.init.xavier_uniform_)
        init_members(self.injection_weight, self._inject_one)
        if self.size_weight is not None:
            nn.init.ones_(self.size_weight)
        nn.init.constant_(self.ground_bias, GROUND / STEEP)
        nn.init.zeros_(self.edge_bias)
        for norm in (self.norm, self.odd_norm):
            if not isinstance(norm, nn.Identity):
                norm.reset_parameters()  # type: ignore[operator]

    def _inject_one(self, weight: Tensor) -> None:
        """Let each potential start as that of one number of nodes."""
        if weight.is_meta:
            return
        numbers = self.is_number.view(self.members, -1)[0].nonzero().squeeze(1).tolist() or [0]
        nn.init.zeros_(weight)
        for channel in range(2 * self.potentials if len(weight) else 0):
            weight[numbers[channel % self.potentials % len(numbers)], channel] = 1

    def extra_repr(self) -> str:
        shown = ", ".join(f"{width} {channels}" for channels, width in self.widths.items())
        return f"{shown}, potentials={self.potentials}" + (f", members={self.members}" if self.members > 1 else "")

    def forward(
        self,
        nodes: Tensor,
        even: Tensor,
        odd: Tensor,
        features: tuple[Tensor, Tensor],
        incidence: Incidence,
        size: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Compute the updated nodes and odd channels, and the size of flows unless it is given."""
        check_rows("nodes", nodes, incidence.num_nodes, self.widths["node"], self.members, "(N, node width)")
        check_rows("odd", odd, incidence.num_edges, self.widths["odd"], self.members, "(E, odd width)")
        amounts = batched_linear(self._amounts(features[0]), self.injection_weight)
        injected, held = (
            part.flatten(1) for part in amounts.view(len(nodes), self.members, 2, self.potentials).unbind(2)
        )
        grounds = batched_linear(nodes, self.node_weight) + batched_linear(features[0], self.node_feature_weight)
        opens = batched_linear(even, self.edge_weight) + batched_linear(features[1], self.edge_feature_weight)
        conductance, ground = bounded_exp(opens + self.edge_bias), bounded_exp(grounds + self.ground_bias)
        source = batched_linear(odd, self.source_weight)
        driven = incidence.divergence(conductance * source)
        potential = solve_potentials(conductance, ground, injected + ground * held + driven, incidence)
        flow = conductance * (source - incidence.difference(potential))
        if self.size_weight is not None:
            size = mean_size(batched_linear(flow, self.size_weight), incidence)
        elif size is None:
            raise ValueError("size is None, expected that of the first layer of potentials")
        relative = self.odd_norm(scale_rows(flow, 1 / size))
        new_nodes = self._add(nodes, batched_linear(self.norm(potential), self.node_out))
        return new_nodes, self._add(odd, batched_linear(relative, self.odd_out)), size

    def _add(self, old: Tensor, new: Tensor) -> Tensor:
        """old + new; features that the members share are added to each."""
        return new + (old if new.shape == old.shape else old.repeat(1, self.members))

    def set_zero(self, zero: Tensor) -> None:
        """Say what 0 is in each feature of nodes; NaN for a feature that is no number, unless none is."""
        if not bool(zero.isnan().all()):
            self.zero.copy_(torch.nan_to_num(zero))
            self.is_number.copy_(~zero.isnan())
            init_members(self.injection_weight, self._inject_one)

    def _amounts(self, features: Tensor) -> Tensor:
        """Numbers of nodes, such that 0 injects nothing; 0 for features that are no numbers."""
        if features.layout != torch.strided:
            return features  # sparse features are not centered
        zero, is_number = (by_head(buffer.unsqueeze(0), self.members) for buffer in (self.zero, self.is_number))
        return ((features.unsqueeze(1) - zero) * is_number).flatten(1)


def mean_size(rows: Tensor, incidence: Incidence) -> Tensor:
    """The root mean square of each channel over the edges of a graph, for each of its edges. (E, d) -> (E, d)"""
    count = incidence.count("edge").clamp(min=1).to(rows.dtype).unsqueeze(1)
    size = (incidence.pool(rows.square(), "edge") / count + SMALLEST**2).sqrt()
    owner = incidence.edge_owner
    return size.expand(len(rows), -1) if owner is None else size.index_select(0, owner)


def bounded_exp(rows: Tensor) -> Tensor:
    """exp(s x), where s is `STEEP` and s x is bounded smoothly by plus and minus `LARGEST`."""
    return torch.exp(LARGEST * torch.tanh(rows * (STEEP / LARGEST)))
