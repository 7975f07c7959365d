"""The table `edges`: cells trained by `censnet.train`, boosted trees, networks of PyTorch Geometric and columns."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch

from censnet.data.splits.split_file import PARTS
from censnet.errors import ArgumentError
from censnet.levels import Level
from censnet.ops.arrays import Array
from censnet.pipeline.prepare import prepare, section_of
from censnet.pipeline.train import train
from censnet.tasks.targets import Target
from censnet_experiments.baselines.edge_peers import fit_edge_peer
from censnet_experiments.cells import find_cell
from censnet_experiments.edge_scores import SCORED, ByPart, Outcome, by_part, rows_by_part, score_parts
from censnet_experiments.edge_tasks import EdgeTask, EdgeTasks
from censnet_experiments.edge_trees import fit_trees
from censnet_experiments.plan import Column, EdgePeer, Pipeline, Plan, Trees
from censnet_experiments.preset_tables import count_candidates
from censnet_experiments.records import Record, Run


def train_runs(plan: Plan[Any], runs: Sequence[Run], data: EdgeTasks, device: torch.device) -> list[Record]:
    """Train a method on cells of the table, one seed after the other."""
    records = []
    for cell, seed in runs:
        records.append(train_task(plan, (cell, seed), data.task(cell, plan.split_seed(seed, cell)), device))
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
    return Record.of(
        plan, run, scores, seconds, device, chosen=outcome.chosen, num_candidates=outcome.num_candidates
    )  # fmt: skip


def train_pipeline(recipe: Pipeline, task: EdgeTask, seed: int, device: torch.device) -> Outcome:
    """Train as `censnet train` does, on the tables with a column `split`."""
    changes = {**task.settings, **recipe.changes_for(section_of(task.specs))}
    tables, targets = task.stated(recipe.edge_columns), list(task.targets)
    time = task.time if recipe.time else None
    run = train(tables, targets, preset=recipe.train, settings=changes, seed=seed, device=str(device), time=time)
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
    return by_part(labels, {part: values[rows[part]] for part in SCORED}, rows, bool(target.classes))


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
            predicted[target.column] = by_part(labels, found, rows, bool(target.classes))
    chosen = {"epoch": float(fitted.epoch), "learning_rate": fitted.learning_rate}
    return Outcome(predicted, chosen, len(recipe.learning_rates))


def read_column(task: EdgeTask) -> Outcome:
    """Score the answers of the simpler model that the data come with."""
    predicted = {}
    for spec in task.specs:
        if spec.column in task.peers:
            level = Level(spec.level)
            labels = task.tables.frames()[level.table][spec.column].to_numpy(np.float64)
            values, rows = task.peers[spec.column].to_numpy(np.float64), rows_by_part(task.rows(level))
            predicted[spec.column] = by_part(labels, {part: values[rows[part]] for part in SCORED}, rows, False)
    if not predicted:
        raise ArgumentError("the data have no answers of a simpler model")
    return Outcome(predicted)
