"""Data without a file of the user's: the paper's sets by name, and graphs that are tensors already."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from censnet.data.datasets import download as sources
from censnet.data.datasets.citation import RELEASED_NAMES, Citation, normalize_rows, read_citation, released_links
from censnet.data.datasets.karate import read_karate
from censnet.data.tables.feature_encoding import Column
from censnet.data.tables.files import Tables, read_table
from censnet.data.tables.schema import Features, Schema, TableSchema
from censnet.data.tables.table_graph import Assembled
from censnet.errors import DataError
from censnet.levels import Level
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet

ENDS = {"source": "source", "target": "target"}


def given_vector(name: str, width: int, row_normalized: bool = False) -> Column:
    """A column for features that are tensors already, and stay as they are."""
    reason = "given as a tensor"
    return Column(
        name=name, kind="vector", reason=reason, mean=[0.0] * width, scale=[1.0] * width, row_normalized=row_normalized
    )


def read_builtin(name: str, features: Features = "rich") -> Tables | Assembled:
    """Read a set that `sources.DATASETS` knows.

    Args:
        name: of the set.
        features: how a citation set is described. `rich` has its words as they are given, `paper` divides them by their
            sum in each paper, and `released` has the links, too, as the authors' code has them.
    """
    if name == "karate":
        karate = read_karate()
        faction = [karate.classes[label] for label in karate.labels.tolist()]
        nodes = pd.DataFrame({"id": range(len(faction)), "faction": faction})
        edges = pd.DataFrame(karate.ends.t().numpy(), columns=["source", "target"])
        return Tables(nodes, edges, names={"nodes": "karate nodes", "edges": "karate edges"}, directed=False)
    if sources.DATASETS[name].kind == "molecules":
        path = next(path for path in sources.find(name).values() if path.suffix == ".csv")
        return Tables(graphs=read_table(path), names={"graphs": path.name})
    return _from_citation(read_citation(name), features)


def _from_citation(citation: Citation, features: Features) -> Assembled:
    graph, edge_names, reason = citation.graph, citation.edge_names, "as in the paper"
    if features != "rich":
        graph = Graph(normalize_rows(graph.nodes), graph.edges, graph.ends)
    if features == "released":
        graph, edge_names = Graph(graph.nodes, released_links(graph.edges), graph.ends), RELEASED_NAMES
        reason = "as in the released code"
    label = [citation.classes[label] if label >= 0 else None for label in citation.labels.tolist()]
    ends = pd.DataFrame(graph.ends.t().numpy(), columns=list(ENDS))
    edges = pd.concat([ends, pd.DataFrame(graph.edges.numpy(), columns=list(edge_names))], axis=1)
    names = {"nodes": f"{citation.name} nodes", "edges": f"{citation.name} edges"}
    words = given_vector("words", graph.node_width, row_normalized=features != "rich")
    given = [Column(name=name, kind="number", reason=reason, mean=[0.0], scale=[1.0]) for name in edge_names]
    schema = Schema(
        tables={
            Level.NODE: TableSchema(keys={"id": "id"}, targets=["label"], columns=[words]),
            Level.EDGE: TableSchema(keys=ENDS, columns=given),
        },
        features=features,
    )
    tables = Tables(pd.DataFrame({"id": range(graph.num_nodes), "label": label}), edges, names=names)
    return Assembled(graph, tables, schema, _in_order(tables))


def from_tensors(graph: Graph | GraphSet) -> Assembled:
    """Tensors have no ids but their numbers."""
    for side, width in (("nodes", graph.node_width), ("edges", graph.edge_width)):
        if width == 0:
            raise DataError(
                f"the {side} of the graph have no channels, expected one or more: give each a 1, as "
                f"torch.ones(len(graph.{side}), 1), or a table of edges, whose nodes get their degree"
            )
    ends = graph.ends.cpu().numpy()
    nodes, edges = {"id": np.arange(len(graph.nodes))}, {"source": ends[0], "target": ends[1]}
    graphs = None
    if isinstance(graph, GraphSet):
        numbers = np.arange(len(graph))
        nodes["graph"] = np.repeat(numbers, graph.node_offset.diff().cpu().numpy())
        nodes["id"] = nodes["id"] - graph.node_offset.cpu().numpy()[nodes["graph"]]
        edges["graph"] = np.repeat(numbers, graph.edge_offset.diff().cpu().numpy())
        graphs = pd.DataFrame({"graph": numbers})
    tables = Tables(pd.DataFrame(nodes), pd.DataFrame(edges), graphs)
    in_graph = {} if graphs is None else {"graph": "graph"}
    whole = [given_vector("graph_attr", graph.graph_width)] if isinstance(graph, GraphSet) and graph.graph_width else []
    schema = Schema(
        many=graphs is not None,
        directed=graph.directed,
        tables={
            Level.NODE: TableSchema(keys={"id": "id", **in_graph}, columns=[given_vector("x", graph.node_width)]),
            Level.EDGE: TableSchema(keys={**ENDS, **in_graph}, columns=[given_vector("edge_attr", graph.edge_width)]),
            Level.GRAPH: TableSchema(keys=in_graph, columns=whole),
        },
        graph_columns=[column.name for column in whole],
    )
    return Assembled(graph, tables, schema, _in_order(tables))


def _in_order(tables: Tables) -> dict[Level, Tensor]:
    """Level -> the row in the tensors of each row of its table, which are the same."""
    return {level: torch.arange(len(frame)) for level, frame in tables.by_level.items()}
