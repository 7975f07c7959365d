"""A user's data as a graph or many, with every result back on the row it belongs to; typed at first, then encoded."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from censnet.arguments import check_arguments
from censnet.data.graph_features import GraphFeatures
from censnet.data.notebook import data_html
from censnet.data.splits.links import LinkSplit
from censnet.data.tables.column_notes import clipping_notes, column_notes
from censnet.data.tables.files import Tables
from censnet.data.tables.keys import says_split
from censnet.data.tables.notes import Note, RowError
from censnet.data.tables.schema import TableSchema
from censnet.data.tables.table_graph import FeatureEncoder, TableGraph, TrainRows, count_degree, encode_degree
from censnet.data.tables.target_spec import TargetSpec
from censnet.errors import DataError, name_columns, quote
from censnet.levels import COLUMN_LEVELS, Level
from censnet.ops.arrays import Array, IntArray
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.text import count

logger = logging.getLogger(__name__)

Rows = Tensor | Array | Sequence[int]


@dataclass(frozen=True, eq=False)
class IndexedData(TableGraph):
    """A graph, or many, with the rows it came from and what was found wrong with these.

    Args:
        name: as the user called it.
        problems: table -> row, counted from 0 -> what is wrong with it.
        notes: what the user should know: columns left out, edges merged, features made, rows that cannot be used.
    """

    name: str
    problems: dict[str, dict[int, RowError]]
    notes: list[Note]

    def labels(self, level: str, column: str) -> pd.Series:
        """A column of the user's table, one value for each input row."""
        table = Level.of_column(level).table
        frame = self.tables.frames().get(table)
        if frame is None or column not in frame.columns:
            there = "no such table" if frame is None else f"it has {name_columns(frame.columns)}"
            raise DataError(f"is missing: {there}", self.tables.name(table), column=column)
        return frame[column].reset_index(drop=True)

    @property
    def is_flipped(self) -> Array | None:
        """A mask of the input rows whose two ends are in the opposite order of their edge; None if none are.

        Where each edge is there twice, the second of its rows has: what is oriented changes sign there.
        """
        if self.schema.edge_form == "once" or self.schema.smiles is not None:
            return None
        rows = self.rows("edge").numpy()
        _, first, place = np.unique(rows, return_index=True, return_inverse=True)
        return np.asarray((first[place.reshape(-1)] != np.arange(len(rows))) & (rows >= 0))

    def id_columns(self, level: str) -> list[str]:
        """The columns that say who a row is: its keys, and what the schema took for ids."""
        table = Level.of_column(level).table
        schema, frame = self.schema.table(table), self.tables.frames()[table]
        ids = (column.name for column in schema.columns if column.kind == "id" and not says_split(column.name))
        named = {*schema.keys.values(), *ids}
        return [column for column in frame.columns if column in named] or list(frame.columns[:1])

    def count(self, level: str) -> int:
        """The number of nodes, edges or graphs in the tensors."""
        return self.graph.count(Level.of_column(level))


@dataclass(frozen=True, eq=False)
class Dataset(IndexedData):
    """Data as tensors: features are scaled by the statistics of training rows.

    Example:
        >>> from censnet.data import load_data
        >>> people = {"source": ["ann", "ann", "bob"], "target": ["bob", "eve", "eve"]}
        >>> payments = pd.DataFrame({**people, "eur": [5, 70, 9]})
        >>> data = load_data(payments)
        >>> data.graph
        Graph(3 nodes x 2, 3 edges x 1, directed)
        >>> data.results("edge", pd.DataFrame({"fraud": [0.1, 0.9, 0.2]}))
          source target  eur  fraud
        0    ann    bob    5    0.1
        1    ann    eve   70    0.9
        2    bob    eve    9    0.2
    """

    def _repr_html_(self) -> str:
        return data_html(self.name, self.graph, self.schema, self.notes)

    def without_descriptors(self) -> Dataset:
        """The same where molecules have no descriptors."""
        if not isinstance(self.graph, GraphSet):
            return self
        graph = self.graph.without_last_features(self.schema.descriptors.width)
        return replace(self, graph=graph, schema=self.schema.model_copy(update={"descriptors": TableSchema()}))

    def message_graph(self, links: LinkSplit) -> Graph:
        """The graph that message passing may see when links are predicted: every node, and the training links alone.

        Where the degree of a node is its feature, it is counted on these links. Many graphs become their union.
        """
        graph = self.graph
        if isinstance(graph, GraphSet):
            graph = graph.batch(torch.arange(len(graph), device=graph.nodes.device))
        graph = links.message_graph(graph)
        if self.schema.nodes.structure != "degree":
            return graph
        degree = count_degree(graph.ends.cpu().numpy(), graph.num_nodes)
        return graph.with_features(encode_degree(self.schema, degree).to(graph.nodes), graph.edges)

    def results(self, level: str, values: pd.DataFrame, keep: Literal["all", "ids"] = "all") -> pd.DataFrame:
        """One result for each input row, in input order, behind the user's ids and columns.

        Args:
            level: `node`, `edge` or `graph`.
            values: one row for each node, edge or graph of the tensors.
            keep: the columns of the user's table to repeat: all, or those that say who a row is.

        Returns:
            a frame with the user's columns, those of `values`, and, if some rows cannot be used, `error`. A column of
            the user's that has the name of another one here gets a `_` behind it.
        """
        check_arguments(Dataset.results, locals())
        table = Level.of_column(level).table
        frame, rows = self.tables.frames().get(table), self.rows(level).numpy()
        if frame is None:
            raise DataError(f"the data have no table of {table}, so there are no rows to give results for")
        if len(values) != self.count(level):
            raise DataError(
                f"values has {count(len(values), 'row')}, expected {self.count(level):,}: one for each {level}"
            )
        messages = self.problems.get(table, {})
        return join_results(values, frame, rows, self.id_columns(level), keep, messages)


