"""The kernels behind `fused.py`. A tile is ENTRIES rows of COLUMNS channels; sums are kept in float32 (or float64)."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def sum_bags(
    table, index, offset, weight, out,
    WIDTH: tl.constexpr, DOUBLE: tl.constexpr, COLUMNS: tl.constexpr, ENTRIES: tl.constexpr,
):  # fmt: skip
    acc_type: tl.constexpr = tl.float64 if DOUBLE else tl.float32
    r = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    k = tl.arange(0, ENTRIES)
    begin = tl.load(offset + r)
    end = tl.load(offset + r + 1)
    acc = tl.zeros([ENTRIES, COLUMNS], acc_type)
    for at in range(begin, end, ENTRIES):
        here = at + k < end
        i = tl.load(index + at + k, mask=here, other=0).to(tl.int64)
        tile = here[:, None] if WIDTH % COLUMNS == 0 else here[:, None] & (c < WIDTH)[None, :]
        x = tl.load(table + i[:, None] * WIDTH + c[None, :], mask=tile, other=0)
        if weight is None:
            acc += x.to(acc_type)
        else:
            acc += tl.load(weight + at + k, mask=here, other=0).to(acc_type)[:, None] * x.to(acc_type)
    tl.store(out + r * WIDTH + c, tl.sum(acc, 0), mask=c < WIDTH)


@triton.jit
def sum_pairs(
    table, index, weight, own, own_weight, out, edges,
    WIDTH: tl.constexpr, HEADS: tl.constexpr, DOUBLE: tl.constexpr, COLUMNS: tl.constexpr, ENTRIES: tl.constexpr,
):  # fmt: skip
    acc_type: tl.constexpr = tl.float64 if DOUBLE else tl.float32
    k = tl.program_id(0).to(tl.int64) * ENTRIES + tl.arange(0, ENTRIES)
    c = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    here = k < edges
    tile = here[:, None] if WIDTH % COLUMNS == 0 else here[:, None] & (c < WIDTH)[None, :]
    i = tl.load(index + 2 * k, mask=here, other=0).to(tl.int64)
    j = tl.load(index + 2 * k + 1, mask=here, other=0).to(tl.int64)
    x = tl.load(table + i[:, None] * WIDTH + c[None, :], mask=tile, other=0).to(acc_type)
    y = tl.load(table + j[:, None] * WIDTH + c[None, :], mask=tile, other=0).to(acc_type)
    if weight is None:
        acc = x + y
    else:
        a = tl.load(weight + 2 * k, mask=here, other=0).to(acc_type)
        b = tl.load(weight + 2 * k + 1, mask=here, other=0).to(acc_type)
        acc = a[:, None] * x + b[:, None] * y
    if own is not None:
        mine = tl.load(own + k[:, None] * WIDTH + c[None, :], mask=tile, other=0).to(acc_type)
        head = c // (WIDTH // HEADS)
        acc += tl.load(own_weight + k[:, None] * HEADS + head[None, :], mask=tile, other=0).to(acc_type) * mine
    tl.store(out + k[:, None] * WIDTH + c[None, :], acc, mask=tile, cache_modifier=".cs")  # not read again here


@triton.jit
def node_product(
    y, w, other, edge, offset, piece_node, out, nodes,
    WIDTH: tl.constexpr, HEADS: tl.constexpr, INCIDENT: tl.constexpr, DOUBLE: tl.constexpr,
    COLUMNS: tl.constexpr, ENTRIES: tl.constexpr,
):  # fmt: skip
    acc_type: tl.constexpr = tl.float64 if DOUBLE else tl.float32
    r = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    head = c // (WIDTH // HEADS)
    k = tl.arange(0, ENTRIES)
    begin = tl.load(offset + r)
    end = tl.load(offset + r + 1)
    acc = tl.zeros([ENTRIES, COLUMNS], acc_type)
    if INCIDENT:
        node = r
        if piece_node is not None:
            if r >= nodes:
                node = tl.load(piece_node + (r - nodes)).to(tl.int64)
        mine = tl.load(y + node * WIDTH + c, mask=c < WIDTH, other=0).to(acc_type)
    for at in range(begin, end, ENTRIES):
        here = at + k < end
        tile = here[:, None] if WIDTH % COLUMNS == 0 else here[:, None] & (c < WIDTH)[None, :]
        j = tl.load(other + at + k, mask=here, other=0).to(tl.int64)
        e = tl.load(edge + at + k, mask=here, other=0).to(tl.int64)
        x = tl.load(y + j[:, None] * WIDTH + c[None, :], mask=tile, other=0).to(acc_type)
        if INCIDENT:
            x += mine[None, :]
        if HEADS == 1:
            acc += tl.load(w + e, mask=here, other=0).to(acc_type)[:, None] * x
        else:
            acc += tl.load(w + e[:, None] * HEADS + head[None, :], mask=tile, other=0).to(acc_type) * x
    tl.store(out + r * WIDTH + c, tl.sum(acc, 0), mask=c < WIDTH)


@triton.jit
def edge_dots(
    y, h, index, out, edges,
    WIDTH: tl.constexpr, HEADS: tl.constexpr, INCIDENT: tl.constexpr, DOUBLE: tl.constexpr,
    COLUMNS: tl.constexpr, ENTRIES: tl.constexpr,
):  # fmt: skip
    acc_type: tl.constexpr = tl.float64 if DOUBLE else tl.float32
    k = tl.program_id(0).to(tl.int64) * ENTRIES + tl.arange(0, ENTRIES)
    c = tl.arange(0, COLUMNS)
    here = k < edges
    tile = here[:, None] if WIDTH % COLUMNS == 0 else here[:, None] & (c < WIDTH)[None, :]
    i = tl.load(index + 2 * k, mask=here, other=0).to(tl.int64)[:, None] * WIDTH + c[None, :]
    j = tl.load(index + 2 * k + 1, mask=here, other=0).to(tl.int64)[:, None] * WIDTH + c[None, :]
    y_i = tl.load(y + i, mask=tile, other=0).to(acc_type)
    y_j = tl.load(y + j, mask=tile, other=0).to(acc_type)
    h_i = tl.load(h + i, mask=tile, other=0).to(acc_type)
    h_j = tl.load(h + j, mask=tile, other=0).to(acc_type)
    product = (y_i + y_j) * (h_i + h_j) if INCIDENT else y_i * h_j + y_j * h_i
    _store_by_head(product, out, k, here, c, tile, WIDTH, HEADS, COLUMNS, ENTRIES)


@triton.jit
def row_dots(
    a, b, out, rows,
    WIDTH: tl.constexpr, HEADS: tl.constexpr, DOUBLE: tl.constexpr, COLUMNS: tl.constexpr, ENTRIES: tl.constexpr,
):  # fmt: skip
    acc_type: tl.constexpr = tl.float64 if DOUBLE else tl.float32
    k = tl.program_id(0).to(tl.int64) * ENTRIES + tl.arange(0, ENTRIES)
    c = tl.arange(0, COLUMNS)
    here = k < rows
    tile = here[:, None] if WIDTH % COLUMNS == 0 else here[:, None] & (c < WIDTH)[None, :]
    at = k[:, None] * WIDTH + c[None, :]
    x = tl.load(a + at, mask=tile, other=0).to(acc_type)
    y = tl.load(b + at, mask=tile, other=0).to(acc_type)
    _store_by_head(x * y, out, k, here, c, tile, WIDTH, HEADS, COLUMNS, ENTRIES)


@triton.jit
def _store_by_head(
    product, out, k, here, c, tile,
    WIDTH: tl.constexpr, HEADS: tl.constexpr, COLUMNS: tl.constexpr, ENTRIES: tl.constexpr,
):  # fmt: skip
    """Sum each row within its heads, and store one number for each."""
    if HEADS == 1:
        tl.store(out + k, tl.sum(product, 1), mask=here)
    elif HEADS == WIDTH:
        tl.store(out + k[:, None] * WIDTH + c[None, :], product, mask=tile)
    else:  # WIDTH is a power of two
        share = tl.sum(tl.reshape(product, [ENTRIES, HEADS, COLUMNS // HEADS]), 2)
        tl.store(out + k[:, None] * HEADS + tl.arange(0, HEADS)[None, :], share, mask=here[:, None])
