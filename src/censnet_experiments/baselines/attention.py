r"""Attention over the neighbors of each node and itself, as an operator :math:`x \mapsto \alpha x` in O(E d).

:math:`\alpha_{ij} = \mathrm{softmax}_j\, \mathrm{LeakyReLU}(t_i + s_j)` over the distinct neighbors j of i and over i
(Velickovic et al. 2018), for each head by itself. The heads of batched members are further heads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from censnet.ops import triton
from censnet.ops.incidence import Incidence
from censnet.ops.normalization import by_head, dots
from censnet.ops.segments import Segments, add_chunks, linear_map, sum_segments, take_rows

SLOPE = 0.2  # of LeakyReLU below 0, as published
BLOCK = 2**27  # numbers in the rows of one chunk of dot products


@dataclass(frozen=True)
class Neighbors:
    """The entries (i, j) of the adjacency matrix, each edge once in either direction, in the order of i.

    Args:
        around: for each node i the j of its entries.
        node: (n,) the i of each entry.
        mirror: (n,) index of the entry (j, i) of each entry (i, j).
        each: (n,) 0, 1, 2, ...
    """

    around: Segments
    node: Tensor
    mirror: Tensor
    each: Tensor

    def at_node(self, rows: Tensor) -> Tensor:
        """x_i at each entry (i, j). (N, d) -> (n, d)"""
        return linear_map(rows, self._take, self._sum)

    def at_other(self, rows: Tensor) -> Tensor:
        """x_j at each entry (i, j). (N, d) -> (n, d)"""
        back = replace(self.around, index=self.mirror)
        return linear_map(rows, lambda x: take_rows(x, self.around.index), lambda grad: sum_segments(grad, back))

    def sum(self, entries: Tensor) -> Tensor:
        """At each node, the sum over its entries. (n, d) -> (N, d)"""
        return linear_map(entries, self._sum, self._take)

    def _take(self, rows: Tensor) -> Tensor:
        return take_rows(rows, self.node)

    def _sum(self, entries: Tensor) -> Tensor:
        return sum_segments(entries, replace(self.around, index=self.each))


_cache: WeakKeyDictionary[Incidence, Neighbors] = WeakKeyDictionary()  # for the lifetime of the graph


def neighbors_of(incidence: Incidence) -> Neighbors:
    """The distinct neighbors of each node, without itself: parallel edges count once, self-loops not at all."""
    if incidence not in _cache:
        first, second = incidence.ends
        plain = incidence.is_first & (first != second)
        simple = incidence if bool(plain.all()) else Incidence(incidence.ends[:, plain], incidence.num_nodes)
        around, edge = simple.csr.other, simple.csr.edge.index
        node = (simple.ends.sum(0)[edge] - around.index).to(around.index.dtype)
        together = torch.argsort(edge, stable=True).view(-1, 2)  # the two entries of each edge
        mirror = torch.empty_like(node)
        mirror[together] = together.flip(1).to(node.dtype)
        _cache[incidence] = Neighbors(around, node, mirror, torch.arange(len(node), device=node.device).to(node.dtype))
    return _cache[incidence]


def attend(target: Tensor, source: Tensor, near: Neighbors) -> tuple[Tensor, Tensor]:
    """alpha at each entry, and of each node for itself. t (N, heads), s (N, heads) -> (n, heads), (N, heads)"""
    score = F.leaky_relu(near.at_node(target) + near.at_other(source), SLOPE)
    own = F.leaky_relu(target + source, SLOPE)
    with torch.no_grad():  # softmax is invariant to a shift; the maximum keeps exp in range
        index = near.node.long().unsqueeze(1).expand_as(score)
        highest = own.scatter_reduce(0, index, score, "amax")
    score, own = (score - near.at_node(highest)).exp(), (own - highest).exp()
    total = own + near.sum(score)
    return score / near.at_node(total), own / total


class _Propagate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, alpha: Tensor, own: Tensor, near: Neighbors) -> Tensor:
        ctx.save_for_backward(x, alpha, own)
        ctx.near = near
        return _product(x, alpha, own, near, near.each)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, alpha, own = ctx.saved_tensors
        near, heads, grad = ctx.near, own.shape[1], grad.contiguous()
        grad_x = _product(grad, alpha, own, near, near.mirror)
        size = max(1, BLOCK // max(x.shape[1], 1))
        parts = [
            dots(take_rows(x, j), take_rows(grad, i), heads)
            for i, j in zip(near.node.split(size), near.around.index.split(size), strict=True)
        ]
        return grad_x, torch.cat(parts), dots(x, grad, heads), None


def _product(x: Tensor, alpha: Tensor, own: Tensor, near: Neighbors, entry: Tensor) -> Tensor:
    """own_i x_i + the sum over j of alpha_ij x_j; with `entry` the mirror, of alpha_ji x_j."""
    heads = own.shape[1]
    if triton.is_available(x):
        around = near.around
        product = triton.node_product(
            x, alpha, around.index, entry, around.offset, around.chunk_segment, None, None, False
        )
        out = add_chunks(product, around)
    else:
        message = take_rows(x, near.around.index)
        by_head(message, heads).mul_(take_rows(alpha, entry).unsqueeze(2))  # in place: a third of the time on a CPU
        out = sum_segments(message, replace(near.around, index=near.each))
    by_head(out, heads).addcmul_(by_head(x, heads), own.unsqueeze(2))
    return out


def propagate(x: Tensor, alpha: Tensor, own: Tensor, near: Neighbors) -> Tensor:
    """alpha x: at each node i, own_i x_i + the sum over its neighbors j of alpha_ij x_j. (N, d) -> (N, d)"""
    return cast(Tensor, _Propagate.apply(x, alpha, own, near))  # type: ignore[no-untyped-call]
