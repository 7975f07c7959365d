"""Replicates of a training: the variance of its scores over seeds."""

from __future__ import annotations

import json
import logging
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Literal

import torch
from accelerate import Accelerator

from censnet.arguments import check_arguments
from censnet.console import show
from censnet.errors import ArgumentError, RunError
from censnet.files import atomic_write
from censnet.option_names import name_option
from censnet.pipeline.fit_run import make_budget, make_run, share_run
from censnet.pipeline.prepare import Prepared, TargetsLike, as_specs, prepare, read_settings, read_targets, section_of
from censnet.pipeline.resume import make_start
from censnet.pipeline.train import IfExists, find_leaks, train
from censnet.runs.config import TrainingStart
from censnet.runs.directory import check_own, close_directory, has_checkpoint, is_complete, is_finished
from censnet.runs.lock import locked, run_dir
from censnet.runs.run import Run
from censnet.selection.recipes import fit_recipes, select_recipe
from censnet.selection.self_training import can_batch
from censnet.settings.presets import Changes, make_settings
from censnet.training import processes
from censnet.training.devices import make_accelerator
from censnet.training.task_data import make_task_data
from censnet.training.time_budget import counted_from, now, now_or_before

logger = logging.getLogger(__name__)

SUMMARY = "replicates.json"
OWN = re.compile(r"seed-\d+|replicates\.json")
Vary = Literal["both", "split", "init"]


@dataclass(frozen=True)
class Replicates:
    """Runs that differ in their seeds alone.

    Args:
        runs: one for each seed.
        summary: part -> level -> metric -> mean, std (standard deviation over the runs) and the values.
    """

    runs: list[Run]
    summary: dict[str, dict[str, dict[str, Any]]]


def replicate(
    data: object,
    target: TargetsLike,
    out: str | os.PathLike[str] | None = None,
    *,
    replicates: int,
    vary: Vary = "both",
    preset: str = "strong",
    settings: Changes | None = None,
    seed: int = 0,
    device: str | None = None,
    strict: bool = False,
    overrides: Mapping[str, str] | None = None,
    if_exists: IfExists = "error",
    progress: bool = False,
) -> Replicates:
    """Train from several seeds. Each run is saved in `out`/seed-N, mean and std of the scores in `out`/replicates.json.

    On one small graph whose features do not depend on the split, all runs are trained as one batched ensemble.

    Args:
        replicates: the number of seeds: seed, seed + 1, ...
        vary: what the seeds decide: the split, the initialization (also dropout and the order of batches), or both.
        data, target, preset, settings, device, strict, overrides, if_exists, progress: as in `train`.
    """
    check_arguments(replicate, locals())
    if replicates < 2:
        raise ArgumentError(f"replicates is {replicates}, expected at least 2")
    started = now_or_before()
    processes.join(device)
    target = as_specs(target)
    specs, link = read_targets(data, target)
    given, preset, seed = read_settings(settings, target, preset, seed)
    asked = make_settings(preset, section_of(specs), given, seed, link)
    folder, resume = None if out is None else run_dir(out), if_exists == "resume"
    seeds = [seed if vary == "split" else seed + number for number in range(replicates)]
    first_split = seed if asked.data.split_seed is None else asked.data.split_seed
    changes = [
        {**given, "data.split_seed": first_split + (0 if vary == "init" else number)} for number in range(replicates)
    ]
    folders = [None if folder is None else folder / f"seed-{number}" for number in range(replicates)]
    processes.on_first(partial(_check_free, folder, folders, if_exists != "error"))

    def prepare_one(number: int) -> Prepared:
        return prepare(data, target, preset, changes[number], seeds[number], strict=strict, overrides=overrides)

    def train_one(number: int) -> Run:
        where = folders[number]
        logger.info("seed %d of %d", number + 1, replicates)
        own, seconds, moment = changes[number], asked.training.budget_seconds, now()
        if seconds is not None:  # what is left, divided among the runs that are
            left = max((started + seconds - moment) / (replicates - number), 1.0)
            own = {**own, "training.time_budget": round(left, 3)}
        with counted_from(moment):
            return train(
                data, target, where, preset=preset, settings=own, seed=seeds[number], device=device, strict=strict,
                overrides=overrides, if_exists="error" if where is None else if_exists, progress=progress,
            )  # fmt: skip

    with ExitStack() as held:
        accelerator = make_accelerator(asked.training.precision, device)

        def look() -> tuple[bool, bool]:
            if folder is not None:
                held.enter_context(locked(folder))
            found = [where for where in folders if where is not None]
            return any(map(has_checkpoint, found)), bool(found) and all(map(is_finished, found))

        begun, done = processes.on_first(look)
        every = list[Prepared]()
        if not (resume and (begun or done)):
            with processes.together():
                every.append(prepare_one(0))
                if can_batch(every[0].task_data, every[0].settings, replicates, accelerator.device):
                    every += [prepare_one(number) for number in range(1, replicates)]
        if len(every) == replicates and _can_share(every):
            if folder is not None:
                logger.info("the runs go to %s", folder)
            every = _with_findings(every)
            has_name = isinstance(data, str | os.PathLike)
            begin = None if folder is None else partial(make_start, ensemble=1, overrides=overrides, has_name=has_name)
            runs = _fit_batched(every, accelerator, progress, begin, started)
            for where, run in zip(folders, runs, strict=True):
                if where is not None:
                    processes.on_first(partial(_save, run, where))
        else:
            runs = [train_one(number) for number in range(replicates)]
        summary = summarize([run.metrics for run in runs])
        if folder is not None:
            content = (json.dumps({"vary": vary, "parts": summary}, indent=1) + "\n").encode()
            processes.on_first(partial(atomic_write, folder / SUMMARY, content))
        return Replicates(runs, summary)


