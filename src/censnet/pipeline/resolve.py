"""Resolve settings: from what a user gives to the settings of each recipe that is trained on the data.

Settings of a preset that cannot be followed on the data are left out. A setting that the user chose is followed, or is
an error; so is one that nothing would read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import torch

from censnet.data.dataset import Dataset
from censnet.data.splits.split_file import Split
from censnet.data.splits.stated import has_wide_masks
from censnet.errors import SettingsError
from censnet.levels import Level, main_level
from censnet.ops.graph import Graph
from censnet.option_names import setting_option
from censnet.pipeline.resolve_candidates import CANDIDATES, choose_recipes, resolve_candidates
from censnet.pipeline.resolve_inputs import LABEL_FEATURES, resolve_inputs
from censnet.pipeline.resolve_sampling import resolve_batches, resolve_sampling
from censnet.settings.model_settings import DIFFUSION_STEPS
from censnet.settings.oriented import UNREAD, is_oriented, with_steps, without_unread
from censnet.settings.presets import has_high_label_recipe, make_settings, values_of
from censnet.settings.schema import MOLECULE, OF_LINKS, ORIENTED, DataSettings, Settings
from censnet.settings.training_settings import Recipe
from censnet.training.task_data import TaskData

COMPARED_EPOCHS = 0.8  # share of the epochs of one training that each of two has, without and with label features


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


def label_feature_recipes(task_data: TaskData, settings: Settings, changed: Collection[str]) -> list[Settings]:
    """The settings without and with counts and factors of known labels, where these are "auto" and can be compared.

    Both have fewer epochs than one alone, unless the user asks for a number.
    """
    auto = [name for name in LABEL_FEATURES if getattr(settings.model, name) == "auto"]
    if not auto:
        return [settings]
    without = settings.with_model(dict.fromkeys(auto, False))
    if not task_data.has("validation"):
        return [without]
    if "training.epochs" not in changed:
        epochs = max(1, round(settings.training.epochs * COMPARED_EPOCHS))
        without = without.with_training({"epochs": epochs})
    return [without, without.with_model(dict.fromkeys(auto, True))]


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


def check_unused(
    task_data: TaskData, settings: Settings, usual: Settings, dataset: Dataset, splits: Collection[Split]
) -> None:
    """Raise where a setting differs from that of the preset, `usual`, and nothing reads it."""
    for name, why in (*_unused(task_data, settings), *_unused_of_data(task_data, settings.data, dataset, splits)):
        group, _, key = name.partition(".")
        value, left = (getattr(getattr(each, group), key) for each in (settings, usual))
        if value != left:
            raise SettingsError(f"{name} is {value}, expected {left}, as it is: nothing reads it, since {why}")


def _unused(task_data: TaskData, settings: Settings) -> Iterator[tuple[str, str]]:
    """The settings of model and training that nothing reads, and why."""
    levels, model = {target.level for target in task_data.targets}, settings.model
    if is_oriented(task_data.targets, task_data.graph.odd_width):
        yield from ((f"model.{name}", why) for name, (_, why) in UNREAD.items())
        yield "training.recipe", "it is of nodes, and a column or target is oriented"
        yield "training.gates", "oriented layers do not start as a kernel without gates"
    else:
        yield from ((f"model.{name}", "no column or target is oriented") for name in ("potentials", "log_features"))
    if task_data.links is None:
        for group, names in OF_LINKS.items():
            yield from ((f"{group}.{name}", "it is of links, and none are predicted") for name in names)
        yield "data.link_fractions", "it is of links, and none are predicted"
    elif model.decoder == "inner_product":
        yield "training.negative_ratio", "model.decoder inner_product samples no negatives"
        yield "training.edge_mask_ratio", "model.decoder inner_product masks no edges"
        yield "model.diffusion_steps", "model.decoder inner_product reads no diffusion embedding"
    else:
        yield "model.positive_weight", f"model.decoder {model.decoder} trains on as many links as negatives"
    if not levels:
        yield from (
            (f"model.{name}", "links alone are predicted")
            for name in ("head", "last_layer_is_head", "clip_to_label_range")
        )
    if main_level(target.level for target in task_data.targets) != Level.NODE:
        other = "edges are predicted" if "edge" in levels else "the first target is of another level"
        yield "training.recipe", f"it is of nodes, and {other}"
    elif not has_high_label_recipe(settings.preset):
        yield "training.recipe", f"preset {settings.preset} has one recipe for nodes"
    if not any(target.kind == "binary" for target in task_data.targets):
        yield from ((f"training.{name}", "no target has two classes") for name in ("cost", "recall"))
    if "edge" not in levels:
        yield "model.edge_head_reads_nodes", "no column of edges is predicted"
    if "graph" not in levels:
        yield from (
            (f"model.{name}", "no column of graphs is predicted") for name in ("pool", "pool_from", "pool_norm")
        )
    if model.feature_dropout and task_data.graph.nodes.layout == torch.strided:
        yield "model.feature_dropout", "it drops sparse features of nodes, and these are dense"


def _unused_of_data(
    task_data: TaskData, settings: DataSettings, dataset: Dataset, splits: Collection[Split]
) -> Iterator[tuple[str, str]]:
    """The settings of the data that nothing reads, and why."""
    way = settings.split
    if way != "file":
        yield "data.split_file", f"data.split is {way}, and file would read it"
    if way not in ("time", "column"):
        ask = setting_option("data.split", "column")
        yield "data.split_column", f"data.split is {way}, and time and column would read it: {ask}"
    if not task_data.is_by_time:
        yield "data.label_delay", "edges are not split by time, so later labels are known, too"
    timed = task_data.graph.times is not None and way in ("auto", "time")
    links_by_time = timed and task_data.links is not None
    if not (timed and "edge" in task_data.parts) and not links_by_time:
        yield "data.split_times", "edges are not split by their times"
    if way != "label-rate":
        yield "data.label_rate", f"data.split is {way}, and label-rate would read it"
    if way != "auto" or not any(has_wide_masks(frame) for frame in dataset.tables.frames().values()):
        yield "data.split_index", "the split does not come from masks that have several columns"
    if not any(split.by_fractions for split in splits):
        sources = " and ".join(dict.fromkeys(split.source for split in splits))
        yield "data.fractions", f"the split is not by fractions: {sources}" if sources else "links alone are predicted"
    if task_data.links is not None and (way == "file" or (links_by_time and settings.split_times is not None)):
        yield "data.link_fractions", "data.split is file" if way == "file" else "data.split_times splits links"
    if not splits and way != "file" and task_data.graph.times is None:
        yield "data.split", "links alone are predicted, and are held out at random or as in a file"
    vectors = any(column.kind == "vector" for column in dataset.schema.nodes.columns)
    if dataset.schema.smiles is None and not vectors:
        yield "data.features", "there are neither molecules nor vectors of counts, such as words"
