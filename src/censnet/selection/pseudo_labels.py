"""Pseudo-labels: class probabilities of every node, by expectation-maximization on propagated features."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from censnet.nn.kernels import Operator, PageRank
from censnet.ops.checks import check_shape
from censnet.ops.graph import Graph
from censnet.ops.propagate import propagate_nodes
from censnet.ops.sparse import map_values, matmul

INVERSE_TEMPERATURES = (8.0, 12.0, 20.0, 30.0)  # tau
POWERS, BISECTIONS = (-4.0, 8.0), 20  # gamma is found by bisection between these powers of 2
PROJECTED_WIDTH = 512  # channels of the random projection of wide features
MAX_VALUES = 50_000 * PROJECTED_WIDTH  # features with more values than this are projected
PROJECTION_SEED = 0


@torch.no_grad()
def pseudo_labels(
    graph: Graph,
    labels: Tensor,
    train: Tensor,
    validation: Tensor,
    num_classes: int,
    *,
    inverse_temperatures: Sequence[float] = INVERSE_TEMPERATURES,
    iterations: int = 20,
    balance: float = 0.5,
    features: Tensor | None = None,
) -> Tensor:
    r"""Class probabilities of each node: soft k-means (expectation-maximization) that starts from the labels.

    Let :math:`h_i` be the propagated features of node i, of norm 1 (see `propagate_features`). Starting from
    :math:`q_{ik} = [y_i = k]` on training nodes and 0 elsewhere, iterate

    .. math::
        c_k = \frac{\sum_i q_{ik} h_i}{\|\sum_i q_{ik} h_i\|}, \qquad
        s_{ik} = \frac{\exp(\tau\, h_i \cdot c_k)}{\sum_l \exp(\tau\, h_i \cdot c_l)}, \qquad
        q_{ik} \propto \frac{s_{ik}}{m_k^\beta}, \quad m_k = \frac{1}{n} \sum_i s_{ik},

    where :math:`q_i` sums to 1, and is the label of a training node. Dividing by the mass :math:`m_k` keeps a class
    from absorbing the others. The order of the probabilities is informative, but not their values: with a small
    :math:`\tau`, often the best, all classes are nearly equally likely. So they are calibrated by temperature scaling,
    with the power :math:`\gamma` for which confidence equals accuracy on the validation nodes V,

    .. math::
        \hat q_{ik} = \frac{q_{ik}^\gamma}{\sum_l q_{il}^\gamma}, \qquad
        \frac{1}{|V|} \sum_{i \in V} \max_k \hat q_{ik} = \frac{1}{|V|} \sum_{i \in V} [y_i = \arg\max_k q_{ik}].

    Of several :math:`\tau` the one with the highest validation accuracy is selected; of equals, that of least cross
    entropy, then the first.

    **What is computed.** Two products of (n, d) with (d, classes) in each iteration: O(n d) time and memory. A class
    without a training node has no centroid; its probability is 0.

    Args:
        graph: the graph.
        labels: the class of each node; NaN is none.
        train: the nodes whose labels are used.
        validation: the nodes that calibrate, and select :math:`\tau`.
        num_classes: number of classes.
        inverse_temperatures: the :math:`\tau` to select from.
        iterations: of expectation-maximization.
        balance: :math:`\beta`, how much the mass of a class counts against it.
        features: the result of `propagate_features`, if it is known already.

    Shape:
        labels (n,), train (t,), validation (v,) -> (n, num_classes).

    Example:
        >>> path = Graph(torch.eye(4), torch.ones(2, 1), torch.tensor([[0, 2], [1, 3]]))
        >>> labels = torch.tensor([0.0, 0.0, 1.0, torch.nan])
        >>> pseudo_labels(path, labels, torch.tensor([0, 2]), torch.tensor([1]), 2).argmax(1)
        tensor([0, 0, 1, 1])
    """
    check_shape("labels", labels, (graph.num_nodes,), "(n,), a class or NaN for each node")
    train, validation = (part[~labels[part].isnan()] for part in (train, validation))
    for name, part in (("train", train), ("validation", validation)):
        if len(part) == 0:
            raise ValueError(f"{name} has no node with a label, expected some: pseudo-labels start from labels")
    h = propagate_features(graph) if features is None else features
    known, code = torch.unique(labels[train].long(), return_inverse=True)
    one_hot = F.one_hot(code, len(known)).to(h.dtype)
    true = labels[validation].long()
    best, best_score = h.new_empty(0), (-1.0, 0.0)
    for tau in inverse_temperatures:
        q = h.new_zeros(len(h), num_classes)
        q[:, known] = _em(h, one_hot, train, tau, iterations, balance)
        accuracy = float((q[validation].argmax(1) == true).double().mean())
        q[:, known] = calibrate_confidence(q[:, known], validation, accuracy)
        q[train] = F.one_hot(labels[train].long(), num_classes).to(h.dtype)
        loss = -q[validation, true].clamp(min=torch.finfo(h.dtype).tiny).log().mean()
        score = accuracy, -float(loss)
        if score > best_score:
            best, best_score = q, score
    return best


def _em(h: Tensor, one_hot: Tensor, train: Tensor, tau: float, iterations: int, balance: float) -> Tensor:
    """Probabilities of the classes that have training nodes, by expectation-maximization. (n, d), (t, k) -> (n, k)"""
    centroids = F.normalize(one_hot.t() @ h[train], dim=1)
    q = h.new_empty(0)
    for _ in range(iterations):
        s = (tau * (h @ centroids.t())).softmax(1)
        q = s / s.mean(0) ** balance
        q = q / q.sum(1, keepdim=True)
        q[train] = one_hot
        centroids = F.normalize(q.t() @ h, dim=1)
    return q


def calibrate_confidence(q: Tensor, validation: Tensor, accuracy: float) -> Tensor:
    """Temperature scaling: the power of q whose mean confidence on the validation nodes is their accuracy."""
    scores = q.clamp(min=torch.finfo(q.dtype).tiny).log()
    low, high = POWERS
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        confidence = float((scores[validation] * 2**middle).softmax(1).amax(1).mean())
        low, high = (middle, high) if confidence < accuracy else (low, middle)
    return (scores * 2**low).softmax(1)


@torch.no_grad()
def propagate_features(graph: Graph, steps: int = 10, teleport: float = 0.1) -> Tensor:
    r"""Features propagated by personalized PageRank, normalized to length 1. (N, d_v) -> (N, d)

    .. math::
        h_i = \frac{g_i}{\|g_i\|}, \qquad g = \mathrm{PageRank}(\tilde A_v)\, x, \qquad
        \tilde A_v = D_v^{-1/2} (A_v + I) D_v^{-1/2}

    Dense features x are used as they are. Sparse rows are normalized to length 1; if they are counts, each column w is
    first weighted by its inverse document frequency, :math:`\max(0, \log(N / (1 + N_w)))`, where :math:`N_w` nodes have
    it. Features with more than `MAX_VALUES` values are projected at random to `PROJECTED_WIDTH` channels, which nearly
    preserves angles.
    """
    incidence, x = graph.incidence, graph.nodes
    sparse = x.layout == torch.sparse_csr
    if sparse:
        x = _weight_counts(x)
    if graph.num_nodes * graph.node_width > MAX_VALUES and graph.node_width > PROJECTED_WIDTH:
        generator = torch.Generator().manual_seed(PROJECTION_SEED)
        projection = torch.randn(graph.node_width, PROJECTED_WIDTH, generator=generator) / PROJECTED_WIDTH**0.5
        x = matmul(x, projection.to(x.device, x.dtype))
    elif sparse:
        x = x.to_dense()
    if sparse:
        x = F.normalize(x, dim=1)
    ones = x.new_ones(incidence.num_edges) / incidence.multiplicity.to(x.dtype)  # A_v is binary
    operator = Operator(lambda rows: propagate_nodes(rows, ones, incidence, self_weight="one"))
    propagated: Tensor = PageRank(steps, teleport)(operator, x)
    return F.normalize(propagated, dim=1)


def _weight_counts(x: Tensor) -> Tensor:
    """Weight sparse counts by inverse document frequency; other features are left as they are."""
    values = x.values()
    if not bool(((values >= 0) & (values == values.round())).all()):
        return x
    there = torch.bincount(x.col_indices()[values > 0], minlength=x.shape[1])
    weight = (x.shape[0] / (1 + there.to(values.dtype))).log().clamp(min=0)
    return map_values(x, lambda counts: counts * weight[x.col_indices()])