def _save(run: Run, folder: Path) -> None:
    run.save(folder)
    close_directory(folder)


def _check_free(folder: Path | None, folders: Sequence[Path | None], may_be_there: bool) -> None:
    if folder is not None:
        check_own(folder, OWN)
        if is_complete(folder):
            raise RunError(f"{folder} holds a finished run: choose another {name_option('--out')} for replicates")
    for where in folders:
        if where is None:
            continue
        check_own(run_dir(where))
        if not may_be_there and (is_complete(where) or has_checkpoint(where)):
            out, resume, overwrite = (name_option(flag) for flag in ("--out", "--resume", "--overwrite"))
            raise RunError(f"{where} is there already: choose another {out}, {resume} to go on, or {overwrite}")


def summarize(metrics: Sequence[Mapping[str, Mapping[str, Mapping[str, float]]]]) -> dict[str, Any]:
    """Mean and standard deviation of every metric that all runs have.

    >>> summarize([{"test": {"node": {"auc": 0.7}}}, {"test": {"node": {"auc": 0.9}}}])["test"]["node"]["auc"]["mean"]
    0.8
    """
    found: dict[str, Any] = {}
    for part, levels in metrics[0].items():
        for level, names in levels.items():
            for name in names:
                values = [one.get(part, {}).get(level, {}).get(name) for one in metrics]
                if all(value is not None for value in values):
                    numbers = [float(value) for value in values if value is not None]
                    cell = {"mean": round(fmean(numbers), 12), "std": stdev(numbers), "values": numbers}
                    found.setdefault(part, {}).setdefault(level, {})[name] = cell
    return found


def _can_share(every: Sequence[Prepared]) -> bool:
    """Whether all runs have the same graph and class weights, whatever rows they are trained on."""
    first = every[0]
    if any(one.targets != first.targets for one in every):  # numbers are scaled by training rows
        return False
    if any(
        one.settings.training != first.settings.training for one in every
    ):  # pseudo-labels need labels to be selected by
        return False
    if any(len(one.recipes) != len(first.recipes) for one in every):  # there may be too few labels in some
        return False
    if first.settings.training.imbalance == "weights":  # which are counted on training rows
        return False
    return all(
        one.data.graph is first.data.graph
        or (torch.equal(one.data.graph.edges, first.data.graph.edges) and _equal(one, first))
        for one in every
    )


def _with_findings(every: Sequence[Prepared]) -> list[Prepared]:
    """Prepared data with the leaks of each; those of the first are logged."""
    every = [replace(one, findings=find_leaks(one)) for one in every]
    for finding in every[0].findings:
        logger.warning("%s", finding)
    return every


def _equal(one: Prepared, other: Prepared) -> bool:
    nodes, others = one.data.graph.nodes, other.data.graph.nodes
    if nodes.layout == torch.sparse_csr:
        return nodes.shape == others.shape and torch.equal(nodes.values(), others.values())
    return torch.equal(nodes, others)


def _fit_batched(
    every: Sequence[Prepared],
    accelerator: Accelerator,
    progress: bool,
    make: Callable[[Prepared], TrainingStart] | None,
    began: float,
) -> list[Run]:
    """Train all runs as members of one batched ensemble, each with its own split, and a start if `make` is given.

    Args:
        every: the data of each run.
        accelerator, progress: as in `fit_run` and `train`.
        make: makes the start of a run, to be stored.
        began: when the command did, by `time.monotonic`.
    """
    started, first = time.monotonic(), every[0]
    task_data = make_task_data(
        first.data, first.targets, [one.splits for one in every], None, first.task_data.label_delay
    )
    callbacks = [show()] if progress else []
    budget = make_budget(first, len(every), began)
    found = fit_recipes(
        task_data, first.recipes, len(every), accelerator=accelerator, callbacks=callbacks, budget=budget
    )
    seconds = (time.monotonic() - started) / len(every)
    runs = []
    for number, one in enumerate(every):
        selected, members = select_recipe([[ensemble[number]] for ensemble in found], one.recipes)
        start = None if make is None else make(one)
        own = replace(one, data=first.data).select(selected)
        made = partial(make_run, own, members, seconds, accelerator.device, start)
        runs.append(share_run(own, members, made))
    return runs
