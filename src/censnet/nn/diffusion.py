r"""Where walks from a node lead, in few numbers: nodes that have nothing else in common have neighbours in common.

Let :math:`K = (1 - a)^n \tilde A^n + \sum_{k < n} a (1 - a)^k \tilde A^k`. But for a scale by degrees, row i of K says
where walks from node i end that end before each step with probability a, and after n steps at the latest. K has N x N
entries and is not made. It is looked at from the few directions in which it says most, by subspace iteration:

.. math:: Q_0 = \text{random signs}, \qquad Q_{t + 1} = \mathrm{orth}(K Q_t), \qquad k = K Q_\text{last},

so that :math:`k k^\top` is close to the best approximation of :math:`K K^\top` of that rank, whatever the signs were,
and the cosine of :math:`k_i` and :math:`k_j` is near that of rows i and j. Each step costs :math:`O(E d)`, and orth
:math:`O(N d^2)`. The signs of a node follow from its features and surroundings (`ops.colors`), so that the order of the
rows and the names of the nodes do not matter. What is elsewhere in the graph does: all nodes share the directions.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from censnet.nn.kernels import Operator, PageRank
from censnet.ops.colors import hash_rows, node_colors, random_signs
from censnet.ops.incidence import Incidence
from censnet.ops.propagate import propagate_nodes

WIDTH = 128  # d: directions
ROUNDS = 3  # of the iteration
TELEPORT = 0.1  # a
LEAST = 1e-6  # of the largest, an eigenvalue that is more than what rounding leaves


def neighbours(incidence: Incidence, dtype: torch.dtype) -> Operator:
    """x -> A~ x with A~ = D^-1/2 (A + I) D^-1/2, where A is 1 between neighbours, however many edges join them."""
    one = incidence.keep(("distinct", dtype), lambda: incidence.is_first.to(dtype))
    return Operator(lambda x: propagate_nodes(x, one, incidence, "one"), True, incidence.owner, incidence.num_graphs)


def walk(features: Tensor, incidence: Incidence, steps: int, dtype: torch.dtype) -> Tensor:
    """k, with rows of length 1; kept while the graph lives. Graphs of a union share the directions. -> (N, WIDTH)"""

    def look() -> Tensor:
        device = incidence.ends.device
        with torch.no_grad(), torch.autocast(device.type, enabled=False):  # orth needs all its digits
            K, operator = PageRank(steps, TELEPORT), neighbours(incidence, dtype)
            k: Tensor = random_signs(node_colors(features, incidence), WIDTH).to(device, dtype)
            for _ in range(ROUNDS):
                k = orth(K(operator, k))
            return F.normalize(K(operator, k), dim=1)

    return incidence.keep(("walks", steps, dtype, int(hash_rows(features).sum())), look)


def orth(rows: Tensor) -> Tensor:
    """Columns at right angles that span the same, each of length 1; as many zeros as there were too many. (N, d)"""
    value, vector = torch.linalg.eigh((rows.t() @ rows).double().cpu())
    scale = torch.where(value > LEAST * value.max(), value, torch.inf).rsqrt()
    found: Tensor = rows @ (vector * scale).to(rows)
    return found
