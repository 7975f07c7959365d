"""Answers for each node or each edge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from censnet.nn.ensemble import check_rows
from censnet.nn.heads import RowHead
from censnet.ops.incidence import Incidence
from censnet.tasks.targets import Target


class RowTask(nn.Module):
    """The targets of one side of the graph, from its embeddings.

    Args:
        level: `node` or `edge`.
        targets: what is predicted there.
        node_width, edge_width: channels of the embeddings, of one member.
        hidden: widths of the layers between embedding and answer.
        dropout: between those.
        read_ends: whether an edge's answer also reads the sum over its two ends, T^t x.
        members: networks side by side; see `CensNet`.

    Shape:
        nodes (N, members * node_width), edges (E, members * edge_width) -> (N or E, members * width of the targets).

    Example:
        >>> fraud = Target(level="edge", column="fraud", kind="binary", classes=["no", "yes"])
        >>> task = RowTask("edge", [fraud], node_width=4, edge_width=2, edge_head_reads_nodes=True)
        >>> path = Incidence(torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
        >>> task(torch.randn(3, 4), torch.randn(2, 2), path).shape
        torch.Size([2, 1])
    """

    def __init__(
        self,
        level: Literal["node", "edge"],
        targets: Sequence[Target],
        node_width: int,
        edge_width: int,
        hidden: Sequence[int] = (),
        dropout: float = 0.0,
        edge_head_reads_nodes: bool = False,
        members: int = 1,
    ) -> None:
        super().__init__()
        if level not in ("node", "edge"):
            raise ValueError(f"level is {level!r}, expected 'node' or 'edge'")
        check_level(targets, level)
        if edge_head_reads_nodes and level == "node":
            raise ValueError("read_ends is set for nodes, expected it for edges alone: a node has no ends")
        self.level, self.members, self.edge_head_reads_nodes = level, members, edge_head_reads_nodes
        self.widths = edge_width, node_width
        self.out_width = members * sum(target.width for target in targets)
        width = node_width if level == "node" else edge_width + edge_head_reads_nodes * node_width
        self.head = RowHead(width, sum(target.width for target in targets), hidden, dropout, members)

    def reset_parameters(self) -> None:
        """Start afresh."""
        self.head.reset_parameters()

    def forward(self, nodes: Tensor, edges: Tensor, incidence: Incidence) -> Tensor:
        """The answers."""
        out: Tensor = self.head(self.inputs(nodes, edges, incidence))
        return out

    def inputs(self, nodes: Tensor, edges: Tensor, incidence: Incidence) -> Tensor:
        """What the head reads of each row."""
        rows = nodes if self.level == "node" else edges
        if self.edge_head_reads_nodes:
            check_dense(nodes)
            ends = incidence.gather(nodes)
            sides = [self._by_member(side, width) for side, width in zip((edges, ends), self.widths, strict=True)]
            rows = torch.cat(sides, dim=2).flatten(1)
        return rows

    def _by_member(self, rows: Tensor, width: int) -> Tensor:
        """(n, members, width); a side that no layer renewed has one row for all members."""
        check_rows("rows", rows, None, width, self.members, "(n, width)")
        own = rows.unsqueeze(1) if rows.shape[1] == width else rows.reshape(len(rows), self.members, width)
        return own.expand(-1, self.members, -1)


def check_dense(nodes: Tensor) -> None:
    """Raise for nodes that no layer has renewed, and that came in sparse: they cannot be summed in that form."""
    if nodes.layout != torch.strided:
        raise ValueError("nodes is sparse, expected dense: let a node layer (N) come before what sums them")


def check_level(targets: Sequence[Target], level: str) -> None:
    """Raise unless there are targets, all of this level."""
    if not targets:
        raise ValueError(f"targets is empty, expected columns of the {level}s")
    for target in targets:
        if target.level != level:
            raise ValueError(f"target {target.column} is of the {target.level}s, expected one of the {level}s")