def join_results(
    values: pd.DataFrame,
    frame: pd.DataFrame,
    rows: Array,
    ids: Sequence[str],
    keep: Literal["all", "ids"],
    messages: Mapping[int, str],
) -> pd.DataFrame:
    """One result for each row of the user's table, in its order, behind its columns.

    Args:
        values: one row for each row of the tensors.
        frame: the user's table.
        rows: for each of its rows, the row of the tensors, or -1.
        ids: the columns that identify a row.
        keep: whether to repeat all columns, or those.
        messages: why a row has no result.
    """
    bad = rows < 0
    bad[list(messages)] = True
    found = _with_gaps(values).reindex(np.where(bad, len(values), rows)) if bad.any() else values.iloc[rows]
    clash = [column for column in ids if column in values.columns]
    if clash:
        raise DataError(f"values has a column {clash[0]}, expected another name: it is an id of the user's")
    known = frame[[column for column in frame.columns if column in ids or keep == "all"]]
    taken = [*values.columns, *(["error"] if bad.any() else [])]
    known = known.rename(columns=rename_taken(known.columns, taken))
    parts: list[pd.DataFrame | pd.Series[Any]] = [known.reset_index(drop=True), found.reset_index(drop=True)]
    if bad.any():
        parts.append(pd.Series(messages, dtype="object", name="error").reindex(range(len(rows))))
    return pd.concat(parts, axis=1)


def rename_taken(columns: Iterable[str], taken: Sequence[str]) -> dict[str, str]:
    """A new name for each column whose own is taken."""
    columns, new = list(columns), dict[str, str]()
    for column in columns:
        name = column
        while name in taken or (name != column and name in [*columns, *new.values()]):
            name += "_"
        new[column] = name
    return new


def _with_gaps(values: pd.DataFrame) -> pd.DataFrame:
    """The same values in types that can be missing without turning whole numbers into fractions."""
    nullable = {"i": "Int64", "u": "UInt64", "b": "boolean"}
    types = {column: nullable[kind.kind] for column, kind in values.dtypes.items() if kind.kind in nullable}
    return values.reset_index(drop=True).astype(types)


