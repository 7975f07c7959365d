"""Split the rows and links of a data set: as a column, masks or a file state it, or else drawn."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from censnet.data.dataset import TypedData
from censnet.data.splits.links import LinkSplit, links, read_links
from censnet.data.splits.split_file import Split, read_splits
from censnet.data.splits.splitters import by_time, ratio
from censnet.data.splits.stated import StatedSplit, find_stated, read_column
from censnet.errors import DataError, first_few, name_columns, quote
from censnet.levels import Level
from censnet.ops.arrays import BoolArray
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.option_names import time_option
from censnet.pipeline.drawn_splits import SplitInputs, draw_split, is_by_time, split_by_time, split_links_by_time
from censnet.pipeline.molecule_splits import find_split_column
from censnet.settings.schema import DataSettings

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
        inputs = SplitInputs(data, Level(level), labels, settings, seed)
        if hidden is not None and level == Level.EDGE and is_by_time(inputs):
            inputs = replace(inputs, labels=labels.where(pd.Series(~hidden, index=labels.index), None))
        split = _stated(inputs) if settings.split_times is None else None
        if split is None and is_by_time(inputs):
            split = split_by_time(inputs)
        if split is None and isinstance(data.graph, GraphSet) and inputs.level is not Level.GRAPH:
            split = _with_their_graphs(inputs)
        if split is None:
            split = draw_split(inputs)
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
            return split_links_by_time(data, settings, seed, ordered)
        found, source = links(data.graph, settings.link_fractions, seed, ordered), f"drawn at random, seed {seed}"
    return replace(found, rows=replace(found.rows, source=source))


def _stated(inputs: SplitInputs) -> Split | None:
    """The split that the user's table states, if it is asked for or plainly there."""
    settings, table = inputs.settings, inputs.level.table
    frame, file = inputs.data.tables.frames()[table], inputs.data.tables.name(table)
    if settings.split == "column" or (settings.split == "time" and not is_by_time(inputs)):
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
        return _complete(read_column(frame[name], file, name), inputs)
    if settings.split != "auto":
        return None
    stated = find_stated(frame, inputs.data.schema.table(table), file, settings.split_index)
    return None if stated is None else _complete(stated, inputs)


def _complete(stated: StatedSplit, inputs: SplitInputs) -> Split:
    """A stated split with the parts that it lacks.

    Validation rows are drawn from training rows, or with them from the rows in no part if training rows are not stated
    either. Where training rows alone are stated, all others with a label are test rows; else no test rows are made up.
    """
    codes, parts, source = stated.codes.copy(), stated.parts, stated.source
    shares = (inputs.settings.fractions[0], inputs.settings.fractions[1], 0.0)
    free, drawn, drawn_from = inputs.labeled & (codes < 0), "", ""
    if 0 not in parts and free.any():
        codes[free] = 0
        source += "; all other rows train"
        drawn, drawn_from = "validation", "those"
    elif 0 in parts:
        drawn, drawn_from = "validation", "the training rows"
        if parts == {0} and free.any():
            codes[free] = 2
            source += "; all other rows test"
    training = inputs.labeled & (codes == 0)
    if not drawn or 1 in parts or shares[1] == 0 or training.sum() < 2:
        return replace(Split.of(codes), source=source)
    split, how = inputs.at_random(training, shares)
    codes[split.validation.numpy()] = 1
    return replace(Split.of(codes), source=f"{source}; {drawn} drawn from {drawn_from}, {how}", by_fractions=True)


def _with_their_graphs(inputs: SplitInputs) -> Split:
    """The rows of each graph in the part of the graph: as the table of graphs states it, or at random."""
    graphs, settings = inputs.data.graph, inputs.settings
    assert isinstance(graphs, GraphSet)
    if settings.split not in ("auto", "random", "ratio"):
        raise DataError(
            f"data.split is {settings.split}, expected auto, random, ratio, column, time or file: the "
            f"{inputs.level.table} of many graphs go with their graphs"
        )
    frame, by_fractions = inputs.data.tables.frames().get("graphs"), True
    source = f"graphs drawn at random, seed {inputs.seed}"
    part = None
    if frame is not None and settings.split == "auto":
        stated = find_stated(frame, inputs.data.schema.graphs, inputs.data.tables.name("graphs"), settings.split_index)
        if stated is not None:
            whole = replace(inputs, level=Level.GRAPH, labels=pd.DataFrame({"": np.zeros(len(frame))}))
            split = _complete(stated, whole)
            source, by_fractions = f"graphs by {split.source}", split.by_fractions
            part = split.to_graph(inputs.data.rows("graph")).codes(len(graphs))
    if part is None:
        part = ratio(len(graphs), settings.fractions, inputs.seed).codes(len(graphs))
    of_row, rows = part[inputs.level.owners(graphs).numpy()], inputs.rows
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
    whole = SplitInputs(data, Level.GRAPH, given, settings, seed)
    column = find_split_column(data, settings)
    split = (_stated(whole) or draw_split(whole)) if column is None else _complete(read_column(*column), whole)
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
