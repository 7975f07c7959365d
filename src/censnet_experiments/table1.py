"""Table 1: the classes of papers from few labels. Needs torch and torch_geometric alone."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from censnet_experiments import records
from censnet_experiments.batched_trainer import Outcome, Rows, train
from censnet_experiments.classifiers import build
from censnet_experiments.packed import NodeData
from censnet_experiments.plan import Plan, Recipe
from censnet_experiments.records import Record

logger = logging.getLogger(__name__)


def run_cell(
    plan: Plan[Recipe],
    cell: str,
    data: NodeData,
    seeds: Sequence[int],
    results: Path,
    *,
    device: torch.device,
    at_once: int | None = None,
    capture: bool = False,
) -> None:
    """Add a record for each seed that has none yet.

    Args:
        plan: the method.
        cell: one of the data's.
        data: with the splits of these seeds.
        seeds: which replicates.
        results: the directory of records.
        device: where to train.
        at_once: how many networks are trained together, all settings of a seed among them; None is all of them on a
            GPU and one on a CPU. Records are added after each lot, so a run that is stopped loses one lot.
        capture: see `together.train`.
    """
    path = records.record_path(results, plan.table, cell, plan.method)
    todo = records.missing_seeds(path, plan, seeds)
    num_candidates = len(plan.recipe.learning_rates)
    lot = max(1, (at_once or (1 if device.type == "cpu" else len(todo) * num_candidates)) // num_candidates)
    for start in range(0, len(todo), max(lot, 1)):
        some = todo[start : start + lot]
        began = time.perf_counter()
        outcome = train_seeds(plan, cell, data, some, device, at_once, capture)
        seconds = (time.perf_counter() - began) / len(some)
        found = [
            _record(
                plan,
                cell,
                seed,
                _only(outcome, slice(number * num_candidates, (number + 1) * num_candidates)),
                seconds,
                device,
            )
            for number, seed in enumerate(some)
        ]
        records.append(path, found)
        for record in found:
            logger.info("%s %s seed %d: %.4f", cell, plan.method, record.seed, record.metrics["test"])


def train_seeds(
    plan: Plan[Recipe],
    cell: str,
    data: NodeData,
    seeds: Sequence[int],
    device: torch.device,
    at_once: int | None = None,
    capture: bool = False,
) -> Outcome:
    """Train every setting of every seed; the settings of a seed stand beside each other and start from one weights."""
    rates = plan.recipe.learning_rates
    models = []
    for seed in seeds:
        model = build(plan.recipe.model, data.graph, data.num_classes, plan.recipe.options, seed)
        models += [model] * len(rates)
    chosen = torch.tensor([plan.split_seed(seed) for seed in seeds]).repeat_interleave(len(rates))
    rows = Rows(data.labels, data.parts[cell][chosen])
    if plan.recipe.batch_size is not None:
        from censnet_experiments.minibatch import train_in_batches  # reads a split, which a packed graph does without

        return train_in_batches(models, data.graph, rows, list(rates) * len(seeds), plan.recipe, seeds[0])
    return train(
        models,
        data.graph.to(device),
        rows,
        list(rates) * len(seeds),
        plan.recipe,
        at_once=at_once,
        capture=capture,
        seed=seeds[0],
    )


def _record(plan: Plan[Recipe], cell: str, seed: int, outcome: Outcome, seconds: float, device: torch.device) -> Record:
    """The setting that is best on validation rows; of equals, the first."""
    best = int(outcome.validation.argmax())
    return Record(
        table=plan.table,
        cell=cell,
        method=plan.method,
        seed=seed,
        split_seed=plan.split_seed(seed),
        settings=plan.settings(),
        chosen={"learning_rate": plan.recipe.learning_rates[best], "epoch": int(outcome.epoch[best])},
        num_candidates=len(plan.recipe.learning_rates),
        metrics={
            "validation": round(float(outcome.validation[best]), 5),
            "test": round(float(outcome.test[best]), 5),
        },
        seconds=round(seconds, 2),
        device=records.device_name(device),
        versions=records.versions(),
    )


def _only(outcome: Outcome, members: slice) -> Outcome:
    return Outcome(outcome.validation[members], outcome.test[members], outcome.epoch[members])
