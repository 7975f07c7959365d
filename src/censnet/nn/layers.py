"""The two layers of CensNet. Each updates one side of the graph and reads the other."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from censnet.nn.ensemble import batched_linear, check_rows, init_members
from censnet.nn.gates import bounded
from censnet.nn.kernels import Hop, Kernel, Operator, make_kernel
from censnet.ops.checks import check_floating, check_same_device, check_same_dtype, check_shape
from censnet.ops.incidence import Incidence
from censnet.ops.normalization import Normalization, scale_rows
from censnet.ops.propagate import propagate_edges, propagate_nodes
from censnet.ops.quotient import NodeStep, Step
from censnet.ops.released import propagate_edges_released

Side = Literal["node", "edge"]
SelfWeight = Literal["incident", "one", "learned", "one_plus_learned"]
Gate = Literal["linear", "bounded"]
Variant = Literal["paper", "released"]
GateInit = Literal["signed", "positive"]
DIAGONAL: dict[SelfWeight, Literal["incident", "one"] | float] = {  # of the gate matrix, beside a learned root weight
    "incident": "incident",
    "one": "one",
    "learned": 0.0,
    "one_plus_learned": "one",
}


@dataclass(frozen=True)
class LayerOptions:
    r"""The options that node and edge layers share.

    Args:
        bias: whether to add a learned vector to every node or edge that is updated.
        self_weight: the weight of a node, or edge, in its own update. ``"incident"`` is the rule as printed: for a node
            the sum of the gates of its edges, hence 0 for an isolated node; for an edge the sum of the gates of its two
            nodes. ``"one"`` puts 1 there, as the code released by the authors does. ``"learned"`` puts 0 there and adds
            a linear map of the node's or edge's own features (PyG: ``root_weight``). ``"one_plus_learned"`` puts 1
            there, and adds such a map that starts at 0. None: as `variant` has it.
        heads: gates of each node or edge that is read. Each weighs its own share of the channels; 1 is the paper.
        gate: ``"linear"`` is :math:`H p` as printed, ``"bounded"`` is :math:`2\,\mathrm{sigmoid}(H p)`, which starts
            at 1, so that the layer starts as the kernel without gates.
        normalization: ``"symmetric"`` as printed, :math:`D^{-1/2} (A + I) D^{-1/2}`, or ``"row"``:
            :math:`D^{-1} (A + I)`. None: as `variant` has it.
        kernel: a name or a `Kernel`; see `censnet.nn.kernels`. ``"hop"`` is the paper.
        variant: ``"paper"`` is the printed text, ``"released"`` the code released by the authors: row normalization, 1
            on the diagonal of the gates, and in edge layers also a self loop of 2 on the line graph and each column of
            the product divided by its maximum.
        gate_init: initialization of :math:`p`: ``"signed"``, of either sign, or ``"positive"``, its absolute value.
        directed: whether the layers are those of `censnet.nn.directed`, to which the order of the ends matters.
        edge_content: whether a node also reads the mean of the features of its edges, :math:`D^{-1} T H_e U`, and not
            only how much they let pass.
        pair_means: whether a directed edge layer also has means over the edges between the same two nodes, parallel and
            reciprocal.
    """

    bias: bool = True
    self_weight: SelfWeight | None = None
    heads: int = 1
    gate: Gate = "linear"
    normalization: Normalization | None = None
    kernel: str | Kernel = "hop"
    variant: Variant = "paper"
    gate_init: GateInit = "signed"
    directed: bool = False
    edge_content: bool = False
    pair_means: bool = False


DEFAULT_OPTIONS = LayerOptions()


def show_options(module: type[nn.Module]) -> None:
    """Show the fields of `LayerOptions` in a constructor's signature, in the place of its `**keywords`."""
    stated = list(inspect.signature(module).parameters.values())
    keyword = inspect.Parameter.KEYWORD_ONLY
    fields = [field.replace(kind=keyword) for field in inspect.signature(LayerOptions).parameters.values()]
    module.__signature__ = inspect.Signature([*stated[:-1], *fields])  # type: ignore[attr-defined]


class GraphLayer(nn.Module):
    """What is known of a kind of layer by its letter."""

    updates: ClassVar[Side]  # the side whose features the layer computes anew
    reads: ClassVar[Side]  # the side whose features give the gates
    read_hops: ClassVar[int] = 0  # from a node or edge updated h hops away, how much farther (-1: nearer) it reads
    released_hops: ClassVar[int] = 0  # and how many hops more with variant="released"
    causal: ClassVar[bool] = False  # whether it is of a `CausalEncoder`, in which no other layer can be
    members = 1


