"""The two propagations of CensNet, exactly, in O(E d): see `NodeLayer` and `EdgeLayer` for the identities used.

Both are S = L B R with B symmetric and L, R diagonal powers of the degrees, so the gradient of the features is the same
product with L and R exchanged, and both directions are the same code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from censnet.ops import fused
from censnet.ops.checks import check_floating, check_same_device, check_same_dtype, check_shape
from censnet.ops.incidence import Incidence
from censnet.ops.sums import add_pieces, sum_bags, sum_pairs

Normalization = Literal["symmetric", "row"]
SelfWeight = Literal["incident", "one"] | float

BLOCK = 16384  # edges whose dot products are taken at once on a CPU: two tables of this many rows stay in its cache


@dataclass(frozen=True)
class Power:
    """(degree + more) ** exponent: one of the two diagonal factors of a propagation."""

    exponent: float
    more: int = 0


FACTORS = {"symmetric": (Power(-0.5), Power(-0.5)), "row": (Power(-1.0), Power(0.0))}


def propagate_nodes(
    nodes: Tensor,
    edge_weight: Tensor,
    incidence: Incidence,
    self_weight: SelfWeight = "incident",
    normalization: Normalization = "symmetric",
) -> Tensor:
    """(T diag(w) T^t * A~_v) x in O(E d). See `NodeLayer` for the identity used.

    Args:
        nodes: x.
        edge_weight: w, one number for each edge, or one for each edge and head: then each head weighs its own share of
            the channels, in order.
        incidence: T.
        self_weight: what stands on the diagonal of T diag(w) T^t: "incident" as printed (the sum of the incident
            weights), "one", or any number.
        normalization: A~_v = D^-1/2 (A + I) D^-1/2 ("symmetric") or D^-1 (A + I) ("row").

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
    left, right = _factors(normalization)
    return _apply(_PropagateNodes, _plain_nodes, nodes, weight, incidence, left, right, _diagonal(self_weight))


def propagate_edges(
    edges: Tensor,
    node_weight: Tensor,
    incidence: Incidence,
    self_weight: SelfWeight = "incident",
    normalization: Normalization = "symmetric",
) -> Tensor:
    """(T^t diag(u) T * A~_e) z in O(E d), without the line graph. See `EdgeLayer` for the identity used.

    Args:
        edges: z.
        node_weight: u, one number for each node, or one for each node and head.
        incidence: T.
        self_weight: what stands on the diagonal of T^t diag(u) T: "incident" as printed (the sum over the edge's ends),
            "one", or any number.
        normalization: A~_e = D^-1/2 (A + I) D^-1/2 ("symmetric") or D^-1 (A + I) ("row").

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
    left, right = _factors(normalization)
    return edge_product(edges, weight, incidence, left, right, _diagonal(self_weight))


def edge_product(
    edges: Tensor, weight: Tensor, incidence: Incidence, left: Power, right: Power, diagonal: float | None
) -> Tensor:
    """L B R z, where B is T^t diag(u) T with `diagonal` on its diagonal (None: its own). `weight` is (N, heads)."""
    return _apply(_PropagateEdges, _plain_edges, edges, weight, incidence, left, right, diagonal)


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
    if torch.is_autocast_enabled(rows.device.type):
        weight = weight.to(rows.dtype)
    check_same_dtype(weight_name, weight, name, rows)
    check_same_device(weight_name, weight, name, rows)
    check_same_device("incidence", incidence.ends, name, rows)
    return weight


def _factors(normalization: Normalization) -> tuple[Power, Power]:
    if normalization not in FACTORS:
        raise ValueError(f"normalization is {normalization!r}, expected one of {', '.join(map(repr, FACTORS))}")
    return FACTORS[normalization]


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
    left: Power,
    right: Power,
    diagonal: float | None,
) -> Tensor:
    if torch.compiler.is_compiling():  # plain tensor operations are what a compiler and an exported program can hold
        return cast(Tensor, plain(rows, weight, incidence, left, right, diagonal))
    return cast(Tensor, function.apply(rows, weight, incidence, left, right, diagonal))  # type: ignore[no-untyped-call]


# -- the pieces -------------------------------------------------------------------------------------------------------


def scale_of(incidence: Incidence, side: Literal["node", "edge"], power: Power, dtype: torch.dtype) -> Tensor | None:
    """The factor of each node or edge, (N,) or (E,); None where it is 1."""
    if power.exponent == 0:
        return None
    degree = incidence.node_degree if side == "node" else incidence.edge_degree
    if fused.takes(incidence.ends) and dtype.itemsize < 4:
        dtype = torch.float32  # the kernels compute in it, whatever they read
    return incidence.keep((side, power, dtype), lambda: ((degree + power.more).double() ** power.exponent).to(dtype))


def _slot_weight(incidence: Incidence, power: Power, dtype: torch.dtype) -> Tensor | None:
    """The edge's factor at each entry of T in row order, 0 at the second entry of a loop."""
    return _entry_weight(incidence, "slot", power, dtype, incidence.slot_mask)


