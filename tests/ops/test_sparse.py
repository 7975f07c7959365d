"""Sparse features times a matrix, with the transpose kept."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import assert_near, value_and_gradients
from torch import Tensor

from censnet.ops import sparse
from censnet.ops.segments import LONGEST
from censnet.ops.sparse import matmul

pytestmark = pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")


def features(rows: int, columns: int, density: float = 0.3, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(rows, columns, generator=generator, dtype=torch.float64)
    return values * (torch.rand(rows, columns, generator=generator) < density)


def check(dense: Tensor, width: int, dtype: torch.dtype = torch.float64, relative: float = 1e-12) -> None:
    matrix = torch.randn(dense.shape[1], width, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    dense, matrix = dense.to(dtype), matrix.to(dtype)
    kept = dense.to_sparse_csr()
    expected = value_and_gradients(lambda W: dense.double() @ W, matrix.double())
    for mine, theirs in zip(value_and_gradients(lambda W: matmul(kept, W), matrix), expected, strict=True):
        assert mine.dtype == dtype
        assert_near(mine, theirs, relative)


@given(
    shape=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    width=st.integers(1, 4),
    density=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    seed=st.integers(0, 2**16),
)
def test_values_and_gradients_are_those_of_the_dense_product(
    shape: tuple[int, int], width: int, density: float, seed: int
) -> None:
    check(features(*shape, density, seed), width)


def test_empty_rows_and_columns() -> None:
    dense = features(6, 7, 0.8)
    dense[[0, 3, 5]] = 0
    dense[:, [0, 2, 6]] = 0
    check(dense, 3)
    check(torch.zeros(3, 4, dtype=torch.float64), 2)


@pytest.mark.parametrize("shape", [(3 * LONGEST + 1, 3), (3, 3 * LONGEST + 1), (LONGEST + 1, LONGEST + 1)])
def test_long_rows_and_columns_are_chunked(shape: tuple[int, int]) -> None:
    check(features(*shape, density=1.0), 2)
    check(features(*shape, density=0.9), 2)


@pytest.mark.parametrize(("dtype", "relative"), [(torch.float32, 1e-5), (torch.bfloat16, 2e-2)])
def test_low_precision_is_close(dtype: torch.dtype, relative: float) -> None:
    check(features(30, 20), 4, dtype, relative)


@pytest.mark.parametrize("integer", [torch.int32, torch.int64])
def test_either_width_of_index(integer: torch.dtype) -> None:
    dense = features(5, 6)
    csr = dense.to_sparse_csr()
    csr = torch.sparse_csr_tensor(
        csr.crow_indices().to(integer), csr.col_indices().to(integer), csr.values(), dense.shape, check_invariants=True
    )
    found = value_and_gradients(lambda W: matmul(csr, W), torch.eye(6, dtype=torch.float64))
    assert found[0].equal(dense)


def test_gradients_pass_gradcheck() -> None:
    csr = features(5, 6).to_sparse_csr()
    matrix = features(6, 3, 1.0, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(lambda W: matmul(csr, W), matrix)


def test_dense_features_are_multiplied_as_ever() -> None:
    X, W = features(5, 6).requires_grad_(), features(6, 3, 1.0)
    assert matmul(X, W).equal(X @ W)
    assert matmul(X, W).requires_grad


def test_the_transpose_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Tensor] = []
    make = sparse._transpose
    monkeypatch.setattr(sparse, "_transpose", lambda X: made.append(X.shape) or make(X))
    csr, W = features(5, 6).to_sparse_csr(), features(6, 3, 1.0).requires_grad_()
    first = matmul(csr, W)
    first.sum().backward()
    assert matmul(csr, W).equal(first)
    assert len(made) == 1
    same = features(5, 6).to_sparse_csr()  # other features have their own, though they are equal
    matmul(same, W)
    assert len(made) == 2


@pytest.mark.slow
def test_the_cached_transpose_dies_with_the_features() -> None:
    gc.collect()
    before = len(sparse._cache)
    csr = features(5, 6).to_sparse_csr()
    out = matmul(csr, torch.eye(6, dtype=torch.float64))
    assert len(sparse._cache) == before + 1
    kept = weakref.ref(sparse._cache[csr])
    del csr
    gc.collect()
    assert len(sparse._cache) == before
    assert kept() is None
    assert out.shape == (5, 6)


@pytest.mark.slow
def test_a_gradient_can_be_taken_after_the_features_are_gone() -> None:
    dense = features(5, 6)
    csr, W = dense.to_sparse_csr(), torch.eye(6, dtype=torch.float64, requires_grad=True)
    out = matmul(csr, W)
    del csr
    gc.collect()
    (grad,) = torch.autograd.grad(out, W, torch.ones_like(out))
    torch.testing.assert_close(grad, dense.t() @ torch.ones(5, 6, dtype=torch.float64))


def test_wrong_arguments_are_named() -> None:
    csr = features(5, 6).to_sparse_csr()
    with pytest.raises(
        ValueError, match=r"^matrix has shape \(5, 2\), expected \(6, \*\): \(features.shape\[1\], k\)$"
    ):
        matmul(csr, torch.ones(5, 2, dtype=torch.float64))
    with pytest.raises(ValueError, match=r"^matrix has dtype torch.float32, expected torch.float64 as features"):
        matmul(csr, torch.ones(6, 2))
    with pytest.raises(ValueError, match=r"^features is sparse and requires a gradient, expected none: use dense"):
        matmul(csr.requires_grad_(), torch.ones(6, 2, dtype=torch.float64))
    with pytest.raises(ValueError, match=r"^features has layout torch.sparse_coo, expected"):
        matmul(features(5, 6).to_sparse_coo(), torch.ones(6, 2, dtype=torch.float64))
