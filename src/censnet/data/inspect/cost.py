"""What an epoch will cost, in memory and time: an estimate, from a few steps of a network of the same shape."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import torch
from pydantic import BaseModel
from torch import Tensor

from censnet.data.inspect.trial import Network, Trial
from censnet.data.splits.pairs import number_each
from censnet.ops.graph import Graph, GraphSet

MOST_EDGES = 200_000
ORDER_BYTES = 56  # for each edge: its ends (16), the entries of T in both orders (24), scalings (16)
COPIES = 3  # rows of `hidden` numbers alive at the peak beside what is kept for the gradient
LOOP = 1.8  # times layers and optimiser: dropout, heads, losses, metrics; fitted on small sets of each task


class Cost(BaseModel):
    """An estimate for one network.

    Args:
        network: for which.
        bytes: memory at the peak of an epoch, the data included.
        seconds: of one epoch on the processor that was measured: forward, backward, the optimiser, validation.
        batches: in an epoch: 1 for one graph.
        measured_edges: of the part that was measured; time and memory are scaled up from it.
        formula: how the memory is counted.
    """

    network: Network
    bytes: int
    seconds: float
    batches: int
    measured_edges: int
    formula: str = (
        f"data + {ORDER_BYTES} E + what a step keeps for its gradient, which was measured, + 4 * hidden * {COPIES} "
        "(N + E), with N and E of a batch"
    )


def estimate_cost(graph: Graph | GraphSet, network: Network | None = None) -> Cost:
    """Estimate an epoch of training a network on a graph, or on many in batches.

    Steps are measured on at most 200,000 edges, at random if there are more, or on one batch.

    Args:
        graph: what it is trained on.
        network: its shape; the paper's if None.
    """
    network, batches = network or Network(), 1
    draw: Callable[[], Graph] | None = None
    if isinstance(graph, GraphSet):
        batches, many = math.ceil(len(graph) / network.batch), graph
        order = torch.randperm(len(many), generator=torch.Generator().manual_seed(0))[: network.batch]
        numbers = order.sort().values.to(many.nodes.device)
        part = many.batch(numbers)
        num_nodes, num_edges, draw = part.num_nodes, part.num_edges, lambda: many.batch(numbers)
    else:
        num_nodes, num_edges = graph.num_nodes, graph.num_edges
        part = graph if num_edges <= MOST_EDGES else _part(graph)
        if network.hides:
            draw = lambda: Graph(part.nodes, part.edges, part.ends)  # noqa: E731
    scale = (num_nodes + num_edges) / (part.num_nodes + part.num_edges)
    return Cost(
        network=network,
        bytes=_size(graph.nodes) + _size(graph.edges) + _size(graph.ends)
        + ORDER_BYTES * num_edges
        + round(Trial(part, network).measure_kept(part) * scale)
        + 4 * COPIES * network.hidden * (num_nodes + num_edges),
        seconds=LOOP * _seconds(part, network, draw) * scale * batches,
        batches=batches,
        measured_edges=part.num_edges,
    )  # fmt: skip


def _part(graph: Graph) -> Graph:
    """Some edges at random, and the nodes they touch."""
    rows = torch.randint(graph.num_edges, (MOST_EDGES,), generator=torch.Generator().manual_seed(0)).sort().values
    nodes, ends = number_each(graph.ends[:, rows].reshape(-1).numpy())
    width = min(graph.node_width, 256)
    features = torch.ones(len(nodes), width) if graph.nodes.layout != torch.strided else graph.nodes[nodes, :width]
    return Graph(features.contiguous(), graph.edges[rows], torch.from_numpy(ends).reshape(2, -1))


def _size(tensor: Tensor) -> int:
    if tensor.layout == torch.sparse_csr:
        return sum(map(_size, (tensor.values(), tensor.col_indices(), tensor.crow_indices())))
    return tensor.numel() * tensor.element_size()


def _seconds(graph: Graph, network: Network, draw: Callable[[], Graph] | None) -> float:
    """The fastest of the steps that fit in about half a second; the first also sorts, and counts only if it is long.

    With `draw`, each step has a graph of its own, and few of them are followed by a validation.
    """
    trial, begin, taken = Trial(graph, network), time.perf_counter(), list[float]()
    while len(taken) < 20 and (not taken or time.perf_counter() - begin < 0.6):
        start = time.perf_counter()
        trial.learn(graph if draw is None else draw(), validate=draw is None)
        taken.append(time.perf_counter() - start)
    return min(taken)
