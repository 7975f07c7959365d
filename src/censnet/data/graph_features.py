"""Features of each graph as a whole: columns of its row that the user chose, and descriptors of molecules."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from censnet.data.molecules.descriptors import encode_descriptors, fit_descriptors
from censnet.data.tables.schema import Schema
from censnet.data.tables.table_graph import TrainRows
from censnet.data.tables.typed_table import TypedTable
from censnet.ops.arrays import IntArray
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet


@dataclass(frozen=True, eq=False)
class GraphFeatures:
    """Features of whole graphs, of which either kind may be absent.

    Args:
        table: the typed columns of `graphs` that the user chose.
        descriptors: the descriptors of each row of `graphs`.
        source: for each graph, its row in `graphs`.
    """

    table: TypedTable | None
    descriptors: pd.DataFrame | None
    source: IntArray

    def fit(self, schema: Schema, rows: TrainRows) -> Schema:
        """The schema with the descriptors scaled by the training molecules."""
        if self.descriptors is None:
            return schema
        training = rows.get("graphs")
        training = np.sort(self.source) if training is None else training[np.isin(training, self.source)]
        return schema.model_copy(update={"descriptors": fit_descriptors(self.descriptors, training)})

    def encode(self, graph: Graph | GraphSet, schema: Schema) -> Graph | GraphSet:
        """The same graphs with these features."""
        parts = [] if self.table is None else [self.table.encode(schema.graphs)]
        parts += [] if self.descriptors is None else [encode_descriptors(schema.descriptors, self.descriptors)]
        features = torch.cat(parts, dim=1) if parts else None
        if features is None or features.shape[1] == 0 or not isinstance(graph, GraphSet):
            return graph
        return graph.with_graph_features(features[torch.from_numpy(self.source)])
