"""Networks for one lesson: one, or several from seeds of their own, side by side where that is faster."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import torch

from censnet.nn.members import split_members, stack_members
from censnet.ops.graph import Graph, GraphSet
from censnet.tasks.graphs import GraphTask
from censnet.training.config import Settings
from censnet.training.lesson import Lesson, graphs_with
from censnet.training.loop.batches import choose_sampling
from censnet.training.loop.devices import make_accelerator, total_memory
from censnet.training.loop.embedder import MakeEncoder
from censnet.training.loop.fit import Fitted, Listener, close, fit
from censnet.training.loop.learner import Learner
from censnet.training.run.checkpoint import RunError
from censnet.training.run.directory import CHECKPOINT, Try
from censnet.training.run.history import HistoryFile
from censnet.training.run.opening import history_path
from censnet.training.tries import (
    add_tries,
    apart,
    ask_classes,
    best_of_each,
    choose_tries,
    guess_rows,
    keep_best,
    keep_best_so_far,
    plan_tries,
)

logger = logging.getLogger("censnet")

TRIES = 2**32  # between the seeds of the tries of a member, which are below: they draw apart
NOTHING = [Try(round=1, gates="learnt", unlabelled=0.0)]  # to choose from

# Up to how many numbers in one activation members are trained at once. On a CPU it saves the cost of starting each
# operation, and nothing else: on two cores a step at once took 0.3 to 0.6 of the time of steps one by one at 7,000
# numbers a member (Karate), 0.8 at 128,000, and 0.9 to 1.2 on Cora, at 256,000 and above; besides, members that have
# stopped early are carried along. A GPU is far from full.
AT_ONCE_ON_CPU = 2**17  # of each member
AT_ONCE_ON_GPU = 2**30  # of all members


def fit_members(
    lesson: Lesson,
    settings: Settings,
    folder: Path | None,
    resume: bool,
    device: str | None,
    listeners: Sequence[Listener],
    members: int,
    make_encoder: MakeEncoder | None = None,
    *,
    name: str = "",
    record: HistoryFile | None = None,
) -> tuple[list[Learner], list[Fitted]]:
    """Train members from seeds of their own: at once where one graph is small, else one after the other.

    Where several things are tried (`tries.py`), each member is trained with each, as if these were members too, and the
    best on validation rows is kept. With `make_encoder`, another network is trained in the place of CensNet, and all
    else is the same. A second network in the folder has a `name` of its own, and the `record` of the first.
    """
    rounds = _plan_rounds(lesson, settings, members, device, make_encoder)
    several = members * sum(map(len, rounds)) > 1
    at_once = several and fits_side_by_side(lesson, settings, members, device)
    if resume and folder is not None:
        at_once = _as_begun(folder / CHECKPOINT, name, at_once)
    if folder is not None and record is None:
        record = HistoryFile(history_path(folder), several)
    where = make_accelerator(device=device).device
    learners: list[list[Learner]] = [[] for _ in range(members)]  # the tries of each member
    fits: list[list[Fitted]] = [[] for _ in range(members)]
    done: list[Try] = []
    guesses = guess_rows(lesson, where) if any(one.unlabelled for one in rounds[0]) else None
    for number, tries in enumerate(rounds):
        if number > 0:
            teachers = [best_of_each(*found, done) for found in zip(learners, fits, strict=True)]
            guesses = ask_classes(teachers, lesson, where)
        taught = lesson if rounds == [NOTHING] else add_tries(lesson, tries, guesses, members)
        places = range(len(done), len(done) + len(tries))
        seeds = [settings.seed + member + place * TRIES for member in range(members) for place in places]
        done += tries
        found = _fit_all(
            taught, settings, seeds, at_once,
            None if folder is None else folder / CHECKPOINT, name + (f"round-{number + 1}-" if number else ""),
            resume, device, listeners, record, make_encoder,
        )  # fmt: skip
        for network, (learner, fitted) in enumerate(zip(*found, strict=True)):
            learners[network // len(tries)].append(learner)
            fits[network // len(tries)].append(fitted)
    if rounds == [NOTHING]:
        return [learner for (learner,) in learners], [fitted for (fitted,) in fits]
    kept = [keep_best(*found, done) for found in zip(learners, fits, strict=True)]
    return [learner for learner, _ in kept], [fitted for _, fitted in kept]


def fit_networks(
    lesson: Lesson,
    networks: Sequence[Settings],
    folder: Path | None,
    resume: bool,
    device: str | None,
    listeners: Sequence[Listener],
    members: int,
) -> list[tuple[list[Learner], list[Fitted]]]:
    """`fit_members` for one network after the other, of which one is to be kept (`keep_network`)."""
    if len(networks) == 1:
        return [fit_members(lesson, networks[0], folder, resume, device, listeners, members)]
    logger.info("the network for few labels is trained and that for many, whichever does best on validation")
    record = None if folder is None else HistoryFile(history_path(folder), several=True)
    return [
        fit_members(
            lesson, settings, folder, resume, device, listeners, members,
            name=f"network-{number}-" if number > 1 else "", record=record,
        )
        for number, settings in enumerate(networks, 1)
    ]  # fmt: skip


def close_networks(
    lesson: Lesson, networks: Sequence[Settings], folder: Path, device: str | None, members: int
) -> list[tuple[list[Learner], list[Fitted]]]:
    """For each network the members of an unfinished training that have an epoch to show, with their best so far.

    Of several tries of a member, those that were come to are compared. A second network that has fewer members than the
    first cannot be compared with it, and is left out.
    """
    found = [
        _close_members(lesson, settings, folder / CHECKPOINT, device, members, f"network-{n}-" if n > 1 else "")
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
    lesson: Lesson, settings: Settings, checkpoint: Path, device: str | None, members: int, name: str
) -> tuple[list[Learner], list[Fitted]]:
    """The members of one network that have an epoch to show."""
    rounds = _plan_rounds(lesson, settings, members, device, None)
    found: list[dict[int, tuple[Learner, Fitted]]] = [{} for _ in range(members)]  # by the places of the tries
    done: list[Try] = []
    for number, tries in enumerate(rounds):
        taught = lesson if rounds == [NOTHING] else add_tries(lesson, tries, None, members)
        prefix = name + (f"round-{number + 1}-" if number else "")
        for network, reached in _close_all(taught, settings, members * len(tries), checkpoint, prefix, device).items():
            found[network // len(tries)][len(done) + network % len(tries)] = reached
        done += tries
    if rounds == [NOTHING]:
        kept = [each[0] for each in found if each]
    else:
        kept = [keep_best_so_far(each, done) for each in found if each]
    return [learner for learner, _ in kept], [fitted for _, fitted in kept]


def _close_all(
    lesson: Lesson, settings: Settings, count: int, checkpoint: Path, prefix: str, device: str | None
) -> dict[int, tuple[Learner, Fitted]]:
    """The networks of one round that have an epoch to show, by their numbers."""
    found = {}
    together = checkpoint / f"{prefix}members.safetensors"
    if together.exists():
        many = stack_members([make_learner(lesson.member(number), settings) for number in range(count)])
        fitted = close(many, lesson, settings.training, device=device, checkpoint=together)
        if fitted is not None:
            found = dict(enumerate(zip(split_members(many.cpu()), apart(fitted), strict=True)))
    else:
        for number in range(count):
            place, mine = checkpoint / f"{prefix}member-{number}.safetensors", lesson.member(number)
            learner = make_learner(mine, settings)
            fitted = close(learner, mine, settings.training, device=device, checkpoint=place)
            if fitted is not None:
                found[number] = (learner.cpu(), fitted)
    return {number: reached for number, reached in found.items() if reached[1].best_epoch[0] > 0}


def _plan_rounds(
    lesson: Lesson, settings: Settings, members: int, device: str | None, make_encoder: MakeEncoder | None
) -> list[list[Try]]:
    """What is tried in each round, as far as it can be followed."""
    rounds = plan_tries(settings.training)
    if len(rounds) > 1 or rounds[0] != NOTHING:
        rounds = choose_tries(settings, _is_seen_whole(lesson, settings, members, device, make_encoder))
    return rounds


def _as_begun(checkpoint: Path, name: str, at_once: bool) -> bool:
    """Whether to go on side by side: as it was begun, which may have been on another kind of device."""
    if any(checkpoint.glob(f"{name}*members.safetensors")):
        return True
    return at_once and not any(checkpoint.glob(f"{name}*member-*.safetensors"))


def _fit_all(
    lesson: Lesson,
    settings: Settings,
    seeds: Sequence[int],
    at_once: bool,
    checkpoint: Path | None,
    prefix: str,
    resume: bool,
    device: str | None,
    listeners: Sequence[Listener],
    record: HistoryFile | None,
    make_encoder: MakeEncoder | None,
) -> tuple[list[Learner], list[Fitted]]:
    """A network from each seed, side by side or one by one; all tries of a member start alike."""

    def make(number: int) -> Learner:
        torch.manual_seed(seeds[number] % TRIES)
        return make_learner(lesson.member(number), settings, make_encoder)

    def fit_one(learner: Learner, lesson: Lesson, seed: int, name: str) -> Fitted:
        return fit(
            learner, lesson, settings.training, seed,
            device=device, checkpoint=None if checkpoint is None else checkpoint / f"{prefix}{name}.safetensors",
            resume=resume, listeners=listeners, record=record,
        )  # fmt: skip

    if at_once:
        many = stack_members([make(number) for number in range(len(seeds))])
        fitted = fit_one(many, lesson, seeds[0], "members")
        return split_members(many.cpu()), apart(fitted)
    learners, fits = [], []
    for number, seed in enumerate(seeds):
        learner = make(number)
        fits.append(fit_one(learner, lesson.member(number), seed, f"member-{number}"))
        learners.append(learner.cpu())
    return learners, fits


def _is_seen_whole(
    lesson: Lesson, settings: Settings, members: int, device: str | None, make_encoder: MakeEncoder | None = None
) -> bool:
    """Whether each step has the whole graph, or some of many graphs; asked only where something is tried."""
    if isinstance(lesson.graph, Graph) and members > 1 and fits_side_by_side(lesson, settings, members, device):
        return True
    one, memory = lesson.member(0), total_memory(make_accelerator(device=device).device)
    learner = make_learner(one, settings, make_encoder)
    return choose_sampling(one, settings.training, learner, memory).sampling == "whole"


def make_learner(lesson: Lesson, settings: Settings, make_encoder: MakeEncoder | None = None) -> Learner:
    """A network for a lesson; CensNet, unless another is made."""
    widths, link = (lesson.graph.node_width, lesson.graph.edge_width), lesson.links is not None
    learner = Learner(
        *widths, lesson.targets, link, settings.model, 1, lesson.node_features, make_encoder, lesson.graph.graph_width,
    )  # fmt: skip
    if isinstance(lesson.graph, GraphSet):
        learnt = graphs_with(lesson.graph, lesson.parts, 0)
        offsets = lesson.graph.node_offset, lesson.graph.edge_offset
        usual = [float(offset.diff()[learnt].double().mean()) for offset in offsets]
        for task in learner.tasks.values():
            if isinstance(task, GraphTask):
                task.head.set_usual(*usual)
    return learner


def fits_side_by_side(lesson: Lesson, settings: Settings, members: int, device: str | None) -> bool:
    """Whether members train at once: on one graph that is small enough, or on the same batches of small graphs."""
    graph, training = lesson.graph, settings.training
    if lesson.links is not None:
        return False
    if isinstance(graph, Graph):
        rows: float = graph.num_nodes + graph.num_edges
        if training.sampling in ("neighbours", "proportional") or training.imbalance == "sampling":
            return False
    else:
        size = training.batch_size_for(len(graphs_with(graph, lesson.parts, 0)))
        rows = (len(graph.nodes) + len(graph.edges)) / max(len(graph), 1) * size
        if any(bool((part != part[:, :1]).any()) for part in lesson.parts.values()):
            return False
    on_gpu = make_accelerator(device=device).device.type != "cpu"
    numbers, tries = rows * settings.model.hidden, max(map(len, plan_tries(training)))
    return numbers * members * tries <= AT_ONCE_ON_GPU and (on_gpu or numbers <= AT_ONCE_ON_CPU)
