"""CensNet-VAE against the printed equations, dense."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import adjacency, assert_near, features, incidences
from torch import Tensor

from censnet.nn import CensNetVAE, vae
from censnet.nn.vae import Latent, VariationalDecoder, reconstruction
from censnet.ops import Incidence, textbook

TANGLE = Incidence(torch.tensor([[0, 1, 2, 1, 3, 3, 3], [1, 2, 0, 0, 3, 0, 3]]), 5)  # parallel, loops, an isolated node


def dense_reconstruction(M: Tensor, incidence: Incidence, positive_weight: float) -> Tensor:
    return F.binary_cross_entropy_with_logits(
        M @ M.t(), adjacency(incidence), pos_weight=torch.tensor(positive_weight, dtype=torch.float64), reduction="sum"
    )


# -- the decoder ------------------------------------------------------------------------------------------------------


@given(incidence=incidences(), weight=st.sampled_from([1.0, 0.2, 7.5]), seed=st.integers(0, 2**16))
def test_the_reconstruction_is_the_dense_cross_entropy(incidence: Incidence, weight: float, seed: int) -> None:
    M, _ = features(incidence, 3, 1, seed)
    found_at, expected_at = M.clone().requires_grad_(), M.clone().requires_grad_()
    found = reconstruction(found_at, incidence, weight)
    expected = dense_reconstruction(expected_at, incidence, weight)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
    found.backward()
    expected.backward()
    assert_near(found_at.grad, expected_at.grad, 1e-10)


def test_two_nodes_by_hand() -> None:
    pair = Incidence(torch.tensor([[0], [1]]), 3)
    M = torch.tensor([[1.0], [2.0], [0.0]])
    softplus = [math.log1p(math.exp(x)) for x in (-1, -2, -2, -4, 0, 0, 0, 0, 0)]  # linked: softplus(-x)
    torch.testing.assert_close(reconstruction(M, pair), torch.tensor(sum(softplus)))


@pytest.mark.parametrize("block", [1, 5, 7, 11, 25, 2**24])
def test_blocks_of_any_size_give_the_same(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vae, "BLOCK", block)
    M, _ = features(TANGLE, 3, 1)
    at = M.clone().requires_grad_()
    reconstruction(at, TANGLE, 2.0).backward()
    other = M.clone().requires_grad_()
    expected = dense_reconstruction(other, TANGLE, 2.0)
    expected.backward()
    torch.testing.assert_close(reconstruction(M, TANGLE, 2.0), expected.detach())
    assert_near(at.grad, other.grad, 1e-12)


@pytest.mark.parametrize("weight", [1.0, 3.0])
def test_gradients_pass_gradcheck(weight: float) -> None:
    M, _ = features(TANGLE, 3, 1)
    assert torch.autograd.gradcheck(lambda M: reconstruction(M, TANGLE, weight), M.requires_grad_())


def test_large_products_neither_overflow_nor_vanish() -> None:
    M = torch.tensor([[300.0], [-300.0], [0.0]], requires_grad=True)
    loss = reconstruction(M, Incidence(torch.tensor([[0], [1]]), 3))
    torch.testing.assert_close(loss.detach(), torch.tensor(2 * 90_000 + 5 * math.log(2)))
    loss.backward()
    assert M.grad.isfinite().all()


@pytest.mark.parametrize(("dtype", "relative"), [(torch.float32, 1e-5), (torch.bfloat16, 3e-2)])
def test_low_precision_is_close(dtype: torch.dtype, relative: float) -> None:
    M = features(TANGLE, 3, 1)[0].to(dtype)
    found = reconstruction(M, TANGLE)
    assert found.dtype == dtype
    torch.testing.assert_close(found.double(), dense_reconstruction(M.double(), TANGLE, 1.0), rtol=relative, atol=0)


# -- the distribution -------------------------------------------------------------------------------------------------


def test_the_divergence_is_that_of_gaussians() -> None:
    mean, log_std = features(TANGLE, 4, 4)
    log_std = log_std[:5]
    gaussian = torch.distributions.Normal(mean, log_std.exp())
    standard = torch.distributions.Normal(torch.zeros_like(mean), torch.ones_like(mean))
    expected = torch.distributions.kl_divergence(gaussian, standard).sum()
    torch.testing.assert_close(Latent(mean, log_std).kl_divergence(), expected)
    assert Latent(torch.zeros(3, 2), torch.zeros(3, 2)).kl_divergence() == 0


def test_samples_differ_by_seed_and_have_the_right_mean_and_deviation() -> None:
    count = 20_000
    mean, log_std = torch.tensor([[1.0, -2.0]]).expand(count, 2), torch.tensor([[0.5, -1.0]]).expand(count, 2)
    latent = Latent(mean, log_std)
    torch.manual_seed(0)
    first = latent.sample()
    assert not latent.sample().equal(first)
    torch.manual_seed(0)
    assert latent.sample().equal(first)
    std = log_std[0].exp()
    assert bool(((first.mean(0) - mean[0]).abs() < 5 * std / count**0.5).all())
    assert bool(((first.std(0) / std - 1).abs() < 5 / (2 * count) ** 0.5).all())


def test_a_gradient_passes_through_a_sample() -> None:
    mean, log_std = torch.zeros(3, 2, requires_grad=True), torch.zeros(3, 2, requires_grad=True)
    sample = Latent(mean, log_std).sample()
    sample.sum().backward()
    torch.testing.assert_close(mean.grad, torch.ones(3, 2))
    torch.testing.assert_close(log_std.grad, sample.detach())


# -- the decoder ------------------------------------------------------------------------------------------------------


@given(incidence=incidences(), seed=st.integers(0, 2**16))
@settings(max_examples=20)
def test_the_decoder_is_the_printed_equation_over_given_nodes(incidence: Incidence, seed: int) -> None:
    torch.manual_seed(seed)
    decoder = VariationalDecoder(4, 3).double()
    nodes, _ = features(incidence, 4, 1, seed)
    A = textbook.normalize(textbook.node_adjacency(textbook.incidence_matrix(incidence.ends, incidence.num_nodes)))
    found = decoder.encode(nodes, incidence)
    assert_near(found.mean.detach(), (A @ nodes @ decoder.weight[:, :3]).detach(), 1e-10)
    assert_near(found.log_std.detach(), (A @ nodes @ decoder.weight[:, 3:]).detach(), 1e-10)


def test_the_decoder_shows_its_widths_and_names_nodes_of_another() -> None:
    decoder = VariationalDecoder(4, 3)
    assert repr(decoder) == "VariationalDecoder(4 -> 3)"
    with pytest.raises(ValueError, match=r"^nodes has shape \(5, 2\), expected \(5, 4\): \(N, node_width\)"):
        decoder.encode(torch.ones(5, 2), TANGLE)


# -- the encoder ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["N", "EN", "NEN"])
@given(incidence=incidences(), seed=st.integers(0, 2**16))
@settings(max_examples=20)
def test_the_encoder_is_the_printed_equation(word: str, incidence: Incidence, seed: int) -> None:
    torch.manual_seed(seed)
    model = CensNetVAE(4, 2, hidden=6, latent=3, layers=word).double()
    nodes, edges = features(incidence, 4, 2, seed)
    T = textbook.incidence_matrix(incidence.ends, incidence.num_nodes)
    A = textbook.normalize(textbook.node_adjacency(T))
    found = model(nodes, edges, incidence)
    for letter, layer in zip(word, model.encoder.layers, strict=True):
        if letter == "N":
            S = textbook.node_operator(T, (edges @ layer.gate_weight).squeeze(1))
            nodes = (S @ nodes @ layer.weight + layer.bias).relu()
        else:
            S = textbook.edge_operator(T, (nodes @ layer.gate_weight).squeeze(1))
            edges = (S @ edges @ layer.weight + layer.bias).relu()
    assert_near(found.mean.detach(), (A @ nodes @ model.decoder.weight[:, :3]).detach(), 1e-10)
    assert_near(found.log_std.detach(), (A @ nodes @ model.decoder.weight[:, 3:]).detach(), 1e-10)


def test_sparse_nodes_are_as_dense_ones() -> None:
    model = CensNetVAE(4, 2, layers="EN").double()
    nodes, edges = features(TANGLE, 4, 2)
    expected, found = model(nodes, edges, TANGLE), model(nodes.to_sparse_csr(), edges, TANGLE)
    torch.testing.assert_close(found.mean, expected.mean)
    torch.testing.assert_close(found.log_std, expected.log_std)


def test_the_loss_is_the_negative_bound_of_one_sample_for_each_node() -> None:
    model = CensNetVAE(4, 2).double()
    latent = model(*features(TANGLE, 4, 2), TANGLE)
    torch.manual_seed(1)
    M = latent.sample()
    expected = (dense_reconstruction(M, TANGLE, 3.0) + latent.kl_divergence()) / 5
    torch.manual_seed(1)
    torch.testing.assert_close(model.loss(latent, TANGLE, 3.0), expected)


def test_the_loss_falls() -> None:
    torch.manual_seed(0)
    ends = torch.randint(15, (2, 60))
    graph = Incidence(torch.cat([ends, ends + 15], dim=1), 30)
    nodes, edges = torch.eye(30), torch.ones(120, 1)
    model = CensNetVAE(30, 1, hidden=16, latent=8)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = model.loss(model(nodes, edges, graph), graph)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert sum(losses[-5:]) < 0.8 * sum(losses[:5])
    M = model(nodes, edges, graph).mean.detach()
    likely = M @ M.t()
    assert float(likely[:15, :15].mean()) > float(likely[:15, 15:].mean())


def test_reset_parameters_restarts() -> None:
    torch.manual_seed(0)
    fresh = CensNetVAE(4, 2, hidden=6, latent=3).state_dict()
    torch.manual_seed(1)
    other = CensNetVAE(4, 2, hidden=6, latent=3)
    assert not other.decoder.weight.equal(fresh["decoder.weight"])
    torch.manual_seed(0)
    other.reset_parameters()
    assert all(other.state_dict()[name].equal(value) for name, value in fresh.items())
    bound = (6 / (6 + 3)) ** 0.5  # of each half
    assert float(other.decoder.weight.detach().abs().max()) <= bound


@pytest.mark.parametrize("word", ["E", "NE"])
def test_layers_that_do_not_end_in_nodes_are_named(word: str) -> None:
    with pytest.raises(
        ValueError, match=rf"^layers is '{word}', expected a sequence of N and E that ends in N: the lat"
    ):
        CensNetVAE(4, 2, layers=word)


def test_layers_of_other_letters_are_named() -> None:
    with pytest.raises(ValueError, match=r"^layers is 'XN', expected a sequence of N and E"):
        CensNetVAE(4, 2, layers="XN")


def test_an_embedding_of_other_nodes_is_named() -> None:
    with pytest.raises(ValueError, match=r"^embedding has shape \(7, 3\), expected \(5, \*\)"):
        reconstruction(torch.ones(7, 3), TANGLE)
