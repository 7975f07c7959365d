"""Fitting: every recipe on prepared data, within the time budget, and the run of the selected one.

The run has scores and predictions for every row, from one forward pass.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import pandas as pd
import torch
from accelerate import Accelerator

from censnet.data.dataset import Dataset
from censnet.data.digests import fingerprint, row_digests, spell_digests
from censnet.data.splits.links import link_rows
from censnet.data.splits.split_file import DIGEST, PARTS, RESERVED, part_rows
from censnet.levels import Level
from censnet.nn.model import Outputs
from censnet.ops.graph import Graph
from censnet.pipeline.prepare import Prepared
from censnet.runs.config import GraphSize, Provenance, RunConfig, TimeBudgetRecord, TrainingStart
from censnet.runs.directory import CHECKPOINT, ended_by_budget, history_path
from censnet.runs.links import HeldOutPairs, node_names, score_held_out
from censnet.runs.novelty import fit_novelty, keep_embedded
from censnet.runs.run import Run
from censnet.runs.scoring import score_parts, score_with_fixed_labels
from censnet.runs.uncertainty import Uncertainty
from censnet.selection.candidates import Selection, SelectionRecord
from censnet.selection.recipes import fit_recipes, restore_recipes, select_recipe
from censnet.tasks.decision import Rule
from censnet.text import show_seconds
from censnet.training import processes
from censnet.training.callbacks import Callback
from censnet.training.early_stopping import ValidationScore
from censnet.training.ensemble import TrainingFiles
from censnet.training.evaluator import Scores, mean_over_levels
from censnet.training.history import HistoryFile, Row, history_table
from censnet.training.task_data import TaskData
from censnet.training.time_budget import TimeBudget
from censnet.training.trainer import FitResult

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
    make = partial(make_run, chosen, members, seconds, accelerator.device, start, finish)
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


def make_run(
    prepared: Prepared,
    members: Sequence[Selection],
    seconds: float,
    device: torch.device,
    start: TrainingStart | None = None,
    finished_early: bool = False,
) -> Run:
    """A run from trained models, scored on every part, with predictions for every row.

    Args:
        prepared: the data, and the settings of the selected recipe.
        members: the selected model of each member, and the candidates that it was selected from.
        seconds: that the training took.
        device: where to compute.
        start: the inputs of the training, to be stored.
        finished_early: whether the training was closed before its end.
    """
    data, task_data, links = prepared.data, prepared.task_data, prepared.links
    models, fit_results = [one.model for one in members], [one.fit_result for one in members]
    rows = _history(fit_results)
    monitor = fit_results[0].monitor
    validated = any(f"validation_{monitor}" in row for row in rows)
    config = RunConfig(
        settings=prepared.settings,
        target_specs=prepared.target_specs,
        data=data.name,
        fingerprint=fingerprint(data.graph),
        graph_size=GraphSize.of(data.graph),
        targets=prepared.targets,
        link=links is not None,
        split=prepared.split_sources,
        node_width=data.graph.node_width,
        edge_width=data.graph.edge_width,
        graph_width=data.graph.graph_width,
        odd_width=data.graph.odd_width,
        node_features=task_data.node_features,
        widths=list(task_data.widths),
        label_delay=task_data.label_delay,
        members=len(models),
        monitor=monitor if validated else None,
        best_epoch=[_best_epoch(one) for one in fit_results],
        selection=SelectionRecord.of(members),
        shows_labels=True if prepared.settings.model.known_labels else None,
        start=None if start is None else start.model_copy(update={"tables": {}, "parts": {}, "replaces": ""}),
        finished_early=finished_early,
        time_budget=None if finished_early else record_budget(prepared, members),
        findings=prepared.findings,
        provenance=Provenance.now(seconds, str(device)),
    )
    run = Run(config, data.schema, models, {}, history_table(rows, monitor), split_table(prepared))
    watch, known = keep_embedded(data), run.known_training_labels(data, task_data)
    outputs = run.outputs(task_data.graph, device, known=known, watch=watch)
    hidden = None
    if config.shows_labels and not run.inputs.causal:
        outputs, hidden = _with_or_without_labels(run, prepared, outputs, monitor, device)
    held_out = None if links is None else score_held_out(models, outputs, links)
    embedded = outputs[0].watched
    novelty = fit_novelty(data, embedded, task_data)
    run.uncertainty = Uncertainty.fit(task_data, outputs, held_out).model_copy(update={"novelty": novelty})
    if hidden is not None and known is not None:
        run.uncertainty = _add_unlabeled(run, data, task_data, hidden)
    training = prepared.settings.training
    rule = Rule.of(dict(training.cost.items()), training.recall)
    if rule is not None:
        run.uncertainty = run.uncertainty.decide(run.targets, rule)
    run.metrics = score_parts(task_data, outputs, held_out, run.uncertainty)
    run.metrics |= score_with_fixed_labels(run, task_data, device)
    if links is not None and prepared.splits:  # rows are predicted with all links, also those held out for the scores
        outputs = run.outputs(data.graph, device, watch=run.uncertainty.watch)
    else:
        distance = {level: run.uncertainty.watch(level, rows) for level, rows in embedded.items()}
        outputs[0] = outputs[0]._replace(watched=distance)
    for level, split in prepared.splits.items():
        codes = split.codes(len(data.rows(level)))
        run.predictions[level] = _add_labels(
            run, prepared, level, run.table(data, level, outputs, "ids"), codes.tolist()
        )
    if held_out is not None:
        certain = run.uncertainty.calibrate_links
        held_out = [each._replace(probability=certain(each.probability)) for each in held_out]
        run.predictions["link"] = _held_out_table(prepared, held_out)
    return run


def share_run(prepared: Prepared, members: Sequence[Selection], make: Callable[[], Run]) -> Run:
    """The run that the first of several processes makes. The others have all of it but the predictions.

    Args:
        prepared, members: as in `make_run`.
        make: makes the run.
    """
    if processes.count() == 1:
        return make()
    runs = list[Run]()

    def make_and_send() -> tuple[RunConfig, dict[str, Scores], Uncertainty]:
        runs.append(make())
        return runs[0].config, runs[0].metrics, runs[0].uncertainty

    config, metrics, uncertainty = processes.on_first(make_and_send)
    if runs:
        return runs[0]
    fit_results = [one.fit_result for one in members]
    history = history_table(_history(fit_results), fit_results[0].monitor)
    models = [one.model for one in members]
    return Run(config, prepared.data.schema, models, metrics, history, split_table(prepared), uncertainty=uncertainty)


def _history(fit_results: Sequence[FitResult]) -> list[Row]:
    """The epochs of all members."""
    return [
        ({"member": number} if len(fit_results) > 1 else {}) | row
        for number, one in enumerate(fit_results)
        for row in one.history
    ]


def _with_or_without_labels(
    run: Run, prepared: Prepared, shown: list[Outputs], monitor: str, device: torch.device
) -> tuple[list[Outputs], list[Outputs] | None]:
    """The outputs that do better on validation: those that are shown the known labels of other rows, or others.

    The decision is stored in the configuration of the run. Where labels are shown, the others are the second result.
    """
    task_data = prepared.task_data
    hidden = run.outputs(task_data.graph, device, watch=keep_embedded(prepared.data))
    scores = [score_parts(task_data, outputs).get("validation", {}) for outputs in (shown, hidden)]
    values = [(mean_over_levels(each, monitor), mean_over_levels(each, "loss")) for each in scores]
    (value, loss), (other, other_loss) = values
    if value is None or loss is None or other is None or other_loss is None:
        return shown, hidden
    better = ValidationScore(other, other_loss).is_better(monitor, ValidationScore(value, loss))
    said = f"validation {monitor} is {value:.4g} with the known labels of other rows as inputs, {other:.4g} without"
    logger.info("%s: predictions %s", said, "do not use them" if better else "use them")
    run.config = run.config.model_copy(update={"shows_labels": not better})
    return (hidden, None) if better else (shown, hidden)


def _add_unlabeled(run: Run, data: Dataset, task_data: TaskData, hidden: Sequence[Outputs]) -> Uncertainty:
    """With what validation rows say of predictions that are shown no known labels: those of most new data."""
    novelty = fit_novelty(data, hidden[0].watched, task_data)
    links = {"link": run.uncertainty.link, "link_conformal": run.uncertainty.link_conformal}
    own = Uncertainty.fit(task_data, hidden).model_copy(update={"novelty": novelty, **links})
    known = torch.cat([task_data.known_for("validation", level) for level in run.inputs.levels])
    share = float(known.double().mean())
    return run.uncertainty.model_copy(update={"unlabeled": own, "label_share": share})


def split_table(prepared: Prepared) -> pd.DataFrame:
    """The content of splits.csv: the part, the ids and the digest of each row."""
    data = prepared.data
    frames = []
    for level, split in prepared.splits.items():
        frame = part_rows(Level(level).table, split)
        ids = data.tables.frames()[Level(level).table][data.id_columns(level)]
        ids = ids.rename(columns={name: f"{name}_" for name in RESERVED})
        ids = ids.iloc[frame["row"] - 1].astype("string").reset_index(drop=True)
        digests = spell_digests(row_digests(data, level)[frame["row"] - 1])
        frames.append(pd.concat([frame, ids, pd.Series(digests, name=DIGEST, dtype="string")], axis=1))
    if prepared.links is not None:
        assert isinstance(data.graph, Graph)
        frames.append(link_rows(prepared.links, data.graph, data.rows("edge"), pd.Series(node_names(data))))
    return pd.concat(frames, ignore_index=True)


def _best_epoch(fit_result: FitResult) -> int:
    """The epoch whose weights were kept; the last where no epoch was validated."""
    (epoch,) = fit_result.best_epoch
    return epoch if epoch > 0 else int(fit_result.history[-1]["epoch"])


def _add_labels(run: Run, prepared: Prepared, level: str, table: pd.DataFrame, codes: Sequence[int]) -> pd.DataFrame:
    """Predictions of the training data behind the user's ids and `split`, each column after its label.

    Args:
        table: the predictions behind the user's ids.
        codes: the part of each input row, -1 for none.
    """
    data = prepared.data
    ids = data.id_columns(level)
    found: dict[str, pd.Series[Any]] = {str(name): table[name] for name in table.columns[: len(ids)]}
    found["split"] = pd.Series([PARTS[code] if code >= 0 else None for code in codes], dtype=object)
    labels = {f"{target.column}_predicted": target.column for target in run.targets[level]}
    for name in map(str, table.columns[len(ids) :]):
        column = labels.pop(re.sub(r"(?<=_predicted)_\d+$", "", name), None)
        if column is not None and column not in ids:
            found[column if column not in found else f"{column}_"] = data.labels(level, column)
        found[name] = table[name]
    return pd.DataFrame(found)


def _held_out_table(prepared: Prepared, held_out: Sequence[HeldOutPairs]) -> pd.DataFrame:
    """The held-out links and the sampled negatives by their ids, with their probabilities."""
    names, frames = node_names(prepared.data), []
    for each in held_out:
        source, target = names[each.pairs.numpy()]
        frame = pd.DataFrame({"source": source, "target": target, "split": each.part, "link": int(each.linked)})
        frame["link_p"] = each.probability.numpy()
        if each.deviation is not None:
            frame["link_std"] = each.deviation.numpy()
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)
