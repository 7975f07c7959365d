"""Scores of a run on each part of its training data, or on other data, where some rows may be known from training."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from censnet.data.dataset import Dataset
from censnet.data.digests import read_digests, row_digests
from censnet.data.splits.links import LinkSplit, links
from censnet.errors import DataError
from censnet.levels import Level
from censnet.nn.model import Outputs
from censnet.runs.links import HeldOutPairs, link_metrics, node_names, one_graph, score_held_out
from censnet.runs.predictor import Predictor
from censnet.settings.build import has_ordered_links
from censnet.training.evaluator import Scores, combine, score_rows, score_split
from censnet.training.task_data import TaskData, row_censoring, row_labels

logger = logging.getLogger(__name__)

COUNTS = ("rows", "known_train", "known_validation")  # beside the metrics of an evaluation
KNOWN = ("train", "validation")  # parts that training has used
_SEPARATOR = "\x1f"


def score_parts(
    task_data: TaskData,
    outputs: Sequence[Outputs],
    held_out: Sequence[HeldOutPairs] | None = None,
) -> dict[str, Scores]:
    """Part -> level -> metric -> value on the training data.

    Args:
        task_data: labels and split.
        outputs: of each member for `task_data.graph`; they are averaged.
        held_out: the probabilities of the held-out links, where links are predicted.
    """
    rows = {
        level: combine(task_data.of(level), [member.by_level[level] for member in outputs])
        for level in task_data.labels
    }
    found = score_split(task_data, rows)
    if held_out is not None:
        for part, values in link_metrics(held_out).items():
            found.setdefault(part, {})["link"] = values
    return found


def score_other_data(
    run: Predictor, splits: pd.DataFrame, dataset: Dataset, device: torch.device, progress: bool = False
) -> dict[str, Scores]:
    """Scores on data other than the training data: `all` and, where some rows are known from training, `new`.

    Args:
        run: whose predictions are scored.
        splits: the rows of its training data, as in splits.csv.
        dataset: the data, with labels.
        device, progress: as in `Run.evaluate`.
    """
    config, scores, fresh = run.config, Scores(), Scores()
    if config.targets:
        outputs = run.outputs(dataset.graph, device, progress)
        for level, targets in run.targets.items():
            columns = [dataset.labels(level, target.column) for target in targets]
            shape = dataset.rows(level), dataset.count(level)
            pairs = list(zip(targets, columns, strict=True))
            labels = row_labels(targets, [target.encode(column) for target, column in pairs], *shape)
            censoring = row_censoring([target.encode_censoring(column) for target, column in pairs], *shape)
            predicted = combine(targets, [member.by_level[level] for member in outputs])
            labeled = ~labels.isnan().all(1)
            if not bool(labeled.any()):
                raise DataError(f"no {level} has a label that the run knows, expected some to score")
            scores[level] = score_rows(targets, predicted, labels, labeled.nonzero().squeeze(1), censoring)
            known = known_rows(splits, dataset, level)
            if known is not None:
                scores[level] |= count_known(labeled, known)
                others = labeled & ~known["train"] & ~known["validation"]
                if 0 < int(others.sum()) < int(labeled.sum()):
                    fresh[level] = score_rows(targets, predicted, labels, others.nonzero().squeeze(1), censoring)
    if config.link:
        graph, of = one_graph(dataset), config.settings
        hidden = links(graph, of.data.link_fractions, of.seed, has_ordered_links(of.model, graph.directed))
        held_out = score_held_out(run.models, run.outputs(dataset.message_graph(hidden), device), hidden)
        scores["link"] = link_metrics(held_out)["test"] | count_known_links(splits, dataset, hidden)
    for level, found in scores.items():
        note = describe_known(found, Level(level).table)
        if note is not None:
            logger.warning("%s", note)
    return {"all": scores, "new": fresh} if fresh else {"all": scores}


def known_rows(splits: pd.DataFrame, dataset: Dataset, level: str) -> dict[str, Tensor] | None:
    """Part -> mask of the rows that are in that part of the training data; None if the run has no digests of them."""
    if "digest" not in splits:
        return None
    mine = splits[splits["table"] == Level(level).table]
    digests, rows, found = row_digests(dataset, level), dataset.rows(level).numpy(), dict[str, Tensor]()
    for part in KNOWN:
        known = np.isin(digests, read_digests(mine.loc[mine["split"] == part, "digest"])) & (rows >= 0)
        here = torch.zeros(dataset.count(level), dtype=torch.bool)
        here[torch.from_numpy(rows[known])] = True
        found[part] = here
    return {**found, "validation": found["validation"] & ~found["train"]}  # equal rows may be in both


def count_known(labeled: Tensor, known: Mapping[str, Tensor]) -> dict[str, float]:
    """The number of labeled rows, and of those in each part of the training data."""
    found = (labeled, *(labeled & known[part] for part in KNOWN))
    return {name: float(rows.sum()) for name, rows in zip(COUNTS, found, strict=True)}


def count_known_links(splits: pd.DataFrame, dataset: Dataset, hidden: LinkSplit) -> dict[str, float]:
    """The same for links: those between two nodes, by their ids, with a link in that part of the training data."""
    if not {"source", "target"} <= set(splits.columns):
        return {}
    names = node_names(dataset)[hidden.test_links.numpy()]
    here, mine = _pairs(names[0], names[1], hidden.ordered), splits[splits["table"] == "links"]
    found = [len(here)]
    for part in KNOWN:
        some = mine[mine["split"] == part]
        first, second = (some[side].astype("string").fillna("").to_numpy(dtype=object) for side in ("source", "target"))
        found.append(int(np.isin(here, _pairs(first, second, hidden.ordered)).sum()))
    return dict(zip(COUNTS, map(float, found), strict=True))


def describe_known(scores: dict[str, float], table: str) -> str | None:
    """A warning if rows of an evaluation are known from training; None if all are new, or nothing is known."""
    rows, train, validation = (int(scores.get(name, 0)) for name in COUNTS)
    if not train + validation:
        return None
    return (
        f"{train + validation:,} of {rows:,} {table} to score are known from training ({train:,} for training, "
        f"{validation:,} for validation): their scores do not show how the run generalizes to new ones"
    )


def _pairs(first: Any, second: Any, ordered: bool) -> NDArray[np.str_]:
    """The two ids of each pair as one text, in sorted order unless the order of a pair matters."""
    pairs = zip(first, second, strict=True)
    return np.array([_SEPARATOR.join(pair if ordered else sorted(pair)) for pair in pairs], dtype=str)
