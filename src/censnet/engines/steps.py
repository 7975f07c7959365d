"""A step of a plan: a function of a graph, such as a layer, computed on a table of its nodes and one of its edges.

The function is computed on batches of edges as often as it asks for sums that depend on other sums. Each time what the
edges add is summed by SQL: T z is a GROUP BY on the node, T^t x a JOIN of nodes to edges. Once all sums are known, the
function is computed once more, on nodes or on edges, for its result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from censnet.engines.columns import columns_of
from censnet.engines.engine import Engine
from censnet.engines.passes import plan_step
from censnet.engines.works import Collect, EdgeWork, GraphTables, Step, SumRequest, UpdateEdges, UpdateNodes

SEVERAL = "e.parallel > 1 OR e.reciprocal > 0"  # of an edge: it is not alone between its nodes
PairSums = list[tuple[str, Collect]]  # tables of sums between two nodes


def run_step(engine: Engine, tables: GraphTables, step: Step, name: str) -> GraphTables:
    """The tables after a step, whose names begin with `name`. The tables that it was given stay.

    Args:
        engine: that computes it.
        tables: of the graph.
        step: the function.
        name: with which no other table begins.
    """
    passes, known, pairs = plan_step(step, tables), list[SumRequest](), PairSums()
    summed, made = tables, list[str]()
    for level in sorted({one.level for one in passes.sums}):
        of_level = [one for one in passes.sums if one.level == level]
        for by_pair in (False, True):
            wanted = [one for one in of_level if (one.kind == "pair") == by_pair]
            if not wanted:
                continue
            reads = any(one.reads_nodes for one in wanted)
            work = Collect(step=step, tables=tables, sums=_readable(known, reads), reads_nodes=reads, wanted=wanted)
            source, sums = edge_query(summed, work, pairs, SEVERAL if by_pair else ""), f"{name}_sums{len(made)}"
            engine.sum(sums, source, work, work.schema, work.group)
            made.append(sums)
            if by_pair:
                pairs.append((sums, work))
            else:
                made.append(f"{name}_nodes{len(made)}")
                engine.query(made[-1], _node_query(summed.nodes, work, sums))
                summed = replace(summed, nodes=made[-1])
        known += of_level
    new = tables
    if passes.nodes is not None:
        update = UpdateNodes(step=step, tables=tables, sums=known, out=passes.nodes)
        engine.map(f"{name}_n", f"SELECT * FROM {summed.nodes}", update, update.schema)
        new = replace(new, nodes=f"{name}_n", node_groups=passes.nodes)
    if passes.edges is not None:
        reads = passes.reads_nodes
        edges = UpdateEdges(step=step, tables=tables, sums=_readable(known, reads), reads_nodes=reads, out=passes.edges)
        engine.map(f"{name}_e", edge_query(summed, edges, pairs), edges, edges.schema)
        new = replace(new, edges=f"{name}_e", edge_groups=passes.edges)
    engine.drop(*made)
    return new


def _readable(known: Sequence[SumRequest], reads_nodes: bool) -> list[SumRequest]:
    """The sums that are beside an edge: those at its nodes only where these are read."""
    return [one for one in known if reads_nodes or one.kind == "pair"]


def edge_query(tables: GraphTables, work: EdgeWork, pairs: PairSums, where: str = "") -> str:
    """The edges with what a work reads beside them: columns of their nodes, and sums between two nodes."""
    columns = [f"e.{name}" for name in (*tables.edge_keys, *columns_of(tables.edge_groups.values()))]
    joins = ""
    if work.reads_nodes:
        at_nodes = columns_of([*tables.node_groups.values(), *(one.group for one in work.sums if one.kind != "pair")])
        for end, node in (("a", "s"), ("b", "t")):
            columns += [f"{end}.{name} AS {end}_{name}" for name in (*tables.node_keys, *at_nodes)]
            joins += f" JOIN {tables.nodes} {end} ON {end}.node = e.{node}"
    for number, (table, sums) in enumerate(pairs):
        place = 0
        for one in sums.wanted:
            mine = sums.group.columns[place : place + one.width]
            place += one.width
            both = [(f"p{number}", name) for name in mine] + [(f"r{number}", name) for name in mine]
            columns += [
                f"coalesce({side}.{name}, 0) AS {own}"
                for (side, name), own in zip(both, one.group.columns, strict=True)
            ]
        joins += f" LEFT JOIN {table} p{number} ON p{number}.s = e.s AND p{number}.t = e.t"
        joins += f" LEFT JOIN {table} r{number} ON r{number}.s = e.t AND r{number}.t = e.s"
    return f"SELECT {', '.join(columns)} FROM {tables.edges} e{joins}{' WHERE ' + where if where else ''}"


def _node_query(nodes: str, work: Collect, sums: str) -> str:
    """The nodes with the sums over their edges in further columns."""
    place, columns = {"start": 0, "end": 0}, list[str]()
    for one in work.wanted:
        sides = [end for end in place if one.kind in (end, "ends")]
        for number, name in enumerate(one.group.columns):
            of_sides = [f"coalesce({end}_of.{work.group.columns[place[end] + number]}, 0)" for end in sides]
            added = " + ".join(of_sides if work.is_sided else of_sides[:1])
            columns.append(f"CAST({added} AS {one.group.sql_type}) AS {name}")
        for end in sides:
            place[end] += one.width
    joins = f" LEFT JOIN {sums} start_of ON start_of.key = {'2 * n.node' if work.is_sided else 'n.node'}"
    if work.is_sided:
        joins += f" LEFT JOIN {sums} end_of ON end_of.key = 2 * n.node + 1"
    return f"SELECT n.*, {', '.join(columns)} FROM {nodes} n{joins}"
