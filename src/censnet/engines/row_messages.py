"""Why rows of the user's tables cannot be used, in the words of `data.tables.ids`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from censnet.engines.engine import ROW
from censnet.errors import location, quote

ERRORS = pa.schema([(ROW, pa.int64()), ("error", pa.string())])
MISSING_ID = "the id is missing"


@dataclass(frozen=True)
class ExplainNodes:
    """The errors of rows of nodes.

    Args:
        file: of the table.
        ids: role -> column.
    """

    file: str
    ids: Mapping[str, str]

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return _write(batch, self.explain)

    def explain(self, row: Mapping[str, Any]) -> str:
        """Why a row cannot be used."""
        where = location(self.file, row[ROW], self.ids.get("id"))
        if row["id"] is None:
            return where + MISSING_ID
        if row["node"] != row[ROW]:
            return where + f"the id {quote(row['id'])} is in row {row['node'] + 1} already"
        return str(row["error"])


@dataclass(frozen=True)
class ExplainEdges:
    """The errors of rows of edges.

    Args:
        file: of the table.
        ids: role -> column.
        known: how many ids there are.
    """

    file: str
    ids: Mapping[str, str]
    known: str

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return _write(batch, self.explain)

    def explain(self, row: Mapping[str, Any]) -> str:
        """Why a row cannot be used."""
        for role, node in (("source", "s"), ("target", "t")):
            if row[node] is None:
                where = location(self.file, row[ROW], self.ids[role])
                if row[role] is None:
                    return where + MISSING_ID
                return where + f"no node has the id {quote(row[role])}" + (f" ({self.known})" if self.known else "")
        return str(row["error"])


def _write(batch: pa.RecordBatch, explain: Any) -> pa.RecordBatch:
    rows = batch.to_pylist()
    return pa.RecordBatch.from_arrays(
        [pa.array([row[ROW] for row in rows], pa.int64()), pa.array(map(explain, rows), pa.string())], schema=ERRORS
    )
