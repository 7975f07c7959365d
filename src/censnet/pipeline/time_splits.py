"""Splits by the times of edges, of labeled edges and of links."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from censnet.data.splits.links import LinkSplit
from censnet.data.splits.split_file import PARTS, Split
from censnet.data.splits.splitters import by_time
from censnet.data.splits.timed_links import links_by_time
from censnet.data.tables.times import TimeColumn
from censnet.data.typed_data import TypedData
from censnet.errors import DataError, first_few
from censnet.levels import Level
from censnet.ops.graph import Graph
from censnet.pipeline.split_inputs import SplitInputs
from censnet.settings.schema import DataSettings
from censnet.text import count

logger = logging.getLogger(__name__)


def split_links_by_time(data: TypedData, settings: DataSettings, seed: int, ordered: bool) -> LinkSplit:
    """Later links that are new; the source of the split says when parts begin, and what is left out."""
    graph, column, file = data.graph, data.schema.time, data.tables.name("edges")
    assert isinstance(graph, Graph)
    assert graph.times is not None
    column = column or TimeColumn(name="time")
    starts = None if settings.split_times is None else read_starts(settings, column)
    found = links_by_time(graph, settings.link_fractions, seed, ordered, starts=starts, file=file, column=column.name)
    when = describe_starts(column, graph.times, found.rows.parts)
    left = graph.num_edges - sum(map(len, found.rows.parts.values()))
    source = f"by time, column {column.name} of {file}{when}, of links that are new between known nodes"
    if left:
        source += f"; {count(left, 'later edge')} repeat a link, join a new node or are loops: neither seen nor scored"
    return replace(found, rows=replace(found.rows, source=source))


def is_by_time(inputs: SplitInputs) -> bool:
    """Whether edges are split by their own times."""
    settings = inputs.settings
    timed = inputs.level is Level.EDGE and inputs.data.graph.times is not None
    return timed and (settings.split == "auto" or (settings.split == "time" and settings.split_column is None))


def split_by_time(inputs: SplitInputs) -> Split:
    """The labeled edges by their times: in these shares, or with validation and test from the times that are given."""
    times, column, settings = inputs.data.graph.times, inputs.data.schema.time, inputs.settings
    assert times is not None
    name, where = "time" if column is None else column.name, inputs.data.tables.name("edges")
    labeled = np.flatnonzero(inputs.labeled)
    if len(labeled) == 0:
        raise DataError(f"no row has a label, expected some in {first_few(inputs.labels.columns)}", where)
    found = times.numpy()[inputs.rows[labeled]]
    codes = np.full(len(inputs.rows), -1)
    if settings.split_times is None:
        codes[labeled] = by_time(found, settings.fractions, file=where, column=name).codes(len(labeled))
    else:
        starts = read_starts(settings, column or TimeColumn(name=name))
        codes[labeled] = (found >= starts[0]).astype(int) + (found >= starts[1])
        empty = [part for code, part in ((1, "validation"), (2, "test")) if len(found) and code not in codes[labeled]]
        if empty:
            last = (column or TimeColumn(name=name)).show(float(found.max()))
            logger.warning(
                "data.split_times leaves no labeled edge for %s: the last one is at %s", " and ".join(empty), last
            )
    split = Split.of(codes)
    edges = {part: torch.from_numpy(inputs.rows[rows.numpy()]) for part, rows in split.parts.items()}
    source = f"by time, column {name} of {where}{'' if column is None else describe_starts(column, times, edges)}"
    return replace(split, source=source, by_fractions=settings.split_times is None)


def read_starts(settings: DataSettings, column: TimeColumn) -> tuple[float, float]:
    """The times at which validation and test begin, as they are given."""
    assert settings.split_times is not None
    first, second = (column.read_one(time, "data.split_times") for time in settings.split_times)
    if first > second:
        raise DataError(f"data.split_times is {settings.split_times}, expected the first time to be earlier")
    return first, second


def describe_starts(column: TimeColumn, times: Tensor, edges: Mapping[str, Tensor]) -> str:
    """The times at which validation and test begin, for the user."""
    starts = ((part, edges[part]) for part in PARTS[1:])
    return "".join(f", {part} from {column.show(float(times[some].min()))}" for part, some in starts if len(some))
