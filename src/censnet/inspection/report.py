"""What `censnet inspect` says about a data set, as a model: counts, structure, columns, labels, cost, and the audit."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pydantic import BaseModel, Field

from censnet.data.dataset import Dataset, TypedData
from censnet.data.datasets.download import DATASETS, is_built_in
from censnet.data.load import read_data
from censnet.data.splits.links import LinkSplit, read_links
from censnet.data.splits.split import Split, read_splits
from censnet.data.splits.stated import find_stated, has_wide_masks
from censnet.data.tables.censoring import split_limits
from censnet.data.tables.columns import as_arrow
from censnet.data.tables.keys import LEVELS
from censnet.data.tables.notes import Note
from censnet.data.tables.target_spec import Targets, TargetSpec, parse_targets
from censnet.data.tables.targets import expand_targets, find_targets
from censnet.errors import DataError
from censnet.inspection.audit import LEVEL_OF, Finding, audit
from censnet.inspection.cost_report import Cost
from censnet.inspection.leakage import as_labels, as_numbers, is_regression_target
from censnet.inspection.structure import LineGraph, Structure, measure_structure

MOST_CLASSES = 50


class TableReport(BaseModel):
    """A table that was read."""

    table: str
    file: str
    rows: int
    bad_rows: int


class ColumnReport(BaseModel):
    """What a column became, and why."""

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
    kind: str = Field("", description="what training takes it for: binary, classes or number")
    reason: str = Field("", description="why, and how to have it otherwise")


class Report(BaseModel):
    """Everything `censnet inspect` says."""

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
        """What is wrong, rather than doubtful."""
        return [finding for finding in self.findings if finding.level == "problem"]


def inspect_data(
    data: object,
    target: Targets | None = None,
    splits: str | os.PathLike[str] | None = None,
    estimate: Callable[[TypedData, Targets | None], Cost | str] | None = None,
    describe: Callable[[pd.Series[Any], TargetSpec], tuple[str, str]] | None = None,
    overrides: Mapping[str, str] | None = None,
) -> Report:
    """Read data and report on it.

    Args:
        data: as in `load_data`.
        target: as in `load_data`; for a built-in set, its own targets if None.
        splits: a file of splits to audit. A table with the column `split` is audited by it otherwise.
        estimate: what a training on the data would take, or why there would be none. Without it nothing is estimated.
        describe: labels and what is asked of them -> the kind of target that training takes them for, and why.
        overrides: column -> kind or role, as in `load_data`.
    """
    if not target and is_built_in(data):
        target = list(DATASETS[data].targets)
    specs, link = parse_targets(target) if target else ([], False)
    typed = read_data(data, target=target or None, overrides=overrides)
    dataset = typed.encode()
    specs = expand_targets(specs, dataset.tables, overrides)[0]
    targets = find_targets(specs, dataset.tables)
    parts, links = _splits(dataset, splits)
    found = None if estimate is None else estimate(typed, [*specs, *(["link"] if link else [])] or None)
    report = make_report(dataset, targets, parts, links, None if isinstance(found, str) else found)
    if isinstance(found, str):
        report.notes.append(Note("training", f"a training would not begin: {found}"))
    if describe is not None:
        _tell_kinds(report, dataset, specs, describe)
    return report


def make_report(
    dataset: Dataset,
    targets: Mapping[str, Sequence[str]],
    splits: Mapping[str, Split] | None = None,
    links: LinkSplit | None = None,
    cost: Cost | None = None,
) -> Report:
    """The report on a data set that is in memory; `cost` is what a training would take."""
    splits = splits or {}
    structure, line_graph = measure_structure(dataset.graph)
    sizes = {table: {part: len(rows) for part, rows in split.parts.items()} for table, split in splits.items()}
    if links is not None:
        sizes["links"] = {part: len(rows) for part, rows in links.rows.parts.items()}
    caveats = [note for note in dataset.notes if note.kind == "notation"]
    findings = audit(dataset, targets, splits, links) + [Finding(level="warning", what=doubt) for doubt in caveats]
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
        labels=[_labels(dataset, table, column) for table, names in targets.items() for column in names],
        splits=sizes,
        findings=sorted(findings, key=lambda finding: ("problem", "warning", "note").index(finding.level)),
        notes=[note for note in dataset.notes if note.kind != "notation"],
    )


def _tell_kinds(
    report: Report,
    dataset: Dataset,
    specs: Sequence[TargetSpec],
    describe: Callable[[pd.Series[Any], TargetSpec], tuple[str, str]],
) -> None:
    """Add to the labels what training takes them for; one that it refuses is a problem, if it is none already."""
    labels = {label.target: label for label in report.labels}
    for spec in specs:
        name = f"{spec.level}:{spec.column}"
        values = dataset.labels(spec.level, spec.column)
        try:
            kind, reason = describe(values, spec)
        except DataError as error:
            known = f"{dataset.tables.name(LEVELS[spec.level])}, column {spec.column}: "
            if not any(found.what.startswith(known) for found in report.problems):
                report.findings.insert(0, Finding(level="problem", what=str(error)))
            continue
        label = labels[name]
        label.kind, label.reason = kind, reason
        if (kind == "number") != bool(label.quantity):
            numbers = as_numbers(values) if kind == "number" else None
            exact = None if numbers is None else numbers[~np.isnan(numbers)]
            fresh = _summarise(pd.Series(exact) if exact is not None else as_labels(values).dropna(), kind == "number")
            label.classes, label.num_classes, label.quantity = fresh


def _splits(dataset: Dataset, path: str | os.PathLike[str] | None) -> tuple[dict[str, Split], LinkSplit | None]:
    frames = dataset.tables.frames()
    if path is None:
        found = {}
        for table, frame in frames.items():
            if not has_wide_masks(frame):  # then data.split_index chooses one
                stated = find_stated(frame, dataset.schema.table(table), dataset.tables.name(table))
                if stated is not None:
                    found[table] = replace(Split.of(stated.codes), source=stated.source)
        return found, None
    ids = {table: frame[dataset.id_columns(LEVEL_OF[table])] for table, frame in frames.items()}
    splits = read_splits(path, ids)
    links = read_links(path, dataset.edge_rows) if "links" in splits else None
    for table in splits:
        if table not in frames and table not in ("links", "non-links"):
            raise ValueError(f"{Path(path).name} has a split of {table}, which is not a table of the data")
    return {table: split for table, split in splits.items() if table in frames}, links


def _columns(dataset: Dataset) -> list[ColumnReport]:
    """What each column became; what stands in for columns; and the columns of graphs, of which few are features."""
    schema, graph, found = dataset.schema, dataset.graph, list[ColumnReport]()
    if schema.smiles is not None:
        reason = f"{schema.features}: {graph.node_width} for each atom, {graph.edge_width} for each bond"
        features = graph.node_width + graph.edge_width
        found.append(
            ColumnReport(table="graphs", name=schema.smiles, kind="molecule", reason=reason, features=features)
        )
    for table in ("nodes", "edges"):
        fitted = schema.table(table)
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
        chosen = column.name in schema.chosen
        reason = column.reason if chosen else f"a graph is described by its {parts} alone"
        features = column.width if chosen else 0
        found.append(ColumnReport(table="graphs", name=column.name, kind=column.kind, reason=reason, features=features))
    if schema.descriptors.width:
        reason, features = "of each molecule as a whole, by rdkit", schema.descriptors.width
        found.append(
            ColumnReport(table="graphs", name="descriptors", kind="descriptors", reason=reason, features=features)
        )
    return found


def _labels(dataset: Dataset, table: str, column: str) -> LabelReport:
    written = dataset.labels(LEVEL_OF[table], column)
    labels = as_labels(written)
    present = labels.dropna()
    censoring = None if labels is written else split_limits(as_arrow(written))[1]
    censored = 0 if censoring is None else int((censoring != 0).sum())
    classes, num_classes, quantity = _summarise(present, is_regression_target(present))
    return LabelReport(
        target=f"{LEVEL_OF[table]}:{column}",
        rows=len(labels),
        missing=len(labels) - len(present) - censored,
        classes=classes,
        num_classes=num_classes,
        quantity=quantity,
        censored=censored,
    )


def _summarise(present: pd.Series[Any], quantity: bool) -> tuple[dict[str, int], int, dict[str, float]]:
    """The rows of each class and the number of classes, or the range of a quantity."""
    if quantity and len(present):
        values = present.to_numpy(dtype=np.float64)
        ends = {"least": float(values.min()), "mean": float(values.mean()), "most": float(values.max())}
        return {}, 0, ends | {"deviation": float(values.std())}
    counts = present.map(_name).value_counts(sort=True) if len(present) else pd.Series(dtype=np.int64)
    return (
        {str(name): int(count) for name, count in counts.head(MOST_CLASSES).items()},
        int(present.nunique()),
        {},
    )


def _name(label: object) -> str:
    """A class as text; 1.0, which is what a whole number beside gaps is read as, is 1."""
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)
