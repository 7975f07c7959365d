"""The sums and products of `segments.py` and `propagate.py` on a GPU, each in one kernel; CUDA tensors get them.

Every kernel visits its entries in a fixed order and writes each row of the result once: no atomic additions, so the
result is the same to the bit each time. Where there is no Triton, or no GPU, `is_available` is False and torch does
the work.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import torch
from torch import Tensor

kernels: Any = None
directed_kernels: Any = None
_found = importlib.util.find_spec("triton")
if _found is not None and _found.origin is not None:  # a folder of that name on the path has no origin
    from censnet.ops import triton_directed_kernels as directed_kernels
    from censnet.ops import triton_kernels as kernels

WIDEST_COMBINED = 64  # channels: three matrices of this size and their gradients fit in registers
COMBINED_EDGES = 64  # in a tile


def is_available(table: Tensor) -> bool:
    """Whether the kernels here can work on this tensor."""
    return kernels is not None and table.is_cuda and table.numel() > 0


def tile_columns(width: int) -> int:
    return min(1 << (width - 1).bit_length(), 256)


def _launch(
    kernel: Any, programs: int, arguments: tuple[Any, ...], like: Tensor, entries: int, warps: int, **meta: int
) -> None:
    """Run `programs` programs for each block of channels; each has `entries` rows in flight."""
    width = like.shape[1]
    with torch.cuda.device(like.device):
        kernel[(programs, -(-width // tile_columns(width)))](
            *arguments,
            WIDTH=width,
            DOUBLE=like.dtype == torch.float64,
            COLUMNS=tile_columns(width),
            ENTRIES=entries,
            num_warps=warps,
            **meta,
        )


def tile_rows(width: int, elements: int, most: int = 1024) -> int:
    """The number of rows that fill a tile of so many numbers. The sizes below were the fastest on an H200."""
    return max(1, min(elements // tile_columns(width), most))


def sum_segments(table: Tensor, index: Tensor, offset: Tensor, weight: Tensor | None) -> Tensor:
    """out[r] = sum of weight[k] * table[index[k]] for offset[r] <= k < offset[r + 1]."""
    out = table.new_empty(len(offset) - 1, table.shape[1])
    if len(out):
        elements, warps = (512, 2) if table.dtype.itemsize >= 4 else (256, 1)
        entries = tile_rows(table.shape[1], elements, most=32)
        _launch(kernels.sum_segments, len(out), (table, index, offset, weight, out), table, entries, warps)
    return out


def sum_pairs(
    table: Tensor, index: Tensor, weight: Tensor | None, own: Tensor | None, own_weight: Tensor | None
) -> Tensor:
    """out[e] = sum over the two ends of e of weight * table[end], + own_weight[e] * own[e]."""
    edges, width = len(index) // 2, table.shape[1]
    out = table.new_empty(edges, width)
    if edges:
        entries, heads = tile_rows(width, 1024), 1 if own_weight is None else own_weight.shape[1]
        arguments = (table, index, weight, own, own_weight, out, edges)
        _launch(kernels.sum_pairs, -(-edges // entries), arguments, table, entries, 1, HEADS=heads)
    return out


def node_product(
    x: Tensor,
    w: Tensor,
    other: Tensor,
    edge: Tensor,
    offset: Tensor,
    segment: Tensor | None,
    left: Tensor | None,
    right: Tensor | None,
    incident: bool,
) -> Tensor:
    """out[r] = left[r] * sum over the entries k of node r of w[edge[k]] * (y[other[k]] + y[r]) for y = right * x.

    Without y[r] if not incident. Node r has the entries from offset[r] to offset[r + 1]. Further chunks of hubs are
    rows after the last node, of the nodes in `segment`; the caller adds them.
    """
    x, w = x.contiguous(), w.contiguous()
    nodes, width = x.shape
    out = x.new_empty(len(offset) - 1, width)
    arguments = (x, w, other, edge, offset, segment, left, right, out, nodes)
    entries = tile_rows(width, 512, most=32)
    _launch(kernels.node_product, len(out), arguments, x, entries, 1, HEADS=w.shape[1], INCIDENT=incident)
    return out


def edge_dots(
    x: Tensor, g: Tensor, index: Tensor, left: Tensor | None, right: Tensor | None, heads: int, incident: bool
) -> Tensor:
    """out[e, k] = y_i . h_j + y_j . h_i over the channels of head k, for y = right * x and h = left * g.

    + y_i . h_i + y_j . h_j if incident.
    """
    out = x.new_empty(len(index) // 2, heads)
    arguments = (x.contiguous(), g.contiguous(), index, left, right, out, len(out))
    _launch_dots(kernels.edge_dots, arguments, x, out, INCIDENT=incident)
    return out


def row_dots(a: Tensor, b: Tensor, heads: int) -> Tensor:
    """out[r, k] = a_r . b_r over the channels of head k."""
    out = a.new_empty(len(a), heads)
    _launch_dots(kernels.row_dots, (a.contiguous(), b.contiguous(), out, len(out)), a, out)
    return out


def _launch_dots(kernel: Any, arguments: tuple[Any, ...], like: Tensor, out: Tensor, **meta: bool) -> None:
    """One program for each head of some rows, or for some channels where each is a head: a sum needs all of a head."""
    (rows, heads), width = out.shape, like.shape[1]
    columns = tile_columns(width) if heads == width else 1 << (width // heads - 1).bit_length()
    entries = max(1, 1024 // columns)
    if rows:
        with torch.cuda.device(like.device):
            kernel[(-(-rows // entries), -(-width // columns) if heads == width else heads)](
                *arguments,
                WIDTH=width,
                HEADS=heads,
                DOUBLE=like.dtype == torch.float64,
                COLUMNS=columns,
                ENTRIES=entries,
                num_warps=2,
                **meta,
            )


def can_combine(edges: Tensor, weight: Tensor, factor: Tensor) -> bool:
    """Whether `combine` can work on edges (E, i), weight (members, i, 3 o) and factor (2 N, heads)."""
    members, width, out, heads = weight.shape[0], weight.shape[1], weight.shape[2] // 3, factor.shape[1]
    return (
        is_available(edges) and edges.dtype != torch.float64 and members == 1 and min(width, out) > 0
        and max(width, out) <= WIDEST_COMBINED and (heads in (1, out) or out & (out - 1) == 0)
    )  # fmt: skip


def combine(edges: Tensor, weight: Tensor, table: Tensor, factor: Tensor, start: Tensor, end: Tensor) -> Tensor:
    """On each edge a_s + b_t + h W_0 - f_s * h W_1 - g_t * h W_4, as `censnet.ops.directed.combine_edges`."""
    out = edges.new_empty(len(edges), table.shape[1])
    arguments = edges.contiguous(), weight, table.contiguous(), factor.contiguous(), start, end, out
    with torch.cuda.device(edges.device):
        directed_kernels.combine[(-(-len(edges) // COMBINED_EDGES),)](
            *arguments, len(edges), len(table) // 2, **_sizes(weight, factor), num_warps=4
        )  # fmt: skip
    return out


def combine_gradient(
    grad: Tensor, edges: Tensor, weight: Tensor, factor: Tensor, start: Tensor, end: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of the edges and of the three matrices; grad . h W_1 and grad . h W_4 of each edge and head."""
    tiles = -(-len(edges) // COMBINED_EDGES)
    programs = min(tiles, 4 * torch.cuda.get_device_properties(edges.device).multi_processor_count)
    edges, factor, sizes = edges.contiguous(), factor.contiguous(), _sizes(weight, factor)
    of_edges, of_weight = torch.empty_like(edges), weight.new_empty(programs, *weight.shape, dtype=torch.float32)
    first, second = factor.new_empty(2, len(edges), factor.shape[1])
    ends, counts = (start, end), (len(edges), len(factor) // 2)
    with torch.cuda.device(edges.device):
        directed_kernels.combine_row_gradient[(tiles,)](
            grad, edges, weight, factor, *ends, of_edges, first, second, *counts, **sizes, num_warps=4
        )  # fmt: skip
        directed_kernels.combine_weight_gradient[(programs,)](
            grad, edges, factor, *ends, of_weight, *counts, **sizes, TILES=-(-tiles // programs), num_warps=4
        )  # fmt: skip
    return of_edges, of_weight.sum(0), first, second


def _sizes(weight: Tensor, factor: Tensor) -> dict[str, Any]:
    width, out = weight.shape[0], weight.shape[1] // 3
    return {
        "IN": width,
        "OUT": out,
        "HEADS": factor.shape[1],
        "ROWS": max(16, 1 << (width - 1).bit_length()),  # a product of tiles needs 16 of each
        "COLUMNS": max(16, 1 << (out - 1).bit_length()),
        "PRECISION": "tf32x3" if weight.dtype == torch.float32 else "ieee",  # as exact as float32, and faster
        "ENTRIES": COMBINED_EDGES,
    }
