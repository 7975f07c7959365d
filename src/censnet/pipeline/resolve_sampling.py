"""How samples are drawn for each step, and the settings that depend on it, as the data allow them."""

from __future__ import annotations

from collections.abc import Collection

import torch

from censnet.levels import Level
from censnet.ops.graph import Graph
from censnet.settings.schema import Settings
from censnet.training.batches import choose_sampling
from censnet.training.devices import total_memory
from censnet.training.task_data import TaskData, build_model

SAMPLED_STEPS = 1250  # of a training on sampled neighborhoods, unless the user asks for a number of epochs
MIN_EPOCHS = 6


def resolve_sampling(task_data: TaskData, settings: Settings, changed: Collection[str]) -> Settings:
    """Settings that depend on whether neighborhoods are sampled: normalization, and the number of epochs.

    The number of epochs of a preset is for full batches, one step each.
    """
    training, sampling = settings.training, find_sampling(task_data, settings)
    if settings.model.norm == "auto":
        norm = "layer" if sampling == "neighbors" else "batch"
        settings = settings.with_model({"norm": norm})
    if sampling == "neighbors":  # the potentials of a part are not those of the whole graph
        settings = settings.with_model({"potentials": 0})
    if sampling != "neighbors" or "training.epochs" in changed:
        return settings
    labeled = max(int((part == 0).any(1).sum()) for part in task_data.parts.values())
    steps = max(1, min(labeled // training.batch_size_for(labeled), training.max_steps_per_epoch or labeled))
    changes = {"epochs": min(max(SAMPLED_STEPS // steps, MIN_EPOCHS), training.epochs)}
    if "training.patience" not in changed and training.patience is not None:
        changes["patience"] = min(max(changes["epochs"] // 3, MIN_EPOCHS // 2), training.patience)
    return settings.with_training(changes)


def find_sampling(task_data: TaskData, settings: Settings) -> str:
    """The sampling that the training will choose."""
    if not isinstance(task_data.graph, Graph) or task_data.links is not None or task_data.members > 1:
        return "full"
    with torch.device("meta"):
        model = build_model(task_data, settings)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    chosen = choose_sampling(task_data, settings.training, model, total_memory(device), device.type == "cpu")
    return chosen.sampling


def resolve_batches(task_data: TaskData, settings: Settings, changed: Collection[str]) -> Settings:
    """The batch size for many graphs: of a preset for nodes or edges it is one of nodes or edges, not of graphs."""
    of_rows = bool(task_data.targets) and task_data.targets[0].level != Level.GRAPH
    if isinstance(task_data.graph, Graph) or not of_rows or "training.batch_size" in changed:
        return settings
    return settings.with_training({"batch_size": "auto"})
