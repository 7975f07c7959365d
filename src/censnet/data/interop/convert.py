"""Graphs of other libraries, PyTorch Geometric and networkx, as tables."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.data.data import BaseData

from censnet.data.interop.check_pyg_data import (
    OF_NODES,
    check_pyg,
    check_within,
    describe_unused,
    num_nodes,
    refuse_other_objects,
    refuse_unused,
)
from censnet.data.interop.networkx_graphs import from_networkx, is_networkx
from censnet.data.tables.files import Tables
from censnet.data.tables.keys import mask_part
from censnet.errors import DataError

logger = logging.getLogger(__name__)


def to_tables(data: object) -> Tables | None:
    """A PyG or networkx object as the tables that `load_data` reads; None for anything else.

    A PyG graph has a row for each node and for each column of `edge_index`. `x`, `edge_attr` and every attribute with
    more than one number in a row are columns of lists. An attribute belongs to the edges if "edge" is in its name, else
    to the graphs of a batch if it has a value for each, else to the nodes, or to the edges, if it has one for each of
    them. Masks are columns like others; `splits.stated.find_stated` reads them as a split. One that belongs nowhere
    is not used, and a note says so, but for single values and texts.
    """
    if is_networkx(data):
        return _plain_names(from_networkx(data))
    refuse_other_objects(data)
    if isinstance(data, list | tuple) and any(isinstance(item, BaseData) for item in data):
        data = _as_batch([_check_item(item, number) for number, item in enumerate(data)])
    if not isinstance(data, Data):
        return None
    graph: Any = check_pyg(data)
    columns = graph.get("edge_index")
    if columns is None:
        logger.warning("there is no edge_index, so the graph has no edges")
    columns = torch.empty(2, 0, dtype=torch.long) if columns is None else columns.cpu()
    count = {"nodes": num_nodes(graph), "edges": int(columns.shape[1])}
    tables: dict[str, dict[str, Any]] = {
        "nodes": {"id": np.arange(count["nodes"])},
        "edges": {"source": columns[0].numpy(), "target": columns[1].numpy()},
    }
    if graph.get("batch") is not None:
        owner = graph["batch"].cpu().numpy()
        count["graphs"] = int(graph.num_graphs) if isinstance(graph, Batch) else int(owner.max(initial=-1)) + 1
        tables["graphs"] = {"graph": np.arange(count["graphs"])}
        tables["nodes"]["graph"] = owner
        tables["edges"]["graph"] = owner[columns[0].numpy().clip(0, max(len(owner) - 1, 0))]
    unused = dict[str, Any]()
    for name, value in graph.to_dict().items():
        if name in ("edge_index", "batch", "ptr", "num_nodes", "_num_nodes"):
            continue
        table = _table_of(name, value, count)
        column = None if table is None or name in tables[table] else _column(value)
        if table is not None and column is not None:
            tables[table][name] = column
        elif _length(value) >= 0 or (mask_part(name) is not None and value is not None):
            unused[name] = value
    refuse_unused(unused, count)
    if unused:
        logger.warning(describe_unused(unused, count))
    graphs = pd.DataFrame(tables["graphs"]) if "graphs" in tables else None
    return Tables(pd.DataFrame(tables["nodes"]), pd.DataFrame(tables["edges"]), graphs)


def _as_batch(graphs: Sequence[Data]) -> Batch:
    """A list of graphs as a batch."""
    if len(graphs) == 0:
        raise ValueError("the list of graphs is empty, expected at least one")
    for number, graph in enumerate(graphs):
        if isinstance(graph, HeteroData) or not isinstance(graph, Data):
            raise ValueError(f"item {number} of the list is a {type(graph).__name__}, expected Data")
        if set(graph.keys()) != set(graphs[0].keys()):
            odd = ", ".join(sorted(set(graph.keys()) ^ set(graphs[0].keys())))
            raise ValueError(f"graph {number} and graph 0 do not have the same attributes ({odd}), expected all to")
        for name in graph.keys():  # noqa: SIM118
            widths = [value.shape[1:] for value in (graph[name], graphs[0][name]) if isinstance(value, Tensor)]
            if name != "edge_index" and len(widths) == 2 and widths[0] != widths[1]:
                raise ValueError(
                    f"{name} of graph {number} has shape {tuple(graph[name].shape)}, expected as many columns as in "
                    f"graph 0, which has {tuple(graphs[0][name].shape)}"
                )
    return Batch.from_data_list(list(graphs))


def _check_item(item: object, number: int) -> Data:
    """A graph of a list, whose edges end in it."""
    if not isinstance(item, Data):
        raise DataError(f"item {number} of the list is a {type(item).__name__}, expected Data")
    graph: Any = check_pyg(item, f"graph {number}")
    check_within(graph, f"graph {number}")
    graph.num_nodes = num_nodes(graph)
    return graph


def _table_of(name: str, value: Any, count: Mapping[str, int]) -> str | None:
    """The table that an attribute belongs to, by its name and its length."""
    length = _length(value)
    order = ["edges"] if "edge" in name else ["graphs", "nodes", "edges"]
    if name in OF_NODES:
        order = ["nodes"]
    elif mask_part(name) is not None and "edge" not in name:
        order = ["nodes", "edges", "graphs"]
    return next((table for table in order if count.get(table) == length), None)


def _plain_names(tables: Tables) -> Tables:
    """Tables whose ids differ as text too: the names 1 and "1" are two nodes, and then shown as such."""
    nodes, edges = tables.frames()["nodes"], tables.frames()["edges"]
    if nodes["id"].map(str).nunique() == len(nodes):
        return tables
    ends = {key: edges[key].map(repr) for key in ("source", "target")}
    return Tables(nodes.assign(id=nodes["id"].map(repr)), edges.assign(**ends), directed=tables.directed)


def _length(value: Any) -> int:
    if isinstance(value, Tensor):
        return value.shape[0] if value.dim() else -1
    return len(value) if isinstance(value, list) else -1


def _column(value: Any) -> Any:
    """A tensor or list as a column; rows of several numbers as lists. None where there is nothing in it."""
    if isinstance(value, list):
        return pd.Series(value, dtype=object)
    value = (value.to_dense() if value.layout != torch.strided else value).detach().cpu()
    value = value.float() if value.dtype in (torch.float16, torch.bfloat16) else value
    if value.dim() == 1 or value.shape[1:].numel() == 1:
        return value.reshape(-1).numpy()
    width = value.shape[1:].numel()
    if width == 0 or value.is_complex():
        return None
    flat = pa.array(value.reshape(-1).numpy())
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([pa.FixedSizeListArray.from_arrays(flat, width)])))
