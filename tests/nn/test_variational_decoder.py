"""The loss of links against the dense one; the estimate from sampled pairs against the sum over all."""

from __future__ import annotations

import time

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import adjacency, incidences, within
from torch import Tensor

from censnet.nn import vae
from censnet.nn.vae import CensNetVAE, Latent, VariationalDecoder, sampled_reconstruction
from censnet.ops import Incidence, pairs
from censnet.ops.graph import Graph
from censnet.ops.pairs import count_ordered_pairs, sample_ordered_pairs

TANGLE = Incidence(torch.tensor([[0, 1, 2, 1, 3, 3, 3], [1, 2, 0, 0, 3, 0, 3]]), 5)  # parallel, loops, an isolated node
EMPTY = torch.zeros(2, 0, dtype=torch.long)
UNION = Incidence(torch.tensor([[0, 1, 3, 3, 4], [2, 1, 4, 5, 3]]), 7, torch.tensor([0, 0, 0, 1, 1, 1, 2]), 3)
SHUFFLED = Incidence(torch.tensor([[0, 5, 2, 5], [2, 6, 4, 3]]), 7, torch.tensor([1, 0, 1, 2, 1, 2, 2]), 3)


def dense_loss(M: Tensor, incidence: Incidence, weight: float) -> Tensor:
    """The weighted cross entropy over all pairs within one graph, by matrices."""
    each = F.binary_cross_entropy_with_logits(
        M @ M.t(), adjacency(incidence), pos_weight=torch.tensor(weight, dtype=torch.float64), reduction="none"
    )
    return (each * within(incidence)).sum()


