"""Settings of a training whose layers are causal, so that every edge is predicted from its past alone."""

from __future__ import annotations

from collections.abc import Collection

import torch

from censnet.errors import SettingsError
from censnet.levels import Level, main_level
from censnet.ops.graph import Graph
from censnet.settings.oriented import is_oriented
from censnet.settings.presets import make_settings, of_causal, values_of
from censnet.settings.schema import Settings
from censnet.training.task_data import TaskData

MANY_EDGES = 2**16  # above, a step takes a part of the history; where it cannot, there are fewer epochs, but at least
MIN_EPOCHS = 60
STEPS_IN_PARTS, MIN_PASSES = 1000, 4  # of a training on parts of a history
PART = 4096  # labeled edges of a step on a part of a long history
ALONE = {  # features of the whole graph
    "structural_features": False,
    "windows": False,
    "ports": False,
    "position_steps": 0,
    "label_counts": False,
    "label_factors": False,
}


def resolve_causal(task_data: TaskData, settings: Settings, changed: Collection[str]) -> Settings:
    """The settings as they can be followed with causal layers; with `model.causal` false where there are none.

    What the preset states for causal layers overlays the rest. Features that are counted on the whole graph, which tell
    of the future, are off.

    Args:
        task_data: what is learned from.
        settings: of the preset, with the user's changes.
        changed: the settings that the user, rather than the preset, chose.
    """
    why, wanted = _why_not(task_data, settings), settings.model.causal
    if "model.causal" not in changed and "edge" in task_data.parts:
        wanted = make_settings(settings.preset, Level.EDGE).model.causal  # in whatever order the targets are
    if wanted == "auto":
        asked = "C" in settings.model.layers or "model.layers" not in changed
        causal = why is None and asked and "edge" in task_data.parts and task_data.is_by_time
        chosen = [name for name in ALONE if f"model.{name}" in changed]
        causal = causal and not any(getattr(settings.model, name) is True for name in chosen)
    else:
        causal = wanted
    if not causal:
        if set(settings.model.layers) == {"C"}:
            raise SettingsError(f"model.layers is {settings.model.layers}, expected model.causal=true beside it")
        if settings.model.decay_rates:
            rates = settings.model.decay_rates
            raise SettingsError(f"model.decay_rates is {rates}, expected 0: nothing reads it without model.causal")
        if settings.training.sampling == "history":
            raise SettingsError("training.sampling is history, expected auto or full: layers are not causal")
        return settings.with_model({"causal": False})
    if why is not None:
        raise SettingsError(f"model.causal is true, expected false: {why}")
    for name, off in ALONE.items():
        value = getattr(settings.model, name)
        if f"model.{name}" in changed and value not in (off, "auto"):
            raise SettingsError(f"model.{name} is {value}, expected {off} beside model.causal: it uses later edges")
    stated = of_causal(settings.preset) | values_of(settings, set(changed)) | {"model.causal": True}
    section = main_level(target.level for target in task_data.targets)
    settings = make_settings(settings.preset, section, stated, settings.seed)
    if set(settings.model.layers) != {"C"}:
        raise SettingsError(f"model.layers is {settings.model.layers}, expected letters C: others use later edges")
    one: dict[str, object] = {"pseudo_label_weights": [0.0], "gates": ["learned"], "self_training_rounds": 1}
    if section == Level.NODE:
        one["recipe"] = "low_label"
    settings = settings.with_model({**ALONE, "last_layer_is_head": False})
    settings = settings.with_training(one)
    return _resolve_sampling(task_data, settings, changed)


def _resolve_sampling(task_data: TaskData, settings: Settings, changed: Collection[str]) -> Settings:
    """Whether a step takes the whole history or a part of it, and the number of epochs."""
    training, edges = settings.training, task_data.graph.num_edges
    why = _why_not_in_parts(task_data, settings)
    in_parts = training.sampling == "history" or (
        training.sampling == "auto" and why is None and edges > MANY_EDGES and "training.batch_size" not in changed
    )
    if training.sampling == "history" and why is not None:
        raise SettingsError(f"training.sampling is history, expected full: {why}")
    changes: dict[str, object] = {"sampling": "history" if in_parts else "full"}
    if in_parts and "training.batch_size" not in changed:
        changes["batch_size"] = PART
    settings = settings.with_training(changes)
    if "training.epochs" in changed:
        return settings
    most = training.epochs
    if not in_parts:
        return settings.with_training({"epochs": min(most, max(most * MANY_EDGES // max(edges, 1), MIN_EPOCHS))})
    labeled = int((task_data.parts["edge"] == 0).any(1).sum())
    steps = max(1, labeled // settings.training.batch_size_for(labeled))
    epochs = min(most, max(STEPS_IN_PARTS // steps, MIN_PASSES))
    changes = {"epochs": epochs}
    if "training.validate_every" not in changed:
        changes["validate_every"] = max(1, min(training.validate_every, epochs // 8))
    return settings.with_training(changes)


def _why_not_in_parts(task_data: TaskData, settings: Settings) -> str | None:
    """The reason why a step cannot take a part of the history, if there is one."""
    if set(task_data.parts) != {"edge"}:
        return "nodes are predicted, as of the last edge"
    if settings.model.decay_rates:
        return f"model.decay_rates is {settings.model.decay_rates}"
    if settings.training.stale_label_ratio:
        return f"training.stale_label_ratio is {settings.training.stale_label_ratio}"
    return None


def _why_not(task_data: TaskData, settings: Settings) -> str | None:
    """The reason why layers cannot be causal, if there is one."""
    graph = task_data.graph
    if not isinstance(graph, Graph):
        return "there are many graphs, and a history is one"
    if graph.times is None:
        return "edges have no times (data.time)"
    if task_data.links is not None or not task_data.targets:
        return "links are predicted, and causal layers embed edges that are there"
    if is_oriented(task_data.targets, graph.odd_width):
        return "a column or target is oriented"
    if graph.nodes.layout != torch.strided:
        return "the features of nodes are sparse"
    if settings.training.sampling in ("neighbors", "proportional"):
        return f"training.sampling is {settings.training.sampling}, and a sampled past would lack events"
    if settings.model.ego_marks:
        return "model.ego_marks is true"
    return None
