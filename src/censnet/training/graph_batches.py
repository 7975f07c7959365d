"""Batches of graphs of a GraphSet, as they are or padded to the same size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from censnet.errors import SettingsError
from censnet.levels import Level
from censnet.ops.caching import store
from censnet.ops.graph_set import GraphSet
from censnet.settings.schema import TrainingSettings
from censnet.training.batch import Batch, even_batches, sample_balanced
from censnet.training.padding import Padding
from censnet.training.task_data import TaskData, graphs_with


class GraphBatches:
    """Batches of graphs of a GraphSet; an epoch has all graphs with a training sample."""

    repeats: Literal["objects", "shapes"] | None = None

    def __init__(self, task_data: TaskData, settings: TrainingSettings, balanced: bool, processes: int = 1) -> None:
        assert isinstance(task_data.graph, GraphSet)
        self.graphs, self.task_data, self.balanced = task_data.graph, task_data, balanced
        self.index = graphs_with(self.graphs, task_data.parts, 0)
        self.batch_size = settings.batch_size_for(len(self.index)) * processes
        if balanced and "graph" not in task_data.parts:
            raise SettingsError(
                "training.imbalance is sampling, expected weights: graphs are sampled, and no target is of graphs"
            )

    def plan(self, generator: torch.Generator) -> Sequence[Tensor]:
        if self.balanced:
            order = sample_balanced(self.task_data.labels["graph"][self.index], len(self.index), generator)
        else:
            order = torch.randperm(len(self.index), generator=generator).to(self.index.device)
        return even_batches(self.index[order], self.batch_size)

    def make(self, chosen: Tensor, generator: torch.Generator) -> Batch:
        rows, labels, censoring = {}, {}, {}
        for level, part in self.task_data.parts.items():
            there = Level(level).rows_of(self.graphs, chosen)
            rows[level] = (part[there, 0] == 0).nonzero().squeeze(1)
            labels[level] = self.task_data.labels[level][there[rows[level]]]
            if level in self.task_data.censoring:
                censoring[level] = self.task_data.censoring[level][there[rows[level]]]
        return Batch(self.graphs.batch(chosen), rows, labels, censoring=censoring)


class PaddedGraphBatches(GraphBatches):
    """Batches of graphs that all have the same numbers of nodes and of edges, with graphs that pad them at the end.

    All rows of a batch are in the loss, those that are not for training without a label. Where the size of a batch is
    unusual, it is not padded.
    """

    repeats = "shapes"

    def __init__(self, task_data: TaskData, settings: TrainingSettings, balanced: bool, processes: int = 1) -> None:
        super().__init__(task_data, settings, balanced, processes)
        self.index = self.index.cpu()
        largest = max(map(len, even_batches(self.index, self.batch_size)))
        self.padding = Padding(self.graphs, self.index, largest)
        self.graphs = self.padding.graphs
        self.labels, self.censoring = dict[str, Tensor](), dict[str, Tensor]()
        for level, labels in task_data.labels.items():
            more = self.graphs.count(level) - len(labels)
            known = labels.masked_fill((task_data.parts[level][:, 0] != 0).unsqueeze(1), torch.nan)
            self.labels[level] = F.pad(known, (0, 0, 0, more), value=torch.nan)
            if level in task_data.censoring:
                self.censoring[level] = F.pad(task_data.censoring[level], (0, 0, 0, more))
        self.every = torch.arange(0, device=self.graphs.nodes.device)

    def make(self, chosen: Tensor, generator: torch.Generator) -> Batch:
        padded = self.padding.fill(chosen)
        index, rows = self.graphs.rows_of(chosen if padded is None else padded)
        graph = self.graphs.take(index, rows)
        if padded is not None:
            owners = {"node": rows.owner, "edge": rows.edge_owner}
            present = {side: (owner < len(chosen)).to(graph.nodes.dtype) for side, owner in owners.items()}
            store(graph.incidence, present=present)
        own = {"node": rows.rows, "edge": rows.edge_rows, "graph": index}
        labels = {level: known.index_select(0, own[level]) for level, known in self.labels.items()}
        censoring = {level: sides.index_select(0, own[level]) for level, sides in self.censoring.items()}
        return Batch(
            graph, {level: self._all(len(known)) for level, known in labels.items()}, labels, censoring=censoring
        )

    def _all(self, count: int) -> Tensor:
        if len(self.every) < count:
            self.every = torch.arange(count, device=self.every.device)
        return self.every[:count]
