"""The order of edges in memory: those of one node side by side, so that a propagation finds them together."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from torch import Tensor

_BLOCK = 1 << 18


def order_by_end(ends: NDArray[np.int64], num_nodes: int) -> NDArray[Any] | None:
    """The order of edges by their lower end, equal ones as they were; None when they are in this order already.

    A stable counting sort, O(N + E): the entries of a matrix with a row for each edge, by column.

    >>> order_by_end(np.array([[5, 1, 3, 0], [2, 3, 1, 4]]), 6)
    array([3, 1, 2, 0], dtype=int32)
    """
    low = np.minimum(ends[0], ends[1])
    count = len(low)
    if bool((low[1:] >= low[:-1]).all()):
        return None
    integer = np.int32 if max(count, num_nodes) < 2**31 else np.int64
    entries = (np.ones(count, bool), low.astype(integer), np.arange(count + 1, dtype=integer))
    return np.asarray(scipy.sparse.csr_array(entries, shape=(count, num_nodes)).tocsc().indices)


def put_in_order(features: Tensor, order: NDArray[Any]) -> Tensor:
    """The rows in this order, written in place block by block: nothing else as large is needed."""
    out, rows = torch.empty(len(order), features.shape[1], dtype=features.dtype), torch.from_numpy(order)
    for start in range(0, len(order), _BLOCK):
        block = slice(start, start + _BLOCK)
        torch.index_select(features, 0, rows[block], out=out[block])
    return out


def places(order: NDArray[Any]) -> NDArray[np.int64]:
    """Where each thing goes that is put in this order: the inverse permutation."""
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return place
