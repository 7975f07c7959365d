"""The two propagations in plain tensor operations, for torch.compile and torch.export to trace.

An exported program then holds nothing of ours, and runs wherever torch does.
"""

from __future__ import annotations

import torch
from torch import Tensor

from censnet.ops.incidence import Incidence
from censnet.ops.normalization import DegreePower, scale_of, scale_rows


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
    y = scale_rows(x, scale_of(incidence, "node", right, x.dtype))
    out = _scatter(scale_rows(_gather(y, incidence), w), incidence)
    if diagonal is not None:
        out = out + scale_rows(y, diagonal - _scatter(w, incidence))
    return scale_rows(out, scale_of(incidence, "node", left, x.dtype))


def traceable_edges(
    z: Tensor, u: Tensor, incidence: Incidence, left: DegreePower, right: DegreePower, diagonal: float | None
) -> Tensor:
    y = scale_rows(z, scale_of(incidence, "edge", right, z.dtype))
    out = _gather(scale_rows(_scatter(y, incidence), u), incidence)
    if diagonal is not None:
        out = out + scale_rows(y, diagonal - _gather(u, incidence))
    return scale_rows(out, scale_of(incidence, "edge", left, z.dtype))
