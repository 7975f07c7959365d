"""Duplicates across the parts of a split: molecules, rows and pairs, and contradicting labels of equal ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from censnet.data.dataset import Dataset
from censnet.data.molecules.featurize import canonical
from censnet.data.splits.split_file import PARTS, Split
from censnet.inspection.findings import Finding
from censnet.inspection.leakage import as_labels
from censnet.inspection.structure import pair_ends
from censnet.levels import Level
from censnet.ops.arrays import Array
from censnet.ops.colors import hash_graphs
from censnet.ops.graph_set import GraphSet
from censnet.text import count, plural


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
