r"""Where walks from a node lead, in few numbers: nodes that have nothing else in common have neighbours in common.

Let :math:`K = (1 - a)^T \tilde A^T + \sum_{k < T} a (1 - a)^k \tilde A^k`. But for a scale by degrees, row i of K says
where walks from node i end that end before each step with probability a, and after T steps at the latest. K has N x N
entries and is not made: each node gets d random signs :math:`r_i`, and

.. math:: s = K r, \qquad \mathbb{E}\, s_i^\top s_j = d\, (K K^\top)_{ij},

so that the cosine of :math:`s_i` and :math:`s_j` is that of rows i and j of K, but for an error of about
:math:`d^{-1/2}`. It costs :math:`O(E d)` for each step.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from censnet.nn.kernels import Operator, PageRank
from censnet.ops.incidence import Incidence
from censnet.ops.propagate import propagate_nodes

WIDTH = 128  # d: signs of each node
TELEPORT = 0.1  # a
BITS = 64
GOLDEN, FIRST, SECOND = -0x61C8864680B583EB, -0x40A7B892E31B1A47, -0x6B2FB644ECCEEE15  # of SplitMix64, signed


def neighbours(incidence: Incidence, dtype: torch.dtype) -> Operator:
    """x -> A~ x with A~ = D^-1/2 (A + I) D^-1/2, where A is 1 between neighbours, however many edges join them."""
    one = incidence.keep(("distinct", dtype), lambda: incidence.is_first.to(dtype))
    return Operator(lambda x: propagate_nodes(x, one, incidence, "one"), True, incidence.owner, incidence.num_graphs)


def walk(incidence: Incidence, steps: int, dtype: torch.dtype) -> Tensor:
    """s, with rows of length 1. -> (N, WIDTH)"""
    device = incidence.ends.device
    ends: Tensor = PageRank(steps, TELEPORT)(neighbours(incidence, dtype), signs(incidence.num_nodes, device).to(dtype))
    return F.normalize(ends, dim=1)


def signs(num_nodes: int, device: torch.device | str = "cpu") -> Tensor:
    """r: the signs of each node, the same on every device and in every graph. -> (N, WIDTH), of int64

    Example:
        >>> signs(2)[:, 2:6]
        tensor([[ 1,  1, -1,  1],
                [ 1,  1, -1, -1]])
    """
    words = WIDTH // BITS
    mixed = (torch.arange(num_nodes * words, device=device) + 1) * GOLDEN
    for shift, factor in ((30, FIRST), (27, SECOND)):
        mixed = (mixed ^ _right(mixed, shift)) * factor
    mixed = mixed ^ _right(mixed, 31)
    bits = mixed.unsqueeze(1) >> torch.arange(BITS, device=device) & 1
    return (2 * bits - 1).view(num_nodes, WIDTH)


def _right(number: Tensor, shift: int) -> Tensor:
    """A shift that fills with zeros."""
    return number >> shift & (1 << (BITS - shift)) - 1
