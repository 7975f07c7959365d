"""From embeddings to answers: for rows (nodes or edges), for whole graphs, and for links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast

import torch
from torch import Tensor, nn

from censnet.nn.dropout import Dropout
from censnet.nn.ensemble import check_rows, matrices, mix
from censnet.nn.norms import BatchNorm, LayerNorm, Norm, check_norm, make_norm
from censnet.ops.checks import check_numbering, check_shape
from censnet.ops.incidence import Incidence
from censnet.ops.normalization import by_head

Pool = Literal["mean", "sum", "attention"]
Side = Literal["node", "edge"]


def mlp(width: int, hidden: Sequence[int], out_width: int, dropout: float, members: int = 1) -> nn.Sequential:
    """Linear layers with ReLU and dropout between them; without `hidden`, one linear layer."""
    parts: list[nn.Module] = []
    for size in hidden:
        parts += [_Linear(width, size, members), nn.ReLU(), Dropout(dropout)]
        width = size
    return nn.Sequential(*parts, _Linear(width, out_width, members))


class _Linear(nn.Linear):
    """A linear layer, or one for each member: (M, out, in), and starting as torch's do."""

    def __init__(self, width: int, out_width: int, members: int = 1) -> None:
        super().__init__(width, out_width)
        self.members = members
        if members != 1:
            self.weight = nn.Parameter(matrices(members, out_width, width))
            self.bias = nn.Parameter(torch.empty(members * out_width))
            self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.weight.dim() == 2:
            super().reset_parameters()
        else:
            bound = max(self.in_features, 1) ** -0.5
            nn.init.uniform_(self.weight, -bound, bound)
            nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - torch's name
        return super().forward(input) if self.members == 1 else mix(input, self.weight.transpose(1, 2), self.bias)


class RowHead(nn.Module):
    """An answer for each row, node or edge, from its embedding. (n, width) -> (n, out_width), or M times each."""

    def __init__(
        self, width: int, out_width: int, hidden: Sequence[int] = (), dropout: float = 0.0, members: int = 1
    ) -> None:
        super().__init__()
        self.width, self.members = width, members
        self.mlp = mlp(width, hidden, out_width, dropout, members)

    def reset_parameters(self) -> None:
        """Start afresh."""
        _reset(self.mlp)

    def forward(self, rows: Tensor) -> Tensor:
        """The answers."""
        check_rows("rows", rows, None, self.width, self.members, "(n, width)")
        out: Tensor = self.mlp(rows)
        return out


