"""A network of a given shape, whose answers mean nothing, to see what a step of training costs."""

from __future__ import annotations

import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor, nn

from censnet.ops.graph import Graph
from censnet.ops.propagate import propagate_edges, propagate_nodes
from censnet.ops.sparse import matmul

ANSWERS = 8  # channels of a last layer that answers by itself: a usual number of classes


class Network(BaseModel):
    """What decides the cost of a network; by default the paper's.

    Args:
        layers: node (N) and edge (E) layers, in order.
        hidden: channels of each node and edge between layers.
        steps: how often a layer multiplies by its operator.
        heads: gates of each row.
        lift: maps of the nodes before the first layer.
        lift_edges: whether edges are mapped, too.
        self_map: whether a layer also maps each row by itself.
        norm: whether a norm follows each layer.
        answers: whether the last layer has as many channels as there are answers.
        hides: whether each step hides some edges, and so has a graph of its own.
        batch: graphs in a step, where there are many.

    Example:
        >>> str(Network(layers="EN", hidden=64, steps=10))
        'EN with 64 units and 10 steps in each layer'
    """

    model_config = ConfigDict(frozen=True)

    layers: str = "NEN"
    hidden: int = 32
    steps: int = 1
    heads: int = 1
    lift: int = 0
    lift_edges: bool = False
    self_map: bool = False
    norm: bool = False
    answers: bool = False
    hides: bool = False
    batch: int = 64

    def __str__(self) -> str:
        steps = f" and {self.steps} steps in each layer" if self.steps > 1 else ""
        return f"{self.layers} with {self.hidden} units{steps}"


class Trial(nn.Module):
    """The network: layers and maps as a real one has, without the choices that cost nothing."""

    def __init__(self, graph: Graph, network: Network) -> None:
        super().__init__()
        width, hidden, last = {"N": graph.node_width, "E": graph.edge_width}, network.hidden, len(network.layers) - 1
        self.lift, self.lift_edges, self.layers = nn.ParameterList(), nn.ParameterList(), nn.ModuleList()
        for _ in range(network.lift):
            self.lift.append(_weight(width["N"], hidden))
            width["N"] = hidden
        if network.lift_edges:
            self.lift_edges.extend([_weight(width["E"], hidden), _weight(width["N"], hidden)])
            width["E"] = hidden
        for depth, letter in enumerate(network.layers):
            out = ANSWERS if network.answers and depth == last else hidden
            self.layers.append(_Layer(letter, width["N"], width["E"], out, network))
            width[letter] = out
        self.to(graph.nodes.dtype)
        self.optimizer = torch.optim.Adam(self.parameters())

    def forward(self, graph: Graph) -> Tensor:
        """A loss."""
        nodes, edges, renewed = graph.nodes, graph.edges, graph.nodes
        for weight in self.lift:
            nodes = _finish(matmul(nodes, weight))
        if len(self.lift_edges):
            of_edges, of_ends = self.lift_edges
            edges = _finish(edges @ of_edges + graph.incidence.gather(matmul(nodes, of_ends)))
        for layer in self.layers:
            renewed = layer(nodes, edges, graph)
            nodes, edges = (renewed, edges) if layer.letter == "N" else (nodes, renewed)
        return renewed.square().mean()

    def learn(self, graph: Graph, validate: bool) -> None:
        """A step of training; with `validate` a forward pass more, as at the end of an epoch."""
        self.optimizer.zero_grad()
        torch.autograd.backward(self(graph))
        self.optimizer.step()
        if validate:
            with torch.no_grad():
                self(graph)

    def measure_kept(self, graph: Graph) -> int:
        """The bytes that a forward pass keeps for the gradient, beside the data and the weights."""
        own = {tensor.data_ptr() for tensor in (*self.parameters(), graph.edges)}
        kept = dict[int, int]()

        def note(tensor: Tensor) -> Tensor:
            if tensor.layout == torch.strided and tensor.data_ptr() not in own:
                kept[tensor.data_ptr()] = tensor.numel() * tensor.element_size()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            self(graph)
        return sum(kept.values())


class _Layer(nn.Module):
    def __init__(self, letter: str, node_width: int, edge_width: int, out_width: int, network: Network) -> None:
        super().__init__()
        width, read_width = (node_width, edge_width) if letter == "N" else (edge_width, node_width)
        heads = network.heads if out_width == network.hidden else 1
        self.letter, self.steps, self.narrow = letter, network.steps, width < out_width and heads == 1
        self.weight, self.reader = _weight(width, out_width), _weight(read_width, heads)
        self.self_map = _weight(width, out_width) if network.self_map else None
        self.norm = nn.BatchNorm1d(out_width) if network.norm else None
        self.adds = network.norm and width == out_width

    def forward(self, nodes: Tensor, edges: Tensor, graph: Graph) -> Tensor:
        rows, read = (nodes, edges) if self.letter == "N" else (edges, nodes)
        propagate = propagate_nodes if self.letter == "N" else propagate_edges
        gates = 2 * torch.sigmoid(matmul(read, self.reader))
        narrow = self.narrow and rows.layout == torch.strided
        x = out = rows if narrow else matmul(rows, self.weight)
        for _ in range(self.steps):
            out = propagate(out, gates, graph.incidence)
            out = out if self.steps == 1 else torch.add(x, out, alpha=0.9)
        out = out @ self.weight if narrow else out
        out = out if self.self_map is None else out + matmul(rows, self.self_map)
        out = _finish(out if self.norm is None or len(out) < 2 else self.norm(out))
        return out + rows if self.adds else out


def _weight(width: int, out_width: int) -> nn.Parameter:
    return nn.Parameter(torch.full((width, out_width), 1 / max(width, 1)))


def _finish(rows: Tensor) -> Tensor:
    """ReLU, and a mask as dropout has; nothing is drawn."""
    return rows.relu() * torch.ones_like(rows)
