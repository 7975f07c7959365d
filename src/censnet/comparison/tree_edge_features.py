"""Hand-made features of the edges of any graph of tables, for boosted trees.

Labels enter as those of `known` rows alone, and never a row's own.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from censnet.comparison.tree_gaps import time_gaps
from censnet.comparison.tree_graph import TreeGraph, aggregates, as_features, count_neighbors
from censnet.comparison.tree_labels import LabelSums, sum_by
from censnet.comparison.tree_triads import triad_sums
from censnet.ops.arrays import Array

MOST_KINDS = 3  # of labels in triads, whose number grows with the square
ENDS = ("source", "target")
_WAYS = ("away", "towards")


def edge_features(
    graph: TreeGraph, known: LabelSums | None = None, structure: bool = True, time: Array | None = None
) -> pd.DataFrame:
    """Features of every edge u -> v.

    - the edge's own columns, and the columns of u and of v;
    - with `structure`: the edges and the distinct neighbors of u and of v in each direction, the edges u -> v and
      v -> u, and the triads of u and v by direction, without labels;
    - mean, minimum and maximum of each numeric column over the edges of u and of v in each direction, and over the
      edges v -> u;
    - with `known`: counts of the kinds of known labels and their shares (for numbers their mean and spread) over the
      edges of u and of v in each direction, over the other edges u -> v, and over the edges v -> u; counts of triads by
      the kinds and directions of both legs, and for numbers the mean product of two legs;
    - with `time`: the gaps of `time_gaps`.

    Where edges have no direction, all of it is over incident edges, and of each feature of both ends there are the
    lower and the higher value, so that nothing depends on the order of the ends.

    Args:
        graph: the tables.
        known: the labels of edges that may be seen, by every row but themselves.
        structure: whether anything but columns is seen.
        time: (E,) of each edge.
    """
    u, v = graph.source, graph.target
    found: dict[str, Array] = {str(name): graph.edges[name].to_numpy() for name in graph.edges}
    for end, ids in zip(ENDS, (u, v), strict=True):
        found |= {f"{end}: {name}": graph.nodes[name].to_numpy()[ids] for name in graph.nodes}
    if structure:
        found |= _structure(graph)
        found |= _column_means(graph)
    if known is not None:
        found |= _labels(graph, known)
    if time is not None:
        found |= time_gaps(u, v, time, graph.num_nodes)
    return as_features(found if graph.directed else _without_order(found, graph.categories), len(u))


def number_pairs(u: Array, v: Array, count: int) -> tuple[Array, Array]:
    """A number for the pair u -> v of each edge, and that of v -> u."""
    codes = pd.factorize(np.concatenate([u * count + v, v * count + u]))[0]
    return codes[: len(u)], codes[len(u) :]


def _pairs(graph: TreeGraph) -> dict[str, tuple[Array, Array]]:
    """Relation to other edges between the same nodes -> the pair of each edge, and the one that it asks for."""
    if graph.directed:
        pair, reverse = number_pairs(graph.source, graph.target, graph.num_nodes)
        return {"pair": (pair, pair), "reverse": (pair, reverse)}
    ends = np.minimum(graph.source, graph.target), np.maximum(graph.source, graph.target)
    pair, _ = number_pairs(*ends, graph.num_nodes)
    return {"pair": (pair, pair)}


def _structure(graph: TreeGraph) -> dict[str, Array]:
    u, v, count = graph.source, graph.target, graph.num_nodes
    found = {}
    for side in graph.sides:
        edges, neighbors = np.bincount(side.node, minlength=count), count_neighbors(side, count)
        for end, ids in zip(ENDS, (u, v), strict=True):
            found[f"{end}, {side.way}: edges"] = edges[ids]
            found[f"{end}, {side.way}: neighbors"] = neighbors[ids]
    for name, (pair, asked) in _pairs(graph).items():
        found[f"{name}: edges"] = np.bincount(pair, minlength=int(asked.max(initial=0)) + 1)[asked]
    return found | _triads(graph, np.ones((len(u), 1)))


def _column_means(graph: TreeGraph) -> dict[str, Array]:
    """Aggregates of the columns of edges over those around both ends, and over those in the opposite direction."""
    numbers, found = graph.edge_numbers, dict[str, Array]()
    for end, ids in zip(ENDS, (graph.source, graph.target), strict=True):
        for side in graph.sides:
            around = numbers.iloc[side.edge]
            found |= aggregates(around, side.node, ids, graph.num_nodes, f"{end}, {side.way}")
    pairs = _pairs(graph)
    name = "reverse" if graph.directed else "pair"
    pair, asked = pairs[name]
    return found | aggregates(numbers, pair, asked, int(max(pair.max(initial=0), asked.max(initial=0))) + 1, name)


def _labels(graph: TreeGraph, known: LabelSums) -> dict[str, Array]:
    """Sums of known labels around both ends, without the row's own wherever that is among them."""
    u, v, own = graph.source, graph.target, known.channels
    loop, found = (u == v)[:, None], dict[str, Array]()
    for end, ids in zip(ENDS, (u, v), strict=True):
        for side in graph.sides:
            total = sum_by(side.node, own[side.edge], graph.num_nodes)[ids]
            mine = own if side.way == "incident" or (end == "source") == (side.way == "outgoing") else own * loop
            found |= known.describe(total - mine, f"{end}, {side.way}: known labels,")
    for name, (pair, asked) in _pairs(graph).items():
        total = sum_by(pair, own, int(max(pair.max(initial=0), asked.max(initial=0))) + 1)[asked]
        found |= known.describe(total - (own if name == "pair" else own * loop), f"{name}: known labels,")
    if known.num_kinds <= MOST_KINDS:
        found |= _triads(graph, known.kinds)
        if known.numeric:
            found |= _triad_means(graph, known)
    return found


