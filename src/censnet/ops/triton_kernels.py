"""The kernels behind `triton.py`. A tile is ENTRIES rows of COLUMNS channels; sums are kept in float32 (or float64)."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def sum_segments(
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
    x, w, other, edge, offset, piece_node, left, right, out, nodes,
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
    node = r
    if piece_node is not None:
        if r >= nodes:
            node = tl.load(piece_node + (r - nodes)).to(tl.int64)
    if INCIDENT:
        mine = tl.load(x + node * WIDTH + c, mask=c < WIDTH, other=0).to(acc_type)
        if right is not None:
            mine *= tl.load(right + node).to(acc_type)
    for at in range(begin, end, ENTRIES):
        here = at + k < end
        tile = here[:, None] if WIDTH % COLUMNS == 0 else here[:, None] & (c < WIDTH)[None, :]
        j = tl.load(other + at + k, mask=here, other=0).to(tl.int64)
        e = tl.load(edge + at + k, mask=here, other=0).to(tl.int64)
        y = tl.load(x + j[:, None] * WIDTH + c[None, :], mask=tile, other=0).to(acc_type)
        if right is not None:
            y *= tl.load(right + j, mask=here, other=0).to(acc_type)[:, None]
        if INCIDENT:
            y += mine[None, :]
        if HEADS == 1:
            acc += tl.load(w + e, mask=here, other=0).to(acc_type)[:, None] * y
        else:
            acc += tl.load(w + e[:, None] * HEADS + head[None, :], mask=tile, other=0).to(acc_type) * y
    total = tl.sum(acc, 0)
    if left is not None:
        total *= tl.load(left + node).to(acc_type)
    tl.store(out + r * WIDTH + c, total, mask=c < WIDTH)


@triton.jit
def edge_dots(
    x, g, index, left, right, out, edges,
    WIDTH: tl.constexpr, HEADS: tl.constexpr, INCIDENT: tl.constexpr, DOUBLE: tl.constexpr,
    COLUMNS: tl.constexpr, ENTRIES: tl.constexpr,
):  # fmt: skip
    acc_type: tl.constexpr = tl.float64 if DOUBLE else tl.float32
    k, c, here, tile = _share(edges, WIDTH, HEADS, COLUMNS, ENTRIES)
    i = tl.load(index + 2 * k, mask=here, other=0).to(tl.int64)
    j = tl.load(index + 2 * k + 1, mask=here, other=0).to(tl.int64)
    y_i = _row(x, right, i, c, here, tile, WIDTH, acc_type)
    y_j = _row(x, right, j, c, here, tile, WIDTH, acc_type)
    h_i = _row(g, left, i, c, here, tile, WIDTH, acc_type)
    h_j = _row(g, left, j, c, here, tile, WIDTH, acc_type)
    product = (y_i + y_j) * (h_i + h_j) if INCIDENT else y_i * h_j + y_j * h_i
    _store(product, out, k, c, here, tile, WIDTH, HEADS)


@triton.jit
def _row(table, scale, i, c, here, tile, WIDTH: tl.constexpr, acc_type: tl.constexpr):
    """The channels of some rows, each row times its factor."""
    row = tl.load(table + i[:, None] * WIDTH + c[None, :], mask=tile, other=0).to(acc_type)
    if scale is not None:
        row *= tl.load(scale + i, mask=here, other=0).to(acc_type)[:, None]
    return row


@triton.jit
def row_dots(
    a, b, out, rows,
    WIDTH: tl.constexpr, HEADS: tl.constexpr, DOUBLE: tl.constexpr, COLUMNS: tl.constexpr, ENTRIES: tl.constexpr,
):  # fmt: skip
    acc_type: tl.constexpr = tl.float64 if DOUBLE else tl.float32
    k, c, here, tile = _share(rows, WIDTH, HEADS, COLUMNS, ENTRIES)
    at = k[:, None] * WIDTH + c[None, :]
    x = tl.load(a + at, mask=tile, other=0).to(acc_type)
    y = tl.load(b + at, mask=tile, other=0).to(acc_type)
    _store(x * y, out, k, c, here, tile, WIDTH, HEADS)


@triton.jit
def _share(rows, WIDTH: tl.constexpr, HEADS: tl.constexpr, COLUMNS: tl.constexpr, ENTRIES: tl.constexpr):
    """The rows and channels of this program's tile: those of one head, or some channels that are heads themselves."""
    span: tl.constexpr = COLUMNS if HEADS == WIDTH else WIDTH // HEADS
    k = tl.program_id(0).to(tl.int64) * ENTRIES + tl.arange(0, ENTRIES)
    own = tl.arange(0, COLUMNS)
    c = tl.program_id(1) * span + own
    here = k < rows
    return k, c, here, here[:, None] & ((own < span) & (c < WIDTH))[None, :]


@triton.jit
def _store(product, out, k, c, here, tile, WIDTH: tl.constexpr, HEADS: tl.constexpr):
    """Store one number for each row and head."""
    if HEADS == WIDTH:
        tl.store(out + k[:, None] * WIDTH + c[None, :], product, mask=tile)
    else:
        tl.store(out + k * HEADS + tl.program_id(1), tl.sum(product, 1), mask=here)
