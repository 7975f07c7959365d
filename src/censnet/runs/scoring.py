"""Scores of trained models on the parts of their training data, and on other data."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial

import pandas as pd
import torch

from censnet.data.dataset import Dataset
from censnet.data.splits.links import links
from censnet.data.splits.split_file import PARTS
from censnet.data.splits.timed_links import links_by_time
from censnet.errors import DataError
from censnet.levels import Level
from censnet.nn.model import Outputs
from censnet.runs.known_labels_in_prediction import KnownLabels
from censnet.runs.known_rows import count_known, count_known_links, describe_known, known_rows
from censnet.runs.links import HeldOutPairs, one_graph, score_held_out
from censnet.runs.trained_models import TrainedModels
from censnet.runs.uncertainty import Uncertainty, exact_labels
from censnet.settings.build import has_ordered_links
from censnet.tasks.decision import DECISIONS
from censnet.tasks.uncertainty import COVERAGE
from censnet.training.evaluator import Scores, score_rows, score_split
from censnet.training.task_data import TaskData, row_censoring, row_labels

logger = logging.getLogger(__name__)

FIXED = "_labels_fixed"  # behind the name of a part that is scored without the labels that came with it
# part of the scores -> the part that is scored, and the last part whose labels are known
FIXED_LABELS = {f"validation{FIXED}": ("validation", "train"), f"test{FIXED}": ("test", "validation")}


def score_parts(
    task_data: TaskData,
    outputs: Sequence[Outputs],
    held_out: Sequence[HeldOutPairs] | None = None,
    uncertainty: Uncertainty | None = None,
    coverage: float = COVERAGE,
) -> dict[str, Scores]:
    """Part -> level -> metric -> value on the training data.

    Args:
        task_data: labels and split.
        outputs: of each member for `task_data.graph`; they are averaged.
        held_out: the probabilities of the held-out links, where links are predicted.
        uncertainty: by which probabilities are calibrated, and which gives intervals and sets.
        coverage: of these.
    """
    sure = uncertainty or Uncertainty()
    rows = {
        level: sure.combine(level, task_data.of(level), [member.by_level[level] for member in outputs])
        for level in task_data.labels
    }
    found = score_split(task_data, rows)
    for code, part in enumerate(PARTS):
        for level, scores in found.get(part, {}).items():
            inside = (task_data.parts[level][:, 0] == code).nonzero().squeeze(1)
            labels, exact = task_data.labels[level], exact_labels(task_data, level)
            more = sure.score(level, task_data.of(level), outputs, labels, exact, inside, coverage)
            found[part][level] = merge_scores(scores, more)
    if held_out is not None:
        for part, values in sure.score_links(held_out, coverage).items():
            found.setdefault(part, {})["link"] = values
    return found


def score_with_fixed_labels(
    run: TrainedModels, task_data: TaskData, device: torch.device, coverage: float = COVERAGE
) -> dict[str, Scores]:
    """The parts `FIXED_LABELS` of a causal model: rows of a part with no label that came after the part before it.

    Its other scores are those of a stream: each edge with every label that arrived before it. Empty for other models.
    """
    inputs, scores = run.inputs, dict[str, Scores]()
    if not inputs.causal or not inputs.known:
        return scores
    labels = {level: task_data.labels[level] for level in inputs.levels}
    for name, (part, last) in FIXED_LABELS.items():
        if not task_data.has(part):
            continue
        known = {level: task_data.known_until(last, level) for level in inputs.levels}
        outputs = run.outputs(task_data.graph, device, known=KnownLabels.in_stream(labels, known))
        found = score_parts(task_data, outputs, None, run.uncertainty, coverage)[part]
        scores[name] = {level: found[level] for level in inputs.levels}
    return scores


def score_other_data(
    run: TrainedModels,
    splits: pd.DataFrame,
    dataset: Dataset,
    device: torch.device,
    progress: bool = False,
    coverage: float = COVERAGE,
    past: Dataset | None = None,
) -> dict[str, Scores]:
    """Scores on data other than the training data: `all` and, where some rows are known from training, `new`.

    Of causal layers that read labels, these are scores of a stream, and `all_labels_fixed` is without the labels of the
    data.

    Args:
        run: whose predictions are scored.
        splits: the rows of its training data, as in splits.csv.
        dataset: the data, with labels.
        device, progress, coverage: as in `Run.evaluate`.
        past: of a causal model, the edges before those of `dataset`.
    """
    config, scores, fresh, fixed = run.config, Scores(), Scores(), Scores()
    uncertainty, in_stream = run.uncertainty.where_known(0.0), run.inputs.causal and "edge" in run.targets
    if config.targets:
        if in_stream:
            uncertainty = run.uncertainty
            outputs = run.outputs_in_stream(dataset, past, device, progress)
        else:
            outputs = run.outputs(dataset.graph, device, progress)
        for level, targets in run.targets.items():
            if past is not None and level != "edge":
                continue
            columns = [dataset.labels(level, target.column) for target in targets]
            shape = dataset.rows(level), dataset.count(level)
            pairs = list(zip(targets, columns, strict=True))
            labels = row_labels(targets, [target.encode(column) for target, column in pairs], *shape)
            censoring = row_censoring([target.encode_censoring(column) for target, column in pairs], *shape)
            predicted = uncertainty.combine(level, targets, [member.by_level[level] for member in outputs])
            labeled = ~labels.isnan().all(1)
            exact = ~labels.isnan() if censoring is None else ~labels.isnan() & (censoring == 0)
            if not bool(labeled.any()):
                raise DataError(f"no {level} has a label that the run knows, expected some to score")
            rows = labeled.nonzero().squeeze(1)
            sure = partial(uncertainty.score, level, targets, outputs, labels, exact, coverage=coverage)
            scores[level] = merge_scores(score_rows(targets, predicted, labels, rows, censoring), sure(rows))
            if in_stream and level == "edge" and run.inputs.known and config.shows_labels:
                without = run.outputs_in_stream(dataset, past, device, progress, "none" if past is None else "past")
                few = run.uncertainty.where_known(0.0) if past is None else uncertainty
                of_fixed = few.combine(level, targets, [member.by_level[level] for member in without])
                more = few.score(level, targets, without, labels, exact, rows, coverage)
                fixed[level] = merge_scores(score_rows(targets, of_fixed, labels, rows, censoring), more)
            known = known_rows(splits, dataset, level)
            if known is not None:
                scores[level] |= count_known(labeled, known)
                others = labeled & ~known["train"] & ~known["validation"]
                if 0 < int(others.sum()) < int(labeled.sum()):
                    rows = others.nonzero().squeeze(1)
                    fresh[level] = merge_scores(score_rows(targets, predicted, labels, rows, censoring), sure(rows))
    if config.link:
        graph, of = one_graph(dataset), config.settings
        about = of.data.link_fractions, of.seed, has_ordered_links(of.model, graph.directed)
        by_time = graph.times is not None and of.data.split in ("auto", "time")
        hidden = links_by_time(graph, *about, file=dataset.tables.name("edges")) if by_time else links(graph, *about)
        held_out = score_held_out(run.models, run.outputs(dataset.message_graph(hidden), device), hidden)
        scores["link"] = run.uncertainty.score_links(held_out, coverage)["test"] | count_known_links(
            splits, dataset, hidden
        )
    for level, found in scores.items():
        note = describe_known(found, Level(level).table)
        if note is not None:
            logger.warning("%s", note)
    parts = {"all": scores, "new": fresh, f"all{FIXED}": fixed}
    return {part: found for part, found in parts.items() if found or part == "all"}


def merge_scores(scores: dict[str, float], more: dict[str, float]) -> dict[str, float]:
    """Scores of columns and their means; what both have is that of `more`, and its mean is over all columns."""
    found = scores | more
    for name in (name for name in more if name in scores and "/" not in name):
        values = [value for key, value in found.items() if "/" in key and key.rpartition("/")[2] == name]
        found[name] = sum(values) / len(values)
    return found


def replace_decision(scores: Mapping[str, float], column: str, more: Mapping[str, float]) -> dict[str, float]:
    """Scores of columns and their means where a column has another threshold.

    Args:
        scores: those of a part.
        column: whose threshold it is.
        more: the scores of its decisions by `score_decision`; empty drops the old ones.

    >>> replace_decision({"fraud/recall": 0.5, "late/recall": 0.9, "recall": 0.7, "auc": 0.8}, "fraud", {"recall": 0.7})
    {'late/recall': 0.9, 'recall': 0.8, 'auc': 0.8, 'fraud/recall': 0.7}
    """
    old = {f"{column}/{name}" for name in DECISIONS}
    found = {key: value for key, value in scores.items() if key not in old}
    found |= {f"{column}/{name}": value for name, value in more.items()}
    for name in DECISIONS:
        values = [value for key, value in found.items() if "/" in key and key.rpartition("/")[2] == name]
        if values:
            found[name] = sum(values) / len(values)
        else:
            found.pop(name, None)
    return found
