"""Pseudo-labels: the formula against a slow reference, and what must hold for any graph."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from censnet.ops.graph import Graph
from censnet.selection import pseudo_labels as pseudo_label_module
from censnet.selection.pseudo_labels import propagate_features, pseudo_labels


def communities(seed: int = 0, count: int = 60, classes: int = 3) -> tuple[Graph, torch.Tensor]:
    """Nodes of classes with other features and more links within; parallel edges, loops, an isolated node."""
    rng = np.random.default_rng(seed)
    label = np.arange(count) % classes
    x = rng.normal(0, 1, (count, 6))
    x[np.arange(count), label] += 0.9
    first = rng.integers(0, count - 1, 2 * count)
    inside = (first + classes * rng.integers(1, count // classes, len(first))) % count
    second = np.where(rng.random(len(first)) < 0.35, inside, rng.integers(0, count - 1, len(first)))
    ends = np.stack([first, second])[:, (first != count - 1) & (second != count - 1)]
    ends = np.concatenate([ends, ends[:, :5], [[0, 1], [0, 1]]], axis=1)
    nodes = torch.from_numpy(x).float()
    return Graph(nodes, torch.ones(ends.shape[1], 1), torch.from_numpy(ends)), torch.from_numpy(label).float()


def parts(count: int = 60) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.arange(6), torch.arange(6, count // 2)


def slow_features(graph: Graph, x: np.ndarray) -> np.ndarray:
    adjacency = np.eye(graph.num_nodes)
    for first, second in graph.ends.t().tolist():
        adjacency[first, second] = adjacency[second, first] = 1
    degree = adjacency.sum(1)
    adjacency = adjacency / np.sqrt(np.outer(degree, degree))
    h = x
    for _ in range(10):
        h = 0.9 * adjacency @ h + 0.1 * x
    return h / np.linalg.norm(h, axis=1, keepdims=True)


def slow_pseudo_labels(h: np.ndarray, y: np.ndarray, train: list[int], tau: float, classes: int) -> np.ndarray:
    """One node and one class at a time, as printed."""
    n = len(h)
    q = np.zeros((n, classes))
    q[train, y[train]] = 1
    for _ in range(20):
        centroid = [sum(q[i, k] * h[i] for i in range(n)) for k in range(classes)]
        centroid = [c / np.linalg.norm(c) for c in centroid]
        s = np.array([[np.exp(tau * h[i] @ c) for c in centroid] for i in range(n)])
        s /= s.sum(1, keepdims=True)
        q = s / s.mean(0) ** 0.5
        q /= q.sum(1, keepdims=True)
        q[train] = np.eye(classes)[y[train]]
    return q


def slow_calibration(q: np.ndarray, y: np.ndarray, validation: list[int]) -> np.ndarray:
    right = (q[validation].argmax(1) == y[validation]).mean()

    def power(gamma: float) -> np.ndarray:
        raised = q**gamma
        return raised / raised.sum(1, keepdims=True)

    gammas = np.geomspace(2**-4, 2**8, 20_000)
    return power(min(gammas, key=lambda gamma: abs(power(gamma)[validation].max(1).mean() - right)))


@pytest.mark.slow
def test_pseudo_labels_are_those_of_the_slow_reference():
    graph, labels = communities()
    train, validation = parts()
    h, y = slow_features(graph, graph.nodes.double().numpy()), labels.long().numpy()
    torch.testing.assert_close(propagate_features(graph), torch.from_numpy(h).float(), atol=1e-5, rtol=1e-4)
    for tau in (8.0, 30.0):
        q = pseudo_labels(graph, labels, train, validation, 3, inverse_temperatures=[tau])
        expected = slow_calibration(slow_pseudo_labels(h, y, train.tolist(), tau, 3), y, validation.tolist())
        expected[train] = np.eye(3)[y[train]]
        torch.testing.assert_close(q, torch.from_numpy(expected).float(), atol=2e-3, rtol=0)


def test_of_several_temperatures_the_most_accurate_on_validation_is_selected():
    graph, labels = communities(seed=4)
    train, validation = parts()
    each = {
        tau: pseudo_labels(graph, labels, train, validation, 3, inverse_temperatures=[tau]) for tau in (1.0, 8.0, 200.0)
    }
    right = {tau: (q[validation].argmax(1) == labels[validation]).double().mean() for tau, q in each.items()}
    assert len(set(map(float, right.values()))) > 1, "or there would be nothing to select"
    best = pseudo_labels(graph, labels, train, validation, 3, inverse_temperatures=list(each))
    assert best.equal(each[max(right, key=right.__getitem__)])


def test_counts_are_weighted_by_inverse_document_frequency_and_normalized():
    graph, _ = communities()
    counts = torch.from_numpy(np.random.default_rng(1).poisson(0.5, (60, 8))).float()
    counts[:, 0] = 2
    sparse = Graph(counts.to_sparse_csr(), graph.edges, graph.ends)
    weight = np.log(60 / (1 + (counts > 0).sum(0).numpy())).clip(min=0)
    assert weight[0] == 0
    x = counts.numpy() * weight
    x = x / np.linalg.norm(x, axis=1, keepdims=True).clip(1e-12)
    torch.testing.assert_close(
        propagate_features(sparse), torch.from_numpy(slow_features(graph, x)).float(), atol=1e-5, rtol=1e-4
    )
    given = Graph((counts / 3).to_sparse_csr(), graph.edges, graph.ends)  # no counts, so as they are
    x = counts.numpy() / np.linalg.norm(counts.numpy(), axis=1, keepdims=True)
    torch.testing.assert_close(
        propagate_features(given), torch.from_numpy(slow_features(graph, x)).float(), atol=1e-5, rtol=1e-4
    )


def test_training_labels_stay_and_pseudo_labels_are_calibrated():
    graph, labels = communities()
    train, validation = parts()
    q = pseudo_labels(graph, labels, train, validation, 3)
    assert q[train].equal(torch.nn.functional.one_hot(labels[train].long(), 3).float())
    torch.testing.assert_close(q.sum(1), torch.ones(60))
    right = (q[validation].argmax(1) == labels[validation]).float().mean()
    assert 0.6 < right < 1
    torch.testing.assert_close(q[validation].amax(1).mean(), right, atol=1e-3, rtol=0)


def test_pseudo_labels_are_deterministic():
    graph, labels = communities()
    first = pseudo_labels(graph, labels, *parts(), 3)
    torch.manual_seed(77)
    assert pseudo_labels(graph, labels, *parts(), 3).equal(first)


def test_permuting_the_nodes_permutes_the_pseudo_labels():
    graph, labels = communities()
    train, validation = parts()
    order = torch.from_numpy(np.random.default_rng(2).permutation(60))
    place = order.argsort()
    other = Graph(graph.nodes[order], graph.edges, place[graph.ends])
    q = pseudo_labels(other, labels[order], place[train], place[validation], 3)
    torch.testing.assert_close(q, pseudo_labels(graph, labels, train, validation, 3)[order], atol=1e-4, rtol=0)


def test_a_class_without_a_training_node_has_probability_zero():
    graph, labels = communities()
    labels = torch.where(labels == 2, 4.0, labels)  # classes 2 and 3 have no row at all
    train = torch.tensor([0, 1, 3, 4])
    q = pseudo_labels(graph, labels, train, torch.arange(6, 30), 5)
    assert bool((q[:, 2:] == 0).all())
    torch.testing.assert_close(q.sum(1), torch.ones(60))


def test_unlabeled_nodes_neither_train_nor_select():
    graph, labels = communities()
    train, validation = parts()
    gaps = labels.clone()
    gaps[[2, 9, 40]] = torch.nan
    q = pseudo_labels(graph, gaps, train, validation, 3)
    without = train[train != 2], validation[validation != 9]
    assert q.equal(pseudo_labels(graph, labels, *without, 3))
    assert q[2].amax() < 1


def test_features_of_zero_and_isolated_nodes_give_finite_pseudo_labels():
    graph, labels = communities()
    nodes = graph.nodes.clone()
    nodes[59] = 0  # the isolated node
    lone = Graph(nodes, graph.edges, graph.ends)
    q = pseudo_labels(lone, labels, *parts(), 3)
    assert bool(q.isfinite().all())
    none = Graph(graph.nodes, graph.edges[:0], graph.ends[:, :0])
    assert bool(pseudo_labels(none, labels, *parts(), 3).isfinite().all())


@pytest.mark.parametrize("sparse", [True, False])
def test_wide_features_are_projected_and_angles_nearly_preserved(sparse, monkeypatch):
    graph, _ = communities()
    wide = torch.from_numpy(np.random.default_rng(3).poisson(0.2, (60, 2000))).float()
    wide = Graph(wide.to_sparse_csr() if sparse else wide, graph.edges, graph.ends)
    exact = propagate_features(wide)
    assert exact.shape == (60, 2000)
    monkeypatch.setattr(pseudo_label_module, "MAX_VALUES", 60 * 512)
    projected = propagate_features(wide)
    assert projected.shape == (60, 512)
    assert projected.equal(propagate_features(wide))
    torch.testing.assert_close(projected @ projected.t(), exact @ exact.t(), atol=0.2, rtol=0)


def test_pseudo_labels_need_labels():
    graph, labels = communities()
    train, validation = parts()
    with pytest.raises(ValueError, match="validation has no node with a label, expected some"):
        pseudo_labels(graph, labels, train, validation[:0], 3)
    with pytest.raises(ValueError, match="train has no node with a label, expected some"):
        pseudo_labels(graph, torch.full((60,), torch.nan), train, validation, 3)
    with pytest.raises(ValueError, match=r"labels has shape \(59,\), expected \(60,\)"):
        pseudo_labels(graph, labels[:59], train, validation, 3)
