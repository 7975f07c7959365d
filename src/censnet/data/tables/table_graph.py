"""A graph made of tables: its structure, the way back to their rows, and its features, also where columns give none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
import torch
from torch import Tensor

from censnet.data.tables.feature_encoding import Column
from censnet.data.tables.files import Tables
from censnet.data.tables.schema import Schema
from censnet.data.tables.typed_column import standardize_column
from censnet.data.tables.typed_table import TypedTable
from censnet.levels import Level
from censnet.ops.arrays import Array, IntArray
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet

BLOCK = 1 << 18  # rows that are written at a time
TrainRows = Mapping[str, IntArray]  # table -> the rows that statistics come from; all rows of a table that is absent


class FeatureEncoder(Protocol):
    """Features of typed data, by a schema that is fitted on training rows."""

    def fit(self, graph: Graph | GraphSet, rows: TrainRows, message_edges: IntArray | None) -> Schema:
        """The schema with the statistics of the training rows.

        Args:
            graph: the structure.
            rows: table -> training rows.
            message_edges: the edges that are no links to be predicted, if links are; degrees are counted on these.
        """
        ...

    def encode(self, graph: Graph | GraphSet, schema: Schema) -> Graph | GraphSet:
        """The structure with the features of its nodes and edges."""
        ...


@dataclass(frozen=True, eq=False)
class TableGraph:
    """A graph, or many, and the way back to the rows of the tables it came from.

    Args:
        graph: the tensors.
        tables: what was read, with those that were made, as nodes from the ends of the edges.
        schema: what each column became; `schema.to_json()` is all that a later table needs.
        rows_by_level: for each row of the table of a level, its row in the tensors; -1 for a row that cannot be used.
            Edges are sorted by their lower end, and rows that were merged share one.
    """

    graph: Graph | GraphSet
    tables: Tables
    schema: Schema
    rows_by_level: Mapping[Level, Tensor]

    def rows(self, level: str) -> Tensor:
        """For each input row of a level, its row in the tensors, or -1."""
        found = self.rows_by_level.get(Level.of_column(level))
        return torch.zeros(0, dtype=torch.long) if found is None else found


@dataclass(frozen=True, eq=False)
class Assembled(TableGraph):
    """Tables as a structure without features; the schema has statistics only if it was given.

    Args:
        encoder: makes the features; None if the graph has them already.
        graph_source: for each graph of a set, its row in `graphs`.
        graph_table: the typed columns of `graphs` that are features of each graph.
        descriptors: of molecules, for each row of `graphs`, if they are features of each graph.
        scaffolds: of molecules, for each row of `graphs`, if they were asked for.
    """

    encoder: FeatureEncoder | None = None
    graph_source: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    graph_table: TypedTable | None = None
    descriptors: pd.DataFrame | None = None
    scaffolds: Sequence[str | None] | None = None


@dataclass(frozen=True, eq=False)
class TableEncoder:
    """Features of nodes and edges from the columns of their tables.

    Args:
        schema: keys and kinds of columns.
        tables: the typed tables.
        node_rows: for each row of `nodes`, its node, or -1.
        node_source, edge_source: for each node and edge, its row in the table.
    """

    schema: Schema
    tables: Mapping[str, TypedTable]
    node_rows: IntArray
    node_source: IntArray
    edge_source: IntArray

    def fit(self, graph: Graph | GraphSet, rows: TrainRows, message_edges: IntArray | None) -> Schema:
        fitted = {
            name: table.fit(rows.get(name), only=name == "edges" and message_edges is not None)
            for name, table in self.tables.items()
        }
        schema = add_default_features(self.schema.with_tables(fitted))
        if schema.nodes.structure != "degree":
            return schema
        ends, nodes = graph.global_ends.cpu().numpy(), None
        if "nodes" in rows:
            nodes = self.node_rows[rows["nodes"]]
            nodes = nodes[nodes >= 0]
        degree = count_degree(ends if message_edges is None else ends[:, message_edges], len(self.node_source))
        return fit_degree(schema, degree, nodes)

    def encode(self, graph: Graph | GraphSet, schema: Schema) -> Graph | GraphSet:
        if schema.nodes.structure == "degree":
            nodes = encode_degree(schema, count_degree(graph.global_ends.cpu().numpy(), len(self.node_source)))
        else:
            nodes = take_rows(self.tables["nodes"].encode(schema.nodes), self.node_source)
        if schema.edges.structure == "constant":
            edges = torch.ones(len(self.edge_source), 1)
        elif len(self.edge_source) == 0:
            edges = torch.zeros(0, schema.edges.width)
        else:
            edges = take_rows(self.tables["edges"].encode(schema.edges), self.edge_source)
        return graph.with_features(nodes, edges, schema.edges.odd_width)


def take_rows(features: Tensor, rows: Array) -> Tensor:
    """These rows, written block by block: nothing else as large is needed. All of them in order are the same tensor."""
    if len(rows) == len(features) and np.array_equal(rows, np.arange(len(rows))):
        return features
    out, index = torch.empty(len(rows), features.shape[1], dtype=features.dtype), torch.from_numpy(rows)
    for start in range(0, len(rows), BLOCK):
        block = slice(start, start + BLOCK)
        torch.index_select(features, 0, index[block], out=out[block])
    return out


def add_default_features(schema: Schema) -> Schema:
    """The same schema, with the default features of each table that has no other."""
    if schema.smiles is not None:
        return schema
    found = {}
    for level, fitted in schema.tables.items():
        if level.takes_columns:
            structure = "degree" if level is Level.NODE else "constant"
            default = "none" if any(column.width for column in fitted.columns) else structure
            found[level.table] = fitted.model_copy(update={"structure": default, "degree": None})
    return schema.with_tables(found)


def count_degree(ends: IntArray, num_nodes: int) -> IntArray:
    """The number of ends of edges at each node; a loop has two. (2, E) -> (N,)"""
    return np.bincount(ends.reshape(-1), minlength=num_nodes)


def fit_degree(schema: Schema, degree: IntArray, nodes: IntArray | None) -> Schema:
    """The same schema with the statistics of the degree, from these nodes alone or from all."""
    chosen = degree if nodes is None or len(nodes) == 0 else degree[nodes]
    column = standardize_column("degree", pa.chunked_array([chosen.astype(np.float64)]), "counted on the edges")
    if column.width == 0:  # every node has the same degree
        column = Column(name="degree", kind="number", mean=[float(chosen[0])], scale=[1.0])
    return schema.with_tables({"nodes": schema.nodes.model_copy(update={"degree": column})})


def encode_degree(schema: Schema, degree: IntArray) -> Tensor:
    """The degree of each node, scaled as in training, and a constant. (N,) -> (N, 2)"""
    if schema.nodes.degree is None:
        raise ValueError("the schema has no statistics of the degree: fit it first")
    out = np.ones((len(degree), 2), np.float32)
    schema.nodes.degree.encode(pa.chunked_array([degree.astype(np.float64)]), out[:, :1])
    return torch.from_numpy(out)
