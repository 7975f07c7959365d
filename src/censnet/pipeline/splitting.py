"""Split the rows and links of a data set: as a column, masks or a file state it, or else drawn."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from censnet.data.splits.links import LinkSplit, links, read_links
from censnet.data.splits.split_file import PARTS, Split, read_splits
from censnet.data.splits.splitters import Fractions, by_time, label_rate, ratio, scaffold, stratified
from censnet.data.splits.stated import StatedSplit, find_stated, read_column
from censnet.data.splits.timed_links import links_by_time
from censnet.data.tables.keys import says_split
from censnet.data.tables.times import TimeColumn
from censnet.data.typed_data import TypedData
from censnet.errors import DataError, first_few, name_columns, quote
from censnet.levels import Level
from censnet.ops.arrays import BoolArray, IntArray
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.option_names import time_option
from censnet.pipeline.molecule_splits import find_split_column
from censnet.settings.schema import DataSettings
from censnet.text import count

logger = logging.getLogger(__name__)


def split_rows(
    data: TypedData,
    columns: Mapping[str, Sequence[str]],
    settings: DataSettings,
    seed: int,
    hidden: BoolArray | None = None,
) -> dict[str, Split]:
    """For each level that has targets, the parts of its INPUT rows, each with where it came from.

    Rows that became one edge are in one part. In a set of many graphs it is graphs that are shared out, and the nodes
    and edges of a graph go with it, unless the table itself says otherwise.

    Args:
        data: what was read.
        columns: level -> the columns of its targets.
        settings: how to split.
        seed: of the split, unless the settings have one.
        hidden: a mask of the rows of edges that no split by time may use.
    """
    seed = seed if settings.split_seed is None else settings.split_seed
    if settings.split == "file":
        return _from_file(data, columns, settings)
    if data.schema.smiles is not None and any(level != Level.GRAPH for level in columns):
        return _with_molecules(data, columns, settings, seed)
    found = {}
    for level, names in columns.items():
        labels = pd.DataFrame({name: data.labels(level, name) for name in names})
        draw = _Draw(data, Level(level), labels, settings, seed)
        if hidden is not None and level == Level.EDGE and _is_by_time(draw):
            draw = replace(draw, labels=labels.where(pd.Series(~hidden, index=labels.index), None))
        split = _stated(draw) if settings.split_times is None else None
        if split is None and _is_by_time(draw):
            split = _by_time(draw)
        if split is None and isinstance(data.graph, GraphSet) and draw.level is not Level.GRAPH:
            split = _with_their_graphs(draw)
        if split is None:
            split = _drawn(draw)
        found[level] = _usable(split, data.rows(level), labels)
    return found


def split_links(data: TypedData, settings: DataSettings, seed: int, ordered: bool = False) -> LinkSplit:
    """Split links into those of message passing, validation and test, by time where edges have times.

    Args:
        data, settings, seed: as in `split_rows`.
        ordered: whether the direction of a link is predicted.
    """
    if not isinstance(data.graph, Graph):
        raise DataError("there are many graphs, expected one: links are predicted within one graph")
    if settings.split == "file":
        path = _split_file(settings)
        found, source = read_links(path, data.rows("edge"), ordered), f"file {path.name}"
    else:
        seed = seed if settings.split_seed is None else settings.split_seed
        if data.graph.times is not None and settings.split in ("auto", "time"):
            return _links_by_time(data, settings, seed, ordered)
        found, source = links(data.graph, settings.link_fractions, seed, ordered), f"drawn at random, seed {seed}"
    return replace(found, rows=replace(found.rows, source=source))


def _links_by_time(data: TypedData, settings: DataSettings, seed: int, ordered: bool) -> LinkSplit:
    """Later links that are new; the source of the split says when parts begin, and what is left out."""
    graph, column, file = data.graph, data.schema.time, data.tables.name("edges")
    assert isinstance(graph, Graph)
    assert graph.times is not None
    column = column or TimeColumn(name="time")
    starts = None if settings.split_times is None else _read_starts(settings, column)
    found = links_by_time(graph, settings.link_fractions, seed, ordered, starts=starts, file=file, column=column.name)
    when = _from_when(column, graph.times, found.rows.parts)
    left = graph.num_edges - sum(map(len, found.rows.parts.values()))
    source = f"by time, column {column.name} of {file}{when}, of links that are new between known nodes"
    if left:
        source += f"; {count(left, 'later edge')} repeat a link, join a new node or are loops: not seen, not judged"
    return replace(found, rows=replace(found.rows, source=source))


@dataclass(frozen=True, eq=False)
class _Draw:
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


def _drawn(draw: _Draw) -> Split:
    """A split at random, or by the structure of the molecules."""
    data, settings, labels = draw.data, draw.settings, draw.labels
    where = data.tables.name(draw.level.table)
    if not draw.labeled.any():
        raise DataError(f"no row has a label, expected some in {first_few(labels.columns)}", where)
    unread = _unread_columns(draw)
    if settings.split == "scaffold":
        if draw.level is not Level.GRAPH or data.schema.smiles is None:
            raise DataError("data.split is scaffold, expected molecules: use stratified or ratio")
        if data.scaffolds is None:
            raise ValueError("the scaffolds were not computed, expected read_data(..., scaffolds=True)")
        split = scaffold(data.scaffolds, settings.fractions, draw.seed)
        how = f"scaffolds, seed {draw.seed}"
    elif settings.split == "label-rate":
        if labels.shape[1] > 1:
            raise DataError(f"data.split is label-rate with {labels.shape[1]} columns of labels, expected one")
        rate = settings.label_rate
        split = label_rate(labels.iloc[:, 0].where(draw.rows >= 0), rate, draw.seed)
        return replace(split, source=f"drawn at random, label rate {rate:g}, seed {draw.seed}{unread}")
    else:
        split, how = draw.at_random(draw.labeled, settings.fractions)
        how = f"drawn at random, {how}"
    return replace(split, source=f"{how}{unread}", by_fractions=True)


def _stated(draw: _Draw) -> Split | None:
    """The split that the user's table states, if it is asked for or plainly there."""
    settings, table = draw.settings, draw.level.table
    frame, file = draw.data.tables.frames()[table], draw.data.tables.name(table)
    if settings.split == "column" or (settings.split == "time" and not _is_by_time(draw)):
        name = settings.split_column or ("split" if settings.split == "column" else None)
        if name is None or name not in frame.columns:
            found = "not set" if name is None else quote(name)
            hint = f" (of edges that happen, give {time_option('COLUMN')})" if settings.split == "time" else ""
            raise DataError(
                f"data.split_column is {found}, expected a column of {file}: {name_columns(frame.columns)}{hint}"
            )
        if settings.split == "time":
            split = by_time(frame[name], settings.fractions, file=file, column=name)
            return replace(split, source=f"by time, column {name} of {file}", by_fractions=True)
        return _complete(read_column(frame[name], file, name), draw)
    if settings.split != "auto":
        return None
    stated = find_stated(frame, draw.data.schema.table(table), file, settings.split_index)
    return None if stated is None else _complete(stated, draw)


