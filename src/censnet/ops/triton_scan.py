"""The kernels of scans on a GPU: see `scan.py`. CUDA tensors get them where there is Triton."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from censnet.ops import triton
from censnet.ops.triton import tile_columns, tile_rows

kernels: Any = None
if triton.kernels is not None:
    from censnet.ops import triton_scan_kernels as kernels

TILE = (256, 256, 128)  # numbers in a tile of sums without decay, with decay, and with moments
READ_TILE = 1024


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
    rows = tile_rows(width, TILE[len(stored) if rate is not None else 0], 32)

    def pair(some: Sequence[Tensor]) -> tuple[Tensor | None, Tensor | None]:
        return some[0] if some else None, some[1] if len(some) > 1 else None

    pointers = (*pair(tables), source, steps, size, before, *pair(carry), *times, *pair(out), *pair(totals))
    with _device(like):
        kernels.scan_chunks[(-(-len(size) // rows), -(-width // tile_columns(width)))](
            *pointers,
            len(size),
            WIDTH=width,
            SHARE=width if rate is None else width // len(rate),
            MOMENT=len(stored) > 1,
            DOUBLE=stored[0].dtype == torch.float64,
            COLUMNS=tile_columns(width),
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
    rows = tile_rows(width, READ_TILE, 1024)
    moments = sums[1] if len(sums) > 1 else None
    with _device(sums[0]):
        kernels.read_sums[(-(-len(at) // rows), -(-width // tile_columns(width)))](
            sums[0], moments, at, age, rate, out, len(at),
            WIDTH=width,
            SHARE=width if rate is None else width // len(rate),
            DOUBLE=dtype == torch.float64,
            COLUMNS=tile_columns(width),
            ENTRIES=rows,
            num_warps=2,
        )  # fmt: skip
    return out


def _device(like: Tensor) -> contextlib.AbstractContextManager[object]:
    return torch.cuda.device(like.device) if like.is_cuda else contextlib.nullcontext()
