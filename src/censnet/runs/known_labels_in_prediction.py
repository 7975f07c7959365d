"""Known labels in prediction: which labels are shown, and to the prediction of which rows.

The label of a row must not reach its own prediction. So rows without a label are predicted with all labels shown, and
rows that have one in folds, each with the labels of the other folds shown. On the training data, where predictions are
scored, validation rows are predicted with training labels, and test rows with the labels of both, as far as these are
known by then (`data.label_delay`). While a model is trained, each batch hides the labels that it predicts:
`training/full_batches.py` and `training/sampled_subgraphs.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from censnet.data.dataset import Dataset
from censnet.data.digests import row_digests
from censnet.data.splits.split_file import PARTS
from censnet.nn.chunked import HeadOutputs, dense
from censnet.nn.model import Outputs
from censnet.ops.graph import Graph
from censnet.tasks.inputs import ModelInputs
from censnet.tasks.targets import Target
from censnet.training.task_data import TaskData, row_labels

FOLDS = 5


@dataclass(frozen=True, eq=False)
class KnownLabels:
    """Known labels of nodes or edges, and the groups in which rows are predicted.

    Args:
        labels: level -> the labels of its targets, NaN where there is none. (n, k)
        group: level -> the group of each row; rows of one group are predicted together. (n,)
        shows: level -> for each group, which rows it is shown. (groups, n)
    """

    labels: Mapping[str, Tensor]
    group: Mapping[str, Tensor]
    shows: Mapping[str, Tensor]

    @property
    def num_passes(self) -> int:
        """The number of forward passes."""
        return max((len(shows) for shows in self.shows.values()), default=1)

    @property
    def share(self) -> float:
        """The share of rows that have a label."""
        known = sum(int((~labels.isnan().all(1)).sum()) for labels in self.labels.values())
        return known / max(1, sum(len(labels) for labels in self.labels.values()))

    def graphs(self, graph: Graph, inputs: ModelInputs) -> Iterator[tuple[Graph, dict[str, Tensor]]]:
        """For each pass, the graph with the labels that are shown, and level -> the rows that it predicts."""
        for number in range(self.num_passes):
            at = {level: min(number, len(shows) - 1) for level, shows in self.shows.items()}
            shown = {level: self.shows[level][at[level]] for level in self.shows}
            yield (
                inputs.show(graph, self.labels, shown),
                {level: group == number for level, group in self.group.items()},
            )

    @classmethod
    def in_stream(cls, labels: Mapping[str, Tensor], known: Mapping[str, Tensor] | None = None) -> KnownLabels:
        """Labels for causal layers, by which every edge is predicted at once: those before it reach it, no other."""
        every = {level: ~values.isnan().all(1) for level, values in labels.items()} if known is None else known
        group = {level: torch.zeros(len(mask), dtype=torch.int64) for level, mask in every.items()}
        return cls(labels, group, {level: mask.unsqueeze(0) for level, mask in every.items()})

    @classmethod
    def of_data(cls, dataset: Dataset, targets: Mapping[str, Sequence[Target]]) -> KnownLabels:
        """The labels that data carry: rows without one in the first group, the others in folds by their digests."""
        labels, group, shows = {}, {}, {}
        for level, mine in targets.items():
            found = read_labels(dataset, level, mine)
            known = ~found.isnan().all(1)
            fold = torch.where(known, 1 + row_folds(dataset, level), 0)
            labels[level], group[level] = found, fold
            shows[level] = torch.stack([known & (fold != number) for number in range(FOLDS + 1)])
        return cls(labels, group, shows)

    @classmethod
    def of_training(cls, dataset: Dataset, task_data: TaskData, levels: Sequence[str]) -> KnownLabels:
        """The labels of the training data: training rows in folds, then validation and test rows, then the others."""
        group, shows = {}, {}
        for level in levels:
            part = task_data.parts[level][:, 0]
            known = ~task_data.labels[level].isnan().all(1)
            train, validation, test = (known & (part == code) for code in range(len(PARTS)))
            fold = row_folds(dataset, level)
            places = torch.where(train, fold, FOLDS + 2)
            places = torch.where(validation, FOLDS, torch.where(test, FOLDS + 1, places))
            folds = [train & (fold != number) for number in range(FOLDS)]
            group[level] = places
            later = [task_data.known_for(part, level) for part in PARTS[1:]]
            shows[level] = torch.stack([*folds, *later, known])
        return cls({level: task_data.labels[level] for level in levels}, group, shows)


def read_labels(dataset: Dataset, level: str, targets: Sequence[Target]) -> Tensor:
    """The labels of data as numbers, NaN where there is none, also where the column is absent. (n, k)"""
    frame = dataset.tables.frames()[targets[0].level.table]
    rows = dataset.rows(level)
    encoded = [
        target.encode(dataset.labels(level, target.column))
        if target.column in frame.columns
        else torch.full((len(rows),), torch.nan)
        for target in targets
    ]
    return row_labels(targets, encoded, rows, dataset.count(level))


def row_folds(dataset: Dataset, level: str) -> Tensor:
    """A fold for each node or edge, by the digest of its row: equal rows are in one fold, in any order of rows. (n,)"""
    digests = torch.from_numpy((row_digests(dataset, level) % FOLDS).astype("int64"))
    rows = dataset.rows(level)
    folds = torch.zeros(dataset.count(level), dtype=torch.int64)
    good = (rows >= 0).nonzero().squeeze(1).flip(0)
    folds[rows[good]] = digests[good]
    return folds


def merge(found: Outputs | None, new: Outputs, predicted: Mapping[str, Tensor]) -> Outputs:
    """The outputs of several passes: of each level the rows that this one predicts, and all else as it was."""
    if found is None:
        return new
    by_level, unclipped = (
        {level: _merge_rows(old[level], latest[level], predicted.get(level)) for level in latest}
        for old, latest in ((found.by_level, new.by_level), (found.unclipped, new.unclipped))
    )
    watched = {
        level: rows
        if level not in predicted
        else torch.where(predicted[level].unsqueeze(1), rows, found.watched[level])
        for level, rows in new.watched.items()
    }
    return Outputs(by_level, new.link_inputs, unclipped, watched)


def _merge_rows(old: HeadOutputs, new: HeadOutputs, rows: Tensor | None) -> HeadOutputs:
    if rows is None:
        return new  # of another level: the last pass shows the most
    return torch.where(rows.to(dense(new).device).unsqueeze(1), dense(new), dense(old))
