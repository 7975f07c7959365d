"""Triads of a directed multigraph: for pairs of nodes, sums over common neighbors of products of both legs."""

from __future__ import annotations

import numpy as np

from censnet.comparison.tree_labels import sum_by
from censnet.ops.arrays import Array, sorted_unique, unique_inverse

CHUNK = 4_000_000  # neighbors looked up at once


def triad_sums(source: Array, target: Array, legs: Array, num_nodes: int) -> Array:
    """For each edge u -> v, the sum over common neighbors w of (leg between u and w) x (leg between v and w).

    A leg has one entry for each channel and direction: the sum of `legs` over the edges away from u (or v), then over
    those towards it. Loops are left out, so w is neither u nor v and the edge itself is no leg of its own triads.
    For every edge the neighbors of the end with fewer of them are looked up among those of the other: no product of
    matrices is built, and a star costs no more than its edges.

    Args:
        source, target: (E,) ends by number.
        legs: (E, C) what an edge adds to a leg.
        num_nodes: N.

    Shape:
        (E, 2C * 2C), in the order of the leg of u, then of v.

    Example:
        >>> triad_sums(np.array([0, 0, 2]), np.array([1, 2, 1]), np.ones((3, 1)), 3)[0]  # 0 -> 2 -> 1: away, towards
        array([0., 1., 0., 0.])
    """
    width = 2 * legs.shape[1]
    simple = source != target
    keys, place = unique_inverse(source * num_nodes + target)
    num_pairs = len(keys)
    inner = np.concatenate([source[simple] * num_nodes + target[simple], target[simple] * num_nodes + source[simple]])
    neighbor_keys, slot = unique_inverse(inner)
    blank = np.zeros_like(legs[simple])
    halves = [np.hstack([legs[simple], blank]), np.hstack([blank, legs[simple]])]
    leg = sum_by(slot, np.concatenate(halves), len(neighbor_keys))
    start = np.searchsorted(neighbor_keys, np.arange(num_nodes + 1) * num_nodes)
    degree = np.diff(start)
    u, v = keys // num_nodes, keys % num_nodes
    swap = degree[v] < degree[u]
    near, far = np.where(swap, v, u), np.where(swap, u, v)
    total = np.zeros((num_pairs, width * width))
    for first, last in _chunks(degree[near]):
        size = degree[near[first:last]]
        pair = np.repeat(np.arange(first, last), size)
        offset = np.arange(len(pair)) - np.repeat(np.cumsum(size) - size, size)
        here = start[near[pair]] + offset
        wanted = far[pair] * num_nodes + neighbor_keys[here] % num_nodes
        there = np.minimum(np.searchsorted(neighbor_keys, wanted), len(neighbor_keys) - 1)
        hit = neighbor_keys[there] == wanted
        pair, here, there = pair[hit], here[hit], there[hit]
        of_u, of_v = np.where(swap[pair], there, here), np.where(swap[pair], here, there)
        products = (leg[of_u][:, :, None] * leg[of_v][:, None, :]).reshape(len(pair), width * width)
        total[first:last] = sum_by(pair - first, products, last - first)
    return total[place]


def _chunks(sizes: Array) -> list[tuple[int, int]]:
    """Ranges of rows whose sizes add up to `CHUNK` or little more."""
    total = np.cumsum(sizes)
    if len(sizes) == 0:
        return []
    cuts = np.searchsorted(total, np.arange(CHUNK, total[-1] + CHUNK, CHUNK))
    bounds = sorted_unique(np.concatenate([[0], np.minimum(cuts + 1, len(sizes)), [len(sizes)]]))
    return list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))