def embedding(incidence: Incidence, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(incidence.num_nodes, 3, generator=generator, dtype=torch.float64)


def graph_of(incidence: Incidence) -> Graph:
    nodes, edges = torch.ones(incidence.num_nodes, 1), torch.ones(incidence.num_edges, 1)
    return Graph(nodes, edges, incidence.ends, incidence.owner, incidence.num_graphs)


def frozen(M: Tensor) -> Latent:
    """A distribution that always gives M, but for rounding."""
    return Latent(M, torch.full_like(M, -40.0))


# -- the parts ---------------------------------------------------------------------------------------------------------


@given(incidence=incidences(), weight=st.sampled_from([1.0, 0.2, 7.5]), seed=st.integers(0, 2**16))
def test_with_all_pairs_sampled_the_loss_is_the_dense_one(incidence: Incidence, weight: float, seed: int) -> None:
    count, M = count_ordered_pairs(incidence), embedding(incidence, seed)
    if count == 0:
        return
    found = sampled_reconstruction(M, incidence, sample_ordered_pairs(incidence, count), weight)
    torch.testing.assert_close(found, dense_loss(M, incidence, weight), rtol=1e-10, atol=1e-10)


@pytest.mark.slow
def test_the_estimate_from_samples_and_its_gradient_are_right_on_average(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "FEW_PAIRS", 0)
    for incidence in (TANGLE, UNION):
        M = embedding(incidence)
        torch.manual_seed(0)
        values, slopes = [], []
        for _ in range(1000):
            at = M.clone().requires_grad_()
            loss = sampled_reconstruction(at, incidence, sample_ordered_pairs(incidence, 6), 2.0)
            loss.backward()
            assert at.grad is not None
            values.append(loss.detach())
            slopes.append(at.grad)
        at = M.clone().requires_grad_()
        dense_loss(at, incidence, 2.0).backward()
        expected = dense_loss(M, incidence, 2.0)
        drawn = torch.stack(values)
        assert drawn.std() > 0
        assert float((drawn.mean() - expected).abs()) < 5 * float(drawn.std()) / 1000**0.5
        slope = torch.stack(slopes)
        assert bool(((slope.mean(0) - at.grad).abs() <= 5 * slope.std(0) / 1000**0.5 + 1e-12).all())


# -- the decoder -------------------------------------------------------------------------------------------------


def test_the_loss_is_that_of_the_auto_encoder_for_each_pair() -> None:
    model, decoder = CensNetVAE(4, 2, hidden=6, latent=3).double(), VariationalDecoder(6, 3, 1.0).double()
    decoder.load_state_dict(model.decoder.state_dict())
    nodes, edges = torch.randn(5, 4, dtype=torch.float64), torch.randn(7, 2, dtype=torch.float64)
    latent = model(nodes, edges, TANGLE)
    found = decoder(*model.encoder(nodes, edges, TANGLE), graph_of(TANGLE))
    torch.testing.assert_close(found.mean, latent.mean)
    torch.testing.assert_close(found.log_std, latent.log_std)
    torch.manual_seed(0)
    expected = model.loss(latent, TANGLE) * 5 / 25
    torch.manual_seed(0)
    torch.testing.assert_close(decoder.loss(found, graph_of(TANGLE)), expected)


@pytest.mark.parametrize("incidence", [TANGLE, UNION, SHUFFLED], ids=["one graph", "union", "shuffled"])
@pytest.mark.parametrize("weight", [1.0, 4.0, "balanced"])
def test_the_weights_of_the_pairs_have_mean_1(incidence: Incidence, weight: float | str) -> None:
    decoder = VariationalDecoder(6, 3, weight)  # type: ignore[arg-type]
    M = embedding(incidence)
    latent = Latent(M, torch.zeros_like(M))
    torch.manual_seed(0)
    sample = latent.sample()
    torch.manual_seed(0)
    found = decoder.loss(latent, graph_of(incidence))
    linked, count = (float((within(incidence) * x).sum()) for x in (adjacency(incidence), torch.ones(1)))
    a = (count - linked) / linked if weight == "balanced" else float(weight)
    weights = (1 + (a - 1) * adjacency(incidence)) * within(incidence)
    scale = count / weights.sum()
    expected = (scale * dense_loss(sample, incidence, a) + latent.kl_divergence()) / count
    torch.testing.assert_close(found, expected)
    if weight == "balanced":
        torch.testing.assert_close((weights * adjacency(incidence)).sum() * 2, weights.sum())


@given(incidence=incidences(), weight=st.sampled_from([1.0, "balanced"]))
@settings(max_examples=50)
def test_any_graph_has_a_finite_loss_and_gradient(incidence: Incidence, weight: float) -> None:
    decoder = VariationalDecoder(4, 2, weight)
    nodes = torch.randn(incidence.num_nodes, 4, requires_grad=True)
    if incidence.num_nodes == 0:
        return  # no graph
    loss = decoder.loss(decoder.encode(nodes, incidence), graph_of(incidence))
    loss.backward()
    assert loss.isfinite()
    assert nodes.grad is not None
    assert nodes.grad.isfinite().all()


@pytest.mark.parametrize("num_nodes", [1, 4])
def test_graphs_without_links_have_a_loss(num_nodes: int) -> None:
    decoder = VariationalDecoder(4, 2, "balanced")
    empty = graph_of(Incidence(EMPTY, num_nodes))
    assert decoder.loss(decoder(torch.randn(num_nodes, 4), empty.edges, empty), empty).isfinite()


def test_a_large_graph_is_estimated_from_sampled_pairs_in_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 200_000
    ring = torch.stack([torch.arange(count), (torch.arange(count) + 1) % count])
    graph, decoder = graph_of(Incidence(ring, count)), VariationalDecoder(4, 8, "balanced")
    monkeypatch.setattr(vae, "reconstruction", lambda *_: pytest.fail("all pairs are decoded"))
    nodes = torch.randn(count, 4, requires_grad=True)
    start = time.perf_counter()
    decoder.loss(decoder(nodes, graph.edges, graph), graph).backward()
    assert time.perf_counter() - start < 20  # all pairs would take hours
    assert nodes.grad is not None
    assert nodes.grad.isfinite().all()


def test_sampled_and_all_pairs_agree_on_a_graph_of_some_size(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    incidence = Incidence(torch.randint(600, (2, 4000)), 600)
    latent = frozen(0.3 * torch.randn(600, 4))
    decoder = VariationalDecoder(4, 4, "balanced")
    expected = decoder.loss(latent, graph_of(incidence)) - latent.kl_divergence() / 600**2
    monkeypatch.setattr(vae, "ALL_PAIRS", 0)
    monkeypatch.setattr(pairs, "FEW_PAIRS", 0)
    drawn = torch.stack(
        [decoder.loss(latent, graph_of(incidence)) - latent.kl_divergence() / 600**2 for _ in range(20)]
    )
    assert drawn.unique().numel() > 1
    torch.testing.assert_close(drawn.mean(), expected, rtol=0.01, atol=0)


def test_scores_are_inner_products_of_the_means() -> None:
    M = embedding(TANGLE)
    first, second = asked = torch.tensor([[0, 3, 2], [1, 3, 4]])
    latent = Latent(M, torch.zeros_like(M))
    found = VariationalDecoder(6, 3).score(latent, asked)
    torch.testing.assert_close(found, (M @ M.t())[first, second])
    assert VariationalDecoder(6, 3).score(latent, asked.flip(0)).equal(found)
    assert VariationalDecoder(6, 3).score(latent, asked[:, :0]).shape == (0,)
    with pytest.raises(ValueError, match=r"pairs\[0, 0\] is 9, expected a node from 0 to 4"):
        VariationalDecoder(6, 3).score(Latent(M, M), torch.tensor([[9], [0]]))
    with pytest.raises(ValueError, match=r"^pairs has shape \(4, 2\), expected \(2, \*\): \(2, P\), one column for"):
        VariationalDecoder(6, 3).score(Latent(M, M), torch.zeros(4, 2, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"^pairs has dtype torch.float32 and holds NaN at \(1, 0\), expected whole"):
        VariationalDecoder(6, 3).score(Latent(M, M), torch.tensor([[0.0], [float("nan")]]))


def test_the_loss_falls_and_hidden_links_are_found() -> None:
    torch.manual_seed(0)
    ends = torch.randint(15, (2, 90))
    graph = graph_of(Incidence(torch.cat([ends, ends + 15], dim=1), 30))
    body, decoder = torch.nn.Linear(30, 16), VariationalDecoder(16, 8, "balanced")
    optimizer = torch.optim.Adam([*body.parameters(), *decoder.parameters()], lr=0.02)
    losses = []
    for _ in range(80):
        optimizer.zero_grad()
        latent = decoder(body(torch.eye(30)).relu(), graph.edges, graph)
        loss = decoder.loss(latent, graph)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert sum(losses[-5:]) < 0.9 * sum(losses[:5])
    every = torch.combinations(torch.arange(30)).t()
    same = (every < 15).all(0) | (every >= 15).all(0)
    logits = decoder.score(decoder(body(torch.eye(30)).relu(), graph.edges, graph), every)
    assert logits[same].mean() > logits[~same].mean() + 1


def test_reset_parameters_restarts() -> None:
    torch.manual_seed(0)
    fresh = VariationalDecoder(6, 3).state_dict()
    decoder = VariationalDecoder(6, 3)
    torch.manual_seed(0)
    decoder.reset_parameters()
    assert list(fresh) == ["weight"]
    assert decoder.weight.equal(fresh["weight"])


@pytest.mark.parametrize("weight", [0.0, -1.0, float("inf"), float("nan"), "even"])
def test_a_weight_that_makes_no_sense_is_named(weight: object) -> None:
    with pytest.raises(ValueError, match=r"^positive_weight is .*, expected a number above 0 or 'balanced'"):
        VariationalDecoder(6, 3, weight)  # type: ignore[arg-type]
