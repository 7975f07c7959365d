"""Batches: the full graph, some graphs of a GraphSet, or subgraphs sampled from a large graph."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from censnet.errors import SettingsError
from censnet.levels import Level
from censnet.nn.layers import LAYERS
from censnet.nn.model import Model
from censnet.ops.caching import store
from censnet.ops.ego import ego_batches, ego_graphs, mark_egos, mean_ego_size
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.ops.sampling import Subgraph, induced_subgraph, is_in, proportional_batches, sample_neighbors
from censnet.settings.schema import TrainingSettings
from censnet.tasks.inputs import LabelWindows
from censnet.text import count
from censnet.training.link_sampling import LinkSampler
from censnet.training.padding import Padding, can_pad
from censnet.training.task_data import TaskData, graphs_with

logger = logging.getLogger(__name__)

SAVED_VALUES = 12  # values saved for the backward pass, for each node or edge and channel of a layer
MAX_MEMORY = 0.6  # share of the memory that these may take
PIECES, CUTS = (
    8,
    6,
)  # of the training rows of causal layers, in the order of time, and those without labels of their own
FEW_EDGES = 2**20  # up to which all of these are used; above, the last one
MAX_EGO_ROWS = 100_000  # nodes and edges of the ego graphs of one step
MAX_EGO_TOTAL = 10**10  # of those of all training nodes: hours for an epoch, also on a GPU
MAX_FULL_BATCH = 2**24  # values of all layers in one pass on a CPU, from which on a full-batch step takes seconds


@dataclass(frozen=True, eq=False)
class Batch:
    """A graph and its labeled samples.

    Args:
        graph: the input of the model.
        rows: level -> the nodes, edges or graphs in the loss.
        labels: level -> their labels.
        weight: level -> the weight of each for each member; without one, all count the same.
        positives, negatives: linked and other pairs, (2, P) and (2, Q), where links are learned from sampled pairs.
        censoring: level -> the side of each label, where some are censored.
    """

    graph: Graph
    rows: Mapping[str, Tensor]
    labels: Mapping[str, Tensor]
    weight: Mapping[str, Tensor] = field(default_factory=dict)
    positives: Tensor | None = None
    negatives: Tensor | None = None
    censoring: Mapping[str, Tensor] = field(default_factory=dict)


class Batches(Protocol):
    """Batches of an epoch. Planning is cheap, so that an epoch can be resumed in its middle."""

    def plan(self, generator: torch.Generator) -> Sequence[Tensor]:
        """For each step of an epoch, the samples that it takes."""

    def make(self, chosen: Tensor, generator: torch.Generator) -> Batch:
        """Make the batch of a step."""

    @property
    def repeats(self) -> Literal["objects", "shapes"] | None:
        """What of the batches repeats, so that steps can be recorded (`step_graphs.py`)."""


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
                    taken = _draw_latest(self.task_data, every, self.hidden_ratio, generator)
                    shown[level] = self.task_data.known_before(every[taken])
                else:
                    taken = _draw(len(every), self.hidden_ratio, generator).to(every.device)
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
        return _of_rows(batch, drawn)

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
            self.stale[piece] = _of_rows(replace(self.batch, graph=self._show({"edge": known})), rows)
        return self.stale[piece]

    def _show(self, shown: Mapping[str, Tensor]) -> Graph:
        graph = self.task_data.show_labels(shown)
        assert isinstance(graph, Graph)
        return graph


def _of_rows(batch: Batch, taken: Mapping[str, Tensor]) -> Batch:
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
        latest = _draw_latest(self.task_data, self.rows, self.hidden_ratio, generator)
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
                hidden = _draw(len(rows[level]), self.hidden_ratio, generator).to(every.device)
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


def make_batches(
    task_data: TaskData,
    settings: TrainingSettings,
    hops: int,
    pairs: bool = False,
    ego_hops: int = 0,
    processes: int = 1,
    padded: bool = False,
) -> Batches:
    """The batches that the settings ask for.

    Args:
        task_data: graph, labels and split.
        settings: sampling, batch size, imbalance, edge masking and negative sampling.
        hops: the receptive field, which a sampled subgraph has to cover.
        pairs: whether links are learned from sampled pairs.
        ego_hops: hops of the ego graphs that nodes are predicted in; 0 where they are in the whole graph.
        processes: how many take a step together: the samples of a step are then those of all, see `share_of`.
        padded: whether batches of graphs are padded where they can be.
    """
    balanced = settings.imbalance == "sampling"
    if ego_hops:
        return EgoBatches(task_data, settings, ego_hops, processes)
    if isinstance(task_data.graph, GraphSet):
        kind = PaddedGraphBatches if padded and can_pad(task_data.graph) else GraphBatches
        return kind(task_data, settings, balanced, processes)
    if settings.sampling in ("neighbors", "proportional"):
        return SampledSubgraphs(task_data, settings, hops, processes)
    if pairs:
        return MaskedLinkBatch(task_data, balanced, settings.edge_mask_ratio, settings.negative_ratio)
    if task_data.is_causal:
        return CausalBatch(task_data, balanced, settings.stale_label_ratio)
    return FullBatch(task_data, balanced, settings.hidden_label_ratio)


def share_of(chosen: Tensor, process: int, processes: int) -> Tensor:
    """The samples of a step that one of several processes takes: each takes as many as the others, or one fewer.

    Where there are fewer samples than processes, some are taken by several, as a process without any would be missed.

    >>> [share_of(torch.arange(5), process, 2).tolist() for process in range(2)]
    [[0, 2, 4], [1, 3]]
    """
    if processes > 1 and len(chosen) < processes:
        chosen = chosen[torch.arange(processes, device=chosen.device) % len(chosen)]
    return chosen[process::processes]


def choose_sampling(
    task_data: TaskData, settings: TrainingSettings, model: Model, memory: int, on_cpu: bool = True
) -> TrainingSettings:
    """Resolve sampling "auto": full batch, unless a step on the whole graph takes too much memory, or too long.

    A sampled subgraph is not much smaller than a graph of a few hundred thousand edges, and a full batch has all labels
    in each step. Beyond that a full-batch training has too few steps for the time that it takes.

    Args:
        task_data: the graph and what is predicted.
        settings: of the training.
        model: whose layers and width decide how much is saved for the backward pass.
        memory: total bytes of the device; the free ones would make two runs of one training differ.
        on_cpu: whether the training is on a CPU.
    """
    graph = task_data.graph
    if settings.sampling != "auto":
        return settings
    if model.ego_hops or getattr(model.encoder, "reads_times", False):  # a sampled past would lack events
        return settings.model_copy(update={"sampling": "full"})
    too_large = too_slow = False
    if isinstance(graph, Graph) and task_data.links is None and task_data.members == 1:
        encoder, values = model.encoder, _layer_values(graph, model)
        too_large = values * SAVED_VALUES * 4 > memory * MAX_MEMORY
        too_slow = on_cpu and encoder.steps == 1 and values > MAX_FULL_BATCH
    if too_large or too_slow:
        why = "too large for full-batch training" if too_large else "so large that full-batch steps are slow"
        logger.info("the graph is %s, so neighbors are sampled (training.sampling)", why)
    return settings.model_copy(update={"sampling": "neighbors" if too_large or too_slow else "full"})


def choose_recompute(task_data: TaskData, settings: TrainingSettings, model: Model, memory: int) -> bool:
    """Resolve recomputation "auto": where a step takes the full graph, and what it saves would take most of the memory.

    Args:
        task_data, model, memory: as in `choose_sampling`.
        settings: with their sampling resolved.
    """
    graph = task_data.graph
    if settings.recompute != "auto":
        return settings.recompute
    if not isinstance(graph, Graph) or settings.sampling != "full" or model.ego_hops:
        return False
    chosen = _layer_values(graph, model) * task_data.members * SAVED_VALUES * 4 > memory * MAX_MEMORY
    if chosen:
        logger.info("layers are computed again in the backward pass, which takes less memory (training.recompute)")
    return chosen


def _layer_values(graph: Graph, model: Model) -> int:
    """The numbers that the layers of a model give on a graph."""
    encoder = model.encoder
    width = max(encoder.out_node_width, encoder.out_edge_width)
    return width * sum(graph.count(LAYERS[letter].updates) for letter in encoder.layer_order)


def _draw(count: int, share: float, generator: torch.Generator) -> Tensor:
    """A share of so many rows, each with the same chance; at least one of them. In rising order."""
    draw = torch.rand(count, generator=generator)
    if count:
        share = max(share, float(draw.min()))
    return (draw <= share).nonzero().squeeze(1)


def _draw_latest(task_data: TaskData, edges: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """Of some edges those from a moment on, as indices: in the mean this share of them, and twice as many at most."""
    assert task_data.graph.times is not None
    times = task_data.graph.times[edges]
    share = min(1.0, 2 * share) * float(torch.rand(1, generator=generator))
    return (times >= times.sort().values[int((1 - share) * (len(times) - 1))]).nonzero().squeeze(1)


def even_batches(rows: Tensor, size: int) -> list[Tensor]:
    """Batches of one size; a last one of less than half of it joins the one before, as batch norm needs several."""
    count = max(1, round(len(rows) / size)) if len(rows) < size * 2 else (len(rows) + size // 2) // size
    bounds = [min(number * size, len(rows)) for number in range(count)] + [len(rows)]
    return [rows[start:end] for start, end in itertools.pairwise(bounds)]


def sample_balanced(labels: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """Balanced sampling: samples with replacement, each class of the first column as often as the others."""
    first = labels[:, 0].cpu()
    _, code, times = torch.unique(first.nan_to_num(-1), return_inverse=True, return_counts=True)
    weight = (1 / times)[code]
    return torch.multinomial(weight, count, replacement=True, generator=generator).to(labels.device)
