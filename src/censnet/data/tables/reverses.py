"""Rows of edges and their reverses: the same two ends in the opposite order, and the same attributes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from censnet.ops.arrays import FloatArray, IntArray

_MIX = np.uint64(0x9E3779B97F4A7C15)
_SAMPLE = 256


def share_with_reverse(ends: IntArray, num_nodes: int) -> float:
    """The share of a few hundred rows, loops not among them, whose reverse is somewhere in the table.

    One look at each row: edges that are not doubled are known as such before anything is sorted.
    """
    source, target = ends
    proper = np.flatnonzero(source != target) if len(source) <= 4 * _SAMPLE else _spread(len(source))
    proper = proper[source[proper] != target[proper]]
    if len(proper) == 0:
        return 0.0
    wanted = np.zeros(num_nodes, bool)
    wanted[target[proper]] = True
    near = np.flatnonzero(wanted[source])
    there = np.isin(_key(target[proper], source[proper], num_nodes), _key(source[near], target[near], num_nodes))
    return float(there.mean())


def match_reverses(
    ends: IntArray, num_nodes: int, features: FloatArray, labels: NDArray[np.uint64] | None = None
) -> IntArray:
    """For each edge, the row of its reverse with the same features: itself for a loop, -1 where there is none.

    Each row is the reverse of one other at most. Of parallel edges with the same features, the first of one direction
    goes with the first of the other, and those with the same labels go together where labels are given.

    Args:
        ends: the two nodes of each edge.
        num_nodes: N.
        features: of each edge.
        labels: a number for each edge; it decides among rows that are equal otherwise, and nothing else.

    Example:
        >>> match_reverses(np.array([[0, 1, 2, 1, 1], [1, 0, 2, 2, 0]]), 3, np.zeros((5, 0), np.float32))
        array([ 1,  0,  2, -1, -1])
    """
    source, target = ends
    every = np.arange(len(source))
    reverse = np.where(source == target, every, -1)
    up, down = np.flatnonzero(source < target), np.flatnonzero(source > target)
    if len(up) == 0 or len(down) == 0:
        return reverse
    hashed = _hash_rows(features, _scramble(_key(np.minimum(source, target), np.maximum(source, target), num_nodes)))
    up, down = (_sorted_by(rows, hashed, labels) for rows in (up, down))
    first, second = hashed[up], hashed[down]
    if np.array_equal(first, second):
        found = np.arange(len(up))
    else:
        start = np.searchsorted(second, first, "left")
        position = start + _rank_of_equals(first)
        found = np.where(position < np.searchsorted(second, first, "right"), position, -1)
    up, down = up[found >= 0], down[found[found >= 0]]
    same = (source[up] == target[down]) & (target[up] == source[down])  # a hash is no proof
    for column in range(features.shape[1]):
        same &= features[up, column] == features[down, column]
    up, down = up[same], down[same]
    reverse[up], reverse[down] = down, up
    return reverse


def _spread(count: int) -> IntArray:
    return np.linspace(0, count - 1, _SAMPLE).astype(np.int64)


def _sorted_by(rows: IntArray, hashed: NDArray[np.uint64], labels: NDArray[np.uint64] | None) -> IntArray:
    keys = (hashed[rows],) if labels is None else (labels[rows], hashed[rows])
    return rows[np.lexsort(keys)]


def _rank_of_equals(values: NDArray[np.uint64]) -> IntArray:
    """In sorted values, how many equal ones stand before each."""
    every = np.arange(len(values))
    new = np.ones(len(values), bool)
    new[1:] = values[1:] != values[:-1]
    return every - np.maximum.accumulate(np.where(new, every, 0))


def _key(low: IntArray, high: IntArray, num_nodes: int) -> IntArray:
    return low * num_nodes + high


def _scramble(key: IntArray) -> NDArray[np.uint64]:
    with np.errstate(over="ignore"):
        mixed = key.view(np.uint64) * _MIX
        return (mixed ^ (mixed >> np.uint64(32))) * _MIX


def _hash_rows(features: FloatArray, start: NDArray[np.uint64]) -> NDArray[np.uint64]:
    total = start
    for number in range(features.shape[1]):
        bits = np.ascontiguousarray(features[:, number] + np.float32(0)).view(np.uint32)  # -0 is 0
        with np.errstate(over="ignore"):
            total = (total ^ bits) * _MIX
            total ^= total >> np.uint64(29)
    return total
