"""Guessed classes are tried, not trusted: each member is trained with several weights, and validation keeps one."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

import torch

from censnet.data.splits.split import PARTS
from censnet.nn.members import split_members, stack_members
from censnet.ops.graph import Graph
from censnet.training.config import Settings, SettingsError, make_settings
from censnet.training.lesson import Lesson
from censnet.training.loop.fit import Choice, Fitted
from censnet.training.loop.judge import Mark
from censnet.training.loop.learner import Learner
from censnet.training.run.directory import Tried
from censnet.training.unlabelled import SHARPNESS, guess_classes, smooth_rows

logger = logging.getLogger("censnet")

PLAIN = [0.0]


def settle_unlabelled(lesson: Lesson, settings: Settings, explicit: bool) -> Settings:
    """The settings as they can be followed: where classes cannot be guessed, there is nothing to try.

    Args:
        lesson: what is learnt from.
        settings: as they were asked for.
        explicit: whether the user, rather than a preset, asked for guesses; then it is an error that there are none.
    """
    weights = settings.training.unlabelled
    why = _why_not(lesson, settings) if any(weights) else None
    if why is None:
        return settings
    if explicit:
        raise SettingsError(f"training.unlabelled is {weights}, expected {PLAIN}: classes cannot be guessed, as {why}")
    training = settings.training.model_copy(update={"unlabelled": PLAIN})
    return settings.model_copy(update={"training": training})


def choose_weights(settings: Settings, whole: bool) -> list[float]:
    """How much guessed classes count in each try. `whole` is whether each step has the whole graph, as guesses need."""
    weights = settings.training.unlabelled
    if not any(weights):
        return weights
    if whole:
        several = " and ".join(f"{weight:g}" for weight in weights)
        end = ", whichever does best on validation" if len(weights) > 1 else ""
        logger.info("classes of rows without a label are guessed and count %s beside the labels%s", several, end)
        return weights
    if weights != make_settings(settings.preset, "node").training.unlabelled:
        raise SettingsError(
            f"training.unlabelled is {weights}, expected {PLAIN}: the graph is too big for one step, and guesses need "
            "it whole"
        )
    return PLAIN


def _why_not(lesson: Lesson, settings: Settings) -> str | None:
    """Why classes of rows without a label cannot be guessed here, if they cannot."""
    if not isinstance(lesson.graph, Graph):
        return "there are many graphs"
    if lesson.links is not None:
        return "links are predicted"
    if len(lesson.targets) != 1:
        return f"there are {len(lesson.targets)} targets"
    (target,) = lesson.targets
    if target.level != "node" or target.kind == "number":
        return f"{target.level}:{target.column} is {target.kind}" + (" of edges" if target.level == "edge" else "")
    if settings.training.sampling in ("neighbours", "proportional"):
        return f"training.sampling is {settings.training.sampling}, and guesses need the whole graph in each step"
    if not lesson.has("validation"):
        return "no validation row has a label, and guesses are chosen there"
    return None


def add_guesses(lesson: Lesson, weights: Sequence[float], device: torch.device | str) -> Lesson:
    """A lesson in which each member comes once for each weight, with the classes that it can guess from its labels."""
    tries = len(weights)
    parts = {level: part.repeat_interleave(tries, 1) for level, part in lesson.parts.items()}
    if not any(weights):
        return replace(lesson, parts=parts)
    (target,) = lesson.targets
    assert isinstance(lesson.graph, Graph)
    graph, labels = lesson.graph.to(device), lesson.labels[target.level][:, 0].to(device)
    rows = smooth_rows(graph)
    found: dict[bytes, torch.Tensor] = {}  # members of an ensemble have one split
    guesses = []
    for codes in lesson.parts[target.level].unbind(1):
        key = codes.cpu().numpy().tobytes()
        if key not in found:
            train, validation = (
                (codes == PARTS.index(part)).nonzero().squeeze(1).to(device) for part in ("train", "validation")
            )
            classes = guess_classes(graph, labels, train, validation, len(target.classes), rows=rows)
            found[key] = classes.to(lesson.parts[target.level].device)
        guesses.append(found[key])
    trust = torch.tensor(list(weights)).repeat(len(guesses))
    return replace(lesson, parts=parts, guesses=torch.stack(guesses, 1).repeat_interleave(tries, 1), trust=trust)


def repeat_members(learner: Learner, times: int) -> Learner:
    """Each member several times side by side, from the same start."""
    if times == 1:
        return learner
    return stack_members([member for member in split_members(learner) for _ in range(times)])


def keep_best(learners: Sequence[Learner], fits: Sequence[Fitted], tries: int) -> tuple[list[Learner], list[Fitted]]:
    """Of each member the try that does best on validation rows; of equals, the one of less loss, then the first.

    Args:
        learners: the tries of the first member, then those of the next.
        fits: what they reached: one for each, or one for all side by side.
        tries: of each member.
    """
    marks = [mark for fitted in fits for mark in _marks(fitted)]
    kept, choices = [], []
    for first in range(0, len(marks), tries):
        mine, best = marks[first : first + tries], 0
        for number, mark in enumerate(mine):
            if mark is not None and mark.is_better(fits[0].monitor, mine[best]):
                best = number
        kept.append(first + best)
        choices.append(Choice([None if mark is None else mark.value for mark in mine], best))
    chosen = [learners[number] for number in kept]
    if len(fits) == len(learners):
        return chosen, [replace(fits[number], choices=[one]) for number, one in zip(kept, choices, strict=True)]
    return chosen, [_narrow(fits[0], kept, choices)]


def _marks(fitted: Fitted) -> list[Mark | None]:
    """How good each member was at its best; None where nothing was validated."""
    losses = {(row.get("member", 0), row["epoch"]): row.get("validation_loss") for row in fitted.history}
    marks: list[Mark | None] = []
    for member, (value, epoch) in enumerate(zip(fitted.best, fitted.best_epoch, strict=True)):
        loss = losses.get((member, epoch))
        marks.append(None if value is None or loss is None else Mark(value, loss))
    return marks


def _narrow(fitted: Fitted, kept: Sequence[int], choices: list[Choice]) -> Fitted:
    """What some of the members that were trained side by side reached, numbered anew; one alone needs no number."""
    number = {old: new for new, old in enumerate(kept)}
    history = [{**row, "member": number[int(row["member"])]} for row in fitted.history if row["member"] in number]
    if len(kept) == 1:
        history = [{name: value for name, value in row.items() if name != "member"} for row in history]
    best, epochs = [fitted.best[old] for old in kept], [fitted.best_epoch[old] for old in kept]
    return Fitted(history, fitted.monitor, best, epochs, choices)


def tried(settings: Settings, fits: Sequence[Fitted]) -> Tried | None:
    """What was tried for each member, if something was, as a run says it."""
    choices, weights = [choice for fitted in fits for choice in fitted.choices], settings.training.unlabelled
    if not choices:
        return None
    return Tried(
        settings=len(weights),
        unlabelled=weights,
        sharpness=list(SHARPNESS),
        best=[choice.best for choice in choices],
        kept=[weights[choice.kept] for choice in choices],
    )
