"""The sums and products of `segments.py` and `propagate.py` on a GPU, each in one kernel; CUDA tensors get them.

Every kernel visits its entries in a fixed order and writes each row of the result once: no atomic additions, so the
result is the same to the bit each time. Where there is no Triton, or no GPU, `is_available` is False and torch does
the work.
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

SCAN_TILE = (256, 256, 128)  # numbers in a tile of sums without decay, with decay, and with moments

kernels: Any = None
if importlib.util.find_spec("triton") is not None:
    from censnet.ops import triton_kernels as kernels


def is_available(table: Tensor) -> bool:
    """Whether the kernels here can work on this tensor."""
    return kernels is not None and table.is_cuda and table.numel() > 0


def _columns(width: int) -> int:
    return min(1 << (width - 1).bit_length(), 256)


def _launch(
    kernel: Any, programs: int, arguments: tuple[Any, ...], like: Tensor, entries: int, warps: int, **meta: int
) -> None:
    """Run `programs` programs for each block of channels; each has `entries` rows in flight."""
    width = like.shape[1]
    with torch.cuda.device(like.device):
        kernel[(programs, -(-width // _columns(width)))](
            *arguments,
            WIDTH=width,
            DOUBLE=like.dtype == torch.float64,
            COLUMNS=_columns(width),
            ENTRIES=entries,
            num_warps=warps,
            **meta,
        )


def _entries(width: int, elements: int, most: int = 1024) -> int:
    """How many rows fill a tile of so many numbers. The sizes asked for below were the fastest on an H200."""
    return max(1, min(elements // _columns(width), most))


def sum_segments(table: Tensor, index: Tensor, offset: Tensor, weight: Tensor | None) -> Tensor:
    """out[r] = sum of weight[k] * table[index[k]] for offset[r] <= k < offset[r + 1]."""
    out = table.new_empty(len(offset) - 1, table.shape[1])
    if len(out):
        elements, warps = (512, 2) if table.dtype.itemsize >= 4 else (256, 1)
        entries = _entries(table.shape[1], elements, most=32)
        _launch(kernels.sum_segments, len(out), (table, index, offset, weight, out), table, entries, warps)
    return out


def sum_pairs(
    table: Tensor, index: Tensor, weight: Tensor | None, own: Tensor | None, own_weight: Tensor | None
) -> Tensor:
    """out[e] = sum over the two ends of e of weight * table[end], + own_weight[e] * own[e]."""
    edges, width = len(index) // 2, table.shape[1]
    out = table.new_empty(edges, width)
    if edges:
        entries, heads = _entries(width, 1024), 1 if own_weight is None else own_weight.shape[1]
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
    entries = _entries(width, 512, most=32)
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
    columns = _columns(width) if heads == width else 1 << (width // heads - 1).bit_length()
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


def scan_chunks(
    steps: Tensor,
    size: Tensor,
    tables: Sequence[Tensor],
    source: Tensor,
    times: tuple[Tensor | None, Tensor | None, Tensor | None],
    before: Tensor | None,
    carry: Sequence[Tensor],
    out: Sequence[Tensor],
    totals: Sequence[Tensor],
) -> None:
    """The running sums of the chunks of a block, and their moments if `out` or `totals` has two tables: see `scan.py`.

    Args:
        steps: where each step begins among packed rows, and the last one ends.
        size: entries of each chunk, the longest first.
        tables: rows that are added, and their moments if they have any.
        source: of each packed row, its row in the tables.
        times: gaps and ages at packed rows, and decay rates; None where there is no decay, or no age.
        before: the row of `carry` that each chunk starts from, or -1.
    """
    like, rate, stored = tables[0], times[2], [*out, *totals]
    width = like.shape[1]
    rows = _entries(width, SCAN_TILE[len(stored) if rate is not None else 0], most=32)

    def pair(some: Sequence[Tensor]) -> tuple[Tensor | None, Tensor | None]:
        return some[0] if some else None, some[1] if len(some) > 1 else None

    pointers = (*pair(tables), source, steps, size, before, *pair(carry), *times, *pair(out), *pair(totals))
    with _device(like):
        kernels.scan_chunks[(-(-len(size) // rows), -(-width // _columns(width)))](
            *pointers,
            len(size),
            WIDTH=width,
            SHARE=width if rate is None else width // len(rate),
            MOMENT=len(stored) > 1,
            DOUBLE=stored[0].dtype == torch.float64,
            COLUMNS=_columns(width),
            ROWS=rows,
            num_warps=1,
        )


def read_sums(
    sums: Sequence[Tensor], at: Tensor, dtype: torch.dtype, age: Tensor | None, rate: Tensor | None
) -> Tensor:
    """out[q] = sums[at[q]] exp(-rate age[q]), or (moment + age[q] sum) exp(-rate age[q]) if there are moments."""
    width = sums[0].shape[1]
    out = sums[0].new_empty(len(at), width, dtype=dtype)
    if len(at) == 0:
        return out
    rows = _entries(width, 1024)
    moments = sums[1] if len(sums) > 1 else None
    with _device(sums[0]):
        kernels.read_sums[(-(-len(at) // rows), -(-width // _columns(width)))](
            sums[0], moments, at, age, rate, out, len(at),
            WIDTH=width,
            SHARE=width if rate is None else width // len(rate),
            DOUBLE=dtype == torch.float64,
            COLUMNS=_columns(width),
            ENTRIES=rows,
            num_warps=2,
        )  # fmt: skip
    return out


def _device(like: Tensor) -> contextlib.AbstractContextManager[object]:
    return torch.cuda.device(like.device) if like.is_cuda else contextlib.nullcontext()
