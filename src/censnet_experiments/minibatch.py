"""Algorithm 2 of the paper: train on parts of a graph whose nodes are drawn in proportion from all parts of a split."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import cast

import torch
import torch.nn.functional as F
from torch import nn

from censnet.ops.graph import Graph
from censnet.ops.sampling import induced_subgraph, proportional_batches
from censnet_experiments.batched_trainer import Classifier, Outcome, Rows
from censnet_experiments.plan import Recipe


def train_in_batches(
    models: Sequence[nn.Module],
    graph: Graph,
    rows: Rows,
    learning_rates: Sequence[float],
    recipe: Recipe,
    seed: int = 0,
) -> Outcome:
    """Train a classifier for each member as `together.train` does, one after the other and a part at a time.

    An epoch deals all nodes into parts of at most `recipe.batch_size`; a part has the edges between its nodes and takes
    one step. Validation and test rows are answered for on the whole graph.
    """
    outcomes = [
        _train(copy.deepcopy(model), graph, rows.only(slice(number, number + 1)), rate, recipe, seed + number)
        for number, (model, rate) in enumerate(zip(models, learning_rates, strict=True))
    ]
    return Outcome(*(torch.stack([getattr(one, name) for one in outcomes]) for name in Outcome.__annotations__))


def _train(model: nn.Module, graph: Graph, rows: Rows, rate: float, recipe: Recipe, seed: int) -> Outcome:
    code, labels = rows.parts[0].cpu(), rows.labels
    adam = torch.optim.Adam(model.parameters(), lr=rate, weight_decay=recipe.weight_decay)
    draw = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    classifier = cast(Classifier, model)
    best, best_epoch, patience = (-1.0, 0.0), 0, recipe.patience or recipe.epochs
    for epoch in range(1, recipe.epochs + 1):
        model.train()
        for nodes in proportional_batches(code, recipe.batch_size or graph.num_nodes, draw):
            learnt = nodes[code[nodes] == 0]
            if len(learnt) == 0:
                continue
            part = induced_subgraph(graph, nodes)
            logits = model(*classifier.inputs(part.graph))[torch.searchsorted(part.nodes, learnt)]
            adam.zero_grad()
            F.cross_entropy(logits, labels[learnt]).backward()  # type: ignore[no-untyped-call]
            adam.step()
        model.eval()
        with torch.no_grad():
            hit = model(*classifier.inputs(graph)).argmax(1) == labels
        validation, test = (float(hit[code == part].float().mean()) for part in (1, 2))
        if validation > best[0]:
            best, best_epoch = (validation, test), epoch
        if epoch - best_epoch > patience:
            break
    return Outcome(*(torch.tensor(value) for value in (*best, float(best_epoch))))
