"""Why rows of the user's tables cannot be used, in the words of `data.tables.ids`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from censnet.data.tables.row_order import EMPTY
from censnet.engines.engine import ROW
from censnet.errors import location, quote

ERRORS = pa.schema([(ROW, pa.int64()), ("error", pa.string())])
MISSING_ID = "the id is missing"


@dataclass(frozen=True)
class ExplainRows:
    """The errors of rows of a table, as a function of Arrow batches.

    Args:
        table: nodes, edges or graphs.
        file: of the table.
        ids: role -> column.
        known: which ids there are.
        graphs: the number of graphs.
    """

    table: str
    file: str
    ids: Mapping[str, str]
    known: str
    graphs: int

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        rows = batch.to_pylist()
        errors = [
            {"nodes": self.of_node, "edges": self.of_edge, "graphs": self.of_graph}[self.table](row) for row in rows
        ]
        numbers = pa.array([row[ROW] for row in rows], pa.int64())
        return pa.RecordBatch.from_arrays([numbers, pa.array(errors, pa.string())], schema=ERRORS)

    def of_node(self, row: Mapping[str, Any]) -> str:
        """Why a row of nodes cannot be used."""
        unknown = self._unknown_graph(row)
        if unknown is not None:
            return unknown
        if row["id"] is None:
            what = MISSING_ID
        elif row["node"] is not None and row["node"] != row[ROW]:
            what = f"the id {quote(row['id'])} is in row {row['node'] + 1} already"
        else:
            return str(row["error"])
        return self._at(row, "id") + what

    def of_edge(self, row: Mapping[str, Any]) -> str:
        """Why a row of edges cannot be used."""
        unknown = self._unknown_graph(row)
        if unknown is not None:
            return unknown
        for role, node in (("source", "s"), ("target", "t")):
            if row[node] is None:
                aside = f" ({self.known})" if self.known else ""
                what = MISSING_ID if row[role] is None else f"no node has the id {quote(row[role])}{aside}"
                return self._at(row, role) + what
        if row["error"] is not None:
            return str(row["error"])
        if self.graphs and "graph_id" not in row:
            return self._at(row, "target") + "joins nodes of two graphs"
        what = f"no row goes back from {quote(row['target'])} to {quote(row['source'])} with the same data"
        how = "expected each edge twice, once in each direction, as in training: add that row"
        return f"{self._at(row, 'target')}{what}, {how}"

    def of_graph(self, row: Mapping[str, Any]) -> str:
        """Why a row of graphs cannot be used."""
        if row["graph_id"] is None:
            return self._at(row, "graph") + MISSING_ID
        if row["graph"] != row[ROW]:
            return self._at(row, "graph") + f"the id {quote(row['graph_id'])} is in row {row['graph'] + 1} already"
        return str(row["error"]) if row["error"] is not None else self._at(row, "graph") + EMPTY

    def _unknown_graph(self, row: Mapping[str, Any]) -> str | None:
        if "graph_id" not in row or row["known_graph"] is not None:
            return None
        unknown = f"no graph has the id {quote(row['graph_id'])} (there are {self.graphs:,})"
        return self._at(row, "graph") + (MISSING_ID if row["graph_id"] is None else unknown)

    def _at(self, row: Mapping[str, Any], role: str) -> str:
        return location(self.file, row[ROW], self.ids.get(role))
