"""The two propagations of CensNet, exactly, in O(E d): see `NodeLayer` and `EdgeLayer` for the identities used.

Both are S = L B R with B symmetric and L, R diagonal powers of the degrees, so the gradient of the features is the same
product with L and R exchanged, and both directions are the same code.
"""

from __future__ import annotations

from typing import Any, Literal, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from censnet.ops import triton
from censnet.ops.checks import check_floating, check_same_device, check_same_dtype, check_shape
from censnet.ops.incidence import Incidence
from censnet.ops.messages import BLOCK, make_messages, message_dots, sum_messages
from censnet.ops.normalization import (
    DegreePower,
    Normalization,
    crossing_weight,
    csr_weight,
    dots,
    end_weight,
    factors_of,
    minus_weights,
    pair_weight,
    scale_of,
    scale_rows,
)
from censnet.ops.segments import add_chunks, sum_pairs, sum_segments, take_rows
from censnet.ops.traceable import traceable_edges, traceable_nodes

SelfWeight = Literal["incident", "one"] | float


def propagate_nodes(
    nodes: Tensor,
    edge_weight: Tensor,
    incidence: Incidence,
    self_weight: SelfWeight = "incident",
    normalization: Normalization = "symmetric",
) -> Tensor:
    r"""Node propagation in :math:`O(E d)`. See `censnet.nn.NodeLayer` for the identity used.

    .. math::
        (T \operatorname{diag}(w)\, T^\top \odot \tilde A_v)\, x

    Args:
        nodes: the features x.
        edge_weight: w, one number for each edge, or one for each edge and head: then each head weighs its own share of
            the channels, in order.
        incidence: the matrix T.
        self_weight: the diagonal of :math:`T \operatorname{diag}(w)\, T^\top`: "incident" as printed (the sum of the
            incident weights), "one", or any number.
        normalization: :math:`\tilde A_v = D^{-1/2} (A + I) D^{-1/2}` ("symmetric") or :math:`D^{-1} (A + I)` ("row").

    Shape:
        nodes (N, d), edge_weight (E,) or (E, heads) with heads dividing d -> (N, d).

    Example:
        >>> path = Incidence(torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
        >>> propagate_nodes(torch.ones(3, 1), torch.ones(2), path, normalization="row").squeeze(1)
        tensor([1.0000, 1.3333, 1.0000])
    """
    weight = check_weight(
        "nodes", nodes, incidence.num_nodes, "edge_weight", edge_weight, incidence.num_edges, incidence
    )
    left, right = factors_of(normalization)
    return _apply(_PropagateNodes, traceable_nodes, nodes, weight, incidence, left, right, _diagonal(self_weight))


def propagate_edges(
    edges: Tensor,
    node_weight: Tensor,
    incidence: Incidence,
    self_weight: SelfWeight = "incident",
    normalization: Normalization = "symmetric",
) -> Tensor:
    r"""Edge propagation in :math:`O(E d)`, without the line graph. See `censnet.nn.EdgeLayer` for the identity used.

    .. math::
        (T^\top \operatorname{diag}(u)\, T \odot \tilde A_e)\, z

    Args:
        edges: the features z.
        node_weight: u, one number for each node, or one for each node and head.
        incidence: the matrix T.
        self_weight: the diagonal of :math:`T^\top \operatorname{diag}(u)\, T`: "incident" as printed (the sum over the
            edge's ends), "one", or any number.
        normalization: :math:`\tilde A_e = D^{-1/2} (A + I) D^{-1/2}` ("symmetric") or :math:`D^{-1} (A + I)` ("row").

    Shape:
        edges (E, d), node_weight (N,) or (N, heads) with heads dividing d -> (E, d).

    Example:
        >>> path = Incidence(torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
        >>> propagate_edges(torch.ones(2, 1), torch.ones(3), path).squeeze(1)
        tensor([1.5000, 1.5000])
    """
    weight = check_weight(
        "edges", edges, incidence.num_edges, "node_weight", node_weight, incidence.num_nodes, incidence
    )
    left, right = factors_of(normalization)
    return edge_product(edges, weight, incidence, left, right, _diagonal(self_weight))


def edge_product(
    edges: Tensor, weight: Tensor, incidence: Incidence, left: DegreePower, right: DegreePower, diagonal: float | None
) -> Tensor:
    """L B R z, where B is T^t diag(u) T with `diagonal` on its diagonal (None: its own). `weight` is (N, heads)."""
    return _apply(_PropagateEdges, traceable_edges, edges, weight, incidence, left, right, diagonal)


# -- at the door ------------------------------------------------------------------------------------------------------


