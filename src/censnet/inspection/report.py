"""The report of `censnet inspect` as a model: counts, structure, columns, labels, training cost, and the audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import pandas as pd
from pydantic import BaseModel, Field

from censnet.data.dataset import Dataset
from censnet.data.splits.links import LinkSplit
from censnet.data.splits.split_file import Split
from censnet.data.tables.columns import as_arrow
from censnet.data.tables.notes import Note
from censnet.data.tables.target_spec import TargetSpec
from censnet.errors import DataError
from censnet.inspection.audit import audit
from censnet.inspection.cost import Cost
from censnet.inspection.findings import Finding, sort_findings
from censnet.inspection.leakage import as_labels, as_numbers, is_regression_target
from censnet.inspection.oriented import oriented_notes
from censnet.inspection.structure import LineGraph, Structure, measure_structure
from censnet.inspection.times import time_findings
from censnet.tasks.labels import split_limits
from censnet.tasks.targets import describe_target

MAX_CLASSES = 50


class TableReport(BaseModel):
    """A table that was read."""

    table: str
    file: str
    rows: int
    bad_rows: int


class ColumnReport(BaseModel):
    """The features that a column became, and why."""

    table: str
    name: str
    kind: str
    reason: str
    features: int


class LabelReport(BaseModel):
    """The labels of one target."""

    target: str
    rows: int
    missing: int
    classes: dict[str, int] = Field(description="rows of each class, the largest first; empty for a quantity")
    num_classes: int
    quantity: dict[str, float] = Field(description="least, mean, most and deviation; empty for classes")
    censored: int = Field(0, description="labels that are limits, such as >10; what is above leaves them out")
    kind: str = Field(
        "",
        description="the task type that training infers: binary, multiclass or regression; or oriented",
    )
    reason: str = Field("", description="why, and how to have it otherwise")


class _Summary(TypedDict):
    """The fields of `LabelReport` that say what the labels are."""

    classes: dict[str, int]
    num_classes: int
    quantity: dict[str, float]


class Report(BaseModel):
    """The content of `censnet inspect`."""

    name: str
    tables: list[TableReport]
    structure: Structure
    line_graph: LineGraph
    cost: Cost | None
    columns: list[ColumnReport]
    labels: list[LabelReport]
    splits: dict[str, dict[str, int]]
    findings: list[Finding]
    notes: list[Note]

    @property
    def problems(self) -> list[Finding]:
        """The findings that are wrong, rather than doubtful."""
        return [finding for finding in self.findings if finding.level == "problem"]


def make_report(
    dataset: Dataset,
    targets: Sequence[TargetSpec] = (),
    splits: Mapping[str, Split] | None = None,
    links: LinkSplit | None = None,
    cost: Cost | None = None,
    link: bool = False,
) -> Report:
    """Report on a data set in memory.

    Args:
        dataset: the data set.
        targets: the columns to predict.
        splits, links: as in `audit`.
        cost: the estimated cost of training on it.
        link: whether links are predicted.
    """
    splits = splits or {}
    structure, line_graph = measure_structure(dataset.graph)
    sizes = {table: {part: len(rows) for part, rows in split.parts.items()} for table, split in splits.items()}
    if links is not None:
        sizes["links"] = {part: len(rows) for part, rows in links.rows.parts.items()}
    columns: dict[str, list[str]] = {}
    for spec in targets:
        columns.setdefault(spec.level.table, []).append(spec.column)
    caveats = [note for note in dataset.notes if note.kind == "notation"]
    findings = audit(dataset, columns, splits, links) + [Finding(level="warning", what=note) for note in caveats]
    split = splits.get("edges") if links is None else links.rows.to_input(dataset.rows("edge"))
    findings += time_findings(dataset, columns.get("edges", []), split, link)
    labels = [_labels(dataset, spec, findings) for spec in targets]
    of_edges = [spec.column for spec in targets if spec.level == "edge" and spec.kind != "oriented"]
    return Report(
        name=Path(dataset.name).name or dataset.name,
        tables=[
            TableReport(
                table=table,
                file=dataset.tables.name(table),
                rows=len(frame),
                bad_rows=len(dataset.problems.get(table, {})),
            )
            for table, frame in dataset.tables.frames().items()
        ],
        structure=structure,
        line_graph=line_graph,
        cost=cost,
        columns=_columns(dataset),
        labels=labels,
        splits=sizes,
        findings=sort_findings(findings),
        notes=[note for note in dataset.notes if note.kind != "notation"] + oriented_notes(dataset, of_edges),
    )


def _columns(dataset: Dataset) -> list[ColumnReport]:
    """The features that each column became; default features; and the columns of graphs, of which few are features."""
    schema, graph, found = dataset.schema, dataset.graph, list[ColumnReport]()
    if schema.smiles is not None:
        reason = f"{schema.features}: {graph.node_width} for each atom, {graph.edge_width} for each bond"
        features = graph.node_width + graph.edge_width
        found.append(
            ColumnReport(table="graphs", name=schema.smiles, kind="molecule", reason=reason, features=features)
        )
    for level, fitted in schema.tables.items():
        if not level.takes_columns:
            continue
        table = level.table
        for column in fitted.columns:
            found.append(
                ColumnReport(
                    table=table, name=column.name, kind=column.kind, reason=column.reason, features=column.width
                )
            )
        if fitted.structure != "none":
            made = " and ".join(fitted.names)
            reason = "made, for no column gives a feature"
            found.append(
                ColumnReport(table=table, name=made, kind="structure", reason=reason, features=len(fitted.names))
            )
    for column in schema.graphs.columns:
        parts = "nodes and edges" if schema.smiles is None else "atoms and bonds"
        chosen = column.name in schema.graph_columns
        reason = column.reason if chosen else f"a graph is described by its {parts} alone"
        features = column.width if chosen else 0
        found.append(ColumnReport(table="graphs", name=column.name, kind=column.kind, reason=reason, features=features))
    if schema.descriptors.width:
        reason, features = "of each molecule as a whole, by rdkit", schema.descriptors.width
        found.append(
            ColumnReport(table="graphs", name="descriptors", kind="descriptors", reason=reason, features=features)
        )
    return found


def _labels(dataset: Dataset, spec: TargetSpec, findings: list[Finding]) -> LabelReport:
    """Count the labels of a target as training reads them; labels that training refuses are added to the findings."""
    written = dataset.labels(spec.level, spec.column)
    labels = as_labels(written)
    present = labels.dropna()
    censoring = None if labels is written else split_limits(as_arrow(written))[1]
    censored = 0 if censoring is None else int((censoring != 0).sum())
    missing, regression, kind, reason = len(labels) - len(present) - censored, is_regression_target(present), "", ""
    try:
        kind, reason = describe_target(written, spec)
    except DataError as error:
        where = f"{dataset.tables.name(spec.level.table)}, column {spec.column}"
        if not any(found.kind == "labels" and found.where == where for found in findings):
            findings.insert(0, Finding(level="problem", what=str(error), kind="labels", where=where))
    else:
        if kind in ("regression", "oriented") and not regression:
            present = pd.Series(as_numbers(written)).dropna()
        regression = kind in ("regression", "oriented")
    return LabelReport(
        target=f"{spec.level}:{spec.column}",
        rows=len(labels),
        missing=missing,
        **_summarize(present, regression),
        censored=censored,
        kind=kind,
        reason=reason,
    )


def _summarize(present: pd.Series[Any], quantity: bool) -> _Summary:
    """The rows of each class and the number of classes, or the range of a quantity."""
    if quantity and len(present):
        values = present.to_numpy(dtype=np.float64)
        ends = {"least": float(values.min()), "mean": float(values.mean()), "most": float(values.max())}
        return {"classes": {}, "num_classes": 0, "quantity": ends | {"deviation": float(values.std())}}
    counts = present.map(_name).value_counts(sort=True) if len(present) else pd.Series(dtype=np.int64)
    rows = {str(name): int(count) for name, count in counts.head(MAX_CLASSES).items()}
    return {"classes": rows, "num_classes": int(present.nunique()), "quantity": {}}


def _name(label: object) -> str:
    """A class as text; 1.0, which is what a whole number beside gaps is read as, is 1."""
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)
