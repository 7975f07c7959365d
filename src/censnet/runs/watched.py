"""Embeddings that heads read while a model infers, and what is kept of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from censnet.nn.heads import GraphHead
from censnet.nn.model import Model
from censnet.ops.graph import Graph

Watch = Callable[[str, Tensor], Tensor]  # level, embedded rows -> a row of numbers for each


@contextmanager
def watched(model: Model, watch: Watch | None) -> Iterator[dict[str, list[Tensor]]]:
    """While a model infers, level -> what `watch` makes of the embeddings that its heads read, batch by batch.

    A node has its own embedding, an edge its own beside the sum of those of its nodes, a graph the pooled vector. Of a
    causal model the embedding of an edge has its nodes in it, as of just before it: what they are later is no matter.
    """
    found: dict[str, list[Tensor]] = {}
    hooks, causal = [], getattr(model.encoder, "reads_times", False)

    def listen(level: str, head: torch.nn.Module) -> None:
        def hook(_: object, inputs: tuple[Tensor, Tensor, Graph], __: object) -> None:
            nodes, edges, graph = inputs
            edges = model.even_edges(edges) if head.reads_odd else edges
            if isinstance(head, GraphHead):
                rows = head.embed(nodes, edges, graph)
            elif causal and level == "edge":
                rows = edges
            elif nodes.layout != torch.strided:
                rows = nodes.to_dense() if level == "node" else edges
            else:
                rows = nodes if level == "node" else torch.cat([edges, graph.incidence.gather(nodes)], 1)
            if watch is not None:
                found.setdefault(level, []).append(watch(level, rows.float()).cpu())

        hooks.append(head.register_forward_hook(hook))

    if watch is not None and not model.ego_hops and model.members == 1:
        for level, head in model.heads.items():
            listen(level, head)
    try:
        yield found
    finally:
        for each in hooks:
            each.remove()
