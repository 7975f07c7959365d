"""networkx graphs, with nodes of any names and attributes, as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from censnet.data.tables.files import Tables
from censnet.errors import DataError, MissingDependencyError

try:
    import networkx as nx
except ImportError:  # an extra
    nx = None

KEYS = ("id", "source", "target", "key", "graph")


def is_networkx(graph: object) -> bool:
    """Whether this is a networkx graph."""
    return nx is not None and isinstance(graph, nx.Graph)


def from_networkx(graph: Any) -> Tables:
    """The nodes and edges of a networkx graph as tables, in its order.

    Nodes keep their names, of any type. An attribute that some nodes lack is a missing value there. The edges of a
    DiGraph are directed, those of a Graph are not. A multigraph has a column `key`, and an attribute that is called
    like a key, as `id`, is `id_` here.
    """
    if nx is None:
        raise MissingDependencyError("networkx is not installed: pip install networkx")
    if not is_networkx(graph):
        raise DataError(f"graph is a {type(graph).__name__}, expected a networkx graph")
    names = list(graph)
    nodes = {"id": _column(names), **_attributes([graph.nodes[name] for name in names])}
    triples = list(graph.edges(keys=True, data=True)) if graph.is_multigraph() else list(graph.edges(data=True))
    edges = {"source": _column([edge[0] for edge in triples]), "target": _column([edge[1] for edge in triples])}
    if graph.is_multigraph():
        edges["key"] = _column([edge[2] for edge in triples])
    edges |= _attributes([edge[-1] for edge in triples])
    return Tables(nodes=pd.DataFrame(nodes), edges=pd.DataFrame(edges), directed=graph.is_directed())


def _attributes(rows: Sequence[Mapping[Any, Any]]) -> dict[Any, Any]:
    """A column for each attribute that occurs, in the order in which they do."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {_escape(name): _column([row.get(name, pd.NA) for row in rows]) for name in names}


def _column(values: list[Any]) -> Any:
    """Values as a column that gives them back as they were: of one plain type if they all are, else as objects."""
    kinds = {type(value) for value in values}
    kinds.discard(type(pd.NA))
    whole = not any(value is pd.NA for value in values)
    if kinds == {int} and all(value is pd.NA or -(2**63) <= value < 2**63 for value in values):
        return np.array(values, dtype=np.int64) if whole else pd.array(values, dtype="Int64")
    if kinds == {float} and (whole or all(value is pd.NA or value == value for value in values)):
        return np.array(values, dtype=np.float64) if whole else pd.array(values, dtype="Float64")
    if kinds == {bool}:
        return np.array(values, dtype=bool) if whole else pd.array(values, dtype="boolean")
    column = np.empty(len(values), dtype=object)
    column[:] = [None] * len(values)
    for row, value in enumerate(values):
        column[row] = value
    return pd.Series(column, dtype=object)


def _escape(name: Any) -> Any:
    """A name that is not the name of a key: `id` is `id_`, and `id_` is `id__`."""
    return f"{name}_" if isinstance(name, str) and name.rstrip("_") in KEYS else name
