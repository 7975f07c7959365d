"""The layers of a graph whose edges have ends in an arbitrary order, such as pipes: channels of two parities.

Nodes and even edge channels do not change where the two ends of an edge are exchanged; odd edge channels, such as a
flow, change sign. Every term below keeps the parity of what it updates.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from censnet.nn.ensemble import batched_linear, check_rows, init_members
from censnet.nn.gates import bounded
from censnet.nn.layers import Gate
from censnet.ops.incidence import Incidence
from censnet.ops.normalization import by_head, scale_rows


class EdgeUpdate(NamedTuple):
    """The update of an edge layer, before its activations.

    Args:
        even: of the even channels.
        odd: of the odd ones; the new channels are tanh(odd) times `gate`.
        gate: even, from 0 to 1.
    """

    even: Tensor
    odd: Tensor
    gate: Tensor


class OrientedLayer(nn.Module):
    """Matrices by name, gates, and a bias of even channels.

    Args:
        widths: the channels of `node`, `even` and `odd` that come in.
        out_width: channels that go out, of each kind that is updated.
        heads: gates of each node or edge that is read; each weighs its own share of the channels.
        gate: "linear", H p, or "bounded", 2 sigmoid(H p), which starts at 1.
        bias: whether even channels have one; odd ones never have.
    """

    matrices: ClassVar[dict[str, str]]  # name -> the channels that it mixes
    gates: ClassVar[dict[str, str]]  # name -> the channels that it reads
    members = 1

    def __init__(
        self, widths: dict[str, int], out_width: int, heads: int = 1, gate: Gate = "linear", bias: bool = True
    ) -> None:
        super().__init__()
        if heads < 1 or out_width % heads:
            raise ValueError(f"heads is {heads}, expected a divisor of out_width {out_width}")
        if gate not in ("linear", "bounded"):
            raise ValueError(f"gate is {gate!r}, expected 'linear' or 'bounded'")
        self.widths, self.out_width, self.heads, self.gate = widths, out_width, heads, gate
        for name, channels in self.matrices.items():
            setattr(self, name, nn.Parameter(torch.empty(widths[channels], out_width)))
        for name, channels in self.gates.items():
            setattr(self, name, nn.Parameter(torch.empty(widths[channels], heads)))
        self.bias = nn.Parameter(torch.empty(out_width)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize: matrices by Glorot and Bengio; gate vectors so too, or 0 behind a bounded gate."""
        for name in (*self.matrices, *(self.gates if self.gate == "linear" else ())):
            init_members(getattr(self, name), nn.init.xavier_uniform_)
        for name in self.gates if self.gate == "bounded" else ():
            nn.init.zeros_(getattr(self, name))
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def extra_repr(self) -> str:
        shown = ", ".join(f"{width} {channels}" for channels, width in self.widths.items())
        parts = [f"{shown} -> {self.out_width}"]
        parts += [f"heads={self.heads}"] * (self.heads > 1) + [f"gate={self.gate!r}"] * (self.gate != "linear")
        parts += ["bias=False"] * (self.bias is None) + [f"members={self.members}"] * (self.members > 1)
        return ", ".join(parts)

    def _mix(self, rows: Tensor, *names: str) -> list[Tensor]:
        """H W for several W in one product. (n, M i) -> (n, M o) each."""
        weights = torch.cat([getattr(self, name) for name in names], dim=-1)
        product = by_head(batched_linear(rows, weights), self.members)
        return [part.flatten(1) for part in product.chunk(len(names), dim=2)]

    def _gates(self, read: Tensor, name: str) -> Tensor:
        gate = batched_linear(read, getattr(self, name))
        return gate if self.gate == "linear" else bounded(gate)

    def _check(self, nodes: Tensor, even: Tensor, odd: Tensor, incidence: Incidence) -> None:
        counts = {"node": incidence.num_nodes, "even": incidence.num_edges, "odd": incidence.num_edges}
        for (channels, count), rows in zip(counts.items(), (nodes, even, odd), strict=True):
            check_rows(channels, rows, count, self.widths[channels], self.members, f"(n, {channels} width)")


