"""Recipes: architectures for few or many labels, inputs with or without label counts or descriptors of molecules."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from accelerate import Accelerator

from censnet.errors import RunError
from censnet.option_names import resume_option
from censnet.selection.candidates import Candidate, Selection, best_of
from censnet.selection.self_training import fit_ensemble, restore_ensemble
from censnet.settings.schema import Settings
from censnet.settings.training_settings import Recipe
from censnet.training.callbacks import Callback
from censnet.training.early_stopping import ValidationScore
from censnet.training.ensemble import TrainingFiles
from censnet.training.task_data import TaskData
from censnet.training.time_budget import TimeBudget

logger = logging.getLogger(__name__)


def fit_recipes(
    task_data: TaskData,
    recipes: Sequence[Settings],
    members: int = 1,
    *,
    accelerator: Accelerator | None = None,
    files: TrainingFiles | None = None,
    callbacks: Sequence[Callback] = (),
    budget: TimeBudget | None = None,
) -> list[list[Selection]]:
    """Train an ensemble by each recipe; `select_recipe` selects one. The arguments are those of `fit_ensemble`."""
    if len(recipes) > 1:
        if files is not None and files.history is not None:
            files.history.numbered = True
        logger.info("%s; the better one on validation is selected", _describe(recipes))
    return [
        fit_ensemble(
            _as_read_by(settings, task_data), settings, members, accelerator=accelerator, callbacks=callbacks,
            files=None if files is None else files.with_prefix(_prefix(number)),
            budget=None if budget is None else budget.share(len(recipes) - number),
        )
        for number, settings in enumerate(recipes)
    ]  # fmt: skip


def restore_recipes(
    task_data: TaskData, recipes: Sequence[Settings], members: int, files: TrainingFiles, accelerator: Accelerator
) -> list[list[Selection]]:
    """The best models so far of an unfinished training, by each recipe.

    A second recipe for which fewer members have completed an epoch than for the first cannot be compared with it, and
    is left out.
    """
    found = [
        restore_ensemble(
            _as_read_by(settings, task_data), settings, members, files.with_prefix(_prefix(number)), accelerator
        )
        for number, settings in enumerate(recipes)
    ]
    count, folder = len(found[0]), files.checkpoints.parent
    if count == 0:
        raise RunError(f"{folder} has no epoch yet that could be kept: {resume_option(folder)} goes on with it")
    if count < members:
        logger.info("%d of %d members have completed an epoch: the ensemble consists of these", count, members)
    return [selections for selections in found if len(selections) == count]


def select_recipe(
    found: Sequence[Sequence[Selection]], recipes: Sequence[Settings]
) -> tuple[Settings, list[Selection]]:
    """Select the recipe whose members do best on validation, on average; of equals, the first.

    Args:
        found: the members of each recipe.
        recipes: the settings of each.
    """
    if len(found) == 1:
        return recipes[0], list(found[0])
    scores = {number: _mean_score(selections) for number, selections in enumerate(found)}
    best = best_of(scores, found[0][0].fit_result.monitor)
    settings = recipes[best]
    merged = []
    for member, selection in enumerate(found[best]):
        each = [_named(selections[member], one) for selections, one in zip(found, recipes, strict=False)]
        before = sum(len(one.candidates) for one in each[:best])
        merged.append(
            replace(
                selection,
                candidates=[candidate for one in each for candidate in one.candidates],
                best=[value for one in each for value in one.best],
                selected=before + each[best].selected,
                out_of_time=any(one.out_of_time for one in each),
            )
        )
    if len(set(map(_recipe, recipes))) > 1:
        settings = settings.with_training({"recipe": _recipe(settings)})
    return settings, merged


def _as_read_by(settings: Settings, task_data: TaskData) -> TaskData:
    """The data that a recipe trains on."""
    reads_all = settings.data.descriptors is True or not task_data.descriptors
    return task_data if reads_all else task_data.without_descriptors()


def _prefix(number: int) -> str:
    """Prefix of the checkpoints of a recipe."""
    return f"recipe-{number + 1}-" if number else ""


def _describe(recipes: Sequence[Settings]) -> str:
    """The trainings that are compared."""
    said = []
    if len(set(map(_recipe, recipes))) > 1:
        said.append("by the low-label and the high-label recipe")
    if any(map(_has_label_features, recipes)):
        said.append("without and with counts of the known labels around each row (model.label_counts)")
    if len({settings.data.descriptors for settings in recipes}) > 1:
        said.append("without and with RDKit descriptors of the molecules (data.descriptors)")
    return f"models are trained {' and '.join(said)}"


def _has_label_features(settings: Settings) -> bool:
    return settings.model.label_counts is True or settings.model.label_factors is True


def _recipe(settings: Settings) -> Recipe:
    return "high_label" if settings.training.recipe == "high_label" else "low_label"


def _named(selection: Selection, settings: Settings) -> Selection:
    """A selection whose candidates name their recipe; a recipe that was trained once is one candidate."""
    about = {
        "recipe": _recipe(settings),
        "label_features": _has_label_features(settings),
        "descriptors": settings.data.descriptors is True,
    }
    if not selection.candidates:
        best = selection.fit_result.best[0]
        alone = Candidate(gates=settings.training.gates[0]).model_copy(update=about)
        return replace(selection, candidates=[alone], best=[None if best is None else best.value])
    return replace(selection, candidates=[one.model_copy(update=about) for one in selection.candidates])


def _mean_score(selections: Sequence[Selection]) -> ValidationScore | None:
    """Mean validation score of the members."""
    scores = [score for selection in selections if (score := selection.fit_result.best[0]) is not None]
    if len(scores) < len(selections):
        return None
    return ValidationScore(fmean(score.value for score in scores), fmean(score.loss for score in scores))
