"""Settings of a training with ego marks, where each node is predicted in a graph of its own."""

from __future__ import annotations

from collections.abc import Collection

import torch

from censnet.errors import SettingsError
from censnet.levels import Level
from censnet.ops.graph_set import GraphSet
from censnet.settings.build import check_ego_marks
from censnet.settings.presets import has_high_label_recipe, make_settings, of_ego_marks, values_of
from censnet.settings.schema import Settings
from censnet.training.task_data import TaskData

STEPS = 1280  # of a training, unless the user asks for a number of epochs
MIN_EPOCHS = 6


def resolve_ego_marks(
    task_data: TaskData, settings: Settings, changed: Collection[str], molecules: bool = False
) -> Settings:
    """The settings as they can be followed with ego marks; as they are without.

    Of a preset with two recipes for nodes it is that of one-hop layers: with a kernel of many hops a neighborhood would
    be the whole graph. What the preset states for ego marks overlays it. There are no pseudo-labels and no
    known labels.

    Args:
        task_data: what is learned from.
        settings: of the preset, with the user's changes.
        changed: the settings that the user, rather than the preset, chose.
        molecules: whether the nodes are atoms, for which a preset has one recipe.
    """
    if not settings.model.ego_marks:
        if settings.model.ego_hops != "auto":
            raise SettingsError(
                f"model.ego_hops is {settings.model.ego_hops}, expected auto, as it is: nothing reads it, since "
                "model.ego_marks is false"
            )
        return settings
    check_ego_marks(settings.model, task_data.targets, task_data.links is not None, task_data.graph.odd_width)
    _check_data(task_data, settings, changed)
    if settings.training.recipe == "auto" and has_high_label_recipe(settings.preset) and not molecules:
        changes = of_ego_marks(settings.preset) | values_of(settings, changed) | {"training.recipe": "high_label"}
        settings = make_settings(settings.preset, Level.NODE, changes, settings.seed)
    settings = settings.with_model({"known_labels": False})
    settings = settings.with_training({"pseudo_label_weights": [0.0], "self_training_rounds": 1})
    if isinstance(task_data.graph, GraphSet) and "training.batch_size" not in changed:
        settings = settings.with_training({"batch_size": "auto"})  # that of a preset is for the nodes of one graph
    if "training.epochs" not in changed:
        labeled, training = int((task_data.parts["node"] == 0).any(1).sum()), settings.training
        steps = max(1, labeled // training.batch_size_for(labeled))
        settings = settings.with_training({"epochs": min(max(STEPS // steps, MIN_EPOCHS), training.epochs)})
    return settings


def _check_data(task_data: TaskData, settings: Settings, changed: Collection[str]) -> None:
    """Raise where the data, or settings that the user chose, leave no room for ego marks."""
    training, why = settings.training, None
    if task_data.graph.nodes.layout != torch.strided:
        why = "the features of nodes are sparse"
    elif training.sampling in ("neighbors", "proportional"):
        why = f"training.sampling is {training.sampling}, and the neighborhood of each node is taken whole"
    elif "training.pseudo_label_weights" in changed and any(training.pseudo_label_weights):
        why = "there are pseudo-labels (training.pseudo_label_weights), which need the whole graph in each step"
    elif "training.self_training_rounds" in changed and training.self_training_rounds > 1:
        why = "further rounds (training.self_training_rounds) learn from pseudo-labels, and there are none"
    if why is not None:
        raise SettingsError(f"model.ego_marks is true, expected false: {why}")
