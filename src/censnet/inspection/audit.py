"""Audit of a data set: target leakage, duplicates across splits, contradicting labels, rows that cannot be used.

`censnet inspect` shows all findings. `train` warns of leaking features and of duplicates across splits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pandas as pd

from censnet.data.dataset import Dataset
from censnet.data.splits.links import LinkSplit
from censnet.data.splits.split_file import Split
from censnet.data.tables.keys import TABLES
from censnet.data.tables.row_errors import summarize_errors
from censnet.inspection.cross_table import leaks_across
from censnet.inspection.duplicates import same_molecules, same_pairs, same_rows, split_of_molecules
from censnet.inspection.findings import Finding, sort_findings
from censnet.inspection.groupings import Grouping, find_groupings
from censnet.inspection.leakage import (
    Labels,
    Values,
    as_labels,
    id_correlates,
    leaking_features,
    leaks_target,
    sample_rows,
)
from censnet.inspection.structure import pair_ends
from censnet.levels import Level
from censnet.ops.arrays import Array
from censnet.option_names import column_option
from censnet.text import count, plural


def audit(
    data: Dataset,
    targets: Mapping[str, Sequence[str]],
    splits: Mapping[str, Split] | None = None,
    links: LinkSplit | None = None,
) -> list[Finding]:
    """Find everything that is wrong or doubtful, the worst first.

    Args:
        data: the data set.
        targets: table -> the columns to predict.
        splits: table -> its split, of input rows.
        links: a link split of the graph's edges.
    """
    found = _bad_rows(data)
    for table, columns in targets.items():
        for column in columns:
            found += _labels(data, table, column, (splits or {}).get(table))
    found += find_leaks(data, targets, splits)
    if links is not None:
        found += _links(data, links)
    return sort_findings(found)


def find_leaks(
    data: Dataset, targets: Mapping[str, Sequence[str]], splits: Mapping[str, Split] | None = None
) -> list[Finding]:
    """Find columns of any table that leak a target, and duplicates across splits.

    A column is tested on at most 10,000 rows, so that it takes less than a second for a usual table.

    Args:
        data, targets, splits: as in `audit`.
    """
    splits, found = splits or {}, list[Finding]()
    groupings = find_groupings(data) if targets else []
    for table, columns in targets.items():
        for column in columns:
            if table == "graphs" or data.schema.smiles is None:  # atoms and bonds have no column that is a feature
                found += _leaking_columns(data, table, column)
            found += _across(data, table, column, groupings)
    if data.schema.smiles is not None:
        return found + same_molecules(data, split_of_molecules(data, splits), targets.get("graphs", ()))
    for table in TABLES:
        if table in splits:
            found += same_rows(data, table, splits[table], targets.get(table, ()))
    return found + same_pairs(data, splits.get("edges"))


def _across(data: Dataset, table: str, target: str, groupings: list[Grouping]) -> list[Finding]:
    """Columns of other tables that leak the target."""
    found = []
    for leak in leaks_across(data, table, target, groupings):
        use = _drop(leak.column) if leak.column else "it is a feature"
        leaks, column = "leaks" if leak.sure else "may leak", f"column {leak.column}" if leak.column else leak.feature
        what = f"{leak.file}, {column} {leaks} {target} of {data.tables.name(table)} ({leak.how}; {use})"
        found.append(Finding(level="problem" if leak.sure else "warning", what=what, kind="leak"))
    return found


def _drop(column: str) -> str:
    return f"it is a feature, which {column_option((column, 'drop'))} leaves out"


def _bad_rows(data: Dataset) -> list[Finding]:
    found = []
    for table, problems in data.problems.items():
        if problems:
            file, total = data.tables.name(table), len(data.tables.frames()[table])
            rows = f"{len(problems):,} of {count(total, 'row')} of {file} cannot be used"
            if data.schema.smiles is not None and table != "graphs":  # all atoms and bonds, whatever was in the file
                rows = f"{count(len(problems), 'row')} of {file} cannot be used"
            found.append(Finding(level="problem", what=rows + summarize_errors(problems)))
    return found


def _labels(data: Dataset, table: str, column: str, split: Split | None) -> list[Finding]:
    labels = data.labels(Level.of_table(table), column)
    name, found = f"{data.tables.name(table)}, column {column}", []
    present = labels.notna().to_numpy()
    if not present.any():
        return [Finding(level="problem", what=f"{name}: no row has a label", kind="labels", where=name)]
    if labels.nunique() == 1:
        found.append(Finding(level="problem", what=f"{name}: every label is the same", kind="labels", where=name))
    if split is not None:
        for part, rows in split.parts.items():
            drawn = len(rows) == 0 and part != "train" and split.source  # of a stated split, or left out on purpose
            if not drawn and not present[rows.numpy()].any():
                what = f"{name}: no row of the {part} part has a label"
                found.append(Finding(level="problem", what=what, kind="labels", where=name))
    return found


def _leaking_columns(data: Dataset, table: str, target: str) -> list[Finding]:
    """Columns of the same table that leak the target; of a table of graphs only the columns that are features."""
    schema = data.schema.features_of(table)
    frame, file = data.tables.frames()[table], data.tables.name(table)
    if table == "graphs" and not schema.columns:
        return []
    labels = as_labels(frame[target])
    rows = sample_rows(labels)
    sampled = "" if len(rows) == labels.notna().sum() else f"; seen on {len(rows):,} of {len(frame):,} rows"
    labels = labels.iloc[rows].reset_index(drop=True)
    if labels.nunique() < 2:
        return []
    found, known = [], Labels(labels)
    part = frame.iloc[rows]
    for column in schema.columns:
        if column.kind == "vector" or column.name not in frame:
            continue
        leak = leaks_target(Values.read(part[column.name]), known)
        if leak is not None:
            sure, how = leak
            use = _drop(column.name) if column.width else "it is no feature"
            level: Literal["problem", "warning"] = "problem" if sure and column.width else "warning"
            leaks = "leaks" if sure else "may leak"
            what = f"{file}, column {column.name} {leaks} {target} ({how}; {use}{sampled})"
            found.append(Finding(level=level, what=what, kind="leak" if column.width else "other"))
    if table != "graphs" and any(column.kind == "vector" for column in schema.columns):
        found += _leaking_vectors(data, table, target, rows, labels)
    if table == "graphs":
        return found
    for name in (*schema.keys.values(), *(column.name for column in schema.columns if column.kind == "id")):
        if name not in frame or (table == "edges" and name in schema.keys.values()):
            continue  # the end nodes of an edge may well predict its label
        trend = id_correlates(part[name].reset_index(drop=True), labels)
        if trend is not None:
            what = f"{file}, column {name} is an id that follows {target} ({trend})"
            found.append(Finding(level="warning", what=what))
    return found


def _leaking_vectors(data: Dataset, table: str, target: str, rows: Array, labels: pd.Series[Any]) -> list[Finding]:
    features, names = getattr(data.graph, table), data.schema.table(table).names
    place = data.rows(Level.of_table(table))[rows].numpy()
    rows, labels = place[place >= 0][:20_000], labels[place >= 0].reset_index(drop=True)[:20_000]
    if features.numel() > 200_000_000:  # too wide to be laid out
        return []
    features, found = features.to_dense(), list[Finding]()
    step = max(1, 20_000_000 // max(len(rows), 1))
    for start in range(0, features.shape[1], step):
        block = features[rows, start : start + step].numpy()
        for column, size in leaking_features(block, labels):
            name = names[start + column] if start + column < len(names) else f"feature {start + column}"
            what = f"{data.tables.name(table)}, {name} leaks {target} (correlation {size:.3f}; it is a feature)"
            found.append(Finding(level="problem", what=what, kind="leak"))
    return found


def _links(data: Dataset, links: LinkSplit) -> list[Finding]:
    """Test links that training has as edges, and negative pairs that are links."""
    ends = data.graph.ends.cpu().numpy() if links.ordered else pair_ends(data.graph)
    every = pd.MultiIndex.from_arrays(list(ends))
    seen = every[links.rows.train.numpy()]
    copies = "parallel" if links.ordered else "parallel or reverse"
    found = list[Finding]()
    if data.schema.nodes.structure == "degree":
        what = "the degree of the nodes is a feature: `Dataset.seen` counts it on the links of training alone"
        found.append(Finding(level="note", what=what))
    for part in ("validation", "test"):
        asked = [pd.MultiIndex.from_arrays(getattr(links, f"{part}_{kind}").numpy()) for kind in ("links", "negatives")]
        times = int(asked[0].isin(seen).sum())
        if times:
            links_ = count(len(asked[0]), f"{part} link")
            what = f"{times:,} of {links_} {plural(times, 'is')} joined by an edge of training, {copies}"
            found.append(Finding(level="problem", what=what))
        times = int(asked[1].isin(every).sum())
        if times:
            what = f"{times:,} of {count(len(asked[1]), f'{part} non-link')} {plural(times, 'is a link', 'are links')}"
            found.append(Finding(level="problem", what=what))
    return found
