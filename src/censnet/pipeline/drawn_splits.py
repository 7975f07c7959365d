"""Splits of one level that are drawn: at random, by the structure of molecules, or by the times of edges and links."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from censnet.data.dataset import TypedData
from censnet.data.splits.links import LinkSplit
from censnet.data.splits.split_file import PARTS, Split
from censnet.data.splits.splitters import Fractions, by_time, label_rate, ratio, scaffold, stratified
from censnet.data.splits.timed_links import links_by_time
from censnet.data.tables.keys import says_split
from censnet.data.tables.times import TimeColumn
from censnet.errors import DataError, first_few
from censnet.levels import Level
from censnet.ops.arrays import BoolArray, IntArray
from censnet.ops.graph import Graph
from censnet.settings.schema import DataSettings
from censnet.text import count

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class SplitInputs:
    """The inputs of a split of one level: its labels, the settings and a seed."""

    data: TypedData
    level: Level
    labels: pd.DataFrame
    settings: DataSettings
    seed: int

    @property
    def rows(self) -> IntArray:
        """For each input row its row in the tensors, or -1."""
        return np.asarray(self.data.rows(self.level).numpy())

    @property
    def labeled(self) -> BoolArray:
        """A mask of the input rows that can be used and have a label."""
        return np.asarray((self.rows >= 0) & self.labels.notna().any(axis=1).to_numpy())

    def _count_classes(self, column: str) -> int:
        """The number of different labels of a column."""
        try:
            return int(self.labels[column].nunique())
        except TypeError:  # arrays, frames and the like
            kind = type(self.labels[column].dropna().iloc[0]).__name__
            file = self.data.tables.name(self.level.table)
            raise DataError(
                f"holds {kind}, expected one number or one class in each row", file, column=column
            ) from None

    def at_random(self, chosen: BoolArray, fractions: Fractions) -> tuple[Split, str]:
        """Some of the input rows, at random in these shares, and how it was done."""
        groups = self.rows if self.level is Level.EDGE else None
        few = all(self._count_classes(str(name)) <= 20 for name in self.labels)
        if self.settings.split == "stratified" or (
            self.settings.split != "ratio" and few and self.level is not Level.GRAPH
        ):
            labels = self.labels.where(pd.Series(chosen, index=self.labels.index), None)
            return stratified(labels, fractions, self.seed, groups=groups), f"stratified, seed {self.seed}"
        rows = np.flatnonzero(chosen)
        return ratio(len(chosen), fractions, self.seed, rows=rows, groups=groups), f"seed {self.seed}"


def draw_split(inputs: SplitInputs) -> Split:
    """A split at random, or by the structure of the molecules."""
    data, settings, labels = inputs.data, inputs.settings, inputs.labels
    where = data.tables.name(inputs.level.table)
    if not inputs.labeled.any():
        raise DataError(f"no row has a label, expected some in {first_few(labels.columns)}", where)
    unread = unread_columns(inputs)
    if settings.split == "scaffold":
        if inputs.level is not Level.GRAPH or data.schema.smiles is None:
            raise DataError("data.split is scaffold, expected molecules: use stratified or ratio")
        if data.scaffolds is None:
            raise ValueError("the scaffolds were not computed, expected read_data(..., scaffolds=True)")
        split = scaffold(data.scaffolds, settings.fractions, inputs.seed)
        how = f"scaffolds, seed {inputs.seed}"
    elif settings.split == "label-rate":
        if labels.shape[1] > 1:
            raise DataError(f"data.split is label-rate with {labels.shape[1]} columns of labels, expected one")
        rate = settings.label_rate
        split = label_rate(labels.iloc[:, 0].where(inputs.rows >= 0), rate, inputs.seed)
        return replace(split, source=f"drawn at random, label rate {rate:g}, seed {inputs.seed}{unread}")
    else:
        split, how = inputs.at_random(inputs.labeled, settings.fractions)
        how = f"drawn at random, {how}"
    return replace(split, source=f"{how}{unread}", by_fractions=True)


def unread_columns(inputs: SplitInputs) -> str:
    """A remark where the table states a split and another one was asked for."""
    if inputs.settings.split == "auto":
        return ""
    frame = inputs.data.tables.frames()[inputs.level.table]
    found = [name for name in map(str, frame.columns) if says_split(name)]
    return f" ({', '.join(found)} not read: data.split is {inputs.settings.split})" if found else ""


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
