"""Dropout by random bytes: its rate, its mean, its mask, and that no bit of the generator is stuck."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from censnet.nn import Dropout
from censnet.nn.dropout import dropout

RATES = (0.1, 0.5, 0.9)


def zeros(p: float, *shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    """Where ones were dropped, as 0 and 1."""
    torch.manual_seed(seed)
    return (dropout(torch.ones(*shape, dtype=dtype), p) == 0).double()


@pytest.mark.parametrize("p", [*RATES, 0.25, 1 / 3, 1e-3, 0.999])
def test_the_rate_and_the_mean_are_right(p: float) -> None:
    count = 400_000
    sigma = (p * (1 - p) / count) ** 0.5
    assert abs(float(zeros(p, count).mean()) - p) < 5 * sigma + 2**-17
    torch.manual_seed(1)
    out = dropout(torch.ones(count, dtype=torch.float64), p)
    assert abs(float(out.mean()) - 1) < 5 * sigma / (1 - p)
    assert len(out.unique()) == 2
    assert abs(float(out.max()) * (1 - p) - 1) < 2**-16 / (1 - p)


@pytest.mark.parametrize("p", RATES)
def test_every_place_in_a_word_has_the_same_rate(p: float) -> None:
    """A generator whose top bit is always 0 would drop more, or less, at every eighth byte or fourth pair of bytes."""
    count = 100_000
    each = zeros(p, count, 8).mean(0)
    assert bool(((each - p).abs() < 5 * (p * (1 - p) / count) ** 0.5 + 2**-17).all())


@pytest.mark.parametrize("p", RATES)
def test_places_are_independent(p: float) -> None:
    count = 100_000
    mask = zeros(p, count, 8) - p
    correlation = mask.t() @ mask / count / (p * (1 - p)) - torch.eye(8, dtype=torch.float64)
    assert float(correlation.fill_diagonal_(0).abs().max()) < 5.5 / count**0.5
    neighbors = mask.flatten()
    assert abs(float((neighbors[:-8] * neighbors[8:]).mean())) / (p * (1 - p)) < 5 / (8 * count) ** 0.5


@pytest.mark.parametrize("p", RATES)
def test_one_seed_gives_one_mask(p: float) -> None:
    first = zeros(p, 1000, seed=3)
    assert zeros(p, 1000, seed=3).equal(first)
    assert not zeros(p, 1000, seed=4).equal(first)
    torch.manual_seed(3)
    x = torch.ones(1000)
    assert not dropout(x, p).equal(dropout(x, p))


@pytest.mark.parametrize("p", RATES)
def test_the_gradient_has_the_mask_of_the_value(p: float) -> None:
    x = torch.randn(40, 7, dtype=torch.float64, requires_grad=True)
    out = dropout(x, p)
    grad = torch.randn(40, 7, dtype=torch.float64)
    (found,) = torch.autograd.grad(out, x, grad)
    torch.testing.assert_close(found, grad * (out / x).detach())
    assert found.eq(0).equal(out.eq(0))


def test_a_gradient_that_is_expanded_or_transposed_is_weighed_by_place() -> None:
    x = torch.ones(6, 5, requires_grad=True)
    out = dropout(x, 0.5)
    assert torch.autograd.grad(out.sum(), x, retain_graph=True)[0].equal(out.detach())
    grad = torch.arange(30.0).reshape(5, 6).t()
    assert torch.autograd.grad(out, x, grad)[0].equal(grad * out.detach())


def test_what_comes_in_is_not_changed() -> None:
    x = torch.ones(100)
    dropout(x, 0.5)
    assert x.equal(torch.ones(100))


@pytest.mark.parametrize("p", RATES)
def test_eval_and_zero_are_the_identity_and_one_is_zero(p: float) -> None:
    x = torch.randn(10, 3)
    layer = Dropout(p)
    assert not layer(x).equal(x)
    layer.eval()
    assert layer(x) is x
    assert dropout(x, p, training=False) is x
    assert Dropout(0.0)(x) is x
    assert dropout(x, 1.0).equal(torch.zeros(10, 3))
    assert Dropout(1.0).eval()(x) is x


@pytest.mark.parametrize("p", RATES)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (9,), (3, 5), (0, 4), (2, 3, 5), (1, 1)])
def test_any_size(shape: tuple[int, ...], p: float) -> None:
    x = torch.full(shape, 3.0, requires_grad=True)
    out = dropout(x, p)
    assert out.shape == shape
    kept = out != 0
    torch.testing.assert_close(out[kept], torch.full_like(out[kept], 3 / (1 - p)), rtol=1e-3, atol=0)
    (grad,) = torch.autograd.grad(out, x, torch.ones_like(out))
    assert grad.ne(0).equal(kept)


def test_every_element_of_an_odd_size_is_dropped_at_the_rate() -> None:
    torch.manual_seed(0)
    masks = torch.stack([dropout(torch.ones(11), 0.5) == 0 for _ in range(4000)]).double()
    assert bool(((masks.mean(0) - 0.5).abs() < 5 * 0.5 / 4000**0.5).all())


def test_rows_that_are_not_contiguous() -> None:
    x = torch.randn(9, 5)
    for view in (x.t(), x[::2], x[:, 1:3], torch.randn(1, 4).expand(6, 4)):
        torch.manual_seed(0)
        found = dropout(view, 0.5)
        torch.manual_seed(0)
        assert found.equal(dropout(view.contiguous(), 0.5))
        assert found.ne(0).logical_or(found == 0).all()
        assert found[found != 0].equal(2 * view[found != 0])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("p", RATES)
def test_other_precisions(dtype: torch.dtype, p: float) -> None:
    x = torch.ones(10_001, dtype=dtype, requires_grad=True)
    out = dropout(x, p)
    assert out.dtype == dtype
    (grad,) = torch.autograd.grad(out.sum(), x)
    assert grad.dtype == dtype
    assert grad.equal(out.detach())
    assert abs(float((out == 0).double().mean()) - p) < 5 * (p * (1 - p) / 10_001) ** 0.5
    torch.testing.assert_close(out.max().detach(), torch.tensor(1 / (1 - p), dtype=dtype), rtol=1e-2, atol=0)


@pytest.mark.parametrize("p", [-0.1, 1.1, float("nan")])
def test_what_is_not_a_probability_is_named(p: float) -> None:
    with pytest.raises(ValueError, match=rf"^p is {p}, expected a probability from 0 to 1$"):
        Dropout(p)
    with pytest.raises(ValueError, match=rf"^p is {p}, expected a probability from 0 to 1$"):
        dropout(torch.ones(3), p)


def test_the_repr_says_the_rate() -> None:
    assert repr(Dropout(0.3)) == "Dropout(p=0.3)"
