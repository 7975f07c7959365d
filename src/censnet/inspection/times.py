"""Columns of edges that say when each edge happened, and what a random split hides where there is one."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from censnet.data.dataset import IndexedData
from censnet.data.splits.split_file import Split
from censnet.data.tables.times import TimeColumn
from censnet.errors import DataError
from censnet.inspection.findings import Finding
from censnet.option_names import time_option
from censnet.text import plural

MIN_TIMES = 10  # different values, from which on a column may be one of times
_SAMPLE = 10_000
_NAME = re.compile(
    r"(?i:(?:^|[_\W])(?:time|times|timestamp|date|datetime|day|when|ts|created|at)(?:$|[_\W])|(?:time|date)$)"
)


def find_time_columns(data: IndexedData, targets: Sequence[str] = ()) -> list[TimeColumn]:
    """The columns of edges that seem to be times: dates, numbers in the range of epoch seconds, or by their name.

    Args:
        data: that were read.
        targets: the columns of edges that are predicted, which are no times.
    """
    schema, frame, found = data.schema, data.tables.frames().get("edges"), list[TimeColumn]()
    if frame is None or schema.smiles is not None:
        return found
    keys = {*schema.edges.keys.values(), *targets}
    for column in schema.edges.columns:
        if column.name in keys or column.kind not in ("date", "number", "text", "id", "category"):
            continue
        one = _as_times(column.name, frame[column.name])
        if one is not None and (one.has_unit or _NAME.search(column.name)):
            found.append(one)
    return found


def _as_times(name: str, values: pd.Series) -> TimeColumn | None:
    some = values.iloc[:: max(1, len(values) // _SAMPLE)]
    try:
        column = TimeColumn.find(name, some)[0]
        times = column.read(some).numbers
    except DataError:
        return None
    return column if len(pd.unique(times[~pd.isna(times)])) >= MIN_TIMES else None


def time_findings(data: IndexedData, targets: Sequence[str], split: Split | None, link: bool = False) -> list[Finding]:
    """A warning where edges are predicted that seem to have times, and a split does not keep their future apart.

    Where nothing is predicted that is said to be, a remark.

    Args:
        data: that were read.
        targets: the columns of edges that are predicted.
        split: of the edges, if one is given; training would draw one at random otherwise.
        link: whether links are predicted.
    """
    if split is None and data.schema.time is not None:
        return []
    found = find_time_columns(data, targets) if data.schema.time is None else [data.schema.time]
    if not found or (split is not None and any(_is_by_time(data, column, split) for column in found)):
        return []
    file, names = data.tables.name("edges"), " and ".join(column.name for column in found)
    seems = plural(len(found), "seems", "seem")
    if not (targets or link):
        what = (
            f"{file}, column {names}: {seems} to be the time of each edge: {time_option(found[0].name)} predicts "
            "edges and links of later times from those before"
        )
        return [] if data.schema.time is not None else [Finding(level="note", what=what)]
    drawn = "a random split" if targets else "a random split of links"
    way, asked = drawn if split is None else "the split is not by it and", "rows" if targets else "links"
    what = (
        f"{file}, column {names}: {seems} to be the time of each edge; if so, {way} trains on edges that are later "
        f"than the {asked} it tests on: {time_option(found[0].name)} splits by time"
    )
    return [Finding(level="warning", what=what)]


def _is_by_time(data: IndexedData, column: TimeColumn, split: Split) -> bool:
    """Whether the rows of each part are before all of the next."""
    times = column.read(data.tables.frames()["edges"][column.name]).numbers
    parts = [times[rows.numpy()] for rows in split.parts.values() if len(rows)]
    return all(np.nanmax(first) <= np.nanmin(second) for first, second in itertools.pairwise(parts))