def _is_by_time(draw: _Draw) -> bool:
    """Whether edges are split by their own times."""
    settings = draw.settings
    timed = draw.level is Level.EDGE and draw.data.graph.times is not None
    return timed and (settings.split == "auto" or (settings.split == "time" and settings.split_column is None))


def _by_time(draw: _Draw) -> Split:
    """The labeled edges by their times: in these shares, or with validation and test from the times that are given."""
    times, column, settings = draw.data.graph.times, draw.data.schema.time, draw.settings
    assert times is not None
    name, where = "time" if column is None else column.name, draw.data.tables.name("edges")
    labeled = np.flatnonzero(draw.labeled)
    if len(labeled) == 0:
        raise DataError(f"no row has a label, expected some in {first_few(draw.labels.columns)}", where)
    found = times.numpy()[draw.rows[labeled]]
    codes = np.full(len(draw.rows), -1)
    if settings.split_times is None:
        codes[labeled] = by_time(found, settings.fractions, file=where, column=name).codes(len(labeled))
    else:
        starts = _read_starts(settings, column or TimeColumn(name=name))
        codes[labeled] = (found >= starts[0]).astype(int) + (found >= starts[1])
        empty = [part for code, part in ((1, "validation"), (2, "test")) if len(found) and code not in codes[labeled]]
        if empty:
            last = (column or TimeColumn(name=name)).show(float(found.max()))
            logger.warning(
                "data.split_times leaves no labeled edge for %s: the last one is at %s", " and ".join(empty), last
            )
    split = Split.of(codes)
    edges = {part: torch.from_numpy(draw.rows[rows.numpy()]) for part, rows in split.parts.items()}
    source = f"by time, column {name} of {where}{'' if column is None else _from_when(column, times, edges)}"
    return replace(split, source=source, by_fractions=settings.split_times is None)


