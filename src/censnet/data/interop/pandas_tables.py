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
from censnet.errors import ArgumentError
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet


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
