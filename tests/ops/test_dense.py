"""Products of dense matrices: the same by oneDNN as by torch's own product, with every gradient."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from censnet.ops import dense
from censnet.ops.dense import affine

needs_avx512 = pytest.mark.skipif(not dense._has_wide(), reason="this CPU has no AVX-512")


def inputs(n: int = 91, i: int = 130, o: int = 150) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(0)
    shapes = (n, i), (i, o), (o,), (n, o)
    return tuple(torch.randn(shape, generator=generator, requires_grad=True) for shape in shapes)


def value_and_gradients(rows: Tensor, matrix: Tensor, bias: Tensor | None, more: Tensor | None) -> list[Tensor]:
    out = affine(rows, matrix, bias, more)
    given = [tensor for tensor in (rows, matrix, bias, more) if tensor is not None]
    return [out.detach(), *torch.autograd.grad(out.sin().sum(), given)]


@needs_avx512
@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("has_more", [False, True])
def test_both_ways_give_the_same(has_bias: bool, has_more: bool) -> None:
    rows, matrix, bias, more = inputs()
    given = rows, matrix, bias if has_bias else None, more if has_more else None
    assert dense._is_large(rows, matrix)
    found = value_and_gradients(*given)
    with torch.backends.mkldnn.flags(enabled=False):
        assert not dense._is_large(rows, matrix)
        expected = value_and_gradients(*given)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-3, rtol=1e-5)


@needs_avx512
def test_rows_and_gradients_may_be_transposed() -> None:
    rows, matrix, bias, more = inputs()
    transposed = rows.detach().t().contiguous().t().requires_grad_()
    assert not transposed.is_contiguous()
    expected = rows.double() @ matrix.double() + bias + more
    found = affine(transposed, matrix, bias, more.t().contiguous().t())
    torch.testing.assert_close(found.double(), expected, atol=1e-4, rtol=1e-5)
    (grad,) = torch.autograd.grad(affine(transposed, matrix).t().reshape(-1).square().sum(), transposed)
    near = 2 * (rows.double() @ matrix.double()) @ matrix.t().double()
    torch.testing.assert_close(grad.double(), near, atol=1e-2, rtol=1e-4)


@needs_avx512
def test_a_frozen_matrix_or_rows_without_a_gradient() -> None:
    rows, matrix, _, _ = (tensor.detach() for tensor in inputs())
    assert not affine(rows, matrix).requires_grad
    affine(rows, matrix.requires_grad_()).sum().backward()
    assert rows.grad is None
    torch.testing.assert_close(matrix.grad, rows.sum(0).unsqueeze(1).expand_as(matrix), atol=1e-4, rtol=1e-5)


def test_small_products_and_doubles_are_torchs_own() -> None:
    rows, matrix, bias, more = inputs()
    assert not dense._is_large(rows.double(), matrix.double())
    assert not dense._is_large(rows[:9], matrix)
    for given in ((rows[:9], matrix, bias, more[:9]), (rows.double(), matrix.double(), bias.double(), more.double())):
        torch.testing.assert_close(affine(*given), given[0] @ given[1] + given[2] + given[3], atol=1e-4, rtol=1e-5)


def test_no_rows() -> None:
    assert affine(torch.empty(0, 2000), torch.empty(2000, 3)).shape == (0, 3)
