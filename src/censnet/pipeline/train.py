"""Train from a user's data: read, split, fit, judge, and keep everything in a run."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pandas as pd
from accelerate import Accelerator

from censnet.arguments import check_arguments
from censnet.data.digests import fingerprint, row_digests, spell_digests
from censnet.data.splits.links import link_rows
from censnet.data.splits.split import DIGEST, RESERVED, split_rows
from censnet.data.tables.target_spec import Targets
from censnet.errors import RunError, WriteError, quote
from censnet.inspection.cost import check_memory, what_to_lower
from censnet.levels import Level
from censnet.nn.model import Model
from censnet.ops.graph import Graph
from censnet.pipeline.prepare import Prepared, find_leaks, prepare
from censnet.progress import show
from censnet.runs.directory import MOST_MEMBERS, RunConfig, commit, made_now, read_config
from censnet.runs.graph_size import GraphSize
from censnet.runs.links import node_names, pair_probability
from censnet.runs.lock import check_folder, locked, named_folder
from censnet.runs.resume import (
    asks_other_epochs,
    check_extends,
    close_directory,
    is_finished,
    make_start,
    open_directory,
    read_start,
)
from censnet.runs.run import Run, load_run
from censnet.runs.start import Start
from censnet.selection.recipes import build_model, close_recipes, fit_recipes
from censnet.selection.self_training import select_network, selection
from censnet.settings.presets import values_of
from censnet.training.batches import choose_sampling
from censnet.training.callbacks import TensorBoardCallback
from censnet.training.devices import check_processes, make_accelerator, total_memory
from censnet.training.history import history_table
from censnet.training.interrupt import is_out_of_memory, out_of_memory
from censnet.training.trainer import Callback, FitResult

logger = logging.getLogger("censnet")

MOST_TOLD = 12  # targets that are described one by one


def train(
    data: object,
    target: Targets,
    out: str | os.PathLike[str] | None = None,
    *,
    preset: str = "strong",
    settings: Mapping[str, object] | None = None,
    seed: int = 0,
    ensemble: int = 1,
    device: str | None = None,
    strict: bool = False,
    overrides: Mapping[str, str] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: bool = False,
    tensorboard: bool = False,
    finish: bool = False,
) -> Run:
    """Train on data of any form, and give a run that predicts, embeds and evaluates.

    Args:
        data: a built-in set, a file, a folder, frames, PyG or networkx objects: see `load_data`.
        target: `node:COLUMN`, `edge:COLUMN`, `graph:COLUMN,COLUMN` or `link`; several train joint heads. The kind of a
            column is found from its labels; `node:COLUMN=regression` forces it (binary, multiclass, regression), and
            `edge:COLUMN=binary:CLASS` chooses the positive class. `graph:*` is every column left. A name with a comma
            is put in quotes, `graph:"a, b"`, or in a tuple, `("graph", "a, b")`.
        out: the run directory; without one, nothing touches the disk.
        preset: `strong` (the default), `paper` or `released`.
        settings: changes, such as {"model.hidden": 64, "data.split": "scaffold"}.
        seed: of everything that is random.
        ensemble: networks whose answers are averaged; each prediction then has a standard deviation.
        device: where to compute; the best there is if None.
        strict: whether a row that cannot be used is an error.
        overrides: column -> kind or role, as in `load_data`.
        resume: whether to go on with the unfinished training in `out`. Other `training.epochs` than it was begun with
            make it longer or shorter; a finished run is then trained again from its start.
        overwrite: whether a run in `out` may be replaced, which is done when the new one is whole.
        progress: whether to show how it goes.
        tensorboard: whether to write curves to `out`/tensorboard.
        finish: whether to close the unfinished training in `out` with its best epoch so far, instead of going on.

    Example:
        >>> run = train("karate", "node:faction", settings={"training.epochs": 5})
        >>> run
        Run(node:faction on karate)
    """
    check_arguments(train, locals())
    if not 1 <= ensemble <= MOST_MEMBERS:
        raise ValueError(f"ensemble is {quote(ensemble)}, expected 1 to {MOST_MEMBERS:,}")
    if out is None and (resume or tensorboard or finish):
        raise ValueError("resume, finish and tensorboard need a run directory: give out")
    started = time.monotonic()
    folder = None if out is None else named_folder(out)
    again = False
    if folder is not None and (resume or finish):
        check_folder(folder)
        if is_finished(folder):
            again = not finish and asks_other_epochs(read_config(folder), settings)
            if not again:
                return _finished(folder)
        elif finish:
            read_start(folder)  # which says so if there is none
    prepared = prepare(data, target, preset, settings, seed, strict=strict, overrides=overrides)
    accelerator = make_accelerator(prepared.settings.training.precision, device)
    _check_together(accelerator, prepared)
    for network in prepared.networks if not finish else ():
        check_memory(prepared.task_data, network, accelerator.device)
    named, start = isinstance(data, str | os.PathLike), None
    with ExitStack() as held:
        if folder is not None and accelerator.is_main_process:
            held.enter_context(locked(folder))
            start = make_start(prepared, ensemble, overrides, named)
            if again:
                check_extends(folder, read_config(folder), start)
            open_directory(folder, start, resume or finish, overwrite or again)
        accelerator.wait_for_everyone()
        prepared = replace(prepared, findings=find_leaks(prepared) if accelerator.is_main_process else [])
        _announce(prepared, folder)
        callbacks: list[Callback] = [show()] if progress else []
        if tensorboard and folder is not None and accelerator.is_main_process:
            callbacks.append(TensorBoardCallback(folder / "tensorboard"))
        task_data, networks = prepared.task_data, prepared.networks
        if ensemble > 1:
            task_data = replace(
                task_data, parts={level: part.expand(-1, ensemble) for level, part in task_data.parts.items()}
            )
        try:
            if finish and folder is not None:
                found = close_recipes(task_data, networks, folder, device, ensemble)
            else:
                found = fit_recipes(task_data, networks, folder, resume, device, callbacks, ensemble)
            kept, models, fit_results = select_network(found, networks[: len(found)])
            run = make_run(
                replace(prepared, networks=[kept]),
                models,
                fit_results,
                time.monotonic() - started,
                device,
                start,
                finish,
            )
            if folder is not None and accelerator.is_main_process:
                run.save(folder)
                close_directory(folder)
        except WriteError as error:
            raise RunError(
                f"{error}; the training stopped, and censnet train --resume --out {folder} goes on from its last "
                "checkpoint when there is room"
            ) from None
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            raise out_of_memory(error, what_to_lower(task_data, prepared.settings)) from None
        return run


def _check_together(accelerator: Accelerator, prepared: Prepared) -> None:
    """Raise, before anything is written, where several processes would do the same work."""
    if accelerator.num_processes > 1:
        task_data, settings = prepared.task_data, prepared.settings
        memory = total_memory(accelerator.device)
        chosen = choose_sampling(task_data, settings.training, build_model(task_data, settings), memory)
        check_processes(accelerator, task_data, chosen)


def _announce(prepared: Prepared, folder: Path | None) -> None:
    """What the user should know before it starts."""
    for note in prepared.data.notes:
        if note.kind != "row error":  # a warning said so when they were read
            logger.info("%s", note)
    for target in prepared.targets[:MOST_TOLD]:
        logger.info("%s is %s: %s", target.name, target.kind, target.reason)
    if len(prepared.targets) > MOST_TOLD:
        logger.info("... and %d more targets", len(prepared.targets) - MOST_TOLD)
    for level, source in prepared.split_sources.items():
        logger.info("split of %s: %s", Level(level).table, source)
    for finding in prepared.findings:
        logger.warning("%s", finding)
    if folder is not None:
        logger.info("the run goes to %s", folder)


def resume_run(
    out: str | os.PathLike[str],
    *,
    settings: Mapping[str, object] | None = None,
    progress: bool = False,
    device: str | None = None,
    tensorboard: bool = False,
    finish: bool = False,
) -> Run:
    """Go on with an unfinished training, from what it was started with, or close it.

    Args:
        out: its run directory.
        settings: changes; only those in `opening.FREE` may change on the way. With other `training.epochs`, a finished
            run is trained again from its start.
        progress, device, tensorboard: as in `train`.
        finish: whether to close it with its best epoch so far instead of going on.
    """
    check_arguments(resume_run, locals())
    folder = named_folder(out)
    if is_finished(folder):
        config = read_config(folder)
        if finish or not asks_other_epochs(config, settings):
            return _finished(folder)
        if config.start is None:
            raise RunError(f"{folder} does not say what it was started with: train it again with --overwrite")
        start = config.start
    else:
        start = read_start(folder)
    if not start.data:
        raise RunError(f"{folder} was trained on data that were in memory: call train again with resume=True")
    return train(
        start.data,
        start.asked,
        folder,
        preset=start.settings.preset,
        settings=values_of(start.settings, start.changed) | dict(settings or {}),
        seed=start.settings.seed,
        ensemble=start.ensemble,
        overrides=start.overrides,
        device=device,
        resume=True,
        progress=progress,
        tensorboard=tensorboard,
        finish=finish,
    )


def _finished(folder: Path) -> Run:
    """The run that is there; what a crash at its end may have left is cleared away."""
    logger.info("%s is finished already", folder)
    run = load_run(folder)
    with locked(folder):
        commit(folder)
        close_directory(folder)
    return run


def make_run(
    prepared: Prepared,
    models: list[Model],
    fit_results: Sequence[FitResult],
    seconds: float,
    device: str | None,
    start: Start | None = None,
    closed: bool = False,
) -> Run:
    """A run from trained networks: judged on every part, with predictions for every row.

    Args:
        prepared, device: as in `train`.
        learners, fits: the networks, and what they reached.
        seconds: that the training took.
        start: what it was started with.
        closed: whether it was closed before its end.
    """
    data, settings = prepared.data, prepared.settings
    rows = [
        ({"member": number} if len(fit_results) > 1 else {}) | row
        for number, one in enumerate(fit_results)
        for row in one.history
    ]
    config = RunConfig(
        settings=settings,
        asked=prepared.asked,
        data=data.name,
        fingerprint=fingerprint(data.graph),
        graph_size=GraphSize.of(data.graph),
        targets=prepared.targets,
        link=prepared.links is not None,
        split=prepared.split_sources,
        node_width=data.graph.node_width,
        edge_width=data.graph.edge_width,
        graph_width=data.graph.graph_width,
        node_features=prepared.task_data.node_features,
        members=len(models),
        selection=selection(fit_results),
        start=None if start is None else start.model_copy(update={"tables": {}, "parts": {}, "replaces": ""}),
        closed=closed,
        findings=prepared.findings,
        made=made_now(seconds, str(make_accelerator(device=device).device)),
    )
    run = Run(
        config, data.schema, models, {}, history_table(rows, fit_results[0].monitor), split_table(prepared), {}, None,
        (prepared.splits, prepared.links),
    )  # fmt: skip
    run.metrics = run.judge(data, device)
    outputs = run.outputs(data, device)
    for level, split in prepared.splits.items():
        codes = split.codes(len(data.rows(level)))
        run.predictions[level] = run.training_table(data, level, outputs, codes.tolist())
    if prepared.links is not None:
        run.predictions["link"] = _judged_pairs(run, prepared, device)
    return run


def split_table(prepared: Prepared) -> pd.DataFrame:
    """What splits.csv has."""
    data = prepared.data
    frames = []
    for level, split in prepared.splits.items():
        frame = split_rows(Level(level).table, split)
        ids = data.tables.frames()[Level(level).table][data.id_columns(level)]
        ids = ids.rename(columns={name: f"{name}_" for name in RESERVED})
        ids = ids.iloc[frame["row"] - 1].astype("string").reset_index(drop=True)
        digests = spell_digests(row_digests(data, level)[frame["row"] - 1])
        frames.append(pd.concat([frame, ids, pd.Series(digests, name=DIGEST, dtype="string")], axis=1))
    if prepared.links is not None:
        assert isinstance(data.graph, Graph)
        frames.append(link_rows(prepared.links, data.graph, data.edge_rows, pd.Series(node_names(data))))
    return pd.concat(frames, ignore_index=True)


def _judged_pairs(run: Run, prepared: Prepared, device: str | None) -> pd.DataFrame:
    """The links that were hidden and as many pairs that are none, with what the run says of them."""
    hidden, data = prepared.links, prepared.data
    assert hidden is not None
    sides = {
        ("validation", 1): hidden.validation_links,
        ("validation", 0): hidden.validation_negatives,
        ("test", 1): hidden.test_links,
        ("test", 0): hidden.test_negatives,
    }
    outputs = run.outputs_of(data.message_graph(hidden), device)
    latents = [member.latent for member in outputs if member.latent is not None]
    names, frames = node_names(data), []
    for (part, linked), pairs in sides.items():
        mean, deviation = pair_probability([model.cpu() for model in run.models], latents, pairs)
        source, target = names[pairs.numpy()]
        frame = pd.DataFrame({"source": source, "target": target, "split": part, "link": linked})
        frame["link_p"] = mean.numpy()
        if deviation is not None:
            frame["link_std"] = deviation.numpy()
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)
