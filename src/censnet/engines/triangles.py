"""Triangles by SQL: the pairs of edges of each edge, their number, and sums of the labels of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from torch import Tensor

from censnet.engines.columns import Group
from censnet.engines.engine import Engine
from censnet.engines.graph_tables import PART
from censnet.engines.works import GraphTables
from censnet.ops.triangles import MAX_DEGREE, TYPES
from censnet.tasks.inputs import ModelInputs

COUNTS, PRODUCTS = "triangles", "products"  # groups of columns of edges
SUMS = 4  # of labels, for each target and type of a pair


@dataclass
class KnownTriangles:
    """The triangles of the edges of a batch, in the place of `ops.triangles.Triangles`.

    Args:
        count: the number of pairs of each type. (E, types)
        sums: the sums of labels of each target, in the order in which they are asked for. (E, targets * types * 4)
    """

    count: Tensor
    sums: Tensor | None
    asked: int = 0

    def label_sums(self, values: Tensor, known: Tensor) -> Tensor:
        """The sums of the labels of the next target. (E, types, 4)"""
        assert self.sums is not None
        width, self.asked = self.count.shape[1] * SUMS, self.asked + 1
        found = self.sums[:, (self.asked - 1) * width : self.asked * width]
        return found.reshape(len(found), self.count.shape[1], SUMS)


def add_triangles(engine: Engine, tables: GraphTables, directed: bool) -> GraphTables:
    """The tables with the number of the triangles of each edge; the pairs are in the table `triangles`."""
    near = "CASE WHEN b.touching < a.touching THEN 1 ELSE 0 END"
    asked = (
        f"SELECT e.edge, e.s, e.t, {near} AS near FROM {tables.edges} e JOIN {tables.nodes} a ON a.node = e.s "
        f"JOIN {tables.nodes} b ON b.node = e.t WHERE e.s <> e.t AND least(a.touching, b.touching) <= {MAX_DEGREE}"
    )
    around = (
        f"SELECT s AS node, t AS other, edge, 1 AS leaves FROM {tables.edges} WHERE s <> t UNION ALL "
        f"SELECT t AS node, s AS other, edge, 0 AS leaves FROM {tables.edges} WHERE s <> t"
    )
    # f joins the near end and a third node, g joins that and the far end
    near_end, far_end = "CASE WHEN e.near = 0 THEN e.s ELSE e.t END", "CASE WHEN e.near = 0 THEN e.t ELSE e.s END"
    pairs = (
        f"SELECT e.edge, e.near, f.edge AS f, g.edge AS g, f.leaves AS f_leaves, g.leaves AS g_leaves FROM ({asked}) e "
        f"JOIN ({around}) f ON f.node = {near_end} JOIN ({around}) g ON g.node = f.other AND g.other = {far_end} "
        f"WHERE f.other <> {far_end}"
    )
    kind = (
        "CASE WHEN near = 0 THEN 2 * (1 - f_leaves) + (1 - g_leaves) ELSE 2 * g_leaves + f_leaves END"
        if directed
        else "0"
    )
    first, second = (f"CASE WHEN near = 0 THEN {one} ELSE {other} END" for one, other in (("f", "g"), ("g", "f")))
    engine.query(
        "triangles", f"SELECT edge, {first} AS first, {second} AS second, {kind} AS kind FROM ({pairs}) every_pair"
    )
    group = Group(COUNTS, TYPES[directed])
    each = [
        f"CAST(sum(CASE WHEN kind = {number} THEN 1 ELSE 0 END) AS FLOAT) AS {name}"
        for number, name in enumerate(group.columns)
    ]
    counts = f"SELECT edge, {', '.join(each)} FROM triangles GROUP BY edge"
    return _with_group(engine, tables, group, counts, "edges_triangles")


def add_products(engine: Engine, tables: GraphTables, inputs: ModelInputs, hidden: int, name: str) -> GraphTables:
    """The tables with the sums of labels over triangles.

    Args:
        engine: that computes it.
        tables: with triangles.
        inputs: of the model.
        hidden: the fold whose labels are not shown.
        name: of the table of edges.
    """
    types, targets = TYPES[inputs.directed], [target for target in inputs.known if target.level == "edge"]
    group, values, sums = Group(PRODUCTS, len(inputs.balanced) * types * SUMS), list[str](), list[str]()
    for place in inputs.balanced:
        for edge in ("f", "g"):
            known = f"{edge}.{PART.name} > 0 AND {edge}.{PART.name} <> {hidden} AND NOT isnan({edge}.label_{place})"
            label = f"2 * {edge}.label_{place} - 1" if targets[place].kind == "binary" else f"{edge}.label_{place}"
            values.append(f"CASE WHEN {known} THEN {label} ELSE 0 END AS {edge}{place}")
            values.append(f"CASE WHEN {known} THEN 1 ELSE 0 END AS {edge}{place}_known")
        both = f"f{place}_known * g{place}_known"
        for kind in range(types):
            for value in (f"f{place} * {both}", f"g{place} * {both}", f"f{place} * g{place}", both):
                sums.append(f"CAST(sum(CASE WHEN kind = {kind} THEN {value} ELSE 0 END) AS FLOAT)")
    rows = (
        f"SELECT p.edge, p.kind, {', '.join(values)} FROM triangles p JOIN {tables.edges} f ON f.edge = p.first "
        f"JOIN {tables.edges} g ON g.edge = p.second"
    )
    named = ", ".join(f"{value} AS {column}" for value, column in zip(sums, group.columns, strict=True))
    return _with_group(engine, tables, group, f"SELECT edge, {named} FROM ({rows}) every_pair GROUP BY edge", name)


def _with_group(engine: Engine, tables: GraphTables, group: Group, sql: str, name: str) -> GraphTables:
    """The tables with further columns of edges, 0 where the query has no row."""
    columns = ", ".join(f"CAST(coalesce(q.{column}, 0) AS FLOAT) AS {column}" for column in group.columns)
    engine.query(name, f"SELECT e.*, {columns} FROM {tables.edges} e LEFT JOIN ({sql}) q ON q.edge = e.edge")
    return replace(tables, edges=name, edge_groups={**tables.edge_groups, group.name: group})


def known_triangles(edges: Mapping[str, Tensor]) -> KnownTriangles:
    """The triangles of a batch of edges."""
    return KnownTriangles(edges[COUNTS], edges.get(PRODUCTS))
