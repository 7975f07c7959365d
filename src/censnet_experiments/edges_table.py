"""The table `edges`: cells trained by `censnet.train`, boosted trees, networks of PyTorch Geometric and columns."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.metrics import average_precision_score, log_loss

from censnet.data.splits.split_file import PARTS, Split
from censnet.data.tables.target_spec import TargetSpec
from censnet.errors import ArgumentError
from censnet.levels import Level
from censnet.ops.arrays import Array
from censnet.pipeline.prepare import prepare
from censnet.pipeline.resolve import section_of
from censnet.pipeline.train import train
from censnet.tasks.targets import Target
from censnet_experiments.baselines.boosted_trees import (
    CANDIDATES,
    TreeResult,
    TreeSettings,
    fit_edge_trees,
    fit_node_trees,
)
from censnet_experiments.baselines.edge_peers import fit_edge_peer
from censnet_experiments.baselines.tree_features import TreeGraph
from censnet_experiments.cells import find_cell
from censnet_experiments.edge_scores import Predicted, score_parts
from censnet_experiments.edge_tasks import EdgeTask, EdgeTasks
from censnet_experiments.plan import Column, EdgePeer, Pipeline, Plan, Trees
from censnet_experiments.preset_tables import count_candidates
from censnet_experiments.records import Record, Run

SCORED = PARTS[1:]
ByPart = dict[str, Predicted]
MANY_ROWS = 400  # training rows, from which on trees have their usual settings: leaves of 20 rows or more
FEW_ROWS = tuple(
    TreeSettings(max_leaf_nodes=leaves, min_samples_leaf=rows, l2_regularization=1.0, max_iter=200)
    for leaves, rows in ((4, 2), (4, 5), (8, 2))
)


def _log_likelihood(labels: Array, predictions: Array) -> float:
    return -float(log_loss(labels, predictions, labels=[0, 1]))


def _average_precision(labels: Array, predictions: Array) -> float:
    return float(average_precision_score(labels, predictions))


_METRICS = {"ap": _average_precision, "accuracy": _log_likelihood}  # metric of a cell -> that of trees on validation


@dataclass(frozen=True, eq=False)
class Outcome:
    """Predictions of one method for one task.

    Args:
        predicted: column of each target -> part -> labels and predictions.
        chosen: what was selected on validation rows.
        num_candidates: number of settings that it was selected from.
    """

    predicted: Mapping[str, ByPart]
    chosen: dict[str, float] = field(default_factory=dict)
    num_candidates: int = 1


def train_runs(plan: Plan[Any], runs: Sequence[Run], data: EdgeTasks, device: torch.device) -> list[Record]:
    """Train a method on cells of the table, one seed after the other."""
    records = []
    for cell, seed in runs:
        records.append(train_task(plan, (cell, seed), data.task(cell, plan.split_seed(seed)), device))
    return records


def train_task(plan: Plan[Any], run: Run, task: EdgeTask, device: torch.device) -> Record:
    """Train a method on one task, and make its record."""
    start, recipe, (cell, seed) = time.perf_counter(), plan.recipe, run
    metrics = find_cell(plan.table, cell).metrics
    if isinstance(recipe, Pipeline):
        outcome = train_pipeline(recipe, task, seed, device)
    elif isinstance(recipe, Trees):
        outcome = fit_trees(recipe, task, seed, metrics)
    elif isinstance(recipe, EdgePeer):
        outcome = train_peer(recipe, task, seed, device)
    elif isinstance(recipe, Column):
        outcome = read_column(task)
    else:
        raise ArgumentError(f"{plan.method} has no recipe of the table edges")
    seconds, scores = time.perf_counter() - start, score_parts(metrics, outcome.predicted)
    made = Record.of(
        plan, run, scores, seconds, device, chosen=outcome.chosen, num_candidates=outcome.num_candidates
    )  # fmt: skip
    return replace(made, split_seed=task.split_seed)


def train_pipeline(recipe: Pipeline, task: EdgeTask, seed: int, device: torch.device) -> Outcome:
    """Train as `censnet train` does, on the tables with a column `split`."""
    changes = {**task.settings, **recipe.changes_for(section_of(task.specs))}
    tables, targets = task.stated(recipe.edge_columns), list(task.targets)
    run = train(tables, targets, preset=recipe.train, settings=changes, seed=seed, device=str(device))
    predicted = {
        target.column: _from_table(run.predictions[target.level], target) for target in run.config.targets
    }  # fmt: skip
    chosen: dict[str, float] = {"epoch": run.config.best_epoch[0]}
    if run.config.shows_labels is not None:
        chosen["shows_labels"] = float(run.config.shows_labels)
    selection = run.config.selection
    if selection is not None:
        chosen["candidate"] = selection.selected[0]
    return Outcome(predicted, chosen, 1 if selection is None else count_candidates(selection.candidates))


def _from_table(table: pd.DataFrame, target: Target) -> ByPart:
    """Labels and predictions of a run, from its table of predictions."""
    if target.classes:
        labels = target.encode(table[target.column]).numpy()
        every: Array = table[[f"{target.column}_p_{name}" for name in target.classes]].to_numpy(np.float64)
        values: Array = every[:, 1] if target.kind == "binary" else every
    else:
        labels = pd.to_numeric(table[target.column]).to_numpy(np.float64, na_value=np.nan)
        values = table[f"{target.column}_predicted"].to_numpy(np.float64, na_value=np.nan)
    rows = {part: np.flatnonzero((table["split"] == part).to_numpy() & ~np.isnan(labels)) for part in PARTS}
    return _by_part(labels, {part: values[rows[part]] for part in SCORED}, rows, bool(target.classes))


def _by_part(labels: Array, values: Mapping[str, Array], rows: Mapping[str, Array], classes: bool) -> ByPart:
    """Predictions by part; of two classes, the rarer one of the training rows is noted."""
    rare = 1
    if classes:
        rare = int(np.mean(labels[rows["train"]] == 1) <= 0.5)
    return {part: Predicted(labels[rows[part]], values[part], rare) for part in SCORED}


def fit_trees(recipe: Trees, task: EdgeTask, seed: int, metrics: Sequence[str]) -> Outcome:
    """Fit boosted trees to each target; test rows see the labels of training and validation rows, as `censnet` has it.

    In sets of many graphs, whose graphs share no edge, no labels are shown.
    """
    if task.has_molecules:
        raise ArgumentError("boosted trees need tables of nodes and edges, and these are molecules")
    frames = task.tables.frames()
    graph = TreeGraph.of(
        frames["edges"],
        frames.get("nodes"),
        task.columns("edges") if recipe.columns else (),
        task.columns("nodes"),
    )
    predicted, chosen, candidates = {}, dict[str, float](), 0
    for spec in task.specs:
        result, found, tried = _fit_target(recipe, task, graph, spec, seed, metrics)
        predicted[spec.column] = found
        candidates = max(candidates, tried)
        prefix = "" if len(task.specs) == 1 else f"{spec.column}_"
        settings = result.trees.settings
        chosen |= {
            f"{prefix}trees": result.trees.num_trees,
            f"{prefix}settings": [*CANDIDATES, *FEW_ROWS].index(settings) if settings else -1,
            f"{prefix}features": len(result.features),
            f"{prefix}shows_labels": float(result.scheme != "none"),
            f"{prefix}past_labels": float(result.scheme == "past"),
        }
    return Outcome(predicted, chosen, candidates)


def _fit_target(
    recipe: Trees, task: EdgeTask, graph: TreeGraph, spec: TargetSpec, seed: int, metrics: Sequence[str]
) -> tuple[TreeResult, ByPart, int]:
    level, frames = Level(spec.level), task.tables.frames()
    split, column = task.rows(level), frames[level.table][spec.column]
    numeric = spec.kind in ("regression", "oriented") or pd.api.types.is_float_dtype(column)
    labels = column.to_numpy(np.float64) if numeric else pd.factorize(column, sort=True)[0]
    candidates = CANDIDATES if len(split.train) >= MANY_ROWS else FEW_ROWS
    common: dict[str, Any] = {
        "numeric": numeric,
        "known_labels": recipe.trees == "graph" and task.split_table != "graphs",
        "validation_labels": True,
        "structure": recipe.trees == "graph",
        "metric": _METRICS.get(metrics[0]),
        "candidates": candidates,
        "ensemble": recipe.ensemble,
        "seed": seed,
    }
    tried = len(candidates)
    if level is Level.EDGE:
        times = None if task.time is None else frames["edges"][task.time].to_numpy(np.float64)
        gaps = frames["edges"]["time"].to_numpy(np.float64) if recipe.gaps else None
        tried *= 3 if times is not None and common["known_labels"] else 1
        result = fit_edge_trees(graph, labels, split, gaps=gaps, ordered=times, **common)
    else:
        result = fit_node_trees(graph, labels, split, **common)
    values = {"validation": result.validation, "test": result.test}
    return result, _by_part(labels, values, _rows(split), not numeric), tried


def _rows(split: Split) -> dict[str, Array]:
    return {part: rows.numpy() for part, rows in split.parts.items()}


def train_peer(recipe: EdgePeer, task: EdgeTask, seed: int, device: torch.device) -> Outcome:
    """Train a network of PyTorch Geometric on the columns as `censnet` encodes them."""
    prepared = prepare(task.stated(), list(task.targets), "strong", dict(task.settings), seed)
    task_data = prepared.task_data
    fitted = fit_edge_peer(recipe, task_data, seed, device)
    predicted = {}
    for level in task_data.labels:
        targets = [target for target in task_data.targets if target.level == level]
        part = task_data.parts[level][:, 0].numpy()
        for number, target in enumerate(targets):
            labels = task_data.labels[level][:, number].numpy().astype(np.float64)
            rows = {name: np.flatnonzero((part == code) & ~np.isnan(labels)) for code, name in enumerate(PARTS)}
            values = fitted.values[level][number]
            if not target.classes:
                labels, values = (each * target.scale + target.mean for each in (labels, values))
            found = {name: values[rows[name]] for name in SCORED}
            predicted[target.column] = _by_part(labels, found, rows, bool(target.classes))
    chosen = {"epoch": float(fitted.epoch), "learning_rate": fitted.learning_rate}
    return Outcome(predicted, chosen, len(recipe.learning_rates))


def read_column(task: EdgeTask) -> Outcome:
    """Score the answers of the simpler model that the data come with."""
    predicted = {}
    for spec in task.specs:
        if spec.column in task.peers:
            level = Level(spec.level)
            labels = task.tables.frames()[level.table][spec.column].to_numpy(np.float64)
            values, rows = task.peers[spec.column].to_numpy(np.float64), _rows(task.rows(level))
            predicted[spec.column] = _by_part(labels, {part: values[rows[part]] for part in SCORED}, rows, False)
    if not predicted:
        raise ArgumentError("the data have no answers of a simpler model")
    return Outcome(predicted)
