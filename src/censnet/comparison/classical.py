"""Boosted trees and forests on the targets, the split and the metrics of a training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch

from censnet.comparison.boosted_trees import METRICS, BoostedTrees, candidates_for
from censnet.comparison.fit_trees import fit_described
from censnet.comparison.forest import fit_forest, molecule_features
from censnet.comparison.skipped import NO_MOLECULES, Skipped
from censnet.comparison.tree_columns import edge_times, graph_columns, is_by_time, tree_graph
from censnet.comparison.tree_edge_features import edge_features
from censnet.comparison.tree_graph import TreeGraph
from censnet.comparison.tree_labels import label_sums
from censnet.comparison.tree_node_features import graph_features, node_features
from censnet.data.splits.split_file import Split
from censnet.data.splits.splitters import ratio
from censnet.errors import DataError
from censnet.levels import Level
from censnet.ops.arrays import Array
from censnet.ops.graph_set import GraphSet
from censnet.pipeline.prepare import Prepared
from censnet.tasks.targets import Target
from censnet.training.evaluator import Scores, score_split

MANY_CLASSES = 50  # of a target, beyond which each step of boosting is as many trees
LEAST = 1e-6  # probability of a class that trees give none
HELD_OUT = (0.8, 0.2, 0.0)  # of the training rows, to choose on, where no validation row has a label

Predict = Callable[[Target, "Rows"], Array]  # predictions for all rows of its level


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of one target: labels in the units of training, NaN where there is none, and the split of the others."""

    labels: Array
    split: Split

    @property
    def training(self) -> Split:
        """The split with validation rows to choose on; those of the split, or else some of the training rows."""
        if len(self.split.validation):
            return self.split
        rows = self.split.train.numpy()
        held = ratio(len(rows), HELD_OUT, 0)
        part = [torch.from_numpy(rows[one.numpy()]) for one in (held.train, held.validation)]
        return replace(self.split, train=part[0], validation=part[1])


def boost_own_columns(prepared: Prepared, seed: int) -> dict[str, Scores]:
    """Part -> scores of boosted trees on the row's own columns; those of an edge with the columns of its two ends."""
    return _boost(prepared, seed, structure=False)


def boost_neighborhoods(prepared: Prepared, seed: int) -> dict[str, Scores]:
    """Part -> scores of boosted trees on aggregates over neighbors and incident edges too, and on known labels."""
    return _boost(prepared, seed, structure=True)


def _boost(prepared: Prepared, seed: int, structure: bool) -> dict[str, Scores]:
    graph, own = tree_graph(prepared), pd.DataFrame()
    one_graph = not isinstance(prepared.task_data.graph, GraphSet)
    if Level.GRAPH in prepared.splits:
        own = graph_columns(prepared)
    times = edge_times(prepared)

    def predict(target: Target, rows: Rows) -> Array:
        if not structure and not _own_columns(target.level, graph, own):
            raise Skipped(f"{target.level.table} have no columns")
        if len(target.classes) > MANY_CLASSES:
            raise Skipped(f"{target.column} has {len(target.classes):,} classes, more than {MANY_CLASSES}")
        split, numeric = rows.training, target.is_number
        center = float(rows.labels[split.train.numpy()].mean()) if numeric else 0.0

        def describe(known: Array | None) -> pd.DataFrame:
            if target.level is Level.GRAPH:
                return graph_features(graph, own, _owners(prepared), structure)
            if target.level is Level.NODE and not structure:
                return graph.nodes.astype(np.float32)
            seen = None if known is None else label_sums(rows.labels, known, numeric, center)
            if target.level is Level.NODE:
                return node_features(graph, seen)
            return edge_features(graph, seen, structure, times if structure else None)

        classes = max(len(target.classes), 2)
        trees = BoostedTrees(
            numeric, candidates_for(len(split.train)),
            ensemble=1 if classes > 2 else 3, metric=METRICS.get(prepared.settings.training.monitor), seed=seed,
            num_classes=None if numeric else classes,
        )  # fmt: skip
        known_labels = structure and one_graph and target.level is not Level.GRAPH
        result = fit_described(
            describe, rows.labels, split, trees, graph.categories, known_labels=known_labels,
            validation_labels=True, ordered=times if is_by_time(prepared) and target.level is Level.EDGE else None,
        )  # fmt: skip
        every = np.zeros((len(rows.labels), *result.test.shape[1:]))
        every[split.validation.numpy()], every[split.test.numpy()] = result.validation, result.test
        return every

    return _score(prepared, predict)


