"""The two layers of CensNet. Each renews one side of the graph and reads the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

from censnet.nn.ensemble import check_rows, init_members, matrices, mix
from censnet.nn.kernels import Hop, Kernel, Operator, make_kernel
from censnet.ops.checks import check_floating, check_same_device, check_same_dtype, check_shape
from censnet.ops.incidence import Incidence
from censnet.ops.normalization import Normalization
from censnet.ops.propagate import propagate_edges, propagate_nodes
from censnet.ops.released import propagate_edges_released

SelfWeight = Literal["incident", "one", "learned", "one_plus_learned"]
Gate = Literal["linear", "bounded"]
Variant = Literal["paper", "released"]
GateInit = Literal["signed", "positive"]


class _IncidenceLayer(nn.Module):
    """What both layers have: the mixing W, the gate vector p, and how they meet in one operator."""

    def __init__(
        self,
        in_width: int,
        read_width: int,
        out_width: int,
        bias: bool,
        self_weight: SelfWeight | None,
        heads: int,
        gate: Gate,
        normalization: Normalization | None,
        kernel: str | Kernel,
        variant: Variant,
        gate_init: GateInit,
        members: int,
    ) -> None:
        super().__init__()
        _one_of("variant", variant, ("paper", "released"))
        _one_of("gate", gate, ("linear", "bounded"))
        _one_of("gate_init", gate_init, ("signed", "positive"))
        defaults: tuple[SelfWeight, Normalization] = ("incident", "symmetric") if variant == "paper" else ("one", "row")
        for name, value, default in zip(
            ("self_weight", "normalization"), (self_weight, normalization), defaults, strict=True
        ):
            if variant == "released" and value not in (None, default):
                raise ValueError(f"{name} is {value!r}, expected {default!r} with variant='released': leave it out")
        if heads < 1 or out_width % heads:
            raise ValueError(f"heads is {heads}, expected a divisor of out_width {out_width}")
        self.in_width, self.read_width, self.out_width = in_width, read_width, out_width
        self.self_weight: SelfWeight = defaults[0] if self_weight is None else self_weight
        self.normalization: Normalization = defaults[1] if normalization is None else normalization
        _one_of("self_weight", self.self_weight, ("incident", "one", "learned", "one_plus_learned"))
        _one_of("normalization", self.normalization, ("symmetric", "row"))
        self.heads, self.gate, self.variant, self.gate_init, self.members = heads, gate, variant, gate_init, members
        self.kernel = make_kernel(kernel, members)
        self.weight = nn.Parameter(matrices(members, in_width, out_width))
        self.gate_weight = nn.Parameter(matrices(members, read_width, heads))
        mapped = self.self_weight in ("learned", "one_plus_learned")
        self.root_weight = nn.Parameter(matrices(members, in_width, out_width)) if mapped else None
        self.bias = nn.Parameter(torch.empty(members * out_width)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Start afresh: W by Glorot and Bengio; p so too, or 0 behind a bounded gate, which then starts at 1.

        The paper does not say how p starts. Of either sign, a linear gate H p has half of the neighbours subtracted
        from a sum at random, and ReLU may then leave nothing of it. Where p is positive, and the features are, every
        layer starts by adding up what its neighbours have.
        """
        init_members(self.weight, nn.init.xavier_uniform_)
        if self.self_weight == "learned" and self.root_weight is not None:
            init_members(self.root_weight, nn.init.xavier_uniform_)
        elif self.root_weight is not None:
            nn.init.zeros_(self.root_weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)
        if self.gate == "bounded":
            nn.init.zeros_(self.gate_weight)
        elif self.variant == "released":
            nn.init.normal_(self.gate_weight)
        else:
            init_members(self.gate_weight, nn.init.xavier_uniform_)
        if self.gate_init == "positive":
            self.gate_weight.data.abs_()
        self.kernel.reset_parameters()

    def extra_repr(self) -> str:
        kind = self.self_weight if self.variant == "paper" else self.variant
        parts = [f"{self.in_width} -> {self.out_width}, reads {self.read_width}, {kind!r}"]
        if self.heads > 1:
            parts.append(f"heads={self.heads}")
        if self.gate != "linear":
            parts.append(f"gate={self.gate!r}")
        if self.gate_init != "signed":
            parts.append(f"gate_init={self.gate_init!r}")
        if self.normalization == "row" and self.variant == "paper":
            parts.append("normalization='row'")
        if not isinstance(self.kernel, Hop):
            parts.append(f"kernel={self.kernel!r}")
        if self.bias is None:
            parts.append("bias=False")
        if self.members > 1:
            parts.append(f"members={self.members}")
        return ", ".join(parts)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.extra_repr()})"

    def gates(self, read: Tensor) -> Tensor:
        """How much passes along or through each row that is read: H p, or 2 sigmoid(H p). (n, members * heads)."""
        gate = mix(read, self.gate_weight)
        return gate if self.gate == "linear" else 2 * torch.sigmoid(gate)

    def _renew(self, rows: Tensor, multiply: Callable[[Tensor], Tensor], owner: Tensor | None, graphs: int) -> Tensor:
        """kernel(S) H W + bias, mixing the channels where there are fewer of them to move."""
        symmetric = self.normalization == "symmetric" and self.variant == "paper"
        operator = Operator(multiply, symmetric, owner, graphs)
        narrow = self.in_width < self.out_width and self.heads == 1 and self.kernel.commutes
        out: Tensor
        if narrow and rows.layout == torch.strided:
            shared = rows.shape[1] < self.members * self.in_width
            out = mix(self.kernel(operator, rows.repeat(1, self.members) if shared else rows), self.weight, self.bias)
        else:
            out = self.kernel(operator, mix(rows, self.weight))
            out = out if self.bias is None else out + self.bias
        return out if self.root_weight is None else out + mix(rows, self.root_weight)

    def _check_dtypes(self, nodes: Tensor, edges: Tensor) -> None:
        for name, rows in (("nodes", nodes), ("edges", edges)):
            check_floating(name, rows)
            check_same_device(name, rows, "the layer", self.weight)
            if rows.dtype != self.weight.dtype and not torch.is_autocast_enabled(rows.device.type):
                check_same_dtype(name, rows, "the layer", self.weight)

    @property
    def _diagonal(self) -> Literal["incident", "one"] | float:
        if self.self_weight == "learned":
            return 0.0
        return "one" if self.self_weight == "one_plus_learned" else self.self_weight


