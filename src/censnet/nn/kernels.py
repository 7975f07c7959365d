r"""Graph kernels: functions f(S) of a layer's operator :math:`x \mapsto S x`. Both layers take any of them.

"The framework is independent of the graph kernel" (section 3.3 of the paper, on the approximated spectral kernel and
others). :math:`S` is the fused, normalized matrix of `NodeLayer` or `EdgeLayer`; a kernel only ever multiplies by it,
so each step costs :math:`O(E d)`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Operator:
    """x -> S x on one side of a graph, and inner products within each graph of a batch."""

    multiply: Callable[[Tensor], Tensor]
    symmetric: bool = True
    owner: Tensor | None = None
    num_graphs: int = 1

    def __call__(self, x: Tensor) -> Tensor:
        return self.multiply(x)

    def dot(self, x: Tensor, y: Tensor) -> Tensor:
        """The inner product of each column of x with that of y, within each graph. (n, d), (n, d) -> (graphs, d)."""
        if self.owner is None:
            return (x * y).sum(0, keepdim=True)
        return x.new_zeros(self.num_graphs, x.shape[1]).index_add(0, self.owner, x * y)

    def broadcast(self, per_graph: Tensor) -> Tensor:
        """Give each node, or edge, the value of its graph. (graphs, d) -> (n, d), or (1, d) for one graph."""
        return per_graph if self.owner is None else per_graph[self.owner]


class Kernel(nn.Module):
    """A function of the operator, applied to one side of a graph."""

    commutes = True  # with a mixing of the channels: a kernel that is the same polynomial for every column
    members = 1  # of a stack, each with a share of the channels and of the parameters
    steps: int = 1  # multiplications by the operator, one after the other: the hops it reaches

    def forward(self, operator: Operator, x: Tensor) -> Tensor:
        """Compute f(S) x."""
        raise NotImplementedError

    def reset_parameters(self) -> None:
        """Initialize the parameters."""


class Hop(Kernel):
    """One hop, :math:`S x`: the kernel of the paper."""

    def forward(self, operator: Operator, x: Tensor) -> Tensor:
        return operator(x)


class Power(Kernel):
    """K hops at once, :math:`S^K x`, as in SGC (Wu et al. 2019)."""

    def __init__(self, steps: int = 2) -> None:
        super().__init__()
        self.steps = _at_least("steps", steps, 1)

    def extra_repr(self) -> str:
        return str(self.steps)

    def forward(self, operator: Operator, x: Tensor) -> Tensor:
        for _ in range(self.steps):
            x = operator(x)
        return x


class PageRank(Kernel):
    r"""Personalized PageRank, as in APPNP (Gasteiger et al. 2019).

    K steps of :math:`h \leftarrow (1 - a) S h + a x` from :math:`h = x`, with the teleport probability :math:`a`.
    """

    def __init__(self, steps: int = 10, teleport: float = 0.1) -> None:
        super().__init__()
        self.steps = _at_least("steps", steps, 1)
        if not 0 <= teleport <= 1:
            raise ValueError(f"teleport is {teleport}, expected a probability from 0 to 1")
        self.teleport = teleport

    def extra_repr(self) -> str:
        return f"{self.steps}, teleport={self.teleport}"

    def forward(self, operator: Operator, x: Tensor) -> Tensor:
        h, back = x, self.teleport * x
        for _ in range(self.steps):
            h = torch.add(back, operator(h), alpha=1 - self.teleport)
        return h


class Chebyshev(Kernel):
    r"""Chebyshev polynomials, :math:`\sum_k c_k T_k(S)\, x`, with learned :math:`c_k` (Defferrard et al. 2016).

    It starts as one hop: c_1 = 1 and the others 0.
    """

    def __init__(self, order: int = 3) -> None:
        super().__init__()
        self.order = self.steps = _at_least("order", order, 1)
        self.coefficients = nn.Parameter(torch.empty(order + 1))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        with torch.no_grad():
            self.coefficients.zero_().view(self.members, -1)[:, 1] = 1

    def extra_repr(self) -> str:
        return str(self.order)

    def forward(self, operator: Operator, x: Tensor) -> Tensor:
        c = self.coefficients.view(self.members, -1).unbind(1)
        before, now = x, operator(x)
        out = times(c[0], before) + times(c[1], now)
        for k in range(2, self.order + 1):
            before, now = now, 2 * operator(now) - before
            out = out + times(c[k], now)
        return out


class Lanczos(Kernel):
    r"""Far-apart powers, :math:`\sum_p c_p S^p x`, from K multiplications by S, with learned :math:`c_p`.

    As in LNet (Liao et al. 2019), K steps of the Lanczos iteration give :math:`S \approx Q R Q^\top` with :math:`R`
    tridiagonal, K x K, and :math:`S^p` becomes :math:`Q R^p Q^\top`. Here the iteration starts, for each graph and
    channel, from the channel itself, so that :math:`S^p x \approx \|x\|\, Q R^p e_1`: exact for p < K, the same
    however the rows are numbered, and nothing is drawn at random. It starts as one hop.

    Args:
        steps: K, the multiplications by S.
        scales: the powers p.
    """

    commutes = False  # each column has a Krylov space of its own

    def __init__(self, steps: int = 8, scales: Sequence[int] = (1, 2, 4, 8, 16)) -> None:
        super().__init__()
        self.steps = _at_least("steps", steps, 1)
        self.scales = tuple(sorted(set(scales)))
        if not self.scales or self.scales[0] < 0:
            raise ValueError(f"scales is {tuple(scales)}, expected powers of at least 0")
        self.coefficients = nn.Parameter(torch.empty(len(self.scales)))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        with torch.no_grad():
            first = self.scales.index(1) if 1 in self.scales else 0
            self.coefficients.zero_().view(self.members, -1)[:, first] = 1

    def extra_repr(self) -> str:
        return f"{self.steps}, scales={self.scales}"

    def forward(self, operator: Operator, x: Tensor) -> Tensor:
        if not operator.symmetric:
            raise ValueError("the Lanczos kernel needs a symmetric operator: use normalization='symmetric'")
        length, _, start = _normalize(operator, x, 0)
        basis, diagonal, beside = [start], [], []
        for step in range(self.steps):
            moved = operator(basis[step])
            diagonal.append(operator.dot(moved, basis[step]))
            if step == self.steps - 1:
                break
            rest = moved
            for _ in range(2):  # once more than exact arithmetic needs, against rounding
                for q in basis:
                    rest = rest - operator.broadcast(operator.dot(rest, q)) * q
            floor = (8 * torch.finfo(x.dtype).eps) ** 2 * operator.dot(moved, moved)
            divisor, norm, q = _normalize(operator, rest, floor)
            beside.append((norm, divisor))
            basis.append(q)
        mixed = self._mix(diagonal, beside, length)
        return torch.stack([operator.broadcast(c) * q for c, q in zip(mixed, basis, strict=True)]).sum(0)

    def _mix(self, diagonal: list[Tensor], beside: list[tuple[Tensor, Tensor]], length: Tensor) -> list[Tensor]:
        """The coordinates of sum c_p R^p e_1 |x|, each (graphs, d), by multiplying the tridiagonal R out."""
        zero = torch.zeros_like(length)
        v = [length] + [zero] * (len(diagonal) - 1)
        mixed, reached = [zero] * len(v), 0
        for power, c in zip(self.scales, self.coefficients.view(self.members, -1).unbind(1), strict=True):
            for _ in range(power - reached):
                above = [norm * x for (norm, _), x in zip(beside, v[1:], strict=True)] + [zero]
                below = [zero] + [divisor * x for (_, divisor), x in zip(beside, v[:-1], strict=True)]
                v = [a * x + up + down for a, x, up, down in zip(diagonal, v, above, below, strict=True)]
            reached = power
            mixed = [m + times(c, x) for m, x in zip(mixed, v, strict=True)]
        return mixed


def _normalize(operator: Operator, x: Tensor, floor: Tensor | float) -> tuple[Tensor, Tensor, Tensor]:
    """The divisor of each column, its length within each graph, and the quotient.

    Where the square of the length is not above the floor, the space ends: the length is 0, and the column, which is
    then rounding alone, is divided by 1, so that a gradient still passes through it as it should.
    """
    square = operator.dot(x, x)
    real = square > floor
    divisor = torch.where(real, square, 1).sqrt()
    return divisor, torch.where(real, divisor, 0), x / operator.broadcast(divisor)


def times(coefficient: Tensor, x: Tensor) -> Tensor:
    """Each member's share of the channels times its coefficient. (M,), (n, M d) -> (n, M d)."""
    if len(coefficient) > 1:
        coefficient = coefficient.repeat_interleave(x.shape[1] // len(coefficient))
    return coefficient * x


def _at_least(name: str, value: int, least: int) -> int:
    if value < least:
        raise ValueError(f"{name} is {value}, expected at least {least}")
    return value


KERNELS: dict[str, type[Kernel]] = {
    "hop": Hop,
    "power": Power,
    "pagerank": PageRank,
    "chebyshev": Chebyshev,
    "lanczos": Lanczos,
}


def make_kernel(kernel: str | Kernel) -> Kernel:
    """A kernel of its own for one layer: by name with its defaults, or a copy of the one given."""
    if not isinstance(kernel, Kernel) and kernel not in KERNELS:
        raise ValueError(f"kernel is {kernel!r}, expected a Kernel or one of {', '.join(map(repr, KERNELS))}")
    return copy.deepcopy(kernel) if isinstance(kernel, Kernel) else KERNELS[kernel]()
