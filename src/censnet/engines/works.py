"""Steps as functions of Arrow batches: what edges add to sums, and the new rows of nodes and of edges."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import torch
import torch.nn.functional as F
from torch import Tensor

from censnet.engines.batches import (
    EDGE_COUNTS,
    NODE_COUNTS,
    BatchIncidence,
    Kind,
    Recorded,
    Sums,
    edge_batch,
    node_batch,
)
from censnet.engines.columns import Group, read_integers, schema_of, write_batch

Tensors = Mapping[str, Tensor]
LEAST = Group("least", 2, torch.float64)


class Rows(NamedTuple):
    """A graph, or a batch in its place: the tensors of its nodes and edges by name."""

    nodes: Tensors
    edges: Tensors
    incidence: BatchIncidence


Step = Callable[[Rows], tuple[Tensors | None, Tensors | None]]  # the new tensors of nodes and of edges; None: as before


@dataclass(frozen=True)
class GraphTables:
    """The tables of a graph: one row for each node, and for each edge, with its tensors as groups of columns.

    Args:
        nodes, edges: their names.
        node_groups, edge_groups: the tensors of each, by name.
        node_keys, edge_keys: the other columns of each, with their types.
    """

    nodes: str
    edges: str
    node_groups: Mapping[str, Group]
    edge_groups: Mapping[str, Group]
    node_keys: Mapping[str, pa.DataType]
    edge_keys: Mapping[str, pa.DataType]


@dataclass(frozen=True)
class SumRequest:
    """A sum that a step asks for.

    Args:
        number: its place among the sums of the step.
        kind: what it is over.
        width, dtype: of what each edge adds.
        level: how many passes come before the one that records it.
        reads_nodes: whether what an edge adds depends on its nodes.
    """

    number: int
    kind: Kind
    width: int
    dtype: torch.dtype
    level: int
    reads_nodes: bool

    @property
    def group(self) -> Group:
        """The columns that hold the sum of each node; or of each edge, those over parallel and over reciprocal ones."""
        return Group(f"q{self.number}", self.width * (2 if self.kind == "pair" else 1), self.dtype)


@dataclass(frozen=True, kw_only=True)
class EdgeWork:
    """A step on a batch of edges beside their nodes.

    Args:
        step: the function.
        tables: whose rows these are.
        sums: those that are known, in columns of the nodes or of the edge.
        reads_nodes: whether the nodes are there.
    """

    step: Step
    tables: GraphTables
    sums: Sequence[SumRequest]
    reads_nodes: bool

    def rows(self, batch: pa.RecordBatch, wanted: Sequence[int] = ()) -> Rows:
        """The batch as a graph."""
        edges = {name: group.read(batch) for name, group in self.tables.edge_groups.items()}
        counts = {name: read_integers(batch, name) for name in EDGE_COUNTS if name in self.tables.edge_keys}
        if LEAST.columns[0] in self.tables.edge_keys:
            counts[LEAST.name] = LEAST.read(batch)
        known = {one.number: one.group.read(batch) for one in self.sums if one.kind == "pair"}
        loop = read_integers(batch, "s") == read_integers(batch, "t")
        if not self.reads_nodes:
            count = 2 * batch.num_rows
            nodes = {name: torch.zeros(count, one.width, dtype=one.dtype) for name, one in self._node_groups}
            return Rows(nodes, edges, edge_batch(loop, counts, {}, {}, Sums(known, wanted)))
        start, end = ({name: read_integers(batch, f"{at}_{name}") for name in NODE_COUNTS} for at in "ab")
        nodes = {name: _read_both(group, batch) for name, group in self._node_groups}
        known |= {one.number: _read_both(one.group, batch) for one in self.sums if one.kind != "pair"}
        return Rows(nodes, edges, edge_batch(loop, counts, start, end, Sums(known, wanted)))

    @property
    def _node_groups(self) -> list[tuple[str, Group]]:
        return list(self.tables.node_groups.items())


def _read_both(group: Group, batch: pa.RecordBatch) -> Tensor:
    """The rows of the nodes where edges start, and behind them of those where they end."""
    return torch.cat([group.read(batch, f"{end}_") for end in "ab"])


@dataclass(frozen=True, kw_only=True)
class Collect(EdgeWork):
    """What the edges of a batch add to the sums of a pass, one row for each node of an edge: its key, and the numbers.

    Where the two ends of an edge add to different sums, the key is twice the node, and one more at the end of an edge.
    Sums between two nodes have a row for each edge, whose keys are both nodes.

    Args:
        wanted: the sums.
    """

    wanted: Sequence[SumRequest]

    @property
    def is_sided(self) -> bool:
        """Whether the two ends of an edge add to different sums."""
        return any(one.kind in ("start", "end") for one in self.wanted)

    @property
    def by_pair(self) -> bool:
        """Whether the sums are over the edges between two nodes."""
        return self.wanted[0].kind == "pair"

    @property
    def group(self) -> Group:
        """The columns of what is added."""
        exact = any(one.dtype == torch.float64 for one in self.wanted)
        width = max(sum(one.width for one in self.of(end)) for end in ("start", "end"))
        return Group("c", width, torch.float64 if exact else torch.float32)

    def of(self, end: str) -> list[SumRequest]:
        """The sums that an end of an edge adds to, in the order of the columns."""
        return [one for one in self.wanted if one.kind in (end, "ends", "pair")]

    @property
    def schema(self) -> pa.Schema:
        """Of what is added."""
        names = ("s", "t") if self.by_pair else ("key",)
        return schema_of(dict.fromkeys(names, pa.int64()), [self.group])

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        graph = self.rows(batch, [one.number for one in self.wanted])
        with torch.no_grad(), suppress(Recorded):
            self.step(graph)
        found = {number: one.rows.to(self.group.dtype) for number, one in graph.incidence.sums.recorded.items()}
        keys = [batch.column("s"), batch.column("t")]
        if self.by_pair:
            added = torch.cat([found[one.number] for one in self.wanted], dim=1)
            return write_batch(self.schema, keys, [(self.group, added)])
        ends, parts = graph.incidence.ends, list[Tensor]()
        for end, row in (("start", ends[0]), ("end", ends[0] + batch.num_rows)):
            # a loop has one node, at its start, and no row of a second one
            own = [found[one.number][ends[1] if one.kind == "end" else row] for one in self.of(end)]
            added = torch.cat(own, dim=1) if own else torch.zeros(batch.num_rows, 0, dtype=self.group.dtype)
            parts.append(F.pad(added, (0, self.group.width - added.shape[1])))
        if self.is_sided:
            keys = [pc.add(pc.multiply(key, 2), side) for side, key in enumerate(keys)]
        return write_batch(self.schema, [_concatenate(keys)], [(self.group, torch.cat(parts))])


def _concatenate(keys: Sequence[pa.Array]) -> pa.Array:
    return pa.concat_arrays([key.combine_chunks() if isinstance(key, pa.ChunkedArray) else key for key in keys])


@dataclass(frozen=True, kw_only=True)
class UpdateEdges(EdgeWork):
    """The rows of edges that a step gives.

    Args:
        out: the groups of these.
    """

    out: Mapping[str, Group]

    @property
    def schema(self) -> pa.Schema:
        """Of the new table."""
        return schema_of(self.tables.edge_keys, self.out.values())

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        with torch.no_grad():
            found = self.step(self.rows(batch))[1]
        return _write_side(batch, self.schema, self.tables.edge_keys, self.out, found)


@dataclass(frozen=True, kw_only=True)
class UpdateNodes:
    """The rows of nodes that a step gives, from their own and the sums over their edges.

    Args:
        step, tables, sums, out: as in `UpdateEdges`.
    """

    step: Step
    tables: GraphTables
    sums: Sequence[SumRequest]
    out: Mapping[str, Group]

    @property
    def schema(self) -> pa.Schema:
        """Of the new table."""
        return schema_of(self.tables.node_keys, self.out.values())

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        nodes = {name: group.read(batch) for name, group in self.tables.node_groups.items()}
        edges = {name: torch.zeros(0, one.width, dtype=one.dtype) for name, one in self.tables.edge_groups.items()}
        counts = {name: read_integers(batch, name) for name in NODE_COUNTS}
        known = {
            one.number: torch.zeros(0, one.group.width, dtype=one.dtype)
            if one.kind == "pair"
            else one.group.read(batch)
            for one in self.sums
        }
        with torch.no_grad():
            found = self.step(Rows(nodes, edges, node_batch(counts, Sums(known, ()))))[0]
        return _write_side(batch, self.schema, self.tables.node_keys, self.out, found)


def _write_side(
    batch: pa.RecordBatch,
    schema: pa.Schema,
    keys: Mapping[str, object],
    out: Mapping[str, Group],
    found: Tensors | None,
) -> pa.RecordBatch:
    assert found is not None
    return write_batch(
        schema, [batch.column(name) for name in keys], [(group, found[name]) for name, group in out.items()]
    )