class NodeLayer(_IncidenceLayer):
    r"""Renew the nodes of a graph, each edge deciding how much passes along it.

    .. math::
        H_v' = \sigma\bigl( (T \operatorname{diag}(H_e p_e)\, T^\top \odot \tilde A_v)\, H_v W_v \bigr)

    where :math:`\tilde A_v = D_v^{-1/2} (A_v + I) D_v^{-1/2}` and :math:`T` is the incidence matrix. The edges are
    read, not renewed. :math:`\sigma` and dropout belong to the encoder, so that a last layer can be linear.

    **What is computed.** Let :math:`w = H_e p_e`. Entry :math:`(i, j)` of :math:`T \operatorname{diag}(w)\, T^\top` is
    the sum of :math:`w_e` over the edges between :math:`i` and :math:`j`, :math:`\sum_{e \ni i} w_e` if :math:`i = j`,
    and 0 otherwise. So :math:`A_v + I` is 1 wherever that matrix is not 0: the mask masks nothing, only its two
    scalings stay, and exactly

    .. math::
        H_v' = \sigma\bigl( D_v^{-1/2}\, T \operatorname{diag}(w)\, T^\top D_v^{-1/2} H_v W_v \bigr).

    Read from the right: mix channels, scale, sum the two ends onto each edge, weigh, sum back onto the nodes,
    scale. :math:`O(E d)` time and memory; neither :math:`A_v` nor the fused matrix is built.

    Args:
        node_width: channels of each node that comes in, :math:`d_v`.
        edge_width: channels of each edge that is read, :math:`d_e`.
        out_width: channels of each node that goes out.
        bias: whether to add a learned vector to every node.
        self_weight: what a node gives itself. ``"incident"`` is the rule as printed: the sum of its edge weights,
            hence nothing for an isolated node. ``"one"`` puts 1 there, as the code released by the authors does.
            ``"learned"`` puts 0 there and adds a linear map of the node's own. ``"one_plus_learned"`` puts 1 there, and
            adds such a map that starts at 0.
        heads: gates of each edge. Each weighs its own share of the channels; 1 is the paper.
        gate: ``"linear"`` is :math:`H_e p_e` as printed, ``"bounded"`` is :math:`2\,\mathrm{sigmoid}(H_e p_e)`, which
            starts at 1 and makes the layer start as the plain kernel.
        normalization: ``"symmetric"`` as printed, or ``"row"``: :math:`\tilde A_v = D_v^{-1} (A_v + I)`.
        kernel: a name or a `Kernel`; see `kernels.py`. ``"hop"`` is the paper.
        variant: ``"paper"`` is the printed text. ``"released"`` is the code released by the authors: row normalisation
            and 1 on the diagonal.
        gate_init: how :math:`p` starts: ``"signed"``, of either sign, or ``"positive"``, its absolute value.
        members: how many such layers, each with parameters of its own, stand side by side; see `members.py`.

    Shape:
        nodes :math:`(N, d_v)`, dense or sparse CSR, edges :math:`(E, d_e)` -> nodes :math:`(N, d_\text{out})`. Of M
        members, each side comes in once for all, or as :math:`M d` channels, and :math:`M d_\text{out}` go out.

    Example:
        >>> path = Incidence(ends=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
        >>> layer = NodeLayer(node_width=4, edge_width=2, out_width=8)
        >>> layer
        NodeLayer(4 -> 8, reads 2, 'incident')
        >>> layer(torch.randn(3, 4), torch.randn(2, 2), path).shape
        torch.Size([3, 8])
    """

    def __init__(
        self,
        node_width: int,
        edge_width: int,
        out_width: int,
        bias: bool = True,
        self_weight: SelfWeight | None = None,
        heads: int = 1,
        gate: Gate = "linear",
        normalization: Normalization | None = None,
        kernel: str | Kernel = "hop",
        variant: Variant = "paper",
        *,
        gate_init: GateInit = "signed",
        members: int = 1,
    ) -> None:
        super().__init__(
            node_width, edge_width, out_width, bias, self_weight, heads, gate, normalization, kernel, variant,
            gate_init, members,
        )  # fmt: skip

    def forward(self, nodes: Tensor, edges: Tensor, incidence: Incidence, edge_scale: Tensor | None = None) -> Tensor:
        """The renewed nodes. `edge_scale` (E,) weighs each edge once more, beside its gate."""
        check_rows("nodes", nodes, incidence.num_nodes, self.in_width, self.members, "(N, node_width)")
        check_rows("edges", edges, incidence.num_edges, self.read_width, self.members, "(E, edge_width)")
        self._check_dtypes(nodes, edges)
        w = self.gates(edges)
        if edge_scale is not None:
            check_shape("edge_scale", edge_scale, (incidence.num_edges,), "(E,)")
            w = w * edge_scale.unsqueeze(1)
        return self._renew(
            nodes,
            lambda x: propagate_nodes(x, w, incidence, self._diagonal, self.normalization),
            incidence.owner,
            incidence.num_graphs,
        )


