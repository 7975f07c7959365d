"""The inputs of trees from prepared data: columns as numbers and codes, and times of edges."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from sklearn.decomposition import TruncatedSVD
from torch import Tensor

from censnet.comparison.tree_graph import MOST_CATEGORIES, TreeGraph
from censnet.data.dataset import Dataset
from censnet.data.tables.columns import as_arrow
from censnet.data.tables.schema import TableSchema
from censnet.ops.arrays import Array
from censnet.pipeline.prepare import Prepared

MOST_COLUMNS = 256  # of nodes, beyond which neighbors are described by components
COMPONENTS = 64
TIMES = ("time", "timestamp", "date", "datetime")  # names of columns that are times, whatever their kind


def tree_graph(prepared: Prepared) -> TreeGraph:
    """The graph that message passing sees, for trees: the same columns of the same rows.

    Numbers are scaled by training rows, which no tree notices. A category is one column of codes in its own row, and
    an indicator for each word in aggregates. Columns of nodes that are very many, such as words, describe neighbors by
    their principal components, without centering.
    """
    data, graph = prepared.data, prepared.task_data.graph
    source, target = graph.global_ends.numpy()
    oriented = graph.odd_width > 0 or any(one.kind == "oriented" for one in prepared.targets)
    nodes, node_codes = read_columns(graph.nodes, data.schema.nodes, "node")
    edges, edge_codes = read_columns(graph.edges, data.schema.edges, "edge")
    neighbors = _components(graph.nodes) if nodes.shape[1] > MOST_COLUMNS else _numbers(graph.nodes, nodes, "node")
    return TreeGraph(
        source, target, nodes, edges, node_codes | edge_codes, graph.directed or oriented,
        neighbors, _numbers(graph.edges, edges, "edge"),
    )  # fmt: skip


def graph_columns(prepared: Prepared) -> pd.DataFrame:
    """The columns of each graph of a set that are features of it. (G, .)"""
    graph = prepared.task_data.graph
    if graph.graph_features is None:
        return pd.DataFrame(index=range(graph.num_graphs))
    return pd.DataFrame(graph.graph_features.numpy()).add_prefix("graph ")


def read_columns(features: Tensor, schema: TableSchema, level: str) -> tuple[pd.DataFrame, frozenset[str]]:
    """Encoded features as a table, with one column of codes for each category, and the names of the latter.

    Features that the library made where a table has no columns are left out: they are the same in every row, or counts
    that trees have anyway.
    """
    values = dense(features)
    if schema.structure != "none":
        return pd.DataFrame(index=range(len(values))), frozenset()
    columns = schema.feature_columns
    if len(columns) != values.shape[1]:  # of a graph object or of molecules, whose features have no names
        return pd.DataFrame(values).add_prefix(f"{level} "), frozenset()
    found, codes = dict[str, Array](), set[str]()
    for place, (column, name) in enumerate(zip(columns, schema.names, strict=True)):
        if column.kind != "category":
            found[name] = values[:, place]
        elif column.name not in codes:
            block = values[:, [number for number, one in enumerate(columns) if one is column]]
            found[column.name] = _as_codes(block)
            codes.add(column.name)
    return pd.DataFrame(found, index=range(len(values))), frozenset(codes)


def _as_codes(indicators: Array) -> Array:
    """The number of the indicator of each row; of very many those of the rarer ones are one, as trees need it."""
    codes = indicators.argmax(1)
    if indicators.shape[1] > MOST_CATEGORIES:
        order = np.bincount(codes, minlength=indicators.shape[1]).argsort(kind="stable")[::-1]
        codes = np.minimum(order.argsort(), MOST_CATEGORIES)[codes]
    return np.asarray(codes, np.float32)


def edge_times(prepared: Prepared) -> Array | None:
    """The time of each edge, where a column says it: that of the split, or one of dates, or one of that name."""
    data, settings, known = prepared.data, prepared.settings.data, prepared.task_data.graph.times
    if known is not None:
        return np.asarray(known.numpy())
    chosen = settings.split_column if settings.split == "time" else None
    if prepared.links is not None:  # whose edges are not those of the table
        return None
    kinds = {column.name: column.kind for column in data.schema.edges.columns}
    if chosen not in kinds:
        dates = [name for name, kind in kinds.items() if kind == "date"]
        named = [name for name, kind in kinds.items() if kind == "number" and name.lower() in TIMES]
        chosen = next(iter([*dates, *named]), None)
    return None if chosen is None else _read_times(data, chosen)


def is_by_time(prepared: Prepared) -> bool:
    """Whether the split is ordered by time."""
    return any(split.source.startswith("by time") for split in prepared.splits.values())


def _read_times(data: Dataset, name: str) -> Array | None:
    """The times of the edges of the graph; None where one is not known."""
    column = next(one for one in data.schema.edges.columns if one.name == name)
    values = as_arrow(data.tables.frames()["edges"][name])
    if not column.width:
        return None
    parsed, rows = column.parse(values).numbers, data.rows("edge").numpy()
    times = np.full(data.count("edge"), np.nan)
    used = np.flatnonzero(rows >= 0)[::-1]  # where rows were merged, the first one says it
    times[rows[used]] = parsed[used]
    return None if np.isnan(times).any() else times


def _numbers(features: Tensor, columns: pd.DataFrame, level: str) -> pd.DataFrame:
    """Encoded features, with an indicator for each word of a category; none where the table has no columns."""
    return columns if columns.shape[1] == 0 else pd.DataFrame(dense(features)).add_prefix(f"{level} ")


def _components(features: Tensor) -> pd.DataFrame:
    values = dense(features)
    width = min(COMPONENTS, *values.shape)
    return pd.DataFrame(TruncatedSVD(width, random_state=0).fit_transform(values)).add_prefix("component ")


def dense(features: Tensor) -> Array:
    """Features that may be sparse, as an array."""
    return np.asarray((features if features.layout == torch.strided else features.to_dense()).numpy())
