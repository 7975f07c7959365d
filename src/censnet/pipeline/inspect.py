"""Inspection of a data set: read it, estimate the cost of a training, and report on both."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from censnet.data.dataset import Dataset, TypedData
from censnet.data.datasets.download import DATASETS, is_built_in
from censnet.data.load import read_data
from censnet.data.splits.links import LinkSplit, read_links
from censnet.data.splits.split_file import Split, read_splits
from censnet.data.splits.stated import find_stated, has_wide_masks
from censnet.data.tables.notes import Note
from censnet.data.tables.schema import Hydrogens
from censnet.data.tables.target_spec import Targets, TargetSpec, parse_targets
from censnet.errors import DataError, SettingsError
from censnet.inspection.cost import Cost, estimate_cost
from censnet.inspection.findings import Finding
from censnet.inspection.report import Report, make_report
from censnet.inspection.times import find_time_columns
from censnet.levels import Level
from censnet.pipeline.prepare import prepare_typed, section_of
from censnet.pipeline.train import train
from censnet.settings.presets import make_settings
from censnet.settings.schema import ORIENTED
from censnet.tasks.metrics import MONITORS
from censnet.tasks.targets import Target
from censnet.training.task_data import TaskData

QUICK: dict[str, object] = {"training.epochs": 40, "model.hidden": 16}  # of a deep inspection
LARGE = 500_000  # nodes and edges, from which on one of several recipes is measured
CLASSES = [str(number) for number in range(8)]  # of the labels that are assumed where no target is named


def inspect_data(
    data: object,
    target: Targets | None = None,
    splits: str | os.PathLike[str] | None = None,
    *,
    overrides: Mapping[str, str] | None = None,
    estimate: bool = False,
    hydrogens: Hydrogens = "implicit",
    time: str | None = None,
    deep: bool = False,
) -> Report:
    """Read data and report on it.

    Args:
        data: as in `load_data`.
        target: as in `load_data`; for a built-in set, its own targets if None.
        splits: a file of splits to audit. A table with the column `split` is audited by it otherwise.
        overrides: column -> kind or role, as in `load_data`.
        estimate: whether to measure a training step, and so estimate the memory and time of a training.
        hydrogens: as in `load_data`.
        time: the column of edges that says when each one happened, as in `load_data`.
        deep: whether to train a quick model on a random split and on a split by time, where edges have times, and to
            report both scores.
    """
    if not target and is_built_in(data):
        target = list(DATASETS[data].targets)
    link = bool(target) and parse_targets(target)[1]
    typed = read_data(data, target=target or None, overrides=overrides, hydrogens=hydrogens, time=time)
    specs = list(typed.targets)
    cost, refused = None, ""
    if estimate:  # before the data are encoded for the report: a training holds them once
        try:
            cost = estimate_training(typed, specs, link)
        except (DataError, SettingsError) as error:
            refused = str(error)
    dataset = typed.encode()
    parts, links = _read_splits(dataset, splits)
    report = make_report(dataset, specs, parts, links, cost, link)
    if refused:
        report.notes.append(Note("training", f"a training would not begin: {refused}"))
    if deep:
        report.findings.append(Finding(level="note", what=compare_splits(data, typed, time, overrides, link)))
    return report


def compare_splits(
    data: object, typed: TypedData, time: str | None, overrides: Mapping[str, str] | None, link: bool = False
) -> str:
    """A sentence on how much a random split overestimates: the scores of a quick model on it, and on a split by time.

    Args:
        data, time, overrides: as in `inspect_data`.
        typed: the data as they were read.
        link: whether links are predicted.
    """
    specs = [spec for spec in typed.targets if spec.level is Level.EDGE]
    columns = find_time_columns(typed, [spec.column for spec in specs])
    name = time or next((column.name for column in columns), None)
    if not specs and not link:
        raise DataError("no column of edges is predicted, nor links: a deep inspection compares splits of edges")
    if name is None:
        raise DataError("no column of edges seems to be a time, expected one: name it", typed.tables.name("edges"))
    scores = dict[str, float]()
    metric, level = "auc", "link"
    target: TargetSpec | str = specs[0] if specs else "link"
    for split in ("random", "time"):
        settings = {**QUICK, "data.split": split}
        run = train(data, target, settings=settings, overrides=overrides, time=name)
        if specs:
            metric, level = MONITORS[run.config.targets[0].kind], "edge"
        scores[split] = run.metrics["test"][level].get(metric, math.nan)
    what, rows = (specs[0].name, "rows") if specs else ("link", "links")
    return (
        f"{what}: a quick model has {metric} {scores['random']:.3f} on test {rows} of a random split, and "
        f"{scores['time']:.3f} on the latest {rows}, of a split by column {name}: what it will meet is like the latter"
    )


def estimate_training(data: TypedData, specs: Sequence[TargetSpec], link: bool = False) -> Cost:
    """Estimate the cost of the model that `train` trains by default: of several, the one that takes most memory.

    Without a target it is that of the paper's model on nodes of eight classes.
    """
    if not specs and not link:
        count = data.count("node")
        target = Target(level="node", column="any", kind="multiclass", classes=CLASSES)
        labels = (torch.arange(count) % len(CLASSES)).float().unsqueeze(1)
        halves = torch.arange(count).unsqueeze(1) % 2
        task_data = TaskData(data.encode().graph, [target], {"node": labels}, {"node": halves})
        return estimate_cost(task_data, make_settings("paper", "node"))
    odd = data.schema.edges.odd_width > 0 or any(spec.kind == "oriented" for spec in specs)
    settings = make_settings("strong", ORIENTED if odd else section_of(specs), link=link)
    prepared = prepare_typed(data, specs, link, settings, [])
    graph, recipes = prepared.task_data.graph, prepared.recipes
    if graph.num_nodes + graph.num_edges > LARGE:  # measuring one takes seconds
        recipes = recipes[-1:]  # those with more inputs come last
    return max((estimate_cost(prepared.task_data, each) for each in recipes), key=lambda cost: cost.bytes)


def _read_splits(dataset: Dataset, path: str | os.PathLike[str] | None) -> tuple[dict[str, Split], LinkSplit | None]:
    """The splits of a file, or those that columns of the tables state."""
    frames = dataset.tables.frames()
    if path is None:
        found = {}
        for table, frame in frames.items():
            if not has_wide_masks(frame):  # then data.split_index chooses one
                stated = find_stated(frame, dataset.schema.table(table), dataset.tables.name(table))
                if stated is not None:
                    found[table] = replace(Split.of(stated.codes), source=stated.source)
        return found, None
    ids = {table: frame[dataset.id_columns(Level.of_table(table))] for table, frame in frames.items()}
    splits = read_splits(path, ids)
    links = read_links(path, dataset.rows("edge"), dataset.graph.directed) if "links" in splits else None
    for table in splits:
        if table not in frames and table not in ("links", "non-links"):
            raise DataError(f"{Path(path).name} has a split of {table}, which is not a table of the data")
    return {table: split for table, split in splits.items() if table in frames}, links
