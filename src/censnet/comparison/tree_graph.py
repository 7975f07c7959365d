"""The tables of a graph by numbers, as boosted trees read them, and aggregates of their columns around a node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from censnet.errors import DataError
from censnet.ops.arrays import Array

MOST_CATEGORIES = 250  # of a column that trees split by category; the rarer ones are one


class Side(NamedTuple):
    """The edges of one direction around their nodes: for each such end of an edge the node there, and the other one.

    Args:
        way: outgoing, incoming, or incident where edges have no direction.
        node, neighbor: the node that has the edge, and the one at its other end.
        edge: the edge. A loop of an undirected graph is there once.
    """

    way: str
    node: Array
    neighbor: Array
    edge: Array


@dataclass(frozen=True, eq=False)
class TreeGraph:
    """A graph of tables by numbers: what trees may see besides labels.

    Args:
        source, target: (E,) ends, counted from 0 over all graphs.
        nodes, edges: input columns, numbers or codes of categories, (N, .) and (E, .).
        categories: names of the columns that are codes.
        directed: whether the order of the two ends of an edge means something.
        neighbors, incident: (N, .) and (E, .) numbers that describe nodes to their neighbors, and edges to their ends;
            None is the columns that are numbers.
    """

    source: Array
    target: Array
    nodes: pd.DataFrame
    edges: pd.DataFrame
    categories: frozenset[str] = frozenset()
    directed: bool = True
    neighbors: pd.DataFrame | None = None
    incident: pd.DataFrame | None = None

    @property
    def num_nodes(self) -> int:
        return len(self.nodes)

    @property
    def node_numbers(self) -> pd.DataFrame:
        """The columns of nodes of which there are aggregates."""
        if self.neighbors is not None:
            return self.neighbors
        return self.nodes[[name for name in self.nodes if name not in self.categories]]

    @property
    def edge_numbers(self) -> pd.DataFrame:
        """The columns of edges of which there are aggregates."""
        if self.incident is not None:
            return self.incident
        return self.edges[[name for name in self.edges if name not in self.categories]]

    @property
    def sides(self) -> list[Side]:
        """Outgoing and incoming edges of all nodes, or those that are incident."""
        u, v, every = self.source, self.target, np.arange(len(self.source))
        if self.directed:
            return [Side("outgoing", u, v, every), Side("incoming", v, u, every)]
        two = u != v
        ends = [np.concatenate([one, other[two]]) for one, other in ((u, v), (v, u), (every, every))]
        return [Side("incident", *ends)]

    @classmethod
    def of(
        cls,
        edges: pd.DataFrame,
        nodes: pd.DataFrame | None = None,
        edge_columns: Sequence[str] = (),
        node_columns: Sequence[str] = (),
    ) -> TreeGraph:
        """Number the ends of edges, and encode the input columns.

        Args:
            edges: with source, target, and graph where there are many graphs.
            nodes: with id, and graph likewise; the nodes are the ends of edges if None.
            edge_columns, node_columns: the inputs. Targets and columns that give them away must not be among them.
        """
        many = "graph" in edges
        key = [_keys(edges, end, many) for end in ("source", "target")]
        ids = pd.Index(key[0].append(key[1]).unique()) if nodes is None else _keys(nodes, "id", many)
        source, target = (ids.get_indexer(one) for one in key)
        if min(source.min(initial=0), target.min(initial=0)) < 0:
            raise DataError("an edge has an end that is no id of the nodes")
        tables, categories = [], set()
        for frame, columns, count in ((nodes, node_columns, len(ids)), (edges, edge_columns, len(edges))):
            coded = {}
            for column in columns:
                if frame is None:
                    raise DataError(f"there is no table of nodes for the column {column}")
                values = frame[column]
                if pd.api.types.is_numeric_dtype(values):
                    coded[column] = values.to_numpy(np.float64, na_value=np.nan)
                else:
                    frequent = values.value_counts().index[:MOST_CATEGORIES]
                    coded[column] = frequent.get_indexer(pd.Index(values)).astype(np.float64)
                    coded[column][coded[column] < 0] = len(frequent)
                    categories.add(column)
            tables.append(pd.DataFrame(coded, index=range(count)))
        return cls(source, target, tables[0], tables[1], frozenset(categories))


def aggregates(columns: pd.DataFrame, group: Array, asked: Array, count: int, name: str) -> dict[str, Array]:
    """Mean, minimum and maximum of each column by group, at the groups that are asked; NaN where a group is empty.

    Of a column of 0 and 1 alone there is the mean, which says it all.
    """
    if columns.shape[1] == 0:
        return {}
    found: dict[str, Array] = {}
    several = columns[[column for column in columns if not columns[column].isin((0, 1)).all()]]
    for how, some in (("mean", columns), ("min", several), ("max", several)):
        table = some.groupby(group).agg(how).reindex(range(count)) if some.shape[1] else some
        found |= {f"{name}: {column} {how}": table[column].to_numpy()[asked] for column in some}
    return found


def count_neighbors(side: Side, num_nodes: int) -> Array:
    """The number of distinct neighbors of each node on one side. (N,)"""
    first = ~pd.Series(side.node * num_nodes + side.neighbor).duplicated().to_numpy()
    return np.bincount(side.node[first], minlength=num_nodes)


def as_features(found: dict[str, Array], count: int) -> pd.DataFrame:
    """Named features as a table of float32, the precision of the bins of a tree."""
    return pd.DataFrame({name: values.astype(np.float32) for name, values in found.items()}, index=range(count))


def _keys(frame: pd.DataFrame, column: str, many: bool) -> pd.Index:
    return pd.MultiIndex.from_frame(frame[["graph", column]]) if many else pd.Index(frame[column])
