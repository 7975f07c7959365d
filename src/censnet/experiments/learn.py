"""Tables of our own: cells trained by the library itself, as `censnet train` does, from a preset and some changes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from censnet.data.tables.schema import Schema
from censnet.data.tables.stand_ins import count_degree, encode_degree, fit_degree
from censnet.experiments import records
from censnet.experiments.baselines.encoders import peer
from censnet.experiments.lessons import LessonData
from censnet.experiments.plan import SECTIONS, Plan, Preset
from censnet.experiments.records import Record
from censnet.nn.chunked import dense
from censnet.ops.graph import Graph, GraphSet
from censnet.tasks.metrics import MONITORS
from censnet.training.changes import make_settings
from censnet.training.lesson import Lesson
from censnet.training.loop.embedder import MakeEncoder
from censnet.training.loop.fit import Fitted
from censnet.training.loop.infer import infer
from censnet.training.loop.judge import Judge, average
from censnet.training.loop.learner import Learner
from censnet.training.members import fit_members
from censnet.training.settle import settle
from censnet.training.unlabelled import SHARPNESS

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


def learn(plan: Plan[Preset], lessons: Sequence[Lesson], seeds: Sequence[int], device: torch.device) -> list[Record]:
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
    elif any(lesson.graph.graph_width == 0 for lesson in lessons):
        raise ValueError("the lessons have no descriptors, expected them for data.descriptors: make them anew")
    settings = settle(lessons[0], settings, set(recipe.changes))
    learners, fits = fit_members(
        _side_by_side(lessons, recipe.ensemble), settings, None, False, str(device), [],
        len(lessons) * recipe.ensemble, _encoder(recipe),
    )  # fmt: skip
    seconds = (time.perf_counter() - began) / len(seeds)
    chosen = _chosen(fits, recipe.ensemble)
    return [
        Record(
            table=plan.table,
            cell="",
            method=plan.method,
            seed=seed,
            split_seed=plan.split_seed(seed),
            settings=plan.settings(),
            chosen=chosen[number],
            tried=_count_tries(fits[0]),
            metrics={
                name: round(value, 5)
                for name, value in _judge(
                    learners[number * recipe.ensemble : (number + 1) * recipe.ensemble], lesson, device
                ).items()
            },
            seconds=round(seconds, 2),
            device=records.device_name(device),
            versions=records.versions(),
        )
        for number, (seed, lesson) in enumerate(zip(seeds, lessons, strict=True))
    ]


def _side_by_side(lessons: Sequence[Lesson], ensemble: int) -> Lesson:
    """One lesson whose members have the parts of several, which are of one graph with the same labels."""
    first = lessons[0]
    if not first.parts:
        return first
    if any(one.graph is not first.graph or one.targets != first.targets for one in lessons):
        raise ValueError("lessons that are learnt side by side are of several graphs or targets, expected of one")
    parts = {level: torch.cat([one.parts[level].expand(-1, ensemble) for one in lessons], 1) for level in first.parts}
    return replace(first, parts=parts)


def _with_graphs(lessons: Sequence[Lesson], change: Callable[[Graph | GraphSet], Graph | GraphSet]) -> list[Lesson]:
    """The same with another graph; one that several have in common is changed once."""
    made = {id(lesson.graph): lesson.graph for lesson in lessons}
    made = {name: change(graph) for name, graph in made.items()}
    return [replace(lesson, graph=made[id(lesson.graph)]) for lesson in lessons]


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
    return graph.with_graphs(None) if isinstance(graph, GraphSet) else graph


def _encoder(recipe: Preset) -> MakeEncoder | None:
    if recipe.encoder == "censnet":
        return None
    return peer(recipe.encoder)


def _chosen(fits: Sequence[Fitted], ensemble: int) -> list[dict[str, float]]:
    """What validation rows chose for each seed: the epoch, and the try where there were several."""
    epochs = [epoch for fitted in fits for epoch in fitted.best_epoch]  # each of one network
    found: list[dict[str, float]] = []
    for first in range(0, len(epochs), ensemble):
        chosen: dict[str, float] = {"epoch": epochs[first]}
        choice = fits[first].choice
        if choice is not None:
            kept = choice.tries[choice.kept]
            chosen |= {"round": kept.round, "unlabelled": kept.unlabelled, "plain": float(kept.gates == "plain")}
        found.append(chosen)
    return found


def _count_tries(fitted: Fitted) -> int:
    """How many settings validation rows choose from: first guesses that count are themselves the best of several."""
    tries = [] if fitted.choice is None else fitted.choice.tries
    return max(1, sum(len(SHARPNESS) if one.unlabelled and one.round == 1 else 1 for one in tries))


def _judge(learners: Sequence[Learner], lesson: Lesson, device: torch.device) -> dict[str, float]:
    """The score that decides, of validation and of test rows; of links, all scores."""
    lesson, found = lesson.to(device), dict[str, float]()
    learners = [learner.to(device).eval() for learner in learners]
    if lesson.links is not None:
        for part, prefix in (("validation", "validation_"), ("test", "")):
            scores = Judge(lesson, part)(learners[0])[0]["link"]
            found |= {f"{prefix}{name}": scores[name] for name in ("auc", "ap")}
        return found
    (level,) = lesson.parts
    answers = torch.stack([_answers(learner, lesson, level) for learner in learners])
    metric = MONITORS[lesson.targets[0].kind]
    for part in ("validation", "test"):
        scores = Judge(lesson, part, narrow=False).of({level: average(lesson.of(level), answers)})[0][level]
        found[part] = scores[metric]
    return found


def _answers(learner: Learner, lesson: Lesson, level: str) -> Tensor:
    return dense(infer(learner, lesson.graph).rows[level])
