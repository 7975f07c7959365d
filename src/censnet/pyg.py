"""CensNet as a layer of PyTorch Geometric, with its argument names and conventions."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.modules.lazy import LazyModuleMixin
from torch.utils.weak import WeakIdKeyDictionary
from torch_geometric.nn import MessagePassing
from torch_geometric.nn.resolver import activation_resolver

from censnet.nn.directed import layer_type
from censnet.nn.kernels import Kernel
from censnet.nn.layers import Gate, IncidenceLayer, LayerOptions, SelfWeight, Side, Variant
from censnet.nn.lazy import LAZY_LAYERS
from censnet.ops.checks import check_numbering, check_shape
from censnet.ops.incidence import Incidence
from censnet.ops.normalization import Normalization

UPDATES = {"node": "N", "edge": "E", "both": "NE"}  # letters of `LAYERS`


@dataclass(frozen=True)
class Undirected:
    """The edges of an `edge_index`, each once.

    Args:
        ends: the two nodes of each edge; edges in the order of their i < j copies, loops after them.
        edge: for each column of `edge_index`, the edge that it is a copy of.
        copies: for each edge, the columns of its two copies; a loop has one, given twice.
    """

    ends: Tensor
    edge: Tensor
    copies: Tensor


def each_edge_once(edge_index: Tensor, num_nodes: int) -> Undirected:
    """Find the two copies of each undirected edge: the k-th i -> j and the k-th j -> i are one edge.

    Example:
        >>> each_edge_once(torch.tensor([[0, 1, 2, 1, 2], [1, 0, 1, 2, 2]]), 3).ends.tolist()
        [[0, 1, 2], [1, 2, 2]]
    """
    check_shape("edge_index", edge_index, (2, None), "(2, num_edges)")
    check_numbering("edge_index", edge_index, num_nodes, "node")
    source, target = edge_index
    up, down, loop = ((mask).nonzero().squeeze(1) for mask in (source < target, source > target, source == target))
    up_key, down_key = source[up] * num_nodes + target[up], target[down] * num_nodes + source[down]
    up_order, down_order = torch.argsort(up_key, stable=True), torch.argsort(down_key, stable=True)
    if len(up) != len(down) or not torch.equal(up_key[up_order], down_key[down_order]):
        raise ValueError(_without_reverse(edge_index, up, down, up_key, down_key))
    reverse = torch.empty_like(down)
    reverse[up_order] = down[down_order]
    edge = torch.empty_like(source)
    edge[up] = edge[reverse] = torch.arange(len(up), device=edge.device)
    edge[loop] = torch.arange(len(up), len(up) + len(loop), device=edge.device)
    copies = torch.cat([torch.stack([up, reverse]), torch.stack([loop, loop])], dim=1)
    return Undirected(edge_index[:, copies[0]], edge, copies)


def _without_reverse(edge_index: Tensor, up: Tensor, down: Tensor, up_key: Tensor, down_key: Tensor) -> str:
    lone = torch.cat([up[~torch.isin(up_key, down_key)], down[~torch.isin(down_key, up_key)]])
    where = (
        f"edge {tuple(edge_index[:, int(lone.min())].tolist())} has no reverse" if len(lone) else "copies are missing"
    )
    return (
        f"edge_index has {len(up)} edges i -> j with i < j and {len(down)} with i > j ({where}), expected each "
        "undirected edge in both directions: call torch_geometric.utils.to_undirected(edge_index, edge_attr)"
    )


@dataclass(frozen=True)
class _Converted:
    """The cached conversion of an `edge_index`, valid until it is changed in place."""

    version: int
    num_nodes: int
    batch: weakref.ref[Tensor] | None
    undirected: Undirected | None
    incidence: Incidence


_cache: dict[bool, WeakIdKeyDictionary] = {True: WeakIdKeyDictionary(), False: WeakIdKeyDictionary()}


def _converted(edge_index: Tensor, num_nodes: int, batch: Tensor | None, directed: bool) -> _Converted:
    """The incidence, and `each_edge_once` unless directed, once for all layers that see the same `edge_index`."""
    found: _Converted | None = _cache[directed].get(edge_index)  # type: ignore[no-untyped-call]
    if (
        found is None
        or (found.version, found.num_nodes) != (edge_index._version, num_nodes)
        or (found.batch and found.batch()) is not batch
    ):
        check_shape("edge_index", edge_index, (2, None), "(2, num_edges)")
        check_numbering("edge_index", edge_index, num_nodes, "node")
        undirected = None if directed else each_edge_once(edge_index, num_nodes)
        graphs = 1 if batch is None or len(batch) == 0 else int(batch.max()) + 1
        # a copy, since the cache would otherwise keep its own key alive
        ends = edge_index.clone() if undirected is None else undirected.ends
        incidence = Incidence(ends, num_nodes, batch, graphs)
        of = None if batch is None else weakref.ref(batch)
        found = _Converted(edge_index._version, num_nodes, of, undirected, incidence)
        _cache[directed][edge_index] = found
    return found


class CensNetConv(MessagePassing):  # type: ignore[misc]
    r"""Update the nodes, the edges, or first the nodes and then the edges that read them: one combo of the paper.

    Inputs and outputs are as in PyTorch Geometric: an undirected edge is in `edge_index` twice, once in each direction,
    and so are its attributes. Where the two copies differ, their mean is taken; both get the result. With
    ``directed=True`` every column of `edge_index` is an edge of its own, from its source to its target, and needs no
    reverse; the layers are those of `censnet.nn.directed`.

    Args:
        in_channels: size of each node, or -1 to infer it in the first call.
        out_channels: size of each updated node.
        edge_dim: size of each edge, or -1 to infer it in the first call.
        edge_out_channels: size of each updated edge; as `out_channels` if left out.
        update: "node", "edge", or "both".
        act: activation of the updated features, by PyG's names; none if left out.
        bias, self_weight, heads, gate, normalization, kernel, variant: as in `LayerOptions`.
        directed: whether the direction of edges means something.
        edge_content: whether nodes also read the mean of the features of their edges.
        pair_means: whether directed edges also read the means over parallel and over reciprocal edges.
        **kwargs: of `torch_geometric.nn.MessagePassing`.

    Shapes:
        - **input:** x :math:`(|V|, F_{in})`, edge_index :math:`(2, |E|)`, edge_attr :math:`(|E|, D_{in})`
        - **output:** x :math:`(|V|, F_{out})`, edge_attr :math:`(|E|, D_{out})`

    Example:
        >>> edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> conv = CensNetConv(-1, 8, act="relu")
        >>> x, edge_attr = conv(torch.randn(3, 4), edge_index, torch.ones(4, 2))
        >>> x.shape, edge_attr.shape, conv
        (torch.Size([3, 8]), torch.Size([4, 8]), CensNetConv(4, 8, edge_dim=2))

        >>> payments = torch.tensor([[0, 0, 1], [1, 1, 2]])  # two from 0 to 1, one from 1 to 2
        >>> conv = CensNetConv(-1, 8, directed=True, edge_content=True, pair_means=True)
        >>> x, edge_attr = conv(torch.randn(3, 4), payments, torch.randn(3, 2))
        >>> x.shape, edge_attr.shape, conv
        (torch.Size([3, 8]), torch.Size([3, 8]), CensNetConv(4, 8, edge_dim=2, directed=True))
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        edge_dim: int = -1,
        edge_out_channels: int | None = None,
        update: Literal["node", "edge", "both"] = "both",
        act: str | None = None,
        bias: bool = True,
        self_weight: SelfWeight | None = None,
        heads: int = 1,
        gate: Gate = "linear",
        normalization: Normalization | None = None,
        kernel: str | Kernel = "hop",
        variant: Variant = "paper",
        directed: bool = False,
        edge_content: bool = False,
        pair_means: bool = False,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("aggr", "add")
        super().__init__(**kwargs)
        if update not in UPDATES:
            raise ValueError(f"update is {update!r}, expected 'node', 'edge' or 'both'")
        if pair_means and not directed:
            raise ValueError("pair_means is set without directed, expected both: undirected edges have no such means")
        self.out_channels, self.directed = out_channels, directed
        self.edge_out_channels = out_channels if edge_out_channels is None else edge_out_channels
        self.act: Callable[[Tensor], Tensor] = nn.Identity() if act is None else activation_resolver(act)
        options = LayerOptions(
            bias, self_weight, heads, gate, normalization, kernel, variant,
            directed=directed, edge_content=edge_content, pair_means=pair_means,
        )  # fmt: skip
        widths: dict[Side, int] = {"node": in_channels, "edge": edge_dim}
        out: dict[Side, int] = {"node": out_channels, "edge": self.edge_out_channels}
        self.node_layer: IncidenceLayer | None = None
        self.edge_layer: IncidenceLayer | None = None
        for layer in (layer_type(letter, directed) for letter in UPDATES[update]):
            side, known = layer.updates, min(widths.values()) > 0
            made = (layer if known else LAZY_LAYERS[layer])(widths["node"], widths["edge"], out[side], options=options)
            setattr(self, f"{side}_layer", made)
            widths[side] = out[side]

    @property
    def in_channels(self) -> int:
        """Size of each node; -1 before the first call if it was not given."""
        if self.node_layer is not None:
            return self.node_layer.in_width
        return -1 if self.edge_layer is None else self.edge_layer.read_width

    @property
    def edge_dim(self) -> int:
        """Size of each edge; -1 before the first call if it was not given."""
        if self.node_layer is not None:
            return self.node_layer.read_width
        return -1 if self.edge_layer is None else self.edge_layer.in_width

    def __repr__(self) -> str:
        directed = ", directed=True" if self.directed else ""
        return f"{type(self).__name__}({self.in_channels}, {self.out_channels}, edge_dim={self.edge_dim}{directed})"

    def reset_parameters(self) -> None:
        """Initialize all parameters."""
        super().reset_parameters()
        for layer in (self.node_layer, self.edge_layer):
            if layer is not None and not isinstance(layer, LazyModuleMixin):
                layer.reset_parameters()

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_attr: Tensor, batch: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The nodes and the edges, updated; `batch` is only needed by kernels that read whole graphs (Lanczos)."""
        if edge_attr.dim() == 1:
            edge_attr = edge_attr.unsqueeze(1)
        check_shape("edge_attr", edge_attr, (edge_index.shape[1], None), "(num_edges, edge_dim), as edge_index")
        known = _converted(edge_index, x.shape[0], batch, self.directed)
        undirected, incidence = known.undirected, known.incidence
        edges = self._of_both_copies(edge_attr, undirected)
        scale = self._edge_scale(undirected)
        if self.node_layer is not None:
            x = self.act(self.node_layer(x, edges, incidence, scale))
        if self.edge_layer is not None:
            edges = edges if scale is None else edges * scale.unsqueeze(1)
            edge_attr = self.act(self.edge_layer(x, edges, incidence))
            edge_attr = edge_attr if undirected is None else edge_attr[undirected.edge]
        return x, edge_attr

    @staticmethod
    def _of_both_copies(per_copy: Tensor, undirected: Undirected | None) -> Tensor:
        if undirected is None:
            return per_copy
        first, second = undirected.copies
        return (per_copy[first] + per_copy[second]) / 2

    def _edge_scale(self, undirected: Undirected | None) -> Tensor | None:
        """The edge mask of `torch_geometric.explain`, which it sets on every MessagePassing module."""
        if not self.explain or self._edge_mask is None:
            return None
        mask = self._edge_mask.sigmoid() if self._apply_sigmoid else self._edge_mask
        return self._of_both_copies(mask, undirected)
