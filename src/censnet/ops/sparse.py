"""Sparse features times a dense matrix. The transpose that the gradient needs is cached with the features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from censnet.ops.checks import check_same_dtype, check_shape
from censnet.ops.dense import affine
from censnet.ops.segments import Segments, chunk_segments, linear_map, ranges, sum_segments


@dataclass(frozen=True)
class _CSR:
    """A CSR matrix and its transpose, as segments."""

    rows: Segments
    values: Tensor
    columns: Segments
    column_values: Tensor


_cache: WeakIdKeyDictionary = WeakIdKeyDictionary()  # as long as the features live
_unit: WeakIdKeyDictionary = WeakIdKeyDictionary()


def matmul(features: Tensor, matrix: Tensor) -> Tensor:
    """features @ matrix for dense features, or for CSR ones with the gradient of the matrix alone.

    X W is, for each row of X, the sum of the rows of W at its entries; its gradient the same over the columns of X.
    Torch's own CSR product sorts X anew for each gradient; here the transpose is computed once and cached while the
    features live.

    Shape:
        features (N, d), matrix (d, k) -> (N, k).

    Example:
        >>> X = torch.tensor([[0.0, 2.0], [1.0, 0.0], [0.0, 0.0]])
        >>> matmul(X.to_sparse_csr(), torch.eye(2)).equal(X)
        True
    """
    if features.layout == torch.strided:
        return affine(features, matrix)
    if features.layout != torch.sparse_csr:
        raise ValueError(f"features has layout {features.layout}, expected dense or CSR: call features.to_sparse_csr()")
    check_shape("matrix", matrix, (features.shape[1], None), "(features.shape[1], k)")
    check_same_dtype("matrix", matrix, "features", features)
    if features.requires_grad:
        raise ValueError("features is sparse and requires a gradient, expected none: use dense features for that")
    if features not in _cache:
        _cache[features] = _transpose(features)
    cached: _CSR = _cache[features]
    return linear_map(
        matrix,
        lambda W: sum_segments(W, cached.rows, cached.values),
        lambda grad: sum_segments(grad, cached.columns, cached.column_values),
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


def _transpose(features: Tensor) -> _CSR:
    count, width = features.shape
    lengths, column, values = features.crow_indices().diff(), features.col_indices(), features.values()
    values = values.detach()  # the view would keep the features alive, and so itself
    row = torch.repeat_interleave(torch.arange(count, device=column.device), lengths)
    by_column = torch.argsort(column, stable=True)
    rows, row_values = _segments(column, values, lengths)
    columns, column_values = _segments(row[by_column], values[by_column], torch.bincount(column, minlength=width))
    return _CSR(rows, row_values, columns, column_values)


def _segments(index: Tensor, values: Tensor, lengths: Tensor) -> tuple[Segments, Tensor]:
    order, offset, chunks = chunk_segments(lengths)
    if order is not None:
        index, values = index[order], values[order]
    integer = torch.int32 if max(len(index), len(lengths)) < 2**31 else torch.int64
    return Segments(index.to(integer), offset.to(integer), chunks), values


def unit_rows(features: Tensor) -> Tensor:
    """Each row divided by its length, dense or CSR; a row of zeros stays. Cached while the features live."""
    if features not in _unit:
        _unit[features] = _divide_by_length(features.detach())
    found: Tensor = _unit[features]
    return found


def row_products(features: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """The inner products of pairs of rows, dense or CSR; of CSR ones without a gradient. (P,), (P,) -> (P,)

    Example:
        >>> X = torch.tensor([[0.0, 2.0, 1.0], [1.0, 3.0, 0.0], [0.0, 0.0, 0.0]])
        >>> row_products(X.to_sparse_csr(), torch.tensor([0, 0, 2]), torch.tensor([1, 0, 1]))
        tensor([6., 5., 0.])
    """
    if features.layout == torch.strided:
        return (features.index_select(0, first) * features.index_select(0, second)).sum(1)
    start, values = features.crow_indices(), features.values()
    pair, key, place = _entries(features, start, first)
    _, known, other = _entries(features, start, second)
    out = values.new_zeros(len(first))
    if len(known) == 0:
        return out
    found = torch.searchsorted(known, key).clamp(max=len(known) - 1)  # columns rise within a row of CSR
    product = torch.where(known[found] == key, values[place] * values[other[found]], 0)
    return out.index_add(0, pair, product)


def products_with_all(features: Tensor, rows: Tensor, start: int = 0) -> Tensor:
    """The inner products of some rows with every row from `start` on, dense or CSR, without a gradient.

    Shape:
        features (N, d), rows (k,) -> (k, N - start).

    Example:
        >>> X = torch.tensor([[0.0, 2.0, 1.0], [1.0, 3.0, 0.0], [0.0, 0.0, 0.0]])
        >>> products_with_all(X.to_sparse_csr(), torch.tensor([1, 2]))
        tensor([[ 6., 10.,  0.],
                [ 0.,  0.,  0.]])
    """
    if features.layout == torch.strided:
        return features.detach()[rows] @ features.detach()[start:].t()
    row, _, place = _entries(features, features.crow_indices(), rows)
    some = features.values().new_zeros(features.shape[1], len(rows))
    some[features.col_indices()[place], row] = features.values()[place]
    return matmul(features, some)[start:].t()


def _entries(features: Tensor, start: Tensor, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of the entries in some rows: the number of the row among these, one for row and column, and where it stands."""
    length = start[rows + 1] - start[rows]
    pair = torch.repeat_interleave(torch.arange(len(rows), device=rows.device), length)
    place = ranges(start[rows], length)
    return pair, pair * features.shape[1] + features.col_indices()[place], place


def _divide_by_length(features: Tensor) -> Tensor:
    if features.layout == torch.strided:
        return F.normalize(features, dim=1)
    lengths = features.crow_indices().diff()
    row = torch.repeat_interleave(torch.arange(len(lengths), device=lengths.device), lengths)
    square = features.values().new_zeros(len(lengths)).index_add(0, row, features.values().square())
    return map_values(features, lambda values: values / square.sqrt().clamp(min=1e-12)[row])
