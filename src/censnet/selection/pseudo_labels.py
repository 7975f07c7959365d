"""Rows without labels: a guess at the class of every node, from the labels of a few and what all nodes look like."""

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

INVERSE_TEMPERATURES = (8.0, 12.0, 20.0, 30.0)  # tau: how much nearer one centroid must be for a guess to be sure
POWERS, HALVINGS = (-4.0, 8.0), 20  # logarithms to base 2 that gamma is looked for between, and how closely
NARROW = 512  # columns that features are projected to
ROOM = 50_000 * NARROW  # numbers above which they are
PROJECTION_SEED = 0


@torch.no_grad()
def pseudo_labels(
    graph: Graph,
    labels: Tensor,
    train: Tensor,
    validation: Tensor,
    num_classes: int,
    *,
    inverse_temperature: Sequence[float] = INVERSE_TEMPERATURES,
    rounds: int = 20,
    balanced_class_weights: float = 0.5,
    rows: Tensor | None = None,
) -> Tensor:
    r"""How likely each node is of each class: soft centroids of classes, found by expectation and maximisation.

    Let :math:`h_i` be the row of node i, smoothed over the graph and of length 1 (see `propagate_features`). From
    :math:`q_{ik} = [y_i = k]` on training rows and 0 elsewhere, by turns

    .. math::
        c_k = \frac{\sum_i q_{ik} h_i}{\|\sum_i q_{ik} h_i\|}, \qquad
        s_{ik} = \frac{\exp(\tau\, h_i \cdot c_k)}{\sum_l \exp(\tau\, h_i \cdot c_l)}, \qquad
        q_{ik} \propto \frac{s_{ik}}{m_k^\beta}, \quad m_k = \frac{1}{n} \sum_i s_{ik},

    :math:`q_i` again of sum 1, and that of a training row its label. Dividing by the mass :math:`m_k` keeps a class
    from swallowing the others. How near one centroid is says which class is likeliest, but not how likely: with a small
    :math:`\tau`, often the best, all classes seem alike. So the guess is made as sure as it is right, by the power
    :math:`\gamma` with which, on the validation rows V,

    .. math::
        \hat q_{ik} = \frac{q_{ik}^\gamma}{\sum_l q_{il}^\gamma}, \qquad
        \frac{1}{|V|} \sum_{i \in V} \max_k \hat q_{ik} = \frac{1}{|V|} \sum_{i \in V} [y_i = \arg\max_k q_{ik}].

    Of several :math:`\tau` the guess is taken that is right on most validation rows; of equals, the one of least cross
    entropy there, then the first.

    **What is computed.** Two products of (n, d) with (d, classes) in each round: O(n d) time and memory. A class
    without a training row has no centroid; its probability is 0.

    Args:
        graph: whose nodes are guessed.
        labels: the class of each node; NaN is none.
        train: the nodes whose labels are believed.
        validation: the nodes whose labels choose among the guesses.
        num_classes: columns of the answer.
        sharpness: the :math:`\tau` to choose from.
        rounds: how often centroids and guesses take turns.
        balance: :math:`\beta`, how much the mass of a class counts against it.
        rows: what `propagate_features` gave for this graph, where it is known already.

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
            raise ValueError(f"{name} has no node with a label, expected some: there is nothing to guess from")
    h = propagate_features(graph) if rows is None else rows
    known, code = torch.unique(labels[train].long(), return_inverse=True)
    believed = F.one_hot(code, len(known)).to(h.dtype)
    asked = labels[validation].long()
    best, best_mark = h.new_empty(0), (-1.0, 0.0)
    for tau in inverse_temperature:
        guess = h.new_zeros(len(h), num_classes)
        guess[:, known] = _em(h, believed, train, tau, rounds, balanced_class_weights)
        right = float((guess[validation].argmax(1) == asked).double().mean())
        guess[:, known] = calibrate_confidence(guess[:, known], validation, right)
        guess[train] = F.one_hot(labels[train].long(), num_classes).to(h.dtype)
        loss = -guess[validation, asked].clamp(min=torch.finfo(h.dtype).tiny).log().mean()
        mark = right, -float(loss)
        if mark > best_mark:
            best, best_mark = guess, mark
    return best


def _em(h: Tensor, believed: Tensor, train: Tensor, tau: float, rounds: int, balanced_class_weights: float) -> Tensor:
    """Guesses for all rows, among the classes that have training rows. (n, d), (t, k) -> (n, k)"""
    centroids = F.normalize(believed.t() @ h[train], dim=1)
    q = h.new_empty(0)
    for _ in range(rounds):
        s = (tau * (h @ centroids.t())).softmax(1)
        q = s / s.mean(0) ** balanced_class_weights
        q = q / q.sum(1, keepdim=True)
        q[train] = believed
        centroids = F.normalize(q.t() @ h, dim=1)
    return q


def calibrate_confidence(q: Tensor, validation: Tensor, right: float) -> Tensor:
    """The power of q whose likeliest class has, in the mean over validation rows, the probability `right`."""
    scores = q.clamp(min=torch.finfo(q.dtype).tiny).log()
    low, high = POWERS
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        sure = float((scores[validation] * 2**middle).softmax(1).amax(1).mean())
        low, high = (middle, high) if sure < right else (low, middle)
    return (scores * 2**low).softmax(1)


@torch.no_grad()
def propagate_features(graph: Graph, steps: int = 10, teleport: float = 0.1) -> Tensor:
    r"""What each node and those around it look like, of length 1. (N, d_v) -> (N, d)

    .. math::
        h_i = \frac{g_i}{\|g_i\|}, \qquad g = \mathrm{PageRank}(\tilde A_v)\, x, \qquad
        \tilde A_v = D_v^{-1/2} (A_v + I) D_v^{-1/2}

    Dense features x are taken as they are. Sparse rows are brought to length 1, and where they are counts, each column
    w is first weighed by :math:`\max(0, \log(N / (1 + N_w)))`, where :math:`N_w` nodes have it: words that all have
    say little. More than `ROOM` numbers are projected at random to `NARROW` columns, which keeps angles nearly as they
    are.
    """
    incidence, x = graph.incidence, graph.nodes
    sparse = x.layout == torch.sparse_csr
    if sparse:
        x = _weigh_counts(x)
    if graph.num_nodes * graph.node_width > ROOM and graph.node_width > NARROW:
        generator = torch.Generator().manual_seed(PROJECTION_SEED)
        projection = torch.randn(graph.node_width, NARROW, generator=generator) / NARROW**0.5
        x = matmul(x, projection.to(x.device, x.dtype))
    elif sparse:
        x = x.to_dense()
    if sparse:
        x = F.normalize(x, dim=1)
    ones = x.new_ones(incidence.num_edges) / incidence.multiplicity.to(x.dtype)  # A_v is binary
    operator = Operator(lambda rows: propagate_nodes(rows, ones, incidence, self_weight="one"))
    smooth: Tensor = PageRank(steps, teleport)(operator, x)
    return F.normalize(smooth, dim=1)


def _weigh_counts(x: Tensor) -> Tensor:
    """Sparse counts by inverse document frequency; what is no count, such as a weight that was given, as it is."""
    values = x.values()
    if not bool(((values >= 0) & (values == values.round())).all()):
        return x
    there = torch.bincount(x.col_indices()[values > 0], minlength=x.shape[1])
    weight = (x.shape[0] / (1 + there.to(values.dtype))).log().clamp(min=0)
    return map_values(x, lambda counts: counts * weight[x.col_indices()])
