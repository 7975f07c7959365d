"""Splits of directed links: ordered pairs, of which each way is a link of its own."""

from __future__ import annotations

import io

import pandas as pd
import pytest
import torch
from torch import Tensor

from censnet.data.splits.links import link_rows, links, read_links
from censnet.ops.graph import Graph


def graph(num_nodes: int = 60, num_edges: int = 600, seed: int = 0) -> Graph:
    """A directed multigraph with loops; about a quarter of the links are returned."""
    generator = torch.Generator().manual_seed(seed)
    ends = torch.randint(num_nodes, (2, num_edges), generator=generator)
    ends = torch.cat([ends, ends[:, :100].flip(0), ends[:, 50:80]], dim=1)
    return Graph(torch.ones(num_nodes, 1), torch.ones(ends.shape[1], 1), ends, directed=True)


def pairs(columns: Tensor) -> list[tuple[int, int]]:
    return [(i, j) for i, j in columns.t().tolist()]


@pytest.mark.parametrize("seed", range(5))
def test_ordered_pairs_are_shared_out(seed: int) -> None:
    data = graph(seed=seed)
    split = links(data, seed=seed, ordered=True)
    assert split.ordered
    linked = {(i, j) for i, j in pairs(data.ends) if i != j}
    held_out = {"validation": pairs(split.validation_links), "test": pairs(split.test_links)}
    assert [len(held_out[part]) for part in held_out] == [int(0.05 * len(linked)), int(0.10 * len(linked))]
    seen = set(pairs(data.ends[:, split.rows.train]))
    for part, found in held_out.items():
        assert len(found) == len(set(found)), part
        assert set(found) <= linked
        assert not set(found) & seen, "parallel edges are hidden together"
        of_rows = pairs(data.ends[:, getattr(split.rows, part)])
        assert set(of_rows) == set(found)
    assert not set(held_out["validation"]) & set(held_out["test"])
    assert {(j, i) for i, j in held_out["test"]} & seen, "a link may be seen whose reverse is held out"
    negatives = pairs(split.validation_negatives), pairs(split.test_negatives)
    assert not set(negatives[0]) & set(negatives[1])
    for found, positive in zip(negatives, held_out.values(), strict=True):
        assert len(found) == len(set(found)) == len(positive)
        assert not set(found) & linked
        assert all(i != j for i, j in found)
        back = {(j, i) for i, j in positive} - linked
        assert len(back & set(found)) >= min(len(back), len(found) // 2)


def test_the_same_seed_gives_the_same_split() -> None:
    one, same, other = (links(graph(), seed=seed, ordered=True) for seed in (1, 1, 2))
    assert one.test_negatives.equal(same.test_negatives)
    assert one.rows.test.equal(same.rows.test)
    assert not one.test_links.equal(other.test_links)


def test_a_split_file_holds_ordered_pairs() -> None:
    data = graph()
    split = links(data, ordered=True)
    text = link_rows(split, data).assign(part=1).drop(columns="part").to_csv(index=False)
    again = read_links(pd.read_csv(io.StringIO(text), dtype="string"), ordered=True)
    assert again.ordered
    for name in ("validation_links", "validation_negatives", "test_links", "test_negatives"):
        assert getattr(again, name).equal(getattr(split, name)), name
    assert again.rows.train.equal(split.rows.train)


def test_links_from_one_side_to_another_have_negatives_of_that_direction() -> None:
    generator = torch.Generator().manual_seed(0)
    ends = torch.stack([
        torch.randint(20, (200,), generator=generator),
        torch.randint(20, 50, (200,), generator=generator),
    ])  # fmt: skip
    split = links(Graph(torch.ones(50, 1), torch.ones(200, 1), ends, directed=True), ordered=True)
    for found in (split.validation_negatives, split.test_negatives):
        assert (found[0] < 20).all()
        assert (found[1] >= 20).all()


def test_undirected_links_of_a_directed_graph_are_as_before() -> None:
    data = graph()
    split = links(data)
    assert not split.ordered
    assert (split.test_links[0] < split.test_links[1]).all()
    both = {frozenset(pair) for pair in pairs(split.test_links)}
    assert not both & {frozenset(pair) for pair in pairs(data.ends[:, split.rows.train])}
