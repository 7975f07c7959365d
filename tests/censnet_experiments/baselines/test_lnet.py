"""The Lanczos iteration against dense eigendecompositions, and the two networks that are built on it."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis.strategies import integers
from torch.func import vmap

from censnet.ops.graph import Graph
from censnet_experiments.baselines.convolutions import with_loops
from censnet_experiments.baselines.lnet import AdaLNet, LNet, as_matrix, product, ritz, start_vector, tridiagonalize
from censnet_experiments.data import NodeData


def random_graph(seed: int, nodes: int = 12) -> Graph:
    draw = torch.Generator().manual_seed(seed)
    pairs = torch.combinations(torch.arange(nodes))
    ends = pairs[torch.rand(len(pairs), generator=draw) < 0.35].t().contiguous()
    return Graph(torch.rand(nodes, 5, generator=draw).double(), torch.ones(ends.shape[1], 1).double(), ends)


def dense_affinity(graph: Graph) -> torch.Tensor:
    A = torch.eye(graph.num_nodes, dtype=torch.float64)
    A[graph.ends[0], graph.ends[1]] = 1
    A[graph.ends[1], graph.ends[0]] = 1
    root = A.sum(1).rsqrt()
    return root[:, None] * A * root


@pytest.mark.slow
@given(seed=integers(0, 2**16))
def test_all_steps_give_the_matrix_itself(seed: int) -> None:
    """With as many steps as there are nodes and a start that touches every eigenvector, Q T Q^t is S."""
    graph = random_graph(seed)
    S = dense_affinity(graph)
    values, vectors = torch.linalg.eigh(S)
    start = start_vector(12)
    Q, T = tridiagonalize(lambda x: S @ x, start, 12)
    found, V = ritz(Q, T)
    distinct = values[1:] - values[:-1] > 1e-6
    if bool(distinct.all()) and float((vectors.t() @ start).abs().min()) > 1e-3:
        torch.testing.assert_close(Q @ T @ Q.t(), S, atol=1e-7, rtol=0)
        torch.testing.assert_close(found, values, atol=1e-7, rtol=0)
        torch.testing.assert_close(V @ torch.diag(found) @ V.t(), S, atol=1e-7, rtol=0)


@given(seed=integers(0, 2**16), steps=integers(1, 8))
def test_few_steps_project_onto_the_krylov_space(seed: int, steps: int) -> None:
    """Q^t S Q = T with orthonormal columns, and powers below K are exact on the start vector."""
    graph = random_graph(seed)
    S, start = dense_affinity(graph), start_vector(12)
    Q, T = tridiagonalize(lambda x: S @ x, start, steps)
    kept = Q[:, Q.norm(dim=0) > 0]
    torch.testing.assert_close(kept.t() @ kept, torch.eye(kept.shape[1], dtype=torch.float64), atol=1e-8, rtol=0)
    torch.testing.assert_close(Q.t() @ S @ Q, T, atol=1e-8, rtol=0)
    for power in range(steps):
        exact = torch.linalg.matrix_power(S, power) @ start
        torch.testing.assert_close(Q @ torch.linalg.matrix_power(T, power) @ (Q.t() @ start), exact, atol=1e-7, rtol=0)


def test_ritz_values_approach_the_ends_of_the_spectrum() -> None:
    graph = random_graph(3, nodes=60)
    S = dense_affinity(graph)
    values, _ = ritz(*tridiagonalize(lambda x: S @ x, start_vector(60), 20))
    exact = torch.linalg.eigvalsh(S)
    torch.testing.assert_close(values[-1], exact[-1], atol=1e-6, rtol=0)
    torch.testing.assert_close(values[0], exact[0], atol=1e-3, rtol=0)


def test_a_space_that_ends_early_is_filled_with_zeros() -> None:
    """The identity has no second Krylov vector."""
    Q, T = tridiagonalize(lambda x: x, torch.tensor([3.0, 4.0], dtype=torch.float64), 2)
    torch.testing.assert_close(Q, torch.tensor([[0.6, 0.0], [0.8, 0.0]], dtype=torch.float64))
    torch.testing.assert_close(T, torch.tensor([[1.0, 0.0], [0.0, 0.0]], dtype=torch.float64))


def test_the_iteration_can_be_differentiated_and_batched() -> None:
    base, start = dense_affinity(random_graph(5, nodes=6)), start_vector(6)

    def trace(scale: torch.Tensor) -> torch.Tensor:
        Q, T = tridiagonalize(lambda x: scale * (base @ x), start, 3)
        return (Q @ T @ T).sum()

    assert torch.autograd.gradcheck(trace, torch.tensor(0.7, dtype=torch.float64, requires_grad=True))
    scales = torch.tensor([0.5, 0.9], dtype=torch.float64)
    torch.testing.assert_close(vmap(trace)(scales), torch.stack([trace(scale) for scale in scales]))


def test_short_scales_are_the_powers_of_the_affinity() -> None:
    """With one short scale and filters of 0, a layer of LNet is S^p X W + b."""
    graph = random_graph(7)
    model = LNet(graph, 4, short=[3], long=[5], steps=4, dropout=0.0).double()
    out = model.first(graph.nodes, as_matrix(*with_loops(graph)), lambda x, scale: torch.zeros_like(x))
    W = model.first.mix.weight.t()[:, :32]
    expected = torch.linalg.matrix_power(dense_affinity(graph), 3) @ graph.nodes @ W + model.first.bias
    torch.testing.assert_close(out, expected)


def test_a_product_of_many_networks_is_that_of_each() -> None:
    """Values and gradients under vmap are those of the dense matrix."""
    graph = random_graph(3)
    S, dense_S = as_matrix(*with_loops(graph)), dense_affinity(graph)
    x = torch.randn(5, graph.num_nodes, 4, dtype=torch.float64, requires_grad=True)
    out = torch.vmap(lambda own: product(S, own))(x)
    torch.testing.assert_close(out, dense_S @ x)
    weight = torch.randn_like(out)
    (gradient,) = torch.autograd.grad((out * weight).sum(), x)
    torch.testing.assert_close(gradient, dense_S @ weight)


def test_long_scales_of_lnet_are_functions_of_the_spectrum() -> None:
    """With every Ritz pair and a filter that gives the power back, the long scale is the power of the affinity."""
    graph = random_graph(11)
    model = LNet(graph, 3, hidden=4, short=[], long=[2], steps=12, dropout=0.0).double()
    for number in range(2):
        model.filters[number] = torch.nn.Identity()
    nodes, *rest = model.inputs(graph)
    values, vectors = rest[-2:]
    S = dense_affinity(graph)
    torch.testing.assert_close(vectors @ torch.diag(values) @ vectors.t(), S, atol=1e-7, rtol=0)
    hidden = (S @ S @ nodes @ model.first.mix.weight.t() + model.first.bias).relu()
    expected = S @ S @ hidden @ model.second.mix.weight.t() + model.second.bias
    torch.testing.assert_close(model(nodes, *rest), expected, atol=1e-7, rtol=0)


def test_the_learned_affinity_is_symmetric_and_normalized(citations: NodeData) -> None:
    model = AdaLNet(citations.graph, 3, steps=3, long=[2])
    nodes, _, index, _ = model.inputs(citations.graph)
    S = torch.zeros(60, 60)
    S[index[0], index[1]] = model.learned_affinity(nodes, index).detach()
    torch.testing.assert_close(S, S.t())
    assert float(torch.linalg.eigvalsh(S).abs().max()) <= 1 + 1e-5
    assert bool((S.diagonal() > 0).all())


def test_the_gradient_of_adalnet_reaches_the_embedding(citations: NodeData) -> None:
    """Once the filters have left 0, where they start."""
    model = AdaLNet(citations.graph, 3, steps=3, long=[2], dropout=0.0)
    torch.nn.init.ones_(model.filters[0][-1].bias)
    model(*model.inputs(citations.graph)).square().sum().backward()
    assert float(model.embed.weight.grad.abs().max()) > 0


def test_no_step_is_refused() -> None:
    with pytest.raises(ValueError, match="steps is 0, expected at least 1"):
        tridiagonalize(lambda x: x, torch.ones(2), 0)
