"""The same training from several seeds: how much of a score is luck."""

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

from censnet.arguments import check_arguments
from censnet.data.tables.target_spec import Targets
from censnet.errors import RunError
from censnet.files import atomic_write
from censnet.pipeline.prepare import Prepared, find_leaks, prepare, read_targets
from censnet.pipeline.train import make_run, train
from censnet.progress import show
from censnet.runs.directory import check_own, is_complete
from censnet.runs.lock import check_folder, locked, named_folder
from censnet.runs.resume import close_directory, has_checkpoint, is_finished, make_start
from censnet.runs.run import Run
from censnet.runs.start import Start
from censnet.selection.recipes import can_batch_members, fit_recipes
from censnet.selection.self_training import select_network
from censnet.settings.presets import make_settings
from censnet.training.devices import make_accelerator
from censnet.training.task_data import make_task_data

logger = logging.getLogger("censnet")

SUMMARY = "replicates.json"
OWN = re.compile(r"seed-\d+|replicates\.json")
Vary = Literal["both", "split", "init"]


@dataclass(frozen=True)
class Replicates:
    """Runs that differ in their seeds alone.

    Args:
        runs: one for each seed.
        summary: part -> level -> metric -> mean, spread (standard deviation over the runs) and the values.
    """

    runs: list[Run]
    summary: dict[str, dict[str, dict[str, Any]]]


def replicate(
    data: object,
    target: Targets,
    out: str | os.PathLike[str] | None = None,
    *,
    replicates: int,
    vary: Vary = "both",
    preset: str = "strong",
    settings: Mapping[str, object] | None = None,
    seed: int = 0,
    device: str | None = None,
    strict: bool = False,
    overrides: Mapping[str, str] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: bool = False,
) -> Replicates:
    """Train from several seeds. Each run is kept in `out`/seed-N; `out`/replicates.json has the mean and the spread.

    On one small graph whose features do not depend on the split, all runs are trained at once.

    Args:
        replicates: how many seeds: seed, seed + 1, ...
        vary: what the seeds vary: the split, the initialization (weights, dropout, order of batches), or both.
        data, target, preset, settings, device, strict, overrides, resume, overwrite, progress: as in `train`.
    """
    check_arguments(replicate, locals())
    if replicates < 2:
        raise ValueError(f"replicates is {replicates}, expected at least 2")
    asked, link = read_targets(data, target)
    split_seed = make_settings(preset, asked[0].level if asked else "link", settings, seed, link).data.split_seed
    folder = None if out is None else named_folder(out)
    starts = [seed if vary == "split" else seed + number for number in range(replicates)]
    first_split = seed if split_seed is None else split_seed
    changes = [
        {**(settings or {}), "data.split_seed": first_split + (0 if vary == "init" else number)}
        for number in range(replicates)
    ]
    folders = [None if folder is None else folder / f"seed-{number}" for number in range(replicates)]
    _check_free(folder, folders, resume or overwrite)

    def prepare_one(number: int) -> Prepared:
        return prepare(data, target, preset, changes[number], starts[number], strict=strict, overrides=overrides)

    def train_one(number: int) -> Run:
        where = folders[number]
        logger.info("seed %d of %d", number + 1, replicates)
        return train(
            data, target, where, preset=preset, settings=changes[number], seed=starts[number], device=device,
            strict=strict, overrides=overrides, resume=resume and where is not None, overwrite=overwrite,
            progress=progress,
        )  # fmt: skip

    with ExitStack() as held:
        main = make_accelerator(device=device).is_main_process
        if folder is not None and main:
            held.enter_context(locked(folder))
        one_by_one = resume and any(where is not None and has_checkpoint(where) for where in folders)
        done = resume and all(where is not None and is_finished(where) for where in folders)
        every = [] if one_by_one or done else [prepare_one(0)]
        if every and can_batch_members(every[0].task_data, every[0].settings, replicates, device):
            every += [prepare_one(number) for number in range(1, replicates)]
        if len(every) == replicates and _can_share(every):
            if folder is not None:
                logger.info("the runs go to %s", folder)
            every = _with_findings(every)
            named = isinstance(data, str | os.PathLike)
            begin = None if folder is None else partial(make_start, ensemble=1, overrides=overrides, named=named)
            runs = _at_once(every, device, progress, begin)
            for where, run in zip(folders, runs, strict=True):
                if where is not None:
                    run.save(where)
                    close_directory(where)
        else:
            runs = [train_one(number) for number in range(replicates)]
        summary = summarise([run.metrics for run in runs])
        if folder is not None and main:
            atomic_write(folder / SUMMARY, (json.dumps({"vary": vary, "parts": summary}, indent=1) + "\n").encode())
        return Replicates(runs, summary)


