"""Normalization: the diagonal factors of a propagation, powers of the degrees, and rows scaled by them."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from censnet.ops import triton
from censnet.ops.incidence import Incidence

Normalization = Literal["symmetric", "row"]


class DegreePower(NamedTuple):
    """(degree + more) ** exponent: one of the two diagonal factors of a propagation."""

    exponent: float
    more: int = 0

    def times(self, other: DegreePower) -> DegreePower:
        """The product of two powers of the same number."""
        return DegreePower(self.exponent + other.exponent, self.more if self.exponent else other.more)


FACTORS = {"symmetric": (DegreePower(-0.5), DegreePower(-0.5)), "row": (DegreePower(-1.0), DegreePower(0.0))}


def factors_of(normalization: Normalization) -> tuple[DegreePower, DegreePower]:
    """The left and the right factor of S = L B R."""
    if normalization not in FACTORS:
        raise ValueError(f"normalization is {normalization!r}, expected one of {', '.join(map(repr, FACTORS))}")
    return FACTORS[normalization]


def scale_of(
    incidence: Incidence, side: Literal["node", "edge"], power: DegreePower, dtype: torch.dtype
) -> Tensor | None:
    """The factor of each node or edge, (N,) or (E,); None where it is 1."""
    if power.exponent == 0:
        return None
    degree = incidence.node_degree if side == "node" else incidence.edge_degree
    if triton.is_available(incidence.ends) and dtype.itemsize < 4:
        dtype = torch.float32  # the kernels compute in it, whatever they read
    return incidence.cache((side, power, dtype), lambda: ((degree + power.more).double() ** power.exponent).to(dtype))


def csr_weight(incidence: Incidence, power: DegreePower, dtype: torch.dtype) -> Tensor | None:
    """The edge's factor at each entry of T in row order, 0 at the second entry of a loop."""
    return _entry_weight(incidence, "slot", power, dtype, incidence.csr_mask)


def pair_weight(incidence: Incidence, power: DegreePower, dtype: torch.dtype) -> Tensor | None:
    """The edge's factor at each of its two ends, 0 at the second end of a loop."""
    return _entry_weight(incidence, "pair", power, dtype, incidence.pair_mask)


def minus_weights(incidence: Incidence, power: DegreePower, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Minus `csr_weight` and minus `pair_weight`, for a power that is not 0."""

    def make() -> tuple[Tensor, Tensor]:
        csr, pair = csr_weight(incidence, power, dtype), pair_weight(incidence, power, dtype)
        assert csr is not None
        assert pair is not None
        return -csr, -pair

    return incidence.cache(("minus", power, dtype), make)


def _entry_weight(
    incidence: Incidence, order: Literal["slot", "pair"], power: DegreePower, dtype: torch.dtype, mask: Tensor | None
) -> Tensor | None:
    scale = scale_of(incidence, "edge", power, dtype)
    if scale is None:
        return mask

    def make() -> Tensor:
        each = scale[incidence.csr.edge.index] if order == "slot" else scale.repeat_interleave(2)
        return each if mask is None else each * mask

    return incidence.cache((order, power, dtype), make)


def end_weight(incidence: Incidence, power: DegreePower, dtype: torch.dtype) -> Tensor | None:
    """The node's factor at each end of each edge, in the order of `pairs`. (2E,)"""
    scale = scale_of(incidence, "node", power, dtype)
    if scale is None:
        return None
    return incidence.cache(("end", power, dtype), lambda: scale[incidence.pairs.index])


def crossing_weight(incidence: Incidence, left: DegreePower, right: DegreePower, dtype: torch.dtype) -> Tensor:
    """At each entry of T in row order, the left factor of its node times the right factor of the other end. (2E,)"""

    def make() -> Tensor:
        other = incidence.csr.other.index
        node = incidence.ends.sum(0)[incidence.csr.edge.index] - other
        factors = (scale_of(incidence, "node", left, dtype), node), (scale_of(incidence, "node", right, dtype), other)
        out = torch.ones(len(other), dtype=dtype, device=other.device)
        for scale, at in factors:
            out = out if scale is None else out * scale[at]
        return out

    return incidence.cache(("crossing", left, right, dtype), make)


def scale_rows(rows: Tensor, weight: Tensor | None) -> Tensor:
    """Each row times its weight, (n,) or (n, heads); None is 1."""
    if weight is None:
        return rows
    weight = weight.to(rows.dtype)
    if weight.dim() == 1 or weight.shape[1] == 1:
        return rows * weight.reshape(-1, 1)
    return (by_head(rows, weight.shape[1]) * weight.unsqueeze(2)).flatten(1)


def dots(a: Tensor, b: Tensor, heads: int) -> Tensor:
    """The dot product of two rows within each head. (n, d), (n, d) -> (n, heads)."""
    if triton.is_available(a):
        return triton.row_dots(a, b, heads)
    if heads == a.shape[1]:
        return a * b
    return by_head(a * b, heads).sum(2) if heads > 1 else (a * b).sum(1, keepdim=True)


def by_head(rows: Tensor, heads: int) -> Tensor:
    """(n, d) -> (n, heads, d / heads)."""
    return rows.reshape(rows.shape[0], heads, rows.shape[1] // heads)
