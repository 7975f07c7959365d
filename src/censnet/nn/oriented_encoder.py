"""The encoder of oriented graphs: node and edge layers of `censnet.nn.oriented` in any order."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn

from censnet.nn.encoder import LayeredEncoder, PreLayer
from censnet.nn.layers import Gate
from censnet.nn.log_features import LogFeatures
from censnet.nn.norms import Norm, make_norm
from censnet.nn.oriented import EdgeUpdate, OrientedEdgeLayer, OrientedNodeLayer, make_odd_norm
from censnet.nn.potentials import PotentialLayer
from censnet.ops.incidence import Incidence
from censnet.ops.normalization import by_head, scale_rows

POTENTIALS_EVERY = 4  # layers from one layer of potentials to the next


class OrientedNet(LayeredEncoder):
    r"""Embed the nodes and the edges of a graph whose edges have their ends in an arbitrary order.

    The features of an edge are even ones and, last, odd ones, which change sign where its ends are exchanged; so are
    its embedding's channels, [even | odd]. Exchanging the ends of any edges flips exactly their odd channels, and moves
    nothing else: to the bit, since each edge is taken from its lower to its higher node, and what is odd is given the
    sign of the order that it came in. Odd channels of a loop are 0.

    After a layer, nodes and even channels are normalized, activated and passed through dropout; odd channels are
    normalized without centering, become tanh(odd) times their gate, and pass through dropout. Where the widths agree
    and `residual` is set, the input is added.

    Args:
        node_width, edge_width: channels of each node and edge that come in.
        odd_width: how many of those of an edge, the last ones, are odd.
        hidden: channels that each layer gives: of nodes, of even and of odd channels of edges.
        layers: the sequence of node (N) and edge (E) layers.
        dropout: probability of a channel to be dropped after each layer.
        norm: "batch", "layer" or None.
        residual: whether to add the input of a layer, where the widths agree; "rezero" scales what is added to it by a
            learned gain, which starts at 0 (ReZero), so that a deep network starts as a shallow one.
        activation: of nodes and even channels.
        pre_layers: linear layers of the nodes before the first graph layer.
        edge_pre_layer: whether edges pass such a layer too, with their two nodes: their sum, and their difference.
        heads, gate, bias: as in `OrientedLayer`.
        potentials: channels of `PotentialLayer`, one of which stands before the first layer and before every fourth
            from there on; 0: none. Odd channels are then relative to the size of the flows in their graph, by which
            they are multiplied at the end.
        log_features: whether even features of edges are also there on a scale of decades (`LogFeatures`).

    Shape:
        nodes (N, node_width), edges (E, edge_width) -> nodes (N, out_node_width), edges (E, out_edge_width).

    Example:
        >>> path = Incidence(torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
        >>> flipped = Incidence(torch.tensor([[1, 1], [0, 2]]), num_nodes=3)
        >>> model = OrientedNet(node_width=4, edge_width=2, odd_width=1, hidden=8, layers="NEN")
        >>> nodes, edges = torch.randn(3, 4), torch.tensor([[0.5, 2.0], [0.1, 3.0]])
        >>> other = torch.tensor([[0.5, -2.0], [0.1, 3.0]])
        >>> (one, a), (two, b) = model(nodes, edges, path), model(nodes, other, flipped)
        >>> torch.equal(one, two), torch.equal(a[:, :8], b[:, :8]), torch.equal(a[0, 8:], -b[0, 8:])
        (True, True, True)
    """

    steps, variant = 1, "paper"

    def __init__(
        self,
        node_width: int,
        edge_width: int,
        odd_width: int = 0,
        *,
        norm: Norm | None = None,
        edge_pre_layer: bool = False,
        heads: int = 1,
        gate: Gate = "linear",
        bias: bool = True,
        potentials: int = 0,
        log_features: bool = False,
        **keywords: Any,
    ) -> None:
        super().__init__(node_width, norm=norm, **keywords)
        hidden, layers = self.hidden, self.layer_order
        if not 0 <= odd_width <= edge_width:
            raise ValueError(
                f"odd_width is {odd_width}, expected 0 to {edge_width}: the last features of edges are odd"
            )
        self.in_odd_width = odd_width
        even_width = edge_width - odd_width
        self.log_features = LogFeatures(even_width) if log_features else None
        even_width *= 2 if log_features else 1
        widths = {"node": hidden if self.pre_layers else node_width, "even": even_width, "odd": odd_width}
        self.edge_pre_layers: nn.ModuleDict | None = None
        if edge_pre_layer:
            inputs = {"even": widths["even"], "ends": widths["node"], "odd": odd_width, "difference": widths["node"]}
            self.edge_pre_layers = nn.ModuleDict(
                {name: PreLayer(width, hidden, bias=name == "even") for name, width in inputs.items()}
            )
            widths |= {"even": hidden, "odd": hidden}
        self.layers, self.norms, self.odd_norms = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        self.potential_layers = nn.ModuleList()
        self.adds: list[tuple[bool, bool]] = []  # of nodes or even channels, and of odd ones
        for depth, letter in enumerate(layers):
            if potentials and depth % POTENTIALS_EVERY == 0:
                features = node_width, even_width
                self.potential_layers.append(
                    PotentialLayer(dict(widths), features, potentials, norm, measures=depth == 0)
                )
            kind = OrientedNodeLayer if letter == "N" else OrientedEdgeLayer
            self.layers.append(kind(dict(widths), hidden, heads, gate, bias))
            self.norms.append(make_norm(norm, hidden))
            self.odd_norms.append(make_odd_norm(norm if letter == "E" else None, hidden))
            side = "node" if letter == "N" else "even"
            odd_fits = letter == "E" and widths["odd"] == hidden
            self.adds.append((bool(self.residual) and widths[side] == hidden, bool(self.residual) and odd_fits))
            widths |= {"node": hidden} if letter == "N" else {"even": hidden, "odd": hidden}
        self.make_gains(sum(map(sum, self.adds)))
        self.out_node_width, self.out_odd_width = widths["node"], widths["odd"]
        self.out_edge_width = widths["even"] + widths["odd"]

    def reset_parameters(self) -> None:
        """Initialize all parameters."""
        pre_layers = () if self.edge_pre_layers is None else self.edge_pre_layers.values()
        for module in (
            *self.pre_layers,
            *pre_layers,
            *self.potential_layers,
            *self.layers,
            *self.norms,
            *self.odd_norms,
        ):
            if not isinstance(module, nn.Identity):
                module.reset_parameters()
        if self.rezero_gain is not None:
            nn.init.zeros_(self.rezero_gain)

    def set_statistics(self, edges: Tensor, node_zero: Tensor, edge_zero: Tensor) -> None:
        """Take the statistics of features of edges, and what the number 0 is in each feature; NaN for no number."""
        width = edges.shape[1] - self.in_odd_width
        if self.log_features is not None:
            self.log_features.fit(edges[:, :width], edge_zero[:width])
        for layer in self.potential_layers:
            cast(PotentialLayer, layer).set_zero(node_zero)

    def forward(self, nodes: Tensor, edges: Tensor, incidence: Incidence) -> tuple[Tensor, Tensor]:
        """Embed the nodes and edges."""
        incidence, sign = incidence.canonical
        sign = sign.to(edges.dtype).unsqueeze(1)
        width = edges.shape[1] - self.in_odd_width
        even, odd = edges[:, :width], edges[:, width:]
        odd = odd * (sign if incidence.is_loop is None else sign * ~incidence.is_loop.unsqueeze(1))
        if self.log_features is not None:
            even = self.log_features(even)
        features = nodes, even
        for pre_layer in self.pre_layers:
            nodes = self.finish(pre_layer(nodes))
        if self.edge_pre_layers is not None:
            own, ends, odd_own, difference = self.edge_pre_layers.values()
            even = self.finish(own(even) + incidence.gather(ends(nodes)))
            odd = self.dropout(odd_own(odd) + incidence.difference(difference(nodes)))
        size: Tensor | None = None
        for depth in range(len(self.layers)):
            nodes, even, odd, size = self.call(self._update, depth, nodes, even, odd, size, features, incidence)
        return nodes, self._join(even, scale_rows(odd, size) * sign)

    def _update(
        self,
        depth: int,
        nodes: Tensor,
        even: Tensor,
        odd: Tensor,
        size: Tensor | None,
        features: tuple[Tensor, Tensor],
        incidence: Incidence,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """Nodes, even and odd channels and the size of flows after a layer, and after what stands around it."""
        layer, (adds, adds_odd) = self.layers[depth], self.adds[depth]
        gains = self.gains(sum(map(sum, self.adds[:depth])))
        if self.potential_layers and depth % POTENTIALS_EVERY == 0:
            potentials = self.potential_layers[depth // POTENTIALS_EVERY]
            nodes, odd, size = potentials(nodes, even, odd, features, incidence, size)
        update = layer(nodes, even, odd, incidence)
        if isinstance(layer, OrientedNodeLayer):
            new = self.finish(self.norms[depth](update))
            return (self.add(new, nodes, gains) if adds else new), even, odd, size
        update = cast(EdgeUpdate, update)
        new = self.finish(self.norms[depth](update.even))
        new_odd = self.dropout(torch.tanh(self.odd_norms[depth](update.odd)) * update.gate)
        even = self.add(new, even, gains) if adds else new
        return nodes, even, (self.add(new_odd, odd, gains) if adds_odd else new_odd), size

    def _join(self, even: Tensor, odd: Tensor) -> Tensor:
        """[even | odd], of each member."""
        members = self.members if even.shape[1] + odd.shape[1] > self.out_edge_width else 1
        return torch.cat([by_head(even, members), by_head(odd, members)], dim=2).flatten(1)
