"""Target leakage across tables: a node column that leaks the label of incident edges, and the like.

Rows of a table belong to rows of another: edges to their nodes, nodes and edges to their graph. So labels can be
aggregated over the rows that they belong to, and columns over the rows that carry the labels. The sample size of a
test is the number of aggregated rows, not of their members, which may repeat one value a thousand times.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import torch
from scipy.stats import rankdata

from censnet.data.dataset import Dataset
from censnet.data.tables.columns import as_arrow
from censnet.data.tables.keys import TABLES
from censnet.data.tables.schema import TableSchema
from censnet.inspection.leakage import (
    CORRELATION,
    FEWEST,
    GAIN,
    Labels,
    Values,
    as_labels,
    is_regression_target,
    label_gain,
    sample_rows,
)
from censnet.levels import Level
from censnet.ops.arrays import Array
from censnet.ops.graph_set import GraphSet

MAX_OWNERS = 4_000  # rows that labels or columns are aggregated over
MAX_VALUES = 20  # of a column of nodes, up to which the values at both ends of an edge are taken together
MAX_CODES = 1_000  # of a column whose most common value on each owner is looked at
PURE = 0.95
MAX_CELLS = 20_000_000  # of features that are vectors


@dataclass(frozen=True, eq=False)
class Grouping:
    """Rows of one table that belong to rows of another.

    Args:
        members, owners: the two tables.
        words: the members, as seen from an owner.
        member, owner: pairs of rows, counted from 0.
    """

    members: str
    owners: str
    words: str
    member: Array
    owner: Array

    def of(self, owners: Array, count: int) -> Grouping:
        """The members of some owners, these numbered from 0; `count` is that of all."""
        number = np.full(count, -1)
        number[owners] = np.arange(len(owners))
        kept = number[self.owner] >= 0
        return Grouping(self.members, self.owners, self.words, self.member[kept], number[self.owner[kept]])


def find_groupings(data: Dataset) -> list[Grouping]:
    """The groupings of the rows of all tables, read from the tensors."""
    frames, found = data.tables.frames(), list[Grouping]()
    if {"nodes", "edges"} <= frames.keys():
        source, target = edge_ends(data)
        rows = np.flatnonzero((source >= 0) & (target >= 0))
        source, target = source[rows], target[rows]
        both = np.concatenate([source, target]), np.concatenate([rows, rows])
        found.append(Grouping("edges", "nodes", "its edges", both[1], both[0]))
        found.append(Grouping("edges", "nodes", "the edges that start there", rows, source))
        found.append(Grouping("edges", "nodes", "the edges that end there", rows, target))
    if "graphs" in frames and isinstance(data.graph, GraphSet):
        first = _first_rows(data.rows("graph").numpy(), len(data.graph))
        for level in data.tables.by_level:
            if level is not Level.GRAPH:
                graph, place = first[level.owners(data.graph).numpy()], data.rows(level).numpy()
                rows = np.flatnonzero(place >= 0)
                found.append(Grouping(level.table, "graphs", f"its {level.table}", rows, graph[place[rows]]))
    return found


def edge_ends(data: Dataset) -> tuple[Array, Array]:
    """For each row of the edges, the rows of its source and its target in the table of nodes; -1 for a bad row."""
    frames, place = data.tables.frames(), data.rows("edge").numpy()
    first = _first_rows(data.rows("node").numpy(), data.count("node"))
    ends = np.full((2, len(place)), -1)
    good = place >= 0
    ends[:, good] = first[data.graph.global_ends.cpu().numpy()[:, place[good]]]
    name, source = data.schema.nodes.keys.get("id"), data.schema.edges.keys.get("source")
    if name in frames["nodes"] and source in frames["edges"]:  # the tensors do not say which end is the source
        ids, start = as_arrow(frames["nodes"][name]).cast(pa.string()), as_arrow(frames["edges"][source])
        other = pc.not_equal(ids.take(pa.array(np.maximum(ends[0], 0))), start.cast(pa.string())).fill_null(False)
        swapped = np.asarray(other) & good
        ends[:, swapped] = ends[::-1, swapped]
    return ends[0], ends[1]


def _first_rows(became: Array, count: int) -> Array:
    """For each row of the tensors, the first input row that became it; -1 if none did."""
    source = np.full(count, -1)
    good = np.flatnonzero(became >= 0)[::-1]
    source[became[good]] = good
    return source


class Test(Protocol):
    """A test of columns of one table against labels of another."""

    def of(self, values: Values) -> tuple[bool, str] | None:
        """Whether a column leaks the labels: surely or perhaps, and how."""

    def of_numbers(self, columns: Array, rows: Array) -> list[tuple[int, str]]:
        """Those of many columns, given on some rows, that leak the labels; each with how."""

    rows: Array  # whose columns are read


class OnColumns:
    """Labels aggregated over the rows that they belong to, against the columns of these rows."""

    def __init__(self, grouping: Grouping, labels: pd.Series[Any], count: int) -> None:
        known = labels.notna().to_numpy()[grouping.member]
        member, owner = grouping.member[known], grouping.owner[known]
        codes, classes = pd.factorize(labels)
        number = _as_targets(labels, codes, classes)
        most = _aggregate(number[:, :1], member, owner, count)["highest"][:, 0]
        self.rows = sample_rows(pd.Series(most), MAX_OWNERS)
        part = Grouping(grouping.members, grouping.owners, grouping.words, member, owner).of(self.rows, count)
        sums = _aggregate(number, part.member, part.owner, len(self.rows))
        self.targets = CorrelationTargets(np.concatenate(list(sums.values()), axis=1))
        self.kinds = [kind for kind in sums for _ in range(number.shape[1])]
        self.words, self.classes = grouping.words, list[Labels]()
        if not is_regression_target(labels):
            mode, pure = _modes(codes[part.member], part.owner, len(self.rows), len(classes))
            modes = [mode] if pure > PURE else []
            modes += [sums[kind][:, 0] for kind in ("highest", "lowest")] if len(classes) == 2 else []
            self.classes = [Labels(pd.Series(each)) for each in modes if not _nearly_constant(each)]

    def of(self, values: Values) -> tuple[bool, str] | None:
        mine = values.take(self.rows)
        for _, how in self.of_numbers(mine.numbers[:, None], self.rows):
            return True, how
        for labels in self.classes:
            gain, groups = label_gain(mine.codes, labels.codes)
            if gain > GAIN:
                return True, f"its {groups:,} values predict {gain:.0%} of the labels of {self.words}"
        return None

    def of_numbers(self, columns: Array, rows: Array) -> list[tuple[int, str]]:
        size, which = self.targets.correlations(columns)
        return [
            (int(number), f"correlation {size[number]:.3f} with the {self.kinds[which[number]]} label of {self.words}")
            for number in np.flatnonzero(size > CORRELATION)
        ]


class OnLabels:
    """Columns aggregated over the rows that carry the labels, against these labels."""

    def __init__(self, grouping: Grouping, labels: pd.Series[Any]) -> None:
        has = np.zeros(len(labels), bool)
        has[grouping.owner] = True
        owners = sample_rows(labels.where(has), MAX_OWNERS)
        part = grouping.of(owners, len(labels))
        labels = labels.iloc[owners].reset_index(drop=True)
        self.labels, self.owner, self.words = Labels(labels), part.owner, grouping.words
        self.rows, self.place = np.unique(part.member, return_inverse=True)
        codes, classes = pd.factorize(labels)
        self.targets = CorrelationTargets(_as_targets(labels, codes, classes))

    def of(self, values: Values) -> tuple[bool, str] | None:
        mine = values.take(self.rows)
        for _, how in self.of_numbers(mine.numbers[:, None], self.rows):
            return True, how
        codes = np.unique(mine.codes, return_inverse=True)[1]
        kinds = int(codes.max(initial=-1)) + 1
        if self.labels.quantity or not 2 <= kinds <= MAX_CODES:
            return None
        mode, pure = _modes(codes[self.place], self.owner, len(self.labels.codes), kinds)
        gain = label_gain(mode + 1, self.labels.codes)[0] if pure > PURE else 0.0
        return (True, f"its value on {self.words} predicts {gain:.0%} of the labels") if gain > GAIN else None

    def of_numbers(self, columns: Array, rows: Array) -> list[tuple[int, str]]:
        found = dict[int, tuple[float, str]]()
        for kind, values in _aggregate(columns, self.place, self.owner, len(self.labels.codes)).items():
            size, _ = self.targets.correlations(values)
            for number in np.flatnonzero(size > CORRELATION):
                found.setdefault(int(number), (size[number], kind))
        return [
            (number, f"correlation {size:.3f} of its {kind} over {self.words} with the target")
            for number, (size, kind) in found.items()
        ]


class BothEnds:
    """The class of an edge against the pair of values of a categorical column at its two end nodes."""

    def __init__(self, data: Dataset, labels: pd.Series[Any]) -> None:
        source, target = edge_ends(data)
        rows = sample_rows(labels.where((source >= 0) & (target >= 0)))
        self.source, self.target, self.labels = source[rows], target[rows], Labels(labels.iloc[rows])
        self.rows = np.zeros(0, int)

    def of(self, values: Values) -> tuple[bool, str] | None:
        most = MAX_VALUES + 1
        if values.codes.max(initial=0) >= most:
            return None
        gain = label_gain(values.codes[self.source] * most + values.codes[self.target], self.labels.codes)[0]
        return (False, f"its values at the two ends predict {gain:.0%} of the labels") if gain > GAIN else None

    def of_numbers(self, columns: Array, rows: Array) -> list[tuple[int, str]]:
        return []


def _as_targets(labels: pd.Series[Any], codes: Array, classes: Any) -> Array:
    """Labels as columns of numbers: one of a regression target or of two classes, else one of each common class."""
    if is_regression_target(labels):
        return labels.to_numpy(dtype=np.float64, na_value=np.nan)[:, None]
    common = np.argsort(-np.bincount(codes[codes >= 0], minlength=len(classes)), kind="stable")
    common = common[-1:] if len(classes) == 2 else common[:10]
    return np.where(codes[:, None] >= 0, codes[:, None] == common, np.nan).astype(np.float64)


def _aggregate(values: Array, member: Array, owner: Array, count: int) -> dict[str, Array]:
    """The mean, the highest and the lowest of each column over the members of each owner; NaN without any."""
    shape = count, values.shape[1]
    mean, most, least = np.full(shape, np.nan), np.full(shape, -np.inf), np.full(shape, np.inf)
    for column in range(values.shape[1]):
        mine = values[member, column]
        good = np.isfinite(mine)
        size = np.bincount(owner[good], minlength=count)
        total = np.bincount(owner[good], mine[good], minlength=count)
        mean[:, column] = np.where(size > 0, total / np.maximum(size, 1), np.nan)
        np.maximum.at(most[:, column], owner[good], mine[good])
        np.minimum.at(least[:, column], owner[good], mine[good])
    found = {"mean": mean, "highest": most, "lowest": least}
    return {kind: np.where(np.isfinite(each), each, np.nan) for kind, each in found.items()}


class CorrelationTargets:
    """Target columns that other columns are correlated with, by values (Pearson) and by ranks (Spearman).

    Missing values are imputed with the mean. A nearly constant target or a constant column has correlation 0.
    """

    def __init__(self, targets: Array) -> None:
        varied = np.array([not _nearly_constant(target) for target in targets.T], dtype=bool)
        self.values, self.ranks = (_standardize(each) * varied for each in (targets, _rank(targets)))

    def correlations(self, columns: Array) -> tuple[Array, Array]:
        """For each column its largest correlation with a target, and which target that is."""
        if len(columns) < 4 * FEWEST or not columns.size:
            return np.zeros(columns.shape[1]), np.zeros(columns.shape[1], int)
        best = np.abs(_standardize(columns).T @ self.values)
        best = np.maximum(best, np.abs(_standardize(_rank(columns)).T @ self.ranks))
        best[np.isfinite(columns).sum(0) < max(2 * FEWEST, 0.5 * len(columns))] = 0
        return best.max(1, initial=0), best.argmax(1)


def _nearly_constant(target: Array) -> bool:
    """Whether fewer than `FEWEST` rows differ from the rest."""
    finite = target[np.isfinite(target)]
    return len(finite) == 0 or bool(len(finite) - np.unique(finite, return_counts=True)[1].max() < FEWEST)


def _rank(values: Array) -> Array:
    return np.asarray(rankdata(values, axis=0, nan_policy="omit"))


def _standardize(values: Array) -> Array:
    """Columns of mean 0 and length 1, missing values at 0."""
    size = np.maximum(np.isfinite(values).sum(0), 1)
    centered = np.nan_to_num(values - np.nansum(values, axis=0) / size)
    length = np.sqrt((centered**2).sum(0))
    least = 1e-9 * np.sqrt(np.nansum(values**2, axis=0))  # what rounding leaves of a constant
    return np.asarray(centered / np.where(length > least, length, np.inf))


def _modes(codes: Array, owner: Array, count: int, kinds: int) -> tuple[Array, float]:
    """The commonest code on each owner, and the share of members that have it; a code below 0 is none."""
    good = codes >= 0
    pair, times = np.unique(owner[good] * kinds + codes[good], return_counts=True)
    order = np.argsort(times, kind="stable")
    mode = np.full(count, -1)
    mode[pair[order] // kinds] = pair[order] % kinds
    best = np.zeros(count, int)
    np.maximum.at(best, pair // kinds, times)
    return mode, float(best.sum() / max(times.sum(), 1))


class Leak(NamedTuple):
    """A column, or one entry of a vector column, of another table that leaks the target.

    Args:
        file: of its table.
        column: its name; empty for an entry of a vector.
        feature: the name of the entry; empty for a column.
        how: the evidence.
        sure: whether it is beyond doubt.
    """

    file: str
    column: str
    feature: str
    how: str
    sure: bool


def leaks_across(data: Dataset, table: str, target: str, groupings: list[Grouping]) -> Iterator[Leak]:
    """Columns of other tables that leak a target."""
    labels = as_labels(data.labels(table.removesuffix("s"), target))
    if labels.nunique() < 2:
        return
    for other in TABLES:
        names = feature_columns(data, other)
        if other == table or not names or other not in data.tables.frames():
            continue
        tests = list[Test]()
        for grouping in groupings:
            if (grouping.owners, grouping.members) == (table, other):
                tests.append(OnLabels(grouping, labels))
            elif (grouping.owners, grouping.members) == (other, table):
                tests.append(OnColumns(grouping, labels, len(data.tables.frames()[other])))
        if (table, other) == ("edges", "nodes") and not is_regression_target(labels):
            tests.append(BothEnds(data, labels))
        frame, file = data.tables.frames()[other], data.tables.name(other)
        for name in names:
            values = Values.read(frame[name])
            found = [leak for test in tests if (leak := test.of(values)) is not None]
            if found:
                sure, how = max(found, key=lambda each: each[0])
                yield Leak(file, name, "", how, sure)
        for entry, how in _vectors(data, other, tests):
            yield Leak(file, "", entry, how, True)


def feature_columns(data: Dataset, table: str) -> list[str]:
    """The columns of a table that features are made of, each a value in a row; vectors are others."""
    schema = data.schema.features_of(table)
    frame = data.tables.frames().get(table)
    names = [column.name for column in schema.columns if column.width and column.kind != "vector"]
    return [name for name in names if frame is not None and name in frame]


def _vectors(data: Dataset, table: str, tests: list[Test]) -> Iterator[tuple[str, str]]:
    """Entries of vector columns that leak the labels."""
    schema = data.schema.table(table)
    wide = [place for place, kind in enumerate(_feature_kinds(schema)) if kind == "vector"]
    if table == "graphs" or not wide or getattr(data.graph, table).numel() > 10 * MAX_CELLS:
        return
    features, place = getattr(data.graph, table).to_dense()[:, torch.tensor(wide)], data.rows(table.removesuffix("s"))
    known = set[int]()
    for test in tests:
        rows = test.rows[: MAX_CELLS // len(wide)]
        if len(rows) < len(test.rows):
            continue
        mine = np.where(place[rows][:, None] >= 0, features[place[rows].clamp(min=0)].numpy(), np.nan)
        for number, how in test.of_numbers(mine.astype(np.float64), rows):
            if number not in known:
                known.add(number)
                yield schema.names[wide[number]] if wide[number] < len(schema.names) else f"feature {number}", how


def _feature_kinds(schema: TableSchema) -> list[str]:
    return [column.kind for column in schema.feature_columns]
