"""GINE and TransformerConv of PyTorch Geometric with edge features: the recipe that most users write for edges.

Layers pass messages along each edge in both directions, with a feature that tells which; a head reads
[source, target, edge features] for edges and the embedding for nodes. Full batch, Adam, early stopping on validation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GINEConv, TransformerConv

from censnet.data.splits.split_file import PARTS
from censnet.errors import ArgumentError
from censnet.ops.arrays import Array
from censnet.ops.graph_set import GraphSet
from censnet.tasks.losses import row_loss
from censnet.tasks.metrics import MONITORS, score
from censnet.tasks.targets import Target, output_slices
from censnet.tasks.uncertainty import probabilities
from censnet.training.task_data import TaskData
from censnet_experiments.baselines.convolutions import dense
from censnet_experiments.plan import EdgePeer

HEADS = 4  # of attention


class PeerNetwork(nn.Module):
    """Layers that read edge features, and a head for each level.

    Args:
        recipe: the layers.
        node_width, edge_width: of the features.
        out_widths: level, "node" or "edge" -> number of outputs.

    Shape:
        nodes (N, node_width), edges (E, edge_width), ends (2, E) -> level -> (N or E, outputs).
    """

    def __init__(self, recipe: EdgePeer, node_width: int, edge_width: int, out_widths: Mapping[str, int]) -> None:
        super().__init__()
        width, self.dropout = recipe.hidden, recipe.dropout
        self.first = nn.Linear(node_width, width)
        self.layers = nn.ModuleList(_layer(recipe.convolution, width, edge_width + 1) for _ in range(recipe.layers))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(recipe.layers))
        reads = {"node": width, "edge": 2 * width + edge_width}
        self.heads = nn.ModuleDict(
            {level: _mlp(reads[level], width, out_width) for level, out_width in out_widths.items()}
        )

    def forward(self, nodes: Tensor, edges: Tensor, ends: Tensor) -> dict[str, Tensor]:
        """The outputs of every level."""
        both = torch.cat([ends, ends.flip(0)], 1)
        way = torch.cat([edges.new_zeros(len(edges), 1), edges.new_ones(len(edges), 1)])
        features = torch.cat([torch.cat([edges, edges]), way], 1)
        hidden = self.first(nodes)
        for layer, norm in zip(self.layers, self.norms, strict=True):
            update = F.dropout(F.relu(layer(norm(hidden), both, features)), self.dropout, self.training)
            hidden = hidden + update
        found = {}
        for level, head in self.heads.items():
            read = hidden if level == "node" else torch.cat([hidden[ends[0]], hidden[ends[1]], edges], 1)
            found[level] = head(read)
        return found


@dataclass(frozen=True, eq=False)
class FittedPeer:
    """Predictions of the selected network, and what was selected on validation rows.

    Args:
        values: level -> for each of its targets: (n,) numbers as they are learned or probabilities of class 1, or
            (n, classes) probabilities.
        epoch, learning_rate: of the selected network.
    """

    values: Mapping[str, list[Array]]
    epoch: int
    learning_rate: float


def fit_edge_peer(recipe: EdgePeer, task_data: TaskData, seed: int, device: torch.device) -> FittedPeer:
    """Train a network for each learning rate, and keep the best epoch of the best one on validation rows.

    Args:
        recipe: layers and training.
        task_data: graph, targets, labels and split.
        seed: of the initial weights and dropout.
        device: for training.
    """
    targets = {level: task_data.of(level) for level in task_data.labels}
    if not set(targets) <= {"node", "edge"}:
        raise ArgumentError(f"the targets are of {', '.join(targets)}, expected nodes and edges")
    task_data = task_data.to(device)
    graph = task_data.graph
    ends = graph.global_ends if isinstance(graph, GraphSet) else graph.ends
    inputs = dense(graph.nodes), graph.edges, ends
    widths = {level: sum(target.width for target in some) for level, some in targets.items()}
    best: tuple[float, int, float, dict[str, Tensor]] | None = None
    for learning_rate in recipe.learning_rates:
        torch.manual_seed(seed)
        network = PeerNetwork(recipe, inputs[0].shape[1], inputs[1].shape[1], widths).to(device)
        value, epoch, outputs = _train(network, recipe, learning_rate, inputs, task_data, targets)
        if best is None or value > best[0]:
            best = value, epoch, learning_rate, outputs
    if best is None:
        raise ArgumentError("there are no learning rates, expected some")
    _, epoch, learning_rate, outputs = best
    return FittedPeer({level: _values(targets[level], outputs[level]) for level in targets}, epoch, learning_rate)


def _train(
    network: PeerNetwork,
    recipe: EdgePeer,
    learning_rate: float,
    inputs: tuple[Tensor, Tensor, Tensor],
    task_data: TaskData,
    targets: Mapping[str, Sequence[Target]],
) -> tuple[float, int, dict[str, Tensor]]:
    """The best validation score, its epoch, and the outputs there."""
    optimizer = torch.optim.Adam(network.parameters(), learning_rate, weight_decay=recipe.weight_decay)
    train, validation = (
        {level: (task_data.parts[level][:, 0] == PARTS.index(part)).nonzero().squeeze(1) for level in targets}
        for part in PARTS[:2]
    )
    best, best_epoch, found = -float("inf"), 0, dict[str, Tensor]()
    for epoch in range(1, recipe.epochs + 1):
        network.train()
        outputs = network(*inputs)
        loss = torch.stack(
            [
                row_loss(some, outputs[level][train[level]].unsqueeze(1), task_data.labels[level][train[level]]).sum()
                for level, some in targets.items()
            ]
        ).sum()
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        network.eval()
        with torch.no_grad():
            outputs = network(*inputs)
        value = sum(
            _monitor(some, outputs[level][validation[level]], task_data.labels[level][validation[level]])
            for level, some in targets.items()
        )
        if value > best:
            best, best_epoch, found = value, epoch, outputs
        elif epoch - best_epoch >= recipe.patience:
            break
    return best, best_epoch, found


def _monitor(targets: Sequence[Target], outputs: Tensor, labels: Tensor) -> float:
    """The score on validation rows, of which more is better: that of `censnet` for classes, minus the loss for numbers.

    Numbers are standardized, so that several targets count alike.
    """
    kinds = {target.kind for target in targets}
    if kinds <= {"binary", "multiclass"} and len(kinds) == 1:
        metric = MONITORS[kinds.pop()]
        found = score(targets, outputs.cpu().numpy(), labels.cpu().numpy(), {metric})
        if metric in found:
            return found[metric]
    return -float(row_loss(targets, outputs.unsqueeze(1), labels).sum())


def _values(targets: Sequence[Target], outputs: Tensor) -> list[Array]:
    found = []
    for target, columns in zip(targets, output_slices(targets), strict=True):
        values = outputs[:, columns].cpu()
        if target.classes:
            values = probabilities(target, values)
        found.append((values[:, -1] if values.shape[1] < 3 else values).double().numpy())
    return found


def _layer(convolution: str, width: int, edge_width: int) -> nn.Module:
    if convolution == "gine":
        layer = GINEConv(_mlp(width, width, width), train_eps=True, edge_dim=edge_width)
    else:
        layer = TransformerConv(width, width // HEADS, HEADS, edge_dim=edge_width)
    return cast(nn.Module, layer)


def _mlp(in_width: int, width: int, out_width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(in_width, width), nn.ReLU(), nn.Linear(width, out_width))
