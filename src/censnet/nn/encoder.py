"""CensNet: node layers and edge layers in any order, each reading the current embeddings of the other side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Literal, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from censnet.nn.directed import layer_type
from censnet.nn.dropout import Dropout, dropout
from censnet.nn.ensemble import batched_linear, check_rows, init_members
from censnet.nn.kernels import make_kernel
from censnet.nn.layers import DEFAULT_OPTIONS, LAYERS, IncidenceLayer, LayerOptions, Side, letters, show_options
from censnet.nn.norms import BatchNorm, Norm, check_norm, make_norm
from censnet.nn.recompute import Recomputing
from censnet.ops.incidence import Incidence
from censnet.ops.normalization import by_head
from censnet.ops.quotient import Colors, Quotient, find_quotient
from censnet.ops.sparse import map_values

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "elu": F.elu,
    "gelu": F.gelu,
    "silu": F.silu,
    "tanh": torch.tanh,
    "none": lambda x: x,
}


class LayeredEncoder(Recomputing):
    """The base of encoders: linear layers of the nodes before the first graph layer, and what follows a graph layer.

    Args:
        node_width, hidden, layers, dropout, norm, residual, activation, pre_layers: as in `CensNet`.
    """

    members = 1

    def __init__(
        self,
        node_width: int,
        hidden: int = 32,
        layers: str = "NEN",
        dropout: float = 0.0,
        norm: Norm | None = None,
        residual: bool | Literal["rezero"] = False,
        activation: str = "relu",
        pre_layers: int = 0,
    ) -> None:
        super().__init__()
        check_layer_order(layers, may_be_empty=pre_layers > 0)
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation is {activation!r}, expected one of {', '.join(map(repr, ACTIVATIONS))}")
        if residual not in (False, True, "rezero"):
            raise ValueError(f"residual is {residual!r}, expected True, False or 'rezero'")
        check_norm(norm)
        self.hidden, self.layer_order, self.residual, self.activation = hidden, layers, residual, activation
        self.dropout = Dropout(dropout)
        self.pre_layers = nn.ModuleList(
            PreLayer(hidden if depth else node_width, hidden) for depth in range(pre_layers)
        )

    def make_gains(self, count: int) -> None:
        """Make the gains of this many residual connections, if they are learned."""
        learned = count and self.residual == "rezero"
        self.rezero_gain = nn.Parameter(torch.zeros(count)) if learned else None

    def gains(self, first: int = 0) -> Iterator[Tensor]:
        """The gain of each residual connection from this one on, in order."""
        return (
            iter(()) if self.rezero_gain is None else iter(self.rezero_gain.view(self.members, -1, 1).unbind(1)[first:])
        )

    def add(self, new: Tensor, old: Tensor, gains: Iterator[Tensor]) -> Tensor:
        """gain new + old, dense, also for sparse input features; features that the members share are added to each."""
        if self.rezero_gain is not None:
            new = (by_head(new, self.members) * next(gains)).flatten(1)
        if new.shape == old.shape:
            return new + old
        return torch.cat([share + old for share in new.chunk(self.members, dim=1)], dim=1)

    def finish(self, rows: Tensor) -> Tensor:
        """Activate, and drop channels while training."""
        if rows.layout == torch.sparse_csr:  # every activation here leaves 0 as it is
            return map_values(rows, self.finish)
        if self.activation == "relu":
            return dropout(rows, self.dropout.p, self.training, relu=True)
        finished: Tensor = self.dropout(ACTIVATIONS[self.activation](rows))
        return finished


class CensNet(LayeredEncoder):
    r"""Embed the nodes and the edges of a graph together.

    Every layer updates one side and reads the current embeddings of the other. After a layer, the updated side is
    normalized, activated, passed through dropout and, where the widths agree and `residual` is set, added to its input:

    .. math::
        H \leftarrow H + r_l\, \mathrm{dropout}(\sigma(\mathrm{norm}(\mathrm{layer}_l(H))))

    where :math:`r_l` is 1, or a learned gain of each layer that starts at 0 (ReZero), so that a deep network starts as
    a shallow one.

    Args:
        node_width: channels of each node that comes in.
        edge_width: channels of each edge that comes in.
        hidden: channels that each layer gives.
        layers: the sequence of node (N) and edge (E) layers, letters of `LAYERS`: "NEN" is the paper's network for node
            tasks. With `pre_layers` it may be empty.
        out_width: channels that the last layer gives. It is then linear: nothing is done after it.
        dropout: probability of a channel to be dropped after each layer.
        norm: "batch", "layer" or None, before the activation.
        residual: whether to add the input of a layer, where the widths agree; "rezero" is with a learned :math:`r_l`.
        activation: relu, elu, gelu, silu, tanh or none.
        pre_layers: linear layers of the nodes before the first graph layer, each of `hidden` channels with activation
            and dropout (GraphGym: ``layers_pre_mp``).
        edge_pre_layer: whether edges pass such a layer too, together with the sum of their two nodes: edge layers then
            propagate node features as well.
        options, keywords: `LayerOptions` of all layers, whole or by the names of its fields. Where the last layer's
            `out_width` is not a multiple of `heads`, that layer has one head. With ``variant="released"`` the edges
            keep their width, and activation and dropout are applied to both sides after every layer.

    Shape:
        nodes (N, node_width), edges (E, edge_width) -> nodes (N, out_node_width), edges (E, out_edge_width).

    Example:
        >>> path = Incidence(torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
        >>> model = CensNet(node_width=4, edge_width=2, hidden=8, layers="NEN", out_width=5)
        >>> nodes, edges = model(torch.randn(3, 4), torch.randn(2, 2), path)
        >>> nodes.shape, edges.shape
        (torch.Size([3, 5]), torch.Size([2, 8]))
    """

    def __init__(
        self,
        node_width: int,
        edge_width: int,
        hidden: int = 32,
        layers: str = "NEN",
        *,
        out_width: int | None = None,
        dropout: float = 0.0,
        norm: Norm | None = None,
        residual: bool | Literal["rezero"] = False,
        activation: str = "relu",
        pre_layers: int = 0,
        edge_pre_layer: bool = False,
        options: LayerOptions = DEFAULT_OPTIONS,
        **keywords: Any,
    ) -> None:
        super().__init__(node_width, hidden, layers, dropout, norm, residual, activation, pre_layers)
        options = replace(options, **keywords)
        self.variant = options.variant
        self.steps = make_kernel(options.kernel).steps
        self.last_layer_is_head = out_width is not None
        width: dict[Side, int] = {
            "node": hidden if pre_layers else node_width,
            "edge": hidden if edge_pre_layer else edge_width,
        }
        self.edge_pre_layer = PreLayer(edge_width, hidden) if edge_pre_layer else None
        self.edge_pre_ends = PreLayer(width["node"], hidden, bias=False) if edge_pre_layer else None
        self.layers = nn.ModuleList()
        self.norms = nn.ModuleList()
        for depth, letter in enumerate(layers):
            side, last = LAYERS[letter].updates, self._is_head(depth)
            out = edge_width if side == "edge" and self.variant == "released" else hidden
            if last and out_width is not None:
                out = out_width
            heads = 1 if last and out % options.heads else options.heads
            kind = layer_type(letter, options.directed)
            self.layers.append(kind(width["node"], width["edge"], out, options=replace(options, heads=heads)))
            self.norms.append(make_norm(None if last else norm, out))
            width[side] = out
        self.has_residual = [self._adds(depth) for depth in range(len(layers))]
        self.make_gains(sum(self.has_residual))
        self.out_node_width, self.out_edge_width = width["node"], width["edge"]

    def reset_parameters(self) -> None:
        """Initialize all parameters."""
        for module in (*self.pre_layers, self.edge_pre_layer, self.edge_pre_ends, *self.layers, *self.norms):
            if module is not None and not isinstance(module, nn.Identity):
                module.reset_parameters()
        if self.rezero_gain is not None:
            nn.init.zeros_(self.rezero_gain)

    def forward(self, nodes: Tensor, edges: Tensor, incidence: Incidence) -> tuple[Tensor, Tensor]:
        """Embed the nodes and edges."""
        quotient = self.quotient(nodes, edges, incidence)
        if quotient is not None:
            return self._embed_colors(nodes, edges, quotient)
        nodes, edges = self.prepare(nodes, edges, incidence)
        for depth in range(len(self.layers)):
            nodes, edges = self.call(self.update, depth, nodes, edges, incidence)
        return nodes, edges

    def prepare(self, nodes: Tensor, edges: Tensor, incidence: Incidence | Quotient) -> tuple[Tensor, Tensor]:
        """Nodes and edges after the linear layers before the first graph layer."""
        for pre_layer in self.pre_layers:
            nodes = self.finish(pre_layer(nodes))
        if self.edge_pre_layer is not None and self.edge_pre_ends is not None:
            edges = self.finish(self.edge_pre_layer(edges) + incidence.gather(self.edge_pre_ends(nodes)))
        return nodes, edges

    def update(self, depth: int, nodes: Tensor, edges: Tensor, incidence: Incidence) -> tuple[Tensor, Tensor]:
        """Nodes and edges after a layer, and after what follows it."""
        layer, features = self._layer(depth), {"node": nodes, "edge": edges}
        old, new = features[layer.updates], layer(nodes, edges, incidence)
        if not self._is_head(depth):
            new = self.finish(self._normalize(depth, new, incidence.present.get(layer.updates)))
            if self.has_residual[depth]:
                new = self.add(new, old, self.gains(sum(self.has_residual[:depth])))
            if self.variant == "released":
                features[layer.reads] = self.finish(features[layer.reads])
        features[layer.updates] = new
        return features["node"], features["edge"]

    def quotient(self, nodes: Tensor, edges: Tensor, incidence: Incidence) -> Quotient | None:
        """The quotient of a batch of graphs on a CPU where rows of equal neighborhoods get equal embeddings."""
        if (
            torch.compiler.is_compiling()
            or type(incidence) is not Incidence
            or incidence.owner is None
            or incidence.present
            or nodes.device.type != "cpu"
            or nodes.layout != torch.strided
            or nodes.requires_grad
            or edges.requires_grad
            or (self.training and (self.dropout.p > 0 or self.recompute))
            or torch.is_autocast_enabled("cpu")
            or self.last_layer_is_head
            or self.layer_order != ("NE" * len(self.layers))[: len(self.layers)]
            or not all(self._layer(depth).takes_colors for depth in range(len(self.layers)))
        ):
            return None
        return find_quotient(nodes, edges, incidence, self.layer_order)

    def _embed_colors(self, nodes: Tensor, edges: Tensor, quotient: Quotient) -> tuple[Tensor, Tensor]:
        """Embed the nodes and edges, those of equal neighborhoods once."""
        colors: dict[Side, Colors] = {"node": quotient.nodes, "edge": quotient.edges}
        nodes, edges = (
            rows.index_select(0, own.first) for rows, own in zip((nodes, edges), colors.values(), strict=True)
        )
        nodes, edges = self.prepare(nodes, edges, quotient)
        features: dict[Side, Tensor] = {"node": nodes, "edge": edges}
        for depth, step in enumerate(quotient.steps()):
            layer = self._layer(depth)
            old, new = features[layer.updates], layer.forward_colors(features["node"], features["edge"], step)
            new = self.finish(self._normalize(depth, new, step.after.size.to(new.dtype)))
            if self.has_residual[depth]:
                new = self.add(new, step.carry(old), self.gains(sum(self.has_residual[:depth])))
            features[layer.updates], colors[layer.updates] = new, step.after
        return colors["node"].expand(features["node"]), colors["edge"].expand(features["edge"])

    def _normalize(self, depth: int, rows: Tensor, present: Tensor | None) -> Tensor:
        norm = self.norms[depth]
        normalized: Tensor = norm(rows) if present is None or not isinstance(norm, BatchNorm) else norm(rows, present)
        return normalized

    def _layer(self, depth: int) -> IncidenceLayer:
        return cast(IncidenceLayer, self.layers[depth])

    def _is_head(self, depth: int) -> bool:
        return self.last_layer_is_head and depth == len(self.layer_order) - 1

    def _adds(self, depth: int) -> bool:
        """Whether a layer has a residual connection; with ReZero only from embeddings, not from input features."""
        layer = self._layer(depth)
        embedded = bool(self.pre_layers) if layer.updates == "node" else self.edge_pre_layer is not None
        embedded |= any(self._layer(before).updates == layer.updates for before in range(depth))
        fits = layer.in_width == layer.out_width and (embedded or self.residual != "rezero")
        return bool(self.residual) and not self._is_head(depth) and fits


class PreLayer(nn.Module):
    """x W + b, without the graph. (n, width), dense or CSR -> (n, members * out_width)."""

    members = 1

    def __init__(self, width: int, out_width: int, bias: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width, out_width))
        self.bias = nn.Parameter(torch.empty(out_width)) if bias else None
        self.reset_parameters()

    def extra_repr(self) -> str:
        shape = f"{self.weight.shape[-2]} -> {self.weight.shape[-1]}"
        return shape if self.members == 1 else f"{shape}, members={self.members}"

    def reset_parameters(self) -> None:
        init_members(self.weight, nn.init.xavier_uniform_)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, rows: Tensor) -> Tensor:
        check_rows("features", rows, None, self.weight.shape[-2], self.members, "(n, width)")
        out = batched_linear(rows, self.weight)
        return out if self.bias is None else out + self.bias


show_options(CensNet)


def check_layer_order(layers: str, may_be_empty: bool = False) -> None:
    """Raise unless this is a sequence of letters of `LAYERS`."""
    known = letters()
    if not (layers or may_be_empty) or set(layers) - set(known):
        raise ValueError(f"layers is {layers!r}, expected a sequence of {' and '.join(known)}, such as 'NEN'")


def receptive_field(layers: str, level: Side = "node", steps: int = 1, released: bool = False) -> int:
    """The number of hops around a node or an edge that its embedding depends on.

    Args:
        layers: the letters of a `CensNet`, such as "NEN".
        level: whether it is a node or an edge.
        steps: multiplications of the kernel by its operator: 1 for one hop.
        released: whether the layers are of the released variant, whose edge layer also reads the largest entry of each
            column.

    Example:
        >>> receptive_field("NEN"), receptive_field("NEN", "edge"), receptive_field("EN"), receptive_field("NENEN")
        (2, 1, 2, 3)
    """
    hops: dict[Side, int | None] = {"node": None, "edge": None, level: 0}  # of each side's features; None: not read
    around = 0  # hops whose edges must be there, even if their features are not read
    for letter in reversed(layers):
        layer = LAYERS[letter]
        reach = hops[layer.updates]
        if reach is not None:
            reach = hops[layer.updates] = reach + steps
            farther = released * layer.released_hops
            around = max(around, reach + farther)
            hops[layer.reads] = max(hops[layer.reads] or 0, reach + layer.read_hops + farther)
    return max(around, *(reach or 0 for reach in hops.values()))