def _triads(graph: TreeGraph, kinds: Array) -> dict[str, Array]:
    """Counts of triads by the kinds of both legs and, where there is one, their direction."""
    num_kinds = kinds.shape[1]
    sums = triad_sums(graph.source, graph.target, kinds, graph.num_nodes)
    if graph.directed:
        legs = [f"{way} of kind {kind}" if num_kinds > 1 else way for way in _WAYS for kind in range(num_kinds)]
        names = [f"source {one}, target {two}" for one in legs for two in legs]
        return {f"triads {name}": sums[:, place] for place, name in enumerate(names)}
    sums = sums.reshape(-1, 2, num_kinds, 2, num_kinds).sum((1, 3))
    both = sums + sums.transpose(0, 2, 1)
    return {
        f"triads of kinds {one} and {two}": both[:, one, two] / (2 if one == two else 1)
        for one in range(num_kinds)
        for two in range(one, num_kinds)
    }


def _triad_means(graph: TreeGraph, known: LabelSums) -> dict[str, Array]:
    """For numbers, the mean over triads of the product of both legs, and of each of them."""
    legs = np.column_stack([known.kinds.sum(1), known.channels[:, -2]])
    sums = triad_sums(graph.source, graph.target, legs, graph.num_nodes)
    sums = sums.reshape(-1, 2, 2, 2, 2)  # way of u, channel, way of v, channel
    if not graph.directed:
        sums = sums.sum((1, 3), keepdims=True)
    number, found = np.where(sums[:, :, 0, :, 0] > 0, sums[:, :, 0, :, 0], np.nan), dict[str, Array]()
    for one in range(sums.shape[1]):
        for two in range(sums.shape[3]):
            ways = f"triads {_WAYS[one]} {_WAYS[two]}" if graph.directed else "triads"
            found[f"{ways}, mean product"] = sums[:, one, 1, two, 1] / number[:, one, two]
            found[f"source, {ways}, mean leg"] = sums[:, one, 1, two, 0] / number[:, one, two]
            found[f"target, {ways}, mean leg"] = sums[:, one, 0, two, 1] / number[:, one, two]
    return found


def _without_order(found: dict[str, Array], categories: frozenset[str]) -> dict[str, Array]:
    """Features of both ends as the lower and the higher value; of a category the code of either may be the lower."""
    kept, source, target = dict[str, Array](), *ENDS
    for name, values in found.items():
        if name.startswith((f"{source}:", f"{source},")):
            rest = name.removeprefix(source)
            other = found[f"{target}{rest}"]
            kept[f"lower{rest}"], kept[f"higher{rest}"] = np.fmin(values, other), np.fmax(values, other)
        elif not (name.startswith((f"{target}:", f"{target},"))):
            kept[name] = values
    return kept
