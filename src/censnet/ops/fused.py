"""The sums and products of `sums.py` and `propagate.py` on a GPU, each in one kernel; CUDA tensors get them.

Every kernel visits its entries in a fixed order and writes each row of the result once: no atomic additions, so the
result is the same to the bit each time. Where there is no Triton, or no GPU, `takes` says so and torch does the work.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from censnet.ops.sums import Bags

kernels: Any = None
if importlib.util.find_spec("triton") is not None:
    from censnet.ops import triton_kernels as kernels


def takes(table: Tensor) -> bool:
    """Whether the kernels here can work on this tensor."""
    return kernels is not None and table.is_cuda and table.numel() > 0


def takes_heads(width: int, heads: int) -> bool:
    """Whether `edge_dots` can split rows of this width: inside a kernel, shapes are powers of two."""
    return heads == 1 or heads == width or width & (width - 1) == 0


def _tile(width: int, dtype: torch.dtype) -> dict[str, int]:
    """How many columns and entries are in flight at once: 16 bytes a thread and load, two loads (measured, H200)."""
    columns = min(1 << (width - 1).bit_length(), 256)
    elements, warps = (512, 2) if dtype.itemsize >= 4 else (256, 1)
    return {"COLUMNS": columns, "ENTRIES": max(1, min(elements // columns, 32)), "num_warps": warps}


def sum_bags(table: Tensor, index: Tensor, offset: Tensor, weight: Tensor | None) -> Tensor:
    """out[r] = sum of weight[k] * table[index[k]] for offset[r] <= k < offset[r + 1]."""
    rows, width = len(offset) - 1, table.shape[1]
    out = table.new_empty(rows, width)
    if rows:
        tile = _tile(width, table.dtype)
        with torch.cuda.device(table.device):
            kernels.sum_bags[(rows, -(-width // tile["COLUMNS"]))](
                table, index, offset, weight, out, WIDTH=width, DOUBLE=table.dtype == torch.float64, **tile
            )
    return out


def sum_pairs(
    table: Tensor,
    index: Tensor,
    row: Tensor | None,
    weight: Tensor | None,
    own: Tensor | None,
    own_weight: Tensor | None,
) -> Tensor:
    """out[e] = sum over the two ends of e of weight * table[end], + own_weight[e] * own[e]; bag k is edge row[k]."""
    edges, width = len(index) // 2, table.shape[1]
    out = table.new_empty(edges, width)
    heads = 1 if own_weight is None else own_weight.shape[1]
    if edges:
        columns = min(1 << (width - 1).bit_length(), 256)
        entries = max(1, 1024 // columns)
        with torch.cuda.device(table.device):
            kernels.sum_pairs[(-(-edges // entries), -(-width // columns))](
                table, index, row, weight, own, own_weight, out, edges,
                WIDTH=width, HEADS=heads, DOUBLE=table.dtype == torch.float64, COLUMNS=columns, ENTRIES=entries,
                num_warps=1,
            )  # fmt: skip
    return out


def node_product(y: Tensor, w: Tensor, others: Bags, edge: Tensor, incident: bool) -> Tensor:
    """out[r] = sum over the entries k of node r of w[edge[k]] * (y[other[k]] + y[r]), or without y[r] if not incident.

    Further pieces of hubs are rows after the last node; the caller adds them.
    """
    y, w = y.contiguous(), w.contiguous()
    rows, (nodes, width) = len(others.offset) - 1, y.shape
    out = y.new_empty(rows, width)
    tile = _tile(width, y.dtype)
    hub = None if others.pieces is None else others.pieces.hub
    with torch.cuda.device(y.device):
        kernels.node_product[(rows, -(-width // tile["COLUMNS"]))](
            y, w, others.index, edge, others.offset, hub, out, nodes,
            WIDTH=width, HEADS=w.shape[1], INCIDENT=incident, DOUBLE=y.dtype == torch.float64, **tile,
        )  # fmt: skip
    return out


def edge_dots(y: Tensor, h: Tensor, index: Tensor, row: Tensor | None, heads: int) -> Tensor:
    """out[e, k] = (y_i + y_j) . (h_i + h_j) over the channels of head k, for each edge i-j that is not a loop."""
    y, h = y.contiguous(), h.contiguous()
    edges, width = len(index) // 2, y.shape[1]
    out = y.new_empty(edges, heads)
    if edges:
        columns = 1 << (width - 1).bit_length()
        entries = max(1, 1024 // columns)
        with torch.cuda.device(y.device):
            kernels.edge_dots[(-(-edges // entries),)](
                y, h, index, row, out, edges,
                WIDTH=width, HEADS=heads, DOUBLE=y.dtype == torch.float64, COLUMNS=columns, ENTRIES=entries,
                num_warps=2,
            )  # fmt: skip
    return out