class IncidenceLayer(GraphLayer):
    """The parameters that node and edge layers share: W, the gate vectors p, the root weight and the bias.

    Args:
        node_width, edge_width: channels of the nodes and edges that come in.
        out_width: channels of the side that is updated.
        options: a `LayerOptions`.
        **keywords: fields of `LayerOptions`, in the place of those of `options`.
    """

    def __init__(
        self,
        node_width: int,
        edge_width: int,
        out_width: int,
        *,
        options: LayerOptions = DEFAULT_OPTIONS,
        **keywords: Any,
    ) -> None:
        super().__init__()
        options = self._resolve(replace(options, **keywords))
        variant, heads = options.variant, options.heads
        _one_of("variant", variant, ("paper", "released"))
        _one_of("gate", options.gate, ("linear", "bounded"))
        _one_of("gate_init", options.gate_init, ("signed", "positive"))
        self_weight: SelfWeight = "incident" if variant == "paper" else "one"
        normalization: Normalization = "symmetric" if variant == "paper" else "row"
        for name, default in (("self_weight", self_weight), ("normalization", normalization)):
            value = getattr(options, name)
            if variant == "released" and value not in (None, default):
                raise ValueError(f"{name} is {value!r}, expected {default!r} with variant='released': leave it out")
        if heads < 1 or out_width % heads:
            raise ValueError(f"heads is {heads}, expected a divisor of out_width {out_width}")
        widths: dict[Side, int] = {"node": node_width, "edge": edge_width}
        self.in_width, self.read_width, self.out_width = widths[self.updates], widths[self.reads], out_width
        self.self_weight = self_weight if options.self_weight is None else options.self_weight
        self.normalization = normalization if options.normalization is None else options.normalization
        _one_of("self_weight", self.self_weight, ("incident", "one", "learned", "one_plus_learned"))
        _one_of("normalization", self.normalization, ("symmetric", "row"))
        self.heads, self.gate, self.variant, self.gate_init = heads, options.gate, variant, options.gate_init
        self.kernel = make_kernel(options.kernel)
        self.weight = nn.Parameter(torch.empty(self.in_width, out_width))
        self.gate_weight = nn.Parameter(torch.empty(self.read_width, heads))
        has_root = self.self_weight in ("learned", "one_plus_learned")
        self.root_weight = nn.Parameter(torch.empty(self.in_width, out_width)) if has_root else None
        self.bias = nn.Parameter(torch.empty(out_width)) if options.bias else None
        has_content = options.edge_content and self.updates == "node" and not options.directed
        self.content_weight = nn.Parameter(torch.empty(edge_width, out_width)) if has_content else None
        self.reset_parameters()
        self._extend(widths, options)

    def _resolve(self, options: LayerOptions) -> LayerOptions:
        """The options, with those that the kind of layer decides; raises for others."""
        return options

    def _extend(self, widths: dict[Side, int], options: LayerOptions) -> None:
        """Add the parameters that a kind of layer has beside these."""

    def reset_parameters(self) -> None:
        """Initialize: W by Glorot and Bengio; p so too, or 0 behind a bounded gate, which then starts at 1.

        The paper does not state the initialization of p. Of either sign, a linear gate H p subtracts half of the
        neighbors from a sum at random, and ReLU may then leave nothing of it. Where p and the features are positive,
        every layer starts as a sum over neighbors.
        """
        init_members(self.weight, nn.init.xavier_uniform_)
        if self.self_weight == "learned" and self.root_weight is not None:
            init_members(self.root_weight, nn.init.xavier_uniform_)
        elif self.root_weight is not None:
            nn.init.zeros_(self.root_weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)
        if self.content_weight is not None:
            init_members(self.content_weight, nn.init.xavier_uniform_)
        self._reset_gate(self.gate_weight)
        self.kernel.reset_parameters()

    def _reset_gate(self, weight: Tensor) -> None:
        if self.gate == "bounded":
            nn.init.zeros_(weight)
        elif self.variant == "released":
            nn.init.normal_(weight)
        else:
            init_members(weight, nn.init.xavier_uniform_)
        if self.gate_init == "positive":
            weight.data.abs_()

    def matrix_sides(self) -> dict[str, Side]:
        """The side whose channels each matrix mixes, by the names of the parameters that are there."""
        sides = {
            "weight": self.updates,
            "gate_weight": self.reads,
            "root_weight": self.updates,
            "content_weight": self.reads,
        }
        return {name: side for name, side in sides.items() if getattr(self, name) is not None}

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

    def gates(self, read: Tensor, weight: Tensor | None = None) -> Tensor:
        """The gates of the nodes or edges that are read: H p, or 2 sigmoid(H p). (n, members * heads)."""
        gate = batched_linear(read, self.gate_weight if weight is None else weight)
        return gate if self.gate == "linear" else bounded(gate)

    def _update(self, rows: Tensor, multiply: Callable[[Tensor], Tensor], owner: Tensor | None, graphs: int) -> Tensor:
        """kernel(S) H W + bias, with W applied on the side of S where there are fewer channels to propagate."""
        symmetric = self.normalization == "symmetric" and self.variant == "paper"
        operator = Operator(multiply, symmetric, owner, graphs)
        narrow = self.in_width < self.out_width and self.heads == 1 and self.kernel.commutes
        out: Tensor
        if narrow and rows.layout == torch.strided:
            shared = rows.shape[1] < self.members * self.in_width
            out = batched_linear(
                self.kernel(operator, rows.repeat(1, self.members) if shared else rows), self.weight, self.bias
            )
        else:
            out = self.kernel(operator, batched_linear(rows, self.weight))
            if self.root_weight is not None:
                return batched_linear(rows, self.root_weight, self.bias, out)
            out = out if self.bias is None else out + self.bias
        return out if self.root_weight is None else batched_linear(rows, self.root_weight, None, out)

    @property
    def takes_colors(self) -> bool:
        """Whether `forward_colors` computes what this layer does: it has the layer of molecules alone."""
        plain = type(self) in (NodeLayer, EdgeLayer) and self.variant == "paper" and isinstance(self.kernel, Hop)
        hooked = self._forward_hooks or self._forward_pre_hooks
        return plain and self.self_weight == "learned" and not hooked

    def forward_colors(self, nodes: Tensor, edges: Tensor, step: Step) -> Tensor:
        """The updated side, of each color of `step` (`censnet.ops.quotient`) alone."""
        rows, read = (nodes, edges) if self.updates == "node" else (edges, nodes)
        out = step.propagate(batched_linear(rows, self.weight), self.gates(read), self.normalization)
        assert self.root_weight is not None
        out = out + step.carry(batched_linear(rows, self.root_weight, self.bias))
        if self.content_weight is not None and isinstance(step, NodeStep):
            out = batched_linear(step.mean(edges), self.content_weight, None, out)
        return out

    def _check_dtypes(self, nodes: Tensor, edges: Tensor) -> None:
        for name, rows in (("nodes", nodes), ("edges", edges)):
            check_floating(name, rows)
            check_same_device(name, rows, "the layer", self.weight)
            if rows.dtype != self.weight.dtype and not torch.is_autocast_enabled(rows.device.type):
                check_same_dtype(name, rows, "the layer", self.weight)


