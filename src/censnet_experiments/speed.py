"""How long an epoch takes, which the paper says of Cora in one sentence."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from censnet_experiments import records
from censnet_experiments.classifiers import build
from censnet_experiments.packed import NodeData
from censnet_experiments.plan import Plan, Recipe
from censnet_experiments.records import Record

logger = logging.getLogger(__name__)
WARM_UP = 20  # epochs before the clock counts


def run_cell(plan: Plan[Recipe], cell: str, data: NodeData, seeds: Sequence[int], results: Path) -> None:
    """Add a record for each seed that has none yet: the median time of an epoch, in milliseconds.

    The cell says where: "cora-gpu" needs a GPU, "cora-cpu" is the host whatever there is.
    """
    path = records.record_path(results, plan.table, cell, plan.method)
    device = torch.device("cuda" if cell.endswith("-gpu") else "cpu")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"{cell} is timed on a GPU and there is none: leave it out with --cell {cell[:-4]}-cpu")
    graph, labels = data.graph.to(device), data.labels.to(device)
    rows = (data.parts["cora-3"][0] == 0).nonzero().squeeze(1).to(device)
    for seed in records.missing_seeds(path, plan, seeds):
        began = time.perf_counter()
        model = build(plan.recipe.model, data.graph, data.num_classes, plan.recipe.options, seed).to(device)
        times = epoch_times(model, model.inputs(graph), rows, labels[rows], plan)  # type: ignore[operator]
        record = Record(
            table=plan.table,
            cell=cell,
            method=plan.method,
            seed=seed,
            split_seed=0,
            settings=plan.settings(),
            chosen={},
            num_candidates=1,
            metrics={"milliseconds": round(1000 * median(times), 4)},
            seconds=round(time.perf_counter() - began, 2),
            device=records.device_name(device),
            versions=records.versions(),
        )
        records.append(path, [record])
        logger.info("%s %s seed %d: %s", cell, plan.method, seed, record.metrics)


def epoch_times(
    model: nn.Module, inputs: tuple[object, ...], rows: Tensor, labels: Tensor, plan: Plan[Recipe]
) -> list[float]:
    """The seconds of each epoch after the first few."""
    recipe = plan.recipe
    on_gpu = rows.device.type == "cuda"
    adam = torch.optim.Adam(
        model.parameters(), lr=recipe.learning_rates[0], weight_decay=recipe.weight_decay, fused=True
    )
    model.train()
    times = []
    for _ in range(WARM_UP + recipe.epochs):
        if on_gpu:
            torch.cuda.synchronize()
        began = time.perf_counter()
        adam.zero_grad()
        F.cross_entropy(model(*inputs)[rows], labels).backward()  # type: ignore[no-untyped-call]
        adam.step()
        if on_gpu:
            torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return times[WARM_UP:]
