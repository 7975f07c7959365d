r"""The quotient of a batch of graphs by the colors of its rows, so that each distinct neighborhood is computed once.

Nodes, or edges, of equal features and equal neighborhoods have equal embeddings. The 3,500 atoms of a batch of 128
drug-like molecules are 100 different ones; with their neighbors they are 850, with those of these 2,000. Colors
(Weisfeiler-Lehman) say which rows are equal before and after each layer. A layer then runs on one row of each color and
sums over the neighbors of that row. All that follows is the same to rounding, and so are the gradients of parameters:
the gradient of the row of a color is the sum of those of all its rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from censnet.ops.caching import cached
from censnet.ops.dense import step_of
from censnet.ops.incidence import Incidence
from censnet.ops.normalization import DegreePower, Normalization, dots, factors_of, scale_of, scale_rows
from censnet.ops.segments import LONGEST, Segments, chunk_segments, linear_map, offsets, ranges, sum_segments

FEWEST = 256  # nodes, below which a batch has too few equal ones
MOST = 0.5  # share of distinct features among the nodes, above which too few are equal
_ODD = -0x61C8864680B583EB  # 2^64 / golden ratio


class Colors(NamedTuple):
    """The colors of rows, numbered from 0, and a few of no row, so that `dense.py` need not pad products with them.

    Args:
        of_row: the color of each row.
        first: the first row of each color; any row for those of no row.
        size: how many rows have it.
    """

    of_row: Tensor
    first: Tensor
    size: Tensor

    def expand(self, rows: Tensor) -> Tensor:
        """The row of the color of each row. (colors, d) -> (n, d)"""
        return Reading.of(self.of_row, len(self.first)).apply(rows)

    def reading(self, rows: Tensor, each: int = 1) -> Reading:
        """Sums over the colors of so many of these rows each."""
        return Reading.of(self.of_row.index_select(0, rows), len(self.first), each)


@dataclass(frozen=True, eq=False)
class Reading:
    """Which rows of a table each row of a result sums, and the transpose, sorted when a gradient needs it.

    Args:
        index: the rows of the table, those of the first sum first.
        offset: where the rows of each sum begin, and the last ones end.
        num_rows: rows of the table.
        each: how many rows each sum has; 0 where they have different numbers.
    """

    index: Tensor
    offset: Tensor
    num_rows: int
    each: int = 0

    @classmethod
    def of(cls, index: Tensor, num_rows: int, each: int = 1) -> Reading:
        """Sums of so many rows each."""
        offset = torch.arange(0, len(index) + 1, each, dtype=torch.int32)
        return cls(index.int(), offset, num_rows, each)

    def sum(self, table: Tensor, weight: Tensor | None = None) -> Tensor:
        """Sums of rows, each times its weight, (len(index),). No gradient."""
        return sum_segments(table, Segments(self.index, self.offset), weight)

    def back(self, grad: Tensor, weight: Tensor | None = None) -> Tensor:
        """The transpose of `sum`: the gradient of the table."""
        segments, order = self._transpose
        return sum_segments(grad, segments, None if weight is None else weight.index_select(0, order))

    def apply(self, table: Tensor, weight: Tensor | None = None) -> Tensor:
        """`sum` with its gradient."""
        return linear_map(table, lambda x: self.sum(x, weight), lambda grad: self.back(grad, weight))

    @cached
    def _transpose(self) -> tuple[Segments, Tensor]:
        """For each row of the table, the sums that read it, and the position in `index` of each."""
        order, lengths = _stable_order(self.index, self.num_rows), torch.bincount(self.index, minlength=self.num_rows)
        chunk_order, offset, chunks = None, offsets(lengths), None
        if int(lengths.max()) > LONGEST:
            chunk_order, offset, chunks = chunk_segments(lengths)
        order = order if chunk_order is None else order.index_select(0, chunk_order)
        reads = order if self.each else torch.repeat_interleave(self.offset.diff()).index_select(0, order)
        sums = reads // self.each if self.each > 1 else reads
        return Segments(sums.int(), offset.int(), chunks), order


@dataclass(frozen=True, eq=False)
class Around:
    """The entries of T at the first node of each color: the edges there, and the node at the other end of each."""

    edge: Tensor
    other: Tensor
    offset: Tensor

    @classmethod
    def of(cls, incidence: Incidence, nodes: Colors) -> Around:
        csr, lengths = incidence.csr, incidence.edge_count.index_select(0, nodes.first)
        entries = ranges(csr.edge.offset.index_select(0, nodes.first), lengths)
        edge, other = (segments.index.index_select(0, entries) for segments in (csr.edge, csr.other))
        return cls(edge, other, offsets(lengths).int())

    def each(self, values: Tensor) -> Tensor:
        """The value of each color at its entries."""
        return values.repeat_interleave(self.offset.diff())


@dataclass(frozen=True, eq=False)
class Step:
    """A layer on colors: of the nodes and edges that it reads, and of the side that it updates, before and after it."""

    incidence: Incidence
    around: Around  # the first node of each color after a node layer, or before an edge layer
    nodes: Colors
    edges: Colors
    before: Colors
    after: Colors

    @cached
    def parent(self) -> Reading:
        """For each color after the layer, its color before."""
        return self.before.reading(self.after.first)

    def carry(self, rows: Tensor) -> Tensor:
        """The row of each color before the layer, for those after it."""
        return self.parent.apply(rows)

    def propagate(self, rows: Tensor, gates: Tensor, normalization: Normalization) -> Tensor:
        """`propagate_nodes` or `propagate_edges` with 0 on the diagonal. -> a row of each color after the layer"""
        raise NotImplementedError

    def _scale(self, side: str, power: DegreePower, rows: Tensor, dtype: torch.dtype) -> Tensor | None:
        scale = scale_of(self.incidence, "node" if side == "node" else "edge", power, dtype)
        return None if scale is None else scale.index_select(0, rows)


class NodeStep(Step):
    """A node layer on colors."""

    @cached
    def crossed(self) -> Reading:
        """The color of the node at the other end, of the first and of the second end of an edge of each color."""
        return self.nodes.reading(self.incidence.ends.flip(0).index_select(1, self.edges.first).reshape(-1))

    @cached
    def messages(self) -> Reading:
        """For each color after the layer, the messages, numbered as in `crossed`, to its first node."""
        count = len(self.edges.first)
        edge = self.edges.of_row.index_select(0, self.around.edge)
        other = self.nodes.of_row.index_select(0, self.around.other)
        is_second = other != self.crossed.index[:count].index_select(0, edge)
        return Reading((edge + count * is_second).int(), self.around.offset, 2 * count)

    def propagate(self, rows: Tensor, gates: Tensor, normalization: Normalization) -> Tensor:
        left, right = factors_of(normalization)
        scale = self._scale("node", left, self.after.first, rows.dtype)
        on_entries = None if scale is None else self.around.each(scale)
        scale = self._scale("node", right, self.nodes.first, rows.dtype)
        on_crossed = None if scale is None else scale.index_select(0, self.crossed.index)
        return cast(Tensor, _Nodes.apply(rows, gates, self, on_crossed, on_entries))  # type: ignore[no-untyped-call]

    def mean(self, edges: Tensor) -> Tensor:
        """The mean over the edges of the first node of each color after the layer."""
        index = self.edges.of_row.index_select(0, self.around.edge)
        share = 1 / self.around.offset.diff().clamp(min=1).to(edges.dtype)
        return Reading(index, self.around.offset, len(self.edges.first)).apply(edges, self.around.each(share))


class EdgeStep(Step):
    """An edge layer on colors. Those of nodes are to tell apart nodes with edges of other colors."""

    @cached
    def ends(self) -> Reading:
        """The colors of the two ends of an edge of each color after the layer."""
        return self.nodes.reading(self.incidence.ends.index_select(1, self.after.first).t().reshape(-1), each=2)

    @cached
    def entries(self) -> Reading:
        """The edges at a node of each color."""
        index = self.edges.of_row.index_select(0, self.around.edge)
        return Reading(index, self.around.offset, len(self.edges.first))

    def propagate(self, rows: Tensor, gates: Tensor, normalization: Normalization) -> Tensor:
        left, right = factors_of(normalization)
        on_entries = self._scale("edge", right, self.around.edge, rows.dtype)
        on_ends, own = (
            None if scale is None else scale.repeat_interleave(2)
            for scale in (
                self._scale("edge", power, self.after.first, rows.dtype) for power in (left, left.times(right))
            )
        )
        return cast(Tensor, _Edges.apply(rows, gates, self, on_entries, on_ends, own))  # type: ignore[no-untyped-call]


class _Nodes(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, w: Tensor, step: NodeStep, on_crossed: Tensor | None, on_entries: Tensor | None
    ) -> Tensor:
        ctx.save_for_backward(x, w, on_crossed, on_entries)
        ctx.step = step
        return step.messages.sum(_weigh(step.crossed.sum(x, on_crossed), w), on_entries)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, w, on_crossed, on_entries = ctx.saved_tensors
        first, second = ctx.step.crossed.sum(x, on_crossed).chunk(2)
        sent = ctx.step.messages.back(grad, on_entries)
        to_first, to_second = sent.chunk(2)
        if w.shape[1] == x.shape[1]:
            grad_w = first.mul_(to_first).addcmul_(second, to_second)
        else:
            grad_w = dots(first, to_first, w.shape[1]).add_(dots(second, to_second, w.shape[1]))
        return ctx.step.crossed.back(_weigh(sent, w), on_crossed), grad_w, None, None, None


def _weigh(messages: Tensor, w: Tensor) -> Tensor:
    """Both messages of each edge times its gates, in their place."""
    heads = w.shape[1]
    messages.view(2, len(w), heads, messages.shape[1] // heads).mul_(w.unsqueeze(2))
    return messages


class _Edges(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, z: Tensor, u: Tensor, step: EdgeStep, on_entries: Tensor | None, on_ends: Tensor | None, own: Tensor
    ) -> Tensor:
        total = step.entries.sum(z, on_entries)
        out = step.ends.sum(scale_rows(total, u), on_ends)
        before, weight = step.parent.sum(z), step.ends.sum(u, own)  # an edge is not its own neighbor
        ctx.save_for_backward(total, u, before, weight, on_entries, on_ends, own)
        ctx.step = step
        shape = (len(out), u.shape[1], -1)
        out.view(shape).addcmul_(before.view(shape), weight.unsqueeze(2), value=-1)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        total, u, before, weight, on_entries, on_ends, own = ctx.saved_tensors
        step, heads = ctx.step, u.shape[1]
        of_total = step.ends.back(grad, on_ends)
        grad_u = dots(total, of_total, heads).sub_(step.ends.back(dots(before, grad, heads), own))
        grad_z = step.entries.back(scale_rows(of_total, u), on_entries)
        grad_z.sub_(step.parent.back(scale_rows(grad, weight)))
        return grad_z, grad_u, None, None, None, None


@dataclass(frozen=True, eq=False)
class Quotient:
    """The colors of a batch before the first layer, and the layers on colors.

    Args:
        nodes, edges: colors of features; those of edges with their two nodes.
        incidence: of the batch.
        letters: N for a layer of nodes, E for one of edges: in turns, N first.
    """

    nodes: Colors
    edges: Colors
    incidence: Incidence
    letters: str

    @cached
    def ends(self) -> Reading:
        """The colors of the two ends of an edge of each color."""
        return self.nodes.reading(self.incidence.ends.index_select(1, self.edges.first).t().reshape(-1), each=2)

    def gather(self, nodes: Tensor) -> Tensor:
        """On an edge of each color, the sum over its two ends."""
        return self.ends.apply(nodes)

    def steps(self) -> Iterator[Step]:
        """The layers, in order."""
        incidence, nodes, edges = self.incidence, self.nodes, self.edges
        csr, random = incidence.csr, _random(max(incidence.num_nodes, incidence.num_edges))
        around = None
        for letter in self.letters:
            if letter == "N":
                sent = random[1].index_select(0, edges.of_row.index_select(0, csr.edge.index))
                sent *= random[2].index_select(0, nodes.of_row.index_select(0, csr.other.index))
                sums = sent.new_zeros(len(sent) + 1)
                torch.cumsum(sent, 0, out=sums[1:])
                after = _colors(sums.index_select(0, csr.edge.offset).diff() + random[0].index_select(0, nodes.of_row))
                around = Around.of(incidence, after)
                yield NodeStep(incidence, around, nodes, edges, nodes, after)
                nodes = after
            else:
                assert around is not None
                after = _colors(_of_edges(incidence, nodes, edges, random))
                yield EdgeStep(incidence, around, nodes, edges, edges, after)
                edges = after


def find_quotient(nodes: Tensor, edges: Tensor, incidence: Incidence, letters: str) -> Quotient | None:
    """The quotient of a batch on a CPU, for layers of these letters; None where too few of its nodes are equal."""
    if incidence.num_nodes < FEWEST or incidence.num_edges == 0 or incidence.is_loop is not None:
        return None
    if incidence.csr.edge.chunks is not None:
        return None
    same_nodes = _same_features(nodes)
    if same_nodes is None or len(same_nodes.first) > MOST * incidence.num_nodes:
        return None
    same_edges = _same_features(edges)
    if same_edges is None:
        return None
    random = _random(max(incidence.num_nodes, incidence.num_edges))
    of_nodes = _colors(random[0].index_select(0, same_nodes.of_row) + incidence.node_degree * _ODD)
    key = _of_edges(incidence, of_nodes, same_edges, random) + incidence.edge_degree * _ODD
    return Quotient(of_nodes, _colors(key), incidence, letters)


def _of_edges(incidence: Incidence, nodes: Colors, edges: Colors, random: Tensor) -> Tensor:
    """A number for each edge by its color and the colors of its two ends."""
    at_ends = random[1].index_select(0, nodes.of_row)
    first, second = (at_ends.index_select(0, end) for end in incidence.ends)
    return random[0].index_select(0, edges.of_row) + first + second


def _colors(key: Tensor) -> Colors:
    """Rows of one key have one color."""
    ordered, order = key.sort(stable=True)
    new = torch.ones_like(ordered, dtype=torch.bool)
    torch.ne(ordered[1:], ordered[:-1], out=new[1:])
    start = new.nonzero().squeeze(1)
    of_row = torch.empty(len(key), dtype=torch.int32)
    of_row[order] = new.cumsum(0, dtype=torch.int32) - 1
    start = F.pad(start, (0, -len(start) % step_of(len(start))), value=len(key))
    size = torch.diff(start, append=start.new_full((1,), len(key)))
    return Colors(of_row, order.index_select(0, start.clamp(max=len(key) - 1)), size)


def _stable_order(index: Tensor, count: int) -> Tensor:
    """`torch.argsort(index, stable=True)` of numbers below a count; of 16 bits by numpy, which is ten times faster."""
    if count > 2**16:
        return torch.argsort(index, stable=True)
    return torch.from_numpy(index.numpy().astype(np.uint16).argsort(kind="stable"))


def _same_features(rows: Tensor) -> Colors | None:
    """Rows of equal features, which are compared; None if the numbers by which they are found are not different."""
    weights = torch.rand(rows.shape[1], dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    found = _colors((rows.double() @ weights).view(torch.int64))
    same = rows.index_select(0, found.first).index_select(0, found.of_row)
    return found if torch.equal(same, rows) else None


def _random(count: int) -> Tensor:
    """Random 64-bit integers, always the same. Their sums and products are different for different colors. (3, count)

    For two multisets of colors they are equal with a probability of about 2^-64.
    """
    global _table
    if _table.shape[1] < count:
        size = 1 << (count - 1).bit_length()
        _table = torch.empty(size, 3, dtype=torch.int64).random_(
            -(2**63), None, generator=torch.Generator().manual_seed(0)
        )
        _table = _table.t().contiguous()
    return _table


_table = torch.empty(3, 0, dtype=torch.int64)
