"""Table 1: node classification on citation graphs with few labels."""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch

from censnet_experiments.batched_trainer import BestEpoch, Compute, NodeSplits, train
from censnet_experiments.data import NodeData
from censnet_experiments.minibatch import train_in_batches
from censnet_experiments.models import build_node_model
from censnet_experiments.plan import Plan, Recipe
from censnet_experiments.records import Record, Run


def train_runs(
    plan: Plan[Recipe],
    runs: Sequence[Run],
    data: NodeData,
    compute: Compute,
) -> list[Record]:
    """Train every learning rate of every run of one cell, and record for each run the best one on its validation set.

    Args:
        plan: the method.
        runs: of one cell.
        data: with the splits of these seeds.
        compute: where, and how many together.
    """
    start, rates = time.perf_counter(), plan.recipe.learning_rates
    result = train_seeds(plan, runs[0][0], data, [seed for _, seed in runs], compute)
    seconds = (time.perf_counter() - start) / len(runs)
    records = []
    for number, run in enumerate(runs):
        members = slice(number * len(rates), (number + 1) * len(rates))
        validation, test, epoch = result.validation[members], result.test[members], result.epoch[members]
        best = int(validation.argmax())  # of equals, the first
        metrics = {"validation": float(validation[best]), "test": float(test[best])}
        chosen = {"learning_rate": rates[best], "epoch": int(epoch[best])}
        records.append(Record.of(plan, run, metrics, seconds, compute.device, chosen=chosen, num_candidates=len(rates)))
    return records


def train_seeds(
    plan: Plan[Recipe],
    cell: str,
    data: NodeData,
    seeds: Sequence[int],
    compute: Compute,
) -> BestEpoch:
    """Train every learning rate of every seed; those of one seed are consecutive and start from the same weights."""
    rates = plan.recipe.learning_rates
    models = []
    for seed in seeds:
        model = build_node_model(plan.recipe.model, data.graph, data.num_classes, plan.recipe.options, seed)
        models += [model] * len(rates)
    chosen = torch.tensor([plan.split_seed(seed) for seed in seeds]).repeat_interleave(len(rates))
    splits = NodeSplits(data.labels, data.parts[cell][chosen])
    if plan.recipe.batch_size is not None:
        return train_in_batches(models, data.graph, splits, list(rates) * len(seeds), plan.recipe, seeds[0])
    return train(
        models,
        data.graph.to(compute.device),
        splits,
        list(rates) * len(seeds),
        plan.recipe,
        batched=compute.batched,
        capture=compute.capture,
        seed=seeds[0],
    )
