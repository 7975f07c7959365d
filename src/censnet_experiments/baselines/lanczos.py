"""The Lanczos iteration: a symmetric matrix as Q T Q^t with a small tridiagonal T, from products with it alone."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def tridiagonalize(multiply: Callable[[Tensor], Tensor], start: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    r"""K steps from a start vector: :math:`Q^\top S Q = T` with orthonormal columns Q, the first along the start.

    .. math::
        \beta_{k} q_{k+1} = S q_k - \alpha_k q_k - \beta_{k-1} q_{k-1}, \qquad \alpha_k = q_k^\top S q_k

    Each new column is made orthogonal to all before it, twice, against rounding. Where the space ends before K steps,
    the rest of Q and T is 0. Nothing here branches on a value, so it can be differentiated and run under `vmap`.

    Args:
        multiply: x -> S x for a symmetric S. (N,) -> (N,)
        start: any vector but 0. (N,)
        steps: K.

    Shape:
        Q (N, K), T (K, K).

    Example:
        >>> S = torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.float64)
        >>> Q, T = tridiagonalize(lambda x: S @ x, torch.tensor([1.0, 0.0], dtype=torch.float64), 2)
        >>> torch.allclose(Q @ T @ Q.t(), S)
        True
    """
    if steps < 1:
        raise ValueError(f"steps is {steps}, expected at least 1")
    floor = (64 * torch.finfo(start.dtype).eps) ** 2
    columns, diagonal, beside = [start / start.norm()], [], []
    for step in range(steps):
        moved = multiply(columns[-1])
        diagonal.append((moved * columns[-1]).sum())
        if step == steps - 1:
            break
        Q = torch.stack(columns, dim=1)
        rest = moved
        for _ in range(2):
            rest = rest - Q @ (Q.t() @ rest)
        square = (rest * rest).sum()
        goes_on = square > floor
        length = torch.where(goes_on, square, 1).sqrt()  # no root of 0, whose slope is infinite
        beside.append(torch.where(goes_on, length, 0))
        columns.append(torch.where(goes_on, rest / length, 0))
    T = torch.diag(torch.stack(diagonal))
    if beside:
        between = torch.stack(beside)
        T = T + torch.diag(between, 1) + torch.diag(between, -1)
    return torch.stack(columns, dim=1), T


def ritz(Q: Tensor, T: Tensor) -> tuple[Tensor, Tensor]:
    """The Ritz values, rising, and vectors: T = B diag(r) B^t gives S ~ V diag(r) V^t with V = Q B. (K,), (N, K)"""
    values, B = torch.linalg.eigh(T)
    return values, Q @ B


def start_vector(num_nodes: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """A vector at random, the same for every run on graphs of this size."""
    return torch.randn(num_nodes, dtype=dtype, generator=torch.Generator().manual_seed(0))