class OrientedNodeLayer(OrientedLayer):
    r"""Update the nodes, from even and odd channels of their edges.

    .. math::
        x' = \sigma\bigl( x W_0 + D^{-1} [\, T (w(a) \circ T^\top x W + a U) + B b\, U_b ] + c \bigr)

    T is the incidence matrix and B = R - S the signed one: 1 where an edge ends, -1 where it starts, 0 for a loop. The
    even and odd channels of edges are a and b, w the gates, c the bias; D counts the edges of a node (at least 1).
    Where the ends of an edge are exchanged, its b and its column of B change sign, and x' stays.

    **What is computed.** Edges are summed at their nodes before they are mixed, T (a U) = (T a) U. :math:`O(E d)`.

    Args:
        widths, out_width, heads, gate, bias: as in `OrientedLayer`.

    Shape:
        nodes (N, node), even (E, even), odd (E, odd) -> nodes (N, out_width).

    Example:
        >>> path = Incidence(ends=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
        >>> layer = OrientedNodeLayer({"node": 4, "even": 2, "odd": 1}, 8)
        >>> layer
        OrientedNodeLayer(4 node, 2 even, 1 odd -> 8)
        >>> layer(torch.randn(3, 4), torch.randn(2, 2), torch.randn(2, 1), path).shape
        torch.Size([3, 8])
    """

    matrices: ClassVar[dict[str, str]] = {
        "root_weight": "node",
        "weight": "node",
        "content": "even",
        "odd_content": "odd",
    }
    gates: ClassVar[dict[str, str]] = {"gate_weight": "even"}
    content: nn.Parameter
    odd_content: nn.Parameter

    def forward(self, nodes: Tensor, even: Tensor, odd: Tensor, incidence: Incidence) -> Tensor:
        """Compute the updated nodes."""
        self._check(nodes, even, odd, incidence)
        own, passed = self._mix(nodes, "root_weight", "weight")
        sums = incidence.scatter(scale_rows(incidence.gather(passed), self._gates(even, "gate_weight")))
        sums = sums + batched_linear(incidence.scatter(even), self.content)
        sums = sums + batched_linear(incidence.divergence(odd), self.odd_content)
        out = own + scale_rows(sums, reciprocal_degree(incidence, sums.dtype))
        return out if self.bias is None else out + self.bias


class OrientedEdgeLayer(OrientedLayer):
    r"""Update the even and the odd channels of the edges, from the edges that meet them and from their two nodes.

    .. math::
        a' &= \sigma\bigl( a W_0 + T^\top u D^{-1} (T a W + B b\, W_b) + T^\top x V + (b M)^2 + |B^\top x N| + c
        \bigr) \\
        b' &= \tanh\bigl( b W_0' + B^\top u' D^{-1} (B b\, W' + T a\, W_a) + B^\top x V' \bigr)
        \circ \operatorname{sigmoid}\bigl( a G + T^\top x G_x + c' \bigr)

    The letters are those of `OrientedNodeLayer`; u and u' are gates of the nodes. The odd channels have no bias, and an
    activation that is odd times a gate that is even. :math:`O(E d)`.

    Args:
        widths, out_width, heads, gate, bias: as in `OrientedLayer`.

    Shape:
        nodes (N, node), even (E, even), odd (E, odd) -> `EdgeUpdate` of (E, out_width) each.

    Example:
        >>> path = Incidence(ends=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
        >>> layer = OrientedEdgeLayer({"node": 4, "even": 2, "odd": 1}, 8, gate="bounded")
        >>> update = layer(torch.randn(3, 4), torch.randn(2, 2), torch.randn(2, 1), path)
        >>> update.even.shape, update.odd.shape
        (torch.Size([2, 8]), torch.Size([2, 8]))
    """

    matrices: ClassVar[dict[str, str]] = {
        "root_weight": "even",  # W_0
        "weight": "even",  # W
        "from_odd": "odd",  # W_b
        "content": "node",  # V
        "square": "odd",  # M
        "difference": "node",  # N
        "odd_root": "odd",  # W_0'
        "odd_weight": "odd",  # W'
        "from_even": "even",  # W_a
        "odd_content": "node",  # V'
        "sigmoid_weight": "even",  # G
        "sigmoid_content": "node",  # G_x
    }
    gates: ClassVar[dict[str, str]] = {"gate_weight": "node", "odd_gate_weight": "node"}

    def __init__(
        self, widths: dict[str, int], out_width: int, heads: int = 1, gate: Gate = "linear", bias: bool = True
    ) -> None:
        super().__init__(widths, out_width, heads, gate, bias)
        self.sigmoid_bias = nn.Parameter(torch.zeros(out_width)) if bias else None  # of the gate, which is even

    def reset_parameters(self) -> None:
        """Initialize all parameters."""
        super().reset_parameters()
        if getattr(self, "sigmoid_bias", None) is not None:  # none yet while the base class is constructed
            nn.init.zeros_(self.sigmoid_bias)  # type: ignore[arg-type]

    def forward(self, nodes: Tensor, even: Tensor, odd: Tensor, incidence: Incidence) -> EdgeUpdate:
        """Compute the updates of both kinds of channels."""
        self._check(nodes, even, odd, incidence)
        per = reciprocal_degree(incidence, nodes.dtype)
        sums, flows = scale_rows(incidence.scatter(even), per), scale_rows(incidence.divergence(odd), per)
        (to_even, even_to_odd), (odd_to_even, to_odd) = (
            self._mix(sums, "weight", "from_even"),
            self._mix(flows, "from_odd", "odd_weight"),
        )
        content, odd_content, apart, for_gate = self._mix(
            nodes, "content", "odd_content", "difference", "sigmoid_content"
        )
        at_node = scale_rows(to_even + odd_to_even, self._gates(nodes, "gate_weight")) + content
        odd_at_node = scale_rows(to_odd + even_to_odd, self._gates(nodes, "odd_gate_weight")) + odd_content
        gathered, gate_input = incidence.gather(torch.cat([at_node, for_gate], dim=1)).chunk(2, dim=1)
        differences, distance = incidence.difference(torch.cat([odd_at_node, apart], dim=1)).chunk(2, dim=1)
        own, own_gate = self._mix(even, "root_weight", "sigmoid_weight")
        odd_own, root = self._mix(odd, "odd_root", "square")
        new, gate = own + gathered + root.square() + distance.abs(), own_gate + gate_input
        if self.bias is not None and self.sigmoid_bias is not None:
            new, gate = new + self.bias, gate + self.sigmoid_bias
        return EdgeUpdate(new, odd_own + differences, torch.sigmoid(gate))


