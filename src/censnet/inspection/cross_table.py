"""Target leakage across tables: a node column that leaks the label of incident edges, and the like.

Rows of a table belong to rows of another: edges to their nodes, nodes and edges to their graph. So labels can be
aggregated over the rows that they belong to, and columns over the rows that carry the labels. The sample size of a
test is the number of aggregated rows, not of their members, which may repeat one value a thousand times.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch

from censnet.data.dataset import Dataset
from censnet.data.tables.keys import TABLES
from censnet.data.tables.schema import TableSchema
from censnet.inspection.cross_table_tests import BothEnds, OnColumns, OnLabels, Test
from censnet.inspection.groupings import Grouping
from censnet.inspection.leakage import Values, as_labels, is_regression_target

MAX_CELLS = 20_000_000  # of features that are vectors


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
