"""To and from networkx: graphs of any names and attributes as tables, and tables as such graphs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from censnet.data.interop.pandas_tables import to_pandas
from censnet.data.tables.files import Tables
from censnet.errors import DataError, MissingDependencyError
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet

try:
    import networkx as nx
except ImportError:  # an extra
    nx = None

KEYS = ("id", "source", "target", "key", "graph")


@dataclass(frozen=True, eq=False)
class FromNetworkx:
    """A networkx graph as `tables`, and what no table holds.

    Args:
        tables: `nodes` with `id` and a column for each attribute, `edges` with `source`, `target`, for a multigraph
            `key`, and a column for each attribute. An attribute called like one of these, as `id`, is `id_` here.
        directed: whether it was; a row then runs from `source` to `target`.
        attributes: of the graph itself.
    """

    tables: Tables
    directed: bool = False
    attributes: dict[Any, Any] = field(default_factory=dict)

    def to_networkx(self) -> Any:
        """The graph that was read: the same class, names, attributes, keys and order."""
        graph = to_networkx(self.tables, directed=self.directed)
        graph.graph.update(self.attributes)
        return graph


def is_networkx(graph: object) -> bool:
    """Whether this is a networkx graph."""
    return nx is not None and isinstance(graph, nx.Graph)


def from_networkx(graph: Any) -> FromNetworkx:
    """The nodes and edges of a networkx graph as tables, in its order.

    Nodes keep their names, of any type. An attribute that some nodes lack is a missing value there. The edges of a
    DiGraph are directed, those of a Graph are not.
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
    tables = Tables(nodes=pd.DataFrame(nodes), edges=pd.DataFrame(edges), directed=graph.is_directed())
    return FromNetworkx(tables, graph.is_directed(), dict(graph.graph))


def to_networkx(source: Graph | GraphSet | Tables, directed: bool = False) -> Any:
    """A networkx graph with the nodes and edges of a graph or of tables, in order.

    It is a multigraph if there is a column `key` or if two edges join the same nodes. Missing values are left out. For
    a set of graphs, the name of a node is (graph, id).

    Args:
        source: the graph, its features as the attributes node_0, ..., edge_0, ...; or tables.
        directed: whether each edge runs from `source` to `target`.
    """
    if nx is None:
        raise MissingDependencyError("networkx is not installed: pip install networkx")
    tables = source if isinstance(source, Tables) else to_pandas(source)
    frame = tables.edges
    if frame is None:
        raise DataError("the tables have no edges, expected a table with source and target")
    first, second = (_names(frame, key) for key in ("source", "target"))
    kind: Any = nx.DiGraph if directed else nx.Graph
    if "key" in frame or _parallel(first, second, directed):
        kind = nx.MultiDiGraph if directed else nx.MultiGraph
    graph = kind()
    if tables.nodes is not None:
        graph.add_nodes_from(zip(_names(tables.nodes, "id"), _dicts(tables.nodes, ("id", "graph")), strict=True))
    data = _dicts(frame, ("source", "target", "key", "graph"))
    if "key" in frame:
        graph.add_edges_from(zip(first, second, frame["key"].tolist(), data, strict=True))
    else:
        graph.add_edges_from(zip(first, second, data, strict=True))
    return graph


def _parallel(first: Sequence[Any], second: Sequence[Any], directed: bool) -> bool:
    pairs: Iterable[Any] = zip(first, second, strict=True)
    return len({pair if directed else frozenset(pair) for pair in pairs}) < len(first)


def _names(frame: pd.DataFrame, key: str) -> list[Any]:
    names: list[Any] = frame[key].tolist()
    return list(zip(frame["graph"].tolist(), names, strict=True)) if "graph" in frame else names


def _dicts(frame: pd.DataFrame, keys: Sequence[str]) -> list[dict[Any, Any]]:
    """The attributes of each row: what is not a key and not missing."""
    rows: list[dict[Any, Any]] = [{} for _ in range(len(frame))]
    for name in frame.columns:
        if name in keys:
            continue
        absent = [value is pd.NA for value in frame[name]]
        for row, value, missing in zip(rows, frame[name].tolist(), absent, strict=True):
            if not missing:
                row[_unescape(name)] = value
    return rows


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
    """A name that is not the name of a key: `id` is `id_`, and `id_` is `id__`, so that both come back."""
    return f"{name}_" if isinstance(name, str) and name.rstrip("_") in KEYS else name


def _unescape(name: Any) -> Any:
    return name[:-1] if isinstance(name, str) and re.fullmatch(f"({'|'.join(KEYS)})_+", name) else name
