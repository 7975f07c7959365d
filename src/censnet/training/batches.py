"""The steps of an epoch: one whole graph, some of many graphs, or parts of a graph that is too big."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

import torch
from torch import Tensor

from censnet.errors import SettingsError
from censnet.levels import Level
from censnet.nn.layers import LAYERS
from censnet.nn.model import Model
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.ops.sampling import Subgraph, induced_subgraph, proportional_batches, sample_neighbors
from censnet.settings.schema import TrainingSettings
from censnet.training.link_sampling import LinkSampler
from censnet.training.task_data import TaskData, graphs_with

logger = logging.getLogger("censnet")

NUMBERS_KEPT = 12  # for each row and channel of a layer, until its gradient is there
MOST_MEMORY = 0.6  # share of the memory that they may take


@dataclass(frozen=True, eq=False)
class Batch:
    """A graph and those of its rows that are learnt from.

    Args:
        graph: what the network is given.
        rows: level -> the rows whose answers count.
        labels: level -> their labels.
        weight: level -> how much each counts for each member; without one, all count the same.
        links, others: pairs to be told apart, (2, P) and (2, Q), where links are learnt pair by pair.
        censoring: level -> the side of each label, where some are censored.
    """

    graph: Graph
    rows: Mapping[str, Tensor]
    labels: Mapping[str, Tensor]
    weight: Mapping[str, Tensor] = field(default_factory=dict)
    links: Tensor | None = None
    others: Tensor | None = None
    censoring: Mapping[str, Tensor] = field(default_factory=dict)


class Batches(Protocol):
    """Where the steps come from. A plan is cheap, so that an epoch can go on from its middle."""

    def plan(self, generator: torch.Generator) -> Sequence[Tensor]:
        """One epoch: for each step, what goes into it."""

    def make(self, chosen: Tensor, generator: torch.Generator) -> Batch:
        """The batch of a step."""


class FullBatch:
    """Every step has the whole graph, and an epoch is one step."""

    def __init__(self, task_data: TaskData, balanced: bool) -> None:
        assert isinstance(task_data.graph, Graph)
        self.graph, self.task_data = task_data.graph, task_data
        rows = {level: (part == 0).any(1).nonzero().squeeze(1) for level, part in task_data.parts.items()}
        labels = {level: task_data.labels[level][rows[level]] for level in rows}
        weight = {}
        if task_data.members > 1:
            weight = {level: (task_data.parts[level][rows[level]] == 0).float() for level in rows}
        censoring = {level: found[rows[level]] for level, found in task_data.censoring.items()}
        self.batch = Batch(self.graph, rows, labels, weight, censoring=censoring)
        self.balanced = balanced
        if balanced and task_data.members > 1:
            raise SettingsError(
                "training.imbalance is sampling, expected weights: members side by side share their rows"
            )

    def plan(self, generator: torch.Generator) -> Sequence[Tensor]:
        return [torch.empty(0)]

    def make(self, chosen: Tensor, generator: torch.Generator) -> Batch:
        if not self.balanced:
            return self.batch
        rows, labels, censoring = {}, {}, {}
        for level, every in self.batch.rows.items():
            drawn = draw_balanced(self.batch.labels[level], len(every), generator)
            rows[level], labels[level] = every[drawn], self.batch.labels[level][drawn]
            if level in self.batch.censoring:
                censoring[level] = self.batch.censoring[level][drawn]
        return Batch(self.graph, rows, labels, censoring=censoring)


class MaskedLinkBatch(FullBatch):
    """Every step hides some links of the whole graph and learns to tell them from pairs that are none."""

    def __init__(self, task_data: TaskData, balanced: bool, mask: float, negatives: int) -> None:
        super().__init__(task_data, balanced)
        self.links = LinkSampler(self.graph, mask, negatives)

    def make(self, chosen: Tensor, generator: torch.Generator) -> Batch:
        batch = super().make(chosen, generator)
        drawn, graph = self.links(generator), self.graph
        batch = replace(batch, links=drawn.links, others=drawn.others)
        if drawn.seen is None:
            return batch
        seen = drawn.seen
        rest = Graph(
            graph.nodes, graph.edges[seen], graph.ends[:, seen], graph.owner, graph.num_graphs, graph.graph_features
        )
        if "edge" not in batch.rows:
            return replace(batch, graph=rest)
        place = torch.full((graph.num_edges,), -1, device=seen.device)
        place[seen] = torch.arange(len(seen), device=seen.device)
        rows = place[batch.rows["edge"]]  # the label of an edge that is hidden has to wait for another step
        labels = {**batch.labels, "edge": batch.labels["edge"][rows >= 0]}
        censoring = {level: found[rows >= 0] if level == "edge" else found for level, found in batch.censoring.items()}
        seen_rows = {**batch.rows, "edge": rows[rows >= 0]}
        return replace(batch, graph=rest, rows=seen_rows, labels=labels, censoring=censoring)


class GraphBatches:
    """Every step has some graphs of a set, and an epoch all that have a row to learn from."""

    def __init__(self, task_data: TaskData, settings: TrainingSettings, balanced: bool) -> None:
        assert isinstance(task_data.graph, GraphSet)
        self.graphs, self.task_data = task_data.graph, task_data
        self.numbers = graphs_with(self.graphs, task_data.parts, 0)
        self.batch_size = settings.batch_size_for(len(self.numbers))
        self.balanced = balanced
        if balanced and "graph" not in task_data.parts:
            raise SettingsError("training.imbalance is sampling, expected weights: it is graphs that are drawn here")

    def plan(self, generator: torch.Generator) -> Sequence[Tensor]:
        if self.balanced:
            order = draw_balanced(self.task_data.labels["graph"][self.numbers], len(self.numbers), generator)
        else:
            order = torch.randperm(len(self.numbers), generator=generator).to(self.numbers.device)
        return whole_batches(self.numbers[order], self.batch_size)

    def make(self, chosen: Tensor, generator: torch.Generator) -> Batch:
        rows, labels, censoring = {}, {}, {}
        for level, part in self.task_data.parts.items():
            there = Level(level).rows_of(self.graphs, chosen)
            rows[level] = (part[there, 0] == 0).nonzero().squeeze(1)
            labels[level] = self.task_data.labels[level][there[rows[level]]]
            if level in self.task_data.censoring:
                censoring[level] = self.task_data.censoring[level][there[rows[level]]]
        return Batch(self.graphs.batch(chosen), rows, labels, censoring=censoring)


class SampledSubgraphs:
    """Every step has a part of one graph, drawn around some of its rows or in proportion (Algorithm 2 of the paper)."""

    def __init__(self, task_data: TaskData, settings: TrainingSettings, hops: int) -> None:
        assert isinstance(task_data.graph, Graph)
        if task_data.links is not None or task_data.members > 1:
            raise SettingsError(
                "training.sampling draws parts of a graph, expected whole: links and members need it whole"
            )
        self.graph, self.task_data, self.settings = task_data.graph, task_data, settings
        self.level: Literal["node", "edge"] = "node" if "node" in task_data.parts else "edge"
        self.fanout = tuple(max(2, settings.fanout >> hop) for hop in range(hops))
        self.rows = (task_data.parts[self.level][:, 0] == 0).nonzero().squeeze(1)

    def plan(self, generator: torch.Generator) -> Sequence[Tensor]:
        if self.settings.sampling == "proportional":
            parts = self.task_data.parts.get("node")
            codes = torch.full((self.graph.num_nodes,), -1) if parts is None else parts[:, 0].cpu()
            return proportional_batches(codes, self.settings.batch_size_for(self.graph.num_nodes), generator)
        if self.settings.imbalance == "sampling":
            order = draw_balanced(self.task_data.labels[self.level][self.rows], len(self.rows), generator)
        else:
            order = torch.randperm(len(self.rows), generator=generator).to(self.rows.device)
        size = self.settings.batch_size_for(len(self.rows))
        return whole_batches(self.rows[order], size)[: self.settings.max_steps_per_epoch]

    def make(self, chosen: Tensor, generator: torch.Generator) -> Batch:
        if self.settings.sampling == "proportional":
            part = induced_subgraph(self.graph, chosen)
            return self._batch(part, *self._inside(part, list(self.task_data.parts)))
        part = sample_neighbors(self.graph, chosen, self.level, self.fanout, generator)
        rows, places = self._inside(part, [level for level in self.task_data.parts if level != self.level])
        return self._batch(part, {**rows, self.level: part.seeds}, {**places, self.level: chosen})

    def _inside(self, part: Subgraph, levels: Sequence[str]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """The rows of a part that are for training, and their places in the whole graph."""
        rows, places = {}, {}
        for level in levels:
            every = part.nodes if level == "node" else part.edges
            rows[level] = (self.task_data.parts[level][every, 0] == 0).nonzero().squeeze(1)
            places[level] = every[rows[level]]
        return rows, places

    def _batch(self, part: Subgraph, rows: Mapping[str, Tensor], places: Mapping[str, Tensor]) -> Batch:
        labels = {level: self.task_data.labels[level][place] for level, place in places.items()}
        censoring = {level: found[places[level]] for level, found in self.task_data.censoring.items()}
        return Batch(part.graph, rows, labels, censoring=censoring)


def make_batches(task_data: TaskData, settings: TrainingSettings, hops: int, pairs: bool = False) -> Batches:
    """The steps that the settings ask for.

    Args:
        lesson: what is learnt from.
        settings: of the training.
        hops: how many layers a part of a graph must reach around its rows.
        pairs: whether links are learnt from pairs that each step draws.
    """
    balanced = settings.imbalance == "sampling"
    if isinstance(task_data.graph, GraphSet):
        return GraphBatches(task_data, settings, balanced)
    if settings.sampling in ("neighbors", "proportional"):
        return SampledSubgraphs(task_data, settings, hops)
    if pairs:
        return MaskedLinkBatch(task_data, balanced, settings.edge_mask_ratio, settings.negative_ratio)
    return FullBatch(task_data, balanced)


def choose_sampling(task_data: TaskData, settings: TrainingSettings, model: Model, memory: int) -> TrainingSettings:
    """With sampling "auto": the whole graph in each step, unless its activations would fill most of the memory.

    Args:
        lesson: what is learnt from.
        settings: of the training.
        learner: whose layers and width decide how much a step keeps for its gradient.
        memory: bytes of the device in all; what happens to be free would make two runs of one training differ.
    """
    graph = task_data.graph
    if settings.sampling != "auto":
        return settings
    parts = False
    if isinstance(graph, Graph) and task_data.links is None and task_data.members == 1:
        encoder = model.encoder
        rows = sum(graph.count(LAYERS[letter].updates) for letter in encoder.layer_order)
        width = max(encoder.out_node_width, encoder.out_edge_width)
        parts = rows * width * NUMBERS_KEPT * 4 > memory * MOST_MEMORY
    if parts:
        logger.info("the graph is too big for one step, so each step draws neighbours (training.sampling)")
    return settings.model_copy(update={"sampling": "neighbors" if parts else "full"})


def whole_batches(rows: Tensor, size: int) -> list[Tensor]:
    """Rows in steps of one size; a last step of less than half of it joins the one before, as norms need company."""
    count = max(1, round(len(rows) / size)) if len(rows) < size * 2 else (len(rows) + size // 2) // size
    bounds = [min(number * size, len(rows)) for number in range(count)] + [len(rows)]
    return [rows[start:end] for start, end in itertools.pairwise(bounds)]


def draw_balanced(labels: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """Rows drawn with replacement so that each class of the first column comes as often as the others."""
    first = labels[:, 0].cpu()
    _, code, times = torch.unique(first.nan_to_num(-1), return_inverse=True, return_counts=True)
    weight = (1 / times)[code]
    return torch.multinomial(weight, count, replacement=True, generator=generator).to(labels.device)
