r"""A low-rank embedding of the personalized-PageRank diffusion matrix, by randomized subspace iteration.

Nodes with similar neighborhoods get similar embeddings. Let
:math:`K = (1 - a)^n \tilde A^n + \sum_{k < n} a (1 - a)^k \tilde A^k`. But for a scale by degrees, row i of K is the
distribution of where random walks from node i end, if they end before each step with probability a, and after n steps
at the latest. K has N x N entries and is not built; its leading directions are found by

.. math:: Q_0 = \text{random signs}, \qquad Q_{t + 1} = \mathrm{orth}(K Q_t), \qquad k = K Q_\text{last},

so that :math:`k k^\top` is close to the best approximation of :math:`K K^\top` of that rank, whatever the signs were,
and the cosine of :math:`k_i` and :math:`k_j` is near that of rows i and j. Each step costs :math:`O(E d)`, and orth
:math:`O(N d^2)`. The signs of a node follow from its features and neighborhood (`ops.colors`), so that the order
and the ids of the nodes do not matter. The rest of the graph does: all nodes share the directions.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from censnet.nn.kernels import Operator, PageRank
from censnet.ops.colors import hash_rows, node_colors, rademacher
from censnet.ops.incidence import Incidence
from censnet.ops.propagate import propagate_nodes

WIDTH = 128  # d: directions
ROUNDS = 3  # of the iteration
TELEPORT = 0.1  # a
LEAST = 1e-6  # share of the largest eigenvalue below which one is rounding


def normalized_adjacency(incidence: Incidence, dtype: torch.dtype) -> Operator:
    """x -> A~ x with A~ = D^-1/2 (A + I) D^-1/2, where A is 1 between neighbors, however many edges join them."""
    one = incidence.cache(("distinct", dtype), lambda: incidence.is_first.to(dtype))
    return Operator(lambda x: propagate_nodes(x, one, incidence, "one"), True, incidence.owner, incidence.num_graphs)


def diffusion_embedding(features: Tensor, incidence: Incidence, steps: int, dtype: torch.dtype) -> Tensor:
    """k, with rows of length 1; cached with the graph. Graphs of a batch share the directions. -> (N, WIDTH)"""

    def compute() -> Tensor:
        device = incidence.ends.device
        with torch.no_grad(), torch.autocast(device.type, enabled=False):  # needs full precision
            K, operator = PageRank(steps, TELEPORT), normalized_adjacency(incidence, dtype)
            k: Tensor = rademacher(node_colors(features, incidence), WIDTH).to(device, dtype)
            for _ in range(ROUNDS):
                k = orthonormalize(K(operator, k))
            return F.normalize(K(operator, k), dim=1)

    return incidence.cache(("diffusion", steps, dtype, int(hash_rows(features.detach()).sum())), compute)


def hold_signs(features: Tensor, incidence: Incidence, steps: int, dtype: torch.dtype, own: Tensor) -> None:
    """Keep for `features` the embedding whose random signs are those of other features, `own`, of the same nodes."""
    k = diffusion_embedding(own, incidence, steps, dtype)
    incidence.cache(("diffusion", steps, dtype, int(hash_rows(features.detach()).sum())), lambda: k)


def orthonormalize(rows: Tensor) -> Tensor:
    """Orthonormal columns of the same span, zeros in the place of dependent ones. (N, d) -> (N, d)"""
    value, vector = torch.linalg.eigh((rows.t() @ rows).double().cpu())
    scale = torch.where(value > LEAST * value.max(), value, torch.inf).rsqrt()
    found: Tensor = rows @ (vector * scale).to(rows)
    return found
