"""Other libraries' graphs: PyTorch Geometric, networkx and pandas, there and back."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from censnet.data.interop.networkx import FromNetworkx, from_networkx, is_networkx, to_networkx
from censnet.data.interop.pandas import from_pandas, to_pandas
from censnet.data.interop.pyg import Imported, as_one, from_pyg, to_pyg
from censnet.data.splits.split import PARTS
from censnet.data.tables.files import Tables

__all__ = [
    "FromNetworkx",
    "Imported",
    "from_networkx",
    "from_pandas",
    "from_pyg",
    "to_networkx",
    "to_pandas",
    "to_pyg",
    "to_tables",
]

logger = logging.getLogger(__name__)
MASKS = ("train_mask", "val_mask", "test_mask")


def to_tables(data: object) -> Tables | None:
    """A PyG or networkx object as the tables that `load_data` reads; None for anything else.

    A PyG graph has a row for each node and for each column of `edge_index`. `x`, `edge_attr` and every attribute with
    more than one number in a row are columns of lists. An attribute belongs to the edges if "edge" is in its name, else
    to the graphs of a batch if it has a value for each, else to the nodes if it has one for each. Masks become `split`.
    """
    if is_networkx(data):
        found = from_networkx(data)
        for note in found.notes:
            logger.warning(note)
        return _plain_names(found.tables)
    if isinstance(data, list | tuple) and data and all(isinstance(item, Data) for item in data):
        data = as_one(data)
    if not isinstance(data, Data):
        return None
    num_nodes, columns = int(data.num_nodes or 0), data.edge_index
    columns = torch.empty(2, 0, dtype=torch.long) if columns is None else columns.cpu()
    nodes: dict[str, Any] = {"id": np.arange(num_nodes)}
    edges: dict[str, Any] = {"source": columns[0].numpy(), "target": columns[1].numpy()}
    graphs: dict[str, Any] = {}
    if isinstance(data, Batch):
        owner = data.batch.cpu().numpy()
        graphs["graph"] = np.arange(data.num_graphs)
        nodes["graph"], edges["graph"] = owner, owner[columns[0].numpy()]
    for name, value in data.to_dict().items():
        if name in ("edge_index", "batch", "ptr", "num_nodes", *MASKS):
            continue
        table, count = nodes, num_nodes
        if "edge" in name:
            table, count = edges, columns.shape[1]
        elif graphs and name not in ("x", "pos") and _length(value) == len(graphs["graph"]):
            table, count = graphs, len(graphs["graph"])
        if _length(value) == count and name not in table:
            column = _column(value)
            if column is not None:
                table[name] = column
    masks = [data.get(name) for name in MASKS]
    if all(isinstance(mask, Tensor) and mask.shape == (num_nodes,) for mask in masks):
        part = np.select([mask.cpu().numpy() for mask in masks], PARTS, default="")
        nodes["split"] = pd.Series(part, dtype=object).replace("", None)
    return Tables(pd.DataFrame(nodes), pd.DataFrame(edges), pd.DataFrame(graphs) if graphs else None)


def _plain_names(tables: Tables) -> Tables:
    """Tables whose ids differ as text too: the names 1 and "1" are two nodes, and then shown as such."""
    nodes, edges = tables.frames()["nodes"], tables.frames()["edges"]
    if nodes["id"].map(str).nunique() == len(nodes):
        return tables
    ends = {key: edges[key].map(repr) for key in ("source", "target")}
    return Tables(nodes.assign(id=nodes["id"].map(repr)), edges.assign(**ends))


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
