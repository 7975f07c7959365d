"""Direction, positional encodings, structural features, windows and known labels, as the data allow them."""

from __future__ import annotations

from collections.abc import Collection

import torch

from censnet.errors import SettingsError
from censnet.levels import Level
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.ops.triangles import count_wedges
from censnet.pipeline.resolve_sampling import find_sampling
from censnet.settings.model_settings import DIFFUSION_STEPS
from censnet.settings.presets import of_directed_links
from censnet.settings.schema import Settings
from censnet.tasks.inputs import ModelInputs
from censnet.tasks.label_counts import is_counted
from censnet.tasks.targets import Target
from censnet.training.choose_sampling import MAX_FULL_BATCH
from censnet.training.task_data import TaskData

MAX_WINDOW_VALUES = 2**28  # numbers that the features of windows of time have by default: 1 GiB
MAX_WEDGES = 64  # for each edge, up to which triangles are looked for by default
LABEL_FEATURES = "label_counts", "label_factors"
RARE = 0.05  # share of a class, below which counts of known labels are tried
RATED = 20  # training edges of a node, in the mean, from which on a table is one of ratings


def resolve_inputs(task_data: TaskData, settings: Settings, changed: Collection[str]) -> Settings:
    """Direction, positional encodings, structural features and known labels, as the data allow them."""
    model, graph = settings.model, task_data.graph
    sparse = graph.nodes.layout != torch.strided
    changes: dict[str, object] = {}
    if model.directed == "auto":
        changes["directed"] = graph.directed
    elif model.directed and not graph.directed:
        raise SettingsError("model.directed is true, expected false or auto: the edges of the data have no direction")
    if task_data.links is not None and task_data.links.ordered and not task_data.targets:
        of_links = of_directed_links(settings.preset)
        if "model.kernel" not in changed or model.kernel == of_links.get("kernel"):
            changes |= {name: value for name, value in of_links.items() if f"model.{name}" not in changed}
    if model.triangles == "auto":
        changes["triangles"] = _has_few_triangles(task_data, settings)
    elif model.triangles and isinstance(graph, GraphSet):
        raise SettingsError("model.triangles is true, expected false: there are many graphs")
    timed = bool(task_data.widths) and task_data.links is None and not sparse
    if model.windows == "auto" and timed and model.structural_features:
        changes["windows"] = _has_few_windows(task_data)
    elif model.windows is True and not timed:
        raise SettingsError("model.windows is true, expected false: no edge has a time (data.time) that the model sees")
    why = _why_no_known_labels(task_data)
    if model.position_steps == "auto":  # beside known labels it is learned by heart
        off = task_data.node_features or isinstance(graph, GraphSet) or (model.known_labels and why is None)
        changes["position_steps"] = 0 if off else DIFFUSION_STEPS
    for name in ("structural_features", "position_steps"):
        if sparse and changes.get(name, getattr(model, name)):
            if f"model.{name}" in changed:
                raise SettingsError(f"model.{name} is {getattr(model, name)}, but the features of nodes are sparse")
            changes[name] = 0 if name == "position_steps" else False
    if model.known_labels and why is not None:
        if "model.known_labels" in changed and model.known_labels is True:
            raise SettingsError(f"model.known_labels is true, expected false: known labels are of no use, as {why}")
        changes["known_labels"] = False
    elif model.known_labels == "auto":
        changes["known_labels"] = True
    known = changes.get("known_labels", model.known_labels)
    for name in LABEL_FEATURES:
        if getattr(model, name) is True and known is False:
            if f"model.{name}" in changed:
                why = "model.known_labels is false" if why is None else f"known labels are of no use, as {why}"
                raise SettingsError(f"model.{name} is true, expected false or auto: {why}")
            changes[name] = False
        elif getattr(model, name) == "auto" and not (known and name in _compared_label_features(task_data, settings)):
            changes[name] = False
    return settings.with_model(changes)


def _has_few_windows(task_data: TaskData) -> bool:
    """Whether the features of windows of time fit into memory by default."""
    known = [target for target in task_data.targets if target.level == "edge"]
    inputs = ModelInputs(known=known, directed=task_data.graph.directed, widths=task_data.widths)
    return task_data.graph.num_edges * inputs.edge_width <= MAX_WINDOW_VALUES


def _has_few_triangles(task_data: TaskData, settings: Settings) -> bool:
    """Whether triangles are looked for by default: on one graph that fits a step, at a cost of a few layers."""
    graph, model = task_data.graph, settings.model
    if (
        not isinstance(graph, Graph)
        or task_data.links is not None
        or settings.training.sampling not in ("auto", "full")
    ):
        return False
    values = (graph.num_nodes + graph.num_edges) * model.hidden * len(model.layers)
    return values <= MAX_FULL_BATCH and count_wedges(graph.incidence) <= MAX_WEDGES * max(graph.num_edges, 1)


def _why_no_known_labels(task_data: TaskData) -> str | None:
    """The reason why known labels cannot be inputs, if there is one."""
    if not isinstance(task_data.graph, Graph):
        return "there are many graphs, whose rows have no edge to each other"
    if task_data.links is not None:
        return "links are predicted, too"
    if not task_data.targets:
        return "no column is predicted"
    wide = next((target for target in task_data.targets if target.is_wide), None)
    if wide is not None:
        return f"{wide.name} has {len(wide.classes):,} classes"
    sparse = task_data.graph.nodes.layout != torch.strided
    if sparse and any(target.level == "node" for target in task_data.targets):
        return "the features of nodes are sparse"
    return None


def _compared_label_features(task_data: TaskData, settings: Settings) -> Collection[str]:
    """The features of known labels that a preset compares with none, which costs a second training.

    Counts, where a class is so rare that a share says little, and with factors of numbers on a graph that is trained as
    a whole where nodes have many labels, as in a table of ratings.
    """
    if any(
        not target.is_number and is_counted(target) and _rarest_share(task_data, target) < RARE
        for target in task_data.targets
        if target.level in (Level.NODE, Level.EDGE)
    ):
        return ["label_counts"]
    numbers = any(target.level == Level.EDGE and target.is_number for target in task_data.targets)
    return LABEL_FEATURES if numbers and _is_rated(task_data) and find_sampling(task_data, settings) == "full" else []


def _rarest_share(task_data: TaskData, target: Target) -> float:
    """The share of the rarest class that training labels have."""
    column = task_data.of(target.level).index(target)
    labels = task_data.labels[target.level][task_data.training_rows(target.level), column]
    times = torch.bincount(labels[~labels.isnan()].long())
    return float(times[times > 0].min() / times.sum()) if len(times) else 1.0


def _is_rated(task_data: TaskData) -> bool:
    """Whether the nodes at both ends of the training edges have many of them."""
    ends = task_data.graph.global_ends[:, task_data.training_rows("edge")]
    return ends.shape[1] >= RATED * max(len(torch.unique(end)) for end in ends)
