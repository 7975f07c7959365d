"""PyTorch Geometric objects, checked: arrays become tensors, and a wrong shape is an error that states it."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, Dataset, HeteroData, TemporalData

from censnet.data.tables.keys import mask_part
from censnet.errors import DataError, quote

OF_NODES, OF_EDGES = ("x", "pos"), ("edge_attr", "edge_weight")
INDICES = tuple(f"{part}_{word}" for part in ("train", "val", "valid", "test") for word in ("idx", "index", "indices"))


def refuse_other_objects(data: object) -> None:
    """Raise for an object of PyG that is no `Data`, saying how to make one."""
    if isinstance(data, HeteroData):
        raise DataError("data is a HeteroData, expected one kind of nodes and of edges: give data.to_homogeneous()")
    if isinstance(data, TemporalData):
        raise DataError(
            "data is a TemporalData, expected a Data: give Data(edge_index=torch.stack([data.src, data.dst]), "
            "edge_attr=data.msg, edge_time=data.t, edge_y=data.y)"
        )
    if isinstance(data, Dataset):
        what = "data[0]" if len(data) == 1 else "list(data)"
        raise DataError(f"data is a {type(data).__name__} of {len(data):,} graphs, expected its graphs: give {what}")


def check_pyg(data: Data, name: str = "") -> Data:
    """A copy of the graph whose arrays are tensors, with `edge_index` (2, E); raise where something has a wrong shape.

    Args:
        data: the graph.
        name: what it is called in messages, such as `graph 3`, if there are several.
    """
    of = f" of {name}" if name else ""
    if data.get("edge_index") is None:
        adjacency = next((key for key in ("adj_t", "adj") if key in data), None)
        if adjacency is not None:
            raise DataError(
                f"{name or 'data'} has {adjacency} and no edge_index, expected edge_index: the two rows of source and "
                "target, as torch_geometric.utils.to_edge_index gives them"
            )
    found = copy.copy(data)
    for key, value in data.to_dict().items():
        if key in INDICES:
            raise DataError(
                f"{name or 'data'} has {key}, expected masks of a split: give {key.split('_')[0]}_mask = "
                f"torch_geometric.utils.index_to_mask({key}, num_nodes)"
            )
        value = _as_tensor(value, key)
        if isinstance(value, Tensor) and value.is_complex():
            raise DataError(
                f"{key}{of} has dtype {_dtype(value)}, expected real numbers: give torch.view_as_real of it"
            )
        found[key] = value
    if found.get("edge_index") is not None:
        _check_ends(found["edge_index"], f"edge_index{of}")
    counts = {"nodes": num_nodes(found), "edges": num_edges(found)}
    for keys, table in ((OF_NODES, "nodes"), (OF_EDGES, "edges")):
        for key in keys:
            if found.get(key) is not None and _rows(found[key]) is None:
                what = "one number" if isinstance(found[key], Tensor) else f"a {type(found[key]).__name__}"
                raise DataError(f"{key}{of} is {what}, expected a row for each of {counts[table]:,} {table}")
            length = _rows(found.get(key))
            if length is not None and length != counts[table]:
                raise DataError(
                    f"{key}{of} has {_shape(found[key])}, expected a row for each of {counts[table]:,} {table}"
                )
    return found


def check_within(data: Data, name: str) -> None:
    """Raise where an edge ends at no node of the graph: among others, it would end at a node of the next."""
    ends, count = data.get("edge_index"), num_nodes(data)
    if ends is not None and ends.numel() and (int(ends.min()) < 0 or int(ends.max()) >= count):
        side, column = ((ends < 0) | (ends >= count)).nonzero()[0].tolist()
        raise DataError(
            f"edge_index of {name} has {int(ends[side, column])} in row {side + 1}, column {column + 1}, expected 0 to "
            f"{count - 1}: the graph has {count:,} nodes"
        )


def num_nodes(data: Data) -> int:
    """The number of nodes of a graph: as it says, or by its features, or by the largest number in `edge_index`."""
    if "num_nodes" in data and data["num_nodes"] is not None:
        return int(data["num_nodes"])
    for key in ("x", "pos", "batch"):
        length = _rows(data.get(key))
        if length is not None:
            return length
    ends, others = data.get("edge_index"), {
        _rows(value) for key, value in data.to_dict().items()
        if key == "y" or (mask_part(key) is not None and "edge" not in key)
    } - {None}  # fmt: skip
    least = int(ends.max()) + 1 if ends is not None and ends.numel() else 0
    fitting = [length for length in others if length is not None and length >= least and length != num_edges(data)]
    return max([least, *fitting])


def num_edges(data: Data) -> int:
    """The number of columns of `edge_index`."""
    ends = data.get("edge_index")
    return 0 if ends is None else int(ends.shape[1])


def refuse_unused(values: dict[str, Any], counts: dict[str, int]) -> None:
    """Raise for masks of a split, and for labels of more than the graph itself, that fit no table."""
    for key, value in values.items():
        if mask_part(key) is not None or (key == "y" and _rows(value) != 1):
            sizes = ", ".join(f"{count:,} {table}" for table, count in counts.items())
            raise DataError(f"{key} has {_shape(value)}, expected a row for each row of a table: there are {sizes}")


def describe_unused(values: dict[str, Any], counts: dict[str, int]) -> str:
    """A note on attributes that are of no table: how many, and the first few."""
    shown = [f"{key} {_shape(value)}" for key, value in list(values.items())[:5]]
    more = f" and {len(values) - 5} more" if len(values) > 5 else ""
    sizes = " nor ".join(f"{count:,} {table}" for table, count in counts.items())
    return f"not used, as they fit neither {sizes}: {', '.join(shown)}{more}"


def _check_ends(ends: Any, where: str) -> None:
    if not isinstance(ends, Tensor):
        raise DataError(f"{where} is a {type(ends).__name__}, expected a tensor (2, E)")
    if ends.dim() != 2 or ends.shape[0] != 2:
        turned = ends.dim() == 2 and ends.shape[1] == 2
        hint = "give edge_index.t().contiguous()" if turned else "the two rows of source and target"
        raise DataError(f"{where} has {_shape(ends)}, expected (2, E): {hint}")
    if ends.is_floating_point() or ends.dtype == torch.bool:
        raise DataError(f"{where} has dtype {_dtype(ends)}, expected whole numbers: give edge_index.long()")


def _as_tensor(value: Any, key: str) -> Any:
    """An array as a tensor, or as a list where it holds no numbers; ends given as a list as a tensor."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "biufc":
            return torch.from_numpy(np.array(value, dtype=value.dtype.newbyteorder("=")))
        return value.tolist()
    if key == "edge_index" and isinstance(value, list | tuple):
        try:
            return torch.tensor(value)
        except (TypeError, ValueError) as error:
            raise DataError(f"edge_index is a list, expected two of equal length: {quote(str(error), 80)}") from None
    return value


def _rows(value: Any) -> int | None:
    """The number of rows of an attribute; None if it has none at all."""
    if isinstance(value, Tensor):
        return int(value.shape[0]) if value.dim() else None
    return len(value) if isinstance(value, list) else None


def _shape(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"shape {tuple(value.shape)}"
    return f"{len(value):,} entries" if isinstance(value, list) else f"the value {quote(value)}"


def _dtype(value: Tensor) -> str:
    return str(value.dtype).removeprefix("torch.")