class EdgeLayer(_IncidenceLayer):
    r"""Renew the edges of a graph, each node deciding how much passes through it.

    .. math::
        H_e' = \sigma\bigl( (T^\top \operatorname{diag}(H_v p_v)\, T \odot \tilde A_e)\, H_e W_e \bigr)

    where :math:`A_e` is the adjacency of the line graph: two edges are neighbours when they share a node.

    **What is computed.** Let :math:`u = H_v p_v`. Entry :math:`(e, f)` of :math:`T^\top \operatorname{diag}(u)\, T` is
    the sum of :math:`u_v` over the nodes :math:`v` that both touch: one node for two edges of a simple graph, both ends
    for parallel edges and for :math:`e = f`, none for edges apart. Again the mask masks nothing, and exactly

    .. math::
        H_e' = \sigma\bigl( D_e^{-1/2}\, T^\top \operatorname{diag}(u)\, T D_e^{-1/2} H_e W_e \bigr),
        \qquad (D_e)_{ee} = \deg i + \deg j - m_{ij}

    for an edge :math:`i`-:math:`j` of multiplicity :math:`m_{ij}`, 1 in a simple graph. :math:`O(E d)`. The line graph
    has :math:`\sum_v \binom{\deg v}{2}` edges; it is never built, not even to count its degrees.

    Args:
        node_width: channels of each node that is read, :math:`d_v`.
        edge_width: channels of each edge that comes in, :math:`d_e`.
        out_width: channels of each edge that goes out.
        bias, heads, gate, normalization, kernel, members: as in `NodeLayer`, with the two sides switched.
        self_weight: what an edge gives itself: ``"incident"`` is the sum of its two node weights, as printed.
        variant: ``"released"`` is the code released by the authors: row normalisation of the line graph with a self
            loop of 2, 1 on the diagonal of the gates, and each column of the product divided by its maximum.

    Shape:
        nodes :math:`(N, d_v)`, edges :math:`(E, d_e)` -> edges :math:`(E, d_\text{out})`.

    Example:
        >>> path = Incidence(ends=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
        >>> layer = EdgeLayer(node_width=4, edge_width=2, out_width=8, heads=2, gate="bounded", self_weight="learned")
        >>> layer
        EdgeLayer(2 -> 8, reads 4, 'learned', heads=2, gate='bounded')
        >>> layer(torch.randn(3, 4), torch.randn(2, 2), path).shape
        torch.Size([2, 8])
    """

    def __init__(
        self,
        node_width: int,
        edge_width: int,
        out_width: int,
        bias: bool = True,
        self_weight: SelfWeight | None = None,
        heads: int = 1,
        gate: Gate = "linear",
        normalization: Normalization | None = None,
        kernel: str | Kernel = "hop",
        variant: Variant = "paper",
        *,
        gate_init: GateInit = "signed",
        members: int = 1,
    ) -> None:
        super().__init__(
            edge_width, node_width, out_width, bias, self_weight, heads, gate, normalization, kernel, variant,
            gate_init, members,
        )  # fmt: skip

    def forward(self, nodes: Tensor, edges: Tensor, incidence: Incidence) -> Tensor:
        """The renewed edges."""
        check_rows("nodes", nodes, incidence.num_nodes, self.read_width, self.members, "(N, node_width)")
        check_rows("edges", edges, incidence.num_edges, self.in_width, self.members, "(E, edge_width)")
        self._check_dtypes(nodes, edges)
        u = self.gates(nodes)

        def multiply(z: Tensor) -> Tensor:
            if self.variant == "released":
                return propagate_edges_released(z, u, incidence)
            return propagate_edges(z, u, incidence, self._diagonal, self.normalization)

        return self._renew(edges, multiply, incidence.edge_owner, incidence.num_graphs)


def _one_of(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} is {value!r}, expected one of {', '.join(map(repr, choices))}")
