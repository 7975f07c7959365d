"""Prediction heads: from embedded nodes and edges to outputs for each node, edge or graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast, get_args

import torch
from torch import Tensor, nn

from censnet.nn.chunked import ChunkedOutputs, HeadOutputs, is_too_large
from censnet.nn.directed import layer_type
from censnet.nn.ensemble import check_rows
from censnet.nn.layers import LAYERS, LayerOptions, Side
from censnet.nn.mlp import mlp
from censnet.nn.norms import BatchNorm, LayerNorm, Norm
from censnet.nn.pooling import POOLED_SIDES, Pool, PoolFrom, Readout
from censnet.ops.checks import check_shape
from censnet.ops.graph import Graph
from censnet.ops.normalization import by_head


class Head(nn.Module):
    """The interface of heads: ``forward(nodes, edges, graph)``, from embeddings to outputs of one level.

    Args:
        out_width: channels of the outputs.
        target_range: the least and the greatest value of each output, (2, out_width). Outside of training, `Model`
            clips the outputs to it; while training they stay, so that gradients pass.

    Shape:
        nodes (N, node_width), edges (E, edge_width) -> (nodes, edges or graphs, out_width).

    Example:
        >>> class Bilinear(Head):
        ...     '''y_ij = x_i^t W x_j + x_j^t W x_i for each edge i-j.'''
        ...
        ...     def __init__(self, node_width: int) -> None:
        ...         super().__init__(out_width=1)
        ...         self.bilinear = nn.Bilinear(node_width, node_width, 1)
        ...
        ...     def forward(self, nodes, edges, graph):
        ...         first, second = nodes[graph.ends]
        ...         return self.bilinear(first, second) + self.bilinear(second, first)
        >>> path = Graph(torch.ones(3, 4), torch.ones(2, 1), torch.tensor([[0, 1], [1, 2]]))
        >>> Bilinear(4)(path.nodes, path.edges, path).shape
        torch.Size([2, 1])
    """

    members = 1
    level: str | None = None  # of the outputs: "node", "edge" or "graph"; None where the class does not say
    reads_odd = False  # whether it reads odd channels of edges; a head that does not gets even functions of these
    layer_order = ""  # letters of the graph layers inside the head, which widen the receptive field

    def __init__(self, out_width: int, target_range: Tensor | None = None) -> None:
        super().__init__()
        if target_range is not None:
            check_shape("target_range", target_range, (2, out_width), "(2, out_width): the least and greatest values")
        self.out_width, self.target_range = out_width, target_range

    def reset_parameters(self) -> None:
        """Initialize all parameters."""
        for part in self.modules():
            if isinstance(part, nn.Linear | BatchNorm | LayerNorm):
                part.reset_parameters()

    def clip(self, outputs: HeadOutputs) -> HeadOutputs:
        """The outputs, no further out than `target_range`."""
        if self.target_range is None:
            return outputs
        if isinstance(outputs, ChunkedOutputs):
            return replace(outputs, finish=self._clip)
        return self._clip(outputs)

    def _clip(self, outputs: Tensor) -> Tensor:
        low, high = cast(Tensor, self.target_range).to(outputs).unbind(0)
        return by_head(outputs, self.members).clamp(low, high).flatten(1)


class RowHead(Head):
    """Predict for each node, or each edge, from its embedding by an MLP.

    Args:
        level: "node" or "edge".
        node_width, edge_width: channels of the embeddings.
        out_width: channels of the outputs.
        hidden_widths: widths of the layers between embedding and output.
        dropout: between those.
        reads_nodes: whether the output for an edge also reads its two nodes: their sum, T^t x.
        target_range: as in `Head`.
        directed: whether it reads the two nodes apart, first that where the edge starts.

    Shape:
        nodes (N, node_width), edges (E, edge_width) -> (N or E, out_width). `ChunkedOutputs` if that is too large.

    Example:
        >>> path = Graph(torch.ones(3, 4), torch.ones(2, 2), torch.tensor([[0, 1], [1, 2]]))
        >>> head = RowHead("edge", node_width=4, edge_width=2, out_width=1, reads_nodes=True)
        >>> head(path.nodes, path.edges, path).shape
        torch.Size([2, 1])
    """

    def __init__(
        self,
        level: Side,
        node_width: int,
        edge_width: int,
        out_width: int,
        hidden_widths: Sequence[int] = (),
        dropout: float = 0.0,
        reads_nodes: bool = False,
        target_range: Tensor | None = None,
        directed: bool = False,
    ) -> None:
        super().__init__(out_width, target_range)
        if level not in get_args(Side):
            raise ValueError(f"level is {level!r}, expected 'node' or 'edge'")
        if reads_nodes and level == "node":
            raise ValueError("reads_nodes is set for nodes, expected it for edges alone: a node has no ends")
        if directed and not reads_nodes:
            raise ValueError("directed is set without reads_nodes, expected both: it is about the nodes of an edge")
        self.level, self.reads_nodes, self.directed = level, reads_nodes, directed
        self.node_width, self.edge_width = node_width, edge_width
        self.width = node_width if level == "node" else edge_width + (reads_nodes + directed) * node_width
        self.mlp = mlp(self.width, hidden_widths, out_width, dropout)

    def forward(self, nodes: Tensor, edges: Tensor, graph: Graph) -> HeadOutputs:
        """Compute the outputs."""
        inputs = nodes if self.level == "node" else edges
        if self.reads_nodes:
            check_dense(nodes)
            incidence = graph.incidence
            read = (incidence.gather_start, incidence.gather_end) if self.directed else (incidence.gather,)
            ends = [self._by_member(gather(nodes), self.node_width) for gather in read]
            inputs = torch.cat([self._by_member(edges, self.edge_width), *ends], dim=2).flatten(1)
        check_rows(f"{self.level}s", inputs, None, self.width, self.members, "(n, width)")
        if is_too_large(len(inputs), self.members * self.out_width):
            return ChunkedOutputs(inputs, self.mlp, self.members * self.out_width, training=self.training)
        outputs: Tensor = self.mlp(inputs)
        return outputs

    def _by_member(self, rows: Tensor, width: int) -> Tensor:
        """(n, members, width); features that no layer updated are shared by all members."""
        check_rows("rows", rows, None, width, self.members, "(n, width)")
        own = rows.unsqueeze(1) if rows.shape[1] == width else rows.reshape(len(rows), self.members, width)
        return own.expand(-1, self.members, -1)


class LayerHead(Head):
    """A last layer of the encoder that gives the outputs itself, as in the paper.

    Args:
        letter: of `LAYERS`; the side that the layer updates is the level of the head.
        node_width, edge_width: channels of the embeddings.
        out_width: channels of the outputs.
        options: of the layer, which has one gate for all outputs.
        target_range: as in `Head`.

    Shape:
        nodes (N, node_width), edges (E, edge_width) -> (N or E, out_width).
    """

    def __init__(
        self,
        letter: str,
        node_width: int,
        edge_width: int,
        out_width: int,
        options: LayerOptions,
        target_range: Tensor | None = None,
    ) -> None:
        super().__init__(out_width, target_range)
        self.layer_order, self.level = letter, LAYERS[letter].updates
        kind = layer_type(letter, options.directed)
        self.layer = kind(node_width, edge_width, out_width, options=replace(options, heads=1))

    def reset_parameters(self) -> None:
        """Initialize all parameters."""
        self.layer.reset_parameters()

    def forward(self, nodes: Tensor, edges: Tensor, graph: Graph) -> Tensor:
        """Compute the outputs."""
        outputs: Tensor = self.layer(nodes, edges, graph.incidence)
        return outputs


class GraphHead(Head):
    """Predict for each graph from its pooled nodes, edges or both by an MLP.

    Args:
        node_width, edge_width: channels of the embeddings.
        out_width: channels of the outputs.
        pool: "mean" (the paper), "sum", "attention", or several, whose vectors are concatenated.
        pool_from: "nodes" (the paper), "edges" or "both".
        hidden_widths: widths of the layers between the pooled vector and the output.
        dropout: between those.
        norm: of pooled means, "batch", "layer" or None; it removes the part that all graphs have in common.
        graph_width: channels of the graphs' own features, which are concatenated to the pooled vector.
        target_range: as in `Head`.

    Shape:
        nodes (N, node_width), edges (E, edge_width) -> (graphs, out_width).

    Example:
        >>> head = GraphHead(4, 2, 1, pool=("mean", "sum"), pool_from="both")
        >>> two = Graph(torch.ones(3, 4), torch.ones(1, 2), torch.tensor([[0], [1]]), torch.tensor([0, 0, 1]), 2)
        >>> head(two.nodes, two.edges, two).shape
        torch.Size([2, 1])
    """

    level = "graph"

    def __init__(
        self,
        node_width: int,
        edge_width: int,
        out_width: int,
        pool: Pool | Sequence[Pool] = "mean",
        pool_from: PoolFrom = "nodes",
        hidden_widths: Sequence[int] = (),
        dropout: float = 0.0,
        norm: Norm | None = None,
        graph_width: int = 0,
        target_range: Tensor | None = None,
    ) -> None:
        super().__init__(out_width, target_range)
        if pool_from not in POOLED_SIDES:
            raise ValueError(f"pool_from is {pool_from!r}, expected 'nodes', 'edges' or 'both'")
        pools: tuple[Pool, ...] = (pool,) if isinstance(pool, str) else tuple(pool)
        if not pools:
            raise ValueError("pool is empty, expected 'mean', 'sum', 'attention' or several of them")
        self.widths: dict[Side, int] = {"node": node_width, "edge": edge_width}
        self.readouts = nn.ModuleList(
            Readout(self.widths[side], how, side, norm) for side in POOLED_SIDES[pool_from] for how in pools
        )
        self.graph_width = graph_width
        width = len(pools) * sum(self.widths[side] for side in POOLED_SIDES[pool_from])
        self.mlp = mlp(width + graph_width, hidden_widths, out_width, dropout)

    def forward(self, nodes: Tensor, edges: Tensor, graph: Graph) -> Tensor:
        """Compute the outputs."""
        vector = self.embed(nodes, edges, graph)
        if self.graph_width:
            if graph.graph_features is None:
                raise ValueError(
                    f"graph_features is None, expected {self.graph_width} features of each graph: (G, graph_width)"
                )
            own = graph.graph_features
            check_shape("graph_features", own, (len(vector), self.graph_width), "(G, graph_width)")
            vector = self._concatenate([vector, own.to(vector.dtype).repeat(1, self.members)])
        outputs: Tensor = self.mlp(vector)
        return outputs

    def set_reference_size(self, nodes: float, edges: float) -> None:
        """Set the number of nodes and edges of an average graph, by which sums are divided."""
        for readout in cast(Sequence[Readout], self.readouts):
            if readout.reference_size is not None:
                readout.reference_size.fill_(max(1.0, nodes if readout.side == "node" else edges))

    def embed(self, nodes: Tensor, edges: Tensor, graph: Graph) -> Tensor:
        """The pooled vector of each graph, without the graphs' own features."""
        check_dense(nodes)
        rows: dict[Side, Tensor] = {"node": nodes, "edge": edges}
        check_rows("nodes", nodes, graph.num_nodes, self.widths["node"], self.members, "(N, node_width)")
        check_rows("edges", edges, graph.num_edges, self.widths["edge"], self.members, "(E, edge_width)")
        shared = {side for side in rows if rows[side].shape[1] < self.members * self.widths[side]}  # not updated
        rows |= {side: rows[side].repeat(1, self.members) for side in shared}
        readouts = cast(Sequence[Readout], self.readouts)
        return self._concatenate([readout(rows[readout.side], graph.incidence) for readout in readouts])

    def _concatenate(self, vectors: Sequence[Tensor]) -> Tensor:
        """Vectors of each graph as one, within each member."""
        return torch.cat([by_head(vector, self.members) for vector in vectors], dim=2).flatten(1)


def check_dense(nodes: Tensor) -> None:
    """Raise for sparse input features that no layer has updated: they cannot be summed in that form."""
    if nodes.layout != torch.strided:
        raise ValueError("nodes is sparse, expected dense: let a node layer (N) come before")
