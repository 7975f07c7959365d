"""The two propagations in plain tensor operations, for torch.compile and torch.export to trace.

An exported program then holds nothing of ours, and runs wherever torch does.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from censnet.ops.incidence import Incidence
from censnet.ops.normalization import DegreePower, scale_of, scale_rows

Sum = Callable[[Tensor, Incidence], Tensor]


def _gather(x: Tensor, incidence: Incidence) -> Tensor:
    first, second = incidence.ends
    return x[first] + torch.where((first == second).unsqueeze(1), 0, x[second])


def _scatter(z: Tensor, incidence: Incidence) -> Tensor:
    first, second = incidence.ends
    out = z.new_zeros(incidence.num_nodes, z.shape[1]).index_add(0, first, z)
    return out.index_add(0, second, torch.where((first == second).unsqueeze(1), 0, z))


def traceable_nodes(
    x: Tensor, w: Tensor, incidence: Incidence, left: DegreePower, right: DegreePower, diagonal: float | None
) -> Tensor:
    """L B R x for B = T diag(w) T^t with `diagonal` on its diagonal (None: its own)."""
    before, after = (scale_of(incidence, "node", power, x.dtype) for power in (right, left))
    return _product(x, w, incidence, _gather, _scatter, before, after, diagonal)


def traceable_edges(
    z: Tensor, u: Tensor, incidence: Incidence, left: DegreePower, right: DegreePower, diagonal: float | None
) -> Tensor:
    """L B R z for B = T^t diag(u) T with `diagonal` on its diagonal (None: its own)."""
    before, after = (scale_of(incidence, "edge", power, z.dtype) for power in (right, left))
    return _product(z, u, incidence, _scatter, _gather, before, after, diagonal)


def _product(
    x: Tensor,
    w: Tensor,
    incidence: Incidence,
    there: Sum,
    back: Sum,
    before: Tensor | None,
    after: Tensor | None,
    diagonal: float | None,
) -> Tensor:
    y = scale_rows(x, before)
    out = back(scale_rows(there(y, incidence), w), incidence)
    if diagonal is not None:
        out = out + scale_rows(y, diagonal - back(w, incidence))
    return scale_rows(out, after)
