"""Table 3: hidden links of citation graphs."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from sklearn.metrics import average_precision_score, roc_auc_score
from torch import Tensor

from censnet.ops.graph import Graph
from censnet_experiments import records
from censnet_experiments.link_models import LINK_MODELS
from censnet_experiments.packed import LinkData
from censnet_experiments.plan import Plan, Recipe
from censnet_experiments.records import Record

logger = logging.getLogger(__name__)


def run_cell(
    plan: Plan[Recipe], cell: str, data: LinkData, seeds: Sequence[int], results: Path, *, device: torch.device
) -> None:
    """Add a record for each seed that has none yet."""
    path = records.record_path(results, plan.table, cell, plan.method)
    for seed in records.missing_seeds(path, plan, seeds):
        began = time.perf_counter()
        split = plan.split_seed(seed)
        whole, rows = data.graph, data.seen[split]
        graph = Graph(whole.nodes, whole.edges[rows], whole.ends[:, rows]).to(device)
        model = LINK_MODELS[plan.recipe.model](graph, **plan.recipe.options)

        def score(embedding: Tensor, pairs: tuple[Tensor, Tensor] = data.validation[split]) -> float:
            return judge(embedding.cpu(), *pairs)["auc"]

        embedding = model.embed(plan.recipe.epochs, plan.recipe.learning_rates[0], seed, score).cpu()
        found = {f"validation_{name}": value for name, value in judge(embedding, *data.validation[split]).items()}
        found |= judge(embedding, *data.test[split])
        record = Record(
            table=plan.table,
            cell=cell,
            method=plan.method,
            seed=seed,
            split_seed=split,
            settings=plan.settings(),
            chosen={},
            num_candidates=1,
            metrics={name: round(value, 5) for name, value in found.items()},
            seconds=round(time.perf_counter() - began, 2),
            device=records.device_name(device),
            versions=records.versions(),
        )
        records.append(path, [record])
        logger.info("%s %s seed %d: %s", cell, plan.method, seed, record.metrics)


def judge(embedding: Tensor, pairs: Tensor, linked: Tensor) -> dict[str, float]:
    """The area under the ROC curve and the average precision of inner products. (N, d), (2, P), (P,)"""
    score = (embedding[pairs[0]] * embedding[pairs[1]]).sum(1).double().numpy()
    truth = linked.numpy()
    return {"auc": float(roc_auc_score(truth, score)), "ap": float(average_precision_score(truth, score))}
