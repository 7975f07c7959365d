"""Hand-made features of the edges and nodes of any directed graph of tables, for boosted trees.

`edge_features` and `node_features` list them. Labels enter as those of `known` rows alone, and never a row's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from censnet.errors import DataError
from censnet.ops.arrays import Array
from censnet_experiments.baselines.tree_gaps import time_gaps
from censnet_experiments.baselines.tree_labels import LabelSums, sum_by
from censnet_experiments.baselines.tree_triads import triad_sums

MOST_CATEGORIES = 250  # of a column that trees split by category; the rarer ones are one
MOST_KINDS = 3  # of labels in triads, whose number grows with the square


@dataclass(frozen=True, eq=False)
class TreeGraph:
    """A graph of tables by numbers: what trees may see besides labels.

    Args:
        source, target: (E,) ends, counted from 0 over all graphs.
        nodes, edges: input columns, numbers or codes of categories, (N, .) and (E, .).
        categories: names of the columns that are codes.
    """

    source: Array
    target: Array
    nodes: pd.DataFrame
    edges: pd.DataFrame
    categories: frozenset[str] = frozenset()

    @property
    def num_nodes(self) -> int:
        return len(self.nodes)

    @classmethod
    def of(
        cls,
        edges: pd.DataFrame,
        nodes: pd.DataFrame | None = None,
        edge_columns: Sequence[str] = (),
        node_columns: Sequence[str] = (),
    ) -> TreeGraph:
        """Number the ends of edges, and encode the input columns.

        Args:
            edges: with source, target, and graph where there are many graphs.
            nodes: with id, and graph likewise; the nodes are the ends of edges if None.
            edge_columns, node_columns: the inputs. Targets and columns that give them away must not be among them.
        """
        many = "graph" in edges
        key = [_keys(edges, end, many) for end in ("source", "target")]
        ids = pd.Index(key[0].append(key[1]).unique()) if nodes is None else _keys(nodes, "id", many)
        source, target = (ids.get_indexer(one) for one in key)
        if min(source.min(initial=0), target.min(initial=0)) < 0:
            raise DataError("an edge has an end that is no id of the nodes")
        tables, categories = [], set()
        for frame, columns, count in ((nodes, node_columns, len(ids)), (edges, edge_columns, len(edges))):
            coded = {}
            for column in columns:
                if frame is None:
                    raise DataError(f"there is no table of nodes for the column {column}")
                values = frame[column]
                if pd.api.types.is_numeric_dtype(values):
                    coded[column] = values.to_numpy(np.float64, na_value=np.nan)
                else:
                    frequent = values.value_counts().index[:MOST_CATEGORIES]
                    coded[column] = frequent.get_indexer(pd.Index(values)).astype(np.float64)
                    coded[column][coded[column] < 0] = len(frequent)
                    categories.add(column)
            tables.append(pd.DataFrame(coded, index=range(count)))
        return cls(source, target, tables[0], tables[1], frozenset(categories))


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

    Args:
        graph: the tables.
        known: the labels of edges that may be seen, by every row but themselves.
        structure: whether anything but columns is seen.
        time: (E,) of each edge.
    """
    u, v, count = graph.source, graph.target, graph.num_nodes
    found: dict[str, Array] = {str(name): graph.edges[name].to_numpy() for name in graph.edges}
    for end, ids in (("source", u), ("target", v)):
        found |= {f"{end}: {name}": graph.nodes[name].to_numpy()[ids] for name in graph.nodes}
    if structure:
        found |= _edge_structure(graph)
        numbers = graph.edges[[name for name in graph.edges if name not in graph.categories]]
        for end, ids in (("source", u), ("target", v)):
            for way, group in (("outgoing", u), ("incoming", v)):
                found |= _aggregates(numbers, group, ids, count, f"{end}, {way}")
        pair, reverse = _pairs(u, v, count)
        found |= _aggregates(numbers, pair, reverse, int(max(pair.max(), reverse.max())) + 1, "reverse")
    if known is not None:
        found |= _edge_labels(graph, known)
    if time is not None:
        found |= time_gaps(u, v, time, count)
    return pd.DataFrame({name: values.astype(np.float32) for name, values in found.items()})


def node_features(graph: TreeGraph, known: LabelSums | None = None) -> pd.DataFrame:
    """Features of every node.

    - its own columns; its edges and distinct neighbors in each direction, and neighbors in both;
    - mean, minimum and maximum of the numeric columns of its edges and of its neighbors, in each direction;
    - with `known`: counts of the kinds of known labels of neighbors and their shares (mean and spread) by direction.

    A loop makes a node its own neighbor; its label is left out there.

    Args:
        graph: the tables.
        known: the labels of nodes that may be seen, by every row but themselves.
    """
    u, v, count = graph.source, graph.target, graph.num_nodes
    everybody = np.arange(count)
    found: dict[str, Array] = {str(name): graph.nodes[name].to_numpy() for name in graph.nodes}
    first = _first_of_pair(u, v, count)
    pair, reverse = _pairs(u, v, count)
    mutual = np.isin(pair, reverse) & first & (u != v)
    found["mutual neighbors"] = np.bincount(u[mutual], minlength=count)
    edge_numbers = graph.edges[[name for name in graph.edges if name not in graph.categories]]
    node_numbers = graph.nodes[[name for name in graph.nodes if name not in graph.categories]]
    for way, own, other in (("outgoing", u, v), ("incoming", v, u)):
        found[f"{way}: edges"] = np.bincount(own, minlength=count)
        found[f"{way}: neighbors"] = np.bincount(own[first], minlength=count)
        found |= _aggregates(edge_numbers, own, everybody, count, way)
        neighbors = node_numbers.iloc[other].add_prefix("neighbor ")
        found |= _aggregates(neighbors, own, everybody, count, way)
        if known is not None:
            seen = known.channels[other] * (own != other)[:, None]
            found |= known.describe(sum_by(own, seen, count), f"{way}: known labels,")
    return pd.DataFrame({name: values.astype(np.float32) for name, values in found.items()})


