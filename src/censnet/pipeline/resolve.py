"""Settings as they can be followed on the data at hand.

What a preset says and cannot be done is left out. What the user asked for is done, or is an error; so is what nothing
would read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import torch

from censnet.data.dataset import Dataset
from censnet.data.splits.split import Split
from censnet.data.splits.stated import has_wide_masks
from censnet.errors import SettingsError
from censnet.ops.graph import Graph
from censnet.settings.presets import has_network_for_many
from censnet.settings.schema import DIFFUSION_STEPS, MANY, OF_LINKS, DataSettings, Recipe, Settings
from censnet.text import count, plural
from censnet.training.task_data import TaskData

MOST = 2**24  # numbers in one activation up to which gates at rest and further rounds are tried unasked: they take time


def resolve_settings(task_data: TaskData, settings: Settings, asked: Collection[str] = ()) -> Settings:
    """The settings as they can be followed.

    Args:
        lesson: what is learnt from.
        settings: as they were asked for.
        asked: the settings that the user, rather than a preset, asked for.
    """
    return _settle_walks(task_data, _settle_tries(task_data, settings, asked))


def choose_recipes(task_data: TaskData, settings: Settings) -> list[Recipe]:
    """Which networks of a preset are trained: of both, validation rows choose; on a big graph that takes too long."""
    asked = settings.training.recipe
    if asked != "auto":
        return [asked]
    nodes = [target.level for target in task_data.targets[:1]] == ["node"] and has_network_for_many(settings.preset)
    if not nodes or not bool(((task_data.parts["node"] == 0).sum(0) >= MANY).all()):
        return ["low_label"]
    if _is_big(task_data, settings) or any(target.is_wide for target in task_data.targets):
        return ["high_label"]
    return ["low_label", "high_label"] if task_data.has("validation") else ["low_label"]


def check_unused(
    task_data: TaskData, settings: Settings, usual: Settings, dataset: Dataset, splits: list[Split]
) -> None:
    """Raise where a setting differs from the usual one of the preset, and nothing reads it here.

    Args:
        lesson: what is learnt from.
        settings: as they were asked for.
        usual: those of the preset.
        dataset: what was read.
        splits: how its rows were shared out, level by level.
    """
    for name, why in (*_unread(task_data, settings), *_unread_of_data(task_data, settings.data, dataset, splits)):
        group, _, key = name.partition(".")
        value, left = (getattr(getattr(each, group), key) for each in (settings, usual))
        if value != left:
            raise SettingsError(f"{name} is {value}, expected {left}, as it is: nothing reads it, since {why}")


def _unread(task_data: TaskData, settings: Settings) -> Iterator[tuple[str, str]]:
    """The settings that nothing reads here, and why."""
    levels, model = {target.level for target in task_data.targets}, settings.model
    if task_data.links is None:
        for group, names in OF_LINKS.items():
            yield from ((f"{group}.{name}", "it is of links, and none are predicted") for name in names)
        yield "data.link_fractions", "it is of links, and none are predicted"
    elif model.decoder == "inner_product":
        yield "training.negative_ratio", "model.decoder inner draws no pairs"
        yield "training.edge_mask_ratio", "model.decoder inner hides no links"
        yield "model.diffusion_steps", "model.decoder inner reads none"
    else:
        yield "model.positive_weight", f"model.decoder {model.decoder} has as many links as other pairs"
    if not levels:
        yield from (
            (f"model.{name}", "links alone are predicted")
            for name in ("head", "last_layer_is_head", "clip_to_label_range")
        )
    if not task_data.targets or task_data.targets[0].level != "node":
        yield "training.recipe", "it is of nodes, and the first target is none of theirs"
    elif not has_network_for_many(settings.preset):
        yield "training.recipe", f"preset {settings.preset} has one network for nodes"
    if "edge" not in levels:
        yield "model.edge_head_reads_nodes", "no column of edges is predicted"
    if "graph" not in levels:
        yield from (
            (f"model.{name}", "no column of graphs is predicted") for name in ("pool", "pool_from", "pool_norm")
        )
    if model.feature_dropout and task_data.graph.nodes.layout == torch.strided:
        yield "model.feature_dropout", "it takes out words of nodes, and these have features that are not sparse"


def _unread_of_data(
    task_data: TaskData, settings: DataSettings, dataset: Dataset, splits: list[Split]
) -> Iterator[tuple[str, str]]:
    """The settings of the data that nothing reads here, and why."""
    way = settings.split
    if way != "file":
        yield "data.split_file", f"data.split is {way}, and file would read it"
    if way not in ("time", "column"):
        yield "data.split_column", f"data.split is {way}, and time and column would read it"
    if way != "label-rate":
        yield "data.label_rate", f"data.split is {way}, and label-rate would read it"
    if way != "auto" or not any(has_wide_masks(frame) for frame in dataset.tables.frames().values()):
        yield "data.split_index", "the split does not come from masks that have several columns"
    if not any(split.by_fractions for split in splits):
        sources = " and ".join(dict.fromkeys(split.source for split in splits))
        yield "data.fractions", f"the split is not by fractions: {sources}" if sources else "links alone are predicted"
    if task_data.links is not None and way == "file":
        yield "data.link_fractions", "data.split is file"
    if not splits and way != "file":
        yield "data.split", "links alone are predicted, and are hidden at random or as in a file"
    vectors = any(column.kind == "vector" for column in dataset.schema.nodes.columns)
    if dataset.schema.smiles is None and not vectors:
        yield "data.features", "there are neither molecules nor vectors of counts, such as words"


def _settle_walks(task_data: TaskData, settings: Settings) -> Settings:
    """How long the walks are that links are told by. Beside words they added nothing, beside other features much."""
    model = settings.model
    if task_data.links is None or model.decoder == "inner_product" or model.diffusion_steps != "auto":
        return settings
    words = task_data.node_features and task_data.graph.nodes.layout == torch.sparse_csr
    return settings.model_copy(
        update={"model": model.model_copy(update={"diffusion_steps": 0 if words else DIFFUSION_STEPS})}
    )


def _settle_tries(task_data: TaskData, settings: Settings, asked: Collection[str]) -> Settings:
    """Leave out what cannot be tried here: guesses, further rounds, gates at rest."""
    training, model = settings.training, settings.model
    changes: dict[str, object] = {}
    why = _why_not_guess(task_data, settings) if any(training.pseudo_label_weights) else None
    if why is not None:
        if "training.pseudo_label_weights" in asked:
            raise SettingsError(
                f"training.pseudo_label_weights is {training.pseudo_label_weights}, expected [0.0]: there can be no "
                f"pseudo-labels, as {why}"
            )
        changes["pseudo_label_weights"] = [0.0]
    if training.self_training_rounds > 1 and (why is not None or not any(training.pseudo_label_weights)):
        if "training.self_training_rounds" in asked:
            raise SettingsError(
                f"training.self_training_rounds is {training.self_training_rounds}, expected 1: further rounds "
                "learn from pseudo-labels, and "
                + ("training.pseudo_label_weights is 0" if why is None else f"there can be none, as {why}")
            )
        changes["self_training_rounds"] = 1
    moving = model.gate != "bounded" or model.self_weight == "learned"
    if "frozen" in training.gates and moving:
        if "training.gates" in asked:
            raise SettingsError(
                f"training.gates is {training.gates}, expected learnt: with model.gate {model.gate} and "
                f"model.self_weight {model.self_weight} layers do not start as the plain kernel"
            )
        changes["gates"] = ["learned"]
    elif len(training.gates) > 1 and not task_data.has("validation"):
        if "training.gates" in asked:
            raise SettingsError(f"training.gates is {training.gates}, expected one: no validation row has a label")
        changes["gates"] = training.gates[:1]
    if _is_big(task_data, settings):
        few = {"gates": training.gates[:1], "self_training_rounds": 1}
        changes = {name: value for name, value in few.items() if f"training.{name}" not in asked} | changes
    return settings.model_copy(update={"training": training.model_copy(update=changes)})


def _is_big(task_data: TaskData, settings: Settings) -> bool:
    """Whether nothing should be trained twice unasked."""
    return (len(task_data.graph.nodes) + len(task_data.graph.edges)) * settings.model.hidden > MOST


def _why_not_guess(task_data: TaskData, settings: Settings) -> str | None:
    """Why classes of rows without a label cannot be guessed here, if they cannot."""
    if not isinstance(task_data.graph, Graph):
        return "there are many graphs"
    if task_data.links is not None:
        return "links are predicted"
    if len(task_data.targets) != 1:
        return f"there {plural(len(task_data.targets), 'is')} {count(len(task_data.targets), 'target')}"
    (target,) = task_data.targets
    if target.level != "node" or target.kind == "regression":
        return f"{target.level}:{target.column} is {target.kind}" + (" of edges" if target.level == "edge" else "")
    if target.is_wide:
        return f"{target.level}:{target.column} has {len(target.classes):,} classes"
    if settings.training.sampling in ("neighbors", "proportional"):
        return f"training.sampling is {settings.training.sampling}, and guesses need the whole graph in each step"
    if not task_data.has("validation"):
        return "no validation row has a label, and guesses are chosen there"
    return None
