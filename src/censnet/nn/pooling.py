"""Pooling: the nodes or the edges of each graph as one vector."""

from __future__ import annotations

from typing import Literal, cast, get_args

import torch
from torch import Tensor, nn

from censnet.nn.layers import Side
from censnet.nn.mlp import Linear
from censnet.nn.norms import Norm, check_norm, make_norm
from censnet.ops.incidence import Incidence
from censnet.ops.normalization import by_head

Pool = Literal["mean", "sum", "attention"]
PoolFrom = Literal["nodes", "edges", "both"]

POOLED_SIDES: dict[PoolFrom, tuple[Side, ...]] = {"nodes": ("node",), "edges": ("edge",), "both": ("node", "edge")}


class Readout(nn.Module):
    """Pool the nodes or the edges of each graph to one vector: their mean, sum, or mean with learned attention.

    A graph without edges, such as a molecule without bonds, gets zeros from them. A mean can be normalized, if it has
    two channels or more. A sum keeps the size of the graph, and is divided by `reference_size`, the number of nodes or
    edges of an average graph, which is 1 until it is set, so that it starts at the scale of the other inputs.

    Shape:
        (n, width) -> (graphs, width).
    """

    members = 1

    def __init__(self, width: int, pool: Pool, side: Side, norm: Norm | None = None) -> None:
        super().__init__()
        if pool not in get_args(Pool):
            *most, last = map(repr, get_args(Pool))
            raise ValueError(f"pool is {pool!r}, expected {', '.join(most)} or {last}")
        self.pool, self.side = pool, side
        self.score = Linear(width, 1) if pool == "attention" else None
        check_norm(norm)
        self.norm = None if norm is None or pool == "sum" or width == 1 else make_norm(norm, width)
        self.reference_size: Tensor | None
        self.register_buffer("reference_size", torch.ones(1) if pool == "sum" else None)  # of the data, of each member

    def extra_repr(self) -> str:
        return f"{self.pool} over {self.side}s"

    def forward(self, rows: Tensor, incidence: Incidence) -> Tensor:
        """Pool the nodes, or edges, of each graph."""
        if self.score is not None:
            share = self._attention(self.score(rows), incidence)
            rows = (by_head(rows, self.members) * share.unsqueeze(2)).flatten(1)
        total = incidence.pool(rows, self.side)
        if self.reference_size is not None:
            return total / self.reference_size.repeat_interleave(total.shape[1] // self.members)
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
