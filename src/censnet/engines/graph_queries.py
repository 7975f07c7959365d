"""The queries that make a graph of the user's tables, in the SQL that engines share.

`nodes_read` and `edges_read` are the tables as they are read. A node is numbered by its first row, an edge by its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from censnet.engines.engine import ROW

NO_ERRORS = f"SELECT {ROW}, CAST('' AS STRING) AS error FROM edges_read WHERE {ROW} < 0"
_INFINITE = "CAST('Infinity' AS DOUBLE)"


def ids_of_nodes(has_ids: bool) -> str:
    """The id of each node, and its number: that of the first row with it."""
    if not has_ids:
        return f"SELECT {ROW} AS id, {ROW} AS node FROM nodes_read"
    return f"SELECT id, min({ROW}) AS node FROM nodes_read WHERE id IS NOT NULL GROUP BY id"


def ids_of_ends(num_rows: int) -> str:
    """The same of nodes that edges alone name: sources in their order, and behind them targets."""
    sources = f"SELECT source AS id, {ROW} AS place FROM edges_read"
    targets = f"SELECT target AS id, {ROW} + {num_rows} AS place FROM edges_read"
    both = f"({sources} UNION ALL {targets}) every_end"
    return f"SELECT id, min(place) AS node FROM {both} WHERE id IS NOT NULL GROUP BY id"


def bad_rows(table: str, has_ids: bool) -> str:
    """The rows of a table that cannot be used, with what says why."""
    if table == "edges":
        return (
            f"SELECT r.{ROW}, r.source, r.target, a.node AS s, b.node AS t, r.error FROM edges_read r{_ENDS} "
            "WHERE a.node IS NULL OR b.node IS NULL OR r.error IS NOT NULL"
        )
    if not has_ids:
        return f"SELECT {ROW}, {ROW} AS id, {ROW} AS node, error FROM nodes_read WHERE error IS NOT NULL"
    return (
        f"SELECT r.{ROW}, r.id, i.node, r.error FROM nodes_read r LEFT JOIN ids i ON i.id = r.id "
        f"WHERE i.node IS NULL OR i.node <> r.{ROW} OR r.error IS NOT NULL"
    )


_ENDS = " LEFT JOIN ids a ON a.id = r.source LEFT JOIN ids b ON b.id = r.target"


def ends() -> str:
    """The edges and their two nodes: of the rows that can be used."""
    return (
        f"SELECT r.{ROW} AS edge, a.node AS s, b.node AS t FROM edges_read r JOIN ids a ON a.id = r.source "
        "JOIN ids b ON b.id = r.target WHERE r.error IS NULL"
    )


def edge_rows() -> str:
    """The edge of each row that can be used, and no edge for others."""
    return f"SELECT r.{ROW}, e.edge AS number FROM edges_read r LEFT JOIN ends e ON e.edge = r.{ROW}"


def node_rows(has_table: bool) -> str:
    """The node of each row of nodes; of nodes that edges name, in the order of their numbers."""
    if not has_table:
        return f"SELECT node AS {ROW}, node AS number FROM nodes_base"
    good = "CASE WHEN r.error IS NULL THEN n.node END"
    return f"SELECT r.{ROW}, {good} AS number FROM nodes_read r LEFT JOIN nodes_base n ON n.node = r.{ROW}"


def unusual(table: str, has_rows: bool) -> str:
    """The rows of a table that have what no training row has."""
    return f"SELECT {ROW} AS number, unusual FROM {table}_read WHERE unusual IS NOT NULL{'' if has_rows else ' AND 1 = 0'}"


def several() -> str:
    """The pairs of nodes with several edges, the lower first: how many lead up, and how many down."""
    each = (
        "SELECT least(s, t) AS low, greatest(s, t) AS high, CASE WHEN s <= t THEN 1 ELSE 0 END AS up, "
        "CASE WHEN s <= t THEN 0 ELSE 1 END AS down FROM ends"
    )
    return (
        "SELECT low, high, CAST(sum(up) AS BIGINT) AS up, CAST(sum(down) AS BIGINT) AS down "
        f"FROM ({each}) every_pair GROUP BY low, high HAVING count(*) > 1"
    )


def counts() -> str:
    """The numbers of edges and of neighbors of each node that has an edge."""
    one = "SELECT {end} AS node, {o} AS o, {i} AS i, {loop} AS l, 0 AS succ, 0 AS pred, 0 AS near FROM ends"
    loop = "CASE WHEN s = t THEN 1 ELSE 0 END"
    of_start = one.format(end="s", o=1, i=0, loop=loop)
    of_end = one.format(end="t", o=0, i=1, loop="0")
    # of several edges between two nodes, one counts
    more_up, more_down = ("CASE WHEN {0} > 1 THEN {0} - 1 ELSE 0 END".format(name) for name in ("up", "down"))
    low = (
        f"SELECT low AS node, 0 AS o, 0 AS i, 0 AS l, {more_up} AS succ, "
        f"CASE WHEN low = high THEN {more_up} ELSE {more_down} END AS pred, "
        "CASE WHEN low = high THEN 0 ELSE up + down - 1 END AS near FROM several"
    )
    high = (
        f"SELECT high AS node, 0 AS o, 0 AS i, 0 AS l, {more_down} AS succ, {more_up} AS pred, up + down - 1 AS near "
        "FROM several WHERE low <> high"
    )
    every = " UNION ALL ".join([of_start, of_end, low, high])
    return (
        "SELECT node, sum(o) AS leaving, sum(i) AS arriving, sum(o) + sum(i) - sum(l) AS touching, "
        "1 + sum(o) + sum(i) - 2 * sum(l) - sum(near) AS degree, sum(o) - sum(succ) AS successors, "
        f"sum(i) - sum(pred) AS predecessors FROM ({every}) every_count GROUP BY node"
    )


def nodes(columns: Sequence[str], has_table: bool) -> str:
    """The nodes with their counts and their tensors."""
    found = ["i.node AS node", "CAST(coalesce(c.degree, 1) AS BIGINT) AS degree"]
    found += [
        f"CAST(coalesce(c.{name}, 0) AS BIGINT) AS {name}"
        for name in ("touching", "leaving", "arriving", "successors", "predecessors")
    ]
    table = f" JOIN nodes_read r ON r.{ROW} = i.node" if has_table else ""
    return f"SELECT {', '.join([*found, *columns])} FROM ids i{table} LEFT JOIN counts c ON c.node = i.node"


def edges(columns: Sequence[str], shares: bool) -> str:
    """The edges with their counts and their tensors."""
    up, down, loop = "coalesce(m.up, 0)", "coalesce(m.down, 0)", "a.node = b.node"
    alone = "m.low IS NULL"
    found = [
        f"r.{ROW} AS edge",
        "a.node AS s",
        "b.node AS t",
        f"CAST(CASE WHEN {alone} THEN 1 ELSE {up} + {down} END AS BIGINT) AS multiplicity",
        f"CAST(CASE WHEN {alone} THEN 1 WHEN a.node <= b.node THEN {up} ELSE {down} END AS BIGINT) AS parallel",
        f"CAST(CASE WHEN {alone} AND {loop} THEN 1 WHEN {alone} THEN 0 WHEN {loop} THEN {up} "
        f"WHEN a.node < b.node THEN {down} ELSE {up} END AS BIGINT) AS reciprocal",
    ]
    joins = (
        " JOIN ids a ON a.id = r.source JOIN ids b ON b.id = r.target "
        "LEFT JOIN several m ON m.low = least(a.node, b.node) AND m.high = greatest(a.node, b.node)"
    )
    if shares:
        both = f"x.touching + y.touching - CASE WHEN {alone} THEN 1 ELSE {up} + {down} END"
        found.append(f"CAST(CASE WHEN {loop} THEN x.touching ELSE {both} END AS BIGINT) AS sharing")
        joins += " JOIN counts x ON x.node = a.node JOIN counts y ON y.node = b.node"
    return f"SELECT {', '.join([*found, *columns])} FROM edges_read r{joins} WHERE r.error IS NULL"


def least_degrees() -> str:
    """Of each node, the least D_e + 1 of its edges, how many pairs of nodes have it, and the next; for the released code."""
    pairs = "SELECT DISTINCT least(s, t) AS low, greatest(s, t) AS high, sharing + 1 AS d FROM edges_base"
    at_nodes = f"SELECT low AS node, d FROM ({pairs}) p UNION ALL SELECT high AS node, d FROM ({pairs}) q WHERE low <> high"
    ranked = f"SELECT node, d, min(d) OVER (PARTITION BY node) AS first FROM ({at_nodes}) every_pair"
    return (
        "SELECT node, first, sum(CASE WHEN d = first THEN 1 ELSE 0 END) AS holders, "
        f"min(CASE WHEN d > first THEN d END) AS second FROM ({ranked}) every_rank GROUP BY node, first"
    )


def edges_with_least() -> str:
    """The edges with the least D_e + 1 of the others at both nodes."""

    def other(end: str) -> str:
        own = f"e.sharing + 1 = {end}.first AND {end}.holders < 2"
        second = f"coalesce(CAST({end}.second AS DOUBLE), {_INFINITE})"
        return f"CASE WHEN {own} THEN {second} ELSE CAST({end}.first AS DOUBLE) END"

    columns = f"{other('a')} AS least_0, {other('b')} AS least_1"
    return f"SELECT e.*, {columns} FROM edges_base e JOIN least a ON a.node = e.s JOIN least b ON b.node = e.t"
