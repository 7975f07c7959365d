"""Fitting: every recipe on prepared data, within the time budget, and the run of the selected one."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import monotonic

from accelerate import Accelerator

from censnet.pipeline.prepare import Prepared
from censnet.pipeline.results import make_run, share_run
from censnet.runs.config import TimeBudgetRecord, TrainingStart
from censnet.runs.directory import CHECKPOINT, ended_by_budget, history_path
from censnet.runs.run import Run
from censnet.selection.candidates import Selection
from censnet.selection.recipes import fit_recipes, restore_recipes, select_recipe
from censnet.text import show_seconds
from censnet.training import processes
from censnet.training.callbacks import Callback
from censnet.training.ensemble import TrainingFiles
from censnet.training.history import HistoryFile
from censnet.training.time_budget import TimeBudget

logger = logging.getLogger(__name__)


def fit_run(
    prepared: Prepared,
    ensemble: int,
    accelerator: Accelerator,
    started: float,
    *,
    folder: Path | None = None,
    resume: bool = False,
    finish: bool = False,
    callbacks: Sequence[Callback] = (),
    start: TrainingStart | None = None,
) -> Run:
    """Fit every recipe on prepared data, select one, and make its run.

    Args:
        prepared: data, split and settings.
        ensemble: members of each recipe.
        accelerator: where to compute.
        started: when the training began, by `time.monotonic`.
        folder: for checkpoints; without one, nothing is written.
        resume, finish: as in `train`.
        callbacks: called after every step and epoch.
        start: the inputs of the training, to be stored in the run.
    """
    task_data, recipes = prepared.task_data, prepared.recipes
    if ensemble > 1:
        parts = {level: part.expand(-1, ensemble) for level, part in task_data.parts.items()}
        task_data = replace(task_data, parts=parts)
    files, budget = None, make_budget(prepared, ensemble, started)
    if folder is not None:
        extend = resume and processes.on_first(partial(ended_by_budget, folder))
        files = TrainingFiles(folder / CHECKPOINT, HistoryFile(history_path(folder)), resume, extend=extend)
    if finish and files is not None:
        found = restore_recipes(task_data, recipes, ensemble, files, accelerator)
    else:
        found = fit_recipes(
            task_data, recipes, ensemble, accelerator=accelerator, files=files, callbacks=callbacks, budget=budget
        )
    selected, members = select_recipe(found, recipes)
    seconds = monotonic() - started
    chosen = prepared.select(selected)
    record = None if finish else record_budget(prepared, members)
    make = partial(make_run, chosen, members, seconds, accelerator.device, start, finish, record)
    return share_run(chosen, members, make)


def make_budget(prepared: Prepared, models: int, started: float) -> TimeBudget | None:
    """The time of a training that began at a moment, if its settings limit it.

    Args:
        prepared: the data and the settings.
        models: how many predict each row.
        started: by `time.monotonic`.
    """
    seconds = prepared.settings.training.budget_seconds
    if seconds is None:
        return None
    logger.info("the training has %s (training.time_budget)", show_seconds(seconds))
    rows = sum(len(prepared.data.rows(level)) for level in prepared.splits)
    ways = 2 if prepared.settings.model.known_labels else 1  # with the labels of other rows, and without
    return TimeBudget.of(seconds, started, num_rows=rows, outputs=models * ways)


def record_budget(prepared: Prepared, members: Sequence[Selection]) -> TimeBudgetRecord | None:
    """The time that a training was given and what it was enough for, to be stored, if it was limited."""
    seconds = prepared.settings.training.budget_seconds
    if seconds is None:
        return None
    planned = [one.fit_result.planned_epochs for one in members]
    return TimeBudgetRecord(seconds=seconds, planned_epochs=planned, ended=any(one.out_of_time for one in members))
