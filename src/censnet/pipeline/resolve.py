"""Resolve settings: from what a user gives to the settings of each recipe that is trained on the data.

Settings of a preset that cannot be followed on the data are left out. A setting that the user chose is followed, or is
an error; so is one that nothing would read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import cast

import torch

from censnet.data.dataset import Dataset
from censnet.data.splits.split_file import Split
from censnet.data.tables.target_spec import TargetLike, Targets, TargetSpec, parse_targets
from censnet.errors import ArgumentError, SettingsError
from censnet.levels import Level
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.ops.structure import assortativity
from censnet.ops.triangles import count_wedges
from censnet.pipeline.splitting import has_wide_masks
from censnet.settings.oriented import UNREAD, is_oriented, with_steps, without_unread
from censnet.settings.presets import Changes, dotted, has_high_label_recipe, make_settings, of_directed_links, values_of
from censnet.settings.schema import (
    DIFFUSION_STEPS,
    MANY,
    MOLECULE,
    OF_LINKS,
    ORIENTED,
    DataSettings,
    Recipe,
    Settings,
)
from censnet.tasks.inputs import ModelInputs
from censnet.tasks.label_counts import is_counted
from censnet.tasks.targets import Target
from censnet.text import count, plural
from censnet.training.batches import MAX_FULL_BATCH, choose_sampling
from censnet.training.devices import total_memory
from censnet.training.task_data import TaskData, build_model

TargetsLike = Targets | Target | Sequence[TargetLike | Target]  # as users write them, or of another run

SAMPLED_STEPS = 1250  # of a training on sampled neighborhoods, unless the user asks for a number of epochs
MIN_EPOCHS = 6
LABELED_PAIRS = 100  # edges between training nodes, from which on these tell whether neighbors are alike
ALIKE = 0.2  # assortativity of their labels, below which low-pass propagation (recipe low_label) is not tried
WELL_LABELED = 0.2  # share of the nodes with training labels, from which on pseudo-labels of the others are not tried
MAX_WINDOW_VALUES = 2**28  # numbers that the features of windows of time have by default: 1 GiB
MAX_WEDGES = 64  # for each edge, up to which triangles are looked for by default
LABEL_FEATURES = "label_counts", "label_factors"
RARE = 0.05  # share of a class, below which counts of known labels are tried
RATED = 20  # training edges of a node, in the mean, from which on a table is one of ratings
COMPARED_EPOCHS = 0.8  # share of the epochs of a training without and with these features, which is two trainings
MOST = 2**24  # numbers in one activation up to which frozen gates and further rounds are candidates by default
CANDIDATES = {"training.pseudo_label_weights", "training.gates", "training.self_training_rounds"}


def as_specs(target: TargetsLike) -> Targets:
    """Targets, with a `TargetSpec` of the same level, column, kind and positive class for each fitted `Target`.

    >>> as_specs(Target(level="edge", column="fraud", kind="binary", classes=["no", "yes"]))
    [TargetSpec(edge:fraud=binary:yes)]
    """
    items = [target] if isinstance(target, str | TargetSpec | Target) else list(target)
    if not any(isinstance(item, Target) for item in items):
        return cast(Targets, target)
    return [
        TargetSpec(item.level, item.column, item.kind, item.classes[1] if item.kind == "binary" else None)
        if isinstance(item, Target)
        else item
        for item in items
    ]


def read_settings(
    settings: Changes | None, target: Targets, preset: str, seed: int
) -> tuple[dict[str, object], str, int]:
    """A user's settings as changes of a preset by dotted names, the preset, and the seed.

    A `Settings` object brings its own preset and seed; its changes are the fields that were set and differ from the
    preset.

    Args:
        settings: as given to `train`.
        target: decides the section of the preset.
        preset, seed: as given to `train`.
    """
    changes = dotted(settings)
    if not isinstance(settings, Settings):
        return changes, preset, seed
    for name, given, default, own in (("preset", preset, "strong", settings.preset), ("seed", seed, 0, settings.seed)):
        if given not in (default, own):
            raise ArgumentError(f"{name} is {given!r}, and that of settings is {own!r}, expected one of them")
    specs, link = parse_targets(target)
    usual = values_of(make_settings(settings.preset, section_of(specs), None, settings.seed, link), changes)
    return {name: value for name, value in changes.items() if value != usual[name]}, settings.preset, settings.seed


def section_of(specs: Collection[TargetSpec], overrides: Mapping[str, str] | None = None) -> str:
    """The section of a preset for some targets: that of the first, or of links; oriented where one or a column is."""
    if any(spec.kind == "oriented" for spec in specs) or "oriented" in (overrides or {}).values():
        return ORIENTED
    if any(spec.of_molecules for spec in specs) and next(iter(specs)).level != Level.GRAPH:
        return MOLECULE
    return next((spec.level for spec in specs), Level.LINK)


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
    section: str = task_data.targets[0].level if task_data.targets else Level.LINK
    if is_oriented(task_data.targets, task_data.graph.odd_width):
        section = ORIENTED
    elif dataset.schema.smiles is not None and section in (Level.NODE, Level.EDGE):
        section = MOLECULE
    link = task_data.links is not None
    usual = make_settings(settings.preset, section, None, settings.seed, link)
    _check_unused(task_data, settings, usual, dataset, splits)
    found = []
    one_recipe: list[Recipe] = ["low_label"]
    for recipe in one_recipe if section in (ORIENTED, MOLECULE) else choose_recipes(task_data, settings, changed):
        one = settings
        if recipe == "high_label" and settings.training.recipe != "high_label":
            # candidates of the other are not its own
            changes = values_of(settings, set(changed) - CANDIDATES) | {"training.recipe": "high_label"}
            one = make_settings(settings.preset, section, changes, settings.seed, link)
        found += _label_feature_recipes(task_data, resolve_settings(task_data, one, changed), changed)
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


def _label_feature_recipes(task_data: TaskData, settings: Settings, changed: Collection[str]) -> list[Settings]:
    """The settings without and with counts and factors of known labels, where these are "auto" and can be compared.

    Both have fewer epochs than one alone, unless the user asks for a number.
    """
    model = settings.model
    auto = [name for name in LABEL_FEATURES if getattr(model, name) == "auto"]
    if not auto:
        return [settings]
    with_, without = (
        settings.model_copy(update={"model": model.model_copy(update=dict.fromkeys(auto, value))})
        for value in (True, False)
    )
    if not task_data.has("validation"):
        return [without]
    training = settings.training
    if "training.epochs" not in changed:
        training = training.model_copy(update={"epochs": max(1, round(training.epochs * COMPARED_EPOCHS))})
    return [one.model_copy(update={"training": training}) for one in (without, with_)]


def resolve_settings(task_data: TaskData, settings: Settings, changed: Collection[str] = ()) -> Settings:
    """The settings of one recipe as they can be followed on the data; the arguments are those of `resolve_recipes`."""
    if is_oriented(task_data.targets, task_data.graph.odd_width):
        settings = settings.model_copy(update={"model": without_unread(settings.model)})
        if isinstance(task_data.graph, Graph) and settings.preset == "strong":
            training = with_steps(settings.training, changed)
            settings = settings.model_copy(update={"training": training})
        if task_data.links is not None:
            raise SettingsError(
                "links are predicted, expected none beside an oriented column or target: train two models"
            )
    settings = _resolve_diffusion(task_data, _resolve_candidates(task_data, settings, changed))
    settings = _resolve_batches(task_data, _resolve_inputs(task_data, settings, changed), changed)
    return _resolve_sampling(task_data, settings, changed)


def _resolve_sampling(task_data: TaskData, settings: Settings, changed: Collection[str]) -> Settings:
    """Settings that depend on whether neighborhoods are sampled: normalization, and the number of epochs.

    The number of epochs of a preset is for full batches, one step each.
    """
    training, sampling = settings.training, _sampling(task_data, settings)
    if settings.model.norm == "auto":
        norm = "layer" if sampling == "neighbors" else "batch"
        settings = settings.model_copy(update={"model": settings.model.model_copy(update={"norm": norm})})
    if sampling == "neighbors":  # the potentials of a part are not those of the whole graph
        settings = settings.model_copy(update={"model": settings.model.model_copy(update={"potentials": 0})})
    if sampling != "neighbors" or "training.epochs" in changed:
        return settings
    labeled = max(int((part == 0).any(1).sum()) for part in task_data.parts.values())
    steps = max(1, min(labeled // training.batch_size_for(labeled), training.max_steps_per_epoch or labeled))
    changes = {"epochs": min(max(SAMPLED_STEPS // steps, MIN_EPOCHS), training.epochs)}
    if "training.patience" not in changed and training.patience is not None:
        changes["patience"] = min(max(changes["epochs"] // 3, MIN_EPOCHS // 2), training.patience)
    return settings.model_copy(update={"training": training.model_copy(update=changes)})


def _sampling(task_data: TaskData, settings: Settings) -> str:
    """The sampling that the training will choose."""
    if not isinstance(task_data.graph, Graph) or task_data.links is not None or task_data.members > 1:
        return "full"
    with torch.device("meta"):
        model = build_model(task_data, settings)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    chosen = choose_sampling(task_data, settings.training, model, total_memory(device), device.type == "cpu")
    return chosen.sampling


def _resolve_batches(task_data: TaskData, settings: Settings, changed: Collection[str]) -> Settings:
    """The batch size for many graphs: of a preset for nodes or edges it is one of nodes or edges, not of graphs."""
    of_rows = bool(task_data.targets) and task_data.targets[0].level != Level.GRAPH
    if isinstance(task_data.graph, Graph) or not of_rows or "training.batch_size" in changed:
        return settings
    return settings.model_copy(update={"training": settings.training.model_copy(update={"batch_size": "auto"})})


def choose_recipes(task_data: TaskData, settings: Settings, changed: Collection[str] = ()) -> list[Recipe]:
    """The recipes of a preset to train: from `MANY` labeled nodes on both, unless the graph is big.

    The recipe for few labels averages over neighborhoods, which helps where neighbors are alike. Where the edges
    between training nodes show that they are not, it is left out, unless the user asks for candidates of it.
    """
    chosen = settings.training.recipe
    if chosen != "auto":
        return [chosen]
    nodes = [target.level for target in task_data.targets[:1]] == ["node"] and has_high_label_recipe(settings.preset)
    if not nodes or not bool(((task_data.parts["node"] == 0).sum(0) >= MANY).all()):
        return ["low_label"]
    if _is_big(task_data, settings) or any(target.is_wide for target in task_data.targets):
        return ["high_label"]
    if not task_data.has("validation"):
        return ["low_label"]
    if CANDIDATES.intersection(changed) or _has_like_neighbors(task_data):
        return ["low_label", "high_label"]
    return ["high_label"]


def _has_like_neighbors(task_data: TaskData) -> bool:
    """Whether neighbors have like labels, as far as the edges between training nodes tell."""
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


def _check_unused(
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
    if not task_data.targets or task_data.targets[0].level != "node":
        yield "training.recipe", "it is of nodes, and the first target is of another level"
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
        yield "data.split_column", f"data.split is {way}, and time and column would read it"
    if not task_data.is_by_time:
        yield "data.label_delay", "edges are not split by time, so labels of the future are known"
    if settings.time is None or "edge" not in task_data.parts or way not in ("auto", "time"):
        yield "data.split_times", "edges are not split by their times"
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
        yield "data.split", "links alone are predicted, and are held out at random or as in a file"
    vectors = any(column.kind == "vector" for column in dataset.schema.nodes.columns)
    if dataset.schema.smiles is None and not vectors:
        yield "data.features", "there are neither molecules nor vectors of counts, such as words"


def _resolve_diffusion(task_data: TaskData, settings: Settings) -> Settings:
    """The steps of the diffusion embedding. Beside bag-of-words features it added nothing, beside others much."""
    model = settings.model
    if task_data.links is None or model.decoder == "inner_product" or model.diffusion_steps != "auto":
        return settings
    words = task_data.node_features and task_data.graph.nodes.layout == torch.sparse_csr
    return settings.model_copy(
        update={"model": model.model_copy(update={"diffusion_steps": 0 if words else DIFFUSION_STEPS})}
    )


def _resolve_inputs(task_data: TaskData, settings: Settings, changed: Collection[str]) -> Settings:
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
            raise SettingsError(f"model.known_labels is true, expected false: known labels tell nothing, as {why}")
        changes["known_labels"] = False
    elif model.known_labels == "auto":
        changes["known_labels"] = True
    known = changes.get("known_labels", model.known_labels)
    for name in LABEL_FEATURES:
        if getattr(model, name) is True and known is False:
            if f"model.{name}" in changed:
                why = "model.known_labels is false" if why is None else f"known labels tell nothing, as {why}"
                raise SettingsError(f"model.{name} is true, expected false or auto: {why}")
            changes[name] = False
        elif getattr(model, name) == "auto" and not (known and name in _compared_label_features(task_data, settings)):
            changes[name] = False
    return settings.model_copy(update={"model": model.model_copy(update=changes)})


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
    return LABEL_FEATURES if numbers and _is_rated(task_data) and _sampling(task_data, settings) == "full" else []


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


def _resolve_candidates(task_data: TaskData, settings: Settings, changed: Collection[str]) -> Settings:
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
    if _is_big(task_data, settings):
        few = {"gates": training.gates[:1], "self_training_rounds": 1}
        changes = {name: value for name, value in few.items() if f"training.{name}" not in changed} | changes
    if _is_well_labeled(task_data):
        none: dict[str, object] = {"pseudo_label_weights": [0.0], "self_training_rounds": 1}
        if not any(f"training.{name}" in changed for name in none):
            changes |= none
    return settings.model_copy(update={"training": training.model_copy(update=changes)})


def _is_big(task_data: TaskData, settings: Settings) -> bool:
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
