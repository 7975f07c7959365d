"""The head of graphs on tables: the embeddings of nodes and edges are summed by graph, and a map does the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import torch
from torch import Tensor

from censnet.engines.columns import Group, columns_of, read_integers, schema_of, write_batch
from censnet.engines.engine import Engine
from censnet.engines.works import GraphTables
from censnet.nn.heads import GraphHead
from censnet.ops.caching import unchecked
from censnet.ops.graph import Graph
from censnet.ops.incidence import Incidence
from censnet.runs.uncertainty import Uncertainty

SIDES = ("node", "edge")


class PooledIncidence(Incidence):
    """Graphs whose nodes and edges are summed already.

    Args:
        sums: side -> the sum over each graph. (graphs, width)
        counts: side -> the number in each graph. (graphs,)
    """

    sums: Mapping[str, Tensor]
    counts: Mapping[str, Tensor]

    def pool(self, rows: Tensor, side: str) -> Tensor:
        return self.sums[side]

    def count(self, side: str) -> Tensor:
        return self.counts[side]


@dataclass(frozen=True)
class PoolGraphs:
    """The outputs of graphs, as a function of Arrow batches of them with their sums.

    Args:
        head: of the model.
        groups: side -> the columns of its sums.
        own: the tensors of graphs.
        uncertainty: that measures how far a graph is from training graphs; None where nobody asks.
        width: of the outputs.
    """

    head: GraphHead
    groups: Mapping[str, Group]
    own: Mapping[str, Group]
    uncertainty: Uncertainty | None
    width: int

    @property
    def out(self) -> list[Group]:
        """The columns of the outputs."""
        return [Group("out", self.width), *([Group("far", 1)] if self.uncertainty is not None else [])]

    @property
    def schema(self) -> pa.Schema:
        """Of the outputs."""
        return schema_of(dict.fromkeys(("graph", "nodes", "edges"), pa.int64()), self.out)

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        counts = {side: read_integers(batch, f"{side}s") for side in SIDES}
        incidence = unchecked(
            PooledIncidence,
            ends=torch.zeros(2, 0, dtype=torch.int64),
            num_nodes=0,
            owner=None,
            num_graphs=batch.num_rows,
            sums={side: group.read(batch) for side, group in self.groups.items()},
            counts=counts,
        )
        nodes, edges = (torch.zeros(0, self.groups[side].width) for side in SIDES)
        features = self.own["x"].read(batch) if self.own.get("x", Group("x", 0)).width else None
        graph = Graph.from_incidence(nodes, edges, incidence, features)
        with torch.no_grad():
            found = [self.head(nodes, edges, graph).float()]
            if self.uncertainty is not None:
                found.append(self.uncertainty.watch("graph", self.head.embed(nodes, edges, graph).float()))
        keys = [batch.column(name) for name in ("graph", "nodes", "edges")]
        return write_batch(self.schema, keys, zip(self.out, found, strict=True))


def pool_graphs(
    engine: Engine,
    tables: GraphTables,
    own: Mapping[str, Group],
    head: GraphHead,
    uncertainty: Uncertainty | None,
    name: str,
) -> str:
    """The table of the outputs of graphs: `graph`, the number of its `nodes` and `edges`, and those groups.

    Args:
        engine: that computes it.
        tables: with the embeddings.
        own: the tensors of graphs, in `graphs_base`.
        head, uncertainty: as in `PoolGraphs`.
        name: that no table has.
    """
    groups, columns, joins = dict[str, Group](), ["g.graph AS graph"], ""
    columns += [f"g.{column} AS {column}" for column in columns_of(own.values())]
    for side, table, group in zip(SIDES, (tables.nodes, tables.edges), _embedded(tables), strict=True):
        groups[side] = Group(f"{side}_sum", group.width)
        sums = ", ".join(f"sum({one}) AS {to}" for one, to in zip(group.columns, groups[side].columns, strict=True))
        more = f", {sums}" if sums else ""
        joins += f" LEFT JOIN (SELECT graph, count(*) AS total{more} FROM {table} GROUP BY graph) {side}_of"
        joins += f" ON {side}_of.graph = g.graph"
        columns.append(f"CAST(coalesce({side}_of.total, 0) AS BIGINT) AS {side}s")
        columns += [f"CAST(coalesce({side}_of.{one}, 0) AS FLOAT) AS {one}" for one in groups[side].columns]
    work = PoolGraphs(head, groups, own, uncertainty, head.out_width)
    engine.map(name, f"SELECT {', '.join(columns)} FROM graphs_base g{joins}", work, work.schema)
    return name


def _embedded(tables: GraphTables) -> tuple[Group, Group]:
    return tables.node_groups["x"], tables.edge_groups["x"]
