"""Batches of sampled neighborhoods: subgraphs of one large graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from censnet.errors import SettingsError
from censnet.ops.graph import Graph
from censnet.ops.sampling import Subgraph, induced_subgraph, is_in, proportional_batches, sample_neighbors
from censnet.settings.schema import TrainingSettings
from censnet.tasks.inputs import LabelWindows
from censnet.training.batch import Batch, draw_latest, draw_share, even_batches, sample_balanced
from censnet.training.task_data import TaskData


class SampledSubgraphs:
    """Subgraphs of one graph: sampled neighborhoods, or drawn in proportion (Algorithm 2 of the paper)."""

    repeats: Literal["objects", "shapes"] | None = None

    def __init__(self, task_data: TaskData, settings: TrainingSettings, hops: int, processes: int = 1) -> None:
        assert isinstance(task_data.graph, Graph)
        self.processes = processes
        if task_data.links is not None or task_data.members > 1:
            raise SettingsError(
                f"training.sampling is {settings.sampling}, expected full, which links and batched ensembles need"
            )
        if task_data.inputs is not None and task_data.inputs.triangles:
            raise SettingsError(
                f"training.sampling is {settings.sampling}, expected full, or model.triangles=false: a sampled "
                "subgraph has fewer triangles than the whole graph"
            )
        if task_data.inputs is not None and task_data.inputs.label_factors:
            raise SettingsError(
                f"training.sampling is {settings.sampling}, expected full, or model.label_factors=false: the labels of "
                "a sampled subgraph do not have the factors of the whole graph"
            )
        self.graph, self.task_data, self.settings = task_data.graph, task_data, settings
        self.level: Literal["node", "edge"] = "node" if "node" in task_data.parts else "edge"
        self.fanout = tuple(max(2, settings.fanout >> hop) for hop in range(hops))
        self.hidden_ratio = settings.hidden_label_ratio
        self.rows = (task_data.parts[self.level][:, 0] == 0).nonzero().squeeze(1)
        inputs = task_data.inputs
        self.by_time = self.level == "edge" and "edge" in task_data.known_levels and task_data.is_by_time
        self.windows: LabelWindows | None = None  # those of a subgraph would lack the edges that are not sampled
        if inputs is not None and inputs.window_width:
            training = task_data.training_rows("edge")
            self.windows = inputs.label_windows(self.graph, task_data.labels["edge"], training)
        self.label_sums = dict[str, Tensor]()  # of all training labels around each row of the whole graph
        for level in () if inputs is None else filter(inputs.counts_of, inputs.levels):
            self.label_sums[level] = self._whole_sums(level, task_data.training_rows(level))

    def plan(self, generator: torch.Generator) -> Sequence[Tensor]:
        if self.settings.sampling == "proportional":
            parts = self.task_data.parts.get("node")
            codes = torch.full((self.graph.num_nodes,), -1) if parts is None else parts[:, 0].cpu()
            size = self.settings.batch_size_for(self.graph.num_nodes) * self.processes
            batches = proportional_batches(codes, size, generator)
            if self.processes > 1:  # so that each share of a batch is in proportion, too
                batches = [nodes[torch.argsort(codes[nodes], stable=True)] for nodes in batches]
            return batches
        if self.settings.imbalance == "sampling":
            order = sample_balanced(self.task_data.labels[self.level][self.rows], len(self.rows), generator)
        else:
            order = torch.randperm(len(self.rows), generator=generator).to(self.rows.device)
        size = self.settings.batch_size_for(len(self.rows)) * self.processes
        batches = even_batches(self.rows[order], size)[: self.settings.max_steps_per_epoch]
        return [self._latest(len(batch), generator) for batch in batches] if self.by_time else batches

    def _latest(self, count: int, generator: torch.Generator) -> Tensor:
        """So many training edges at random among those after a moment, so that the labels before it can be shown."""
        latest = draw_latest(self.task_data, self.rows, self.hidden_ratio, generator)
        return self.rows[latest[torch.randperm(len(latest), generator=generator)[:count].to(latest.device)]]

    def make(self, chosen: Tensor, generator: torch.Generator) -> Batch:
        if self.settings.sampling == "proportional":
            subgraph = induced_subgraph(self.graph, chosen)
            batch = self._batch(subgraph, *self._training_rows(subgraph, list(self.task_data.parts)))
            return self._show(batch, subgraph, generator, seeds=False)
        subgraph = self.sample(chosen, generator)
        others = [level for level in self.task_data.parts if level != self.level]
        rows, numbers = self._training_rows(subgraph, others)
        rows, numbers = {**rows, self.level: subgraph.seeds}, {**numbers, self.level: chosen}
        return self._show(self._batch(subgraph, rows, numbers), subgraph, generator)

    def sample(self, chosen: Tensor, generator: torch.Generator) -> Subgraph:
        """The sampled neighborhoods of some seeds."""
        return sample_neighbors(self.graph, chosen, self.level, self.fanout, generator)

    def _show(self, batch: Batch, subgraph: Subgraph, generator: torch.Generator, seeds: bool = True) -> Batch:
        """Show the known labels of a subgraph, but for those of the rows in the loss.

        Seeds are all in the loss. Of other training rows, a share is hidden and predicted.
        """
        inputs, task_data = self.task_data.inputs, self.task_data
        if inputs is None or not inputs.known:
            return batch
        shown, known, before, sums = {}, {}, None, {}
        rows, labels, censoring = dict(batch.rows), dict(batch.labels), dict(batch.censoring)
        for level in inputs.levels:
            every = subgraph.nodes if level == "node" else subgraph.edges
            if level != self.level or not seeds:
                hidden = draw_share(len(rows[level]), self.hidden_ratio, generator).to(every.device)
                for found in (rows, labels, censoring):
                    if level in found:
                        found[level] = found[level][hidden]
            training = task_data.parts[level][every, 0] == 0
            shown[level] = training.index_fill(0, rows[level], False)
            if level == "edge" and self.by_time and seeds:
                before = task_data.known_before(every[rows[level]])
                shown[level] = before[every]
            known[level] = task_data.labels[level][every]
            if level in self.label_sums and level == "edge" and before is not None:
                sums[level] = self._whole_sums(level, before)[every]
            elif level in self.label_sums:
                hidden = training & ~shown[level]
                sums[level] = self.label_sums[level][every] - self._hidden_sums(level, subgraph, hidden)
        windows = None
        if "edge" in rows and self.windows is not None:
            hidden = subgraph.edges[rows["edge"]] if before is None else (~before).nonzero().squeeze(1)
            windows = self.windows(subgraph.edges, without=hidden)
        graph = inputs.show(batch.graph, known, shown, windows, sums)
        return replace(batch, graph=graph, rows=rows, labels=labels, censoring=censoring)

    def _whole_sums(self, level: str, shown: Tensor) -> Tensor:
        """The sums around each row of the whole graph of the labels of some of its rows."""
        inputs = self.task_data.inputs
        assert inputs is not None
        return inputs.label_sums(level, self.task_data.labels[level], shown, self.graph.incidence)

    def _hidden_sums(self, level: str, subgraph: Subgraph, hidden: Tensor) -> Tensor:
        """The sums around each row of a subgraph of the labels of some of its rows, over all edges of the graph."""
        inputs, labels = self.task_data.inputs, self.task_data.labels[level]
        assert inputs is not None
        if level == "edge":
            return inputs.label_sums(level, labels[subgraph.edges], hidden, subgraph.graph.incidence)
        found = torch.zeros_like(self.label_sums[level][subgraph.nodes])
        if bool(hidden.any()):  # of nodes, edges that the subgraph has not count as well
            bare = self.graph.with_features(self.graph.nodes[:, :0], self.graph.edges[:, :0])
            around = sample_neighbors(bare, subgraph.nodes[hidden], "node", (None,))
            some = torch.zeros_like(around.nodes, dtype=torch.bool).index_fill(0, around.seeds, True)
            sums = inputs.label_sums(level, labels[around.nodes], some, around.graph.incidence)
            here = is_in(around.nodes, subgraph.nodes)
            found[torch.searchsorted(subgraph.nodes, around.nodes[here])] = sums[here]
        return found

    def _training_rows(self, subgraph: Subgraph, levels: Sequence[str]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """The training samples of a subgraph, by their numbers in it and in the graph."""
        rows, numbers = {}, {}
        for level in levels:
            every = subgraph.nodes if level == "node" else subgraph.edges
            rows[level] = (self.task_data.parts[level][every, 0] == 0).nonzero().squeeze(1)
            numbers[level] = every[rows[level]]
        return rows, numbers

    def _batch(self, subgraph: Subgraph, rows: Mapping[str, Tensor], numbers: Mapping[str, Tensor]) -> Batch:
        labels = {level: self.task_data.labels[level][index] for level, index in numbers.items()}
        censoring = {level: found[numbers[level]] for level, found in self.task_data.censoring.items()}
        return Batch(subgraph.graph, rows, labels, censoring=censoring)
