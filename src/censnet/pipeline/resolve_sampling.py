"""The sampling of the batches, and the settings that depend on it, as the data allow them."""

from __future__ import annotations

import logging
from collections.abc import Collection

import torch

from censnet.errors import SettingsError
from censnet.levels import Level
from censnet.ops.graph import Graph
from censnet.settings.schema import Settings
from censnet.training.choose_sampling import choose_sampling
from censnet.training.devices import total_memory
from censnet.training.task_data import TaskData, build_model, graphs_with

logger = logging.getLogger(__name__)

SAMPLED_STEPS = 1250  # of a training on sampled neighborhoods, unless the user asks for a number of epochs
MIN_EPOCHS = 6
STEPS_OF_GRAPHS = 15_000  # of a training on nodes or edges of many graphs


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


def share_graph(task_data: TaskData, settings: Settings, processes: int) -> Settings:
    """Settings of a training that several processes share: of one graph, each samples parts of its own.

    Where these are refused, the error says so before anything is written.
    """
    if processes == 1 or not isinstance(task_data.graph, Graph) or settings.model.ego_marks:
        return settings
    one = f"{processes} processes would all do the same work on one whole graph"
    if task_data.links is not None:
        raise SettingsError(f"{one}: links are predicted, and each step needs all of them: start one process")
    if settings.model.causal is True:
        raise SettingsError(
            f"{one}: layers are causal, and each step has the whole history: start one process, or set "
            "model.causal=false"
        )
    if settings.training.sampling == "full":
        raise SettingsError(f"{one}: start one process, or set training.sampling=neighbors")
    if settings.training.sampling == "auto":
        logger.info(
            "%d processes share the training: in each step every one has its own rows, with sampled neighborhoods "
            "(training.sampling=neighbors)", processes,
        )  # fmt: skip
        settings = settings.with_training({"sampling": "neighbors"})
    return settings


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
    """The batch size and the number of epochs where nodes or edges of many graphs are predicted.

    The batch size of a preset for nodes or edges is one of nodes or edges, not of graphs. Its number of epochs is for
    sets of a few thousand graphs; larger ones are trained for as many steps.
    """
    of_rows = bool(task_data.targets) and task_data.targets[0].level != Level.GRAPH
    if isinstance(task_data.graph, Graph) or not of_rows:
        return settings
    if "training.batch_size" not in changed:
        settings = settings.with_training({"batch_size": "auto"})
    if "training.epochs" in changed:
        return settings
    samples = len(graphs_with(task_data.graph, task_data.parts, 0))
    steps = max(1, samples // settings.training.batch_size_for(samples))
    return settings.with_training({"epochs": min(settings.training.epochs, max(MIN_EPOCHS, STEPS_OF_GRAPHS // steps))})
