"""Splits of links by time: new links between nodes that are known, later than all that a model has seen."""

from __future__ import annotations

import numpy as np
import torch

from censnet.data.splits.links import LinkSplit, distinct_pairs
from censnet.data.splits.split_file import PARTS, Split
from censnet.data.splits.splitters import Fractions, by_time
from censnet.errors import DataError
from censnet.ops.arrays import Array, IntArray, sorted_unique, unique_inverse
from censnet.ops.graph import Graph
from censnet.ops.pairs import NodePairs, OrderedNodePairs, find_bipartition, sample_non_edges, sample_ordered_non_edges


def links_by_time(
    graph: Graph,
    fractions: Fractions = (0.85, 0.05, 0.10),
    seed: int = 0,
    ordered: bool = False,
    *,
    starts: tuple[float, float] | None = None,
    file: str = "the table",
    column: str = "time",
) -> LinkSplit:
    """Show a model the earliest edges, choose on the links that are new after these, and judge on those after that.

    The earliest 85 % of the edges are for training, whatever they join. A later pair of nodes is asked for if no
    earlier edge joins it, and if both nodes have an edge in training: a model that reads the past alone knows nothing
    of others. Later edges that repeat a link, that join a new node, or that are loops are in no part.

    Negatives are drawn by what was known then: those of validation are pairs of the same nodes that no edge joins until
    validation ends, be they linked later; those of test no edge joins at all. Of ordered links half of the negatives
    are links turned around, as in `links`.

    Args:
        graph: with times of edges.
        fractions: the shares of training, validation and test edges.
        seed: of the negatives.
        ordered: whether the direction of a link is predicted.
        starts: when validation and test begin; None is by `fractions`.
        file, column: for errors.

    Example:
        >>> ends = torch.tensor([[0, 1, 2, 3, 5, 4, 0, 1, 1], [1, 2, 3, 4, 1, 0, 2, 3, 4]])
        >>> times = torch.arange(9).double()
        >>> split = links_by_time(Graph(torch.ones(6, 1), torch.ones(9, 1), ends, times=times), (6, 1, 2))
        >>> split
        LinkSplit(6 edges seen, 1 + 1 pairs for validation, 2 + 2 for test)
        >>> split.validation_links.t().tolist(), split.test_links.t().tolist()
        ([[0, 2]], [[1, 3], [1, 4]])
    """
    if graph.times is None:
        raise DataError("edges have no times, expected them: links are split by these", file)
    times, ends = graph.times.cpu().numpy(), graph.ends.cpu().numpy()
    part = _parts(times, fractions, starts, file, column)
    seen = sorted_unique(ends[:, part == 0].ravel())
    place = np.full(graph.num_nodes, -1, np.int64)
    place[seen] = np.arange(len(seen))
    space = _space(graph, seen, ordered)
    asked = np.flatnonzero((ends[0] != ends[1]) & (place[ends] >= 0).all(0))
    pairs, pair_of = unique_inverse(space.rank(*place[ends[:, asked]]))
    first = np.full(len(pairs), 2)
    np.minimum.at(first, pair_of, part[asked])  # the part in which a link is new
    codes = np.where(part == 0, 0, -1)
    new = part[asked] == first[pair_of]
    codes[asked[new]] = part[asked[new]]
    for number in (1, 2):
        if not (first == number).any():
            found = int((part == number).sum())
            raise DataError(
                f"of {found:,} {PARTS[number]} edges none is a new link between nodes that have an edge in training, "
                "expected some: change data.link_fractions or data.split_times, or use data.split=random",
                file,
                column=column,
            )
    rng, drawn = np.random.default_rng(seed), list[Array]()
    for number in (1, 2):
        taken = sorted_unique(np.concatenate([pairs[first <= number], *drawn]))
        own = pairs[first == number]
        if isinstance(space, OrderedNodePairs):
            drawn.append(sample_ordered_non_edges(space, taken, own, len(own), rng))
        else:
            drawn.append(sample_non_edges(space, taken, len(own), rng))
    linked = (distinct_pairs(seen[space.pair(pairs[first == number])]) for number in (1, 2))
    negatives = (torch.from_numpy(seen[space.pair(each)]) for each in drawn)
    (validation, test), (not_validation, not_test) = linked, negatives
    return LinkSplit(Split.of(codes), validation, not_validation, test, not_test, ordered=ordered)


def _parts(times: Array, fractions: Fractions, starts: tuple[float, float] | None, file: str, column: str) -> IntArray:
    """0, 1 or 2 for each edge."""
    if starts is None:
        return np.asarray(by_time(times, fractions, file=file, column=column).codes(len(times)), np.int64)
    part = (times >= starts[0]).astype(np.int64) + (times >= starts[1])
    if not (part == 0).any():
        raise DataError("all edges are after the time at which validation begins, expected some before", file)
    return part


def _space(graph: Graph, nodes: IntArray, ordered: bool) -> NodePairs:
    """The pairs of some nodes that could be links."""
    side, owner = find_bipartition(graph), graph.owner
    return (OrderedNodePairs if ordered else NodePairs)(
        len(nodes),
        None if owner is None else owner.cpu().numpy()[nodes],
        None if side is None else side.numpy()[nodes],
    )


__all__ = ["links_by_time"]
