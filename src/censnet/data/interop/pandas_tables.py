"""To and from pandas: the tables of a graph with its numbers as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
import torch
from torch import Tensor

from censnet.data.tables.files import Tables
from censnet.errors import ArgumentError, DataError, quote
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet

Array = np.ndarray[Any, Any]


def to_pandas(
    graph: Graph | GraphSet,
    node_names: Sequence[str] | None = None,
    edge_names: Sequence[str] | None = None,
    node_ids: Any = None,
) -> Tables:
    """The nodes and edges of a graph as tables, a column for each feature.

    Args:
        graph: what to convert. A set or a union has the column `graph` in both tables.
        node_names, edge_names: of the features; node_0, node_1, ... and edge_0, edge_1, ... if None.
        node_ids: of the nodes; their numbers, within each graph of a set, if None.

    Example:
        >>> path = Graph(torch.ones(3, 1), torch.ones(2, 1), torch.tensor([[0, 1], [1, 2]]))
        >>> to_pandas(path, edge_names=["amount"], node_ids=["a", "b", "c"]).edges
          source target  amount
        0      a      b     1.0
        1      b      c     1.0
    """
    ends, owner = graph.ends.cpu().numpy(), None
    if isinstance(graph, GraphSet):
        count, edge_count = graph.node_offset.diff().cpu().numpy(), graph.edge_offset.diff().cpu().numpy()
        owner, edge_owner = (np.repeat(np.arange(len(graph)), each) for each in (count, edge_count))
        start = graph.node_offset.cpu().numpy()
        ids = np.arange(len(owner)) - start[owner]
        ends = ends + start[edge_owner]
    else:
        ids = np.arange(graph.num_nodes)
        if graph.owner is not None:
            owner = graph.owner.cpu().numpy()
            edge_owner = owner[ends[0]]
    if node_ids is not None:
        if len(node_ids) != len(ids):
            raise ArgumentError(f"node_ids has {len(node_ids)} ids, expected {len(ids)}: one for each node")
        ids = pd.Series(node_ids).to_numpy()
    nodes = {"id": ids} if owner is None else {"graph": owner, "id": ids}
    edges = {"source": ids[ends[0]], "target": ids[ends[1]]}
    if owner is not None:
        edges = {"graph": edge_owner, **edges}
    return Tables(
        nodes=pd.concat([pd.DataFrame(nodes), _frame(graph.nodes, node_names, "node")], axis=1),
        edges=pd.concat([pd.DataFrame(edges), _frame(graph.edges, edge_names, "edge")], axis=1),
    )


def from_pandas(nodes: pd.DataFrame, edges: pd.DataFrame) -> Graph | GraphSet:
    """The graph whose tables these are, with every column but the keys as a feature, unchanged.

    This is the way back from `to_pandas`. `load_data` is what scales, encodes, types columns and suffers bad rows.

    Args:
        nodes: `id`, and `graph` if there are many; the other columns are numbers.
        edges: `source` and `target`, each an `id`, and `graph`; the other columns are numbers.

    Example:
        >>> from_pandas(pd.DataFrame({"id": ["a", "b"]}), pd.DataFrame({"source": ["b"], "target": ["a"]}))
        Graph(2 nodes x 0, 1 edge x 0)
    """
    for table, frame, keys in (("nodes", nodes, ("id",)), ("edges", edges, ("source", "target"))):
        for key in keys:
            if key not in frame:
                raise DataError(f"no column {key}, expected {' and '.join(keys)}", table)
    many = "graph" in nodes
    if many != ("graph" in edges):
        raise DataError("the column graph is in one table only, expected it in both or in none", "edges")
    names: pd.Index[Any] = pd.Index([0])
    owner, edge_owner = np.zeros(len(nodes), np.int64), np.zeros(len(edges), np.int64)
    if many:
        names = pd.Index(nodes["graph"]).unique()
        owner = names.get_indexer(pd.Index(nodes["graph"]))
        edge_owner = names.get_indexer(pd.Index(edges["graph"]))
        _check(edge_owner, edges["graph"], "graph", "no node is in the graph")
    node_order, edge_order = np.argsort(owner, kind="stable"), np.argsort(edge_owner, kind="stable")
    index = _index(owner, nodes["id"].to_numpy(), many)
    if not index.is_unique:
        row = int(np.flatnonzero(index.duplicated())[0])
        raise DataError(f"the id {quote(_plain(nodes['id'].iloc[row]))} occurs twice", "nodes", row, "id")
    place = np.empty(len(nodes), dtype=np.int64)
    place[node_order] = np.arange(len(nodes))
    ends = np.empty((2, len(edges)), dtype=np.int64)
    for side, key in enumerate(("source", "target")):
        found = index.get_indexer(_index(edge_owner, edges[key].to_numpy(), many))
        _check(found, edges[key], key, "no node has the id")
        ends[side] = place[found]
    x = _tensor(nodes.drop(columns=["id", "graph"], errors="ignore"), "nodes")
    z = _tensor(edges.drop(columns=["source", "target", "graph"], errors="ignore"), "edges")
    if not many:
        return Graph(x, z, torch.from_numpy(ends))
    x, z = x.to_dense()[torch.from_numpy(node_order)], z[torch.from_numpy(edge_order)]
    node_offset, edge_offset = (
        torch.from_numpy(np.r_[0, np.cumsum(np.bincount(each, minlength=len(names)))]) for each in (owner, edge_owner)
    )
    local = torch.from_numpy(ends[:, edge_order]) - node_offset[torch.from_numpy(edge_owner[edge_order])]
    return GraphSet(x, z, local, node_offset, edge_offset)


def _frame(features: Tensor, names: Sequence[str] | None, what: str) -> pd.DataFrame:
    names = [f"{what}_{number}" for number in range(features.shape[1])] if names is None else list(names)
    if len(names) != features.shape[1]:
        raise ArgumentError(f"{what}_names has {len(names)} names, expected {features.shape[1]}: one for each feature")
    features = features.detach().cpu()
    if features.layout == torch.sparse_csr:
        parts = (features.values().numpy(), features.col_indices().numpy(), features.crow_indices().numpy())
        matrix = scipy.sparse.csr_matrix(parts, tuple(features.shape))
        accessor: Any = pd.DataFrame.sparse
        laid_out: pd.DataFrame = accessor.from_spmatrix(matrix, columns=names)
        return laid_out
    return pd.DataFrame(features.numpy(), columns=names)


def _index(owner: Array, ids: Array, many: bool) -> pd.Index[Any]:
    return pd.MultiIndex.from_arrays([owner, ids]) if many else pd.Index(ids, tupleize_cols=False)


def _check(found: Array, values: pd.Series[Any], column: str, what: str) -> None:
    missing = np.flatnonzero(found < 0)
    if len(missing):
        row = int(missing[0])
        raise DataError(f"{what} {quote(_plain(values.iloc[row]))}", "edges", row, column)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _tensor(frame: pd.DataFrame, table: str) -> Tensor:
    """Numbers as a tensor: of their own floating type, or float32."""
    for name in frame.columns:
        if not (pd.api.types.is_numeric_dtype(frame[name]) or pd.api.types.is_bool_dtype(frame[name])):
            raise DataError(
                f"has the type {frame[name].dtype}, expected numbers (load_data encodes other columns)",
                table,
                column=str(name),
            )
    if frame.shape[1] and all(isinstance(dtype, pd.SparseDtype) for dtype in frame.dtypes):
        accessor: Any = frame.sparse
        matrix = accessor.to_coo().tocsr()
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr.astype(np.int64)),
            torch.from_numpy(matrix.indices.astype(np.int64)),
            torch.from_numpy(matrix.data),
            matrix.shape,
            check_invariants=True,
        )
    wide = frame.shape[1] and all(dtype == np.float64 for dtype in frame.dtypes)
    values = frame.to_numpy(dtype=np.float64 if wide else np.float32, na_value=np.nan)
    return torch.from_numpy(np.array(values))
