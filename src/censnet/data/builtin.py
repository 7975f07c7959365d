"""The paper's data sets by name, as tables or, where the node features are sparse, as tensors at once."""

from __future__ import annotations

import pandas as pd
import torch

from censnet.data import sources
from censnet.data.citation import Citation, read_citation
from censnet.data.encoding import Column
from censnet.data.karate import read_karate
from censnet.data.packing import Assembled
from censnet.data.schema import Schema, TableSchema
from censnet.data.tables import Tables, read_table

ENDS = {"source": "source", "target": "target"}


def given_vector(name: str, width: int) -> Column:
    """A column for features that are tensors already, and stay as they are."""
    reason = "given as a tensor"
    return Column(name=name, kind="vector", reason=reason, mean=[0.0] * width, scale=[1.0] * width)


def read_builtin(name: str) -> Tables | Assembled:
    """Read a set that `sources.DATASETS` knows."""
    if name == "karate":
        karate = read_karate()
        faction = [karate.classes[label] for label in karate.labels.tolist()]
        nodes = pd.DataFrame({"id": range(len(faction)), "faction": faction})
        edges = pd.DataFrame(karate.ends.t().numpy(), columns=["source", "target"])
        return Tables(nodes, edges, names={"nodes": "karate nodes", "edges": "karate edges"})
    if sources.DATASETS[name].kind == "molecules":
        path = next(path for path in sources.find(name).values() if path.suffix == ".csv")
        return Tables(graphs=read_table(path), names={"graphs": path.name})
    return _from_citation(read_citation(name))


def _from_citation(citation: Citation) -> Assembled:
    graph = citation.graph
    label = [citation.classes[label] if label >= 0 else None for label in citation.labels.tolist()]
    ends = pd.DataFrame(graph.ends.t().numpy(), columns=list(ENDS))
    edges = pd.concat([ends, pd.DataFrame(graph.edges.numpy(), columns=list(citation.edge_names))], axis=1)
    names = {"nodes": f"{citation.name} nodes", "edges": f"{citation.name} edges"}
    words = given_vector("words", graph.node_width)
    given = [
        Column(name=name, kind="number", reason="as in the paper", mean=[0.0], scale=[1.0])
        for name in citation.edge_names
    ]
    schema = Schema(
        nodes=TableSchema(keys={"id": "id"}, targets=["label"], columns=[words]),
        edges=TableSchema(keys=ENDS, columns=given),
    )
    tables = Tables(pd.DataFrame({"id": range(graph.num_nodes), "label": label}), edges, names=names)
    rows = torch.arange(graph.num_nodes), torch.arange(graph.num_edges), torch.zeros(0, dtype=torch.long)
    return Assembled(graph, tables, schema, *rows)
