"""Time gaps of edges: how long before and after each edge the same nodes and pairs have another one."""

from __future__ import annotations

import numpy as np

from censnet.ops.arrays import Array, unique_inverse


def time_gaps(source: Array, target: Array, time: Array, num_nodes: int) -> dict[str, Array]:
    """The time since the last and until the next edge of each end in each direction, of the pair, and of its reverse.

    The edge itself is no such edge. Both the past and the future are looked at; NaN where there is none. Edges of one
    time follow each other in the order of their rows.

    Example:
        >>> gaps = time_gaps(np.array([0, 0]), np.array([1, 2]), np.array([5.0, 7.0]), 3)
        >>> gaps["source, outgoing: time until next"], gaps["target, incoming: time since last"]
        (array([ 2., nan]), array([nan, nan]))
    """
    _, both = unique_inverse(np.concatenate([source * num_nodes + target, target * num_nodes + source]))
    pair, reverse = both[: len(source)], both[len(source) :]
    rank = np.empty(len(time), np.int64)
    rank[np.argsort(time, kind="stable")] = np.arange(len(time))
    asked = {
        "source, outgoing": (source, source),
        "source, incoming": (source, target),
        "target, outgoing": (target, source),
        "target, incoming": (target, target),
        "pair": (pair, pair),
        "reverse": (reverse, pair),
    }
    found = {}
    for name, (group, groups) in asked.items():
        found[f"{name}: time since last"] = _since_last(group, groups, rank, time)
        found[f"{name}: time until next"] = _since_last(group, groups, len(time) - 1 - rank, -time)
    return found


def _since_last(group: Array, groups: Array, rank: Array, time: Array) -> Array:
    """For each row, the time since the last row of lower rank whose `groups` is this row's `group`."""
    order = np.lexsort((rank, groups))
    key = groups[order] * len(time) + rank[order]
    before = np.searchsorted(key, group * len(time) + rank) - 1
    there = order[np.maximum(before, 0)]
    return np.where((before >= 0) & (groups[there] == group), time - time[there], np.nan)
