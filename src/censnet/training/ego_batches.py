"""Batches of training nodes, each in its ego graph."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from censnet.errors import SettingsError
from censnet.ops.ego import ego_batches, ego_graphs, mark_egos, mean_ego_size
from censnet.ops.graph import Graph
from censnet.settings.schema import TrainingSettings
from censnet.text import count
from censnet.training.batch import Batch, even_batches, sample_balanced
from censnet.training.task_data import TaskData

logger = logging.getLogger(__name__)

MAX_EGO_ROWS = 100_000  # nodes and edges of the ego graphs of one step
MAX_EGO_TOTAL = 10**10  # of those of all training nodes: hours for an epoch, also on a GPU


class EgoBatches:
    """Batches of training nodes, each in its ego graph, where it is marked; an epoch has every training node.

    A batch has `batch_size` nodes, unless their ego graphs are too large: then it is several.
    """

    repeats: Literal["objects", "shapes"] | None = None

    def __init__(self, task_data: TaskData, settings: TrainingSettings, hops: int, processes: int = 1) -> None:
        graph = task_data.graph
        self.processes = processes
        self.graph = graph if isinstance(graph, Graph) else graph.whole
        self.task_data, self.settings, self.hops = task_data, settings, hops
        self.rows = (task_data.parts["node"][:, 0] == 0).nonzero().squeeze(1)
        size = mean_ego_size(self.graph.incidence, self.rows, hops)
        said = f"a neighborhood of {count(hops, 'hop')} has at most {size:,.0f} nodes and edges in the mean"
        if size * len(self.rows) > MAX_EGO_TOTAL:
            raise SettingsError(
                f"model.ego_marks is true, expected false, or fewer model.ego_hops: {said}, and there are "
                f"{len(self.rows):,} training nodes"
            )
        logger.info("%s (model.ego_hops)", said)

    def plan(self, generator: torch.Generator) -> Sequence[Tensor]:
        if self.settings.imbalance == "sampling":
            order = sample_balanced(self.task_data.labels["node"][self.rows], len(self.rows), generator)
        else:
            order = torch.randperm(len(self.rows), generator=generator).to(self.rows.device)
        batches = even_batches(self.rows[order], self.settings.batch_size_for(len(self.rows)) * self.processes)
        most = MAX_EGO_ROWS * self.processes
        steps = [part for nodes in batches for part in ego_batches(self.graph, nodes, self.hops, most)]
        return steps[: self.settings.max_steps_per_epoch]

    def make(self, chosen: Tensor, generator: torch.Generator) -> Batch:
        found = ego_graphs(self.graph, chosen, self.hops)
        labels = {"node": self.task_data.labels["node"][chosen]}
        censoring = {level: sides[chosen] for level, sides in self.task_data.censoring.items()}
        return Batch(mark_egos(found), {"node": found.seeds}, labels, censoring=censoring)
