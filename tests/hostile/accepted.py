"""What holds of accepted data: every row is there, in order, under its id as it was written, joined as written."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import torch

from censnet.data import Dataset
from censnet.data.tables.columns import MISSING
from censnet.data.tables.files import to_csv

LEVELS = {"nodes": "node", "edges": "edge", "graphs": "graph"}
Cells = Mapping[str, Sequence[str]]  # column -> its cells, as they are written


def sound(dataset: Dataset) -> None:
    """Finite tensors, each row accounted for, and a result for each row."""
    assert bool(torch.isfinite(dataset.graph.nodes.to_dense()).all()), "features of nodes that are not finite"
    assert bool(torch.isfinite(dataset.graph.edges).all()), "features of edges that are not finite"
    for table, frame in dataset.tables.frames().items():
        rows = dataset.rows(LEVELS[table])
        assert len(rows) == len(frame), f"{len(rows)} results for {len(frame)} rows of {table}"
        bad = {int(row) for row in (rows < 0).nonzero()}
        assert bad == set(dataset.problems.get(table, {})), f"rows of {table} without a result, or without a reason"
        for message in dataset.problems.get(table, {}).values():
            assert "\n" not in message.strip(), f"more than one line: {message[:300]!r}"
            assert len(message) < 900, f"a reason of {len(message)} characters"
            assert f"row {1 + min(bad)}" in dataset.problems[table][min(bad)], f"no row is named: {message[:300]!r}"


def returned(dataset: Dataset, table: str) -> dict[str, list[str]]:
    """The columns that say who a row is, as they come back in a CSV file of results."""
    level = LEVELS[table]
    values = pd.DataFrame({"value_": np.arange(dataset.count(level))})
    text = to_csv(dataset.results(level, values, "ids"), "results").decode()
    header, *rows = list(csv.reader(io.StringIO(text, newline="")))
    return {name: [row[place] for row in rows] for place, name in enumerate(header)}


def same_ids(dataset: Dataset, written: Mapping[str, Cells], keys: Mapping[str, Sequence[str]] | None = None) -> None:
    """Ids come back to the letter, in order; no row is lost, added or merged with another."""
    keys = keys or {"nodes": ("id",), "edges": ("source", "target"), "graphs": ("graph",)}
    for table, cells in written.items():
        if table not in dataset.tables.frames():
            continue
        found, problems = returned(dataset, table), dataset.problems.get(table, {})
        for key in keys[table]:
            if key not in cells:
                continue
            expected = list(cells[key])
            assert key in found, f"the column {key} of {table} does not come back ({', '.join(found)})"
            assert len(found[key]) == len(expected), f"{len(found[key])} rows of {table} for {len(expected)}"
            for row, (one, other) in enumerate(zip(found[key], expected, strict=True)):
                lost = one == "" and other in MISSING and row in problems
                assert one == other or lost, f"{table}, row {row + 1}, {key}: {other!r} came back as {one!r}"
    _joined(dataset, written)


def _joined(dataset: Dataset, written: Mapping[str, Cells]) -> None:
    """Different ids are different nodes, and each edge joins the nodes that its row names."""
    if "edges" not in written or "graph" in written["edges"] or not hasattr(dataset.graph, "num_nodes"):
        return
    number: dict[str, int] = {}
    named = {*written["edges"]["source"], *written["edges"]["target"]}
    if "nodes" in written:
        named = set(written["nodes"]["id"])
        rows = dataset.rows("node").tolist()
        for name, row in zip(written["nodes"]["id"], rows, strict=True):
            if row >= 0:
                assert number.setdefault(name, row) == row
    else:
        names = returned(dataset, "nodes")["id"]
        number = dict(zip(names, dataset.rows("node").tolist(), strict=True))
        assert set(number) <= named, f"no row names the nodes {sorted(set(number) - named)[:6]}"
        assert named - set(number) <= set(MISSING), f"{sorted(named - set(number))[:6]} are not one node each"
    assert len(set(number.values())) == len(number), "two ids became one node"
    ends = dataset.graph.ends.tolist()
    pairs = zip(written["edges"]["source"], written["edges"]["target"], dataset.rows("edge").tolist(), strict=True)
    for line, (source, target, row) in enumerate(pairs, start=1):
        if row < 0:
            continue
        assert {source, target} <= named, (
            f"edges, row {line}: {source!r} - {target!r} is an edge, but no such node is known"
        )
        if (
            source in number and target in number
        ):  # a node whose features cannot be read is a node without a number here
            found = {ends[0][row], ends[1][row]}
            assert found == {number[source], number[target]}, f"edges, row {line} joins other nodes than it says"


def all_used(dataset: Dataset) -> None:
    """No row is bad."""
    for table, problems in dataset.problems.items():
        assert not problems, f"{len(problems)} rows of {table} get no result: {next(iter(problems.values()))}"
