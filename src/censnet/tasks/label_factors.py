"""Ridge matrix factorization of known labels of edges: offsets of both ends, and the product of latent factors.

Whether a user likes a film follows from what users with like ratings gave to it. A mean over neighbors has the offsets
of the two; the factors take a product of two nodes, which layers of sums do not form. Labels that are hidden are no
part of the factorization, so that an edge is predicted in training as a new one is.
"""

from __future__ import annotations

import torch
from torch import Tensor

from censnet.ops.incidence import Incidence

RANK = 8
SWEEPS = 6  # over all nodes, alternating; beyond them validation scores of simulated ratings changed by 0.001
OFFSET_SWEEPS = 5
OFFSET_RIDGE = 5.0
RIDGE = 8.0  # for labels of variance 1
WIDTH = 2  # channels: the sum of both offsets, and the product of both factors


def factorize_labels(values: Tensor, known: Tensor, incidence: Incidence, directed: bool) -> Tensor:
    r"""Predictions of the labels of all edges from those that are known. (E,), (E,) -> (E, 2)

    .. math::
        \min \sum_{e = (s, t)\ \text{known}} \bigl( y_e - b_s - c_t - p_s \cdot q_t \bigr)^2
            + \mu (\|b\|^2 + \|c\|^2) + \lambda (\|P\|^2 + \|Q\|^2)

    by alternating least squares, the offsets b and c first. The two channels are :math:`b_s + c_t` and
    :math:`p_s \cdot q_t`; without direction each edge counts in both, and the channels are means over the two. The
    first factors are functions of the offset and of the number of labels of a node, not of the order of rows.

    Args:
        values: the labels, about standardized; anything where they are not known.
        known: which are.
        incidence: of the graph.
        directed: whether the two ends of an edge have roles.

    Example:
        >>> ends = torch.cartesian_prod(torch.arange(50), torch.arange(50, 90)).T
        >>> sign = 1 - 2 * (ends % 2).float()
        >>> known = torch.rand(2000, generator=torch.Generator().manual_seed(0)) < 0.8
        >>> found = factorize_labels(sign[0] * sign[1], known, Incidence(ends, 90), directed=True).sum(1)
        >>> bool(((found > 0) == (sign[0] == sign[1])).all())
        True
    """
    number, (source, target) = incidence.num_nodes, incidence.ends
    some = known.nonzero().squeeze(1)
    start, end, y = source[some], target[some], values[some].double()
    if not directed:
        start, end, y = torch.cat([start, end]), torch.cat([end, start]), y.repeat(2)
    nothing = y.new_zeros(number)
    counts = [nothing.index_add(0, each, torch.ones_like(y)) for each in (start, end)]
    first, second = nothing, nothing
    for _ in range(OFFSET_SWEEPS):
        second = nothing.index_add(0, end, y - first[start]) / (counts[1] + OFFSET_RIDGE)
        first = nothing.index_add(0, start, y - second[end]) / (counts[0] + OFFSET_RIDGE)
    rest = (y - first[start] - second[end]).float()
    right = _first_factors(second, counts[1])
    left = torch.zeros_like(right)
    for _ in range(SWEEPS):
        left = _solve(right[end], rest, start, number)
        right = _solve(left[start], rest, end, number)

    def predict(one: Tensor, other: Tensor) -> Tensor:
        products = (left[one] * right[other]).sum(1)
        return torch.stack([(first[one] + second[other]).float(), products], dim=1)

    found = predict(source, target)
    return found if directed else (found + predict(target, source)) / 2


def _first_factors(offset: Tensor, count: Tensor) -> Tensor:
    """Factors that differ between nodes whose offsets or counts differ. (n, rank)"""
    frequency = torch.arange(1, RANK + 1, dtype=torch.float64, device=offset.device)
    angle = 1000 * offset.unsqueeze(1) * frequency + count.unsqueeze(1) * frequency.sqrt() + frequency
    return (angle.cos() * (count > 0).unsqueeze(1) * 0.5).float()


def _solve(factors: Tensor, rest: Tensor, node: Tensor, number: int) -> Tensor:
    """The ridge regression of each node on the factors at the other ends of its edges. (m, rank), (m,) -> (n, rank)"""
    row, column = torch.triu_indices(RANK, RANK, device=factors.device)
    moments = torch.cat([factors[:, row] * factors[:, column], factors * rest.unsqueeze(1)], dim=1)
    sums = moments.new_zeros(number, moments.shape[1]).index_add(0, node, moments)
    gram = sums.new_zeros(number, RANK, RANK)
    gram[:, row, column] = gram[:, column, row] = sums[:, : len(row)]
    gram += RIDGE * torch.eye(RANK, device=gram.device)
    return torch.cholesky_solve(sums[:, len(row) :].unsqueeze(2), torch.linalg.cholesky(gram)).squeeze(2)