def _read_starts(settings: DataSettings, column: TimeColumn) -> tuple[float, float]:
    """The times at which validation and test begin, as they are given."""
    assert settings.split_times is not None
    first, second = (column.read_one(time, "data.split_times") for time in settings.split_times)
    if first > second:
        raise DataError(f"data.split_times is {settings.split_times}, expected the first time to be earlier")
    return first, second


def _from_when(column: TimeColumn, times: Tensor, edges: Mapping[str, Tensor]) -> str:
    """When validation and test begin, for the user."""
    starts = ((part, edges[part]) for part in PARTS[1:])
    return "".join(f", {part} from {column.show(float(times[some].min()))}" for part, some in starts if len(some))


def _complete(stated: StatedSplit, draw: _Draw) -> Split:
    """A stated split with the parts that it lacks.

    Validation rows are drawn from training rows, or with them from the rows in no part if training rows are not stated
    either. Where training rows alone are stated, all others with a label are test rows; else no test rows are made up.
    """
    codes, parts, source = stated.codes.copy(), stated.parts, stated.source
    shares = (draw.settings.fractions[0], draw.settings.fractions[1], 0.0)
    free, drawn, drawn_from = draw.labeled & (codes < 0), "", ""
    if 0 not in parts and free.any():
        codes[free] = 0
        source += "; all other rows train"
        drawn, drawn_from = "validation", "those"
    elif 0 in parts:
        drawn, drawn_from = "validation", "the training rows"
        if parts == {0} and free.any():
            codes[free] = 2
            source += "; all other rows test"
    training = draw.labeled & (codes == 0)
    if not drawn or 1 in parts or shares[1] == 0 or training.sum() < 2:
        return replace(Split.of(codes), source=source)
    split, how = draw.at_random(training, shares)
    codes[split.validation.numpy()] = 1
    return replace(Split.of(codes), source=f"{source}; {drawn} drawn from {drawn_from}, {how}", by_fractions=True)


def _unread_columns(draw: _Draw) -> str:
    """A remark where the table states a split and another one was asked for."""
    if draw.settings.split == "auto":
        return ""
    frame = draw.data.tables.frames()[draw.level.table]
    found = [name for name in map(str, frame.columns) if says_split(name)]
    return f" ({', '.join(found)} not read: data.split is {draw.settings.split})" if found else ""


def _with_their_graphs(draw: _Draw) -> Split:
    """The rows of each graph in the part of the graph: as the table of graphs states it, or at random."""
    graphs, settings = draw.data.graph, draw.settings
    assert isinstance(graphs, GraphSet)
    if settings.split not in ("auto", "random", "ratio"):
        raise DataError(
            f"data.split is {settings.split}, expected auto, random, ratio, column, time or file: the "
            f"{draw.level.table} of many graphs go with their graphs"
        )
    frame, by_fractions = draw.data.tables.frames().get("graphs"), True
    source = f"graphs drawn at random, seed {draw.seed}"
    part = None
    if frame is not None and settings.split == "auto":
        stated = find_stated(frame, draw.data.schema.graphs, draw.data.tables.name("graphs"), settings.split_index)
        if stated is not None:
            whole = replace(draw, level=Level.GRAPH, labels=pd.DataFrame({"": np.zeros(len(frame))}))
            split = _complete(stated, whole)
            source, by_fractions = f"graphs by {split.source}", split.by_fractions
            part = split.to_graph(draw.data.rows("graph")).codes(len(graphs))
    if part is None:
        part = ratio(len(graphs), settings.fractions, draw.seed).codes(len(graphs))
    of_row, rows = part[draw.level.owners(graphs).numpy()], draw.rows
    split = Split.of(np.where(rows >= 0, of_row[rows], -1))
    return replace(split, source=source, by_fractions=by_fractions)


