"""A table of edges behind the history before it, as one graph."""

from __future__ import annotations

import logging

import numpy as np
import pandas as pd
import torch

from censnet.data.dataset import Dataset
from censnet.data.tables.columns import as_text
from censnet.data.tables.files import Tables
from censnet.data.tables.id_index import as_ids
from censnet.errors import DataError
from censnet.ops.graph import Graph
from censnet.text import count, plural

logger = logging.getLogger(__name__)


def with_nodes_of(tables: Tables, history: Dataset) -> Tables:
    """The tables with the nodes of a history behind their own, so that edges may name these too."""
    past, column = history.tables.nodes, history.schema.nodes.keys.get("id", "id")
    own = tables.nodes
    if past is None or column not in past.columns:
        return tables
    if own is None:
        return tables.with_frames({"nodes": past}, {"nodes": history.tables.name("nodes")})
    if column not in own.columns:
        return tables
    known = set(as_text(as_ids(own[column])).to_pylist())
    new = [name not in known for name in as_text(as_ids(past[column])).to_pylist()]
    return tables.with_frames({"nodes": pd.concat([_as_text_ids(own, column), _as_text_ids(past[new], column)])})


def _as_text_ids(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    return frame.assign(**{column: pd.Series(as_text(as_ids(frame[column])).to_pylist(), frame.index, "string")})


def node_names(dataset: Dataset) -> list[str]:
    """The id of each node, as text."""
    frame, rows = dataset.tables.nodes, dataset.rows("node").numpy()
    column = dataset.schema.nodes.keys.get("id", "id")
    if frame is None or column not in frame.columns:
        return [str(number) for number in range(dataset.count("node"))]
    text = as_text(as_ids(frame[column])).to_pylist()
    found = [""] * dataset.count("node")
    for name, row in zip(text, rows.tolist(), strict=True):
        if row >= 0:
            found[row] = str(name)
    return found


def join_history(dataset: Dataset, history: Dataset) -> Graph:
    """One graph of the edges of a table and of those before it, which stand behind them; nodes are found by their ids.

    A node that both have has the features of the table.
    """
    graph, past = dataset.graph, history.graph
    if not isinstance(graph, Graph) or not isinstance(past, Graph) or graph.times is None or past.times is None:
        raise DataError("the data or their history have no times, expected one graph each whose edges have them")
    number = {name: row for row, name in enumerate(node_names(dataset))}
    own = len(number)
    place = np.array([number.setdefault(name, len(number)) for name in node_names(history)], np.int64)
    new = np.flatnonzero(place >= own)
    nodes = torch.cat([graph.nodes, past.nodes[torch.from_numpy(new)]])
    ends = torch.cat([graph.ends, torch.from_numpy(place)[past.ends]], 1)
    joined = Graph(nodes, torch.cat([graph.edges, past.edges]), ends, directed=graph.directed)
    return joined.with_times(torch.cat([graph.times, past.times]))


def warn_of_late_history(dataset: Dataset, history: Dataset) -> None:
    """Warn where a history is not before the edges of a table, as it is where both have the same rows."""
    graph, past = dataset.graph, history.graph
    if isinstance(graph, Graph) and isinstance(past, Graph) and graph.times is not None and past.times is not None:
        late = int((past.times > graph.times.min()).sum()) if len(graph.times) else 0
        if late:
            logger.warning(
                "%s of the history %s later than the first one of the data: an edge that is in both counts twice",
                count(late, "edge"),
                plural(late, "is", "are"),
            )
