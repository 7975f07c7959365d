"""Answers for each whole graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from torch import Tensor, nn

from censnet.nn.heads import GraphHead, Pool
from censnet.nn.norms import Norm
from censnet.nn.row_task import check_dense, check_level
from censnet.ops.incidence import Incidence
from censnet.tasks.targets import Target


class GraphTask(nn.Module):
    """The targets of whole graphs, from the pooled embeddings of their nodes and edges.

    Args:
        targets: what is predicted.
        node_width, edge_width: channels of the embeddings.
        pool, over, hidden, dropout, norm, graph_width, members: as in `GraphHead`.

    Shape:
        nodes (N, node_width), edges (E, edge_width), graphs (graphs, graph_width) -> (graphs, width of the targets).
    """

    def __init__(
        self,
        targets: Sequence[Target],
        node_width: int,
        edge_width: int,
        pool: Pool | Sequence[Pool] = "mean",
        over: Literal["nodes", "edges", "both"] = "nodes",
        hidden: Sequence[int] = (),
        dropout: float = 0.0,
        norm: Norm | None = None,
        graph_width: int = 0,
        members: int = 1,
    ) -> None:
        super().__init__()
        check_level(targets, "graph")
        width = sum(target.width for target in targets)
        self.head = GraphHead(node_width, edge_width, width, pool, over, hidden, dropout, norm, graph_width, members)

    def reset_parameters(self) -> None:
        """Start afresh."""
        self.head.reset_parameters()

    def forward(self, nodes: Tensor, edges: Tensor, incidence: Incidence, graphs: Tensor | None = None) -> Tensor:
        """The answers."""
        check_dense(nodes)
        out: Tensor = self.head(nodes, edges, incidence, graphs)
        return out

    def embed(self, nodes: Tensor, edges: Tensor, incidence: Incidence) -> Tensor:
        """The pooled vector of each graph: what is learnt of it, without what was known before."""
        check_dense(nodes)
        return self.head.embed(nodes, edges, incidence)
