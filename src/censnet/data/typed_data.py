"""Typed data: rows resolved and columns typed, but nothing encoded before training rows are known."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from censnet.data.dataset import Dataset, IndexedData
from censnet.data.graph_features import GraphFeatures
from censnet.data.splits.links import LinkSplit
from censnet.data.tables.column_notes import clipping_notes, column_notes
from censnet.data.tables.files import Tables
from censnet.data.tables.table_graph import FeatureEncoder, TrainRows
from censnet.data.tables.target_spec import TargetSpec
from censnet.errors import DataError, quote
from censnet.levels import COLUMN_LEVELS, Level
from censnet.ops.arrays import Array, IntArray
from censnet.ops.graph_set import GraphSet

logger = logging.getLogger(__name__)

Rows = Tensor | Array | Sequence[int]


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
