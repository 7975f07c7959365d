"""The same data with statistics from the training rows alone, once it is known which rows those are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from censnet.data.graph_features import refit_wholes
from censnet.data.molecules.atoms import encode_kinds, learn_vocabulary
from censnet.data.tables.default_features import add_default_features, count_degree, encode_degree, fit_degree
from censnet.data.tables.ordering import put_in_order
from censnet.data.tables.packing import Assembled, Bonds, IntArray, first_rows
from censnet.data.tables.schema import Schema
from censnet.inspection.structure import node_numbers
from censnet.ops.graph_set import GraphSet


def refit(data: Assembled, rows: Mapping[str, IntArray], seen: IntArray | None = None) -> Assembled:
    """Take the statistics of every column from the given rows, and encode the tables again.

    The kind of each column stays as it was found, and so does what became of each row. So no row turns bad, no edges
    are merged or parted, and a split made before still fits. Where the given rows of a column are empty or all the
    same, its statistics are those of all rows.

    Args:
        data: what was assembled from tables or SMILES.
        rows: table -> training rows. Where a table is absent, they are those of the training graphs, or else all.
        seen: the edges that message passing may see, where links are predicted; degrees are counted on these.
    """
    if data.fitted is None:
        return data
    rows = {**_rows_of_graphs(data, rows.get("graphs")), **rows}
    base, frames = data.fitted.schema, data.tables.frames()
    tables = {}
    for table, frame in frames.items():
        chosen = rows.get(table)
        if table == "edges" and seen is not None and chosen is not None:
            frame, chosen = (
                frame.iloc[chosen],
                None,
            )  # of hidden links nothing is known, not even where others say nothing
        tables[table] = base.table(table).refit(frame, chosen)
    schema = base.model_copy(update=tables)
    if schema.smiles is not None:
        new = _refit_bonds(data, schema, data.fitted.bonds, rows.get("graphs"))
    else:
        new = _refit_rows(data, schema, data.fitted.node_source, rows.get("nodes"), seen)
    return refit_wholes(new, rows.get("graphs"))


def _refit_rows(
    data: Assembled, schema: Schema, node_source: IntArray, node_rows: IntArray | None, seen: IntArray | None
) -> Assembled:
    """Tables: nodes and edges are encoded again."""
    schema, frames = add_default_features(schema), data.tables.frames()
    if schema.nodes.structure == "degree":
        ends, num_nodes = node_numbers(data.graph), len(node_source)
        training = None if node_rows is None else data.node_rows.numpy()[node_rows]
        schema = fit_degree(
            schema,
            count_degree(ends if seen is None else ends[:, seen], num_nodes),
            None if training is None else training[training >= 0],
        )
        nodes = encode_degree(schema, count_degree(ends, num_nodes))
    else:
        nodes = _take(schema.nodes.encode(frames["nodes"], data.tables.name("nodes"))[0], node_source)
    if schema.edges.structure == "constant":
        edges = torch.ones(len(data.graph.edges), 1)
    else:
        source = first_rows(data.edge_rows.numpy(), len(data.graph.edges))
        edges = _take(schema.edges.encode(frames["edges"], data.tables.name("edges"))[0], source)
    return replace(data, schema=schema, graph=data.graph.with_features(nodes, edges))


def _refit_bonds(data: Assembled, schema: Schema, bonds: Bonds | None, rows: IntArray | None) -> Assembled:
    """Molecules: the vocabulary of the `paper` features is learnt again; nothing else depends on training rows."""
    graph = data.graph
    if bonds is None or not isinstance(graph, GraphSet):
        return replace(data, schema=schema)
    training = bonds
    if rows is not None:
        chosen = data.graph_rows.numpy()[rows]
        member = np.zeros(len(graph), bool)
        member[chosen[chosen >= 0]] = True
        training = bonds[np.repeat(member, graph.edge_offset.diff().numpy())]
    vocabulary = learn_vocabulary(training.astype(np.int64))
    edges = torch.from_numpy(encode_kinds(bonds.astype(np.int64), vocabulary))
    schema = schema.model_copy(update={"vocabulary": vocabulary})
    return replace(data, schema=schema, graph=graph.with_features(graph.nodes, edges))


def _rows_of_graphs(data: Assembled, rows: IntArray | None) -> dict[str, IntArray]:
    """The rows of nodes and of edges that are in the graphs of these rows."""
    if rows is None or not isinstance(data.graph, GraphSet) or data.schema.smiles is not None:
        return {}
    chosen = data.graph_rows.numpy()[rows]
    member = np.zeros(len(data.graph), bool)
    member[chosen[chosen >= 0]] = True
    found = {}
    for table, became, offset in (
        ("nodes", data.node_rows, data.graph.node_offset),
        ("edges", data.edge_rows, data.graph.edge_offset),
    ):
        of_row = np.append(np.repeat(member, offset.diff().numpy()), False)  # a row that became nothing is -1
        found[table] = np.flatnonzero(of_row[became.numpy()])
    return found


def _take(features: Tensor, source: IntArray) -> Tensor:
    if len(source) == len(features) and np.array_equal(source, np.arange(len(source))):
        return features
    return put_in_order(features, source)
