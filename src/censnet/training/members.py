"""Networks for one lesson: one, or several from seeds of their own, side by side where that is faster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from censnet.nn.members import split_members
from censnet.ops.graph import Graph
from censnet.training.config import Settings
from censnet.training.lesson import Lesson
from censnet.training.loop.batches import choose_sampling
from censnet.training.loop.devices import make_accelerator, total_memory
from censnet.training.loop.embedder import MakeEncoder
from censnet.training.loop.fit import Fitted, Listener, fit
from censnet.training.loop.learner import Learner
from censnet.training.run.directory import CHECKPOINT, HISTORY
from censnet.training.run.history import HistoryFile
from censnet.training.tries import PLAIN, add_guesses, choose_weights, keep_best, repeat_members

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
) -> tuple[list[Learner], list[Fitted]]:
    """Train members from seeds of their own: at once where one graph is small, else one after the other.

    Where guessed classes are tried with several weights, each member is trained with each from the same start, as if
    these were members too, and the best on validation rows is kept. With `make_encoder`, another network is trained in
    the place of CensNet, and all else is the same.
    """
    checkpoint = None if folder is None else folder / CHECKPOINT
    several = members * len(settings.training.unlabelled) > 1
    together = several and fits_side_by_side(lesson, settings, members, device)
    weights = choose_weights(
        settings, (members > 1 and together) or _is_seen_whole(lesson, settings, device, make_encoder)
    )
    tries, total = len(weights), members * len(weights)
    at_once = total > 1 and together
    record = None if folder is None else HistoryFile(folder / HISTORY, several=total > 1 and not at_once)
    if weights != PLAIN:
        lesson = add_guesses(lesson, weights, make_accelerator(device=device).device)

    def make(seed: int, count: int) -> Learner:
        torch.manual_seed(seed)
        return make_learner(lesson, settings, count, make_encoder)

    if at_once:
        many = repeat_members(make(settings.seed, members), tries)
        path = None if checkpoint is None else checkpoint / "members.safetensors"
        fitted = fit(
            many, lesson, settings.training, settings.seed,
            device=device, checkpoint=path, resume=resume, listeners=listeners, record=record,
        )  # fmt: skip
        learners, fits = split_members(many.cpu()), [fitted]
        return (learners, fits) if weights == PLAIN else keep_best(learners, fits, tries)
    learners, fits = [], []
    for number in range(total):
        seed = settings.seed + number // tries
        learner = make(seed, 1)
        path = None if checkpoint is None else checkpoint / f"member-{number}.safetensors"
        fits.append(
            fit(
                learner, lesson.member(number) if lesson.parts else lesson, settings.training, seed,
                device=device, checkpoint=path, resume=resume, listeners=listeners, record=record,
            )
        )  # fmt: skip
        learners.append(learner.cpu())
    return (learners, fits) if weights == PLAIN else keep_best(learners, fits, tries)


def _is_seen_whole(
    lesson: Lesson, settings: Settings, device: str | None, make_encoder: MakeEncoder | None = None
) -> bool:
    """Whether each step of one member has the whole graph; asked only where guessed classes need it."""
    if not any(settings.training.unlabelled):
        return True
    one, memory = lesson.member(0), total_memory(make_accelerator(device=device).device)
    learner = make_learner(one, settings, make_encoder=make_encoder)
    return choose_sampling(one, settings.training, learner, memory).sampling == "whole"


def make_learner(
    lesson: Lesson, settings: Settings, members: int = 1, make_encoder: MakeEncoder | None = None
) -> Learner:
    """A network for a lesson, or several side by side; CensNet, unless another is made."""
    widths, link = (lesson.graph.node_width, lesson.graph.edge_width), lesson.links is not None
    return Learner(
        *widths, lesson.targets, link, settings.model, members, lesson.node_features, make_encoder,
        lesson.graph.graph_width,
    )  # fmt: skip


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
        rows = (len(graph.nodes) + len(graph.edges)) / max(len(graph), 1) * training.batch_size
        if any(bool((part != part[:, :1]).any()) for part in lesson.parts.values()):
            return False
    on_gpu = make_accelerator(device=device).device.type != "cpu"
    numbers = rows * settings.model.hidden
    return numbers * members * len(settings.training.unlabelled) <= AT_ONCE_ON_GPU and (
        on_gpu or numbers <= AT_ONCE_ON_CPU
    )
