"""The kernels behind `fused.py`. A tile is ENTRIES rows of COLUMNS channels; sums are kept in float32 (or float64)."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl


@triton.jit
def sum_bags(
    table: Any, index: Any, offset: Any, weight: Any, out: Any,
    WIDTH: tl.constexpr, DOUBLE: tl.constexpr, COLUMNS: tl.constexpr, ENTRIES: tl.constexpr,
) -> None:  # fmt: skip
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
        x = tl.load(table + i[:, None] * WIDTH + c[None, :], mask=here[:, None] & (c < WIDTH)[None, :], other=0)
        if weight is None:
            acc += x.to(acc_type)
        else:
            acc += tl.load(weight + at + k, mask=here, other=0).to(acc_type)[:, None] * x.to(acc_type)
    tl.store(out + r * WIDTH + c, tl.sum(acc, 0), mask=c < WIDTH)


@triton.jit
def sum_pairs(
    table: Any, index: Any, row: Any, weight: Any, own: Any, own_weight: Any, out: Any, edges: Any,
    WIDTH: tl.constexpr, HEADS: tl.constexpr, DOUBLE: tl.constexpr, COLUMNS: tl.constexpr, ENTRIES: tl.constexpr,
) -> None:  # fmt: skip
    acc_type: tl.constexpr = tl.float64 if DOUBLE else tl.float32
    k = tl.program_id(0).to(tl.int64) * ENTRIES + tl.arange(0, ENTRIES)
    c = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    here = k < edges
    tile = here[:, None] & (c < WIDTH)[None, :]
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
    if row is None:
        e = k
    else:
        e = tl.load(row + k, mask=here, other=0).to(tl.int64)
    if own is not None:
        mine = tl.load(own + e[:, None] * WIDTH + c[None, :], mask=tile, other=0).to(acc_type)
        head = c // (WIDTH // HEADS)
        acc += tl.load(own_weight + e[:, None] * HEADS + head[None, :], mask=tile, other=0).to(acc_type) * mine
    tl.store(out + e[:, None] * WIDTH + c[None, :], acc, mask=tile, cache_modifier=".cs")  # not read again here


@triton.jit
def node_product(
    y: Any, w: Any, other: Any, edge: Any, offset: Any, piece_node: Any, out: Any, nodes: Any,
    WIDTH: tl.constexpr, HEADS: tl.constexpr, INCIDENT: tl.constexpr, DOUBLE: tl.constexpr,
    COLUMNS: tl.constexpr, ENTRIES: tl.constexpr,
) -> None:  # fmt: skip
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
        tile = here[:, None] & (c < WIDTH)[None, :]
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
    y: Any, h: Any, index: Any, row: Any, out: Any, edges: Any,
    WIDTH: tl.constexpr, HEADS: tl.constexpr, DOUBLE: tl.constexpr, COLUMNS: tl.constexpr, ENTRIES: tl.constexpr,
) -> None:  # fmt: skip
    acc_type: tl.constexpr = tl.float64 if DOUBLE else tl.float32
    k = tl.program_id(0).to(tl.int64) * ENTRIES + tl.arange(0, ENTRIES)
    c = tl.arange(0, COLUMNS)
    here = k < edges
    tile = here[:, None] & (c < WIDTH)[None, :]
    i = tl.load(index + 2 * k, mask=here, other=0).to(tl.int64)[:, None] * WIDTH + c[None, :]
    j = tl.load(index + 2 * k + 1, mask=here, other=0).to(tl.int64)[:, None] * WIDTH + c[None, :]
    a = tl.load(y + i, mask=tile, other=0).to(acc_type) + tl.load(y + j, mask=tile, other=0).to(acc_type)
    b = tl.load(h + i, mask=tile, other=0).to(acc_type) + tl.load(h + j, mask=tile, other=0).to(acc_type)
    product = a * b
    if row is None:
        e = k
    else:
        e = tl.load(row + k, mask=here, other=0).to(tl.int64)
    if HEADS == 1:
        tl.store(out + e, tl.sum(product, 1), mask=here)
    elif HEADS == WIDTH:
        tl.store(out + e[:, None] * WIDTH + c[None, :], product, mask=tile)
    else:  # WIDTH is a power of two
        share = tl.sum(tl.reshape(product, [ENTRIES, HEADS, COLUMNS // HEADS]), 2)
        tl.store(out + e[:, None] * HEADS + tl.arange(0, HEADS)[None, :], share, mask=here[:, None])
