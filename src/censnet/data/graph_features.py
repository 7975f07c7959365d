"""What is known of each graph as a whole: columns of its row that the user chose, and descriptors of molecules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from censnet.data.molecules.descriptors import describe, encode_descriptors, fit_descriptors, refit_descriptors
from censnet.data.tables.packing import Assembled, IntArray, first_rows
from censnet.data.tables.row_errors import RowErrors
from censnet.data.tables.schema import Schema
from censnet.ops.graph_set import GraphSet


def add_graph_features(
    made: Assembled, smiles: Sequence[str] | None, descriptors: bool, rows: IntArray | None, problems: RowErrors
) -> Assembled:
    """The same with the features of each graph, if there are any. A graph whose row is bad stays, without a row.

    Args:
        made: what was assembled from tables or SMILES.
        smiles: the text of each row of `graphs`, if they are molecules.
        descriptors: whether molecules get their descriptors; where the schema was given, that says so.
        rows: the rows of `graphs` that statistics come from; None is all.
        problems: where bad rows are noted.
    """
    graph, schema, described = made.graph, made.schema, None
    if not isinstance(graph, GraphSet):
        return made
    source = first_rows(made.graph_rows.numpy(), len(graph))
    fresh = made.fitted is not None
    if smiles is not None and (descriptors if fresh else schema.descriptors.width > 0):
        known = [column.name for column in schema.descriptors.columns if column.width]
        described = describe(smiles, None if fresh else known, reading=schema.reading)
        if fresh:
            training = fit_descriptors(described, _molecules(source, rows))
            schema = schema.model_copy(update={"descriptors": training})
    features, bad = encode_graph_features(schema, made, described)
    if features is None:
        return made
    problems.add_placed("graphs", bad)
    graph_rows, fitted = made.graph_rows.clone(), made.fitted
    graph_rows[list(bad)] = -1
    if fitted is not None:
        fitted = replace(fitted, schema=schema, graph_source=source, described=described)
    graph = graph.with_graph_features(features[torch.from_numpy(source)])
    return replace(made, graph=graph, schema=schema, graph_rows=graph_rows, fitted=fitted)


def refit_wholes(data: Assembled, rows: IntArray | None) -> Assembled:
    """The same with the statistics of these features from the given rows of `graphs` alone, or from all."""
    graph, schema, fitted = data.graph, data.schema, data.fitted
    if fitted is None or fitted.graph_source is None or not isinstance(graph, GraphSet):
        return data
    source, described = fitted.graph_source, fitted.described
    if described is not None:
        again = refit_descriptors(schema.descriptors, described, _molecules(source, rows))
        schema = schema.model_copy(update={"descriptors": again})
    features, _ = encode_graph_features(schema, data, described)
    features = None if features is None else features[torch.from_numpy(source)]
    return replace(data, schema=schema, graph=graph.with_graph_features(features))


def encode_graph_features(
    schema: Schema, data: Assembled, described: pd.DataFrame | None
) -> tuple[Tensor | None, dict[int, str]]:
    """The features of each row of `graphs`, and what is wrong with which row; None where nothing is a feature."""
    parts, bad = list[Tensor](), dict[int, str]()
    if schema.chosen:
        columns, bad = schema.of_graphs.encode(data.tables.frames()["graphs"], data.tables.name("graphs"))
        parts.append(columns)
    if described is not None:
        parts.append(encode_descriptors(schema.descriptors, described))
    features = torch.cat(parts, dim=1) if parts else None
    return features if features is not None and features.shape[1] else None, bad


def _molecules(source: IntArray, rows: IntArray | None) -> IntArray:
    """Of the given rows, or of all, those that became graphs."""
    return np.sort(source) if rows is None else rows[np.isin(rows, source)]
