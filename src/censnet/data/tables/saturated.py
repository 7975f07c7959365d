"""Values so far from the training rows that a feature is clipped."""

from __future__ import annotations

import torch

from censnet.data.tables.encoding import FARTHEST
from censnet.data.tables.files import Tables
from censnet.data.tables.schema import Schema
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet

MOST_NAMED = 5  # columns that a note names one by one


def tell_saturated(graph: Graph | GraphSet, tables: Tables, schema: Schema) -> list[str]:
    """One sentence for each table with clipped values: how many there are, and in which columns.

    >>> ends = torch.tensor([[0], [1]])
    >>> far = Graph(torch.tensor([[0.5], [1e6]]), torch.zeros(1, 0), ends)
    >>> column = {"name": "age", "kind": "number", "mean": [40.0], "scale": [10.0]}
    >>> tell_saturated(far, Tables(), Schema.model_validate({"nodes": {"columns": [column]}}))
    ['nodes: values beyond 1,000,000 standard deviations are clipped, in age (1 row)']
    """
    said = []
    for table, features, columns in (
        ("nodes", graph.nodes, schema.nodes.columns),
        ("edges", graph.edges, schema.edges.columns),
        ("graphs", graph.graph_features, [*schema.of_graphs.columns, *schema.descriptors.columns]),
    ):
        widths = [column.width for column in columns]
        if features is None or features.layout != torch.strided or sum(widths) != features.shape[1]:
            continue
        if features.numel() == 0 or max(map(abs, map(float, features.aminmax()))) < FARTHEST:
            continue
        blocks = zip(columns, torch.split(features, widths, dim=1), strict=True)
        counts = {column.name: int((block.abs() >= FARTHEST).sum()) for column, block in blocks}
        found = [f"{name} ({count:,} {'row' if count == 1 else 'rows'})" for name, count in counts.items() if count]
        more = f" and {len(found) - MOST_NAMED:,} more columns" if len(found) > MOST_NAMED else ""
        said.append(
            f"{tables.name(table)}: values beyond {FARTHEST:,.0f} standard deviations are clipped, in "
            f"{', '.join(found[:MOST_NAMED])}{more}"
        )
    return said