def _pair_weight(incidence: Incidence, power: Power, dtype: torch.dtype) -> Tensor | None:
    """The edge's factor at each of its two ends, 0 at the second end of a loop."""
    return _entry_weight(incidence, "pair", power, dtype, incidence.pair_mask)


def _entry_weight(
    incidence: Incidence, order: Literal["slot", "pair"], power: Power, dtype: torch.dtype, mask: Tensor | None
) -> Tensor | None:
    scale = scale_of(incidence, "edge", power, dtype)
    if scale is None:
        return mask

    def make() -> Tensor:
        each = scale[incidence.slots.edge.index] if order == "slot" else scale.repeat_interleave(2)
        return each if mask is None else each * mask

    return incidence.keep((order, power, dtype), make)


def weigh(rows: Tensor, weight: Tensor | None) -> Tensor:
    """Each row times its weight, (n,) or (n, heads); None is 1."""
    if weight is None:
        return rows
    weight = weight.to(rows.dtype)
    if weight.dim() == 1 or weight.shape[1] == 1:
        return rows * weight.reshape(-1, 1)
    return (_by_head(rows, weight.shape[1]) * weight.unsqueeze(2)).flatten(1)


def _dots(a: Tensor, b: Tensor, heads: int) -> Tensor:
    """The dot product of two rows within each head. (n, d), (n, d) -> (n, heads)."""
    if fused.takes(a) and fused.takes_heads(a.shape[1], heads):
        return fused.row_dots(a, b, heads)
    return _by_head(a * b, heads).sum(2) if heads > 1 else (a * b).sum(1, keepdim=True)


