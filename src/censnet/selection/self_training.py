"""Several trainings of one network, of which validation keeps one: gates learnt or at rest, classes guessed or not.

In the first round networks learn from the labels, and from classes that are guessed before any network is trained
(`pseudo_labels.py`). In each further round the guess is what the networks of the round before say together of the rows
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
from censnet.errors import SettingsError
from censnet.nn.chunked import dense
from censnet.nn.model import Model
from censnet.ops.graph import Graph
from censnet.runs.config import Candidate, SelectionRecord
from censnet.selection.pseudo_labels import (
    INVERSE_TEMPERATURES,
    calibrate_confidence,
    propagate_features,
    pseudo_labels,
)
from censnet.settings.presets import make_settings
from censnet.settings.schema import Recipe, Settings, TrainingSettings
from censnet.tasks.predictions import probabilities
from censnet.training.evaluator import ValidationScore
from censnet.training.inference import infer
from censnet.training.task_data import TaskData
from censnet.training.trainer import FitResult, Selection

logger = logging.getLogger("censnet")


def candidate_grid(training: TrainingSettings) -> list[list[Candidate]]:
    """What is tried in each round.

    >>> gates = ["learned", "frozen"]
    >>> training = TrainingSettings(pseudo_label_weights=[0, 1], gates=gates, self_training_rounds=3)
    >>> [len(candidates) for candidates in candidate_grid(training)]
    [4, 2, 2]
    """
    weights = training.pseudo_label_weights
    later = [weight for weight in weights if weight > 0]
    rounds = [weights] + [later for _ in range(1, training.self_training_rounds) if later]
    return [
        [
            Candidate(round=number, gates=gates, pseudo_label_weight=weight)
            for gates in training.gates
            for weight in some
        ]
        for number, some in enumerate(rounds, 1)
    ]


def feasible_candidates(settings: Settings, whole: bool) -> list[list[Candidate]]:
    """The tries of each round. `whole` is whether each step has the whole graph, without which nothing is guessed."""
    training = settings.training
    if whole:
        if any(training.pseudo_label_weights):
            several = " and ".join(f"{weight:g}" for weight in training.pseudo_label_weights)
            end = ", whichever does best on validation" if len(training.pseudo_label_weights) > 1 else ""
            logger.info("classes of rows without a label are guessed and count %s beside the labels%s", several, end)
        return candidate_grid(training)
    preset = make_settings(settings.preset, "node").training
    if any(training.pseudo_label_weights) and training.pseudo_label_weights != preset.pseudo_label_weights:
        raise SettingsError(
            f"training.pseudo_label_weights is {training.pseudo_label_weights}, expected [0.0]: the graph is too "
            "big for one step, and pseudo-labels need it whole"
        )
    if training.self_training_rounds not in (1, preset.self_training_rounds):
        raise SettingsError(
            f"training.self_training_rounds is {training.self_training_rounds}, expected 1: the graph is too big "
            "for one step, and further rounds learn from pseudo-labels, which need it whole"
        )
    if any(training.pseudo_label_weights):
        logger.info("the graph is too big for one step, so no classes are guessed, and there is one round")
    return candidate_grid(training.model_copy(update={"pseudo_label_weights": [0.0]}))


def initial_pseudo_labels(task_data: TaskData, device: torch.device | str) -> Tensor:
    """The classes that each member can guess from its labels. -> (n, members, classes)"""
    (target,) = task_data.targets
    assert isinstance(task_data.graph, Graph)
    graph, labels = task_data.graph.to(device), task_data.labels[target.level][:, 0].to(device)
    rows = propagate_features(graph)
    found: dict[bytes, Tensor] = {}  # members of an ensemble have one split
    soft_labels = []
    for codes in task_data.parts[target.level].unbind(1):
        key = codes.cpu().numpy().tobytes()
        if key not in found:
            train, validation = (
                (codes == PARTS.index(part)).nonzero().squeeze(1).to(device) for part in ("train", "validation")
            )
            classes = pseudo_labels(graph, labels, train, validation, len(target.classes), rows=rows)
            found[key] = classes.to(task_data.parts[target.level].device)
        soft_labels.append(found[key])
    return torch.stack(soft_labels, 1)


def predict_pseudo_labels(
    teachers: Sequence[Sequence[Model]], task_data: TaskData, device: torch.device | str
) -> Tensor:
    """How likely each row is of each class, as the teachers of each member say together. -> (n, members, classes)"""
    (target,) = task_data.targets
    assert isinstance(task_data.graph, Graph)
    graph, labels = task_data.graph.to(device), task_data.labels[target.level][:, 0].to(device)
    found = []
    for models, codes in zip(teachers, task_data.parts[target.level].unbind(1), strict=True):
        answers = [dense(infer(model.to(device), graph).by_level[target.level]) for model in models]
        said = torch.stack([probabilities(target, each.float()) for each in answers]).mean(0)
        asked = (codes.to(device) == PARTS.index("validation")) & ~labels.isnan()
        rows = asked.nonzero().squeeze(1)
        right = float((said[rows].argmax(1) == labels[rows]).double().mean())
        found.append(calibrate_confidence(said, rows, right).to(codes.device))
        for model in models:
            model.cpu()
    return torch.stack(found, 1)


def best_per_gate_mode(
    models: Sequence[Model], fit_results: Sequence[FitResult], candidates: Sequence[Candidate]
) -> list[Model]:
    """Of the tries of one member in the last round, the best of each kind of gates."""
    last = [number for number, one in enumerate(candidates) if one.round == candidates[-1].round]
    found = []
    for kind in dict.fromkeys(candidates[number].gates for number in last):
        mine = [number for number in last if candidates[number].gates == kind]
        found.append(models[mine[_best([fit_results[number] for number in mine])]])
    return found


def expand_members(
    task_data: TaskData, candidates: Sequence[Candidate], soft_labels: Tensor | None, members: int
) -> TaskData:
    """A lesson in which each member comes once for each try, with the classes that it guesses."""
    times = len(candidates)
    parts = {level: part.repeat_interleave(times, 1) for level, part in task_data.parts.items()}
    frozen = torch.tensor([one.gates == "frozen" for one in candidates]).repeat(members)
    task_data = replace(task_data, parts=parts, frozen=frozen if bool(frozen.any()) else None)
    if soft_labels is None:
        return task_data
    soft_label_weight = torch.tensor([one.pseudo_label_weight for one in candidates]).repeat(members)
    return replace(task_data, soft_labels=soft_labels.repeat_interleave(times, 1), soft_label_weight=soft_label_weight)


def apart(fit_result: FitResult) -> list[FitResult]:
    """What each of the networks that were trained side by side reached by itself."""
    found = []
    for member, (best, epoch) in enumerate(zip(fit_result.best, fit_result.best_epoch, strict=True)):
        rows = [
            {name: value for name, value in row.items() if name != "member"}
            for row in fit_result.history
            if row.get("member", 0) == member  # one alone has no number
        ]
        found.append(FitResult(rows, fit_result.monitor, [best], [epoch]))
    return found


def select_best(
    models: Sequence[Model], fit_results: Sequence[FitResult], candidates: Sequence[Candidate]
) -> tuple[Model, FitResult]:
    """Of the tries of one member the best on validation rows; of equals, the one of less loss, then the first."""
    best, marks = _best(fit_results), map(_mark, fit_results)
    choice = Selection(list(candidates), [None if mark is None else mark.value for mark in marks], best)
    return models[best], replace(fit_results[best], choice=choice)


def select_best_so_far(
    found: Mapping[int, tuple[Model, FitResult]], candidates: Sequence[Candidate]
) -> tuple[Model, FitResult]:
    """The best of those tries of one member, by their places, that an unfinished training has come to."""
    places = sorted(found)
    best = places[_best([found[place][1] for place in places])]
    marks = [_mark(found[place][1]) if place in found else None for place in range(len(candidates))]
    choice = Selection(list(candidates), [None if mark is None else mark.value for mark in marks], best)
    return found[best][0], replace(found[best][1], choice=choice)


def select_network(
    found: Sequence[tuple[Sequence[Model], Sequence[FitResult]]], networks: Sequence[Settings]
) -> tuple[Settings, list[Model], list[FitResult]]:
    """Of several networks the one whose members do best on validation rows, in the mean; of equals, the first."""
    best = 0
    if len(networks) > 1:
        best = _best_mark([_mean_mark(fit_results) for _, fit_results in found], found[0][1][0].monitor)
    settings, (models, fit_results) = networks[best], found[best]
    if len(networks) == 1:
        return settings, list(models), list(fit_results)
    merged = []
    for member, fit_result in enumerate(fit_results):
        choices = [_choice(each[member], one) for (_, each), one in zip(found, networks, strict=True)]
        candidates = [one for choice in choices for one in choice.candidates]
        values = [value for choice in choices for value in choice.best]
        kept = sum(len(choice.candidates) for choice in choices[:best]) + choices[best].kept
        merged.append(replace(fit_result, choice=Selection(candidates, values, kept)))
    training = settings.training.model_copy(update={"recipe": _labels(settings)})
    return settings.model_copy(update={"training": training}), list(models), merged


def _choice(fit_result: FitResult, settings: Settings) -> Selection:
    """What one network was chosen from, with the name of the network; it may have been trained once."""
    choice, labels = fit_result.choice, _labels(settings)
    if choice is None:
        alone = Candidate(round=1, gates=settings.training.gates[0], pseudo_label_weight=0.0, recipe=labels)
        return Selection([alone], list(fit_result.best), 0)
    return replace(choice, candidates=[one.model_copy(update={"recipe": labels}) for one in choice.candidates])


def _labels(settings: Settings) -> Recipe:
    return "high_label" if settings.training.recipe == "high_label" else "low_label"


def _best(fit_results: Sequence[FitResult]) -> int:
    """The place of the best on validation rows."""
    return _best_mark([_mark(fit_result) for fit_result in fit_results], fit_results[0].monitor)


def _best_mark(marks: Sequence[ValidationScore | None], monitor: str) -> int:
    best = 0
    for number, mark in enumerate(marks):
        if mark is not None and mark.is_better(monitor, marks[best]):
            best = number
    return best


def _mark(fit_result: FitResult) -> ValidationScore | None:
    """How good a network was at its best; None where nothing was validated."""
    (value,), (epoch,) = fit_result.best, fit_result.best_epoch
    loss = next((row.get("validation_loss") for row in fit_result.history if row["epoch"] == epoch), None)
    return None if value is None or loss is None else ValidationScore(value, loss)


def _mean_mark(fit_results: Sequence[FitResult]) -> ValidationScore | None:
    """How good the members of a network were in the mean."""
    marks = [mark for mark in map(_mark, fit_results) if mark is not None]
    if len(marks) < len(fit_results):
        return None
    return ValidationScore(fmean(mark.value for mark in marks), fmean(mark.loss for mark in marks))


def selection(fit_results: Sequence[FitResult]) -> SelectionRecord | None:
    """What was tried for each member, if something was, as a run says it."""
    choices = [fit_result.choice for fit_result in fit_results if fit_result.choice is not None]
    if not choices:
        return None
    candidates = choices[0].candidates
    return SelectionRecord(
        candidates=candidates,
        inverse_temperature=list(INVERSE_TEMPERATURES) if any(one.pseudo_label_weight for one in candidates) else [],
        best=[choice.best for choice in choices],
        kept=[choice.kept for choice in choices],
    )
