"""Time of an epoch on Cora, which the paper states in one sentence."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from censnet.errors import ArgumentError
from censnet_experiments.data import NodeData
from censnet_experiments.models import build_node_model
from censnet_experiments.plan import Plan, Recipe
from censnet_experiments.records import Record, Run

WARMUP = 20  # epochs before the clock counts


def time_runs(plan: Plan[Recipe], runs: Sequence[Run], data: NodeData) -> list[Record]:
    """Record for each run the median time of an epoch, in milliseconds.

    The cell names the device: "cora-gpu" needs a GPU, "cora-cpu" runs on the host.
    """
    records = []
    for cell, seed in runs:
        device = torch.device("cuda" if cell.endswith("-gpu") else "cpu")
        if device.type == "cuda" and not torch.cuda.is_available():
            raise ArgumentError(f"{cell} is timed on a GPU and there is none: leave it out with --cell {cell[:-4]}-cpu")
        graph, labels = data.graph.to(device), data.labels.to(device)
        train = (data.parts["cora-3"][0] == 0).nonzero().squeeze(1).to(device)
        start = time.perf_counter()
        model = build_node_model(plan.recipe.model, data.graph, data.num_classes, plan.recipe.options, seed).to(device)
        times = epoch_times(model, model.inputs(graph), train, labels[train], plan.recipe)  # type: ignore[operator]
        seconds = time.perf_counter() - start
        record = Record.of(plan, (cell, seed), {"milliseconds": round(1000 * median(times), 4)}, seconds, device)
        records.append(replace(record, split_seed=0))  # whose training nodes every seed has
    return records


def epoch_times(
    model: nn.Module, inputs: tuple[object, ...], train: Tensor, labels: Tensor, recipe: Recipe
) -> list[float]:
    """The seconds of each epoch after the warm-up."""
    on_gpu = train.device.type == "cuda"
    adam = torch.optim.Adam(
        model.parameters(), lr=recipe.learning_rates[0], weight_decay=recipe.weight_decay, fused=True
    )
    model.train()
    times = []
    for _ in range(WARMUP + recipe.epochs):
        if on_gpu:
            torch.cuda.synchronize()
        start = time.perf_counter()
        adam.zero_grad()
        F.cross_entropy(model(*inputs)[train], labels).backward()  # type: ignore[no-untyped-call]
        adam.step()
        if on_gpu:
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return times[WARMUP:]
