"""What an epoch will cost, in memory and time: an estimate, from a few steps of a network of the same shape."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from pydantic import BaseModel
from torch import Tensor, nn

from censnet.data.splits.pairs import number_each
from censnet.ops.graph import Graph, GraphSet

MOST_EDGES = 200_000
ORDER_BYTES = 56  # for each edge: its ends (16), the entries of T in both orders (24), scalings (16)
COPIES = 3  # rows of `hidden` numbers alive at the peak beside what is kept for the gradient
LOOP = 1.1  # times the network and the optimiser: losses, metrics, what is drawn; fitted on small sets of each task


@dataclass(frozen=True)
class Network:
    """What would be trained.

    Args:
        name: for the user.
        hidden: channels of each node and edge between layers.
        batch: graphs in a step, where there are many.
        hides: whether each step hides some edges, and so has a graph of its own.
        make: from a graph, a module that gives answers for such graphs.
    """

    name: str
    hidden: int
    batch: int
    hides: bool
    make: Callable[[Graph], nn.Module]


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

    network: str
    bytes: int
    seconds: float
    batches: int
    measured_edges: int
    formula: str = (
        f"data + {ORDER_BYTES} E + what a step keeps for its gradient, which was measured, + 4 * hidden * {COPIES} "
        "(N + E), with N and E of a batch"
    )


def estimate_cost(graph: Graph | GraphSet, network: Network) -> Cost:
    """Estimate an epoch of training a network on a graph, or on many in batches.

    Steps are measured on at most 200,000 edges, at random if there are more, or on one batch.

    Args:
        graph: what it is trained on.
        network: what is trained.
    """
    batches = 1
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
        network=network.name,
        bytes=_size(graph.nodes) + _size(graph.edges) + _size(graph.ends)
        + ORDER_BYTES * num_edges
        + round(_kept(network.make(part).to(part.nodes.dtype), part) * scale)
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


def _kept(model: nn.Module, graph: Graph) -> int:
    """The bytes that a forward pass keeps for the gradient, beside the data and the weights."""
    own = {tensor.data_ptr() for tensor in (*model.parameters(), graph.edges)}
    kept = dict[int, int]()

    def note(tensor: Tensor) -> Tensor:
        if tensor.layout == torch.strided and tensor.data_ptr() not in own:
            kept[tensor.data_ptr()] = tensor.numel() * tensor.element_size()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        model(graph)
    return sum(kept.values())


def _seconds(graph: Graph, network: Network, draw: Callable[[], Graph] | None) -> float:
    """The fastest of the steps that fit in about half a second; the first also sorts, and counts only if it is long.

    With `draw`, each step has a graph of its own, and few of them are followed by a validation.
    """
    model = network.make(graph).to(graph.nodes.dtype)
    optimizer = torch.optim.Adam(model.parameters())
    begin, taken = time.perf_counter(), list[float]()
    while len(taken) < 20 and (not taken or time.perf_counter() - begin < 0.6):
        start = time.perf_counter()
        seen = graph if draw is None else draw()
        optimizer.zero_grad()
        torch.autograd.backward(model(seen).square().mean())
        optimizer.step()
        if draw is None:
            with torch.no_grad():
                model(seen)
        taken.append(time.perf_counter() - start)
    return min(taken)
