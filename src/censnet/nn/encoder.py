"""CensNet: node layers and edge layers in any order, each reading what the others have made so far."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from censnet.nn.dropout import Dropout, dropout
from censnet.nn.ensemble import check_rows, init_members, matrices, mix
from censnet.nn.kernels import Kernel, make_kernel
from censnet.nn.layers import EdgeLayer, Gate, GateInit, NodeLayer, SelfWeight, Variant
from censnet.nn.norms import Norm, check_norm, make_norm
from censnet.ops.incidence import Incidence
from censnet.ops.normalization import Normalization, by_head
from censnet.ops.sparse import map_values

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "elu": F.elu,
    "gelu": F.gelu,
    "silu": F.silu,
    "tanh": torch.tanh,
    "none": lambda x: x,
}


class CensNet(nn.Module):
    r"""Embed the nodes and the edges of a graph together.

    Every layer renews one side and reads the other as it is by then. After a layer, the renewed side is normalised,
    activated, thinned by dropout and, where the widths agree and it is asked for, added to what it was:

    .. math::
        H \leftarrow H + r_l\, \mathrm{dropout}(\sigma(\mathrm{norm}(\mathrm{layer}_l(H))))

    where :math:`r_l` is 1, or a number of each layer that is learnt and starts at 0, so that a deep network starts as a
    shallow one.

    Args:
        node_width: channels of each node that comes in.
        edge_width: channels of each edge that comes in.
        hidden: channels that each layer gives.
        layers: the sequence of node (N) and edge (E) layers: "NEN" is the paper's network for node tasks. With
            `pre_layers` it may be empty.
        out_width: channels that the last layer gives. It is then linear: nothing is done after it.
        dropout: probability of a channel to be dropped after each layer.
        norm: "batch", "layer" or None, before the activation.
        residual: whether to add what came in, where the widths agree; "rezero" is with an :math:`r_l` that is learnt.
        activation: relu, elu, gelu, silu, tanh or none.
        pre_layers: how often each node's features are first mapped to `hidden` channels by themselves, followed by
            the activation and dropout, so that the first layer propagates learned features.
        edge_pre_layer: whether each edge is first mapped to `hidden` channels together with the sum of its two ends,
            followed by the activation and dropout: edge layers then also propagate what an edge joins.
        variant: "paper" or "released". In the released code the edges keep their width, and activation and dropout are
            applied to both sides after every layer, renewed or not.
        bias, self_weight, heads, gate, normalization, kernel, gate_init: as in `NodeLayer` and `EdgeLayer`. Where the
            last layer's `out_width` is not a multiple of `heads`, that layer has one head.
        members: how many such networks, each with parameters of its own, stand side by side; see `members.py`.

    Shape:
        nodes (N, node_width), edges (E, edge_width) -> nodes (N, out_node_width), edges (E, out_edge_width). With M
        members, a side that is renewed has M times as many channels.

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
        variant: Variant = "paper",
        bias: bool = True,
        self_weight: SelfWeight | None = None,
        heads: int = 1,
        gate: Gate = "linear",
        normalization: Normalization | None = None,
        kernel: str | Kernel = "hop",
        gate_init: GateInit = "signed",
        members: int = 1,
    ) -> None:
        super().__init__()
        if not (layers or pre_layers) or set(layers) - {"N", "E"}:
            raise ValueError(f"layers is {layers!r}, expected a word of N and E, such as 'NEN'")
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation is {activation!r}, expected one of {', '.join(map(repr, ACTIVATIONS))}")
        if residual not in (False, True, "rezero"):
            raise ValueError(f"residual is {residual!r}, expected True, False or 'rising'")
        check_norm(norm)
        self.word, self.variant, self.residual, self.activation = layers, variant, residual, activation
        self.members, self.steps = members, make_kernel(kernel).steps  # how often a layer's kernel multiplies
        self.last_layer_is_head = out_width is not None
        self.dropout = Dropout(dropout)
        self.pre_layers = nn.ModuleList(
            _Lift(hidden if depth else node_width, hidden, members) for depth in range(pre_layers)
        )
        width = {"N": hidden if pre_layers else node_width, "E": hidden if edge_pre_layer else edge_width}
        self.edge_pre_layer = _Lift(edge_width, hidden, members) if edge_pre_layer else None
        self.edge_pre_ends = _Lift(width["N"], hidden, members, bias=False) if edge_pre_layer else None
        self.layers = nn.ModuleList()
        self.norms = nn.ModuleList()
        for depth, letter in enumerate(layers):
            last = depth == len(layers) - 1 and out_width is not None
            out = hidden
            if letter == "E" and variant == "released":
                out = edge_width
            if last and out_width is not None:
                out = out_width
            layer = NodeLayer if letter == "N" else EdgeLayer
            self.layers.append(
                layer(
                    width["N"],
                    width["E"],
                    out,
                    bias,
                    self_weight,
                    1 if last and out % heads else heads,
                    gate,
                    normalization,
                    kernel,
                    variant,
                    gate_init=gate_init,
                    members=members,
                )
            )
            self.norms.append(make_norm(None if last else norm, out, members))
            width[letter] = out
        risers = sum(self._adds(depth) for depth in range(len(layers))) if residual == "rezero" else 0
        self.rezero_gain = nn.Parameter(torch.zeros(members * risers)) if risers else None
        self.out_node_width, self.out_edge_width = width["N"], width["E"]

    def reset_parameters(self) -> None:
        """Start afresh."""
        for module in (*self.pre_layers, self.edge_pre_layer, self.edge_pre_ends, *self.layers, *self.norms):
            if module is not None and not isinstance(module, nn.Identity):
                module.reset_parameters()
        if self.rezero_gain is not None:
            nn.init.zeros_(self.rezero_gain)

    def forward(self, nodes: Tensor, edges: Tensor, incidence: Incidence) -> tuple[Tensor, Tensor]:
        """The embedded nodes and edges."""
        for pre_layers in self.pre_layers:
            nodes = self._finish(pre_layers(nodes))
        if self.edge_pre_layer is not None and self.edge_pre_ends is not None:
            edges = self._finish(self.edge_pre_layer(edges) + incidence.gather(self.edge_pre_ends(nodes)))
        rises = None if self.rezero_gain is None else iter(self.rezero_gain.view(self.members, -1, 1).unbind(1))
        for depth, (letter, layer, norm) in enumerate(zip(self.word, self.layers, self.norms, strict=True)):
            last = self._is_end(depth)
            old = nodes if letter == "N" else edges
            new = layer(nodes, edges, incidence)
            if not last:
                new = self._finish(norm(new))
                if self._adds(depth):
                    new = new if rises is None else (by_head(new, self.members) * next(rises)).flatten(1)
                    new = _add(new, old, self.members)
            nodes, edges = (new, edges) if letter == "N" else (nodes, new)
            if self.variant == "released" and not last:
                nodes, edges = (nodes, self._finish(edges)) if letter == "N" else (self._finish(nodes), edges)
        return nodes, edges

    def _is_end(self, depth: int) -> bool:
        return self.last_layer_is_head and depth == len(self.word) - 1

    def _adds(self, depth: int) -> bool:
        """Whether what a layer gives is added to what came in; what rises, only to what was embedded before."""
        layer, letter = self.layers[depth], self.word[depth]
        lifted = bool(self.pre_layers) if letter == "N" else self.edge_pre_layer is not None
        embedded = lifted or letter in self.word[:depth]
        fits = layer.in_width == layer.out_width and (embedded or self.residual != "rezero")
        return bool(self.residual) and not self._is_end(depth) and fits

    def _finish(self, rows: Tensor) -> Tensor:
        if rows.layout == torch.sparse_csr:  # every activation here leaves 0 as it is
            return map_values(rows, self._finish)
        if self.activation == "relu":
            return dropout(rows, self.dropout.p, self.training, relu=True)
        finished: Tensor = self.dropout(ACTIVATIONS[self.activation](rows))
        return finished


def _add(new: Tensor, old: Tensor, members: int) -> Tensor:
    """new + old, dense, whatever the layout of the first nodes is; what the members share is added to each."""
    if new.shape == old.shape:
        return new + old
    return torch.cat([share + old for share in new.chunk(members, dim=1)], dim=1)


class _Lift(nn.Module):
    """x W + b, of each row by itself. (n, width), dense or CSR -> (n, members * out_width)."""

    def __init__(self, width: int, out_width: int, members: int, bias: bool = True) -> None:
        super().__init__()
        self.members = members
        self.weight = nn.Parameter(matrices(members, width, out_width))
        self.bias = nn.Parameter(torch.empty(members * out_width)) if bias else None
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
        out = mix(rows, self.weight)
        return out if self.bias is None else out + self.bias
