"""The propagations of the directed layers, in O(E d): see `censnet.nn.directed` for the identities used.

Both are linear in the rows that are propagated, so that their gradients are sums over the same segments.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from censnet.ops import triton
from censnet.ops.incidence import Incidence
from censnet.ops.normalization import by_head, dots, scale_rows
from censnet.ops.segments import add_chunks, sum_pairs, sum_segments, take_rows

End = Literal[0, 1]  # of an edge: its start, or its end
BLOCK = 2048  # edges that are computed at once on a CPU: their rows stay in its cache


def sum_along(nodes: Tensor, edge_weight: Tensor, incidence: Incidence, to: End) -> Tensor:
    r"""At the start of each edge, the sum over its ends (`to` 0), or at the end over its starts (`to` 1), weighed.

    .. math:: S \operatorname{diag}(w)\, R^\top x \quad\text{or}\quad R \operatorname{diag}(w)\, S^\top x

    Args:
        nodes: the features x.
        edge_weight: w, one number for each edge and head; each head weighs its own share of the channels, in order.
        incidence: the matrices S and R.
        to: 0 for S diag(w) R^t x, 1 for R diag(w) S^t x.

    Shape:
        nodes (N, d), edge_weight (E, heads) with heads dividing d -> (N, d).

    Example:
        >>> path = Incidence(torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
        >>> sum_along(torch.tensor([[1.0], [2.0], [4.0]]), torch.ones(2, 1), path, to=0).squeeze(1)
        tensor([2., 4., 0.])
    """
    edge_weight = edge_weight.to(nodes.dtype)
    if torch.compiler.is_compiling():
        message = scale_rows(nodes[incidence.ends[1 - to]], edge_weight)
        return torch.zeros_like(nodes).index_add(0, incidence.ends[to], message)
    return cast(Tensor, _SumAlong.apply(nodes, edge_weight, incidence, to))  # type: ignore[no-untyped-call]


def _sum_along(x: Tensor, w: Tensor, incidence: Incidence, to: End) -> Tensor:
    edges, other = incidence.end_segments[to], incidence.other_segments[to]
    if triton.is_available(x):
        out = triton.node_product(
            x, w, other.index, edges.index, edges.offset, edges.chunk_segment, None, None, incident=False
        )
        return add_chunks(out, edges)
    heads = w.shape[1]
    if heads == 1 or x.shape[1] >= 8 * heads:  # the weights go into the sums: fewer numbers than the rows have
        each = torch.index_select(w.t().contiguous(), 1, edges.index)
        shares = [sum_segments(*share) for share in zip(x.chunk(heads, dim=1), heads * [other], each, strict=True)]
        return shares[0] if heads == 1 else torch.cat(shares, dim=1)
    return sum_segments(scale_rows(take_rows(x, incidence.end_index[1 - to]), w), edges)


class _SumAlong(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor, incidence: Incidence, to: End) -> Tensor:
        ctx.save_for_backward(x, w)
        ctx.rest = incidence, to
        return incidence.total(_sum_along(x, w, incidence, to), to)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (x, w), (incidence, to) = ctx.saved_tensors, ctx.rest
        grad = grad.contiguous()
        grad_x = _sum_along(grad, w, incidence, 1 - to) if ctx.needs_input_grad[0] else None
        grad_w = None
        if ctx.needs_input_grad[1]:
            at, read = incidence.end_index[to], incidence.end_index[1 - to]
            blocks = [
                dots(take_rows(grad, at[block]), take_rows(x, read[block]), w.shape[1]) for block in _blocks(x, len(at))
            ]
            grad_w = torch.cat(blocks) if blocks else torch.zeros_like(w)
        return grad_x, grad_w, None, None


def combine_edges(edges: Tensor, weight: Tensor, table: Tensor, factor: Tensor, incidence: Incidence) -> Tensor:
    r"""On each edge from s to t, :math:`a_s + b_t + h_e W_0 - f_s \odot h_e W_1 - g_t \odot h_e W_4`.

    **What is computed.** A block of edges at a time: what the three matrices give is never there for all edges. The
    gradient computes it again.

    Args:
        edges: h.
        weight: the three matrices beside each other; of a stack, those of each member.
        table: a of all nodes, and below it b of all nodes.
        factor: f of all nodes, and below it g of all nodes; one number for each head, in order.
        incidence: of the graph.

    Shape:
        edges (E, M i), weight (i, 3 o) or (M, i, 3 o), table (2 N, M o), factor (2 N, heads) -> (E, M o).
    """
    device = edges.device.type
    dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else edges.dtype
    edges, table = edges.to(dtype), table.to(dtype)
    weight = (weight if weight.dim() == 3 else weight.unsqueeze(0)).to(dtype)
    factor = factor.to(dtype)
    if torch.compiler.is_compiling():
        return _combine_plainly(edges, weight, table, factor, incidence)
    return cast(Tensor, _CombineEdges.apply(edges, weight, table, factor, incidence))  # type: ignore[no-untyped-call]


def _combine_plainly(edges: Tensor, weight: Tensor, table: Tensor, factor: Tensor, incidence: Incidence) -> Tensor:
    by_member = by_head(edges, weight.shape[0]).transpose(0, 1)
    start, end = incidence.ends[0], incidence.ends[1] + incidence.num_nodes
    product = torch.bmm(by_member, weight).transpose(0, 1)
    own, first, second = (part.flatten(1) for part in product.chunk(3, dim=2))
    out = own + table[start] + table[end]
    return out - scale_rows(first, factor[start]) - scale_rows(second, factor[end])


class _CombineEdges(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, edges: Tensor, weight: Tensor, table: Tensor, factor: Tensor, incidence: Incidence) -> Tensor:
        ctx.save_for_backward(edges, weight, factor)
        ctx.incidence = incidence
        if triton.can_combine(edges, weight, factor):
            return triton.combine(edges, weight[0], table, factor, *incidence.end_index)
        out = sum_pairs(table, incidence.stacked_pairs)
        for block in _blocks(out, len(out)):
            each = _factors(factor, incidence, block)
            for W, (h, rows, first, second) in _by_member(weight, edges[block], out[block], *each):
                own, by_start, by_end = (h @ W).chunk(3, dim=1)
                rows.add_(own)
                for part, heads in ((by_start, first), (by_end, second)):
                    rows.addcmul_(part, _expand(heads, part), value=-1)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (edges, weight, factor), incidence = ctx.saved_tensors, ctx.incidence
        grad = grad.contiguous()
        if triton.can_combine(edges, weight, factor):
            found = triton.combine_gradient(grad, edges, weight[0], factor, *incidence.end_index)
            grad_edges, grad_weight, *grad_each = found
            return grad_edges, grad_weight.unsqueeze(0).to(weight.dtype), *_by_end(grad, grad_each, incidence), None
        grad_edges, grad_weight = torch.empty_like(edges), torch.zeros_like(weight, dtype=_exact(weight))
        grad_each = [factor.new_empty(len(edges), factor.shape[1]) for _ in range(2)]
        for block in _blocks(grad, len(grad)):
            each = _factors(factor, incidence, block)
            of_block = edges[block], grad[block], grad_edges[block], *each, *(every[block] for every in grad_each)
            for number, (W, (h, g, grad_h, first, second, *grad_heads)) in enumerate(_by_member(weight, *of_block)):
                given = torch.cat([g, _expand(first, g) * g, _expand(second, g) * g], dim=1)
                grad_weight[number] += h.t() @ given
                if first.shape[1] == 1:  # f (h W) . g = f h . (g W^t)
                    back = (g @ torch.cat([matrix.t() for matrix in W.chunk(3, dim=1)], dim=1)).chunk(3, dim=1)
                    torch.addcmul(back[0], back[1], first, value=-1, out=grad_h)
                    grad_h.addcmul_(back[2], second, value=-1)
                    products = [part.mul_(h) for part in back[1:]]
                else:
                    products = [part.mul_(g) for part in (h @ W[:, g.shape[1] :]).chunk(2, dim=1)]
                    given[:, g.shape[1] :].neg_()
                    grad_h.copy_(given @ W.t())
                for product, grad_factor in zip(products, grad_heads, strict=True):
                    grad_factor.copy_(_sum_by_head(product, grad_factor.shape[1]))
        grad_weight[:, :, weight.shape[2] // 3 :].neg_()
        return grad_edges, grad_weight.to(weight.dtype), *_by_end(grad, grad_each, incidence), None


def _by_end(grad: Tensor, grad_each: list[Tensor], incidence: Incidence) -> tuple[Tensor, Tensor]:
    """The gradients of the table and of the factors: sums over the edges that start, and end, at each node."""
    segments = incidence.end_segments
    grad_table = torch.cat([sum_segments(grad, at) for at in segments])
    sums = [sum_segments(every, at).neg_() for every, at in zip(grad_each, segments, strict=True)]
    return grad_table, torch.cat(sums)


def _factors(factor: Tensor, incidence: Incidence, block: slice) -> list[Tensor]:
    """f at the start of each edge of a block, and g at its end."""
    halves = zip(factor.chunk(2), incidence.end_index, strict=True)
    return [take_rows(half, index[block]) for half, index in halves]


def _by_member(weight: Tensor, *rows: Tensor) -> Iterator[tuple[Tensor, list[Tensor]]]:
    """The matrices of each member, and its share of each table."""
    shares = [table.chunk(len(weight), dim=1) for table in rows]
    for member, matrix in enumerate(weight):
        yield matrix, [share[member] for share in shares]


def _heads(width: int, heads: int, like: Tensor) -> Tensor:
    """1 where a channel belongs to a head: products with it are faster than sums over few channels. (heads, width)"""
    return torch.eye(heads, dtype=like.dtype, device=like.device).repeat_interleave(width // heads, dim=1)


def _expand(factor: Tensor, rows: Tensor) -> Tensor:
    """The factor of each channel, or of all. (n, heads) -> (n, d) or (n, 1)"""
    heads, width = factor.shape[1], rows.shape[1]
    return factor if heads in (1, width) else factor @ _heads(width, heads, rows)


def _sum_by_head(rows: Tensor, heads: int) -> Tensor:
    """The sum over the channels of each head. (n, d) -> (n, heads)"""
    if heads == 1:
        return rows.sum(1, keepdim=True)
    return rows if heads == rows.shape[1] else rows @ _heads(rows.shape[1], heads, rows).t()


def _exact(like: Tensor) -> torch.dtype:
    """The precision of a sum over many blocks."""
    return torch.float32 if like.dtype.itemsize < 4 else like.dtype


def _blocks(like: Tensor, count: int) -> list[slice]:
    """All rows in pieces that fit the cache of a CPU; in one piece on another device."""
    size = BLOCK if like.device.type == "cpu" else max(count, 1)
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]
