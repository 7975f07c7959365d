"""Tables of our own: cells trained by the library itself, as `censnet train` does, from a preset and some changes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from censnet.data.tables.default_features import count_degree, encode_degree, fit_degree
from censnet.data.tables.schema import Schema
from censnet.nn.chunked import dense
from censnet.nn.model import Model
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.pipeline.resolve import resolve_settings
from censnet.selection.pseudo_labels import INVERSE_TEMPERATURES
from censnet.selection.recipes import fit_ensemble
from censnet.settings.build import MakeEncoder
from censnet.settings.presets import make_settings
from censnet.tasks.metrics import MONITORS
from censnet.training.evaluator import Evaluator, average
from censnet.training.inference import infer
from censnet.training.task_data import TaskData
from censnet.training.trainer import FitResult
from censnet_experiments import records
from censnet_experiments.baselines.encoders import peer
from censnet_experiments.bundle import LessonData
from censnet_experiments.plan import SECTIONS, Plan, Preset
from censnet_experiments.records import Record

logger = logging.getLogger(__name__)


def run_cell(
    plan: Plan[Preset],
    cell: str,
    data: LessonData,
    seeds: Sequence[int],
    results: Path,
    *,
    device: torch.device,
    at_once: int | None = None,
) -> None:
    """Add a record for each seed that has none yet.

    Args:
        plan: the method.
        cell: one of the data's.
        data: with the lessons of these seeds.
        seeds: which replicates.
        results: the directory of records.
        device: where to train.
        at_once: how many seeds of a graph with few labels are trained side by side; None is all of them on a GPU and
            one on a CPU. Records are added after each lot.
    """
    path = records.record_path(results, plan.table, cell, plan.method)
    todo = records.missing_seeds(path, plan, seeds)
    lot = at_once or (len(todo) if device.type == "cuda" else 1)
    if plan.table != "nodes" or plan.recipe.ensemble > 1:
        lot = 1
    for some in _lots(todo, lot):
        lessons = [data.lessons[cell][plan.split_seed(seed)] for seed in some]
        found = [replace(record, cell=cell) for record in learn(plan, lessons, some, device)]
        records.append(path, found)
        for record in found:
            logger.info("%s %s seed %d: %s", cell, plan.method, record.seed, record.metrics)


def _lots(seeds: Sequence[int], most: int) -> list[list[int]]:
    """Seeds in lots of at most so many, each without a gap: members are drawn from their first seed onwards.

    >>> _lots([3, 4, 5, 9, 10], 2)
    [[3, 4], [5], [9, 10]]
    """
    lots: list[list[int]] = []
    for seed in seeds:
        if lots and len(lots[-1]) < most and seed == lots[-1][-1] + 1:
            lots[-1].append(seed)
        else:
            lots.append([seed])
    return lots


def learn(plan: Plan[Preset], lessons: Sequence[TaskData], seeds: Sequence[int], device: torch.device) -> list[Record]:
    """Train each lesson from its seed, several side by side, and judge what validation rows chose. No cell is named."""
    began, recipe = time.perf_counter(), plan.recipe
    if list(seeds) != list(range(seeds[0], seeds[0] + len(seeds))):
        raise ValueError(f"seeds are {list(seeds)}, expected no gap: members are drawn from the first one onwards")
    if not recipe.edge_features:
        lessons = _with_graphs(lessons, _without_edge_features)
    if not recipe.node_features:
        lessons = [replace(one, node_features=False) for one in _with_graphs(lessons, _without_node_features)]
    settings = make_settings(recipe.preset, SECTIONS[plan.table], recipe.changes, seeds[0])
    if not settings.data.descriptors:
        lessons = _with_graphs(lessons, _without_descriptors)
    elif any(task_data.graph.graph_width == 0 for task_data in lessons):
        raise ValueError("the lessons have no descriptors, expected them for data.descriptors: make them anew")
    settings = resolve_settings(lessons[0], settings, set(recipe.changes))
    models, fit_results = fit_ensemble(
        _side_by_side(lessons, recipe.ensemble), settings, None, False, str(device), [],
        len(lessons) * recipe.ensemble, _encoder(recipe),
    )  # fmt: skip
    seconds = (time.perf_counter() - began) / len(seeds)
    chosen = _chosen(fit_results, recipe.ensemble)
    return [
        Record(
            table=plan.table,
            cell="",
            method=plan.method,
            seed=seed,
            split_seed=plan.split_seed(seed),
            settings=plan.settings(),
            chosen=chosen[number],
            num_candidates=_count_tries(fit_results[0]),
            metrics={
                name: round(value, 5)
                for name, value in _judge(
                    models[number * recipe.ensemble : (number + 1) * recipe.ensemble], task_data, device
                ).items()
            },
            seconds=round(seconds, 2),
            device=records.device_name(device),
            versions=records.versions(),
        )
        for number, (seed, task_data) in enumerate(zip(seeds, lessons, strict=True))
    ]


def _side_by_side(lessons: Sequence[TaskData], ensemble: int) -> TaskData:
    """One lesson whose members have the parts of several, which are of one graph with the same labels."""
    first = lessons[0]
    if not first.parts:
        return first
    if any(one.graph is not first.graph or one.targets != first.targets for one in lessons):
        raise ValueError("lessons that are learnt side by side are of several graphs or targets, expected of one")
    parts = {level: torch.cat([one.parts[level].expand(-1, ensemble) for one in lessons], 1) for level in first.parts}
    return replace(first, parts=parts)


def _with_graphs(lessons: Sequence[TaskData], change: Callable[[Graph | GraphSet], Graph | GraphSet]) -> list[TaskData]:
    """The same with another graph; one that several have in common is changed once."""
    made = {id(task_data.graph): task_data.graph for task_data in lessons}
    made = {name: change(graph) for name, graph in made.items()}
    return [replace(task_data, graph=made[id(task_data.graph)]) for task_data in lessons]


def _without_edge_features(graph: Graph | GraphSet) -> Graph | GraphSet:
    """All edges alike."""
    return replace(graph, edges=torch.ones(len(graph.edges), 1))


def _without_node_features(graph: Graph | GraphSet) -> Graph | GraphSet:
    """What stands in for features of nodes in a table of edges alone."""
    if isinstance(graph, GraphSet):
        raise ValueError("node_features is false for many graphs, expected one graph")
    degree = count_degree(graph.ends.numpy(), graph.num_nodes)
    return replace(graph, nodes=encode_degree(fit_degree(Schema(), degree, None), degree))


def _without_descriptors(graph: Graph | GraphSet) -> Graph | GraphSet:
    """No features of whole graphs; lessons of molecules come with them, for the plans that ask."""
    return graph.with_graph_features(None) if isinstance(graph, GraphSet) else graph


def _encoder(recipe: Preset) -> MakeEncoder | None:
    if recipe.encoder == "censnet":
        return None
    return peer(recipe.encoder)


def _chosen(fit_results: Sequence[FitResult], ensemble: int) -> list[dict[str, float]]:
    """What validation rows chose for each seed: the epoch, and the try where there were several."""
    epochs = [epoch for fit_result in fit_results for epoch in fit_result.best_epoch]  # each of one network
    found: list[dict[str, float]] = []
    for first in range(0, len(epochs), ensemble):
        chosen: dict[str, float] = {"epoch": epochs[first]}
        choice = fit_results[first].choice
        if choice is not None:
            kept = choice.candidates[choice.kept]
            chosen |= {
                "round": kept.round,
                "pseudo_label_weight": kept.pseudo_label_weight,
                "frozen_gates": float(kept.gates == "frozen"),
            }
        found.append(chosen)
    return found


def _count_tries(fit_result: FitResult) -> int:
    """How many settings validation rows choose from: first guesses that count are themselves the best of several."""
    candidates = [] if fit_result.choice is None else fit_result.choice.candidates
    return max(
        1, sum(len(INVERSE_TEMPERATURES) if one.pseudo_label_weight and one.round == 1 else 1 for one in candidates)
    )


def _judge(models: Sequence[Model], task_data: TaskData, device: torch.device) -> dict[str, float]:
    """The score that decides, of validation and of test rows; of links, all scores."""
    task_data, found = task_data.to(device), dict[str, float]()
    models = [model.to(device).eval() for model in models]
    if task_data.links is not None:
        for part, prefix in (("validation", "validation_"), ("test", "")):
            scores = Evaluator(task_data, part)(models[0])[0]["link"]
            found |= {f"{prefix}{name}": scores[name] for name in ("auc", "ap")}
        return found
    (level,) = task_data.parts
    answers = torch.stack([_answers(model, task_data, level) for model in models])
    metric = MONITORS[task_data.targets[0].kind]
    for part in ("validation", "test"):
        scores = Evaluator(task_data, part, narrow=False).of({level: average(task_data.of(level), answers)})[0][level]
        found[part] = scores[metric]
    return found


def _answers(model: Model, task_data: TaskData, level: str) -> Tensor:
    return dense(infer(model, task_data.graph).by_level[level])
