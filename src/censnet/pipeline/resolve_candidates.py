"""The recipes and the candidates that are trained and compared on validation rows, as the data allow them."""

from __future__ import annotations

from collections.abc import Collection

import torch

from censnet.errors import SettingsError
from censnet.levels import Level, main_level
from censnet.ops.graph import Graph
from censnet.ops.structure import assortativity
from censnet.settings.presets import has_high_label_recipe
from censnet.settings.schema import Settings
from censnet.settings.training_settings import MANY, Recipe
from censnet.text import count, plural
from censnet.training.task_data import TaskData

LABELED_PAIRS = 100  # edges between training nodes, from which on these tell whether neighbors are alike
ALIKE = 0.2  # assortativity of their labels, below which low-pass propagation (recipe low_label) is not tried
WELL_LABELED = 0.2  # share of the nodes with training labels, from which on pseudo-labels of the others are not tried
MOST = 2**24  # numbers in one activation up to which frozen gates and further rounds are candidates by default
CANDIDATES = {"training.pseudo_label_weights", "training.gates", "training.self_training_rounds"}


def choose_recipes(task_data: TaskData, settings: Settings, changed: Collection[str] = ()) -> list[Recipe]:
    """The recipes of a preset to train: from `MANY` labeled nodes on both, unless the graph is big.

    The recipe for few labels averages over neighborhoods, which helps where neighbors are alike. Where the edges
    between training nodes show that they are not, it is left out, unless the user asks for candidates of it.
    """
    chosen = settings.training.recipe
    if chosen != "auto":
        return [chosen]
    of_nodes = main_level(target.level for target in task_data.targets) == Level.NODE
    nodes = of_nodes and has_high_label_recipe(settings.preset)
    if not nodes or not bool(((task_data.parts["node"] == 0).sum(0) >= MANY).all()):
        return ["low_label"]
    if is_big(task_data, settings) or any(target.is_wide for target in task_data.targets):
        return ["high_label"]
    if not task_data.has("validation"):
        return ["low_label"]
    if CANDIDATES.intersection(changed) or _has_like_neighbors(task_data):
        return ["low_label", "high_label"]
    return ["high_label"]


def _has_like_neighbors(task_data: TaskData) -> bool:
    """Whether neighbors have like labels, by the edges between training nodes."""
    ends = task_data.graph.global_ends
    labels = task_data.labels["node"].masked_fill(~task_data.training_rows("node").unsqueeze(1), torch.nan)
    for target, values in zip(task_data.of("node"), labels.unbind(1), strict=True):
        known = ~values.isnan()
        if int((known[ends[0]] & known[ends[1]]).sum()) < LABELED_PAIRS:
            return True
        if not target.is_number:
            one_hot = torch.eye(len(target.classes))[values.nan_to_num().long()]
            spread = one_hot.masked_fill(~known.unsqueeze(1), torch.nan)
        else:
            spread = values.unsqueeze(1)
        if assortativity(spread, ends) >= ALIKE:
            return True
    return False


def resolve_candidates(task_data: TaskData, settings: Settings, changed: Collection[str]) -> Settings:
    """Leave out candidates that cannot be trained: pseudo-labels, further self-training rounds, frozen gates."""
    training, model = settings.training, settings.model
    changes: dict[str, object] = {}
    why = _why_no_pseudo_labels(task_data, settings) if any(training.pseudo_label_weights) else None
    if why is not None:
        if "training.pseudo_label_weights" in changed:
            raise SettingsError(
                f"training.pseudo_label_weights is {training.pseudo_label_weights}, expected [0.0]: there can be no "
                f"pseudo-labels, as {why}"
            )
        changes["pseudo_label_weights"] = [0.0]
    if training.self_training_rounds > 1 and (why is not None or not any(training.pseudo_label_weights)):
        if "training.self_training_rounds" in changed:
            raise SettingsError(
                f"training.self_training_rounds is {training.self_training_rounds}, expected 1: further rounds "
                "learn from pseudo-labels, and "
                + ("training.pseudo_label_weights is 0" if why is None else f"there can be none, as {why}")
            )
        changes["self_training_rounds"] = 1
    moving = model.gate != "bounded" or model.self_weight == "learned"
    if "frozen" in training.gates and moving:
        if "training.gates" in changed:
            raise SettingsError(
                f"training.gates is {training.gates}, expected learned: with model.gate {model.gate} and "
                f"model.self_weight {model.self_weight} layers do not start as the kernel without gates"
            )
        changes["gates"] = ["learned"]
    elif len(training.gates) > 1 and not task_data.has("validation"):
        if "training.gates" in changed:
            raise SettingsError(f"training.gates is {training.gates}, expected one: no validation row has a label")
        changes["gates"] = training.gates[:1]
    if is_big(task_data, settings):
        few = {"gates": training.gates[:1], "self_training_rounds": 1}
        changes = {name: value for name, value in few.items() if f"training.{name}" not in changed} | changes
    if _is_well_labeled(task_data):
        none: dict[str, object] = {"pseudo_label_weights": [0.0], "self_training_rounds": 1}
        if not any(f"training.{name}" in changed for name in none):
            changes |= none
    return settings.with_training(changes)


def is_big(task_data: TaskData, settings: Settings) -> bool:
    """Whether the graph is too big to train several candidates by default."""
    return (len(task_data.graph.nodes) + len(task_data.graph.edges)) * settings.model.hidden > MOST


def _is_well_labeled(task_data: TaskData) -> bool:
    """Whether so many nodes are labeled that pseudo-labels of the others would add little."""
    if "node" not in task_data.parts:
        return False
    labeled = int(task_data.training_rows("node").sum())
    return labeled >= max(MANY, WELL_LABELED * len(task_data.graph.nodes))


def _why_no_pseudo_labels(task_data: TaskData, settings: Settings) -> str | None:
    """The reason why there can be no pseudo-labels, if there is one."""
    if not isinstance(task_data.graph, Graph):
        return "there are many graphs"
    if task_data.links is not None:
        return "links are predicted"
    if len(task_data.targets) != 1:
        return f"there {plural(len(task_data.targets), 'is')} {count(len(task_data.targets), 'target')}"
    (target,) = task_data.targets
    if target.level != "node" or target.is_number:
        return f"{target.level}:{target.column} is {target.kind}" + (" of edges" if target.level == "edge" else "")
    if target.is_wide:
        return f"{target.level}:{target.column} has {len(target.classes):,} classes"
    if settings.training.sampling in ("neighbors", "proportional"):
        return f"training.sampling is {settings.training.sampling}, and pseudo-labels need the whole graph in each step"
    if not task_data.has("validation"):
        return "no validation row has a label, and pseudo-labels are selected there"
    return None
