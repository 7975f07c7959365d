"""Networks for one lesson: one, or several from seeds of their own, side by side where that is faster."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import torch

from censnet.errors import RunError
from censnet.nn.ensemble import split_members, stack_members
from censnet.nn.model import Model
from censnet.ops.graph import Graph
from censnet.runs.config import Candidate
from censnet.runs.directory import CHECKPOINT
from censnet.runs.resume import history_path
from censnet.selection.self_training import (
    apart,
    best_per_gate_mode,
    candidate_grid,
    expand_members,
    feasible_candidates,
    initial_pseudo_labels,
    predict_pseudo_labels,
    select_best,
    select_best_so_far,
)
from censnet.settings.build import MakeEncoder
from censnet.settings.schema import Settings
from censnet.training.batches import choose_sampling
from censnet.training.devices import make_accelerator, total_memory
from censnet.training.history import HistoryFile
from censnet.training.task_data import TaskData, build_model, graphs_with
from censnet.training.trainer import Callback, FitResult, close, fit

logger = logging.getLogger("censnet")

TRIES = 2**32  # between the seeds of the tries of a member, which are below: they draw apart
NOTHING = [Candidate(round=1, gates="learned", pseudo_label_weight=0.0)]  # to choose from

# Up to how many numbers in one activation members are trained at once. On a CPU it saves the cost of starting each
# operation, and nothing else: on two cores a step at once took 0.3 to 0.6 of the time of steps one by one at 7,000
# numbers a member (Karate), 0.8 at 128,000, and 0.9 to 1.2 on Cora, at 256,000 and above; besides, members that have
# stopped early are carried along. A GPU is far from full.
AT_ONCE_ON_CPU = 2**17  # of each member
AT_ONCE_ON_GPU = 2**30  # of all members


def fit_ensemble(
    task_data: TaskData,
    settings: Settings,
    folder: Path | None,
    resume: bool,
    device: str | None,
    callbacks: Sequence[Callback],
    members: int,
    make_encoder: MakeEncoder | None = None,
    *,
    name: str = "",
    record: HistoryFile | None = None,
) -> tuple[list[Model], list[FitResult]]:
    """Train members from seeds of their own: at once where one graph is small, else one after the other.

    Where there are several candidates (`self_training.py`), each member is trained with each, as if these were members
    too, and the best on validation is selected. With `make_encoder`, another encoder
    takes the place of CensNet. A second network in the folder has a `name` of its own, and the `record` of the first.
    """
    rounds = _plan_rounds(task_data, settings, members, device, make_encoder)
    several = members * sum(map(len, rounds)) > 1
    at_once = several and can_batch_members(task_data, settings, members, device)
    if resume and folder is not None:
        at_once = _as_begun(folder / CHECKPOINT, name, at_once)
    if folder is not None and record is None:
        record = HistoryFile(history_path(folder), several)
    where = make_accelerator(device=device).device
    models: list[list[Model]] = [[] for _ in range(members)]  # the tries of each member
    fit_results: list[list[FitResult]] = [[] for _ in range(members)]
    done: list[Candidate] = []
    soft_labels = initial_pseudo_labels(task_data, where) if any(one.pseudo_label_weight for one in rounds[0]) else None
    for number, candidates in enumerate(rounds):
        if number > 0:
            teachers = [best_per_gate_mode(*found, done) for found in zip(models, fit_results, strict=True)]
            soft_labels = predict_pseudo_labels(teachers, task_data, where)
        taught = task_data if rounds == [NOTHING] else expand_members(task_data, candidates, soft_labels, members)
        places = range(len(done), len(done) + len(candidates))
        seeds = [settings.seed + member + place * TRIES for member in range(members) for place in places]
        done += candidates
        found = _fit_all(
            taught, settings, seeds, at_once,
            None if folder is None else folder / CHECKPOINT, name + (f"round-{number + 1}-" if number else ""),
            resume, device, callbacks, record, make_encoder,
        )  # fmt: skip
        for network, (model, fit_result) in enumerate(zip(*found, strict=True)):
            models[network // len(candidates)].append(model)
            fit_results[network // len(candidates)].append(fit_result)
    if rounds == [NOTHING]:
        return [model for (model,) in models], [fit_result for (fit_result,) in fit_results]
    kept = [select_best(*found, done) for found in zip(models, fit_results, strict=True)]
    return [model for model, _ in kept], [fit_result for _, fit_result in kept]


def fit_recipes(
    task_data: TaskData,
    networks: Sequence[Settings],
    folder: Path | None,
    resume: bool,
    device: str | None,
    callbacks: Sequence[Callback],
    members: int,
) -> list[tuple[list[Model], list[FitResult]]]:
    """`fit_ensemble` for one network after the other, of which one is to be kept (`select_network`)."""
    if len(networks) == 1:
        return [fit_ensemble(task_data, networks[0], folder, resume, device, callbacks, members)]
    logger.info("the network for few labels is trained and that for many, whichever does best on validation")
    record = None if folder is None else HistoryFile(history_path(folder), several=True)
    return [
        fit_ensemble(
            task_data, settings, folder, resume, device, callbacks, members,
            name=f"network-{number}-" if number > 1 else "", record=record,
        )
        for number, settings in enumerate(networks, 1)
    ]  # fmt: skip


def close_recipes(
    task_data: TaskData, networks: Sequence[Settings], folder: Path, device: str | None, members: int
) -> list[tuple[list[Model], list[FitResult]]]:
    """For each network the members of an unfinished training that have an epoch to show, with their best so far.

    Of several tries of a member, those that were come to are compared. A second network that has fewer members than the
    first cannot be compared with it, and is left out.
    """
    found = [
        _close_members(task_data, settings, folder / CHECKPOINT, device, members, f"network-{n}-" if n > 1 else "")
        for n, settings in enumerate(networks, 1)
    ]
    count = len(found[0][0])
    if count == 0:
        raise RunError(
            f"{folder} has no epoch yet that could be kept: censnet train --resume --out {folder} goes on with it"
        )
    if count < members:
        logger.info("%d of %d networks have an epoch to show: the ensemble is made of these", count, members)
    return [each for each in found if len(each[0]) == count]


def _close_members(
    task_data: TaskData, settings: Settings, checkpoint: Path, device: str | None, members: int, name: str
) -> tuple[list[Model], list[FitResult]]:
    """The members of one network that have an epoch to show."""
    rounds = _plan_rounds(task_data, settings, members, device, None)
    found: list[dict[int, tuple[Model, FitResult]]] = [{} for _ in range(members)]  # by the places of the tries
    done: list[Candidate] = []
    for number, candidates in enumerate(rounds):
        taught = task_data if rounds == [NOTHING] else expand_members(task_data, candidates, None, members)
        prefix = name + (f"round-{number + 1}-" if number else "")
        for network, reached in _close_all(
            taught, settings, members * len(candidates), checkpoint, prefix, device
        ).items():
            found[network // len(candidates)][len(done) + network % len(candidates)] = reached
        done += candidates
    if rounds == [NOTHING]:
        kept = [each[0] for each in found if each]
    else:
        kept = [select_best_so_far(each, done) for each in found if each]
    return [model for model, _ in kept], [fit_result for _, fit_result in kept]


def _close_all(
    task_data: TaskData, settings: Settings, count: int, checkpoint: Path, prefix: str, device: str | None
) -> dict[int, tuple[Model, FitResult]]:
    """The networks of one round that have an epoch to show, by their numbers."""
    found = {}
    together = checkpoint / f"{prefix}members.safetensors"
    if together.exists():
        many = stack_members([build_model(task_data.member(number), settings) for number in range(count)])
        fit_result = close(many, task_data, settings.training, device=device, checkpoint=together)
        if fit_result is not None:
            found = dict(enumerate(zip(split_members(many.cpu()), apart(fit_result), strict=True)))
    else:
        for number in range(count):
            place, mine = checkpoint / f"{prefix}member-{number}.safetensors", task_data.member(number)
            model = build_model(mine, settings)
            fit_result = close(model, mine, settings.training, device=device, checkpoint=place)
            if fit_result is not None:
                found[number] = (model.cpu(), fit_result)
    return {number: reached for number, reached in found.items() if reached[1].best_epoch[0] > 0}


def _plan_rounds(
    task_data: TaskData, settings: Settings, members: int, device: str | None, make_encoder: MakeEncoder | None
) -> list[list[Candidate]]:
    """What is tried in each round, as far as it can be followed."""
    rounds = candidate_grid(settings.training)
    if len(rounds) > 1 or rounds[0] != NOTHING:
        rounds = feasible_candidates(settings, _is_seen_whole(task_data, settings, members, device, make_encoder))
    return rounds


def _as_begun(checkpoint: Path, name: str, at_once: bool) -> bool:
    """Whether to go on side by side: as it was begun, which may have been on another kind of device."""
    if any(checkpoint.glob(f"{name}*members.safetensors")):
        return True
    return at_once and not any(checkpoint.glob(f"{name}*member-*.safetensors"))


def _fit_all(
    task_data: TaskData,
    settings: Settings,
    seeds: Sequence[int],
    at_once: bool,
    checkpoint: Path | None,
    prefix: str,
    resume: bool,
    device: str | None,
    callbacks: Sequence[Callback],
    record: HistoryFile | None,
    make_encoder: MakeEncoder | None,
) -> tuple[list[Model], list[FitResult]]:
    """A network from each seed, side by side or one by one; all tries of a member start alike."""

    def make(number: int) -> Model:
        torch.manual_seed(seeds[number] % TRIES)
        return build_model(task_data.member(number), settings, make_encoder)

    def fit_one(model: Model, task_data: TaskData, seed: int, name: str) -> FitResult:
        return fit(
            model, task_data, settings.training, seed,
            device=device, checkpoint=None if checkpoint is None else checkpoint / f"{prefix}{name}.safetensors",
            resume=resume, callbacks=callbacks, record=record,
        )  # fmt: skip

    if at_once:
        many = stack_members([make(number) for number in range(len(seeds))])
        fit_result = fit_one(many, task_data, seeds[0], "members")
        return split_members(many.cpu()), apart(fit_result)
    models, fit_results = [], []
    for number, seed in enumerate(seeds):
        model = make(number)
        fit_results.append(fit_one(model, task_data.member(number), seed, f"member-{number}"))
        models.append(model.cpu())
    return models, fit_results


def _is_seen_whole(
    task_data: TaskData, settings: Settings, members: int, device: str | None, make_encoder: MakeEncoder | None = None
) -> bool:
    """Whether each step has the whole graph, or some of many graphs; asked only where something is tried."""
    if isinstance(task_data.graph, Graph) and members > 1 and can_batch_members(task_data, settings, members, device):
        return True
    one, memory = task_data.member(0), total_memory(make_accelerator(device=device).device)
    model = build_model(one, settings, make_encoder)
    return choose_sampling(one, settings.training, model, memory).sampling == "full"


def can_batch_members(task_data: TaskData, settings: Settings, members: int, device: str | None) -> bool:
    """Whether members train at once: on one graph that is small enough, or on the same batches of small graphs."""
    graph, training = task_data.graph, settings.training
    if task_data.links is not None:
        return False
    if isinstance(graph, Graph):
        rows: float = graph.num_nodes + graph.num_edges
        if training.sampling in ("neighbors", "proportional") or training.imbalance == "sampling":
            return False
    else:
        size = training.batch_size_for(len(graphs_with(graph, task_data.parts, 0)))
        rows = (len(graph.nodes) + len(graph.edges)) / max(len(graph), 1) * size
        if any(bool((part != part[:, :1]).any()) for part in task_data.parts.values()):
            return False
    on_gpu = make_accelerator(device=device).device.type != "cpu"
    numbers, candidates = rows * settings.model.hidden, max(map(len, candidate_grid(training)))
    return numbers * members * candidates <= AT_ONCE_ON_GPU and (on_gpu or numbers <= AT_ONCE_ON_CPU)
