"""What a network says of a whole graph, or of many graphs in batches."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from censnet.nn.chunked import join
from censnet.nn.model import Model, Outputs
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.training.batches import whole_batches

BATCH_ROWS = 200_000  # nodes and edges of many graphs that are embedded at once


@torch.no_grad()
def infer(model: Model, graph: Graph | GraphSet, tick: Callable[[int], None] = lambda _: None) -> Outputs:
    """The answers for every row, dropout off. `tick` hears how many graphs were done."""
    was_training = model.training
    model.eval()
    try:
        if isinstance(graph, Graph):
            found: Outputs = model(graph)
            tick(1)
            return found
        parts = list[Outputs]()
        for numbers in graph_batches(graph):
            parts.append(model(graph.batch(numbers)))
            tick(len(numbers))
        by_level = {level: join([part.by_level[level] for part in parts]) for level in parts[0].by_level}
        unclipped = {level: join([part.unclipped[level] for part in parts]) for level in parts[0].unclipped}
        return Outputs(by_level, None, unclipped)
    finally:
        model.train(was_training)


def graph_batches(graph: GraphSet) -> list[Tensor]:
    """The graphs of a set in order, in batches of a bounded number of rows."""
    rows = (len(graph.nodes) + len(graph.edges)) / len(graph)
    every = torch.arange(len(graph), device=graph.nodes.device)
    return whole_batches(every, max(1, int(BATCH_ROWS / rows)))
