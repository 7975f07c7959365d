"""The files of Planetoid, which are Python 2 pickles, read without running anything that is in them."""

from __future__ import annotations

import io
import pickle
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from censnet.errors import DataError
from censnet.ops.arrays import Array, IntArray


def _empty_array(kind: object, shape: object, dtype: object) -> Array:
    """Stand in for numpy's `_reconstruct`; the contents come afterwards."""
    return np.ndarray(0, np.int8)


class _Matrix:
    """A CSR matrix as it was pickled: a dictionary of three arrays and a shape."""

    data: Array
    indices: Array
    indptr: Array
    _shape: tuple[int, int]


ALLOWED: dict[tuple[str, str], Callable[..., Any]] = {
    ("numpy", "dtype"): np.dtype,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy.core.multiarray", "_reconstruct"): _empty_array,
    ("scipy.sparse.csr", "csr_matrix"): _Matrix,
    ("collections", "defaultdict"): defaultdict,
    ("__builtin__", "list"): list,
}


class _Unpickler(pickle.Unpickler):
    """Admits the six names that the files of Planetoid hold, and refuses every other before it is looked up."""

    def find_class(self, module: str, name: str) -> Callable[..., Any]:
        if (module, name) not in ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no file of Planetoid has")
        return ALLOWED[module, name]


def unpickle(content: bytes, file: str) -> Any:
    """The object in a pickle of Planetoid; a matrix comes as `scipy.sparse.csr_matrix`."""
    try:
        found = _Unpickler(io.BytesIO(content), encoding="latin1").load()
        if isinstance(found, _Matrix):
            return sp.csr_matrix((found.data, found.indices, found.indptr), shape=found._shape)
    except Exception as problem:  # a broken pickle can raise anything
        raise DataError(f"not a file of Planetoid: {problem}", file) from None
    return found


class Papers(NamedTuple):
    """Words (N, words), labels (N,) with -1 for none, and the neighbors of each paper."""

    words: sp.csr_matrix
    labels: IntArray
    pairs: IntArray  # (L, 2), each link in any order, as often as it is listed


def read_planetoid(files: dict[str, Path], name: str) -> Papers:
    """Put the eight files together: the papers of `allx` first, then those of `tx` at the places in `test.index`."""

    def read(part: str) -> Any:
        return unpickle(files[f"ind.{name}.{part}"].read_bytes(), f"ind.{name}.{part}")

    graph, allx, tx = read("graph"), read("allx"), read("tx")
    place = np.array(files[f"ind.{name}.test.index"].read_text().split(), dtype=np.int64)
    row = np.full(len(graph), -1)  # of the stacked matrix; a paper without a row has no words and no label
    row[: allx.shape[0]] = np.arange(allx.shape[0])
    row[place] = allx.shape[0] + np.arange(len(place))
    known = np.flatnonzero(row >= 0)
    stacked = sp.vstack([allx, tx], format="csr")
    choose = sp.csr_matrix((np.ones(len(known), np.float32), (known, row[known])), (len(graph), stacked.shape[0]))
    labels = np.full(len(graph), -1)
    labels[known] = np.concatenate([read("ally").argmax(1), read("ty").argmax(1)])[row[known]]
    degree = [len(friends) for friends in graph.values()]
    first = np.repeat(np.fromiter(graph, dtype=np.int64, count=len(graph)), degree)
    second = np.array([friend for friends in graph.values() for friend in friends], dtype=np.int64)
    return Papers((choose @ stacked).astype(np.float32).tocsr(), labels, np.stack([first, second], axis=1))
