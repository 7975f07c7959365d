"""The model: an encoder of nodes and edges, a head for each level to predict, and a decoder for links."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, cast

import torch
from torch import Tensor, nn

from censnet.levels import COLUMN_LEVELS
from censnet.nn.carried import ChunkInput
from censnet.nn.causal_encoder import CausalEncoder
from censnet.nn.chunked import HeadOutputs
from censnet.nn.decoder import LinkDecoder, LinkInputs
from censnet.nn.dropout import Dropout
from censnet.nn.encoder import receptive_field
from censnet.nn.heads import Head
from censnet.nn.layers import Side
from censnet.nn.oriented_head import even_channels
from censnet.ops.graph import Graph
from censnet.ops.sparse import map_values


class Encoder(Protocol):
    """A torch module: (nodes, edges, incidence) -> embedded nodes and edges. `CensNet` is one.

    As a stack of M members (`censnet.nn.ensemble`), a side that it updates has M times as many channels. Its layers are
    in `layers`, so that `training.weight_decay_by_name` finds the first as `encoder.layers.0`.
    """

    recompute: bool  # whether the backward pass computes each layer again: see `censnet.nn.recompute`

    @property
    def layers(self) -> Any: ...

    @property
    def layer_order(self) -> str:
        """The sides that it updates by message passing, in order: letters of `LAYERS`."""

    @property
    def steps(self) -> int:
        """The hops of each letter."""

    @property
    def variant(self) -> str:
        """ "released" where an edge layer also reads the largest entry of a column; else "paper"."""

    @property
    def out_node_width(self) -> int:
        """Channels of each embedded node, of one member."""

    @property
    def out_edge_width(self) -> int:
        """Channels of each embedded edge, of one member."""

    def reset_parameters(self) -> None:
        """Initialize all parameters."""

    def __call__(self, *args: Any, **kwds: Any) -> Any: ...


class Outputs(NamedTuple):
    """The outputs of a model.

    Args:
        by_level: for each level, (n, members * out_width), or `ChunkedOutputs` where that is too large for one tensor.
        link_inputs: the tensors that the decoder scores pairs from; None without a decoder.
        unclipped: for each level whose outputs were clipped to the range of training labels, the outputs before that.
        watched: for each level whose embeddings are watched in inference, a row of numbers made of each.
    """

    by_level: Mapping[str, HeadOutputs]
    link_inputs: LinkInputs | None = None
    unclipped: Mapping[str, HeadOutputs] = MappingProxyType({})
    watched: Mapping[str, Tensor] = MappingProxyType({})


class Model(nn.Module):
    r"""An encoder with a head for each level, and a decoder for links.

    .. math::
        (H_v, H_e) = \mathrm{encoder}(G), \qquad
        \hat y_\ell = \mathrm{head}_\ell(H_v, H_e, G), \qquad
        s_{ij} = \mathrm{decoder}(H_v, H_e, G)_{ij}

    Args:
        encoder: (nodes, edges, incidence) -> embedded nodes and edges, such as `CensNet`.
        heads: level ("node", "edge" or "graph") -> a `Head`: (nodes, edges, graph) -> outputs.
        decoder: (nodes, edges, graph) -> the inputs of link scores, such as `PairDecoder` or `VariationalDecoder`.
        feature_dropout: share of the entries of sparse node features, such as words, that a training step drops.
        ego_marks: whether a node is predicted in its ego graph (`censnet.ops.ego`), where it is marked by one more
            feature: the last, which the encoder reads and the whole graph does not have.
        ego_hops: hops of ego graphs; the receptive field if None.

    Shape:
        graph -> `Outputs`.

    Example:
        >>> from censnet.nn import CensNet, Model, PairDecoder, RowHead
        >>> graph = Graph(torch.randn(3, 4), torch.randn(2, 1), ends=torch.tensor([[0, 1], [1, 2]]))
        >>> encoder = CensNet(node_width=4, edge_width=1, hidden=8, layers="NEN")
        >>> heads = {"node": RowHead("node", 8, 8, out_width=3), "edge": RowHead("edge", 8, 8, out_width=1)}
        >>> model = Model(encoder, heads, decoder=PairDecoder(8, 8))
        >>> outputs = model(graph)
        >>> outputs.by_level["node"].shape, outputs.by_level["edge"].shape
        (torch.Size([3, 3]), torch.Size([2, 1]))
        >>> model.decoder.score(outputs.link_inputs, torch.tensor([[0], [2]])).shape
        torch.Size([1])
    """

    members = 1

    def __init__(
        self,
        encoder: Encoder,
        heads: Mapping[str, Head],
        decoder: LinkDecoder | None = None,
        feature_dropout: float = 0.0,
        ego_marks: bool = False,
        ego_hops: int | None = None,
    ) -> None:
        super().__init__()
        for level, head in heads.items():
            if level not in COLUMN_LEVELS:
                raise ValueError(f"heads has {level!r}, expected levels: {', '.join(COLUMN_LEVELS)}")
            if head.level not in (None, level):
                raise ValueError(f"heads has a head of level {head.level!r} for {level!r}, expected one of that level")
        self.feature_dropout = Dropout(feature_dropout)
        self.encoder = encoder
        self.heads = nn.ModuleDict(heads)
        self.decoder = decoder
        self.ego_hops = (ego_hops or self.receptive_field) if ego_marks else 0

    @property
    def samples_pairs(self) -> bool:
        """Whether a training step has to draw positive and negative pairs of nodes."""
        return self.decoder is not None and self.decoder.samples_pairs

    @property
    def receptive_field(self) -> int:
        """The number of hops around a node or edge that its outputs depend on."""
        encoder, level = self.encoder, next(iter(self.heads), "node")
        layers = encoder.layer_order + (cast(Head, self.heads[level]).layer_order if level in self.heads else "")
        sides: list[Side] = ["edge"] if level == "edge" else ["node"]
        if level == "edge" and getattr(self.heads[level], "reads_nodes", False):
            sides.append("node")  # both ends of an edge
        released = encoder.variant == "released"
        return max(1, *(receptive_field(layers, side, encoder.steps, released) for side in sides))

    def reset_parameters(self) -> None:
        """Initialize all parameters."""
        for part in (self.encoder, *self.heads.values(), self.decoder):
            if part is not None:
                part.reset_parameters()  # type: ignore[operator]

    def forward(self, graph: Graph, chunk: ChunkInput | None = None) -> Outputs:
        """Embed the graph, and apply the heads and the decoder; with a causal encoder also of a chunk of its edges."""
        if chunk is not None:
            edges: Tensor = cast(CausalEncoder, self.encoder).forward_chunk(chunk)
            return self.apply_heads(edges[:0], edges, graph)
        return self.apply_heads(*self.embed(graph), graph)

    def embed(self, graph: Graph) -> tuple[Tensor, Tensor]:
        """The embeddings of nodes and edges."""
        nodes = graph.nodes
        if self.training and self.feature_dropout.p and nodes.layout == torch.sparse_csr:
            nodes = map_values(nodes, self.feature_dropout)
        inputs: tuple[Any, ...] = (nodes, graph.edges, graph.incidence)
        if getattr(self.encoder, "reads_times", False):
            if graph.times is None:
                raise ValueError("times of the graph is None, expected the time of each edge: the encoder is causal")
            inputs = (*inputs, graph.times)
        embedded: tuple[Tensor, Tensor] = self.encoder(*inputs)
        return embedded

    def even_edges(self, edges: Tensor) -> Tensor:
        """Embedded edges as they are, but odd channels, which change sign with the order of the ends, by their size."""
        odd_width: int = getattr(self.encoder, "out_odd_width", 0)
        return even_channels(edges, odd_width, self.members) if odd_width else edges

    def apply_heads(self, nodes: Tensor, edges: Tensor, graph: Graph) -> Outputs:
        """The outputs of all heads and of the decoder, from embeddings. Outside of training they are clipped."""
        outputs, unclipped = dict[str, HeadOutputs](), dict[str, HeadOutputs]()
        even = self.even_edges(edges)
        for level, head in self.heads.items():
            found: HeadOutputs = head(nodes, edges if cast(Head, head).reads_odd else even, graph)
            outputs[level] = found if self.training else cast(Head, head).clip(found)
            if outputs[level] is not found:
                unclipped[level] = found
        return Outputs(outputs, None if self.decoder is None else self.decoder(nodes, edges, graph), unclipped)