class NodeLayer(IncidenceLayer):
    r"""Update the nodes of a graph, each edge deciding how much passes along it.

    .. math::
        H_v' = \sigma\bigl( (T \operatorname{diag}(H_e p_e)\, T^\top \odot \tilde A_v)\, H_v W_v \bigr)

    where :math:`\tilde A_v = D_v^{-1/2} (A_v + I) D_v^{-1/2}` and :math:`T` is the incidence matrix. The edges are
    read, not updated. :math:`\sigma` and dropout belong to the encoder, so that a last layer can be linear.

    **What is computed.** Let :math:`w = H_e p_e`. Entry :math:`(i, j)` of :math:`T \operatorname{diag}(w)\, T^\top` is
    the sum of :math:`w_e` over the edges between :math:`i` and :math:`j`, :math:`\sum_{e \ni i} w_e` if :math:`i = j`,
    and 0 otherwise. So :math:`A_v + I` is 1 wherever that matrix is not 0: the mask masks nothing, only its two
    scalings stay, and exactly

    .. math::
        H_v' = \sigma\bigl( D_v^{-1/2}\, T \operatorname{diag}(w)\, T^\top D_v^{-1/2} H_v W_v \bigr).

    Read from the right: mix channels, scale, sum the two ends onto each edge, weigh, sum back onto the nodes,
    scale. :math:`O(E d)` time and memory; neither :math:`A_v` nor the fused matrix is built.

    With ``edge_content=True`` the mean of the features of its edges is added, :math:`D^{-1} T H_e U`, where D counts
    the edges of a node.

    Args:
        node_width: channels of each node that comes in, :math:`d_v`.
        edge_width: channels of each edge that is read, :math:`d_e`.
        out_width: channels of each node that goes out.
        options, keywords: `LayerOptions`, whole or by the names of its fields.

    Shape:
        nodes :math:`(N, d_v)`, dense or sparse CSR, edges :math:`(E, d_e)` -> nodes :math:`(N, d_\text{out})`. For
        a stack of M layers see `censnet.nn.ensemble`.

    Example:
        >>> path = Incidence(ends=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
        >>> layer = NodeLayer(node_width=4, edge_width=2, out_width=8)
        >>> layer
        NodeLayer(4 -> 8, reads 2, 'incident')
        >>> layer(torch.randn(3, 4), torch.randn(2, 2), path).shape
        torch.Size([3, 8])
    """

    updates, reads = "node", "edge"

    def forward(self, nodes: Tensor, edges: Tensor, incidence: Incidence, edge_scale: Tensor | None = None) -> Tensor:
        """Compute the updated nodes. `edge_scale` (E,) multiplies the gate of each edge."""
        check_rows("nodes", nodes, incidence.num_nodes, self.in_width, self.members, "(N, node_width)")
        check_rows("edges", edges, incidence.num_edges, self.read_width, self.members, "(E, edge_width)")
        self._check_dtypes(nodes, edges)
        w, diagonal = self.gates(edges), DIAGONAL[self.self_weight]
        if edge_scale is not None:
            check_shape("edge_scale", edge_scale, (incidence.num_edges,), "(E,)")
            w = w * edge_scale.unsqueeze(1)
        out = self._update(
            nodes,
            lambda x: propagate_nodes(x, w, incidence, diagonal, self.normalization),
            incidence.owner,
            incidence.num_graphs,
        )
        if self.content_weight is None:
            return out
        content = incidence.mean(edges if edge_scale is None else scale_rows(edges, edge_scale))
        return batched_linear(content, self.content_weight, None, out)


