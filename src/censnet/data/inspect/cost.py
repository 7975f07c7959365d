"""What an epoch will cost, in memory and time: an estimate, from sizes and from one short measurement."""

from __future__ import annotations

import math
import time

import torch
from pydantic import BaseModel
from torch import Tensor

from censnet.data.splits.pairs import number_each
from censnet.ops.graph import Graph, GraphSet
from censnet.ops.propagate import propagate_edges, propagate_nodes
from censnet.ops.sparse import matmul

HIDDEN = 32
BATCH = 256
MOST_EDGES = 200_000
NODE_COPIES, EDGE_COPIES = 6, 8  # rows of `hidden` numbers alive at the peak, fitted to CensNet NEN with dropout
ORDER_BYTES = 56  # for each edge: its ends (16), the entries of T in both orders (24), scalings (16)


class Cost(BaseModel):
    """An estimate for the layers NEN with `hidden` units.

    Args:
        bytes: memory at the peak of an epoch, the data included.
        seconds: of one epoch, forward and backward, on the processor that was measured.
        batches: in an epoch: 1 for one graph, and of 256 graphs each for many.
        measured_edges: of the part that was measured; the time is scaled up from it.
        formula: how the memory is counted.
    """

    hidden: int = HIDDEN
    bytes: int
    seconds: float
    batches: int
    measured_edges: int
    formula: str = f"data + {ORDER_BYTES} E + 4 * hidden * ({NODE_COPIES} N + {EDGE_COPIES} E), with N and E of a batch"


def estimate_cost(graph: Graph | GraphSet) -> Cost:
    """Estimate an epoch of training on a graph, or on many in batches of 256.

    One step is measured on at most 200,000 edges, at random if there are more, or on one batch.
    """
    batches = 1
    if isinstance(graph, GraphSet):
        batches = math.ceil(len(graph) / BATCH)
        numbers = torch.randperm(len(graph), generator=torch.Generator().manual_seed(0))[:BATCH]
        part = graph.batch(numbers.sort().values.to(graph.nodes.device))
        num_nodes, num_edges = part.num_nodes, part.num_edges
    else:
        num_nodes, num_edges = graph.num_nodes, graph.num_edges
        part = graph if num_edges <= MOST_EDGES else _part(graph)
    scale = (num_nodes + num_edges) / (part.num_nodes + part.num_edges)
    return Cost(
        bytes=_size(graph.nodes) + _size(graph.edges) + _size(graph.ends)
        + ORDER_BYTES * num_edges
        + 4 * HIDDEN * (NODE_COPIES * num_nodes + EDGE_COPIES * num_edges),
        seconds=_seconds(part) * scale * batches,
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


def _seconds(graph: Graph) -> float:
    """The fastest of the steps that fit in about half a second; the first also sorts, and counts only if it is long."""
    begin, taken = time.perf_counter(), list[float]()
    while len(taken) < 20 and (not taken or time.perf_counter() - begin < 0.6):
        start = time.perf_counter()
        _step(graph)
        taken.append(time.perf_counter() - start)
    return min(taken)


def _step(graph: Graph) -> None:
    """A node layer, an edge layer and a node layer, forward and backward, with weights of one."""

    def weights(*shape: int) -> Tensor:
        return torch.ones(*shape, dtype=graph.nodes.dtype, requires_grad=True)

    nodes, edges, incidence = graph.nodes, graph.edges, graph.incidence
    gates = edges @ weights(graph.edge_width)
    x = propagate_nodes(matmul(nodes, weights(graph.node_width, HIDDEN)), gates, incidence).relu()
    z = propagate_edges(edges @ weights(graph.edge_width, HIDDEN), x @ weights(HIDDEN), incidence).relu()
    out = propagate_nodes(x @ weights(HIDDEN, HIDDEN), z @ weights(HIDDEN), incidence)
    torch.autograd.backward(out.sum())
