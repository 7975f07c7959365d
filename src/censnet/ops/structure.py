"""Structural features: how many edges and neighbors a node has, and how many edges join the two nodes of an edge.

A mean over neighbors does not tell how many there are, and a sampled subgraph has other numbers than the whole graph.
So they are features, computed once on the whole graph: log(1 + count) / 2 of each.
"""

from __future__ import annotations

import torch
from torch import Tensor

from censnet.ops.incidence import Incidence

NODE_WIDTH = {True: 4, False: 2}  # of the features of a node, in a directed graph and in another
EDGE_WIDTH = {True: 2, False: 1}


def node_structure(incidence: Incidence, directed: bool) -> Tensor:
    """log(1 + count) / 2 of the edges and of the distinct neighbors of each node, by direction. (N, 4 or 2)

    Example:
        >>> double = Incidence(torch.tensor([[0, 0, 1], [1, 1, 2]]), num_nodes=3)
        >>> node_structure(double, directed=True).mul(2).expm1().round().int().tolist()
        [[2, 0, 1, 0], [1, 2, 1, 1], [0, 1, 0, 1]]
        >>> node_structure(double, directed=False).mul(2).expm1().round().int().tolist()
        [[2, 1], [3, 2], [1, 1]]
    """
    if not directed:
        counts = [incidence.edge_count, incidence.node_degree - 1]
    else:
        counts = [incidence.out_degree, incidence.in_degree, *incidence.neighbor_count]
    return torch.stack(counts, dim=1).float().log1p() / 2


def edge_structure(incidence: Incidence, directed: bool) -> Tensor:
    """log(1 + count) of other parallel edges and, in a directed graph, of reciprocal ones. (E, 2 or 1)

    Example:
        >>> double = Incidence(torch.tensor([[0, 0, 1], [1, 1, 0]]), num_nodes=2)
        >>> edge_structure(double, directed=True).expm1().round().int().tolist()
        [[1, 1], [1, 1], [0, 2]]
    """
    counts = [incidence.parallel_count - 1, incidence.reciprocal_count] if directed else [incidence.multiplicity - 1]
    return torch.stack(counts, dim=1).float().log1p()


def edge_port(incidence: Incidence, directed: bool) -> Tensor:
    """log(1 + count) of the parallel edges that stand before an edge in the table: its port. (E, 1)

    Example:
        >>> double = Incidence(torch.tensor([[0, 0, 1], [1, 1, 0]]), num_nodes=2)
        >>> [edge_port(double, directed).expm1().round().int().flatten().tolist() for directed in (True, False)]
        [[0, 1, 0], [0, 1, 2]]
    """
    return (incidence.port if directed else _rank(incidence)).unsqueeze(1).float().log1p()


def assortativity(values: Tensor, ends: Tensor) -> float:
    r"""Newman's assortativity: how alike the two ends of an edge are, 1 if equal and 0 if as in a random graph.

    .. math::
        r = \frac{\sum_k \operatorname{cov}(y_{sk}, y_{tk})}{\sum_k \operatorname{var}(y_{sk})}

    over the edges (s, t), each in both directions. Of one-hot classes it is the adjusted homophily, of one number its
    correlation over edges. Edges with a NaN at an end do not count; without a variance it is 0.

    Args:
        values: of each node, one-hot classes or numbers.
        ends: of each edge.

    Shape:
        values (N, k), ends (2, E).

    Example:
        >>> square = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
        >>> assortativity(torch.eye(2)[[0, 1, 0, 1]], square), assortativity(torch.eye(2)[[0, 0, 1, 1]], square)
        (-1.0, 0.0)
    """
    known = ~values.isnan().any(1)
    ends = ends[:, known[ends[0]] & known[ends[1]]]
    one, other = (values[torch.cat([ends[end], ends[1 - end]])].double() for end in (0, 1))
    centered = one - one.mean(0)
    variance = float(centered.square().mean(0).sum())
    if not variance > 1e-12:  # nor NaN, without an edge
        return 0.0
    return float((centered * (other - other.mean(0))).mean(0).sum()) / variance


def _rank(incidence: Incidence) -> Tensor:
    """The number of edges with the same two ends, in any order, that stand before an edge. (E,)"""
    key, order = incidence.sorted_pairs
    ordered = key[order]
    every = torch.arange(len(order), device=order.device)
    rank = every - torch.searchsorted(ordered, ordered)
    return torch.zeros_like(order).index_copy(0, order, rank)
