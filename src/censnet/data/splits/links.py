"""Splits of the links of a graph, with negative pairs, and their rows in splits.csv."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from censnet.data.splits.split_file import PARTS, Split, file_name, part_rows, read_split_rows
from censnet.errors import DataError
from censnet.ops.arrays import Array, sorted_unique, unique_inverse
from censnet.ops.graph import Graph
from censnet.ops.pairs import NodePairs, OrderedNodePairs, sample_non_edges, sample_ordered_non_edges

__all__ = ["LinkSplit", "distinct_pairs", "link_rows", "links", "read_links"]

NODE_ROWS = ("source_row", "target_row")  # of the nodes of a pair, in splits.csv


@dataclass(frozen=True, eq=False)
class LinkSplit:
    """Edges in three parts, and for validation and test the linked pairs and as many pairs that are not linked.

    Args:
        rows: the edges of each part. All parallel and reverse edges of a pair are in one part (of an ordered one, all
            parallel ones); loops are in training. By time (`links_by_time`), later edges that repeat a link are in no
            part, and are not seen.
        validation_links, test_links: the pairs that the edges of that part join, each once.
        validation_negatives, test_negatives: as many pairs that no edge of any part joins, or, by time, none until that
            part ends. None is a loop, none comes twice, and validation and test share none.
        ordered: whether links go from the first node of a pair to the second.

    Shape:
        links and non-links (2, n), the lower node first unless ordered.
    """

    rows: Split
    validation_links: Tensor
    validation_negatives: Tensor
    test_links: Tensor
    test_negatives: Tensor
    ordered: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        for name in ("validation_links", "validation_negatives", "test_links", "test_negatives"):
            pairs: Tensor = getattr(self, name)
            if pairs.dim() != 2 or pairs.shape[0] != 2:
                raise DataError(f"{name} has shape {tuple(pairs.shape)}, expected (2, n), one column for each pair")

    def __repr__(self) -> str:
        edges = f"{len(self.rows.train)} edges seen"
        sizes = (f"{self.validation_links.shape[1]} + {self.validation_negatives.shape[1]} pairs for validation",)
        return f"LinkSplit({edges}, {sizes[0]}, {self.test_links.shape[1]} + {self.test_negatives.shape[1]} for test)"

    def message_graph(self, graph: Graph) -> Graph:
        """The graph that message passing may see: every node, and the training edges alone.

        Node features are kept as they are. Those that were counted on all links, such as the degree, must be computed
        again on this graph.
        """
        return graph.with_edges(self.rows.train.to(graph.ends.device))


def links(
    graph: Graph, fractions: tuple[float, float, float] = (0.85, 0.05, 0.10), seed: int = 0, ordered: bool = False
) -> LinkSplit:
    """Hide some links of a graph, as in the variational graph auto-encoder: 5 % to choose on and 10 % to judge on.

    What is shared out is distinct pairs of nodes: floor(0.05 P) and floor(0.10 P) of P, at least one each. In a union
    of many graphs, non-links join nodes of one graph; where nodes are of two kinds, one of each (`find_bipartition`).

    Where links are ordered, the pairs are ordered pairs, and i -> j and j -> i are two links. One of them may be held
    out while the other is in training, as in the general task of Salha et al. (2019, "Gravity-inspired graph
    autoencoders for directed link prediction") and in later work on directed links: that i follows j is known when one
    asks whether j follows i, so hiding it would ask another question, and no model could learn how often links are
    returned. Parallel edges are still hidden together. Up to half of the negatives of a part are its links turned
    around, where there is no such edge (the "biased" task of the same paper); the others are random ordered pairs. So
    a score that ignores direction has an AUC of about 0.75 at best where no link is returned.

    Args:
        graph: edges once each; parallel edges and loops may be among them.
        fractions: the shares of training, validation and test links.
        seed: of this split alone.
        ordered: whether the direction of a link is predicted.

    Example:
        >>> ring = torch.stack([torch.arange(40), (torch.arange(40) + 1) % 40])
        >>> split = links(Graph(torch.ones(40, 1), torch.ones(40, 1), ring))
        >>> split
        LinkSplit(34 edges seen, 2 + 2 pairs for validation, 4 + 4 for test)
        >>> split.message_graph(Graph(torch.ones(40, 1), torch.ones(40, 1), ring))
        Graph(40 nodes x 1, 34 edges x 1)
    """
    shares = np.asarray(fractions, dtype=np.float64)
    if shares.shape != (3,) or not np.isfinite(shares).all() or shares.min() <= 0:
        raise DataError(
            f"fractions is {fractions!r}, expected three numbers above 0: training, validation and test links"
        )
    shares = shares / shares.sum()
    ends = graph.ends.cpu().numpy()
    space = OrderedNodePairs.of(graph) if ordered else NodePairs.of(graph)
    proper = np.flatnonzero(ends[0] != ends[1])
    pairs, pair_of = unique_inverse(space.rank(ends[0][proper], ends[1][proper]))
    num_validation, num_test = (max(1, int(share * len(pairs) + 1e-9)) for share in shares[1:])
    if len(pairs) < num_validation + num_test + 1:
        raise DataError(
            f"the graph has {len(pairs)} linked pairs, expected at least 3: one each to train, choose and judge on"
        )
    rng = np.random.default_rng(seed)
    part_of_pair = np.zeros(len(pairs), dtype=np.int8)
    order = rng.permutation(len(pairs))
    part_of_pair[order[:num_test]], part_of_pair[order[num_test : num_test + num_validation]] = 2, 1
    part = np.zeros(ends.shape[1], dtype=np.int8)
    part[proper] = part_of_pair[pair_of]
    if isinstance(space, OrderedNodePairs):
        sampled, taken = [], pairs
        for number, count in ((1, num_validation), (2, num_test)):
            sampled.append(sample_ordered_non_edges(space, taken, pairs[part_of_pair == number], count, rng))
            taken = sorted_unique(np.concatenate([taken, sampled[-1]]))
        negatives = space.pair(np.concatenate(sampled))
    else:
        negatives = space.pair(sample_non_edges(space, pairs, num_validation + num_test, rng))
    return LinkSplit(
        Split.of(part),
        distinct_pairs(space.pair(pairs[part_of_pair == 1])),
        torch.from_numpy(negatives[:, :num_validation]),
        distinct_pairs(space.pair(pairs[part_of_pair == 2])),
        torch.from_numpy(negatives[:, num_validation:]),
        ordered=ordered,
    )


def link_rows(
    split: LinkSplit, graph: Graph, edge_rows: Tensor | None = None, node_ids: pd.Series[Any] | None = None
) -> pd.DataFrame:
    """The rows of splits.csv for links: the tables `links` and `non-links`.

    Args:
        split: of the edges of the graph.
        graph: what was split.
        edge_rows: for each row of the user's table of edges, the edge it became; None if they are the same.
        node_ids: the user's id of each node of the graph.
    """
    edge_rows = torch.arange(graph.num_edges) if edge_rows is None else edge_rows
    links = part_rows("links", split.rows.to_input(edge_rows))
    negatives = torch.cat([split.validation_negatives, split.test_negatives], dim=1).numpy()
    part = np.repeat([1, 2], [split.validation_negatives.shape[1], split.test_negatives.shape[1]])
    edges = edge_rows.numpy()[links["row"].to_numpy() - 1]
    nodes = np.concatenate([graph.ends.cpu().numpy()[:, edges], negatives], axis=1)
    frame = pd.concat([links, part_rows("non-links", Split.of(part))], ignore_index=True)
    for name, rows in zip(NODE_ROWS, nodes, strict=True):
        frame[name] = pd.array(rows + 1, dtype="Int64")  # other tables have none
    if node_ids is not None:
        frame["source"], frame["target"] = (node_ids.iloc[nodes[end]].to_numpy() for end in range(2))
    return frame


def read_links(
    source: str | os.PathLike[str] | pd.DataFrame, edge_rows: Tensor | None = None, ordered: bool = False
) -> LinkSplit:
    """Read the link split of a splits.csv, as `link_rows` gives it.

    Args:
        source: the file, or its content.
        edge_rows: as in `link_rows`.
        ordered: whether links go from their source to their target.
    """
    frame = read_split_rows(source)
    frame = frame[frame["table"].isin(["links", "non-links"])]
    file = file_name(source)
    for name in NODE_ROWS:
        if name not in frame:
            raise DataError(f"no column {name}, expected it for links", file)
        bad = np.flatnonzero(~frame[name].str.fullmatch(r"[1-9][0-9]{0,14}", na=False))
        if len(bad):
            raise DataError("expected the number of a node's row, from 1", file, int(frame.index[bad[0]]), name)
    nodes = np.stack([frame[name].astype(np.int64).to_numpy() - 1 for name in NODE_ROWS])
    linked, part = (frame["table"] == "links").to_numpy(), frame["split"].to_numpy()
    codes = np.full(int(frame["row"].to_numpy()[linked].max(initial=0)), -1)
    codes[frame["row"].to_numpy()[linked] - 1] = part[linked]
    rows = Split.of(codes)
    if edge_rows is not None:
        rows = rows.to_graph(edge_rows)
    pairs = []
    for number in (1, 2):
        found = {kind: nodes[:, (linked == kind) & (part == number)] for kind in (True, False)}
        if found[True].shape[1] == 0 or found[False].shape[1] == 0:
            raise DataError(f"no links or no non-links for {PARTS[number]}, expected both", file)
        linked_pairs = found[True] if ordered else np.sort(found[True], axis=0)
        pairs += [distinct_pairs(linked_pairs), torch.from_numpy(found[False])]
    return LinkSplit(rows, *pairs, ordered=ordered)


def distinct_pairs(pairs: Array) -> Tensor:
    """The different pairs, in order. (2, k) -> (2, n)."""
    pairs = pairs[:, np.lexsort(pairs[::-1])]
    new = np.ones(pairs.shape[1], dtype=bool)
    new[1:] = (pairs[:, 1:] != pairs[:, :-1]).any(0)
    return torch.from_numpy(pairs[:, new])