class OddNorm(nn.Module):
    """Each odd channel divided by its root mean square over the edges of a batch, times a learned weight.

    The statistic is even, nothing is centered and there is no bias, so that the channels stay odd. Outside of training,
    and for a single edge, the mean square is the running one, as in batch norm.
    """

    members = 1

    def __init__(self, width: int, momentum: float = 0.1, eps: float = 1e-5) -> None:
        super().__init__()
        self.momentum, self.eps = momentum, eps
        self.weight = nn.Parameter(torch.ones(width))
        self.running_var: Tensor
        self.register_buffer("running_var", torch.ones(width))

    def extra_repr(self) -> str:
        width = str(len(self.weight) // self.members)
        return width if self.members == 1 else f"{width}, members={self.members}"

    def reset_parameters(self) -> None:
        """Initialize the weight and the running mean square."""
        nn.init.ones_(self.weight)
        self.running_var.fill_(1)

    def forward(self, rows: Tensor) -> Tensor:
        """Normalize. (n, width) -> (n, width)"""
        size = self.running_var
        if self.training and len(rows) > 1:
            size = rows.float().square().mean(0) if rows.dtype != torch.float64 else rows.square().mean(0)
            with torch.no_grad():
                self.running_var.lerp_(size.to(self.running_var.dtype), self.momentum)
        return rows * ((size + self.eps).rsqrt().to(rows.dtype) * self.weight)


class OddLayerNorm(nn.Module):
    """The odd channels of an edge divided by their root mean square, times a learned weight: RMS norm, no bias."""

    members = 1

    def __init__(self, width: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.ones(width))

    def extra_repr(self) -> str:
        width = str(len(self.weight) // self.members)
        return width if self.members == 1 else f"{width}, members={self.members}"

    def reset_parameters(self) -> None:
        """Initialize the weight."""
        nn.init.ones_(self.weight)

    def forward(self, rows: Tensor) -> Tensor:
        """Normalize. (n, width) -> (n, width)"""
        each = by_head(rows, self.members)
        return (each * (each.square().mean(2, keepdim=True) + self.eps).rsqrt()).flatten(1) * self.weight


def make_odd_norm(norm: str | None, width: int) -> nn.Module:
    """The norm of odd channels that goes with one of even channels; the identity for None."""
    if norm is None:
        return nn.Identity()
    return OddNorm(width) if norm == "batch" else OddLayerNorm(width)


def reciprocal_degree(incidence: Incidence, dtype: torch.dtype) -> Tensor:
    """1 / max(number of edges, 1) of each node, a loop once. (N,)"""
    return incidence.cache(
        ("one over edges", dtype), lambda: (1 / incidence.edge_count.clamp(min=1).double()).to(dtype)
    )
