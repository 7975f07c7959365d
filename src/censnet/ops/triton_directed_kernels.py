"""The kernels of directed edges behind `triton.py`. A tile is ENTRIES edges with all of their channels.

Nothing but the result is written for all edges: what the three matrices give stays in registers. Sums over edges are
kept by each program for its own tiles, in a fixed order, and are added up afterwards, so that the gradient of the
matrices is the same to the bit each time.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def combine(
    h, weight, table, factor, start, end, out, edges, nodes,
    IN: tl.constexpr, OUT: tl.constexpr, HEADS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    PRECISION: tl.constexpr, ENTRIES: tl.constexpr,
):  # fmt: skip
    k, i, o = tl.program_id(0).to(tl.int64) * ENTRIES + tl.arange(0, ENTRIES), tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    here, tile = k < edges, (k < edges)[:, None] & (o < OUT)[None, :]
    x = tl.load(h + k[:, None] * IN + i[None, :], mask=here[:, None] & (i < IN)[None, :], other=0)
    s = tl.load(start + k, mask=here, other=0).to(tl.int64)
    t = tl.load(end + k, mask=here, other=0).to(tl.int64) + nodes
    first = _factors(factor, s, o, here, tile, OUT, HEADS)
    second = _factors(factor, t, o, here, tile, OUT, HEADS)
    acc = tl.load(table + s[:, None] * OUT + o[None, :], mask=tile, other=0).to(tl.float32)
    acc += tl.load(table + t[:, None] * OUT + o[None, :], mask=tile, other=0).to(tl.float32)
    acc += tl.dot(x, _matrix(weight, 0, i, o, IN, OUT), input_precision=PRECISION)
    acc -= first * tl.dot(x, _matrix(weight, 1, i, o, IN, OUT), input_precision=PRECISION)
    acc -= second * tl.dot(x, _matrix(weight, 2, i, o, IN, OUT), input_precision=PRECISION)
    tl.store(out + k[:, None] * OUT + o[None, :], acc, mask=tile)


@triton.jit
def combine_row_gradient(
    grad, h, weight, factor, start, end, of_edges, of_first, of_second, edges, nodes,
    IN: tl.constexpr, OUT: tl.constexpr, HEADS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    PRECISION: tl.constexpr, ENTRIES: tl.constexpr,
):  # fmt: skip
    k, i, o = tl.program_id(0).to(tl.int64) * ENTRIES + tl.arange(0, ENTRIES), tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    here, tile = k < edges, (k < edges)[:, None] & (o < OUT)[None, :]
    inside = here[:, None] & (i < IN)[None, :]
    g = tl.load(grad + k[:, None] * OUT + o[None, :], mask=tile, other=0)
    x = tl.load(h + k[:, None] * IN + i[None, :], mask=inside, other=0)
    s = tl.load(start + k, mask=here, other=0).to(tl.int64)
    t = tl.load(end + k, mask=here, other=0).to(tl.int64) + nodes
    first = _factors(factor, s, o, here, tile, OUT, HEADS)
    second = _factors(factor, t, o, here, tile, OUT, HEADS)
    one, four = _matrix(weight, 1, i, o, IN, OUT), _matrix(weight, 2, i, o, IN, OUT)
    back = tl.dot(g, tl.trans(_matrix(weight, 0, i, o, IN, OUT)), input_precision=PRECISION)
    if HEADS == 1:  # f (h W) . g = f h . (g W^t)
        product = tl.dot(g, tl.trans(one), input_precision=PRECISION)
        back -= first * product
        tl.store(of_first + k, tl.sum(product * x, 1), mask=here)
        product = tl.dot(g, tl.trans(four), input_precision=PRECISION)
        back -= second * product
        tl.store(of_second + k, tl.sum(product * x, 1), mask=here)
    else:
        back -= tl.dot((first * g).to(g.dtype), tl.trans(one), input_precision=PRECISION)
        back -= tl.dot((second * g).to(g.dtype), tl.trans(four), input_precision=PRECISION)
        _store_heads(of_first, tl.dot(x, one, input_precision=PRECISION) * g, k, o, here, tile, OUT, HEADS, COLUMNS)
        _store_heads(of_second, tl.dot(x, four, input_precision=PRECISION) * g, k, o, here, tile, OUT, HEADS, COLUMNS)
    tl.store(of_edges + k[:, None] * IN + i[None, :], back, mask=inside)


@triton.jit
def combine_weight_gradient(
    grad, h, factor, start, end, of_weight, edges, nodes,
    IN: tl.constexpr, OUT: tl.constexpr, HEADS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    PRECISION: tl.constexpr, ENTRIES: tl.constexpr, TILES: tl.constexpr,
):  # fmt: skip
    i, o = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    sum_own = tl.zeros([ROWS, COLUMNS], tl.float32)
    sum_one = tl.zeros([ROWS, COLUMNS], tl.float32)
    sum_four = tl.zeros([ROWS, COLUMNS], tl.float32)
    for turn in range(TILES):
        k = (turn * tl.num_programs(0) + tl.program_id(0)).to(tl.int64) * ENTRIES + tl.arange(0, ENTRIES)
        here, tile = k < edges, (k < edges)[:, None] & (o < OUT)[None, :]
        x = tl.load(h + k[None, :] * IN + i[:, None], mask=here[None, :] & (i < IN)[:, None], other=0)
        g = tl.load(grad + k[:, None] * OUT + o[None, :], mask=tile, other=0)
        sum_own += tl.dot(x, g, input_precision=PRECISION)
        s = tl.load(start + k, mask=here, other=0).to(tl.int64)
        first = (_factors(factor, s, o, here, tile, OUT, HEADS) * g).to(g.dtype)
        sum_one -= tl.dot(x, first, input_precision=PRECISION)
        t = tl.load(end + k, mask=here, other=0).to(tl.int64) + nodes
        second = (_factors(factor, t, o, here, tile, OUT, HEADS) * g).to(g.dtype)
        sum_four -= tl.dot(x, second, input_precision=PRECISION)
    at = of_weight + (tl.program_id(0).to(tl.int64) * IN + i)[:, None] * (3 * OUT) + o[None, :]
    inside = (i < IN)[:, None] & (o < OUT)[None, :]
    tl.store(at, sum_own, mask=inside)
    tl.store(at + OUT, sum_one, mask=inside)
    tl.store(at + 2 * OUT, sum_four, mask=inside)


@triton.jit
def _matrix(weight, number: tl.constexpr, i, o, IN: tl.constexpr, OUT: tl.constexpr):
    """One of the three matrices, which lie beside each other. (ROWS, COLUMNS)"""
    mask = (i < IN)[:, None] & (o < OUT)[None, :]
    return tl.load(weight + i[:, None] * (3 * OUT) + number * OUT + o[None, :], mask=mask, other=0)


@triton.jit
def _factors(factor, node, o, here, tile, OUT: tl.constexpr, HEADS: tl.constexpr):
    """The factor of each channel, or of all: (ENTRIES, COLUMNS) or (ENTRIES, 1)"""
    if HEADS == 1:
        found = tl.load(factor + node, mask=here, other=0).to(tl.float32)[:, None]
    else:
        head = o // (OUT // HEADS)
        found = tl.load(factor + node[:, None] * HEADS + head[None, :], mask=tile, other=0).to(tl.float32)
    return found


@triton.jit
def _store_heads(
    out, product, k, o, here, tile, OUT: tl.constexpr, HEADS: tl.constexpr, COLUMNS: tl.constexpr
):  # fmt: skip
    """The sum over the channels of each head."""
    if HEADS == 1:
        tl.store(out + k, tl.sum(product, 1), mask=here)
    elif HEADS == OUT:
        tl.store(out + k[:, None] * OUT + o[None, :], product, mask=tile)
    else:
        each: tl.constexpr = OUT // HEADS
        shares: tl.constexpr = COLUMNS // each  # those after the last head are of no channel
        head = tl.arange(0, shares)
        sums = tl.sum(tl.reshape(product, [product.shape[0], shares, each]), 2)
        tl.store(out + k[:, None] * HEADS + head[None, :], sums, mask=here[:, None] & (head < HEADS)[None, :])
