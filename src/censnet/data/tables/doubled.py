"""Edges that are there twice, once in each direction with the same attributes, as PyTorch Geometric keeps them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Labels = Callable[[], NDArray[np.uint64]]
_MIX = np.uint64(0x9E3779B97F4A7C15)


def find_doubled(
    ends: NDArray[np.int64], num_nodes: int, features: NDArray[np.float32], labels: Labels
) -> NDArray[np.int64] | None:
    """For each edge, the first row of the two that say the same; None unless EVERY edge but a loop is there twice.

    Cheap tests come first: edges that are not doubled nearly always go upwards (from a lower number to a higher) more
    or less often than downwards, or have another sum of hashed pairs. Only then is anything sorted.

    Args:
        ends: the two nodes of each edge.
        num_nodes: N.
        features: what each edge is described by.
        labels: gives a number for each edge, equal where its labels are; called only when all else agrees.

    Shape:
        ends (2, E), features (E, d), labels (E,) -> (E,).
    """
    source, target = ends
    upward = source < target
    num_up = int(np.count_nonzero(upward))
    if num_up == 0 or num_up != int(np.count_nonzero(source > target)):
        return None
    up, down = np.flatnonzero(upward), np.flatnonzero(source > target)
    up_key = _key(source[up], target[up], num_nodes)
    down_key = _key(target[down], source[down], num_nodes)
    with np.errstate(over="ignore"):
        if _scramble(up_key).sum() != _scramble(down_key).sum():
            return None
    hashed = _hash_rows(features, labels())
    up, down = up[np.lexsort((hashed[up], up_key))], down[np.lexsort((hashed[down], down_key))]
    same = np.array_equal(source[up], target[down]) and np.array_equal(target[up], source[down])
    if not same or not np.array_equal(hashed[up], hashed[down]):
        return None
    if not np.array_equal(features[up], features[down]):
        return None
    first = np.arange(ends.shape[1])
    first[up] = first[down] = np.minimum(up, down)
    return first


def _key(low: NDArray[np.int64], high: NDArray[np.int64], num_nodes: int) -> NDArray[np.int64]:
    return low * num_nodes + high


def _scramble(key: NDArray[np.int64]) -> NDArray[np.uint64]:
    with np.errstate(over="ignore"):
        mixed = key.view(np.uint64) * _MIX
        return (mixed ^ (mixed >> np.uint64(32))) * _MIX


def _hash_rows(features: NDArray[np.float32], labels: NDArray[np.uint64]) -> NDArray[np.uint64]:
    total = labels
    for number in range(features.shape[1]):
        bits = np.ascontiguousarray(features[:, number] + np.float32(0)).view(np.uint32)  # -0 is 0
        with np.errstate(over="ignore"):
            total = (total ^ bits) * _MIX
            total ^= total >> np.uint64(29)
    return total