def fit_molecule_forest(prepared: Prepared, seed: int) -> dict[str, Scores]:
    """Part -> scores of a random forest on Morgan counts and descriptors of molecules."""
    data = prepared.data
    if data.schema.smiles is None or Level.GRAPH not in prepared.splits:
        raise Skipped(NO_MOLECULES)
    texts = data.tables.frames()["graphs"][data.schema.smiles]
    row = np.full(data.count("graph"), -1)
    graphs = data.rows("graph").numpy()
    row[graphs[graphs >= 0]] = np.flatnonzero(graphs >= 0)
    features = molecule_features(tuple(texts.iloc[row].astype(str)), data.schema.reading)
    features = np.hstack([features, graph_columns(prepared).to_numpy(np.float32)])

    def predict(target: Target, rows: Rows) -> Array:
        if target.level is not Level.GRAPH:
            raise Skipped("forests are of whole molecules")
        return fit_forest(features, rows.labels, rows.split.train.numpy(), len(target.classes), seed)

    return _score(prepared, predict)


def _score(prepared: Prepared, predict: Predict) -> dict[str, Scores]:
    """Fit every target, and score validation and test rows by the metrics of the training.

    A target that cannot be fitted is left out of the scores; if none can, that is an error.
    """
    task_data, outputs, labels, why = prepared.task_data, {}, {}, list[str]()
    for level in task_data.labels:
        targets, parts = task_data.of(level), task_data.parts[level][:, 0].numpy()
        labels[level], columns = task_data.labels[level].clone(), []
        for number, target in enumerate(targets):
            values = task_data.labels[level][:, number].numpy().astype(np.float64)
            rows = Rows(values, Split.of(np.where(np.isnan(values), -1, parts)))
            try:
                _check_rows(target, rows)
                found = predict(target, rows)
            except (Skipped, DataError) as error:
                why.append(str(error))
                labels[level][:, number] = torch.nan
                found = np.zeros((len(values), target.width) if target.width > 1 else len(values))
            columns.append(as_outputs(target, found))
        outputs[level] = torch.from_numpy(np.concatenate(columns, axis=1)).float()
    if len(why) == len(task_data.targets):
        raise Skipped(why[0] if why else "links are predicted, and trees predict columns")
    scores = score_split(replace(task_data, labels=labels), outputs)
    return {part: scores[part] for part in ("validation", "test") if part in scores}


def _check_rows(target: Target, rows: Rows) -> None:
    """Skip a target without labels to fit and to choose on, or to score."""
    parts = {"training": rows.training.train, "validation": rows.training.validation, "test": rows.split.test}
    missing = next((part for part, found in parts.items() if not len(found)), None)
    if missing is not None:
        raise Skipped(f"no {missing} row has a label of {target.column}")


def as_outputs(target: Target, predictions: Array) -> Array:
    """Predictions as a model would give them: logits, log probabilities or scaled numbers. (rows, width)

    >>> sick = Target(level="node", column="sick", kind="binary", classes=["no", "yes"])
    >>> as_outputs(sick, np.array([0.5, 0.0])).round(1).tolist()
    [[0.0], [-13.8]]
    """
    if target.is_number:
        return predictions[:, None]
    shares = np.clip(predictions, LEAST, 1 - LEAST)
    if target.kind == "binary":
        return np.asarray(np.log(shares / (1 - shares))[:, None])
    every = shares if shares.ndim == 2 else np.column_stack([1 - shares, shares])
    return np.asarray(np.log(every))


def _own_columns(level: Level, graph: TreeGraph, own: pd.DataFrame) -> int:
    """The number of columns of a row; an edge has those of its ends too."""
    found = {Level.NODE: graph.nodes, Level.EDGE: graph.edges, Level.GRAPH: own}[level].shape[1]
    return found + (graph.nodes.shape[1] if level is Level.EDGE else 0)


def _owners(prepared: Prepared) -> Array:
    graph = prepared.task_data.graph
    assert isinstance(graph, GraphSet)
    return Level.NODE.owners(graph).numpy()
