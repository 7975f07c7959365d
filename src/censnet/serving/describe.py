"""What a run predicts, which columns it reads, and a request that it answers: for its page and its documentation."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from censnet.data.tables.feature_encoding import Column
from censnet.data.tables.schema import Schema
from censnet.errors import CensNetError
from censnet.levels import Level
from censnet.runs.links import LINK
from censnet.runs.predictor import Predictor
from censnet.runs.uncertainty import check_coverage
from censnet.serving.served_run import ServedRun

SMILES = ["CCO", "CC(=O)Oc1ccccc1C(=O)O"]
COVERAGES = (0.8, 0.9, 0.95)
MOST_COLUMNS = 200  # that are described
NODES = ("a", "b", "c")
READ = ("number", "oriented", "boolean", "category", "date", "vector")


def describe(served: ServedRun) -> dict[str, Any]:
    """The targets, the tables and an example of a run, as JSON."""
    run = served.predictor
    schema = run.schema
    tables = {}
    for level in (Level.NODE, Level.EDGE, Level.GRAPH):
        fitted = schema.features_of(level.table)
        columns = [{"name": one.name, "kind": one.kind} for one in fitted.columns if one.kind in READ]
        if fitted.keys or columns:
            tables[level.table] = {"keys": fitted.keys, "columns": columns[:MOST_COLUMNS]}
    if schema.smiles is not None:
        tables = {"graphs": tables.get("graphs", {"keys": {"smiles": schema.smiles}, "columns": []})}
    return {
        "name": served.name,
        "levels": run.levels,
        "targets": [
            {"level": target.level, "column": target.column, "kind": target.kind, "classes": target.classes[:50]}
            for target in [*run.config.targets, *([LINK] if run.config.link else [])]
        ],
        "reads": "smiles" if schema.smiles is not None else "tables",
        "tables": tables,
        "members": len(run.models),
        "coverages": [coverage for coverage in COVERAGES if _covers(run, coverage)],
        "explains": True,
        "example": example(served.name, schema),
    }


def _covers(run: Predictor, coverage: float) -> bool:
    """Whether there are enough validation rows for intervals and sets of a coverage, at every level."""
    try:
        for level in run.levels:
            check_coverage(coverage, run.uncertainty, level, run.targets.get(level, []))
    except CensNetError:
        return False
    return True


def example(name: str, schema: Schema) -> dict[str, Any]:
    """A request for a run: usual values in each column, by the statistics of its schema."""
    if schema.smiles is not None:
        if not schema.graph_columns:
            return {"run": name, "smiles": SMILES}
        columns = schema.features_of("graphs").columns
        return {"run": name, "graphs": [{schema.smiles: text} | _values(columns, 0) for text in SMILES]}
    found: dict[str, Any] = {"run": name}
    graph_key = schema.edges.keys.get("graph") or schema.nodes.keys.get("graph")
    owner = {graph_key: "g1"} if schema.many and graph_key else {}
    if schema.nodes.keys or any(column.kind in READ for column in schema.nodes.columns):
        key = schema.nodes.keys.get("id", "id")
        found["nodes"] = [
            owner | {key: node} | _values(schema.nodes.columns, place) for place, node in enumerate(NODES)
        ]
    source, target = (schema.edges.keys.get(end, end) for end in ("source", "target"))
    pairs = list(pairwise(NODES))
    if schema.edge_form == "twice":
        pairs = [pair for one, other in pairs for pair in ((one, other), (other, one))]
    found["edges"] = [
        owner | {source: one, target: other} | _values(schema.edges.columns, place // (2 if len(pairs) > 2 else 1))
        for place, (one, other) in enumerate(pairs)
    ]
    if schema.time is not None:
        for row in found["edges"]:
            row.setdefault(schema.time.name, 1)
    if schema.many and schema.graphs.keys.get("graph"):
        found["graphs"] = [{schema.graphs.keys["graph"]: "g1"} | _values(schema.of_graphs.columns, 0)]
    return found


def _values(columns: list[Column], place: int) -> dict[str, Any]:
    """A value of each column that is a feature; of categories one after the other."""
    return {column.name: _value(column, place) for column in columns if column.kind in READ}


def _value(column: Column, place: int) -> Any:
    if column.kind == "category":
        return column.categories[place % len(column.categories)] if column.categories else "a"
    if column.kind == "boolean":
        return True
    if column.kind == "date":
        return "2024-01-31"
    numbers = [float(f"{mean:.3g}") for mean in column.mean] or [0.0]
    return numbers if column.kind == "vector" else numbers[0]
