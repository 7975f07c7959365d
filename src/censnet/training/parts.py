"""Which rows of a data set are learnt from, chosen on and judged on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from censnet.data.dataset import Dataset
from censnet.data.errors import DataError, first_few, quote
from censnet.data.splits.links import LinkSplit, links, read_links
from censnet.data.splits.rules import by_column, by_time, label_rate, ratio, scaffold, stratified
from censnet.data.splits.split import Split, read_splits
from censnet.data.tables.targets import table_of
from censnet.ops.graph import Graph, GraphSet
from censnet.training.config import DataSettings


def split_rows(
    data: Dataset, columns: Mapping[str, Sequence[str]], settings: DataSettings, seed: int
) -> dict[str, Split]:
    """For each level that has targets, the parts of its INPUT rows.

    Rows that became one edge are in one part. In a set of many graphs it is graphs that are shared out, and the nodes
    and edges of a graph go with it, unless the table itself says otherwise.

    Args:
        data: what was read.
        columns: level -> the columns of its targets.
        settings: how to split.
        seed: of the split, unless the settings have one.
    """
    seed = seed if settings.split_seed is None else settings.split_seed
    if settings.split == "file":
        return _from_file(data, columns, settings)
    found = {}
    for level, names in columns.items():
        labels = pd.DataFrame({name: data.labels(level, name) for name in names})
        split = _stated(data, level, settings)
        if split is None and isinstance(data.graph, GraphSet) and level != "graph":
            split = _with_their_graphs(data, level, settings, seed)
        if split is None:
            split = _drawn(data, level, labels, settings, seed)
        found[level] = _usable(split, data.rows(level), labels)
    return found


def split_links(data: Dataset, settings: DataSettings, seed: int) -> LinkSplit:
    """Which links are seen, chosen on and judged on."""
    if not isinstance(data.graph, Graph):
        raise DataError("there are many graphs, expected one: links are predicted within one graph")
    if settings.split == "file":
        return read_links(_split_file(settings), data.edge_rows)
    return links(data.graph, settings.link_fractions, seed if settings.split_seed is None else settings.split_seed)


def _drawn(data: Dataset, level: str, labels: pd.DataFrame, settings: DataSettings, seed: int) -> Split:
    """A split at random, or by the structure of the molecules."""
    rows = data.rows(level).numpy()
    labelled = np.flatnonzero((rows >= 0) & labels.notna().any(axis=1).to_numpy())
    if len(labelled) == 0:
        where = data.tables.name(table_of(level))
        raise DataError(f"no row has a label, expected some in {first_few(labels.columns)}", where)
    groups = rows if level == "edge" else None
    if settings.split == "scaffold":
        if level != "graph" or data.schema.smiles is None:
            raise DataError("data.split is scaffold, expected molecules: use stratified or ratio")
        smiles = data.labels("graph", data.schema.smiles).astype("string").fillna("").tolist()
        return scaffold(smiles, settings.fractions, seed, data.schema.reading)
    if settings.split == "label-rate":
        if labels.shape[1] > 1:
            raise DataError(f"data.split is label-rate with {labels.shape[1]} columns of labels, expected one")
        return label_rate(labels.iloc[:, 0].where(rows >= 0), settings.label_rate, seed)
    few = all(labels[name].nunique() <= 20 for name in labels)
    if settings.split == "stratified" or (settings.split == "auto" and few and level != "graph"):
        return stratified(
            labels.where(pd.Series(rows >= 0, index=labels.index), None), settings.fractions, seed, groups=groups
        )
    return ratio(len(rows), settings.fractions, seed, rows=labelled, groups=groups)


def _stated(data: Dataset, level: str, settings: DataSettings) -> Split | None:
    """The split that a column of the user's table states, if it is asked for or plainly there."""
    table = table_of(level)
    frame, file = data.tables.frames()[table], data.tables.name(table)
    if settings.split in ("time", "column"):
        name = settings.split_column or ("split" if settings.split == "column" else None)
        if name is None or name not in frame.columns:
            found = "not set" if name is None else quote(name)
            raise DataError(
                f"data.split_column is {found}, expected a column of {file}: {', '.join(frame.columns[:20])}"
            )
        if settings.split == "time":
            return by_time(frame[name], settings.fractions, file=file, column=name)
        return by_column(frame[name], file, name)
    name = next((column for column in frame.columns if column.strip().lower() == "split"), None)
    if settings.split == "auto" and name is not None and frame[name].notna().all():
        return by_column(frame[name], file, name)
    return None


def _with_their_graphs(data: Dataset, level: str, settings: DataSettings, seed: int) -> Split:
    graphs = data.graph
    assert isinstance(graphs, GraphSet)
    part = ratio(len(graphs), settings.fractions, seed).codes(len(graphs))
    offset = graphs.node_offset if level == "node" else graphs.edge_offset
    of_row = np.repeat(part, offset.diff().numpy())
    rows = data.rows(level).numpy()
    return Split.of(np.where(rows >= 0, of_row[rows], -1))


def _usable(split: Split, rows: Tensor, labels: pd.DataFrame) -> Split:
    """Without the rows that are bad or have no label at all."""
    codes = split.codes(len(rows))
    codes[(rows.numpy() < 0) | ~labels.notna().any(axis=1).to_numpy()] = -1
    return Split.of(codes)


def _from_file(data: Dataset, columns: Mapping[str, Sequence[str]], settings: DataSettings) -> dict[str, Split]:
    path = _split_file(settings)
    ids = {
        table: frame[data.id_columns(level)]
        for level in columns
        for table, frame in data.tables.frames().items()
        if table == table_of(level)
    }
    splits = read_splits(path, ids)
    for level in columns:
        if table_of(level) not in splits:
            raise DataError(f"has no split of {table_of(level)}, expected one for the {level} targets", path.name)
    return {
        level: _usable(
            splits[table_of(level)], data.rows(level), pd.DataFrame({n: data.labels(level, n) for n in names})
        )
        for level, names in columns.items()
    }


def _split_file(settings: DataSettings) -> Path:
    if settings.split_file is None:
        raise DataError("data.split is file, but data.split_file is not set, expected the path of a splits.csv")
    return Path(settings.split_file)


def hidden_rows(split: LinkSplit, edge_rows: Tensor) -> Tensor:
    """Which INPUT rows of edges the network may not see, because they are links to be found."""
    seen = torch.zeros(int(edge_rows.max()) + 1 if len(edge_rows) else 0, dtype=torch.bool)
    seen[split.rows.train] = True
    return (edge_rows >= 0) & ~seen[edge_rows.clamp(min=0)]
