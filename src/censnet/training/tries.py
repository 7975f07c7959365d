"""Several trainings of one network, of which validation keeps one: gates learnt or at rest, classes guessed or not.

In the first round networks learn from the labels, and from classes that are guessed before any network is trained
(`unlabelled.py`). In each further round the guess is what the networks of the round before say together of the rows
without a label: the mean of the best of each kind of gates, made as sure as it is right on validation rows. All start
alike, and differ in what is tried and in what dropout draws. Where labels are many, another network is trained as well.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

import torch
from torch import Tensor

from censnet.data.splits.split import PARTS
from censnet.nn.chunked import dense
from censnet.ops.graph import Graph
from censnet.tasks.answers import probabilities
from censnet.training.changes import make_settings
from censnet.training.config import Labels, Settings, SettingsError, TrainingSettings
from censnet.training.lesson import Lesson
from censnet.training.loop.fit import Choice, Fitted
from censnet.training.loop.infer import infer
from censnet.training.loop.judge import Mark
from censnet.training.loop.learner import Learner
from censnet.training.run.directory import Tried, Try
from censnet.training.unlabelled import SHARPNESS, be_as_sure, guess_classes, smooth_rows

logger = logging.getLogger("censnet")


def plan_tries(training: TrainingSettings) -> list[list[Try]]:
    """What is tried in each round.

    >>> [len(tries) for tries in plan_tries(TrainingSettings(unlabelled=[0, 1], gates=["learnt", "plain"], rounds=3))]
    [4, 2, 2]
    """
    weights = training.unlabelled
    later = [weight for weight in weights if weight > 0]
    rounds = [weights] + [later for _ in range(1, training.rounds) if later]
    return [
        [Try(round=number, gates=gates, unlabelled=weight) for gates in training.gates for weight in some]
        for number, some in enumerate(rounds, 1)
    ]


def choose_tries(settings: Settings, whole: bool) -> list[list[Try]]:
    """The tries of each round. `whole` is whether each step has the whole graph, without which nothing is guessed."""
    training = settings.training
    if whole:
        if any(training.unlabelled):
            several = " and ".join(f"{weight:g}" for weight in training.unlabelled)
            end = ", whichever does best on validation" if len(training.unlabelled) > 1 else ""
            logger.info("classes of rows without a label are guessed and count %s beside the labels%s", several, end)
        return plan_tries(training)
    preset = make_settings(settings.preset, "node").training
    if any(training.unlabelled) and training.unlabelled != preset.unlabelled:
        raise SettingsError(
            f"training.unlabelled is {training.unlabelled}, expected [0.0]: the graph is too big for one step, and "
            "guesses need it whole"
        )
    if training.rounds not in (1, preset.rounds):
        raise SettingsError(
            f"training.rounds is {training.rounds}, expected 1: the graph is too big for one step, and further rounds "
            "learn from guesses, which need it whole"
        )
    if any(training.unlabelled):
        logger.info("the graph is too big for one step, so no classes are guessed, and there is one round")
    return plan_tries(training.model_copy(update={"unlabelled": [0.0]}))


def guess_rows(lesson: Lesson, device: torch.device | str) -> Tensor:
    """The classes that each member can guess from its labels. -> (n, members, classes)"""
    (target,) = lesson.targets
    assert isinstance(lesson.graph, Graph)
    graph, labels = lesson.graph.to(device), lesson.labels[target.level][:, 0].to(device)
    rows = smooth_rows(graph)
    found: dict[bytes, Tensor] = {}  # members of an ensemble have one split
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
    return torch.stack(guesses, 1)


def ask_classes(teachers: Sequence[Sequence[Learner]], lesson: Lesson, device: torch.device | str) -> Tensor:
    """How likely each row is of each class, as the teachers of each member say together. -> (n, members, classes)"""
    (target,) = lesson.targets
    assert isinstance(lesson.graph, Graph)
    graph, labels = lesson.graph.to(device), lesson.labels[target.level][:, 0].to(device)
    found = []
    for learners, codes in zip(teachers, lesson.parts[target.level].unbind(1), strict=True):
        answers = [dense(infer(learner.to(device), graph).rows[target.level]) for learner in learners]
        said = torch.stack([probabilities(target, each.float()) for each in answers]).mean(0)
        asked = (codes.to(device) == PARTS.index("validation")) & ~labels.isnan()
        rows = asked.nonzero().squeeze(1)
        right = float((said[rows].argmax(1) == labels[rows]).double().mean())
        found.append(be_as_sure(said, rows, right).to(codes.device))
        for learner in learners:
            learner.cpu()
    return torch.stack(found, 1)


def best_of_each(learners: Sequence[Learner], fits: Sequence[Fitted], tries: Sequence[Try]) -> list[Learner]:
    """Of the tries of one member in the last round, the best of each kind of gates."""
    last = [number for number, one in enumerate(tries) if one.round == tries[-1].round]
    found = []
    for kind in dict.fromkeys(tries[number].gates for number in last):
        mine = [number for number in last if tries[number].gates == kind]
        found.append(learners[mine[_best([fits[number] for number in mine])]])
    return found


def add_tries(lesson: Lesson, tries: Sequence[Try], guesses: Tensor | None, members: int) -> Lesson:
    """A lesson in which each member comes once for each try, with the classes that it guesses."""
    times = len(tries)
    parts = {level: part.repeat_interleave(times, 1) for level, part in lesson.parts.items()}
    plain = torch.tensor([one.gates == "plain" for one in tries]).repeat(members)
    lesson = replace(lesson, parts=parts, plain=plain if bool(plain.any()) else None)
    if guesses is None:
        return lesson
    trust = torch.tensor([one.unlabelled for one in tries]).repeat(members)
    return replace(lesson, guesses=guesses.repeat_interleave(times, 1), trust=trust)


def apart(fitted: Fitted) -> list[Fitted]:
    """What each of the networks that were trained side by side reached by itself."""
    found = []
    for member, (best, epoch) in enumerate(zip(fitted.best, fitted.best_epoch, strict=True)):
        rows = [
            {name: value for name, value in row.items() if name != "member"}
            for row in fitted.history
            if row.get("member", 0) == member  # one alone has no number
        ]
        found.append(Fitted(rows, fitted.monitor, [best], [epoch]))
    return found


def keep_best(learners: Sequence[Learner], fits: Sequence[Fitted], tries: Sequence[Try]) -> tuple[Learner, Fitted]:
    """Of the tries of one member the best on validation rows; of equals, the one of less loss, then the first."""
    best, marks = _best(fits), map(_mark, fits)
    choice = Choice(list(tries), [None if mark is None else mark.value for mark in marks], best)
    return learners[best], replace(fits[best], choice=choice)


def keep_best_so_far(found: Mapping[int, tuple[Learner, Fitted]], tries: Sequence[Try]) -> tuple[Learner, Fitted]:
    """The best of those tries of one member, by their places, that an unfinished training has come to."""
    places = sorted(found)
    best = places[_best([found[place][1] for place in places])]
    marks = [_mark(found[place][1]) if place in found else None for place in range(len(tries))]
    choice = Choice(list(tries), [None if mark is None else mark.value for mark in marks], best)
    return found[best][0], replace(found[best][1], choice=choice)


def keep_network(
    found: Sequence[tuple[Sequence[Learner], Sequence[Fitted]]], networks: Sequence[Settings]
) -> tuple[Settings, list[Learner], list[Fitted]]:
    """Of several networks the one whose members do best on validation rows, in the mean; of equals, the first."""
    best = 0
    if len(networks) > 1:
        best = _best_mark([_mean_mark(fits) for _, fits in found], found[0][1][0].monitor)
    settings, (learners, fits) = networks[best], found[best]
    if len(networks) == 1:
        return settings, list(learners), list(fits)
    merged = []
    for member, fitted in enumerate(fits):
        choices = [_choice(each[member], one) for (_, each), one in zip(found, networks, strict=True)]
        tries = [one for choice in choices for one in choice.tries]
        values = [value for choice in choices for value in choice.best]
        kept = sum(len(choice.tries) for choice in choices[:best]) + choices[best].kept
        merged.append(replace(fitted, choice=Choice(tries, values, kept)))
    training = settings.training.model_copy(update={"labels": _labels(settings)})
    return settings.model_copy(update={"training": training}), list(learners), merged


def _choice(fitted: Fitted, settings: Settings) -> Choice:
    """What one network was chosen from, with the name of the network; it may have been trained once."""
    choice, labels = fitted.choice, _labels(settings)
    if choice is None:
        alone = Try(round=1, gates=settings.training.gates[0], unlabelled=0.0, labels=labels)
        return Choice([alone], list(fitted.best), 0)
    return replace(choice, tries=[one.model_copy(update={"labels": labels}) for one in choice.tries])


def _labels(settings: Settings) -> Labels:
    return "many" if settings.training.labels == "many" else "few"


def _best(fits: Sequence[Fitted]) -> int:
    """The place of the best on validation rows."""
    return _best_mark([_mark(fitted) for fitted in fits], fits[0].monitor)


def _best_mark(marks: Sequence[Mark | None], monitor: str) -> int:
    best = 0
    for number, mark in enumerate(marks):
        if mark is not None and mark.is_better(monitor, marks[best]):
            best = number
    return best


def _mark(fitted: Fitted) -> Mark | None:
    """How good a network was at its best; None where nothing was validated."""
    (value,), (epoch,) = fitted.best, fitted.best_epoch
    loss = next((row.get("validation_loss") for row in fitted.history if row["epoch"] == epoch), None)
    return None if value is None or loss is None else Mark(value, loss)


def _mean_mark(fits: Sequence[Fitted]) -> Mark | None:
    """How good the members of a network were in the mean."""
    marks = [mark for mark in map(_mark, fits) if mark is not None]
    if len(marks) < len(fits):
        return None
    return Mark(fmean(mark.value for mark in marks), fmean(mark.loss for mark in marks))


def tried(fits: Sequence[Fitted]) -> Tried | None:
    """What was tried for each member, if something was, as a run says it."""
    choices = [fitted.choice for fitted in fits if fitted.choice is not None]
    if not choices:
        return None
    tries = choices[0].tries
    return Tried(
        tries=tries,
        sharpness=list(SHARPNESS) if any(one.unlabelled for one in tries) else [],
        best=[choice.best for choice in choices],
        kept=[choice.kept for choice in choices],
    )
