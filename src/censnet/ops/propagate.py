"""The two propagations of CensNet, exactly, in O(E d): see `NodeLayer` and `EdgeLayer` for the identities used.

Both are S = L B R with B symmetric and L, R diagonal powers of the degrees, so the gradient of the features is the same
product with L and R exchanged, and both directions are the same code.
"""

from __future__ import annotations

from typing import Any, Literal, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from censnet.ops import fused
from censnet.ops.checks import check_floating, check_same_device, check_same_dtype, check_shape
from censnet.ops.factors import Normalization, Power, dots, factors_of, pair_weight, scale_of, slot_weight, weigh
from censnet.ops.incidence import Incidence
from censnet.ops.plain import plain_edges, plain_nodes
from censnet.ops.sums import Bags, add_pieces, sum_bags, sum_pairs

SelfWeight = Literal["incident", "one"] | float

BLOCK = 16384  # edges whose dot products are taken at once on a CPU: two tables of this many rows stay in its cache


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
    left, right = factors_of(normalization)
    return _apply(_PropagateNodes, plain_nodes, nodes, weight, incidence, left, right, _diagonal(self_weight))


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
    left, right = factors_of(normalization)
    return edge_product(edges, weight, incidence, left, right, _diagonal(self_weight))


def edge_product(
    edges: Tensor, weight: Tensor, incidence: Incidence, left: Power, right: Power, diagonal: float | None
) -> Tensor:
    """L B R z, where B is T^t diag(u) T with `diagonal` on its diagonal (None: its own). `weight` is (N, heads)."""
    return _apply(_PropagateEdges, plain_edges, edges, weight, incidence, left, right, diagonal)


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
    if torch.is_autocast_enabled(rows.device.type):
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
    left: Power,
    right: Power,
    diagonal: float | None,
) -> Tensor:
    if torch.compiler.is_compiling():  # plain tensor operations are what a compiler and an exported program can hold
        return cast(Tensor, plain(rows, weight, incidence, left, right, diagonal))
    return cast(Tensor, function.apply(rows, weight, incidence, left, right, diagonal))  # type: ignore[no-untyped-call]


# -- nodes ------------------------------------------------------------------------------------------------------------


def _node_product(y: Tensor, w: Tensor, incidence: Incidence, diagonal: float | None) -> Tensor:
    """B y for B = T diag(w) T^t with `diagonal` on its diagonal (None: its own). (N, d), (E, heads) -> (N, d).

    At each node, over its edges and the other end of each: sum w_e (y_other + y_self), or without y_self.
    """
    w = _weigh_loops(w, incidence, diagonal)
    slots = incidence.slots
    if fused.takes(y):
        out = add_pieces(fused.node_product(y, w, slots.other, slots.edge.index, diagonal is None), slots.other)
        return out if diagonal is None else out.add_(y, alpha=diagonal)
    if w.shape[1] == 1:
        out = sum_bags(y, slots.other, torch.index_select(w.squeeze(1), 0, slots.edge.index))
    else:  # what passes each edge towards its first and towards its second end
        message = torch.stack([weigh(_rows_at(y, end), w) for end in incidence.ends.flip(0)])
        out = sum_bags(message.flatten(0, 1), incidence.entries)
    if diagonal is not None:
        return out.add_(y, alpha=diagonal)
    return out.add_(weigh(y, sum_bags(w, slots.edge)))


def _edge_dots(y: Tensor, h: Tensor, incidence: Incidence, heads: int, diagonal: float | None) -> Tensor:
    """dB/dw: for each edge i-j, y_i . h_j + y_j . h_i, and y_i . h_i + y_j . h_j too if the diagonal is B's own."""
    if fused.takes(y) and fused.takes_heads(y.shape[1], heads):
        out = fused.edge_dots(y, h, incidence.pairs.index, heads, diagonal is None)
    else:
        out = y.new_empty(incidence.num_edges, heads)
        for start in range(0, incidence.num_edges, BLOCK):
            stop = min(start + BLOCK, incidence.num_edges)
            if diagonal is None:
                part = incidence.pairs.part(start, stop)
                out[start:stop] = dots(sum_pairs(y, part), sum_pairs(h, part), heads)
            else:
                first, second = incidence.ends[:, start:stop]
                out[start:stop] = dots(_rows_at(y, first), _rows_at(h, second), heads)
                out[start:stop] += dots(_rows_at(y, second), _rows_at(h, first), heads)
    return _weigh_loops(out, incidence, diagonal)


def _weigh_loops(w: Tensor, incidence: Incidence, diagonal: float | None) -> Tensor:
    """A loop has both of its ends at i, and so w (y_i + y_i) is counted twice there; B has w y_i, on the diagonal."""
    if incidence.is_loop is None:
        return w
    return torch.where(incidence.is_loop.unsqueeze(1), w * (0.25 if diagonal is None else 0), w)


def _rows_at(table: Tensor, index: Tensor) -> Tensor:
    """table[index], as bags of one: several times faster than indexing on a CPU."""
    return sum_bags(table, Bags(index, torch.arange(len(index) + 1, device=index.device)))


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
    total = sum_bags(z, incidence.slots.edge, slot_weight(incidence, right, z.dtype))
    own = None
    if diagonal is not None:
        own = diagonal - sum_pairs(u, incidence.pairs, incidence.pair_mask)
        for power in (left, right):
            own = weigh(own, scale_of(incidence, "edge", power, z.dtype))
    weight = pair_weight(incidence, left, z.dtype)
    return sum_pairs(weigh(total, u), incidence.pairs, weight, None if own is None else z, own), total


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
            grad_u = dots(total, grad_total, heads)
            if diagonal is not None:
                own = dots(z, grad, heads)
                for power in (left, right):
                    own = weigh(own, scale_of(incidence, "edge", power, z.dtype))
                grad_u = grad_u - sum_bags(own, incidence.slots.edge, incidence.slot_mask)
        return grad_z, grad_u, None, None, None, None