class EdgeLayer(IncidenceLayer):
    r"""Update the edges of a graph, each node deciding how much passes through it.

    .. math::
        H_e' = \sigma\bigl( (T^\top \operatorname{diag}(H_v p_v)\, T \odot \tilde A_e)\, H_e W_e \bigr)

    where :math:`A_e` is the adjacency of the line graph: two edges are neighbors when they share a node.

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
        edge_width, out_width: channels of each edge that comes in, :math:`d_e`, and of each that goes out.
        options, keywords: as in `NodeLayer`.

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

    updates, reads = "edge", "node"
    read_hops, released_hops = -1, 1  # released: a column's maximum is over all edges at its two nodes

    def forward(self, nodes: Tensor, edges: Tensor, incidence: Incidence) -> Tensor:
        """Compute the updated edges."""
        check_rows("nodes", nodes, incidence.num_nodes, self.read_width, self.members, "(N, node_width)")
        check_rows("edges", edges, incidence.num_edges, self.in_width, self.members, "(E, edge_width)")
        self._check_dtypes(nodes, edges)
        u, diagonal = self.gates(nodes), DIAGONAL[self.self_weight]
        return self._update(
            edges,
            lambda z: (
                propagate_edges_released(z, u, incidence)
                if self.variant == "released"
                else propagate_edges(z, u, incidence, diagonal, self.normalization)
            ),
            incidence.edge_owner,
            incidence.num_graphs,
        )


def _one_of(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} is {value!r}, expected one of {', '.join(map(repr, choices))}")


LAYERS: dict[str, type[GraphLayer]] = {"N": NodeLayer, "E": EdgeLayer}  # the letters of `CensNet(layers=...)`
for _layer in (NodeLayer, EdgeLayer):
    show_options(_layer)


def letters_of(side: Side) -> list[str]:
    """The letters of the layers that update a side, and see all edges."""
    return [letter for letter in letters() if LAYERS[letter].updates == side]


def letters(causal: bool = False) -> list[str]:
    """The letters of the layers that see all edges, or of those that see the past alone."""
    return [letter for letter, layer in LAYERS.items() if layer.causal == causal]