@dataclass(frozen=True, eq=False)
class TypedData(IndexedData):
    """Data whose columns have kinds and whose rows are resolved: all that a split needs, and nothing encoded yet.

    The graph has its structure alone, no features, and the schema no statistics: these come from training rows.

    Args:
        encoder: the features of nodes and edges; None where the graph has its features already.
        graph_features: the features of whole graphs.
        targets: the targets, one for each column.
        scaffolds: the Bemis-Murcko scaffold of each row of `graphs`, where they were asked for.
        fitted: whether the schema was given, with its statistics.

    Example:
        >>> import pandas as pd
        >>> from censnet.data.load import read_data
        >>> people = {"source": ["ann", "ann", "bob"], "target": ["bob", "eve", "eve"]}
        >>> data = read_data(pd.DataFrame({**people, "eur": [10, 20, 900]}))
        >>> data.graph
        Graph(3 nodes x 0, 3 edges x 0, directed)
        >>> data.encode({"edge": torch.tensor([0, 1])}).graph.edges.tolist()
        [[-1.0], [1.0], [177.0]]
    """

    encoder: FeatureEncoder | None = None
    graph_features: GraphFeatures | None = None
    targets: Sequence[TargetSpec] = ()
    scaffolds: Sequence[str | None] | None = None
    fitted: bool = False

    def encode(self, rows: Rows | Mapping[str, Rows] | None = None, links: LinkSplit | None = None) -> Dataset:
        """Fit the statistics of every column on training rows alone, and encode all rows.

        Args:
            rows: `node`, `edge` or `graph` -> the input rows to learn from, or those of the level of the one target. A
                level that is not there takes its rows from the training graphs, or else all of its rows.
            links: how links are split, if they are predicted: degrees are counted on training links alone, and these
                are the training rows of the edges, unless `rows` says otherwise.
        """
        schema, graph = self.schema, self.graph
        if self.encoder is not None:
            if not self.fitted:
                training, message_edges = self._training_rows(rows, links)
                schema = self.encoder.fit(graph, training, message_edges)
                schema = schema if self.graph_features is None else self.graph_features.fit(schema, training)
            graph = self.encoder.encode(graph, schema)
            graph = graph if self.graph_features is None else self.graph_features.encode(graph, schema)
        notes = self.notes
        if self.encoder is not None:
            clipped = clipping_notes(graph, self.tables, schema)
            for note in clipped if self.fitted else ():
                logger.warning("%s", note)
            notes = column_notes(self.tables, schema) + notes + clipped
        return Dataset(graph, self.tables, schema, self.rows_by_level, self.name, self.problems, notes)

    def _training_rows(
        self, rows: Rows | Mapping[str, Rows] | None, links: LinkSplit | None
    ) -> tuple[dict[str, IntArray], IntArray | None]:
        """Table -> the rows that statistics come from, and the edges that are no links to be predicted."""
        targets = {table: names for table, names in self.schema.targets.items() if names}
        chosen = dict(_find_training_rows(rows, targets, self.tables))
        if "graphs" in chosen and isinstance(self.graph, GraphSet) and self.schema.smiles is None:
            training = np.zeros(len(self.graph), bool)
            graphs = self.rows("graph").numpy()[chosen["graphs"]]
            training[graphs[graphs >= 0]] = True
            for level, became in self.rows_by_level.items():
                if level is not Level.GRAPH:
                    of_row = np.append(training[level.owners(self.graph).numpy()], False)  # -1: it became nothing
                    chosen.setdefault(level.table, np.flatnonzero(of_row[became.numpy()]))
        if self.schema.smiles is not None and {"nodes", "edges"} & chosen.keys():
            chosen["graphs"] = self._training_molecules(chosen)
        if links is None:
            return chosen, None
        if "edges" not in chosen and len(self.rows("edge")):
            chosen["edges"] = links.rows.to_input(self.rows("edge")).train.numpy()
        return chosen, links.rows.train.numpy()

    def _training_molecules(self, chosen: Mapping[str, IntArray]) -> IntArray:
        """The rows of molecules that are for training, or one of whose atoms or bonds is."""
        found = [chosen[table] for table in chosen if table == "graphs"]
        for level in (Level.NODE, Level.EDGE):
            if level.table in chosen and isinstance(self.graph, GraphSet):
                rows = self.rows(level)[torch.from_numpy(chosen[level.table])]
                graphs = np.unique(level.owners(self.graph)[rows[rows >= 0]].numpy())
                found.append(np.flatnonzero(np.isin(self.rows("graph").numpy(), graphs)))
        return np.unique(np.concatenate(found))


def _find_training_rows(
    rows: Rows | Mapping[str, Rows] | None, targets: Mapping[str, Sequence[str]], tables: Tables
) -> TrainRows:
    """Table -> the rows that statistics are taken from; a bare list is for the level of the one target."""
    if rows is None:
        return {}
    if not isinstance(rows, Mapping):
        if len(targets) != 1:
            raise DataError("train_rows are for one level, expected {'node': rows, ...} with as many targets")
        rows = {level: rows for level in COLUMN_LEVELS if level.table in targets}
    found = {}
    for level, some in rows.items():
        table = Level.of_column(level).table
        frame = tables.frames().get(table)
        try:
            given = np.asarray(some)
            chosen = given.astype(np.int64)
        except (TypeError, ValueError, OverflowError):
            given = chosen = np.empty((0, 0), np.int64)
        if chosen.ndim != 1 or given.dtype.kind not in "iu":
            raise DataError(f"train_rows of {level} is {quote(some)}, expected a list of whole numbers, from 0")
        count = 0 if frame is None else len(frame)
        if len(chosen) == 0 or chosen.min() < 0 or chosen.max() >= count:
            raise DataError(
                f"train_rows of {level} are not rows of {tables.name(table)}, expected some from 0 to {count - 1}"
            )
        found[table] = chosen
    return found
