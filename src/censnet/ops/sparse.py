"""Sparse features times a dense matrix. The transpose that the gradient needs is kept with the features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from censnet.ops.checks import check_same_dtype, check_shape
from censnet.ops.sums import Bags, cut, linear_map, sum_bags


@dataclass(frozen=True)
class _Kept:
    """A CSR matrix and its transpose, as bags."""

    rows: Bags
    values: Tensor
    columns: Bags
    column_values: Tensor


_kept: WeakIdKeyDictionary = WeakIdKeyDictionary()  # as long as the features live


def matmul(features: Tensor, matrix: Tensor) -> Tensor:
    """features @ matrix for dense features, or for CSR ones with the gradient of the matrix alone.

    X W is, for each row of X, the sum of the rows of W at its entries; its gradient the same over the columns of X.
    Torch's own CSR product sorts X anew for each gradient; here the transpose is made once and kept while the features
    live.

    Shape:
        features (N, d), matrix (d, k) -> (N, k).

    Example:
        >>> X = torch.tensor([[0.0, 2.0], [1.0, 0.0], [0.0, 0.0]])
        >>> matmul(X.to_sparse_csr(), torch.eye(2)).equal(X)
        True
    """
    if features.layout == torch.strided:
        return features @ matrix
    if features.layout != torch.sparse_csr:
        raise ValueError(f"features has layout {features.layout}, expected dense or CSR: call features.to_sparse_csr()")
    check_shape("matrix", matrix, (features.shape[1], None), "(features.shape[1], k)")
    check_same_dtype("matrix", matrix, "features", features)
    if features.requires_grad:
        raise ValueError("features is sparse and requires a gradient, expected none: use dense features for that")
    if features not in _kept:
        _kept[features] = _keep(features)
    kept: _Kept = _kept[features]
    return linear_map(
        matrix,
        lambda W: sum_bags(W, kept.rows, kept.values),
        lambda grad: sum_bags(grad, kept.columns, kept.column_values),
    )


def map_values(features: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
    """CSR features with a function that leaves 0 as it is applied to each entry."""
    return torch.sparse_csr_tensor(
        features.crow_indices(),
        features.col_indices(),
        function(features.values()),
        features.shape,
        check_invariants=False,
    )


def _keep(features: Tensor) -> _Kept:
    count, width = features.shape
    lengths, column, values = features.crow_indices().diff(), features.col_indices(), features.values()
    values = values.detach()  # the view would keep the features alive, and so itself
    row = torch.repeat_interleave(torch.arange(count, device=column.device), lengths)
    by_column = torch.argsort(column, stable=True)
    rows, row_values = _bags(column, values, lengths)
    columns, column_values = _bags(row[by_column], values[by_column], torch.bincount(column, minlength=width))
    return _Kept(rows, row_values, columns, column_values)


def _bags(index: Tensor, values: Tensor, lengths: Tensor) -> tuple[Bags, Tensor]:
    order, offset, pieces = cut(lengths)
    if order is not None:
        index, values = index[order], values[order]
    integer = torch.int32 if max(len(index), len(lengths)) < 2**31 else torch.int64
    return Bags(index.to(integer), offset.to(integer), pieces), values
