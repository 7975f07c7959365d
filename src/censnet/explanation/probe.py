"""The answer of trained models for one row, also without some parts of its neighborhood: exact, by forward passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import Tensor, nn

from censnet.nn.chunked import dense as dense_rows
from censnet.nn.diffusion import hold_signs
from censnet.nn.directed import DirectedNodeLayer
from censnet.nn.encoder import receptive_field
from censnet.nn.layers import NodeLayer
from censnet.nn.model import Model
from censnet.ops.ego import ego_graphs, mark_egos
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.ops.incidence import Incidence
from censnet.ops.sampling import sample_neighbors

BATCH_ROWS = 100_000  # nodes and edges of the copies that are computed at once
Answer = Callable[[Tensor], Tensor]  # outputs of a model for one row of each copy, (B, width) -> (B,)


@dataclass(frozen=True, eq=False)
class Neighborhood:
    """The part of a graph that the answer for one row depends on.

    Args:
        graph: its nodes and edges, dense, with the degrees of the whole graph.
        nodes, edges: their positions in the whole graph.
        seed: the row that is explained, as a position in `graph`; 0 where it is the whole graph.
        baseline: what a column is without information: the mean of each feature of nodes and of edges; of oriented
            features 0, and of the known labels of a history, which are known or not, none.
        label_width: how many features of edges, the last ones, are the known labels of a history.
        other: of a pair of nodes the second one, of which `seed` is the first.
        own: the features of nodes as the models read them, where those of `graph` are made dense.
    """

    graph: Graph
    nodes: Tensor
    edges: Tensor
    seed: int
    baseline: tuple[Tensor, Tensor]
    label_width: int = 0
    other: int | None = None
    own: Tensor | None = None

    @property
    def centers(self) -> list[int]:
        """The nodes that are explained: one, or a pair."""
        return [self.seed] if self.other is None else [self.seed, self.other]


def neighborhood(graph: Graph | GraphSet, level: str, row: int, model: Model) -> Neighborhood:
    """The receptive field of one node, edge or graph.

    Args:
        graph: with all inputs of the model.
        level: node, edge or graph.
        row: the node, edge or graph.
        model: gives the hops.
    """
    baseline = _means(graph.nodes), graph.edges.double().mean(0).to(graph.edges)
    if len(graph.edges) == 0:
        baseline = baseline[0], graph.edges.new_zeros(graph.edge_width)
    if graph.odd_width:
        baseline[1][-graph.odd_width :] = 0
    if getattr(model.encoder, "reads_times", False):
        assert isinstance(graph, Graph)
        return _past(graph, level, row, model, baseline)
    if model.ego_hops:
        whole = graph if isinstance(graph, Graph) else graph.whole
        found = ego_graphs(whole, torch.tensor([row]), model.ego_hops)
        marked = mark_egos(found)
        means = torch.cat([baseline[0], baseline[0].new_zeros(1)]), baseline[1]
        return Neighborhood(_dense(marked), found.nodes, found.edges, int(found.seeds[0]), means)
    if isinstance(graph, GraphSet):
        number = row
        if level != "graph":
            offset = graph.node_offset if level == "node" else graph.edge_offset
            number = int(torch.searchsorted(offset, row, right=True)) - 1
        first = int(graph.node_offset[number]), int(graph.edge_offset[number])
        one = graph[number]
        seed = 0 if level == "graph" else row - first[level == "edge"]
        nodes, edges = (
            torch.arange(count) + start for count, start in zip((one.num_nodes, one.num_edges), first, strict=True)
        )
        return Neighborhood(one, nodes, edges, seed, baseline)
    if graph.odd_width or type(model.encoder).__name__ == "OrientedNet":  # potentials reach as far as the graph
        every = torch.arange(graph.num_nodes), torch.arange(graph.num_edges)
        return Neighborhood(_dense(graph), *every, row, baseline)
    hops: list[int | None] = [None] * model.receptive_field
    sub = sample_neighbors(graph, torch.tensor([row]), "edge" if level == "edge" else "node", hops)
    return Neighborhood(_dense(sub.graph), sub.nodes, sub.edges, int(sub.seeds[0]), baseline)


def pair_neighborhood(graph: Graph, first: int, second: int, model: Model) -> Neighborhood:
    """What the score of a link between two nodes depends on: of a diffusion embedding the whole graph."""
    encoder, nodes = model.encoder, torch.tensor([first, second])
    baseline = _means(graph.nodes), graph.edges.double().mean(0).to(graph.edges)
    if _diffusion_steps(model):
        every = torch.arange(graph.num_nodes), torch.arange(graph.num_edges)
        return Neighborhood(_dense(graph), *every, first, baseline, other=second, own=graph.nodes)
    hops = [
        receptive_field(encoder.layer_order, level, encoder.steps, encoder.variant == "released")
        for level in ("node", "edge")
    ]
    sub = sample_neighbors(graph, nodes, "node", [None] * (max(hops) + 2))  # the decoder reads the edges at a node
    seed, other = sub.seeds.tolist()
    return Neighborhood(_dense(sub.graph), sub.nodes, sub.edges, seed, baseline, other=other)


def _diffusion_steps(model: Model) -> int:
    return int(getattr(model.decoder, "diffusion_steps", 0))


def _past(graph: Graph, level: str, row: int, model: Model, baseline: tuple[Tensor, Tensor]) -> Neighborhood:
    """The edges that a causal model reads: those up to the time of an edge, and for a node all of them.

    Beside a hop for each layer there is one for the counts that states start from, and one for triads.
    """
    assert graph.times is not None
    labels = int(getattr(model.encoder, "label_width", 0))
    if labels:
        baseline[1][-labels:] = 0
    rows = torch.arange(graph.num_edges)
    if level == "edge":
        rows = (graph.times <= graph.times[row]).nonzero().squeeze(1)
        row = int(torch.searchsorted(rows, row))
    hops = [None] * (len(model.encoder.layer_order) + 2)
    sub = sample_neighbors(graph.with_edges(rows), torch.tensor([row]), "edge" if level == "edge" else "node", hops)
    return Neighborhood(_dense(sub.graph), sub.nodes, rows[sub.edges], int(sub.seeds[0]), baseline, labels)


@dataclass(eq=False)
class Probe:
    """The answer for one row, computed on copies of its neighborhood that differ.

    Args:
        models: members of an ensemble, whose answers are averaged.
        place: the neighborhood of the row.
        level: of the row.
        answer: from the outputs for the row to one number.
    """

    models: Sequence[Model]
    place: Neighborhood
    level: str
    answer: Answer
    tiles: dict[int, Graph] = field(default_factory=dict, init=False)

    @property
    def copies(self) -> int:
        """How many copies are computed at once."""
        graph = self.place.graph
        if self.has_diffusion:  # whose directions are those of a whole batch
            return 1
        return max(1, BATCH_ROWS // (graph.num_nodes + graph.num_edges + 1))

    @property
    def is_slow(self) -> bool:
        """Whether an answer takes far more than a pass over some hops: a diffusion, or a whole past."""
        return self.has_diffusion or any(getattr(model.encoder, "reads_times", False) for model in self.models)

    @property
    def has_diffusion(self) -> bool:
        """Whether a link is scored by a diffusion embedding of the whole graph."""
        return self.level == "link" and any(map(_diffusion_steps, self.models))

    def whole(self) -> float:
        """The answer for the neighborhood as it is."""
        with torch.no_grad():
            return float(self.of_features(self.place.graph.nodes[None], self.place.graph.edges[None])[0])

    def of_features(self, nodes: Tensor, edges: Tensor) -> Tensor:
        """The answers where the features are others. nodes (B, N, d_v), edges (B, E, d_e) -> (B,), differentiable."""
        graph = self._tile(len(nodes), None)
        changed = _with_features(graph, nodes.flatten(0, 1), edges.flatten(0, 1))
        return self._answers(changed, len(nodes), torch.arange(len(nodes)) * self._stride + self.place.seed)

    def without(self, keep: Tensor, hidden: Tensor | None = None) -> Tensor:
        """The answers without some edges, and with the columns of some nodes at the baseline.

        An edge that is left out is in no sum and no gate reads it; degrees by which layers normalize stay those of the
        whole graph, and means of directed layers are over the edges that are left.

        Args:
            keep: for each copy, which edges stay. (B, E)
            hidden: for each copy, which nodes have the baseline as their columns. (B, N)
        """
        graph, found = self.place.graph, []
        for part in range(0, len(keep), self.copies):
            mine = keep[part : part + self.copies]
            nodes = graph.nodes.repeat(len(mine), 1)
            if hidden is not None:
                nodes = torch.where(hidden[part : part + len(mine)].reshape(-1, 1), self.place.baseline[0], nodes)
            tiled = _with_features(self._tile(len(mine), mine), nodes, graph.edges.repeat(len(mine), 1)[mine.flatten()])
            seeds = torch.arange(len(mine)) * graph.num_nodes + self.place.seed
            if self.level == "edge":  # counted among the edges that are left
                seeds = mine.flatten().cumsum(0)[torch.arange(len(mine)) * graph.num_edges + self.place.seed] - 1
            with torch.no_grad():
                found.append(self._answers(tiled, len(mine), seeds))
        return torch.cat(found) if found else graph.nodes.new_zeros(0)

    def without_columns(self, changes: Sequence[tuple[str, Tensor, Tensor]]) -> Tensor:
        """The answers with some columns of some rows at the baseline, one copy for each change.

        Args:
            changes: node or edge, the rows, and the features.
        """
        graph, found = self.place.graph, []
        for part in range(0, len(changes), self.copies):
            mine = changes[part : part + self.copies]
            features = {"node": graph.nodes.repeat(len(mine), 1, 1), "edge": graph.edges.repeat(len(mine), 1, 1)}
            for copy, (side, rows, columns) in enumerate(mine):
                baseline = self.place.baseline[side == "edge"]
                features[side][copy][rows[:, None], columns] = baseline[columns]
            with torch.no_grad():
                found.append(self.of_features(features["node"], features["edge"]))
        return torch.cat(found) if found else graph.nodes.new_zeros(0)

    def with_gates_closed(self, edges: Tensor) -> Tensor:
        """The answers with the gates of one edge at 0 in every node layer, one copy for each edge. (n,)

        Nothing passes from node to node along the edge, while edge layers still read it. It is exact: the gate
        multiplies the message, and all later layers are computed anew.
        """
        graph, found = self.place.graph, []
        for part in range(0, len(edges), self.copies):
            some = edges[part : part + self.copies]
            scale = torch.ones(len(some), graph.num_edges)
            scale[torch.arange(len(some)), some] = 0
            seeds = torch.arange(len(some)) * self._stride + self.place.seed
            with torch.no_grad(), _edge_scale(self.models, scale.flatten()):
                found.append(self._answers(self._tile(len(some), None), len(some), seeds))
        return torch.cat(found) if found else graph.nodes.new_zeros(0)

    @property
    def has_gates(self) -> bool:
        """Whether node layers have gates that can be closed one by one."""
        return any(isinstance(part, NodeLayer | DirectedNodeLayer) for model in self.models for part in model.modules())

    @property
    def _stride(self) -> int:
        """Rows of the level in one copy."""
        return self.place.graph.count("node" if self.level == "link" else self.level)

    def _answers(self, graph: Graph, copies: int, seeds: Tensor) -> Tensor:
        total = graph.nodes.new_zeros(copies)
        for model in self.models:
            if self.level == "link":
                total = total + self.answer(self._link_scores(model, graph, seeds).unsqueeze(1))
                continue
            outputs = model.eval()(graph)
            rows = dense_rows(outputs.unclipped.get(self.level, outputs.by_level[self.level]))
            total = total + self.answer(rows if self.level == "graph" else rows[seeds])
        return total / len(self.models)

    def _link_scores(self, model: Model, graph: Graph, seeds: Tensor) -> Tensor:
        """The logit of the link of each copy. The signs of a diffusion embedding are those of the whole graph."""
        assert model.decoder is not None
        assert self.place.other is not None
        steps = _diffusion_steps(model)
        if steps and self.place.own is not None:
            dtype = cast(Tensor, model.decoder.projection).dtype
            hold_signs(graph.nodes, graph.incidence, steps, dtype, self.place.own)
        inputs = model.eval()(graph).link_inputs
        found: Tensor = model.decoder.score(inputs, torch.stack([seeds, seeds - self.place.seed + self.place.other]))
        return found

    def _tile(self, copies: int, keep: Tensor | None) -> Graph:
        """Copies of the neighborhood as one batch, whole or without some edges."""
        if keep is None and copies in self.tiles:
            return self.tiles[copies]
        graph = self.place.graph
        made = tile(graph, copies, keep)
        if keep is None:
            self.tiles = {copies: made}
        return made


def tile(graph: Graph, copies: int, keep: Tensor | None = None) -> Graph:
    """Copies of a graph as one batch, with the same degrees, without the edges that are not kept. keep: (copies, E)"""
    old, shift = graph.incidence, torch.arange(copies) * graph.num_nodes
    ends = (old.ends[:, None, :] + shift[None, :, None]).reshape(2, -1)
    mask = torch.ones(ends.shape[1], dtype=torch.bool) if keep is None else keep.flatten()
    own = None if graph.graph_features is None else graph.graph_features.repeat(copies, 1)
    incidence = Incidence.from_known(
        ends[:, mask],
        graph.num_nodes * copies,
        torch.arange(copies).repeat_interleave(graph.num_nodes),
        copies,
        node_degree=old.node_degree.repeat(copies),
        edge_count=old.edge_count.repeat(copies),
        multiplicity=old.multiplicity.repeat(copies)[mask],
        **({"is_loop": None} if old.is_loop is None else {}),
    )
    features = graph.nodes.repeat(copies, 1), graph.edges.repeat(copies, 1)[mask]
    times = None if graph.times is None else graph.times.repeat(copies)[mask]
    return Graph.from_incidence(*features, incidence, own, graph.directed, graph.odd_width, times)


def _with_features(graph: Graph, nodes: Tensor, edges: Tensor) -> Graph:
    about = graph.graph_features, graph.directed, graph.odd_width, graph.times
    return Graph.from_incidence(nodes, edges, graph.incidence, *about)


@contextmanager
def _edge_scale(models: Sequence[Model], scale: Tensor) -> Iterator[None]:
    """Multiply the gates of every node layer by a scale of the edges."""

    def hook(_: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, Any]:
        return given, {**named, "edge_scale": scale}

    layers = [part for model in models for part in model.modules() if isinstance(part, NodeLayer | DirectedNodeLayer)]
    with ExitStack() as held:
        for layer in layers:
            held.callback(layer.register_forward_pre_hook(hook, with_kwargs=True).remove)
        yield


def _dense(graph: Graph) -> Graph:
    if graph.nodes.layout == torch.strided:
        return graph
    return _with_features(graph, graph.nodes.to_dense(), graph.edges)


def _means(features: Tensor) -> Tensor:
    if features.layout == torch.strided:
        return features.double().mean(0).to(features)
    total = torch.zeros(features.shape[1]).index_add(0, features.col_indices().long(), features.values())
    return total / len(features)
