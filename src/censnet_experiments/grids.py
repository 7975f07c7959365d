"""Samples of one power grid or water network as tables: arrays of nodes and edges, with the names of their columns.

A file (`.npz`) has `bus` (samples, N, columns) and `branch` (samples, E, columns), with `bus_cols` and `branch_cols`; a
`*` behind a name marks what is to be predicted. The first two columns of `branch` are the nodes that a line joins.
"""

from __future__ import annotations

import os

import numpy as np
import pandas as pd

from censnet.data.tables.files import Tables
from censnet.ops.arrays import Array


def read_grids(path: str | os.PathLike[str]) -> Tables:
    """The samples as many graphs: `nodes` with `graph` and `id`, `edges` with `graph`, `source` and `target`."""
    with np.load(path, allow_pickle=False) as found:
        nodes, edges = (_frame(found[name], found[f"{name}_cols"]) for name in ("bus", "branch"))
        samples, count, _ = found["bus"].shape
        lines = found["branch"].shape[1]
    nodes.insert(0, "graph", np.repeat(np.arange(samples), count))
    nodes.insert(1, "id", np.tile(np.arange(count), samples))
    ends = edges.columns[:2]
    edges = edges.rename(columns=dict(zip(ends, ("source", "target"), strict=True)))
    edges[["source", "target"]] = edges[["source", "target"]].astype(int)
    edges.insert(0, "graph", np.repeat(np.arange(samples), lines))
    return Tables(nodes=nodes, edges=edges, graphs=pd.DataFrame({"graph": np.arange(samples)}))


def normalized_rmse(predicted: Array, truth: Array) -> float:
    """The root mean squared error divided by the standard deviation of the truth.

    >>> normalized_rmse(np.array([1.0, 3.0]), np.array([0.0, 4.0]))
    0.5
    """
    return float(np.sqrt(np.mean((predicted - truth) ** 2)) / np.std(truth))


def _frame(values: Array, names: Array) -> pd.DataFrame:
    return pd.DataFrame(values.reshape(-1, values.shape[2]), columns=[str(name).removesuffix("*") for name in names])
