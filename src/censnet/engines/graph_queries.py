"""The queries that make a graph of the user's tables, in the SQL that engines share.

`nodes_read` and `edges_read` are the tables as they are read. A node is numbered by its first row, an edge by its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from censnet.engines.engine import ROW

NO_ERRORS = f"SELECT {ROW}, CAST('' AS STRING) AS error FROM edges_read WHERE {ROW} < 0"
_INFINITE = "CAST('Infinity' AS DOUBLE)"


@dataclass(frozen=True)
class Form:
    """The form of the data.

    Args:
        many: whether there are many graphs.
        scoped: whether ids are those of nodes within a graph, since edges say which graph they are in.
        twice: whether each edge is there twice, once in each direction with the same data.
        nodes_have_ids: whether nodes have a column of ids, rather than the numbers of their rows.
    """

    many: bool = False
    scoped: bool = False
    twice: bool = False
    nodes_have_ids: bool = True

    @property
    def graph(self) -> str:
        """The column of the graph of a node or an edge, if there is one."""
        return ", graph" if self.many else ""

    @property
    def ends(self) -> str:
        """A join of rows of edges to their two nodes."""
        scope = " LEFT JOIN graph_ids g ON g.id = r.graph" if self.scoped else ""
        same = [f" AND {end}.graph = g.graph" if self.scoped else "" for end in "ab"]
        return f"{scope} LEFT JOIN ids a ON a.id = r.source{same[0]} LEFT JOIN ids b ON b.id = r.target{same[1]}"

    @property
    def is_good(self) -> str:
        """Whether a row of edges, so joined, can be used."""
        apart = " AND a.graph = b.graph" if self.many and not self.scoped else ""
        return f"a.node IS NOT NULL AND b.node IS NOT NULL AND r.error IS NULL{apart}"

    @property
    def edges(self) -> str:
        """The table of rows of edges that are edges."""
        return "edges_once" if self.twice else "edges_read"


def graph_ids(table: str) -> str:
    """The id of each graph, and its number: that of the first row with it in this table."""
    return (
        f"SELECT graph AS id, min({ROW}) AS graph FROM {table}_read WHERE graph IS NOT NULL GROUP BY {table}_read.graph"
    )


def ids_of_nodes(form: Form) -> str:
    """The id of each node, and its number: that of the first row with it; and the graph of that row."""
    key = "id" if form.nodes_have_ids else ROW
    if not form.many:
        if not form.nodes_have_ids:
            return f"SELECT {ROW} AS id, {ROW} AS node FROM nodes_read"
        return f"SELECT id, min({ROW}) AS node FROM nodes_read WHERE id IS NOT NULL GROUP BY id"
    rows = f"SELECT r.{key} AS id, r.{ROW} AS place, g.graph FROM nodes_read r JOIN graph_ids g ON g.id = r.graph"
    graph, keys = ("graph", "id, graph") if form.scoped else ("min_by(graph, place)", "id")
    return (
        f"SELECT id, {graph} AS graph, min(place) AS node FROM ({rows}) every_row WHERE id IS NOT NULL GROUP BY {keys}"
    )


def ids_of_ends(form: Form, num_rows: int, dense: bool) -> str:
    """The same of nodes that edges alone name: sources in their order, and behind them targets; dense without gaps."""
    graph, join = (", g.graph", " JOIN graph_ids g ON g.id = r.graph") if form.many else ("", "")
    sources = f"SELECT r.source AS id, r.{ROW} AS place{graph} FROM edges_read r{join}"
    targets = f"SELECT r.target AS id, r.{ROW} + {num_rows} AS place{graph} FROM edges_read r{join}"
    both = f"({sources} UNION ALL {targets}) every_end"
    found = f"SELECT id{form.graph}, min(place) AS node FROM {both} WHERE id IS NOT NULL GROUP BY id{form.graph}"
    numbered = f"SELECT id{form.graph}, row_number() OVER (ORDER BY node) - 1 AS node FROM ({found}) every_id"
    return numbered if dense else found


def bad_rows(table: str, form: Form) -> str:
    """The rows of a table that cannot be used, with what says why."""
    if table == "edges":
        alone = f" LEFT JOIN reverses v ON v.{ROW} = r.{ROW}" if form.twice else ""
        found = ["r.source", "r.target", "a.node AS s", "b.node AS t", "r.error"]
        found += ["r.graph AS graph_id", "g.graph AS known_graph"] if form.scoped else []
        reason = "a.node IS NULL OR b.node IS NULL OR r.error IS NOT NULL"
        reason += " OR a.graph <> b.graph" if form.many and not form.scoped else ""
        reason += f" OR v.{ROW} IS NULL" if form.twice else ""
        return f"SELECT r.{ROW}, {', '.join(found)} FROM edges_read r{form.ends}{alone} WHERE {reason}"
    if table == "graphs":
        return (
            f"SELECT r.{ROW}, r.graph AS graph_id, i.graph, c.graph AS present, r.error FROM graphs_read r "
            "LEFT JOIN graph_ids i ON i.id = r.graph LEFT JOIN (SELECT DISTINCT graph FROM nodes_base) c "
            f"ON c.graph = r.{ROW} WHERE i.graph IS NULL OR i.graph <> r.{ROW} "
            "OR c.graph IS NULL OR r.error IS NOT NULL"
        )
    key = "id" if form.nodes_have_ids else ROW
    of_graph, join, scope = "", "", ""
    if form.many:
        of_graph, join = ", r.graph AS graph_id, g.graph AS known_graph", " LEFT JOIN graph_ids g ON g.id = r.graph"
        scope = " AND i.graph = g.graph" if form.scoped else ""
    return (
        f"SELECT r.{ROW}, r.{key} AS id, i.node, r.error{of_graph} FROM nodes_read r{join} "
        f"LEFT JOIN ids i ON i.id = r.{key}{scope} WHERE i.node IS NULL OR i.node <> r.{ROW} OR r.error IS NOT NULL"
        + (" OR g.graph IS NULL" if form.many else "")
    )


def reverses(form: Form, columns: Sequence[str]) -> str:
    """Of each row that can be used: the row with the reverse of it, and the first of the two; a loop is its own.

    Of equal rows, the first of one direction goes with the first of the other.
    """
    features = [name for name in columns if name.startswith("x_")]
    every = "".join(f", {name}" for name in features)
    good = (
        f"SELECT r.{ROW}, a.node AS s, b.node AS t{''.join(f', r.{name}' for name in features)} FROM edges_read r"
        f"{form.ends} WHERE {form.is_good}"
    )
    ranked = (
        f"SELECT {ROW}, s, t{every}, row_number() OVER (PARTITION BY s, t{every} ORDER BY {ROW}) AS place "
        f"FROM ({good}) good_row WHERE s <> t"
    )
    same = "".join(f" AND one.{name} = other.{name}" for name in features)
    pairs = (
        f"SELECT one.{ROW}, other.{ROW} AS other, least(one.{ROW}, other.{ROW}) AS edge FROM ({ranked}) one "
        f"JOIN ({ranked}) other ON one.s = other.t AND one.t = other.s AND one.place = other.place{same}"
    )
    return f"{pairs} UNION ALL SELECT {ROW}, {ROW} AS other, {ROW} AS edge FROM ({good}) loop_row WHERE s = t"


def edges_once(columns: Sequence[str]) -> str:
    """The first row of each edge, with the labels of the other where it has none."""
    found = [
        f"CASE WHEN isnan(r.{name}) THEN o.{name} ELSE r.{name} END AS {name}"
        if name.startswith("label_")
        else f"r.{name} AS {name}"
        for name in columns
    ]
    return (
        f"SELECT {', '.join(found)} FROM edges_read r JOIN reverses v ON v.{ROW} = r.{ROW} AND v.edge = r.{ROW} "
        f"JOIN edges_read o ON o.{ROW} = v.other"
    )


def ends(form: Form) -> str:
    """The edges and their two nodes: of the rows that can be used."""
    return f"SELECT r.{ROW} AS edge, a.node AS s, b.node AS t FROM {form.edges} r{form.ends} WHERE {form.is_good}"


def edge_rows(form: Form) -> str:
    """The edge of each row that can be used, and no edge for others."""
    if form.twice:
        return f"SELECT r.{ROW}, v.edge AS number FROM edges_read r LEFT JOIN reverses v ON v.{ROW} = r.{ROW}"
    return f"SELECT r.{ROW}, e.edge AS number FROM edges_read r LEFT JOIN ends e ON e.edge = r.{ROW}"


def numbered_rows(kind: str, has_table: bool) -> str:
    """The node or the graph of each row of its table; without a table, in the order of their numbers.

    Args:
        kind: node or graph. Where there is no table, edges or nodes name them.
        has_table: whether there is one.
    """
    if not has_table:
        return f"SELECT {kind} AS {ROW}, {kind} AS number FROM {kind}s_base"
    good = f"CASE WHEN r.error IS NULL THEN b.{kind} END"
    return f"SELECT r.{ROW}, {good} AS number FROM {kind}s_read r LEFT JOIN {kind}s_base b ON b.{kind} = r.{ROW}"


def graphs(columns: Sequence[str], has_table: bool) -> str:
    """The graphs that have a node, with their tensors."""
    table = f" JOIN graphs_read r ON r.{ROW} = n.graph" if has_table else ""
    present = "(SELECT DISTINCT graph FROM nodes_base) n"
    return f"SELECT {', '.join(['n.graph AS graph', *columns])} FROM {present}{table}"


def unusual(table: str, has_rows: bool) -> str:
    """The rows of a table that have what no training row has."""
    return (
        f"SELECT {ROW} AS number, unusual FROM {table}_read WHERE unusual IS NOT NULL{'' if has_rows else ' AND 1 = 0'}"
    )


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
    more_up, more_down = (f"CASE WHEN {name} > 1 THEN {name} - 1 ELSE 0 END" for name in ("up", "down"))
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


def nodes(form: Form, columns: Sequence[str], has_table: bool) -> str:
    """The nodes with their counts and their tensors."""
    found = [
        "i.node AS node",
        *(["i.graph AS graph"] if form.many else []),
        "CAST(coalesce(c.degree, 1) AS BIGINT) AS degree",
    ]
    found += [
        f"CAST(coalesce(c.{name}, 0) AS BIGINT) AS {name}"
        for name in ("touching", "leaving", "arriving", "successors", "predecessors")
    ]
    table = f" JOIN nodes_read r ON r.{ROW} = i.node" if has_table else ""
    return f"SELECT {', '.join([*found, *columns])} FROM ids i{table} LEFT JOIN counts c ON c.node = i.node"


def edges(form: Form, columns: Sequence[str], shares: bool) -> str:
    """The edges with their counts and their tensors."""
    up, down, loop = "coalesce(m.up, 0)", "coalesce(m.down, 0)", "a.node = b.node"
    alone = "m.low IS NULL"
    found = [
        f"r.{ROW} AS edge",
        "a.node AS s",
        "b.node AS t",
        *(["a.graph AS graph"] if form.many else []),
        f"CAST(CASE WHEN {alone} THEN 1 ELSE {up} + {down} END AS BIGINT) AS multiplicity",
        f"CAST(CASE WHEN {alone} THEN 1 WHEN a.node <= b.node THEN {up} ELSE {down} END AS BIGINT) AS parallel",
        f"CAST(CASE WHEN {alone} AND {loop} THEN 1 WHEN {alone} THEN 0 WHEN {loop} THEN {up} "
        f"WHEN a.node < b.node THEN {down} ELSE {up} END AS BIGINT) AS reciprocal",
    ]
    joins = f"{form.ends} LEFT JOIN several m ON m.low = least(a.node, b.node) AND m.high = greatest(a.node, b.node)"
    if shares:
        both = f"x.touching + y.touching - CASE WHEN {alone} THEN 1 ELSE {up} + {down} END"
        found.append(f"CAST(CASE WHEN {loop} THEN x.touching ELSE {both} END AS BIGINT) AS sharing")
        joins += " JOIN counts x ON x.node = a.node JOIN counts y ON y.node = b.node"
    return f"SELECT {', '.join([*found, *columns])} FROM {form.edges} r{joins} WHERE {form.is_good}"


def least_degrees() -> str:
    """Of each node, the least D_e + 1 of its edges, how many pairs of nodes have it, and the next one."""
    pairs = "SELECT DISTINCT least(s, t) AS low, greatest(s, t) AS high, sharing + 1 AS d FROM edges_base"
    at_nodes = (
        f"SELECT low AS node, d FROM ({pairs}) p UNION ALL SELECT high AS node, d FROM ({pairs}) q WHERE low <> high"
    )
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
