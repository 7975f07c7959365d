"""From a user's data, targets and settings to the tensors of a training: read, split, fit on training rows, encode."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pandas as pd
from torch import Tensor

from censnet.data.dataset import Dataset, TypedData
from censnet.data.load import read_data, suggest_targets
from censnet.data.splits.links import LinkSplit
from censnet.data.splits.split_file import Split
from censnet.data.tables.schema import Schema
from censnet.data.tables.target_spec import TargetLike, Targets, TargetSpec, as_items, as_texts, parse_targets
from censnet.errors import ArgumentError, DataError, SettingsError
from censnet.levels import Level, main_level
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.ops.pairs import find_bipartition
from censnet.option_names import column_option
from censnet.pipeline.causal import resolve_causal
from censnet.pipeline.ego_marks import resolve_ego_marks
from censnet.pipeline.resolve import resolve_recipes
from censnet.pipeline.resolve_sampling import share_graph
from censnet.pipeline.splitting import hidden_rows, split_links, split_rows
from censnet.settings.build import has_ordered_links
from censnet.settings.presets import Changes, dotted, make_settings, values_of
from censnet.settings.schema import MOLECULE, ORIENTED, DataSettings, Settings
from censnet.tasks.targets import Target
from censnet.training import processes
from censnet.training.task_data import TaskData, make_task_data

logger = logging.getLogger(__name__)

MIN_MEASURED = 20  # training nodes from which on their columns give means and scales
TargetsLike = Targets | Target | Sequence[TargetLike | Target]  # as users write them, or of another run


@dataclass(frozen=True, eq=False)
class Prepared:
    """Everything that a training starts from.

    Args:
        data: the user's data, its statistics from training rows.
        recipes: the settings of the training, or of several from which validation selects.
        changed: the settings that the user, rather than a preset, asked for.
        target_specs: the targets as the user wrote them.
        targets: what is predicted.
        splits: level -> the parts of its INPUT rows.
        links: the links to be found, if any are.
        task_data: the same as tensors.
        findings: what may make the scores look better than they are; see `find_leaks`.
    """

    data: Dataset
    recipes: list[Settings]
    changed: list[str]
    target_specs: list[str]
    targets: list[Target]
    splits: dict[str, Split]
    links: LinkSplit | None
    task_data: TaskData
    findings: list[str] = field(default_factory=list)

    @property
    def settings(self) -> Settings:
        """The settings of the network that was kept, or is trained first: of the data all say the same."""
        return self.recipes[0]

    def select(self, recipe: Settings) -> Prepared:
        """The same for one of the recipes, without what it does not read."""
        found = replace(self, recipes=[recipe])
        if recipe.data.descriptors is True or not self.task_data.descriptors:
            return found
        return replace(found, data=self.data.without_descriptors(), task_data=self.task_data.without_descriptors())

    @property
    def split_sources(self) -> dict[str, str]:
        """Level -> where its split came from, and how many rows are in each part, for the user."""
        splits = self.splits if self.links is None else {**self.splits, "link": self.links.rows}
        return {
            level: f"{split.source} ({', '.join(f'{len(rows):,} {name}' for name, rows in split.parts.items())})"
            for level, split in splits.items()
        }


def prepare(
    data: object,
    target: Targets,
    preset: str = "strong",
    changes: Mapping[str, object] | None = None,
    seed: int = 0,
    *,
    strict: bool = False,
    overrides: Mapping[str, str] | None = None,
) -> Prepared:
    """Read data, split them, and encode features and labels.

    Args:
        data, strict, overrides: as in `load_data`.
        target: `node:COLUMN`, `edge:COLUMN`, `graph:COLUMN,COLUMN`, `link`, or several; see `parse_targets`.
        preset, changes, seed: as in `make_settings`.
    """
    asked, link = read_targets(data, target)
    settings = make_settings(preset, section_of(asked, overrides), changes, seed, link)
    if link and settings.data.descriptors == "auto":  # the graphs become one, whose links are held out
        settings = settings.model_copy(update={"data": settings.data.model_copy(update={"descriptors": False})})
    no_targets = [name for name in (settings.data.split_column, settings.data.time) if name is not None]
    if no_targets:
        asked = [replace(item, without=tuple(no_targets)) if item.every else item for item in asked]
    typed = read_data(
        data,
        target=asked,
        strict=strict,
        features=settings.data.features,
        overrides=_without_split_column(overrides, settings, asked),
        descriptors=settings.data.descriptors,
        standardize=settings.data.standardize,
        scaffolds=settings.data.split == "scaffold",
        hydrogens=settings.data.hydrogens,
        directed=None if settings.data.directed == "auto" else settings.data.directed,
        time=settings.data.time,
    )
    given, texts = [item.column for item in asked if not item.every], as_texts(target)
    asked = list(typed.targets)
    try:
        return prepare_typed(typed, asked, link, settings, texts, set(changes or {}))
    except DataError as error:
        if error.column is None or error.column in given or error.column not in [item.column for item in asked]:
            raise
        raise DataError(
            f"{error}; {column_option((error.column, 'drop'))} leaves it out of {', '.join(texts)}"
        ) from None


def _without_split_column(
    overrides: Mapping[str, str] | None, settings: Settings, asked: Sequence[TargetSpec]
) -> Mapping[str, str] | None:
    """The overrides of the user, and that the column that states the split is no feature."""
    name = settings.data.split_column
    if settings.data.split != "column" or name is None or any(item.column == name for item in asked):
        return overrides
    return {name: "drop", **(overrides or {})}


def _rows_to_measure(data: TypedData, splits: Mapping[str, Split]) -> dict[str, Tensor]:
    """Level -> the input rows whose columns give means and scales: training rows, unless these are too few.

    A model sees the features of every node of its graph, so a few labeled nodes need not represent all.
    """
    rows = {level: split.train for level, split in splits.items()}
    if isinstance(data.graph, Graph) and len(rows.get("node", ())) < MIN_MEASURED and "node" in rows:
        rows["node"] = (data.rows("node") >= 0).nonzero().squeeze(1)
    return rows


def read_targets(data: object, target: Targets) -> tuple[list[TargetSpec], bool]:
    """The targets; where a level was left out, the error says which the data suggest."""
    try:
        return parse_targets(target)
    except DataError as error:
        texts = [item.strip() for item in as_items(target) if isinstance(item, str)]
        bare = [item for item in texts if item.partition(":")[0] not in list(Level)]
        found = [meant for item in bare for meant in suggest_targets(data, item.partition("=")[0])]
        hint = f": did you mean {' or '.join(found)}?" if found else ""
        raise DataError(f"{error}{hint}") from None


def prepare_typed(
    data: TypedData,
    asked: Sequence[TargetSpec],
    link: bool,
    settings: Settings,
    names: Sequence[str],
    changed: Collection[str] = (),
) -> Prepared:
    """Prepare data that are read already, by the split of the settings.

    Args:
        data: read, its columns typed.
        asked, link: what is predicted, and `names` as the user wrote it.
        settings: of the training.
        changed: the settings that the user asked for; see `resolve_recipes`.
    """
    columns: dict[str, list[str]] = {}
    for item in asked:
        columns.setdefault(item.level, []).append(item.column)
    if Level.GRAPH in columns and not isinstance(data.graph, GraphSet):
        raise DataError("the data are one graph, expected many (a column graph, or SMILES) for a graph target")
    ordered = has_ordered_links(settings.model, data.graph.directed)
    links = split_links(data, settings.data, settings.seed, ordered) if link else None
    hidden = None if links is None else hidden_rows(links, data.rows("edge"))
    splits = split_rows(data, columns, settings.data, settings.seed, None if hidden is None else hidden.numpy())
    if hidden is not None and Level.EDGE in splits:
        splits[Level.EDGE] = _without(splits[Level.EDGE], hidden)
    for level, split in splits.items():
        if len(split.train) == 0:
            raise DataError(f"no {level} row with a label is for training, expected some: see data.split")
    dataset = data.encode(_rows_to_measure(data, splits), links)
    labels = {level: {name: dataset.labels(level, name) for name in names} for level, names in columns.items()}
    targets = [_fit(dataset, item, labels[item.level][item.column], splits[item.level].train) for item in asked]
    task_data = make_task_data(dataset, targets, [splits], links, label_delay(dataset.schema, settings.data))
    settings = resolve_ego_marks(task_data, settings, changed, dataset.schema.smiles is not None)
    settings = resolve_causal(task_data, settings, changed)
    before, settings = settings, share_graph(task_data, settings, processes.count())
    decided = {*changed, "training.sampling"} if settings != before else changed
    recipes = resolve_recipes(task_data, settings, decided, dataset, splits.values())
    settings = recipes[0]
    if link and isinstance(dataset.graph, Graph) and find_bipartition(dataset.graph) is not None:
        logger.info("the graph is bipartite (no node is both a source and a target): links join its two sides")
    if links is not None and links.ordered:
        logger.info("links are directed: i, j and j, i are scored apart, and half of the negatives are links reversed")
    if link and settings.model.decoder != "inner_product" and settings.model.diffusion_steps:
        logger.info(
            "link scores also use a %s-step diffusion embedding of the two nodes", settings.model.diffusion_steps
        )
    return Prepared(dataset, recipes, sorted(changed), list(names), targets, splits, links, task_data)


def label_delay(schema: Schema, settings: DataSettings) -> float:
    """The time after which a label is known, in the unit of the times of edges."""
    if schema.time is not None:
        return schema.time.read_delay(settings.label_delay)
    if settings.label_delay != 0:
        raise SettingsError(
            f"data.label_delay is {settings.label_delay}, expected 0, or data.time: edges have no times without it"
        )
    return 0.0


def _fit(dataset: Dataset, item: TargetSpec, labels: pd.Series[Any], rows: Tensor) -> Target:
    """The target of a column; an error names its file."""
    table = item.level.table
    notation = dataset.schema.table(table).notations.get(item.column)
    try:
        return Target.fit(labels, item.level, item.column, rows, item.kind, notation, item.positive)
    except DataError as error:
        if error.file != table:
            raise
        raise DataError(error.found, dataset.tables.name(table), error.row, error.column) from None


def _without(split: Split, hidden: Tensor) -> Split:
    rest = Split(*(part[~hidden[part]] for part in split.parts.values()))
    return replace(rest, source=split.source, by_fractions=split.by_fractions)


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
    """The section of a preset for some targets: that of `main_level`, or oriented where a target or a column is."""
    if any(spec.kind == "oriented" for spec in specs) or "oriented" in (overrides or {}).values():
        return ORIENTED
    if any(spec.of_molecules for spec in specs) and next(iter(specs)).level != Level.GRAPH:
        return MOLECULE
    return main_level(spec.level for spec in specs)
