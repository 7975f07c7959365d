"""Potentials of a network, such as heads in pipes and angles in grids: a linear system of each graph and channel."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from censnet.ops.incidence import Incidence

ITERATIONS = 200  # at most
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-10}  # of the residual, as a share of the first
CHECKED = 10  # iterations from one look at the residuals to the next


def solve_potentials(conductance: Tensor, ground: Tensor, injection: Tensor, incidence: Incidence) -> Tensor:
    r"""The potentials at which what is injected into each node flows off through its edges and into the ground.

    .. math::
        \bigl( B \operatorname{diag}(w)\, B^\top + \operatorname{diag}(g) \bigr)\, \varphi = q

    B is the signed incidence matrix, 1 where an edge ends and -1 where it starts. Each channel is a system of its own.

    **What is computed.** Conjugate gradients with the diagonal as preconditioner, each graph of a batch and each
    channel by itself, until its residual is `TOLERANCE` of the first, and at most `ITERATIONS` of :math:`O(E d)`, in
    float32 at least. The matrix is symmetric, so that the gradient is one more solution with it.

    Args:
        conductance: w, positive.
        ground: g, positive: how well each node is connected to a potential of 0.
        injection: q.
        incidence: of the graph, or of a batch of graphs.

    Shape:
        conductance (E, d), ground (N, d), injection (N, d) -> (N, d).

    Example:
        >>> path = Incidence(torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
        >>> ground = torch.tensor([[1.0], [1e-9], [1e-9]])
        >>> solve_potentials(torch.ones(2, 1), ground, torch.tensor([[0.0], [0.0], [1.0]]), path).round(decimals=3)
        tensor([[1.],
                [2.],
                [3.]])
    """
    dtype = torch.promote_types(injection.dtype, torch.float32)
    rows = conductance.to(dtype), ground.to(dtype), injection.to(dtype)
    if torch.compiler.is_compiling():
        return conjugate_gradients(*rows, incidence).to(injection.dtype)
    found: Tensor = _Potentials.apply(*rows, incidence)  # type: ignore[no-untyped-call]
    return found.to(injection.dtype)


def conjugate_gradients(conductance: Tensor, ground: Tensor, injection: Tensor, incidence: Incidence) -> Tensor:
    """The solution of `solve_potentials`; its gradient, where one is asked for, is that of the iterations."""
    scale = 1 / (incidence.scatter(conductance) + ground)

    def product(first: Tensor, second: Tensor) -> Tensor:
        sums = incidence.pool(first * second, "node")
        return sums if incidence.owner is None else sums.index_select(0, incidence.owner)

    found, residual = torch.zeros_like(injection), injection
    direction = scaled = scale * residual
    size = product(residual, scaled)
    enough, tiny = TOLERANCE[size.dtype] ** 2 * size, torch.finfo(size.dtype).tiny
    for iteration in range(1, ITERATIONS + 1):
        through = incidence.divergence(conductance * incidence.difference(direction)) + ground * direction
        active = size > enough
        step = torch.where(active, size / product(direction, through).clamp(min=tiny), 0.0)
        found, residual = found + step * direction, residual - step * through
        scaled = scale * residual
        size, old = torch.where(active, product(residual, scaled), size), size
        direction = scaled + size / old.clamp(min=tiny) * direction
        if not torch.compiler.is_compiling() and iteration % CHECKED == 0 and not bool((size > enough).any()):
            break
    return found


class _Potentials(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, conductance: Tensor, ground: Tensor, injection: Tensor, incidence: Incidence) -> Tensor:
        found = conjugate_gradients(conductance, ground, injection, incidence)
        ctx.incidence = incidence
        ctx.save_for_backward(conductance, ground, found)
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> Any:
        conductance, ground, found = ctx.saved_tensors
        adjoint = conjugate_gradients(conductance, ground, grads[0].contiguous(), ctx.incidence)
        through = ctx.incidence.difference(adjoint) * ctx.incidence.difference(found)
        return -through, -adjoint * found, adjoint, None