def check_weight(
    name: str, rows: Tensor, num_rows: int, weight_name: str, weight: Tensor, num_weights: int, incidence: Incidence
) -> Tensor:
    """Raise what is wrong with the arguments, and give the weight as (n, heads)."""
    check_shape(name, rows, (num_rows, None), f"({'N' if name == 'nodes' else 'E'}, d)")
    check_floating(name, rows)
    letter = "E" if name == "nodes" else "N"
    if weight.dim() == 1:
        check_shape(weight_name, weight, (num_weights,), f"({letter},) or ({letter}, heads)")
        weight = weight.unsqueeze(1)
    check_shape(weight_name, weight, (num_weights, None), f"({letter},) or ({letter}, heads)")
    heads = weight.shape[1]
    if heads == 0 or rows.shape[1] % heads:
        raise ValueError(
            f"{weight_name} has {heads} heads and {name} {rows.shape[1]} channels, "
            "expected heads that divide the channels: each head weighs its own share"
        )
    check_same_device(weight_name, weight, name, rows)
    check_same_device("incidence", incidence.ends, name, rows)
    if weight.dtype != rows.dtype and torch.is_autocast_enabled(rows.device.type):
        weight = weight.to(rows.dtype)
    check_same_dtype(weight_name, weight, name, rows)
    return weight


def _diagonal(self_weight: SelfWeight) -> float | None:
    """The number on the diagonal, or None for what the product itself has there."""
    if self_weight == "incident":
        return None
    if self_weight == "one":
        return 1.0
    if isinstance(self_weight, int | float):
        return float(self_weight)
    raise ValueError(f"self_weight is {self_weight!r}, expected 'incident', 'one' or a number")


def _apply(
    function: type[torch.autograd.Function],
    plain: Any,
    rows: Tensor,
    weight: Tensor,
    incidence: Incidence,
    left: DegreePower,
    right: DegreePower,
    diagonal: float | None,
) -> Tensor:
    if torch.compiler.is_compiling():  # plain tensor operations are what a compiler and an exported program can hold
        return cast(Tensor, plain(rows, weight, incidence, left, right, diagonal))
    return cast(Tensor, function.apply(rows, weight, incidence, left, right, diagonal))  # type: ignore[no-untyped-call]


# -- nodes ------------------------------------------------------------------------------------------------------------


def _node_product(
    x: Tensor,
    w: Tensor,
    around: Tensor | None,
    incidence: Incidence,
    left: DegreePower,
    right: DegreePower,
    diagonal: float | None,
    messages: Tensor | None = None,
) -> Tensor:
    """L B R x for B = T diag(w) T^t with `diagonal` on its diagonal (None: its own). (N, d), (E, heads) -> (N, d).

    At each node, over its edges and the other end of each: sum w_e (y_other + y_self), or without y_self, for y = R x.
    `w` is weighed for loops, and `around` is T w. Messages of x that are known already are lost.
    """
    csr = incidence.csr
    both = left.times(right)
    if triton.is_available(x):
        before, after = (scale_of(incidence, "node", power, x.dtype) for power in (right, left))
        arguments = csr.other.index, csr.edge.index, csr.other.offset, csr.other.chunk_segment
        out = triton.node_product(x, w, *arguments, after, before, diagonal is None)
        out = incidence.total(add_chunks(out, csr.other))
        return out.add_(scale_rows(x, scale_of(incidence, "node", both, x.dtype)), alpha=diagonal) if diagonal else out
    heads = w.shape[1]
    if not _by_messages(x, heads):  # the factors go where the weights are: fewer numbers than the rows have
        each = torch.index_select(w.t().contiguous(), 1, csr.edge.index)
        each.mul_(crossing_weight(incidence, left, right, x.dtype))
        shares = [sum_segments(*share) for share in zip(x.chunk(heads, dim=1), heads * [csr.other], each, strict=True)]
        out = shares[0] if heads == 1 else torch.cat(shares, dim=1)
    else:
        messages = make_messages(x, incidence, right) if messages is None else messages
        out = sum_messages(messages, w, incidence, left)
    out = incidence.total(out)
    if diagonal is None:
        own = scale_rows(cast(Tensor, around), scale_of(incidence, "node", both, x.dtype))
    elif diagonal:
        own = diagonal * cast(Tensor, scale_of(incidence, "node", both, x.dtype)).unsqueeze(1)
    else:
        return out
    return out.addcmul_(x, own) if own.shape[1] == 1 else out.add_(scale_rows(x, own))


def _by_messages(x: Tensor, heads: int) -> bool:
    """Whether there are about as many weights as channels, which then weigh messages one by one."""
    return heads > 1 and x.shape[1] < 8 * heads and not triton.is_available(x)


