"""Training data of one task as tensors: graph, targets, labels, split, soft labels and frozen parameters."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from censnet.data.dataset import Dataset
from censnet.data.splits.links import LinkSplit
from censnet.data.splits.split_file import PARTS, Split
from censnet.levels import Level
from censnet.nn.model import Model
from censnet.ops.caching import cached
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.settings import build
from censnet.settings.build import MakeEncoder, TaskShape
from censnet.settings.oriented import FeatureStatistics, is_oriented
from censnet.settings.schema import ModelSettings, Settings
from censnet.tasks.inputs import ModelInputs, choose_widths
from censnet.tasks.targets import Target


@dataclass(frozen=True, eq=False)
class TaskData:
    """Tensors of one training.

    Args:
        graph: the graph that message passing sees.
        targets: what is predicted.
        labels: level -> a column for each of its targets, NaN where a label is missing.
        parts: level -> the part of the split of each sample for each member: 0 train, 1 validation, 2 test, -1 none.
        links: the links to predict, if any are.
        soft_labels: class probabilities of each sample of the one target's level, such as pseudo-labels.
        soft_label_weight: weight of the soft labels in the loss of each member.
        frozen: pattern of names of parameters (`fnmatch`) -> whether they keep their initial values, for each member.
        node_features: whether the nodes have features of their own, rather than default ones.
        censoring: level -> -1 where the value is below its label, 1 where it is above, 0 where it is equal; a level
            without censored labels is absent.
        inputs: the inputs beside the features of the data that `graph` has; None if it has none yet.
        zeros: of oriented data, what the number 0 is in each feature of nodes and of edges; NaN for a feature that is
            no number.
        widths: of the windows in time (`tasks.inputs`); none if edges have no times.
        label_delay: time after an edge from which on its label is known, in the unit of the times of the graph.
        descriptors: how many of the last features of each graph are descriptors of a molecule.

    Shape:
        labels, censoring (n, k), parts (n, members), soft_labels (n, members, classes), soft_label_weight and each
        entry of frozen (members,).
    """

    graph: Graph | GraphSet
    targets: Sequence[Target]
    labels: Mapping[str, Tensor]
    parts: Mapping[str, Tensor]
    links: LinkSplit | None = None
    soft_labels: Tensor | None = None
    soft_label_weight: Tensor | None = None
    frozen: Mapping[str, Tensor] = field(default_factory=dict)
    node_features: bool = True
    censoring: Mapping[str, Tensor] = field(default_factory=dict)
    inputs: ModelInputs | None = None
    zeros: tuple[Tensor, Tensor] | None = None
    widths: Sequence[float] = ()
    label_delay: float = 0.0
    descriptors: int = 0

    @cached
    def is_by_time(self) -> bool:
        """Whether edges are split by time: those of each part are before all of the next."""
        times, parts = self.graph.times, self.parts.get("edge")
        if times is None or parts is None:
            return False
        groups = [times[parts[:, 0] == code] for code in range(len(PARTS))]
        groups = [group for group in groups if len(group)]
        return len(groups) > 1 and all(bool(a.max() <= b.min()) for a, b in itertools.pairwise(groups))

    def known_for(self, part: str, level: str) -> Tensor:
        """A mask of the labels known when validation or test rows are predicted: those of the parts before. (n,)

        Where the split is by time, the label of an edge is known from `label_delay` after it, and the rows of a part
        are predicted at the time of the first of them.
        """
        own, code = self.parts[level], PARTS.index(part)
        known = ((own >= 0) & (own < code)).any(1) & ~self.labels[level].isnan().all(1)
        asked = (own == code).any(1)
        if level != "edge" or not self.label_delay or not bool(asked.any()) or not self.is_by_time:
            return known
        return known & self._is_known(asked)

    def known_before(self, edges: Tensor) -> Tensor:
        """A mask of the training edges whose label is known at the time of the first of some edges. (E,)"""
        return self.training_rows("edge") & self._is_known(edges)

    def _is_known(self, edges: Tensor) -> Tensor:
        """Whether the label of each edge is known at the time of the first of some edges. (E,)"""
        times = self.graph.times
        assert times is not None
        return times + self.label_delay < times[edges].min()

    def without_descriptors(self) -> TaskData:
        """The same where graphs have no descriptors of molecules."""
        if not self.descriptors or not isinstance(self.graph, GraphSet):
            return self
        return replace(self, graph=self.graph.without_last_features(self.descriptors), descriptors=0)

    @property
    def members(self) -> int:
        """Number of members of a batched ensemble."""
        return next((part.shape[1] for part in self.parts.values()), 1)

    def of(self, level: str) -> list[Target]:
        """The targets of a level, in the order of the columns of its labels."""
        return [target for target in self.targets if target.level == level]

    def to(self, device: torch.device | str) -> TaskData:
        """The same on another device."""
        labels = {level: values.to(device) for level, values in self.labels.items()}
        parts = {level: values.to(device) for level, values in self.parts.items()}
        censoring = {level: values.to(device) for level, values in self.censoring.items()}
        frozen = {pattern: values.to(device) for pattern, values in self.frozen.items()}
        soft_labels, soft_label_weight = (
            None if values is None else values.to(device) for values in (self.soft_labels, self.soft_label_weight)
        )
        return replace(
            self, graph=self.graph.to(device), labels=labels, parts=parts, censoring=censoring,
            soft_labels=soft_labels, soft_label_weight=soft_label_weight, frozen=frozen,
        )  # fmt: skip

    def member(self, number: int) -> TaskData:
        """The data of one member alone."""
        soft_labels, soft_label_weight = self.soft_labels, self.soft_label_weight
        if soft_labels is not None and soft_label_weight is not None:
            soft_labels, soft_label_weight = soft_labels[:, [number]], soft_label_weight[[number]]
        parts = {level: part[:, [number]] for level, part in self.parts.items()}
        frozen = {pattern: values[[number]] for pattern, values in self.frozen.items()}
        return replace(self, parts=parts, soft_labels=soft_labels, soft_label_weight=soft_label_weight, frozen=frozen)

    def with_inputs(self, settings: ModelSettings) -> TaskData:
        """The same with the inputs that a model of these settings has beside the features of the data."""
        if self.inputs is not None:
            return self
        inputs = build.model_inputs(self.shape, settings)
        return replace(self, graph=inputs.add(self.graph), inputs=inputs)

    @property
    def shape(self) -> TaskShape:
        """The widths and levels that a model of these data is built for."""
        added, graph = self.inputs or ModelInputs(), self.graph
        return TaskShape(
            graph.node_width - added.node_width, graph.edge_width - added.edge_width, self.targets,
            self.links is not None, self.node_features, self.widths, self.label_delay, graph.graph_width,
            graph.odd_width,
        )  # fmt: skip

    @property
    def known_levels(self) -> list[str]:
        """The levels whose known labels are inputs."""
        return [] if self.inputs is None else self.inputs.levels

    def training_rows(self, level: str) -> Tensor:
        """A mask of the rows of a level that are training rows of some member. (n,)"""
        return (self.parts[level] == 0).any(1)

    @property
    def is_causal(self) -> bool:
        """Whether each edge is predicted from the labels before it alone, so that none needs to be hidden."""
        return self.inputs is not None and self.inputs.causal

    def known_until(self, part: str, level: str) -> Tensor:
        """A mask of the rows that have a label in a part, or in one before it. (n,)"""
        own = self.parts[level]
        return ((own >= 0) & (own <= PARTS.index(part))).any(1) & ~self.labels[level].isnan().all(1)

    def show_labels(self, shown: Mapping[str, Tensor]) -> Graph | GraphSet:
        """The graph with the labels of some rows of the `known_levels` as inputs.

        Args:
            shown: level -> which rows show theirs. (n,)
        """
        if self.inputs is None or not self.inputs.known:
            return self.graph
        assert isinstance(self.graph, Graph)
        return self.inputs.show(self.graph, self.labels, shown)

    def has(self, part: str) -> bool:
        """Whether every member has labeled samples, or links, in a part of the split."""
        code = PARTS.index(part)
        labeled = {level: ~labels.isnan().all(1, keepdim=True) for level, labels in self.labels.items()}
        rows = any(bool(((codes == code) & labeled[level]).any(0).all()) for level, codes in self.parts.items())
        return rows or self.links is not None

    def only(self, part: str) -> TaskData:
        """Of a GraphSet, the graphs with samples in this part: all that its scores need."""
        if not isinstance(self.graph, GraphSet):
            return self
        numbers = graphs_with(self.graph, self.parts, PARTS.index(part))
        rows_of = {level: Level(level).rows_of(self.graph, numbers) for level in self.labels}
        return replace(
            self,
            graph=self.graph.subset(numbers),
            labels={level: self.labels[level][rows] for level, rows in rows_of.items()},
            parts={level: self.parts[level][rows] for level, rows in rows_of.items()},
            censoring={level: censoring[rows_of[level]] for level, censoring in self.censoring.items()},
        )


def build_model(task_data: TaskData, settings: Settings, make_encoder: MakeEncoder | None = None) -> Model:
    """Build the model of the settings for this data; with CensNet as its encoder, unless another is made."""
    graph, reference_size, statistics = task_data.graph, None, None
    oriented = is_oriented(task_data.targets, graph.odd_width)
    training_edges = graph.edges
    if isinstance(graph, GraphSet):
        train = graphs_with(graph, task_data.parts, 0)
        nodes, edges = (
            float(offset.diff()[train].double().mean()) for offset in (graph.node_offset, graph.edge_offset)
        )
        reference_size = nodes, edges
        if oriented:
            training_edges = training_edges[Level.EDGE.rows_of(graph, train)]
    if oriented and task_data.zeros is not None:
        node_zero, edge_zero = task_data.zeros
        statistics = FeatureStatistics(
            training_edges, _widened(node_zero, graph.node_width), _widened(edge_zero, graph.edge_width)
        )
    return build.build_model(
        task_data.shape,
        settings.model,
        reference_size=reference_size,
        statistics=statistics,
        make_encoder=make_encoder,
    )


def _widened(zero: Tensor, width: int) -> Tensor:
    """With NaN for the inputs that are added to the features."""
    return torch.cat([zero, zero.new_full((width - len(zero),), torch.nan)])


def graphs_with(graph: GraphSet, parts: Mapping[str, Tensor], code: int) -> Tensor:
    """The graphs that have a sample in a part, in order."""
    found = torch.zeros(len(graph), dtype=torch.bool, device=graph.nodes.device)
    for level, part in parts.items():
        found[Level(level).owners(graph)[(part == code).any(1)]] = True
    return found.nonzero().squeeze(1)


def make_task_data(
    dataset: Dataset,
    targets: Sequence[Target],
    splits: Sequence[Mapping[str, Split]],
    links: LinkSplit | None,
    label_delay: float = 0.0,
) -> TaskData:
    """Encode the labels and the split of a data set.

    Args:
        dataset: the data.
        targets: what is predicted.
        splits: for each member, level -> the split of its input rows.
        links: the links to predict, if any are.
        label_delay: time after an edge from which on its label is known.
    """
    encoded: dict[str, Tensor] = {}
    parts: dict[str, Tensor] = {}
    censoring: dict[str, Tensor] = {}
    graph = dataset.graph if links is None else dataset.message_graph(links)
    for level in dict.fromkeys(target.level for target in targets):
        mine = [target for target in targets if target.level == level]
        rows, count = dataset.rows(level), dataset.count(level)
        parts[level] = row_parts([split[level] for split in splits], rows, count)
        labels = [dataset.labels(level, target.column) for target in mine]
        flipped = dataset.is_flipped if any(target.kind == "oriented" for target in mine) else None
        values = [target.encode(column) for target, column in zip(mine, labels, strict=True)]
        if flipped is not None:  # the second row of an edge, with the ends in the opposite order
            sign = torch.from_numpy(flipped).float() * -2 + 1
            values = [
                one * sign if target.kind == "oriented" else one for target, one in zip(mine, values, strict=True)
            ]
        encoded[level] = row_labels(mine, values, rows, count)
        censored = row_censoring(
            [t.encode_censoring(column) for t, column in zip(mine, labels, strict=True)], rows, count
        )
        if censored is not None:
            censoring[level] = censored
        if level == "edge" and links is not None:
            for found in (encoded, parts, censoring):
                if level in found:
                    found[level] = found[level][links.rows.train]
    own = dataset.schema.nodes.structure == "none" and _differ(graph.nodes)
    zeros = None
    if is_oriented(targets, graph.odd_width):
        zeros = torch.tensor(dataset.schema.nodes.zeros), torch.tensor(dataset.schema.edges.zeros)
    widths = list[float]()
    if graph.times is not None and graph.num_edges:
        training = (parts["edge"] == 0).any(1).nonzero().squeeze(1) if "edge" in parts else None
        widths = choose_widths(graph, training)
    return TaskData(
        graph, targets, encoded, parts, links, node_features=own, censoring=censoring, zeros=zeros, widths=widths,
        label_delay=label_delay, descriptors=dataset.schema.descriptors.width,
    )  # fmt: skip


def _differ(rows: Tensor) -> bool:
    """Whether not all rows are equal."""
    return rows.layout == torch.sparse_csr or bool((rows != rows[:1]).any())


def row_labels(targets: Sequence[Target], encoded: Sequence[Tensor], rows: Tensor, count: int) -> Tensor:
    """Labels of the nodes or edges of the graph, where input row r became number rows[r]. -> (count, k)."""
    labels = torch.full((count, len(targets)), torch.nan)
    good = (rows >= 0).nonzero().squeeze(1).flip(0)  # where rows were merged, the first label wins
    for column, values in enumerate(encoded):
        known = good[~values[good].isnan()]
        labels[rows[known], column] = values[known]
    return labels


def row_censoring(encoded: Sequence[Tensor | None], rows: Tensor, count: int) -> Tensor | None:
    """Side of each censored label, in the order of `row_labels`; None if no label is censored."""
    if all(values is None for values in encoded):
        return None
    censoring = torch.zeros(count, len(encoded), dtype=torch.int8)
    good = (rows >= 0).nonzero().squeeze(1).flip(0)
    for column, values in enumerate(encoded):
        if values is not None:
            censoring[rows[good], column] = values[good]
    return censoring


def row_parts(splits: Sequence[Split], rows: Tensor, count: int) -> Tensor:
    """Part of each node or edge of the graph for each member, from splits of the input rows. -> (count, members)."""
    return torch.stack([torch.from_numpy(split.to_graph(rows).codes(count)).long() for split in splits], dim=1)
