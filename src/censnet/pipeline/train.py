"""Train on a user's data: read, split, fit, evaluate, and save everything in a run."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

from accelerate import Accelerator

from censnet.arguments import check_arguments
from censnet.console import printable, show
from censnet.errors import ArgumentError, RunError, WriteError, quote
from censnet.inspection import audit
from censnet.inspection.cost import check_memory, what_to_lower
from censnet.levels import Level
from censnet.option_names import resume_option, setting_option
from censnet.pipeline.fit_run import fit_run
from censnet.pipeline.prepare import Prepared, TargetsLike, as_specs, prepare, read_settings
from censnet.pipeline.resume import how_finished, how_started, load_finished, make_start
from censnet.runs.config import MAX_MEMBERS
from censnet.runs.directory import close_directory, keep_training, open_directory, read_config
from censnet.runs.lock import locked, run_dir
from censnet.runs.resume import check_extends
from censnet.runs.run import Run
from censnet.settings.presets import Changes
from censnet.text import count
from censnet.training import processes
from censnet.training.callbacks import Callback, TensorBoardCallback
from censnet.training.choose_sampling import choose_sampling
from censnet.training.devices import check_processes, make_accelerator, total_memory
from censnet.training.interrupt import is_out_of_memory, out_of_memory
from censnet.training.task_data import build_model
from censnet.training.time_budget import now_or_before

IfExists = Literal["error", "resume", "overwrite"]
logger = logging.getLogger(__name__)
MAX_SHOWN = 12  # targets that are described one by one
MAX_FINDINGS = 8


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
        finished, again = processes.on_first(partial(how_finished, folder, changes, finish))
        if finished and not again:
            return load_finished(folder)

    with processes.together():
        prepared = prepare(data, specs, preset, changes, seed, strict=strict, overrides=overrides)
        accelerator = make_accelerator(prepared.settings.training.precision, device)
        _check_processes(accelerator, prepared)
        for recipe in prepared.recipes if not finish else ():
            check_memory(prepared.task_data, recipe, accelerator.device)
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
        announce(prepared, folder)
        callbacks: list[Callback] = [show()] if progress else []
        if tensorboard and folder is not None and accelerator.is_main_process:
            callbacks.append(TensorBoardCallback(folder / "tensorboard"))
        try:
            with processes.losses_named(folder):
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
    start, changes = processes.on_first(partial(how_started, folder, settings, finish))
    if start is None:
        return load_finished(folder)
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


def _save(run: Run, folder: Path) -> None:
    """Save a run, and remove its checkpoints, unless the training may go on."""
    run.save(folder)
    if run.config.time_budget is not None and run.config.time_budget.ended:
        keep_training(folder)
    else:
        close_directory(folder)


def _check_processes(accelerator: Accelerator, prepared: Prepared) -> None:
    """Raise, before anything is written, where several processes would do the same work."""
    if accelerator.num_processes > 1:
        settings = prepared.settings
        task_data = prepared.task_data.with_inputs(settings.model)
        memory = total_memory(accelerator.device)
        model, on_cpu = build_model(task_data, settings), accelerator.device.type == "cpu"
        chosen = choose_sampling(task_data, settings.training, model, memory, on_cpu)
        check_processes(accelerator, task_data, chosen, model.ego_hops)


def announce(prepared: Prepared, folder: Path | None) -> None:
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


def describe_times(prepared: Prepared) -> list[str]:
    """Sentences on the inputs of a model that follow from times, and on the labels known when rows are scored."""
    column, task_data, found = prepared.data.schema.time, prepared.task_data, list[str]()
    if column is None:
        return found
    if prepared.settings.model.windows is True:
        widths = ", ".join(map(column.show_duration, task_data.widths))
        found.append(f"edges also have the gaps to the edges before and after them, and windows of {widths}")
    delay = task_data.label_delay
    if prepared.settings.model.causal is True:
        known = f", {column.show_duration(delay)} after their edge," if delay else ""
        said = "each edge is embedded from the edges before it alone, and scored with the labels that arrived"
        of_nodes = "each node is embedded as of the last edge, from what happened to it in the order of time"
        found.append(f"{said}{known} before it" if "edge" in task_data.parts else of_nodes)
    elif task_data.is_by_time:
        known = f" and older than {column.show_duration(delay)}" if delay else ""
        found.append(
            f"validation and test rows are scored with the labels before their part{known}; no later one, though edges "
            "of all times are seen"
        )
    elif "edge" in task_data.parts:
        found.append("edges are not split by time: later edges are seen when a row is scored")
    elif prepared.links is None:
        reads = setting_option("model.causal", True)
        found.append(f"no layer reads the times of edges: {reads} embeds nodes from their edges in the order of time")
    times = task_data.graph.times
    span = 0.0 if times is None or not len(times) else float(times.max() - times.min())
    if delay and delay >= span:
        both = column.show_duration(delay), column.show_duration(span)
        found.append(f"no label is ever known: the label delay is {both[0]}, and all edges are within {both[1]}")
    if prepared.links is not None and prepared.settings.data.split not in ("auto", "time", "file"):
        found.append("links are not split by time: later edges are seen when a link is scored")
    return found


def find_leaks(prepared: Prepared) -> list[str]:
    """Features that leak a target, and rows that are in two parts, as `censnet inspect` finds them: the first few."""
    targets: dict[str, list[str]] = {}
    for target in prepared.targets:
        targets.setdefault(target.level.table, []).append(target.column)
    splits = {Level(level).table: split for level, split in prepared.splits.items()}
    found = audit.find_leaks(prepared.data, targets, splits)
    lines = [one.what for one in found if one.kind in ("leak", "duplicate") and one.level != "note"]
    more = len(lines) - MAX_FINDINGS
    lines = [printable(line, longest=500) for line in lines[:MAX_FINDINGS]]
    return lines + ([f"{count(more, 'more finding')} like these, which censnet inspect shows"] if more > 0 else [])
