"""Audit of a data set: target leakage, duplicates across splits, contradicting labels, rows that cannot be used.

`censnet inspect` shows all findings. `train` warns of leaking features and of duplicates across splits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from censnet.data.dataset import Dataset
from censnet.data.molecules.featurize import canonical
from censnet.data.splits.links import LinkSplit
from censnet.data.splits.split_file import PARTS, Split
from censnet.data.tables.keys import TABLES
from censnet.data.tables.row_errors import summarize_errors
from censnet.inspection.cross_table import Grouping, find_groupings, leaks_across
from censnet.inspection.findings import Finding, sort_findings
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
from censnet.ops.colors import hash_graphs
from censnet.ops.graph_set import GraphSet
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


def same_molecules(data: Dataset, split: Split | None, targets: Sequence[str] = ()) -> list[Finding]:
    smiles = data.schema.smiles
    if smiles is None or data.tables.graphs is None or not isinstance(data.graph, GraphSet):
        return []
    group = _molecules(data, data.graph, smiles)
    size = np.bincount(group[group >= 0])
    file, found = data.tables.name("graphs"), []
    if (size > 1).any():
        many, rows = int((size > 1).sum()), int(size[size > 1].sum())
        stands = plural(many, "stands")
        what = f"{file}: {count(many, 'molecule')} {stands} in {count(rows, 'row')} under one or several spellings"
        found.append(Finding(level="note" if split is None else "warning", what=what))
        for column in targets:
            found += contradictions(group, data.labels("graph", column), f"{file}: ", column)
    if split is not None:
        found += _duplicates_across_splits(group, split, f"{file}: ", "the same molecule")
    return found


def split_of_molecules(data: Dataset, splits: Mapping[str, Split]) -> Split | None:
    """The split of molecules: their own, or that of their atoms or bonds."""
    graphs = data.graph
    if "graphs" in splits or not isinstance(graphs, GraphSet):
        return splits.get("graphs")
    for table, split in splits.items():
        level = Level.of_table(table)
        rows = data.rows(level).numpy()
        codes = split.codes(len(rows))
        part = np.full(len(graphs) + 1, -1, codes.dtype)  # the last is that of rows without a molecule
        used = (rows >= 0) & (codes >= 0)
        part[level.owners(graphs).numpy()[rows[used]]] = codes[used]
        return Split.of(part[data.rows("graph").numpy()])
    return None


def _molecules(data: Dataset, graphs: GraphSet, smiles: str) -> Array:
    """Group rows with the same molecule; -1 for a row without one.

    Only molecules with isomorphic tensors (equal graph hashes) are compared by their canonical SMILES.
    """
    place, rows = data.rows("graph").numpy(), data.tables.frames()["graphs"][smiles].astype("string").fillna("")
    group = np.where(place >= 0, hash_graphs(graphs).cpu().numpy()[place], 0)
    group = np.where(place >= 0, np.unique(group, return_inverse=True)[1], -1)
    alike = np.flatnonzero((group >= 0) & (np.bincount(group + 1)[group + 1] > 1))
    names = canonical(rows.iloc[alike].tolist(), reading=data.schema.reading)
    group[alike] = pd.factorize(pd.Series(names, dtype=object))[0] + group.max(initial=-1) + 1
    return np.asarray(np.where(group >= 0, pd.factorize(group)[0], -1))


def contradictions(group: Array, labels: pd.Series[Any], prefix: str, column: str) -> list[Finding]:
    """Molecules with several different labels, which no model can predict; -1 is no group."""
    known = pd.DataFrame({"group": group, "label": as_labels(labels)})[(group >= 0) & labels.notna().to_numpy()]
    different = known.groupby("group", sort=False)["label"].nunique()
    several = different.index[different > 1]
    if not len(several):
        return []
    rows = known.index[known["group"] == several[0]]
    first = ", ".join(str(row + 1) for row in rows[:3]) + (", ..." if len(rows) > 3 else "")
    molecules = f"{count(len(several), 'molecule')} {plural(len(several), 'has')}"
    what = f"{prefix}{molecules} different labels in {column}, in rows of their own; the first: rows {first}"
    return [Finding(level="warning", what=what)]


def same_rows(data: Dataset, table: str, split: Split, targets: Sequence[str]) -> list[Finding]:
    """Equal rows in two splits: of edges between the same nodes, of nodes with the same values in all columns."""
    frame, schema = data.tables.frames()[table], data.schema.table(table)
    if table == "graphs" and data.schema.smiles is not None:
        return []
    own = {name for role, name in schema.keys.items() if role in ("id", "graph")}
    ids = {column.name for column in schema.columns if column.kind == "id"}
    columns = [name for name in frame.columns if name not in {*own, *ids, *targets}]
    others = [name for name in columns if name not in schema.keys.values()]
    if not others:
        return []
    group = pd.factorize(pd.util.hash_pandas_object(_hashable(frame[columns]), index=False))[0]
    if table != "edges" and group.max() + 1 < 0.5 * len(group):
        return []  # the columns are too coarse: equal rows are not duplicates
    return _duplicates_across_splits(np.asarray(group), split, f"{data.tables.name(table)}: ", "an equal row")


def same_pairs(data: Dataset, split: Split | None) -> list[Finding]:
    """Rows of edges between the same two nodes in two splits: the same edge is a problem, parallel edges are not."""
    if split is None:
        return []
    row, file = data.rows("edge").numpy(), data.tables.name("edges")
    low, high = pair_ends(data.graph)
    found = _duplicates_across_splits(row, split, f"{file}: ", "the same edge")
    part = split.codes(len(row))
    good = np.flatnonzero((row >= 0) & (part >= 0))
    ends = data.graph.global_ends.cpu().numpy()[:, row[good]]
    group = pd.factorize(low[row[good]] * data.count("node") + high[row[good]])[0]
    back, proper = ends[0] > ends[1], ends[0] != ends[1]
    for number in (1, 2):
        mine = (part[good] == number) & proper
        seen = np.zeros((group.max(initial=-1) + 1, 2), dtype=bool)
        train = (part[good] == 0) & proper
        seen[group[train], back[train].astype(int)] = True
        times, rows = int(seen[group[mine], 1 - back[mine].astype(int)].sum()), f"{PARTS[number]} row"
        if times:
            have = plural(times, "has its", "have their")
            what = f"{file}: {times:,} of {count(int(mine.sum()), rows)} {have} reverse in training"
            found.append(Finding(level="warning", what=what))
        times = int(seen[group[mine], back[mine].astype(int)].sum())
        if times:
            has = plural(times, "has")
            what = f"{file}: {times:,} of {count(int(mine.sum()), rows)} {has} a parallel row in training"
            found.append(Finding(level="note", what=what))
    return found


def _duplicates_across_splits(group: Array, split: Split, prefix: str, what: str) -> list[Finding]:
    """A finding for each split with rows whose group is also in the training split; -1 is no group."""
    part, found = split.codes(len(group)), []
    seen = np.zeros(group.max(initial=-1) + 1, dtype=bool)
    seen[group[(part == 0) & (group >= 0)]] = True
    for number in (1, 2):
        rows = group[(part == number) & (group >= 0)]
        times = int(seen[rows].sum())
        if times:
            total = count(len(rows), f"{PARTS[number]} row")
            text = f"{prefix}{times:,} of {total} {plural(times, 'has')} {what} in training"
            found.append(Finding(level="problem", what=text, kind="duplicate"))
    return found


def _hashable(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns of lists and of mixed objects as text."""
    odd = [name for name in frame.columns if frame[name].dtype == object or "list" in str(frame[name].dtype)]
    return frame.assign(**{name: frame[name].map(str) for name in odd})
