"""Features of nodes and edges where no column gives any: the degree, and a constant."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from censnet.data.tables.feature_encoding import Column
from censnet.data.tables.schema import Schema
from censnet.data.tables.typed_table import standardize_column
from censnet.levels import Level
from censnet.ops.arrays import IntArray


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