def _edge_dots(
    x: Tensor,
    g: Tensor,
    incidence: Incidence,
    heads: int,
    left: DegreePower,
    right: DegreePower,
    diagonal: float | None,
) -> Tensor:
    """dB/dw for y = R x and h = L g: at each edge i-j, y_i . h_j + y_j . h_i, and y_i . h_i + y_j . h_j if B's own."""
    if triton.is_available(x):
        on_x, on_g = (scale_of(incidence, "node", power, x.dtype) for power in (right, left))
        out = triton.edge_dots(x, g, incidence.pairs.index, on_g, on_x, heads, diagonal is None)
        return _scale_loops(out, incidence, diagonal)
    blocks = [x.new_empty(0, heads)]
    at_x, at_g = end_weight(incidence, right, x.dtype), end_weight(incidence, left, x.dtype)
    for start in range(0, incidence.num_edges, BLOCK):
        stop = min(start + BLOCK, incidence.num_edges)
        part, both = incidence.pairs.part(start, stop), slice(2 * start, 2 * stop)
        on_x, on_g = (None if each is None else each[both] for each in (at_x, at_g))
        if diagonal is None:
            blocks.append(dots(sum_pairs(x, part, on_x), sum_pairs(g, part, on_g), heads))
        else:
            crossed = []
            for i, j in ((0, 1), (1, 0)):
                one = dots(take_rows(x, part.index[i::2]), take_rows(g, part.index[j::2]), heads)
                for scale, end in ((on_x, i), (on_g, j)):
                    one = scale_rows(one, None if scale is None else scale[end::2])
                crossed.append(one)
            blocks.append(crossed[0] + crossed[1])
    out = blocks[1] if len(blocks) == 2 else torch.cat(blocks)
    return _scale_loops(out, incidence, diagonal)


def _scale_loops(w: Tensor, incidence: Incidence, diagonal: float | None) -> Tensor:
    """A loop has both of its ends at i, and so w (y_i + y_i) is counted twice there; B has w y_i, on the diagonal."""
    if incidence.is_loop is None:
        return w
    return torch.where(incidence.is_loop.unsqueeze(1), w * (0.25 if diagonal is None else 0), w)


class _PropagateNodes(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        w: Tensor,
        incidence: Incidence,
        left: DegreePower,
        right: DegreePower,
        diagonal: float | None,
    ) -> Tensor:
        ends_weighed = _scale_loops(w, incidence, diagonal)
        around = None
        if diagonal is None and not triton.is_available(x):
            around = incidence.total(sum_segments(ends_weighed, incidence.csr.edge))
        ctx.save_for_backward(x, ends_weighed, around)
        ctx.rest = incidence, left, right, diagonal
        return _node_product(x, ends_weighed, around, incidence, left, right, diagonal)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, w, around = ctx.saved_tensors
        incidence, left, right, diagonal = ctx.rest
        grad, heads = grad.contiguous(), w.shape[1]
        grad_x = grad_w = messages = None
        if _by_messages(x, heads) and diagonal is not None:  # the same ones are for both gradients
            messages = make_messages(grad, incidence, left)
        if ctx.needs_input_grad[1] and messages is not None:
            grad_w = _scale_loops(message_dots(x, messages, incidence, heads, right), incidence, diagonal)
        elif ctx.needs_input_grad[1]:
            grad_w = _edge_dots(x, grad, incidence, heads, left, right, diagonal)
        if ctx.needs_input_grad[0]:
            grad_x = _node_product(grad, w, around, incidence, right, left, diagonal, messages)
        return grad_x, grad_w, None, None, None, None


# -- edges ------------------------------------------------------------------------------------------------------------


def _edge_product(
    z: Tensor, u: Tensor, incidence: Incidence, left: DegreePower, right: DegreePower, diagonal: float | None
) -> tuple[Tensor, Tensor]:
    """L B R z for B = T^t diag(u) T with `diagonal` on its diagonal, and the sum T R z at each node."""
    total = incidence.total(sum_segments(z, incidence.csr.edge, csr_weight(incidence, right, z.dtype)))
    own = None
    if diagonal is not None:
        own = sum_pairs(u, incidence.pairs, minus_weights(incidence, left.times(right), z.dtype)[1])
        if diagonal:
            scale = cast(Tensor, scale_of(incidence, "edge", left.times(right), z.dtype))
            own.add_(scale.unsqueeze(1), alpha=diagonal)
    weight = pair_weight(incidence, left, z.dtype)
    return sum_pairs(scale_rows(total, u), incidence.pairs, weight, None if own is None else z, own), total


class _PropagateEdges(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        z: Tensor,
        u: Tensor,
        incidence: Incidence,
        left: DegreePower,
        right: DegreePower,
        diagonal: float | None,
    ) -> Tensor:
        out, total = _edge_product(z, u, incidence, left, right, diagonal)
        ctx.save_for_backward(total, u, None if diagonal is None else z)
        ctx.rest = incidence, left, right, diagonal
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        total, u, z = ctx.saved_tensors
        incidence, left, right, diagonal = ctx.rest
        heads = u.shape[1]
        grad_z, grad_total = _edge_product(grad, u, incidence, right, left, diagonal)
        grad_u = None
        if ctx.needs_input_grad[1]:
            grad_u = dots(total, grad_total, heads)
            if diagonal is not None:
                own, weight = dots(z, grad, heads), minus_weights(incidence, left.times(right), z.dtype)[0]
                grad_u.add_(sum_segments(own, incidence.csr.edge, weight))
        return grad_z, grad_u, None, None, None, None
