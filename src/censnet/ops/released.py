"""The edge propagation of the authors' released code, in O(E d)."""

from __future__ import annotations

import torch
from torch import Tensor

from censnet.ops.incidence import Incidence
from censnet.ops.normalization import DegreePower, scale_rows
from censnet.ops.propagate import check_weight, edge_product

LEAST_OTHER_DEGREE = "least other degree"  # under which an incidence caches it


def propagate_edges_released(edges: Tensor, node_weight: Tensor, incidence: Incidence) -> Tensor:
    r"""Edge propagation of the released code, :math:`M C^{-1} z`, in :math:`O(E d)`.

    .. math::
        M = \bigl( T^\top \operatorname{diag}(u)\, T \text{ with 1 on its diagonal} \bigr) \odot D^{-1} (A_e + 2 I)

    and C has the column maxima of M. D is then :math:`D_e + 1`. :math:`M C^{-1} z` is one edge propagation of z / c
    with row factors 1 / D and 2 on the diagonal, so only the maximum :math:`c_f` of each column is left to find: see
    `column_maximum`.

    Shape:
        edges (E, d), node_weight (N,) or (N, heads) -> (E, d).
    """
    u = check_weight("edges", edges, incidence.num_edges, "node_weight", node_weight, incidence.num_nodes, incidence)
    y = scale_rows(edges, 1 / column_maximum(u, incidence))
    return edge_product(y, u, incidence, left=DegreePower(-1.0, more=1), right=DegreePower(0.0), diagonal=2.0)


def column_maximum(u: Tensor, incidence: Incidence) -> Tensor:
    """The largest entry in each column of M, (N, heads) -> (E, heads), in O(E).

    Column f = i-j of M has 2 / D_f on the diagonal, u_i / D_e for every other edge e at i, u_j / D_e for every other
    at j, and (u_i + u_j) / D_f for those parallel to f, which all have the D of f. An entry with a negative gate is
    below the diagonal, which is positive, and so only the smallest D among the others at an end matters. That is the
    smallest around the node, or, for the edges that have it themselves, the second smallest: parallel edges count as
    one.
    """
    degree = (incidence.edge_degree + 1).to(u.dtype)
    best = (2 / degree).unsqueeze(1).expand(-1, u.shape[1])
    others = incidence.cache((LEAST_OTHER_DEGREE,), lambda: _least_other_degree(incidence))
    for end, least in zip(incidence.ends, others, strict=True):
        best = torch.maximum(best, u[end] / least.to(u.dtype).unsqueeze(1))
    loop = (incidence.ends[0] == incidence.ends[1]).unsqueeze(1)
    both = u[incidence.ends[0]] + torch.where(loop, 0, u[incidence.ends[1]])
    parallel = (incidence.multiplicity > 1).unsqueeze(1)
    return torch.where(parallel, torch.maximum(best, both / degree.unsqueeze(1)), best)


def _least_other_degree(incidence: Incidence) -> Tensor:
    """For each edge and end, the least D_e + 1 of the edges there that join another pair; infinite if none. (2, E)"""
    degree = (incidence.edge_degree + 1).double()
    infinite = torch.full((incidence.num_nodes,), torch.inf, dtype=torch.float64, device=degree.device)
    lead = incidence.is_first  # of parallel edges the first stands for all; a loop stands at its one end once
    stands = torch.stack([lead, lead & (incidence.ends[0] != incidence.ends[1])])
    values = torch.where(stands, degree, torch.inf)

    least = infinite
    for end, value in zip(incidence.ends, values, strict=True):
        least = least.scatter_reduce(0, end, value, "amin")
    is_least = stands & (values == least[incidence.ends])
    holders = torch.zeros_like(infinite)
    for end, holds in zip(incidence.ends, is_least, strict=True):
        holders = holders.index_add(0, end, holds.double())
    second = infinite
    for end, value, holds in zip(incidence.ends, values, is_least, strict=True):
        second = second.scatter_reduce(0, end, torch.where(holds, torch.inf, value), "amin")
    own = degree.unsqueeze(0) == least[incidence.ends]
    alone = own & (holders[incidence.ends] < 2)
    return torch.where(alone, second[incidence.ends], least[incidence.ends])