def _check_free(folder: Path | None, folders: Sequence[Path | None], may_be_there: bool) -> None:
    if folder is not None:
        check_folder(folder)
        check_own(folder, OWN)
        if is_complete(folder):
            raise RunError(f"{folder} holds a finished run: choose another --out for replicates")
    for where in folders:
        if where is None:
            continue
        check_folder(where)
        check_own(where)
        if not may_be_there and (is_complete(where) or has_checkpoint(where)):
            raise RunError(f"{where} is there already: choose another --out, --resume to go on, or --overwrite")


def summarise(metrics: Sequence[Mapping[str, Mapping[str, Mapping[str, float]]]]) -> dict[str, Any]:
    """Mean and spread of every metric that all runs have.

    >>> summarise([{"test": {"node": {"auc": 0.7}}}, {"test": {"node": {"auc": 0.9}}}])["test"]["node"]["auc"]["mean"]
    0.8
    """
    found: dict[str, Any] = {}
    for part, levels in metrics[0].items():
        for level, names in levels.items():
            for name in names:
                values = [one.get(part, {}).get(level, {}).get(name) for one in metrics]
                if all(value is not None for value in values):
                    numbers = [float(value) for value in values if value is not None]
                    cell = {"mean": round(fmean(numbers), 12), "spread": stdev(numbers), "values": numbers}
                    found.setdefault(part, {}).setdefault(level, {})[name] = cell
    return found


def _can_share(every: Sequence[Prepared]) -> bool:
    """Whether all runs would see the same graph and weigh classes alike, whatever rows they learn from."""
    first = every[0]
    if any(one.targets != first.targets for one in every):  # numbers are scaled by training rows
        return False
    if any(one.settings.training != first.settings.training for one in every):  # guesses need labels to be chosen by
        return False
    if any(len(one.networks) != len(first.networks) for one in every):  # there may be too few labels in some
        return False
    if first.settings.training.imbalance == "weights":  # which are counted on training rows
        return False
    return all(
        one.data.graph is first.data.graph
        or (torch.equal(one.data.graph.edges, first.data.graph.edges) and _equal(one, first))
        for one in every
    )


def _with_findings(every: Sequence[Prepared]) -> list[Prepared]:
    """The same with what may make the scores of each look too good; of the first it is said."""
    every = [replace(one, findings=find_leaks(one)) for one in every]
    for finding in every[0].findings:
        logger.warning("%s", finding)
    return every


def _equal(one: Prepared, other: Prepared) -> bool:
    nodes, others = one.data.graph.nodes, other.data.graph.nodes
    if nodes.layout == torch.sparse_csr:
        return nodes.shape == others.shape and torch.equal(nodes.values(), others.values())
    return torch.equal(nodes, others)


def _at_once(
    every: Sequence[Prepared], device: str | None, progress: bool, make: Callable[[Prepared], Start] | None
) -> list[Run]:
    """All runs as members of one network; each has its own parts, and a start if `make` makes one."""
    started, first = time.monotonic(), every[0]
    task_data = make_task_data(first.data, first.targets, [one.splits for one in every], None)
    callbacks = [show()] if progress else []
    found = fit_recipes(task_data, first.networks, None, False, device, callbacks, len(every))
    seconds = (time.monotonic() - started) / len(every)
    runs = []
    for number, one in enumerate(every):
        mine = [(models[number : number + 1], fit_results[number : number + 1]) for models, fit_results in found]
        kept, models, fit_results = select_network(mine, one.networks)
        start = None if make is None else make(one)
        runs.append(
            make_run(replace(one, data=first.data, networks=[kept]), models, fit_results, seconds, device, start)
        )
    return runs
