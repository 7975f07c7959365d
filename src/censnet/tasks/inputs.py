"""Inputs of a model beside the user's columns: structural features, positional encodings, and known labels.

A label that is known, such as a rating that a user has given before, is data about the rows around it. It enters as
features of its row. The label of a row must never reach the prediction for that row, and it comes back after two
layers, so rows are hidden while they are predicted: in training a share of them in each step, later in folds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from censnet.errors import DataError
from censnet.levels import Level
from censnet.nn.diffusion import WIDTH as POSITION_WIDTH
from censnet.nn.diffusion import diffusion_embedding
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.ops.incidence import Incidence
from censnet.ops.structure import EDGE_WIDTH, NODE_WIDTH, edge_port, edge_structure, node_structure
from censnet.ops.triangles import TYPES, find_triangles
from censnet.ops.windows import GROUPS, SIDES, TimeWindows, WindowSums
from censnet.tasks.label_counts import count_channels, count_width, is_counted, label_sums, label_width
from censnet.tasks.label_factors import WIDTH as FACTORS_WIDTH
from censnet.tasks.label_factors import factorize_labels
from censnet.tasks.targets import Target

QUANTILES = 0.1, 0.3, 0.5, 0.75  # of gaps, which are the widths of windows
Shown = Mapping[str, Tensor]  # level -> mask of the rows whose labels are shown


@dataclass(frozen=True)
class ModelInputs:
    """Features that follow from the graph and from known labels, behind those of the user's columns.

    Args:
        structure: whether nodes and edges have structural features (`ops.structure`).
        position_steps: steps of the diffusion embedding that nodes have as positional encoding; 0: none.
        known: targets whose known labels are inputs.
        directed: whether counts are by direction.
        triangles: whether edges have the number of their triangles (`ops.triangles`) as features and, of known labels
            that are numbers or one of two classes, the means over the edges of these and of their products.
        ports: whether an edge has the number of parallel edges before it in the table as a feature. Predictions then
            depend on the order of rows.
        label_counts: whether rows also have counts of the known labels around them (`tasks.label_counts`).
        label_factors: whether edges also have the predictions of a matrix factorization of the known labels that are
            numbers or one of two classes (`tasks.label_factors`).
        widths: of the windows in time (`ops.windows`) that edges with times have as features, with the gaps to the
            events before and after and, of known labels of edges, the sums over these windows; none if empty.
        causal: whether the labels of edges are for causal layers, which show each to later edges alone.
        node_features: whether nodes have features of their own. Default ones, such as the degree, are 0 beside
            structural features, which say the same on a better scale.

    Example:
        >>> fraud = Target(level="edge", column="fraud", kind="binary", classes=["no", "yes"])
        >>> inputs = ModelInputs(structure=True, known=[fraud])
        >>> path = Graph(torch.ones(3, 4), torch.ones(2, 1), torch.tensor([[0, 1], [1, 2]]))
        >>> inputs.add(path)
        Graph(3 nodes x 6, 2 edges x 4)
        >>> labels, shown = {"edge": torch.tensor([[1.0], [0.0]])}, {"edge": torch.tensor([True, False])}
        >>> inputs.show(inputs.add(path), labels, shown).edges[:, -2:].tolist()
        [[0.0, 1.0], [0.0, 0.0]]
    """

    structure: bool = False
    position_steps: int = 0
    known: Sequence[Target] = ()
    directed: bool = False
    triangles: bool = False
    ports: bool = False
    node_features: bool = True
    widths: Sequence[float] = ()
    label_counts: bool = False
    label_factors: bool = False
    causal: bool = False

    @property
    def levels(self) -> list[str]:
        """The levels whose known labels are inputs."""
        return list(dict.fromkeys(str(target.level) for target in self.known))

    @property
    def node_width(self) -> int:
        """Channels that are added to nodes."""
        structure = NODE_WIDTH[self.directed] if self.structure else 0
        return structure + (POSITION_WIDTH if self.position_steps else 0) + self.label_width("node")

    @property
    def edge_width(self) -> int:
        """Channels that are added to edges."""
        structure = EDGE_WIDTH[self.directed] if self.structure else 0
        triangles = TYPES[self.directed] if self.triangles else 0
        windows = GROUPS[self.directed] * SIDES * (1 + len(self._windows)) if self.widths else 0
        return structure + self.ports + triangles + windows + self.label_width("edge")

    def label_width(self, level: str) -> int:
        """Channels of the known labels of a level."""
        own = sum(map(label_width, self._of(level)))
        if self.counts_of(level):
            own += count_width(self._of(level), Level(level), self.directed)
        if level == "edge":
            each = 3 * TYPES[self.directed] * self.triangles + FACTORS_WIDTH * self.label_factors
            own += each * len(self.balanced) + self.window_width
        return own

    def counts_of(self, level: str) -> bool:
        """Whether rows of a level have counts of known labels."""
        return self.label_counts and any(map(is_counted, self._of(level)))

    @property
    def window_width(self) -> int:
        """Channels of the known labels in windows."""
        own = sum(map(label_width, self._of("edge")))
        return own * GROUPS[self.directed] * SIDES * len(self._windows) if self.widths else 0

    @property
    def _windows(self) -> list[float]:
        """The widths, and that of all edges before or after."""
        return [*self.widths, math.inf]

    @property
    def balanced(self) -> list[int]:
        """Of the known targets of edges, those whose labels have a product: numbers, and one of two classes."""
        return [number for number, target in enumerate(self._of("edge")) if target.kind != "multiclass"]

    def _of(self, level: str) -> list[Target]:
        return [target for target in self.known if target.level == level]

    def add(self, graph: Graph | GraphSet) -> Graph | GraphSet:
        """The graph with these features; no label is shown yet."""
        if self.causal and not self.node_features:  # a default one is the degree, which tells of the future
            graph = graph.with_features(torch.zeros_like(graph.nodes), graph.edges)
        if not (self.node_width or self.edge_width):
            return graph
        nodes, edges = [graph.nodes], [graph.edges]
        if self.widths:
            edges.append(self._window_features(graph if isinstance(graph, Graph) else graph.whole).to(graph.edges))
        if self.structure or self.position_steps or self.triangles or self.ports:
            incidence = graph.incidence if isinstance(graph, Graph) else _incidence(graph)
            if self.structure:
                if not self.node_features:
                    nodes = [torch.zeros_like(graph.nodes)]
                nodes.append(node_structure(incidence, self.directed).to(graph.nodes))
                edges.append(edge_structure(incidence, self.directed).to(graph.edges))
            if self.ports:
                edges.append(edge_port(incidence, self.directed).to(graph.edges))
            if self.triangles:
                edges.append(find_triangles(incidence, self.directed).count.to(graph.edges).log1p())
            if self.position_steps:
                nodes.append(positional_encoding(graph.nodes, incidence, self.position_steps))
        for rows, level in ((nodes, "node"), (edges, "edge")):
            if self.label_width(level):
                rows.append(rows[0].new_zeros(len(rows[0]), self.label_width(level)))
        if len(nodes) > 1 and graph.nodes.layout != torch.strided:
            raise ValueError("nodes is sparse, expected dense features beside structural ones, positions and labels")
        if graph.odd_width and len(edges) > 1:  # odd features stay last
            width = graph.edge_width - graph.odd_width
            edges = [graph.edges[:, :width], *edges[1:], graph.edges[:, width:]]
        node_rows, edge_rows = (torch.cat(rows, dim=1) if len(rows) > 1 else rows[0] for rows in (nodes, edges))
        return graph.with_features(node_rows, edge_rows)

    def show(
        self,
        graph: Graph,
        labels: Mapping[str, Tensor],
        shown: Shown,
        windows: Tensor | None = None,
        sums: Mapping[str, Tensor] | None = None,
    ) -> Graph:
        """The graph with the labels of some rows as features.

        Args:
            graph: as `add` gives it.
            labels: level -> the labels of its known targets, NaN where there is none. (n, k)
            shown: level -> which rows show theirs. (n,)
            windows: the labels of edges in windows (`label_windows`), where the graph is a part of another; those of
                the graph itself if None.
            sums: of a part of another graph, level -> the `label_sums` of its rows in that.
        """
        rows = {"node": graph.nodes, "edge": graph.edges}
        for level in self.levels:
            width = self.label_width(level)
            visible = shown[level].bool()
            channels = [self._channels(level, labels[level], visible)]
            if self.counts_of(level):
                mine = self.label_sums(level, labels[level], visible, graph.incidence) if sums is None else sums[level]
                channels.append(count_channels(mine, self._of(level), Level(level), self.directed))
            for number in self.balanced if level == "edge" and (self.triangles or self.label_factors) else ():
                values, binary = labels[level][:, number], self._of("edge")[number].kind == "binary"
                values = 2 * values - 1 if binary else values
                if self.triangles:
                    channels.append(self._triangle_channels(graph, values, visible))
                if self.label_factors:
                    known = visible & ~values.isnan()
                    channels.append(factorize_labels(values, known, graph.incidence, self.directed))
            if level == "edge" and self.widths:
                found = self.label_windows(graph, labels[level], visible)() if windows is None else windows
                channels.append(found)
            rows[level] = torch.cat([rows[level][:, :-width], *(each.to(rows[level]) for each in channels)], dim=1)
        return graph.with_features(rows["node"], rows["edge"])

    def label_sums(self, level: str, labels: Tensor, shown: Tensor, incidence: Incidence) -> Tensor:
        """Sums of the labels that are shown around each row of a level. (n, sums, channels), float64"""
        return label_sums(self._channels(level, labels, shown.bool()), Level(level), incidence, self.directed)

    def _window_features(self, graph: Graph) -> Tensor:
        """Of each window the number of other edges, and of each group the gaps to the last and the next. (E, d)

        A gap g is log(1 + w / (g + u)), with the widest and a hundredth of the narrowest width: 0 where there is none.
        """
        windows = _find_windows(graph, self.directed)
        gaps = torch.log1p(self.widths[-1] / (windows.gaps() + self.widths[0] / 100)) / 4
        counts = windows.counts(self._windows).log1p() / 2
        return torch.cat([_by_group(values, self.directed).flatten(1) for values in (gaps, counts)], dim=1)

    def label_windows(self, graph: Graph, labels: Tensor, shown: Tensor) -> LabelWindows:
        """The known labels of other edges in windows.

        Args:
            graph: the whole graph.
            labels: of the known targets of edges, NaN where there is none. (E, k)
            shown: which edges show theirs. (E,)
        """
        values = self._channels("edge", labels, shown.bool())
        sums = WindowSums(_find_windows(graph, self.directed), values)
        return LabelWindows(sums, self._windows, self._of("edge"), self.directed)

    def _channels(self, level: str, labels: Tensor, shown: Tensor) -> Tensor:
        """One-hot classes, or a number and whether it is known; zeros where a label is missing or hidden."""
        found = []
        for target, values in zip(self._of(level), labels.unbind(1), strict=True):
            known = shown & ~values.isnan()
            filled = torch.where(known, values, 0.0)
            if target.is_number:
                found.append(torch.stack([filled, known.to(filled.dtype)], dim=1))
            else:
                found.append(F.one_hot(filled.long(), len(target.classes)) * known.unsqueeze(1))
        return torch.cat([channels.float() for channels in found], dim=1)

    def _triangle_channels(self, graph: Graph, values: Tensor, shown: Tensor) -> Tensor:
        """Over the triangles of an edge by type, the sums of the labels of both edges and of their products.

        Each is divided by the number of triangles whose labels are known, and one more. (E, 3 * types)
        """
        triangles = find_triangles(graph.incidence, self.directed)
        known = shown & ~values.isnan()
        sums = triangles.label_sums(torch.where(known, values, 0.0), known)
        return (sums[..., :3] / (sums[..., 3:] + 1)).flatten(1)


@dataclass(frozen=True, eq=False)
class LabelWindows:
    """The labels of other edges in windows: the sum of each channel by the number of known labels and one more.

    Args:
        sums: of the channels of the known labels.
        windows: their widths.
        targets: whose labels these are.
        directed: whether the two ends of an edge are told apart.
    """

    sums: WindowSums
    windows: Sequence[float]
    targets: Sequence[Target]
    directed: bool

    def __call__(self, rows: Tensor | None = None, without: Tensor | None = None) -> Tensor:
        """The channels of some edges, or of all, from the labels of all edges but those `without`. (n, d)"""
        found = [self._shares(sums.float()) for sums in self.sums.chunks(self.windows, rows, without)]
        width = GROUPS[self.directed] * SIDES * len(self.windows) * sum(map(label_width, self.targets))
        return torch.cat(found) if found else torch.zeros(0, width)

    def _shares(self, sums: Tensor) -> Tensor:
        """The sums by the number of known labels and one more. (n, GROUPS, 2, W, c) -> (n, d)"""
        shares = []
        for target, own in zip(self.targets, torch.split(sums, [*map(label_width, self.targets)], dim=-1), strict=True):
            number = own[..., 1:] if target.is_number else own.sum(-1, keepdim=True)  # of known labels
            shares.append(own / (number + 1))
        return _by_group(torch.cat(shares, dim=-1), self.directed).flatten(1)


def _by_group(values: Tensor, directed: bool) -> Tensor:
    """Values of each group (n, GROUPS, ...), of the two ends of an edge that has no direction in any order."""
    if directed:
        return values
    first, second, pair = values.unbind(1)
    return torch.stack([first + second, (first - second).abs(), 2 * pair], dim=1) / 2


def _find_windows(graph: Graph, directed: bool) -> TimeWindows:
    if graph.times is None:
        raise DataError("the edges of the graph have no times, expected a time for each, as in training")
    return TimeWindows.of(graph, directed)


def positional_encoding(features: Tensor, incidence: Incidence, steps: int) -> Tensor:
    """The diffusion embedding of each node, whose entries have a variance of about 1. (N, d)"""
    found = diffusion_embedding(features, incidence, steps, torch.float32)
    return found.mul(float(found.shape[1]) ** 0.5).to(features.dtype)


def _incidence(graphs: GraphSet) -> Incidence:
    return Incidence(graphs.global_ends, graphs.num_nodes)


def choose_widths(graph: Graph | GraphSet, rows: Tensor | None = None) -> list[float]:
    """Widths of windows, from the quantiles of the gaps between events that follow each other at a node.

    Args:
        graph: whose edges have times.
        rows: the edges whose gaps count; all if None.
    """
    whole = graph if isinstance(graph, Graph) else graph.whole
    gaps = _find_windows(whole, directed=True).gaps(rows)[:, :4].flatten()
    gaps = gaps[gaps.isfinite() & (gaps > 0)]
    if len(gaps) == 0:
        return []
    ordered = gaps.sort().values
    found = [float(ordered[int(share * (len(ordered) - 1))]) for share in QUANTILES]
    return sorted(set(found))
