"""Table 3: link prediction on citation graphs."""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch
from sklearn.metrics import average_precision_score, roc_auc_score
from torch import Tensor

from censnet.ops.graph import Graph
from censnet_experiments.data import LinkData
from censnet_experiments.models import LINK_MODELS
from censnet_experiments.plan import Plan, Recipe
from censnet_experiments.records import Record, Run


def train_runs(plan: Plan[Recipe], runs: Sequence[Run], data: LinkData, device: torch.device) -> list[Record]:
    """Train each run on the message graph of its split, and score it on validation and test links."""
    return [_train(plan, run, data, device) for run in runs]


def _train(plan: Plan[Recipe], run: Run, data: LinkData, device: torch.device) -> Record:
    start, seed, split = time.perf_counter(), run[1], plan.split_seed(run[1])
    full, edges, validation = data.graph, data.train[split], data.validation[split]
    graph = Graph(full.nodes, full.edges[edges], full.ends[:, edges]).to(device)
    model = LINK_MODELS[plan.recipe.model](graph, **plan.recipe.options)

    def validation_auc(embedding: Tensor) -> float:
        return score_links(embedding.cpu(), *validation)["auc"]

    embedding = model.embed(plan.recipe.epochs, plan.recipe.learning_rates[0], seed, validation_auc).cpu()
    metrics = {f"validation_{name}": value for name, value in score_links(embedding, *validation).items()}
    metrics |= score_links(embedding, *data.test[split])
    return Record.of(plan, run, metrics, time.perf_counter() - start, device)


def score_links(embedding: Tensor, pairs: Tensor, labels: Tensor) -> dict[str, float]:
    """The AUC and the average precision of inner products. (N, d), (2, P), (P,)"""
    score = (embedding[pairs[0]] * embedding[pairs[1]]).sum(1).double().numpy()
    truth = labels.numpy()
    return {"auc": float(roc_auc_score(truth, score)), "ap": float(average_precision_score(truth, score))}
