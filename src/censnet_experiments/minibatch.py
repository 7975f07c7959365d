"""Algorithm 2 of the paper: mini-batches of nodes, sampled in proportion from training, validation and test nodes."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import cast

import torch
import torch.nn.functional as F
from torch import nn

from censnet.ops.graph import Graph
from censnet.ops.sampling import induced_subgraph, proportional_batches
from censnet_experiments.batched_trainer import BestEpoch, Classifier, NodeSplits
from censnet_experiments.plan import Recipe


def train_in_batches(
    models: Sequence[nn.Module],
    graph: Graph,
    splits: NodeSplits,
    learning_rates: Sequence[float],
    recipe: Recipe,
    seed: int = 0,
) -> BestEpoch:
    """Train a classifier for each member as `batched_trainer.train` does, one after the other, by mini-batches.

    An epoch divides all nodes into batches of at most `recipe.batch_size`; a batch is the subgraph induced by its nodes
    and takes one step. Validation and test use the full graph.
    """
    results = [
        _train(copy.deepcopy(model), graph, splits.only(slice(number, number + 1)), rate, recipe, seed + number)
        for number, (model, rate) in enumerate(zip(models, learning_rates, strict=True))
    ]
    return BestEpoch(*(torch.stack([getattr(one, name) for one in results]) for name in BestEpoch.__annotations__))


def _train(model: nn.Module, graph: Graph, splits: NodeSplits, rate: float, recipe: Recipe, seed: int) -> BestEpoch:
    code, labels = splits.parts[0].cpu(), splits.labels
    adam = torch.optim.Adam(model.parameters(), lr=rate, weight_decay=recipe.weight_decay)
    draw = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    classifier = cast(Classifier, model)
    best, best_epoch, patience = (-1.0, 0.0), 0, recipe.patience or recipe.epochs
    for epoch in range(1, recipe.epochs + 1):
        model.train()
        for nodes in proportional_batches(code, recipe.batch_size or graph.num_nodes, draw):
            labeled = nodes[code[nodes] == 0]
            if len(labeled) == 0:
                continue
            batch = induced_subgraph(graph, nodes)
            logits = model(*classifier.inputs(batch.graph))[torch.searchsorted(batch.nodes, labeled)]
            adam.zero_grad()
            F.cross_entropy(logits, labels[labeled]).backward()  # type: ignore[no-untyped-call]
            adam.step()
        model.eval()
        with torch.no_grad():
            hit = model(*classifier.inputs(graph)).argmax(1) == labels
        validation, test = (float(hit[code == part].float().mean()) for part in (1, 2))
        if validation > best[0]:
            best, best_epoch = (validation, test), epoch
        if epoch - best_epoch > patience:
            break
    return BestEpoch(*(torch.tensor(value) for value in (*best, float(best_epoch))))