class Readout(nn.Module):
    """One vector for each graph from the rows of one side: their mean, their sum, or a mean with learnt attention.

    A graph that has no row on this side, such as a molecule without bonds, gets zeros. Then a norm can bring means of
    two channels or more to one scale. A sum keeps the size of the graph, and is divided by `usual`, the rows of a usual
    graph, which is 1 until it is set: else it is far from the scale that a head learns from at once.

    Shape:
        rows (n, width) -> (graphs, width), or M times each.
    """

    def __init__(self, width: int, pool: Pool, side: Side, members: int = 1, norm: Norm | None = None) -> None:
        super().__init__()
        if pool not in ("mean", "sum", "attention"):
            raise ValueError(f"pool is {pool!r}, expected 'mean', 'sum' or 'attention'")
        self.pool, self.side, self.members = pool, side, members
        self.score = _Linear(width, 1, members) if pool == "attention" else None
        check_norm(norm)
        self.norm = None if norm is None or pool == "sum" or width == 1 else make_norm(norm, width, members)
        self.usual: Tensor | None
        self.register_buffer("usual", torch.ones(members) if pool == "sum" else None)  # of the data, of each member

    def extra_repr(self) -> str:
        return f"{self.pool} over {self.side}s"

    def reset_parameters(self) -> None:
        """Start afresh."""
        _reset(self)

    def forward(self, rows: Tensor, incidence: Incidence) -> Tensor:
        """The vectors of the graphs."""
        if self.score is not None:
            share = self._attention(self.score(rows), incidence)
            rows = (by_head(rows, self.members) * share.unsqueeze(2)).flatten(1)
        total = incidence.pool(rows, self.side)
        if self.usual is not None:
            return total / self.usual.repeat_interleave(total.shape[1] // self.members)
        if self.pool == "mean":
            total = total / incidence.count(self.side).clamp(min=1).to(total.dtype).unsqueeze(1)
        return total if self.norm is None else cast(Tensor, self.norm(total))

    def _attention(self, score: Tensor, incidence: Incidence) -> Tensor:
        """Softmax of (n, members) scores within each graph."""
        owner = incidence.owner if self.side == "node" else incidence.edge_owner
        if owner is None:
            return score.softmax(0)
        floor = score.new_full((incidence.num_graphs, self.members), -torch.inf)
        highest = floor.scatter_reduce(0, owner.unsqueeze(1).expand_as(score), score.detach(), "amax")
        raised = (score - highest[owner]).exp()
        return raised / incidence.pool(raised, self.side)[owner]


class GraphHead(nn.Module):
    """An answer for each graph, from its nodes, its edges or both.

    Args:
        node_width: channels of each node's embedding.
        edge_width: channels of each edge's embedding.
        out_width: answers for each graph.
        pool: "mean" (the paper), "sum", "attention", or several, whose vectors stand side by side.
        over: "nodes" (the paper), "edges" or "both".
        hidden: widths of the layers between the pooled vector and the answer.
        dropout: between those.
        norm: what brings means to one scale: what all rows have in common else drowns what they differ by.
        graph_width: channels of what is known of each graph as a whole, which stand beside the pooled vector.
        members: networks side by side; see `members.py`. They share what is known of the graphs.

    Shape:
        nodes (N, node_width), edges (E, edge_width), graphs (graphs, graph_width) -> (graphs, out_width), where all but
        `graphs` may be M times as wide.

    Example:
        >>> head = GraphHead(4, 2, 1, pool=("mean", "sum"), over="both")
        >>> two = Incidence(torch.tensor([[0], [1]]), num_nodes=3, owner=torch.tensor([0, 0, 1]), num_graphs=2)
        >>> head(torch.randn(3, 4), torch.randn(1, 2), two).shape
        torch.Size([2, 1])
    """

    def __init__(
        self,
        node_width: int,
        edge_width: int,
        out_width: int,
        pool: Pool | Sequence[Pool] = "mean",
        over: Literal["nodes", "edges", "both"] = "nodes",
        hidden: Sequence[int] = (),
        dropout: float = 0.0,
        norm: Norm | None = None,
        graph_width: int = 0,
        members: int = 1,
    ) -> None:
        super().__init__()
        sides: dict[str, tuple[Side, ...]] = {"nodes": ("node",), "edges": ("edge",), "both": ("node", "edge")}
        if over not in sides:
            raise ValueError(f"over is {over!r}, expected 'nodes', 'edges' or 'both'")
        pools: tuple[Pool, ...] = (pool,) if isinstance(pool, str) else tuple(pool)
        if not pools:
            raise ValueError("pool is empty, expected 'mean', 'sum', 'attention' or several of them")
        self.widths: dict[Side, int] = {"node": node_width, "edge": edge_width}
        self.sides = [side for side in sides[over] for _ in pools]
        self.readouts = nn.ModuleList(
            Readout(self.widths[side], how, side, members, norm) for side in sides[over] for how in pools
        )
        self.graph_width, self.members = graph_width, members
        width = len(pools) * sum(self.widths[side] for side in sides[over])
        self.mlp = mlp(width + graph_width, hidden, out_width, dropout, members)

    def reset_parameters(self) -> None:
        """Start afresh."""
        _reset(self)

    def forward(self, nodes: Tensor, edges: Tensor, incidence: Incidence, graphs: Tensor | None = None) -> Tensor:
        """The answers."""
        vector = self.embed(nodes, edges, incidence)
        if self.graph_width:
            if graphs is None:
                raise ValueError(
                    f"graphs is None, expected {self.graph_width} features of each graph: (G, graph_width)"
                )
            check_shape("graphs", graphs, (len(vector), self.graph_width), "(G, graph_width)")
            vector = self._beside([vector, graphs.to(vector.dtype).repeat(1, self.members)])
        out: Tensor = self.mlp(vector)
        return out

    def set_reference_size(self, nodes: float, edges: float) -> None:
        """Say how many nodes and edges a usual graph has."""
        for side, readout in zip(self.sides, self.readouts, strict=True):
            usual = cast(Readout, readout).usual
            if usual is not None:
                usual.fill_(max(1.0, nodes if side == "node" else edges))

    def embed(self, nodes: Tensor, edges: Tensor, incidence: Incidence) -> Tensor:
        """The pooled vector of each graph, before the answer."""
        rows: dict[Side, Tensor] = {"node": nodes, "edge": edges}
        check_rows("nodes", nodes, incidence.num_nodes, self.widths["node"], self.members, "(N, node_width)")
        check_rows("edges", edges, incidence.num_edges, self.widths["edge"], self.members, "(E, edge_width)")
        shared = {side for side in rows if rows[side].shape[1] < self.members * self.widths[side]}  # not renewed
        rows |= {side: rows[side].repeat(1, self.members) for side in shared}
        return self._beside([read(rows[side], incidence) for side, read in zip(self.sides, self.readouts, strict=True)])

    def _beside(self, vectors: Sequence[Tensor]) -> Tensor:
        """Vectors of each graph as one, within each member."""
        return torch.cat([by_head(vector, self.members) for vector in vectors], dim=2).flatten(1)


class LinkHead(nn.Module):
    """How likely two nodes are joined, as a logit: the same for i-j and j-i.

    Args:
        width: channels of each node's embedding.
        kind: "inner" is the inner product m_i . m_j of the paper's decoder, without parameters; "product" is a
            perceptron over the channel-wise product.
        hidden: widths of the perceptron's layers.

    Shape:
        nodes (N, width), pairs (2, P) -> (P,).
    """

    def __init__(
        self, width: int, kind: Literal["inner", "product"] = "inner", hidden: Sequence[int] = (), dropout: float = 0.0
    ) -> None:
        super().__init__()
        if kind not in ("inner", "product"):
            raise ValueError(f"kind is {kind!r}, expected 'inner' or 'product'")
        self.width, self.kind = width, kind
        self.mlp = mlp(width, hidden, 1, dropout) if kind == "product" else None

    def reset_parameters(self) -> None:
        """Start afresh."""
        _reset(self)

    def forward(self, nodes: Tensor, pairs: Tensor) -> Tensor:
        """The logits."""
        check_shape("nodes", nodes, (None, self.width), "(N, width)")
        check_shape("pairs", pairs, (2, None), "(2, P), one column for each pair")
        if not torch.compiler.is_compiling():
            check_numbering("pairs", pairs, len(nodes), "node")
        product = nodes.index_select(0, pairs[0]) * nodes.index_select(0, pairs[1])
        return product.sum(1) if self.mlp is None else self.mlp(product).squeeze(1)


def _reset(module: nn.Module) -> None:
    for part in module.modules():
        if isinstance(part, nn.Linear | BatchNorm | LayerNorm):
            part.reset_parameters()
