"""Full-batch training: of rows, of causal layers, and of links, of which each step masks some."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from censnet.errors import SettingsError
from censnet.ops.graph import Graph
from censnet.training.batch import Batch, draw_latest, draw_share, sample_balanced
from censnet.training.link_sampling import LinkSampler
from censnet.training.task_data import TaskData

PIECES, CUTS = 8, 6  # of causal layers: pieces of the training rows in time, and those without labels of their own
FEW_EDGES = 2**20  # up to which all of these are used; above, the last one


class FullBatch:
    """Full-batch training: every step has the whole graph, and an epoch is one step.

    Where known labels are inputs, a step hides those of some training rows, which it predicts, and shows the others. Of
    edges that are split by time these are the rows after a moment, as in validation and test.
    """

    def __init__(self, task_data: TaskData, balanced: bool, hidden_ratio: float = 0.0) -> None:
        assert isinstance(task_data.graph, Graph)
        self.graph, self.task_data = task_data.graph, task_data
        rows = {level: (part == 0).any(1).nonzero().squeeze(1) for level, part in task_data.parts.items()}
        labels = {level: task_data.labels[level][rows[level]] for level in rows}
        weight = {}
        if task_data.members > 1:
            weight = {level: (task_data.parts[level][rows[level]] == 0).float() for level in rows}
        censoring = {level: found[rows[level]] for level, found in task_data.censoring.items()}
        self.batch = Batch(self.graph, rows, labels, weight, censoring=censoring)
        self.balanced, self.hidden_ratio = balanced, hidden_ratio
        if balanced and task_data.members > 1:
            raise SettingsError(
                "training.imbalance is sampling, expected weights: members of a batched ensemble share samples"
            )

    @property
    def repeats(self) -> Literal["objects", "shapes"] | None:
        return None if self.balanced or self.task_data.known_levels else "objects"

    def plan(self, generator: torch.Generator) -> Sequence[Tensor]:
        return [torch.empty(0)]

    def make(self, chosen: Tensor, generator: torch.Generator) -> Batch:
        known = self.task_data.known_levels
        if not self.balanced and not known:
            return self.batch
        rows, labels, weight, censoring, shown = {}, {}, {}, {}, {}
        for level, every in self.batch.rows.items():
            taken = torch.arange(len(every), device=every.device)
            if level in known:
                if level == "edge" and self.task_data.is_by_time:
                    taken = draw_latest(self.task_data, every, self.hidden_ratio, generator)
                    shown[level] = self.task_data.known_before(every[taken])
                else:
                    taken = draw_share(len(every), self.hidden_ratio, generator).to(every.device)
                    shown[level] = self.task_data.training_rows(level).index_fill(0, every[taken], False)
            if self.balanced:
                drawn = sample_balanced(self.batch.labels[level][taken], len(taken), generator)
                taken = taken[drawn]
            rows[level], labels[level] = every[taken], self.batch.labels[level][taken]
            if level in self.batch.weight:
                weight[level] = self.batch.weight[level][taken]
            if level in self.batch.censoring:
                censoring[level] = self.batch.censoring[level][taken]
        graph = self.task_data.show_labels(shown) if known else self.graph
        assert isinstance(graph, Graph)
        return Batch(graph, rows, labels, weight, censoring=censoring)


class CausalBatch(FullBatch):
    """Full-batch training of causal layers: no label is hidden from later rows, for none reaches its own row.

    A share of the steps shows no label after a moment, and predicts the training rows right after it: one of the last
    `CUTS` of `PIECES` that they are cut into in the order of time.
    """

    def __init__(self, task_data: TaskData, balanced: bool, stale_ratio: float) -> None:
        super().__init__(task_data, balanced)
        self.stale_ratio = stale_ratio if "edge" in task_data.known_levels else 0.0
        every = {level: task_data.training_rows(level) for level in task_data.known_levels}
        self.batch = replace(self.batch, graph=self._show(every))
        self.stale: dict[int, Batch] = {}  # by piece

    @property
    def repeats(self) -> Literal["objects", "shapes"] | None:
        return None if self.balanced else "objects"

    def make(self, chosen: Tensor, generator: torch.Generator) -> Batch:
        batch = self.batch
        if self.stale_ratio and float(torch.rand(1, generator=generator)) < self.stale_ratio:
            cuts = CUTS if self.task_data.graph.num_edges <= FEW_EDGES else 1
            batch = self._stale(PIECES - 1 - int(torch.randint(cuts, (1,), generator=generator)))
        if not self.balanced:
            return batch
        drawn = {level: sample_balanced(y, len(y), generator) for level, y in batch.labels.items()}
        return take_rows_of(batch, drawn)

    def _stale(self, piece: int) -> Batch:
        """The training rows of a piece, with the labels before it alone."""
        if piece not in self.stale:
            times = self.task_data.graph.times
            assert times is not None
            own = times[self.batch.rows["edge"]]
            bounds = own.sort().values[
                [len(own) * number // PIECES for number in (piece, piece + 1) if number < PIECES]
            ]
            taken = own >= bounds[0]
            if len(bounds) > 1 and bool((taken & (own < bounds[1])).any()):
                taken &= own < bounds[1]
            known = self.task_data.training_rows("edge") & (times < bounds[0])
            rows = {"edge": taken.nonzero().squeeze(1)}
            self.stale[piece] = take_rows_of(replace(self.batch, graph=self._show({"edge": known})), rows)
        return self.stale[piece]

    def _show(self, shown: Mapping[str, Tensor]) -> Graph:
        graph = self.task_data.show_labels(shown)
        assert isinstance(graph, Graph)
        return graph


def take_rows_of(batch: Batch, taken: Mapping[str, Tensor]) -> Batch:
    """The batch with some of the rows in the loss of each level, given by their numbers in it; of other levels all."""

    def take(values: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {level: rows[taken[level]] if level in taken else rows for level, rows in values.items()}

    return replace(
        batch,
        rows=take(batch.rows),
        labels=take(batch.labels),
        weight=take(batch.weight),
        censoring=take(batch.censoring),
    )


class MaskedLinkBatch(FullBatch):
    """Full-batch training of links: every step masks some edges, and classifies these against negative samples."""

    def __init__(self, task_data: TaskData, balanced: bool, mask_ratio: float, negative_ratio: int) -> None:
        super().__init__(task_data, balanced)
        ordered = task_data.links is not None and task_data.links.ordered
        self.sampler = LinkSampler(self.graph, mask_ratio, negative_ratio, ordered)

    @property
    def repeats(self) -> Literal["objects", "shapes"] | None:
        return None

    def make(self, chosen: Tensor, generator: torch.Generator) -> Batch:
        batch = super().make(chosen, generator)
        (message_edges, positives, negatives), graph = self.sampler(generator), self.graph
        batch = replace(batch, positives=positives, negatives=negatives)
        if message_edges is None:
            return batch
        message_graph = graph.with_edges(message_edges)
        if "edge" not in batch.rows:
            return replace(batch, graph=message_graph)
        number = torch.full((graph.num_edges,), -1, device=message_edges.device)
        number[message_edges] = torch.arange(len(message_edges), device=message_edges.device)
        rows = number[batch.rows["edge"]]
        visible = rows >= 0  # the label of a masked edge waits for another step
        labels = {**batch.labels, "edge": batch.labels["edge"][visible]}
        censoring = {level: found[visible] if level == "edge" else found for level, found in batch.censoring.items()}
        return replace(
            batch, graph=message_graph, rows={**batch.rows, "edge": rows[visible]}, labels=labels, censoring=censoring
        )