def _keys(frame: pd.DataFrame, column: str, many: bool) -> pd.Index:
    return pd.MultiIndex.from_frame(frame[["graph", column]]) if many else pd.Index(frame[column])


def _pairs(u: Array, v: Array, count: int) -> tuple[Array, Array]:
    """A number for the pair u -> v of each edge, and that of v -> u."""
    codes = pd.factorize(np.concatenate([u * count + v, v * count + u]))[0]
    return codes[: len(u)], codes[len(u) :]


def _first_of_pair(u: Array, v: Array, count: int) -> Array:
    """Whether an edge is the first of its ends and direction."""
    return np.asarray(~pd.Series(u * count + v).duplicated())


def _edge_structure(graph: TreeGraph) -> dict[str, Array]:
    u, v, count = graph.source, graph.target, graph.num_nodes
    first = _first_of_pair(u, v, count)
    found = {}
    for end, ids in (("source", u), ("target", v)):
        for way, group in (("outgoing", u), ("incoming", v)):
            found[f"{end}, {way}: edges"] = np.bincount(group, minlength=count)[ids]
            found[f"{end}, {way}: neighbors"] = np.bincount(group[first], minlength=count)[ids]
    pair, reverse = _pairs(u, v, count)
    times = np.bincount(pair, minlength=int(reverse.max(initial=0)) + 1)
    found["pair: edges"], found["reverse: edges"] = times[pair], times[reverse]
    triads = triad_sums(u, v, np.ones((len(u), 1)), count)
    found |= {f"triads {name}": triads[:, place] for place, name in enumerate(_leg_names(1))}
    return found


def _edge_labels(graph: TreeGraph, known: LabelSums) -> dict[str, Array]:
    u, v, count = graph.source, graph.target, graph.num_nodes
    own, loop = known.channels, (u == v)[:, None]
    outgoing, incoming = sum_by(u, own, count), sum_by(v, own, count)
    pair, reverse = _pairs(u, v, count)
    by_pair = sum_by(pair, own, int(max(pair.max(), reverse.max())) + 1)
    seen = {
        "source, outgoing": outgoing[u] - own,
        "source, incoming": incoming[u] - own * loop,
        "target, outgoing": outgoing[v] - own * loop,
        "target, incoming": incoming[v] - own,
        "pair": by_pair[pair] - own,
        "reverse": by_pair[reverse] - own * loop,
    }
    found: dict[str, Array] = {}
    for name, sums in seen.items():
        found |= known.describe(sums, f"{name}: known labels,")
    if known.num_kinds <= MOST_KINDS:
        triads = triad_sums(u, v, known.kinds, count)
        found |= {f"triads {name}": triads[:, place] for place, name in enumerate(_leg_names(known.num_kinds))}
        if known.numeric:
            legs = np.column_stack([known.kinds.sum(1), known.channels[:, -2]])
            sums = triad_sums(u, v, legs, count).reshape(len(u), 2, 2, 2, 2)  # way of u, channel, way of v, channel
            number = np.where(sums[:, :, 0, :, 0] > 0, sums[:, :, 0, :, 0], np.nan)
            for one in range(2):
                for two in range(2):
                    ways = f"triads {_WAYS[one]} {_WAYS[two]}"
                    found[f"{ways}, mean product"] = sums[:, one, 1, two, 1] / number[:, one, two]
                    found[f"{ways}, mean leg of source"] = sums[:, one, 1, two, 0] / number[:, one, two]
                    found[f"{ways}, mean leg of target"] = sums[:, one, 0, two, 1] / number[:, one, two]
    return found


_WAYS = ("away", "towards")


def _leg_names(num_kinds: int) -> list[str]:
    legs = [f"{way} of kind {kind}" if num_kinds > 1 else way for way in _WAYS for kind in range(num_kinds)]
    return [f"source {one}, target {two}" for one in legs for two in legs]


def _aggregates(columns: pd.DataFrame, group: Array, asked: Array, count: int, name: str) -> dict[str, Array]:
    """Mean, minimum and maximum of each column by group, at the groups that are asked; NaN where a group is empty."""
    if columns.shape[1] == 0:
        return {}
    found: dict[str, Array] = {}
    grouped = columns.groupby(group)
    for how in ("mean", "min", "max"):
        table = grouped.agg(how).reindex(range(count))
        found |= {f"{name}: {column} {how}": table[column].to_numpy()[asked] for column in columns}
    return found
