"""Resolve settings: from what a user gives to the settings of each recipe that is trained on the data.

Settings of a preset that cannot be followed on the data are left out. A setting that the user chose is followed, or is
an error; so is one that nothing would read.
"""

from __future__ import annotations

from collections.abc import Collection

import torch

from censnet.data.dataset import Dataset
from censnet.data.splits.split_file import Split
from censnet.errors import SettingsError
from censnet.levels import Level, main_level
from censnet.ops.graph import Graph
from censnet.pipeline.resolve_candidates import CANDIDATES, choose_recipes, resolve_candidates
from censnet.pipeline.resolve_inputs import label_feature_recipes, resolve_inputs
from censnet.pipeline.resolve_sampling import resolve_batches, resolve_sampling
from censnet.pipeline.unused_settings import check_unused
from censnet.settings.model_settings import DIFFUSION_STEPS
from censnet.settings.oriented import is_oriented, with_steps, without_unread
from censnet.settings.presets import make_settings, values_of
from censnet.settings.schema import MOLECULE, ORIENTED, Settings
from censnet.settings.training_settings import Recipe
from censnet.training.task_data import TaskData


def resolve_recipes(
    task_data: TaskData, settings: Settings, changed: Collection[str], dataset: Dataset, splits: Collection[Split]
) -> list[Settings]:
    """The settings of each recipe to train. A changed setting that nothing reads is an error.

    Args:
        task_data: what is learned from.
        settings: of the preset, with the user's changes.
        changed: the settings that the user, rather than the preset, chose.
        dataset: the data.
        splits: of the rows of each level.
    """
    section: str = main_level(target.level for target in task_data.targets)
    if is_oriented(task_data.targets, task_data.graph.odd_width):
        section = ORIENTED
    elif dataset.schema.smiles is not None and section in (Level.NODE, Level.EDGE):
        section = MOLECULE
    link = task_data.links is not None
    usual = make_settings(settings.preset, section, None, settings.seed, link)
    check_unused(task_data, settings, usual, dataset, splits)
    found = []
    one_recipe: list[Recipe] = ["low_label"]
    for recipe in one_recipe if section in (ORIENTED, MOLECULE) else choose_recipes(task_data, settings, changed):
        one = settings
        if recipe == "high_label" and settings.training.recipe != "high_label":
            # candidates of the other are not its own
            changes = values_of(settings, set(changed) - CANDIDATES) | {"training.recipe": "high_label"}
            one = make_settings(settings.preset, section, changes, settings.seed, link)
        found += label_feature_recipes(task_data, resolve_settings(task_data, one, changed), changed)
    return [each for one in found for each in _descriptor_recipes(task_data, one)]


def _descriptor_recipes(task_data: TaskData, settings: Settings) -> list[Settings]:
    """The settings without and with descriptors of molecules at the head, where validation is to select."""
    if settings.data.descriptors in (True, False):
        return [settings]
    without, with_ = (
        settings.model_copy(update={"data": settings.data.model_copy(update={"descriptors": value})})
        for value in (False, True)
    )
    return [without, with_] if task_data.descriptors and task_data.has("validation") else [without]


def resolve_settings(task_data: TaskData, settings: Settings, changed: Collection[str] = ()) -> Settings:
    """The settings of one recipe as they can be followed on the data; the arguments are those of `resolve_recipes`."""
    if is_oriented(task_data.targets, task_data.graph.odd_width):
        settings = settings.model_copy(update={"model": without_unread(settings.model)})
        if isinstance(task_data.graph, Graph) and settings.preset == "strong":
            settings = with_steps(settings, changed)
        if task_data.links is not None:
            raise SettingsError(
                "links are predicted, expected none beside an oriented column or target: train two models"
            )
    settings = _resolve_diffusion(task_data, resolve_candidates(task_data, settings, changed))
    settings = resolve_batches(task_data, resolve_inputs(task_data, settings, changed), changed)
    return resolve_sampling(task_data, settings, changed)


def _resolve_diffusion(task_data: TaskData, settings: Settings) -> Settings:
    """The steps of the diffusion embedding. Beside bag-of-words features it added nothing, beside others much."""
    model = settings.model
    if task_data.links is None or model.decoder == "inner_product" or model.diffusion_steps != "auto":
        return settings
    words = task_data.node_features and task_data.graph.nodes.layout == torch.sparse_csr
    return settings.with_model({"diffusion_steps": 0 if words else DIFFUSION_STEPS})