def _with_molecules(
    data: TypedData, columns: Mapping[str, Sequence[str]], settings: DataSettings, seed: int
) -> dict[str, Split]:
    """One split of molecules for all levels: atoms and bonds go with their molecule, and so does its own label."""
    graphs, graph_of_row = data.graph, data.rows("graph").numpy()
    num_rows = len(graph_of_row)
    assert isinstance(graphs, GraphSet)
    labels = {
        level: pd.DataFrame({name: data.labels(level, name) for name in names}) for level, names in columns.items()
    }
    labeled = np.zeros(num_rows, bool)
    kept = np.flatnonzero(graph_of_row >= 0)
    row_of_graph = np.full(len(graphs), -1)
    row_of_graph[graph_of_row[kept]] = kept
    for level, frame in labels.items():
        some = np.flatnonzero(frame.notna().any(axis=1).to_numpy() & (data.rows(level).numpy() >= 0))
        owners = Level(level).owners(graphs).numpy()[data.rows(level).numpy()[some]]
        rows = row_of_graph[owners]
        labeled[rows[rows >= 0]] = True
    if not labeled.any():
        names = [name for frame in labels.values() for name in frame.columns]
        raise DataError(f"no row has a label, expected some in {first_few(names)}", data.tables.name("graphs"))
    given = labels.get(Level.GRAPH) if settings.split in ("stratified", "label-rate") else None
    if given is None:
        if settings.split in ("stratified", "label-rate"):
            raise DataError(
                f"data.split is {settings.split}, expected auto, ratio, scaffold, column, time or file: atoms and "
                "bonds go with their molecules, which have no label"
            )
        given = pd.DataFrame({"": np.where(labeled, 1.0, np.nan)})
    whole = _Draw(data, Level.GRAPH, given, settings, seed)
    column = find_split_column(data, settings)
    split = (_stated(whole) or _drawn(whole)) if column is None else _complete(read_column(*column), whole)
    codes = split.codes(num_rows)
    part = np.full(len(graphs), -1, codes.dtype)
    part[graph_of_row[kept]] = codes[kept]
    way, found = "" if split.source.startswith("drawn") else "by ", {}
    for level, frame in labels.items():
        of_row, rows = np.append(part[Level(level).owners(graphs).numpy()], -1), data.rows(level).numpy()
        mine = replace(Split.of(np.where(rows >= 0, of_row[rows], -1)), by_fractions=split.by_fractions)
        found[level] = _usable(replace(mine, source=f"molecules {way}{split.source}"), data.rows(level), frame)
    return found


def _usable(split: Split, rows: Tensor, labels: pd.DataFrame) -> Split:
    """Without the rows that are bad or have no label at all."""
    codes = split.codes(len(rows))
    codes[(rows.numpy() < 0) | ~labels.notna().any(axis=1).to_numpy()] = -1
    return replace(Split.of(codes), source=split.source, by_fractions=split.by_fractions)


def _from_file(data: TypedData, columns: Mapping[str, Sequence[str]], settings: DataSettings) -> dict[str, Split]:
    path = _split_file(settings)
    frames = data.tables.frames()
    ids = {Level(level).table: frames[Level(level).table][data.id_columns(level)] for level in columns}
    splits, found = read_splits(path, ids), {}
    for level, names in columns.items():
        table = Level(level).table
        if table not in splits:
            raise DataError(f"has no split of {table}, expected one for the {level} targets", path.name)
        labels = pd.DataFrame({name: data.labels(level, name) for name in names})
        found[level] = _usable(replace(splits[table], source=f"file {path.name}"), data.rows(level), labels)
    return found


def _split_file(settings: DataSettings) -> Path:
    if settings.split_file is None:
        raise DataError("data.split is file, but data.split_file is not set, expected the path of a splits.csv")
    return Path(settings.split_file)


def hidden_rows(split: LinkSplit, edge_rows: Tensor) -> Tensor:
    """A mask of the INPUT rows of edges that the model may not see, because they are links to be predicted."""
    seen = torch.zeros(int(edge_rows.max()) + 1 if len(edge_rows) else 0, dtype=torch.bool)
    seen[split.rows.train] = True
    return (edge_rows >= 0) & ~seen[edge_rows.clamp(min=0)]
