"""Groupings: the rows of one table that belong to each row of another, as the edges of a node."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from censnet.data.dataset import Dataset
from censnet.data.tables.columns import as_arrow
from censnet.levels import Level
from censnet.ops.arrays import Array
from censnet.ops.graph_set import GraphSet


@dataclass(frozen=True, eq=False)
class Grouping:
    """Rows of one table that belong to rows of another.

    Args:
        members, owners: the two tables.
        words: the members, as seen from an owner.
        member, owner: pairs of rows, counted from 0.
    """

    members: str
    owners: str
    words: str
    member: Array
    owner: Array

    def of(self, owners: Array, count: int) -> Grouping:
        """The members of some owners, these numbered from 0; `count` is that of all."""
        number = np.full(count, -1)
        number[owners] = np.arange(len(owners))
        kept = number[self.owner] >= 0
        return Grouping(self.members, self.owners, self.words, self.member[kept], number[self.owner[kept]])


def find_groupings(data: Dataset) -> list[Grouping]:
    """The groupings of the rows of all tables, read from the tensors."""
    frames, found = data.tables.frames(), list[Grouping]()
    if {"nodes", "edges"} <= frames.keys():
        source, target = edge_ends(data)
        rows = np.flatnonzero((source >= 0) & (target >= 0))
        source, target = source[rows], target[rows]
        both = np.concatenate([source, target]), np.concatenate([rows, rows])
        found.append(Grouping("edges", "nodes", "its edges", both[1], both[0]))
        found.append(Grouping("edges", "nodes", "the edges that start there", rows, source))
        found.append(Grouping("edges", "nodes", "the edges that end there", rows, target))
    if "graphs" in frames and isinstance(data.graph, GraphSet):
        first = _first_rows(data.rows("graph").numpy(), len(data.graph))
        for level in data.tables.by_level:
            if level is not Level.GRAPH:
                graph, place = first[level.owners(data.graph).numpy()], data.rows(level).numpy()
                rows = np.flatnonzero(place >= 0)
                found.append(Grouping(level.table, "graphs", f"its {level.table}", rows, graph[place[rows]]))
    return found


def edge_ends(data: Dataset) -> tuple[Array, Array]:
    """For each row of the edges, the rows of its source and its target in the table of nodes; -1 for a bad row."""
    frames, place = data.tables.frames(), data.rows("edge").numpy()
    first = _first_rows(data.rows("node").numpy(), data.count("node"))
    ends = np.full((2, len(place)), -1)
    good = place >= 0
    ends[:, good] = first[data.graph.global_ends.cpu().numpy()[:, place[good]]]
    name, source = data.schema.nodes.keys.get("id"), data.schema.edges.keys.get("source")
    if name in frames["nodes"] and source in frames["edges"]:  # the tensors do not say which end is the source
        ids, start = as_arrow(frames["nodes"][name]).cast(pa.string()), as_arrow(frames["edges"][source])
        other = pc.not_equal(ids.take(pa.array(np.maximum(ends[0], 0))), start.cast(pa.string())).fill_null(False)
        swapped = np.asarray(other) & good
        ends[:, swapped] = ends[::-1, swapped]
    return ends[0], ends[1]


def _first_rows(became: Array, count: int) -> Array:
    """For each row of the tensors, the first input row that became it; -1 if none did."""
    source = np.full(count, -1)
    good = np.flatnonzero(became >= 0)[::-1]
    source[became[good]] = good
    return source
