"""The levels of prediction: nodes, edges, whole graphs, and links between nodes."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Protocol

import torch
from torch import Tensor

from censnet.errors import DataError, quote


class Features(Protocol):
    """A graph, or a set of graphs, with the features of its nodes, its edges and itself."""

    @property
    def nodes(self) -> Tensor: ...

    @property
    def edges(self) -> Tensor: ...

    @property
    def graph_features(self) -> Tensor | None: ...


class GraphRows(Protocol):
    """A set of graphs packed end to end, as `GraphSet` is."""

    @property
    def node_offset(self) -> Tensor: ...

    @property
    def edge_offset(self) -> Tensor: ...


class Level(StrEnum):
    """A level of prediction. It is its own name, as the user writes it: `Level.NODE == "node"`.

    Example:
        >>> Level("edge").table, [level.table for level in Level]
        ('edges', ['nodes', 'edges', 'graphs', 'links'])
        >>> Level("vertex")
        Traceback (most recent call last):
        censnet.errors.DataError: level is 'vertex', expected node, edge, graph or link
    """

    NODE = "node"
    EDGE = "edge"
    GRAPH = "graph"
    LINK = "link"

    @classmethod
    def _missing_(cls, value: object) -> Level:
        raise DataError(f"level is {quote(value)}, expected {_any_of(cls)}")

    @classmethod
    def of_column(cls, level: str) -> Level:
        """A level whose labels are a column of the user's table: any but links."""
        if level not in COLUMN_LEVELS:
            raise DataError(f"level is {quote(level)}, expected {_any_of(COLUMN_LEVELS)}")
        return cls(level)

    @classmethod
    def of_table(cls, table: str) -> Level:
        """The level of a table: `node` for `nodes`."""
        return next(level for level in cls if level.table == table)

    @property
    def keys(self) -> tuple[str, ...]:
        """The roles of the columns that say which row of its table is which; see `data.tables.keys`."""
        return _KEYS[self]

    @property
    def made_keys(self) -> dict[str, str]:
        """Role -> column of its table where the table is made: of nodes that only the edges name, say."""
        return {role: role for role in self.keys[: 2 if self is Level.EDGE else 1]}

    @property
    def takes_columns(self) -> bool:
        """Whether every column of its table is a feature; of a graph only those that the user chose are."""
        return self is not Level.GRAPH

    @property
    def table(self) -> str:
        """Its table, and its plural: `nodes` for `node`. That of links is in split files alone."""
        return f"{self}s"

    def features(self, graph: Features) -> Tensor | None:
        """The tensor of the features of this level in a graph, or in a set of them."""
        return {Level.NODE: graph.nodes, Level.EDGE: graph.edges, Level.GRAPH: graph.graph_features}[self]

    def offset(self, graphs: GraphRows) -> Tensor:
        """The first row of each graph of a set, and the number of all rows; a row of this level is in one graph."""
        if self is Level.GRAPH:
            return torch.arange(len(graphs.node_offset), device=graphs.node_offset.device)
        return graphs.node_offset if self is Level.NODE else graphs.edge_offset

    def owners(self, graphs: GraphRows) -> Tensor:
        """The graph of each row of this level in a set of graphs."""
        count = self.offset(graphs).diff()
        return torch.arange(len(count), device=count.device).repeat_interleave(count)

    def rows_of(self, graphs: GraphRows, numbers: Tensor) -> Tensor:
        """The rows of this level that belong to some graphs of a set, graph by graph."""
        offset = self.offset(graphs)
        start, count = offset[numbers], offset.diff()[numbers]
        first = count.cumsum(0) - count
        total = int(count.sum())
        return torch.arange(total, device=numbers.device) + (start - first).repeat_interleave(count, output_size=total)


_KEYS = {
    Level.NODE: ("id", "graph"),
    Level.EDGE: ("source", "target", "graph"),
    Level.GRAPH: ("graph", "smiles"),
}
COLUMN_LEVELS = tuple(_KEYS)  # those with a table of the user's
MOLECULE_LEVELS = {"atom": Level.NODE, "bond": Level.EDGE}  # the words of chemistry, for data that are molecules


def main_level(levels: Iterable[str]) -> Level:
    """The level whose settings a model has that predicts all of these: the first, but edges before nodes.

    Settings for nodes are for few labels as well, of which edges then learn little; with those for edges nodes were as
    good or better. Without a level it is that of links.

    >>> main_level(["node", "edge"]), main_level(["graph", "node", "edge"]), main_level([])
    (<Level.EDGE: 'edge'>, <Level.GRAPH: 'graph'>, <Level.LINK: 'link'>)
    """
    found = [Level(level) for level in levels]
    if not found:
        return Level.LINK
    return Level.EDGE if found[0] is Level.NODE and Level.EDGE in found else found[0]


def _any_of(levels: Iterable[Level]) -> str:
    *first, last = levels
    return f"{', '.join(first)} or {last}"
