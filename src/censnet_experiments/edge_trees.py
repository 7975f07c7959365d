"""Boosted trees in the table `edges`: from a task to their inputs, and to their predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch

from censnet.comparison.boosted_trees import CANDIDATES, FEW_ROWS, METRICS, BoostedTrees, candidates_for
from censnet.comparison.fit_trees import fit_boosted_trees, fit_described
from censnet.comparison.tree_graph import TreeGraph
from censnet.data.splits.split_file import Split
from censnet.data.tables.target_spec import TargetSpec
from censnet.errors import ArgumentError
from censnet.levels import Level
from censnet.nn.causal_encoder import CausalEncoder
from censnet.ops.arrays import Array
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.pipeline.prepare import prepare
from censnet.settings.schema import Settings
from censnet.training.task_data import TaskData, build_model
from censnet_experiments.edge_scores import Outcome, by_part, rows_by_part
from censnet_experiments.edge_tasks import EdgeTask
from censnet_experiments.plan import Trees

SCHEMES = 3  # ways to show labels that validation selects from where the split is by time


@dataclass(frozen=True, eq=False)
class TreeTarget:
    """What trees are fitted to for one target.

    Args:
        column: its name.
        level: node or edge.
        graph: inputs.
        labels: (n,) numbers, or classes counted from 0; anything where there is none.
        split: of the rows with a label.
        numeric: whether labels are numbers.
    """

    column: str
    level: Level
    graph: TreeGraph
    labels: Array
    split: Split
    numeric: bool


def fit_trees(recipe: Trees, task: EdgeTask, seed: int, metrics: Sequence[str]) -> Outcome:
    """Fit boosted trees to each target; test rows see the labels of training and validation rows, as `censnet` has it.

    In sets of many graphs, whose graphs share no edge, no labels are shown.
    """
    if task.is_stream and recipe.trees == "graph":
        return _fit_to_stream(recipe, task, seed, metrics)
    targets = _molecule_targets(task, seed) if task.has_molecules else _table_targets(recipe, task)
    predicted, chosen, num_candidates = {}, dict[str, float](), 0
    times = None if task.time is None else _times(task, task.time)
    for target in targets:
        candidates = candidates_for(len(target.split.train))
        known_labels = recipe.trees == "graph" and task.split_table != "graphs"
        common: dict[str, Any] = {
            "numeric": target.numeric,
            "known_labels": known_labels,
            "validation_labels": True,
            "structure": recipe.trees == "graph",
            "metric": METRICS.get(metrics[0]),
            "candidates": candidates,
            "ensemble": recipe.ensemble,
            "seed": seed,
        }
        if target.level is Level.EDGE:
            common |= {"gaps": _times(task, "time") if recipe.gaps else None, "ordered": times}
        else:
            common["level"] = "node"
        result = fit_boosted_trees(target.graph, target.labels, target.split, **common)
        values = {"validation": result.validation, "test": result.test}
        predicted[target.column] = by_part(target.labels, values, rows_by_part(target.split), not target.numeric)
        num_candidates = max(num_candidates, len(candidates) * (SCHEMES if known_labels and times is not None else 1))
        prefix = "" if len(targets) == 1 else f"{target.column}_"
        settings = result.trees.settings
        chosen |= {
            f"{prefix}trees": result.trees.num_trees,
            f"{prefix}settings": [*CANDIDATES, *FEW_ROWS].index(settings) if settings else -1,
            f"{prefix}features": len(result.features),
            f"{prefix}shows_labels": float(result.scheme != "none"),
            f"{prefix}past_labels": float(result.scheme == "past"),
        }
    return Outcome(predicted, chosen, num_candidates)


def _fit_to_stream(recipe: Trees, task: EdgeTask, seed: int, metrics: Sequence[str]) -> Outcome:
    """Fit trees to what causal layers start from: what was before each edge, with the labels that had arrived."""
    prepared = prepare(task.stated(), list(task.targets), "strong", {**task.settings, "data.time": task.time}, seed)
    task_data = prepared.task_data.with_inputs(prepared.settings.model)
    (target,) = task_data.of("edge")
    numeric = not target.classes
    features = pd.DataFrame(describe_history(task_data, prepared.settings)).add_prefix("past ")
    labels = task_data.labels["edge"][:, 0].numpy().astype(np.float64) * target.scale + target.mean
    codes = np.where(np.isnan(labels), -1, task_data.parts["edge"][:, 0].numpy())
    labels = labels if numeric else np.nan_to_num(labels).astype(np.int64)
    split = Split.of(codes)
    candidates = candidates_for(len(split.train))
    trees = BoostedTrees(numeric, candidates, recipe.ensemble, METRICS.get(metrics[0]), seed)
    result = fit_described(lambda known: features, labels, split, trees)
    in_memory = prepared.data.rows("edge").numpy()  # of each row of the table
    of_table, values = rows_by_part(Split.of(np.where(in_memory < 0, -1, codes[in_memory]))), {}
    for part, found in (("validation", result.validation), ("test", result.test)):
        every = np.zeros((len(labels), *found.shape[1:]))
        every[split.parts[part].numpy()] = found
        values[part] = every[in_memory[of_table[part]]]
    predicted = {target.column: by_part(labels[in_memory], values, of_table, not numeric)}
    chosen = {"trees": result.trees.num_trees, "features": len(result.features), "shows_labels": 1.0}
    return Outcome(predicted, chosen, len(candidates))


def describe_history(task_data: TaskData, settings: Settings) -> Array:
    """Of each edge: its features, and the clocks of its pair, of its start and of its end just before it. (E, w)

    Args:
        task_data: with the inputs of a causal model.
        settings: of that model.
    """
    encoder = build_model(task_data, settings).encoder
    graph = task_data.show_labels({"edge": ~task_data.labels["edge"].isnan().all(1)})
    if not isinstance(encoder, CausalEncoder) or not isinstance(graph, Graph) or graph.times is None:
        raise ArgumentError("edges have no past, expected a graph whose edges have times")
    width = graph.edge_width - encoder.label_width
    features, labels = torch.split(graph.edges, [width, encoder.label_width], dim=1)
    of_nodes, of_pairs = encoder.clocks(encoder.history(graph.incidence, graph.times), graph.edges, labels)
    rows = torch.cat([graph.nodes[graph.ends].flatten(0, 1), of_nodes[: 2 * graph.num_edges].detach()], dim=1)
    start, end = torch.split(rows, graph.num_edges)
    return np.asarray(torch.cat([features, of_pairs, start, end], dim=1))


def _table_targets(recipe: Trees, task: EdgeTask) -> list[TreeTarget]:
    """The targets of tables of nodes and edges."""
    frames, found = task.tables.frames(), []
    for spec in task.specs:
        level, edges = Level(spec.level), frames["edges"]
        if not task.directed and level is Level.NODE:  # each edge is one of both ends alike
            back = edges.rename(columns={"source": "target", "target": "source"})
            edges = pd.concat([edges, back], ignore_index=True)
        columns = task.columns("edges") if recipe.columns else []
        graph = TreeGraph.of(edges, frames.get("nodes"), columns, task.columns("nodes"))
        column = frames[level.table][spec.column]
        numeric = _is_numeric(spec, column)
        labels = column.to_numpy(np.float64) if numeric else pd.factorize(column, sort=True)[0]
        found.append(TreeTarget(spec.column, level, graph, labels, task.rows(level), numeric))
    return found


def _molecule_targets(task: EdgeTask, seed: int) -> list[TreeTarget]:
    """The targets of atoms and bonds, whose columns are the features that `censnet` computes for them."""
    prepared = prepare(task.stated(), list(task.targets), "strong", dict(task.settings), seed)
    data, graph = prepared.task_data, prepared.task_data.graph
    if not isinstance(graph, GraphSet):
        raise ArgumentError("there is one molecule, expected many")
    source, target = graph.global_ends.numpy()
    atoms, bonds = pd.DataFrame(graph.nodes.numpy()), pd.DataFrame(graph.edges.numpy())
    inputs = TreeGraph(source, target, atoms.add_prefix("atom "), bonds.add_prefix("bond "))
    found = []
    for level in data.labels:
        for number, one in enumerate(data.of(level)):
            labels = data.labels[level][:, number].numpy().astype(np.float64) * one.scale + one.mean
            split = Split.of(np.where(np.isnan(labels), -1, data.parts[level][:, 0].numpy()))
            found.append(TreeTarget(one.column, Level(level), inputs, labels, split, not one.classes))
    return found


def _is_numeric(spec: TargetSpec, column: pd.Series[Any]) -> bool:
    return spec.kind in ("regression", "oriented") or pd.api.types.is_float_dtype(column)


def _times(task: EdgeTask, column: str) -> Array:
    return np.asarray(task.tables.frames()["edges"][column].to_numpy(np.float64))