def _by_head(rows: Tensor, heads: int) -> Tensor:
    """(n, d) -> (n, heads, d / heads)."""
    return rows.reshape(rows.shape[0], heads, rows.shape[1] // heads)


# -- nodes ------------------------------------------------------------------------------------------------------------


def _node_product(y: Tensor, w: Tensor, incidence: Incidence, diagonal: float | None) -> Tensor:
    """B y for B = T diag(w) T^t with `diagonal` on its diagonal (None: its own). (N, d), (E, heads) -> (N, d)."""
    slots = incidence.slots
    if fused.takes(y) and incidence.is_loop is None:
        out = add_pieces(fused.node_product(y, w, slots.other, slots.edge.index, diagonal is None), slots.other)
        return out if diagonal is None else out.add_(y, alpha=diagonal)
    if w.shape[1] > 1:
        z = weigh(sum_pairs(y, incidence.pairs, incidence.pair_mask), w)
        out = sum_bags(z, slots.edge, incidence.slot_mask)
        return out if diagonal is None else out + weigh(y, diagonal - _around(w, incidence))
    each = torch.index_select(w.squeeze(1), 0, slots.edge.index)
    if incidence.is_loop is not None:  # a loop has no other end
        each = each * ~incidence.is_loop[slots.edge.index]
    out = sum_bags(y, slots.other, each)
    if diagonal is None:
        return out.addcmul_(_around(w, incidence), y)
    return out.add_(y, alpha=diagonal)


def _around(w: Tensor, incidence: Incidence) -> Tensor:
    """T w: the sum of the weights around each node. (E, heads) -> (N, heads)."""
    return sum_bags(w, incidence.slots.edge, incidence.slot_mask)


def _edge_dots(y: Tensor, h: Tensor, incidence: Incidence, heads: int, diagonal: float | None) -> Tensor:
    """dB/dw: for each edge i-j, (y_i + y_j) . (h_i + h_j), less y_i . h_i + y_j . h_j where the diagonal is fixed."""
    if fused.takes(y) and fused.takes_heads(y.shape[1], heads) and incidence.is_loop is None:
        out = fused.edge_dots(y, h, incidence.pairs.index, heads)
    else:
        out = y.new_empty(incidence.num_edges, heads)
        for start in range(0, incidence.num_edges, BLOCK):
            stop = min(start + BLOCK, incidence.num_edges)
            part = incidence.pairs.part(start, stop)
            mask = None if incidence.pair_mask is None else incidence.pair_mask[2 * start : 2 * stop]
            out[start:stop] = _dots(sum_pairs(y, part, mask), sum_pairs(h, part, mask), heads)
    if diagonal is None:
        return out
    return out - sum_pairs(_dots(y, h, heads), incidence.pairs, incidence.pair_mask)


class _PropagateNodes(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, w: Tensor, incidence: Incidence, left: Power, right: Power, diagonal: float | None
    ) -> Tensor:
        y = weigh(x, scale_of(incidence, "node", right, x.dtype))
        ctx.save_for_backward(y, w)
        ctx.rest = incidence, left, right, diagonal
        return weigh(_node_product(y, w, incidence, diagonal), scale_of(incidence, "node", left, x.dtype))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        y, w = ctx.saved_tensors
        incidence, left, right, diagonal = ctx.rest
        h = weigh(grad, scale_of(incidence, "node", left, y.dtype))
        grad_x = grad_w = None
        if ctx.needs_input_grad[0]:
            grad_x = weigh(_node_product(h, w, incidence, diagonal), scale_of(incidence, "node", right, y.dtype))
        if ctx.needs_input_grad[1]:
            grad_w = _edge_dots(y, h, incidence, w.shape[1], diagonal)
        return grad_x, grad_w, None, None, None, None


# -- edges ------------------------------------------------------------------------------------------------------------


def _edge_product(
    z: Tensor, u: Tensor, incidence: Incidence, left: Power, right: Power, diagonal: float | None
) -> tuple[Tensor, Tensor]:
    """L B R z for B = T^t diag(u) T with `diagonal` on its diagonal, and the sum T R z at each node."""
    total = sum_bags(z, incidence.slots.edge, _slot_weight(incidence, right, z.dtype))
    own = None
    if diagonal is not None:
        own = diagonal - sum_pairs(u, incidence.pairs, incidence.pair_mask)
        for power in (left, right):
            own = weigh(own, scale_of(incidence, "edge", power, z.dtype))
    pair_weight = _pair_weight(incidence, left, z.dtype)
    return sum_pairs(weigh(total, u), incidence.pairs, pair_weight, None if own is None else z, own), total


class _PropagateEdges(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, z: Tensor, u: Tensor, incidence: Incidence, left: Power, right: Power, diagonal: float | None
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
            grad_u = _dots(total, grad_total, heads)
            if diagonal is not None:
                own = _dots(z, grad, heads)
                for power in (left, right):
                    own = weigh(own, scale_of(incidence, "edge", power, z.dtype))
                grad_u = grad_u - _around(own, incidence)
        return grad_z, grad_u, None, None, None, None


# -- the same in plain tensor operations, for torch.compile and torch.export ----------------------------------------


def _plain_gather(x: Tensor, incidence: Incidence) -> Tensor:
    first, second = incidence.ends
    return x[first] + torch.where((first == second).unsqueeze(1), 0, x[second])


def _plain_scatter(z: Tensor, incidence: Incidence) -> Tensor:
    first, second = incidence.ends
    out = z.new_zeros(incidence.num_nodes, z.shape[1]).index_add(0, first, z)
    return out.index_add(0, second, torch.where((first == second).unsqueeze(1), 0, z))


def _plain_nodes(
    x: Tensor, w: Tensor, incidence: Incidence, left: Power, right: Power, diagonal: float | None
) -> Tensor:
    y = weigh(x, scale_of(incidence, "node", right, x.dtype))
    out = _plain_scatter(weigh(_plain_gather(y, incidence), w), incidence)
    if diagonal is not None:
        out = out + weigh(y, diagonal - _plain_scatter(w, incidence))
    return weigh(out, scale_of(incidence, "node", left, x.dtype))


def _plain_edges(
    z: Tensor, u: Tensor, incidence: Incidence, left: Power, right: Power, diagonal: float | None
) -> Tensor:
    y = weigh(z, scale_of(incidence, "edge", right, z.dtype))
    out = _plain_gather(weigh(_plain_scatter(y, incidence), u), incidence)
    if diagonal is not None:
        out = out + weigh(y, diagonal - _plain_gather(u, incidence))
    return weigh(out, scale_of(incidence, "edge", left, z.dtype))
