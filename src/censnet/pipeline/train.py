"""Train on a user's data: read, split, fit, evaluate, and save everything in a run."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Literal

from accelerate import Accelerator

from censnet.arguments import check_arguments
from censnet.console import show
from censnet.data.dataset import fingerprint
from censnet.errors import ArgumentError, RunError, WriteError, quote
from censnet.files import tensor_digest
from censnet.inspection.cost import check_memory, what_to_lower
from censnet.levels import Level
from censnet.option_names import name_option, resume_option
from censnet.pipeline.prepare import Prepared, describe_times, find_leaks, prepare
from censnet.pipeline.results import make_run, share_run
from censnet.pipeline.user_settings import TargetsLike, as_specs, read_settings
from censnet.runs.config import MAX_MEMBERS, TimeBudgetRecord, TrainingStart
from censnet.runs.directory import (
    CHECKPOINT,
    close_directory,
    commit,
    ended_by_budget,
    history_path,
    is_finished,
    keep_training,
    locked,
    open_directory,
    read_config,
    read_start,
    run_dir,
)
from censnet.runs.resume import asks_other_epochs, check_extends, table_content
from censnet.runs.run import Run, load_run
from censnet.selection.candidates import Selection
from censnet.selection.recipes import fit_recipes, restore_recipes, select_recipe
from censnet.settings.presets import Changes
from censnet.text import show_seconds
from censnet.training import processes
from censnet.training.callbacks import Callback, TensorBoardCallback
from censnet.training.choose_sampling import choose_sampling
from censnet.training.devices import check_processes, make_accelerator, total_memory
from censnet.training.ensemble import TrainingFiles
from censnet.training.history import HistoryFile
from censnet.training.interrupt import is_out_of_memory, out_of_memory
from censnet.training.task_data import build_model
from censnet.training.time_budget import TimeBudget, now_or_before

logger = logging.getLogger(__name__)

IfExists = Literal["error", "resume", "overwrite"]
MAX_SHOWN = 12  # targets that are described one by one


def train(
    data: object,
    target: TargetsLike,
    out: str | os.PathLike[str] | None = None,
    *,
    preset: str = "strong",
    settings: Changes | None = None,
    seed: int = 0,
    ensemble: int = 1,
    device: str | None = None,
    strict: bool = False,
    overrides: Mapping[str, str] | None = None,
    if_exists: IfExists = "error",
    progress: bool = False,
    tensorboard: bool = False,
    finish: bool = False,
    directed: bool | None = None,
    time: str | None = None,
    label_delay: str | float | None = None,
    time_budget: str | float | None = None,
) -> Run:
    """Train on data of any form, and return a run that predicts, embeds and evaluates.

    Args:
        data: a built-in data set, a file, a folder, frames, PyG or networkx objects: see `load_data`.
        target: `node:COLUMN`, `edge:COLUMN`, `graph:COLUMN,COLUMN` or `link`; several train joint heads. The kind of a
            column is inferred from its labels; `node:COLUMN=regression` sets it (binary, multiclass, regression), and
            `edge:COLUMN=binary:CLASS` sets the positive class. `graph:*` is every column left. A name with a comma
            is put in quotes, `graph:"a, b"`, or in a tuple, `("graph", "a, b")`. `TargetSpec` objects, and `Target`
            objects of another run, do as well.
        out: the run directory; without one, nothing is written to disk.
        preset: `strong` (the default), `paper` or `released`.
        settings: changes of the preset, dotted as {"model.hidden": 64, "data.split": "scaffold"} or nested as
            {"model": {"hidden": 64}}; or a `Settings` object, which brings its own preset and seed.
        seed: of everything that is random.
        ensemble: members whose predictions are averaged; each prediction then has a standard deviation.
        device: where to compute; the best available if None.
        strict: whether a row that cannot be used is an error.
        overrides: column -> kind or role, as in `load_data`.
        if_exists: what to do if `out` holds a run or an unfinished training. `error` leaves it. `resume` continues the
            unfinished training; other `training.epochs` than it was started with make it longer or shorter, and a
            finished run is then trained again from the first epoch. `overwrite` replaces it when the new run is
            complete.
        progress: whether to show the progress.
        tensorboard: whether to write curves to `out`/tensorboard.
        finish: whether to close the unfinished training in `out` with its best epoch so far, instead of resuming it.
        directed: whether edges go from their source to their target, the same as `settings={"data.directed": ...}`;
            as the data are if None.
        time: the column of edges that says when each one happened, the same as `settings={"data.time": ...}`. Edges
            are then split by time, unless `data.split` says otherwise.
        label_delay: the time after an edge from which on its label is known, such as "7d", the same as
            `settings={"data.label_delay": ...}`.
        time_budget: the wall time of this call, such as "10m", the same as `settings={"training.time_budget": ...}`:
            the best model that it allows, with scores and predictions. What it has ended is resumed by `if_exists`.

    Example:
        >>> run = train("karate", "node:faction", settings={"training.epochs": 5})
        >>> run
        Run(node:faction on karate)
    """
    check_arguments(train, locals())
    if not 1 <= ensemble <= MAX_MEMBERS:
        raise ArgumentError(f"ensemble is {quote(ensemble)}, expected 1 to {MAX_MEMBERS:,}")
    if out is None and (if_exists == "resume" or tensorboard or finish):
        raise ArgumentError("if_exists='resume', finish and tensorboard need a run directory: give out")
    started = now_or_before()
    processes.join(device)
    if finish and processes.count() > 1:
        raise ArgumentError(
            f"finish is given to {processes.count()} processes, expected one: it closes a training, and trains no more"
        )
    specs = as_specs(target)
    changes, preset, seed = read_settings(settings, specs, preset, seed)
    given = {
        "data.directed": directed, "data.time": time, "data.label_delay": label_delay,
        "training.time_budget": time_budget,
    }  # fmt: skip
    changes |= {name: value for name, value in given.items() if value is not None}
    folder = None if out is None else run_dir(out)
    resume, again = finish or if_exists == "resume", False
    if folder is not None and resume:
        finished, again = processes.on_first(partial(_how_finished, folder, changes, finish))
        if finished and not again:
            return _load_finished(folder)

    def read() -> tuple[Prepared, Accelerator]:
        found = prepare(data, specs, preset, changes, seed, strict=strict, overrides=overrides)
        accelerator = make_accelerator(found.settings.training.precision, device)
        _check_processes(accelerator, found)
        for recipe in found.recipes if not finish else ():
            check_memory(found.task_data, recipe, accelerator.device)
        return found, accelerator

    prepared, accelerator = processes.together(read)
    start = None
    with ExitStack() as held:

        def open_folder() -> None:
            nonlocal start
            if folder is not None:
                held.enter_context(locked(folder))
                start = make_start(prepared, ensemble, overrides, isinstance(data, str | os.PathLike))
                if again:
                    check_extends(folder, read_config(folder), start)
                open_directory(folder, start, resume, again or if_exists == "overwrite")

        processes.on_first(open_folder)
        prepared = replace(prepared, findings=processes.on_first(partial(find_leaks, prepared)))
        _announce(prepared, folder)
        callbacks: list[Callback] = [show()] if progress else []
        if tensorboard and folder is not None and accelerator.is_main_process:
            callbacks.append(TensorBoardCallback(folder / "tensorboard"))
        try:
            with processes.losses_named("" if folder is None else resume_option(folder)):
                run = fit_run(
                    prepared, ensemble, accelerator, started,
                    folder=folder, resume=resume, finish=finish, callbacks=callbacks, start=start,
                )  # fmt: skip
                if folder is not None:
                    processes.on_first(partial(_save, run, folder))
        except WriteError as error:
            resumes = f"{resume_option(folder or '')} goes on from its last checkpoint when there is room"
            raise RunError(f"{error}; the training stopped, and {resumes}") from None
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            raise out_of_memory(error, what_to_lower(prepared.task_data, prepared.settings)) from None
        return run


def resume_run(
    out: str | os.PathLike[str],
    *,
    settings: Changes | None = None,
    progress: bool = False,
    device: str | None = None,
    tensorboard: bool = False,
    finish: bool = False,
) -> Run:
    """Resume an unfinished training from its stored inputs, or close it.

    Args:
        out: its run directory.
        settings: changes; only those in `resume.FREE` may change. With other `training.epochs`, a finished run is
            trained again from the first epoch.
        progress, device, tensorboard: as in `train`.
        finish: whether to close it with its best epoch so far instead of resuming it.
    """
    check_arguments(resume_run, locals())
    folder = run_dir(out)
    processes.join(device)
    start, changes = processes.on_first(partial(_how_started, folder, settings, finish))
    if start is None:
        return _load_finished(folder)
    if not start.data:
        raise RunError(f"{folder} was trained on data that were in memory: call train again with if_exists='resume'")
    return train(
        start.data,
        start.target_specs,
        folder,
        preset=start.settings.preset,
        settings=start.changes | changes,
        seed=start.settings.seed,
        ensemble=start.ensemble,
        overrides=start.overrides,
        device=device,
        if_exists="resume",
        progress=progress,
        tensorboard=tensorboard,
        finish=finish,
    )


def _how_finished(folder: Path, changes: Mapping[str, object], finish: bool) -> tuple[bool, bool]:
    """Whether a folder holds a finished run, and whether it is asked for other epochs; else it holds a training."""
    if is_finished(folder):
        return True, not finish and asks_other_epochs(read_config(folder), changes)
    if finish:
        read_start(folder)  # an error if there is none
    return False, False


def _how_started(
    folder: Path, settings: Changes | None, finish: bool
) -> tuple[TrainingStart | None, dict[str, object]]:
    """What the training in a folder was started with, and the changes; None if it is finished and stays as it is."""
    if not is_finished(folder):
        start = read_start(folder)
        return start, read_settings(settings, start.target_specs, start.settings.preset, start.settings.seed)[0]
    config = read_config(folder)
    changes = read_settings(settings, config.target_specs, config.settings.preset, config.settings.seed)[0]
    if finish or not asks_other_epochs(config, changes):
        return None, changes
    if config.start is None:
        raise RunError(
            f"{folder} does not say what it was started with: train it again with {name_option('--overwrite')}"
        )
    return config.start, changes


def _save(run: Run, folder: Path) -> None:
    """Save a run, and remove its checkpoints, unless the training may go on."""
    run.save(folder)
    if run.config.time_budget is not None and run.config.time_budget.ended:
        keep_training(folder)
    else:
        close_directory(folder)


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


def make_start(prepared: Prepared, ensemble: int, overrides: Mapping[str, str] | None, has_name: bool) -> TrainingStart:
    """The inputs of a training, to compare with when it is resumed.

    Args:
        prepared, ensemble, overrides: as in `train`.
        has_name: whether the data can be read again by their name or path.
    """
    tables, task_data = prepared.data.tables, prepared.task_data
    named = {"labels": task_data.labels, "parts": task_data.parts, "censoring": task_data.censoring}
    tensors = {f"{name} {level}": tensor for name, found in named.items() for level, tensor in found.items()}
    return TrainingStart(
        target_specs=prepared.target_specs,
        settings=prepared.settings,
        other_recipes=prepared.recipes[1:],
        changed=prepared.changed,
        ensemble=ensemble,
        overrides=dict(overrides or {}),
        processes=processes.count(),
        data=prepared.data.name if has_name else "",
        fingerprint=f"{fingerprint(prepared.data.graph)}-{tensor_digest(tensors)}",
        tables={table: table_content(frame, tables.name(table)) for table, frame in tables.frames().items()},
        parts={
            level: hashlib.blake2b(part.numpy().tobytes(), digest_size=8).hexdigest()
            for level, part in task_data.parts.items()
        },
    )


def _check_processes(accelerator: Accelerator, prepared: Prepared) -> None:
    """Raise, before anything is written, where several processes would do the same work."""
    if accelerator.num_processes > 1:
        settings = prepared.settings
        task_data = prepared.task_data.with_inputs(settings.model)
        memory = total_memory(accelerator.device)
        model, on_cpu = build_model(task_data, settings), accelerator.device.type == "cpu"
        chosen = choose_sampling(task_data, settings.training, model, memory, on_cpu)
        check_processes(accelerator, task_data, chosen, model.ego_hops)


def _announce(prepared: Prepared, folder: Path | None) -> None:
    """Log the notes on the data, the targets, the split and the findings before the training starts."""
    for note in prepared.data.notes:
        if note.kind != "row error":  # a warning was logged when the rows were read
            logger.info("%s", note)
    for target in prepared.targets[:MAX_SHOWN]:
        logger.info("%s is %s: %s", target.name, target.kind, target.reason)
    if len(prepared.targets) > MAX_SHOWN:
        logger.info("... and %d more targets", len(prepared.targets) - MAX_SHOWN)
    for level, source in prepared.split_sources.items():
        logger.info("split of %s: %s", Level(level).table, source)
    for line in describe_times(prepared):
        logger.info("%s", line)
    for finding in prepared.findings:
        logger.warning("%s", finding)
    if folder is not None:
        logger.info("the run goes to %s", folder)


def _load_finished(folder: Path) -> Run:
    """Load the finished run of a directory, and remove what a crash at its end may have left."""
    logger.info("%s is finished already", folder)

    def tidy() -> None:
        with locked(folder):
            commit(folder)
            close_directory(folder)

    run = load_run(folder)
    processes.on_first(tidy)
    return run
