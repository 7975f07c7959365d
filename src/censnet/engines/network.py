"""A trained model as steps of a plan: its inputs, each of its layers, and its head."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from censnet.data.tables.schema import Schema
from censnet.data.tables.table_graph import encode_degree
from censnet.engines.engine import Engine
from censnet.engines.graph_tables import PART
from censnet.engines.steps import run_step
from censnet.engines.triangles import known_triangles
from censnet.engines.works import GraphTables, Rows, Step, Tensors
from censnet.nn.chunked import dense
from censnet.nn.encoder import CensNet
from censnet.nn.heads import Head
from censnet.nn.layers import LAYERS
from censnet.nn.model import Model
from censnet.ops.graph import Graph
from censnet.ops.triangles import triangles_key
from censnet.runs.uncertainty import Uncertainty
from censnet.tasks.inputs import ModelInputs

Changed = tuple[Tensors | None, Tensors | None]


@dataclass(frozen=True)
class Prepare:
    """The inputs of a model, and its linear layers before the first graph layer.

    Args:
        encoder: of the model.
        inputs: beside the user's columns.
        schema: of these.
        hidden: the fold whose labels are hidden, from 1; 0: none; None: no label is shown.
        labeled: the levels whose tables have labels.
    """

    encoder: CensNet
    inputs: ModelInputs
    schema: Schema
    hidden: int | None
    labeled: Collection[str]

    def __call__(self, rows: Rows) -> Changed:
        incidence = rows.incidence
        if self.schema.nodes.structure == "degree":
            nodes = encode_degree(self.schema, incidence.end_degree.sum(0).numpy())
        else:
            nodes = rows.nodes["x"]
        edges = torch.ones(incidence.num_edges, 1) if self.schema.edges.structure == "constant" else rows.edges["x"]
        if self.inputs.triangles:
            incidence.cache(triangles_key(self.inputs.directed), lambda: known_triangles(rows.edges))
        graph = self.inputs.add(make_graph(nodes, edges, rows))
        assert isinstance(graph, Graph)
        if self.hidden is not None and self.inputs.levels:
            found = {level: self._labels(level, rows) for level in self.inputs.levels}
            labels, shown = ({level: both[place] for level, both in found.items()} for place in (0, 1))
            graph = self.inputs.show(graph, labels, shown)
        new = self.encoder.prepare(graph.nodes, graph.edges, incidence)
        return {"x": new[0]}, {"x": new[1]}

    def _labels(self, level: str, rows: Rows) -> tuple[Tensor, Tensor]:
        """The labels of nodes or edges, and which are shown; none where their table has none."""
        if level in self.labeled:
            tensors = rows.nodes if level == "node" else rows.edges
            return tensors["label"], _is_shown(tensors[PART.name].squeeze(1), self.hidden or 0)
        count = rows.incidence.num_nodes if level == "node" else rows.incidence.num_edges
        targets = sum(target.level == level for target in self.inputs.known)
        return torch.full((count, targets), torch.nan), torch.zeros(count, dtype=torch.bool)


def _is_shown(part: Tensor, hidden: int) -> Tensor:
    """Which rows have a label that is shown. (n,)"""
    return (part > 0) & (part != hidden)


@dataclass(frozen=True)
class Layer:
    """A layer of an encoder, and what follows it.

    Args:
        encoder: of the model.
        depth: its number.
    """

    encoder: CensNet
    depth: int

    @property
    def updates(self) -> str:
        """The side that it updates."""
        return LAYERS[self.encoder.layer_order[self.depth]].updates

    def __call__(self, rows: Rows) -> Changed:
        nodes, edges = self.encoder.update(self.depth, rows.nodes["x"], rows.edges["x"], rows.incidence)
        both = self.encoder.variant == "released"  # which activates the other side, too
        return (
            {"x": nodes} if both or self.updates == "node" else None,
            {"x": edges} if both or self.updates == "edge" else None,
        )


@dataclass(frozen=True)
class Outputs:
    """The outputs of a head for nodes or edges, and how far their embeddings are from those of training rows.

    Args:
        level: of the head.
        head: of the model.
        directed: whether edges have a direction.
        uncertainty: that measures the distance; None where nobody asks.
    """

    level: str
    head: Head
    directed: bool
    uncertainty: Uncertainty | None

    def __call__(self, rows: Rows) -> Changed:
        nodes, edges = rows.nodes["x"], rows.edges["x"]
        graph = make_graph(nodes, edges, rows, self.directed)
        found = {"out": dense(self.head(nodes, edges, graph)).float()}
        if self.uncertainty is not None:
            read = nodes if self.level == "node" else torch.cat([edges, graph.incidence.gather(nodes)], dim=1)
            found["far"] = self.uncertainty.watch(self.level, read.float())
        return (found, None) if self.level == "node" else (None, found)


@dataclass(frozen=True)
class Chain:
    """Steps one after the other as one, of which the last gives the result.

    Args:
        steps: all of them.
    """

    steps: Sequence[Step]

    def __call__(self, rows: Rows) -> Changed:
        for step in self.steps[:-1]:
            nodes, edges = step(rows)
            rows = Rows({**rows.nodes, **(nodes or {})}, {**rows.edges, **(edges or {})}, rows.incidence)
        return self.steps[-1](rows)


def make_graph(nodes: Tensor, edges: Tensor, rows: Rows, directed: bool = False) -> Graph:
    """A batch as a graph."""
    return Graph.from_incidence(nodes, edges, rows.incidence, directed=directed)


def model_steps(model: Model, prepare: Prepare) -> list[Step]:
    """The steps from the user's columns to the embeddings."""
    encoder = prepare.encoder
    steps: list[Step] = [Layer(encoder, depth) for depth in range(len(encoder.layer_order))]
    return [prepare, *steps]


def run_model(engine: Engine, tables: GraphTables, steps: Sequence[Step], name: str) -> GraphTables:
    """The tables with the embeddings of nodes and edges, or with outputs, as the last step has it.

    Args:
        engine: that computes it.
        tables: of the graph, which stay.
        steps: as `model_steps` gives them.
        name: with which no other table begins.
    """
    start = {tables.nodes, tables.edges}
    for number, step in enumerate(steps):
        new = run_step(engine, tables, step, f"{name}_{number}")
        engine.drop(*({tables.nodes, tables.edges} - {new.nodes, new.edges} - start))
        tables = new
    return tables


def run_outputs(engine: Engine, tables: GraphTables, steps: Sequence[Step], outputs: Outputs, name: str) -> str:
    """The table of the outputs for nodes or edges: their keys, and the groups `out` and `far`.

    Args:
        engine, tables, steps, name: as in `run_model`.
        outputs: what the head gives.
    """
    last = steps[-1]
    # an embedding that the head alone reads is not stored
    fused = isinstance(last, Layer) and last.updates == outputs.level
    every: list[Step] = [*steps[:-1], Chain([last, outputs])] if fused else [*steps, outputs]
    found = run_model(engine, tables, every, name)
    mine, other = (found.nodes, found.edges) if outputs.level == "node" else (found.edges, found.nodes)
    engine.drop(*({other} - {tables.nodes, tables.edges}))
    return mine
