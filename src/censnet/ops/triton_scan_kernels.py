"""The kernels behind `triton_scan.py`. A tile is some chunks or rows of COLUMNS channels; sums are kept in float64."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def scan_chunks(
    x_in, y_in, source, base, size, before, x_carry, y_carry, gap, age, rate, x_out, y_out, x_total, y_total, chunks,
    WIDTH: tl.constexpr, SHARE: tl.constexpr, MOMENT: tl.constexpr, DOUBLE: tl.constexpr,
    COLUMNS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Running sums x, and moments y, of ROWS chunks in float64: a step takes the next entry of each."""
    first = tl.program_id(0).to(tl.int64) * ROWS
    chunk = first + tl.arange(0, ROWS)
    c = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = c < WIDTH
    mine = tl.load(size + chunk, mask=chunk < chunks, other=0)
    x = tl.zeros([ROWS, COLUMNS], tl.float64)
    y = tl.zeros([ROWS, COLUMNS], tl.float64)
    minus = tl.zeros([COLUMNS], tl.float64)
    if rate is not None:
        minus -= tl.load(rate + c // SHARE, mask=inside, other=0)
    if before is not None:
        number = tl.load(before + chunk, mask=chunk < chunks, other=-1).to(tl.int64)
        follows = (number >= 0)[:, None] & inside[None, :]
        carried = number[:, None] * WIDTH + c[None, :]
        x += tl.load(x_carry + carried, mask=follows, other=0)
        if MOMENT:
            y += tl.load(y_carry + carried, mask=follows, other=0)
    steps = tl.load(size + first)  # the first chunk is the longest
    for k in range(0, steps, 4):  # so many loads are in flight together
        x0, y0, t0, at0 = _entry(x_in, y_in, source, base, gap, age, minus, k, steps, mine, chunk, c, WIDTH, MOMENT)
        x1, y1, t1, at1 = _entry(x_in, y_in, source, base, gap, age, minus, k + 1, steps, mine, chunk, c, WIDTH, MOMENT)
        x2, y2, t2, at2 = _entry(x_in, y_in, source, base, gap, age, minus, k + 2, steps, mine, chunk, c, WIDTH, MOMENT)
        x3, y3, t3, at3 = _entry(x_in, y_in, source, base, gap, age, minus, k + 3, steps, mine, chunk, c, WIDTH, MOMENT)
        x, y = _step(x, y, x0, y0, t0, minus, x_out, y_out, at0, k < mine, inside, gap, MOMENT, DOUBLE)
        x, y = _step(x, y, x1, y1, t1, minus, x_out, y_out, at1, k + 1 < mine, inside, gap, MOMENT, DOUBLE)
        x, y = _step(x, y, x2, y2, t2, minus, x_out, y_out, at2, k + 2 < mine, inside, gap, MOMENT, DOUBLE)
        x, y = _step(x, y, x3, y3, t3, minus, x_out, y_out, at3, k + 3 < mine, inside, gap, MOMENT, DOUBLE)
    if x_total is not None:
        at = chunk[:, None] * WIDTH + c[None, :]
        tile = (chunk < chunks)[:, None] & inside[None, :]
        tl.store(x_total + at, x, mask=tile)
        if MOMENT:
            tl.store(y_total + at, y, mask=tile)


@triton.jit
def _entry(
    x_in, y_in, source, base, gap, age, minus, k, steps, mine, chunk, c, WIDTH: tl.constexpr, MOMENT: tl.constexpr
):  # fmt: skip
    """Entry k of each chunk and its moment, the time since the one before, and where its sum is stored."""
    here = k < mine
    tile = here[:, None] & (c < WIDTH)[None, :]
    row = tl.load(base + k, mask=k < steps, other=0) + chunk
    i = tl.load(source + row, mask=here, other=0).to(tl.int64)
    entry = i[:, None] * WIDTH + c[None, :]
    x = tl.load(x_in + entry, mask=tile, other=0).to(tl.float64)
    y = x
    since = here
    if y_in is not None:
        y = tl.load(y_in + entry, mask=tile, other=0)
    if gap is not None:
        since = tl.load(gap + row, mask=here, other=0)
    if age is not None:
        old = tl.load(age + row, mask=here, other=0)[:, None]
        x = x * tl.exp(old * minus[None, :])
        y = x * old
    elif y_in is None:
        y = tl.zeros_like(x)
    return x, y, since, row[:, None] * WIDTH + c[None, :]


@triton.jit
def _step(
    x, y, new_x, new_y, since, minus, x_out, y_out, at, here, inside, gap, MOMENT: tl.constexpr, DOUBLE: tl.constexpr
):  # fmt: skip
    """Add the next entries to the sums, decayed until then, and store them. After its last entry a sum stays."""
    if gap is None:
        x = x + new_x
    else:
        gone = since[:, None]
        factor = tl.exp(gone * minus[None, :])
        if MOMENT:
            y = (y + gone * x) * factor + new_y
        x = x * factor + new_x
    if x_out is not None:
        tile = here[:, None] & inside[None, :]
        tl.store(x_out + at, x if DOUBLE else x.to(tl.float32), mask=tile)
        if MOMENT:
            tl.store(y_out + at, y if DOUBLE else y.to(tl.float32), mask=tile)
    return x, y


@triton.jit
def read_sums(
    sums, moments, at, age, rate, out, reads,
    WIDTH: tl.constexpr, SHARE: tl.constexpr, DOUBLE: tl.constexpr, COLUMNS: tl.constexpr, ENTRIES: tl.constexpr,
):  # fmt: skip
    """Rows of running sums, or of moments, decayed since."""
    k = tl.program_id(0).to(tl.int64) * ENTRIES + tl.arange(0, ENTRIES)
    c = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    here = k < reads
    tile = here[:, None] if WIDTH % COLUMNS == 0 else here[:, None] & (c < WIDTH)[None, :]
    i = tl.load(at + k, mask=here, other=0).to(tl.int64)
    row = i[:, None] * WIDTH + c[None, :]
    x = tl.load(sums + row, mask=tile, other=0)
    if rate is not None:
        old = tl.load(age + k, mask=here, other=0)[:, None]
        minus = -tl.load(rate + c // SHARE, mask=c < WIDTH, other=0)[None, :]
        x = x.to(tl.float64)
        if moments is not None:
            x = tl.load(moments + row, mask=tile, other=0).to(tl.float64) + old * x
        x *= tl.exp(old * minus)
    tl.store(out + k[:, None] * WIDTH + c[None, :], x if DOUBLE else x.to(tl.float32), mask=tile, cache_modifier=".cs")
