"""Triangles of edges, against every pair of edges looked at one by one."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from strategies import incidences
from torch import Tensor

from censnet.ops import triangles
from censnet.ops.incidence import Incidence
from censnet.ops.triangles import count_wedges, find_triangles


def one_by_one(ends: Tensor) -> list[tuple[int, int, int, int]]:
    """(edge, type, f, g) of each triangle, sorted."""
    rows, found = ends.t().tolist(), []
    for e, (s, t) in enumerate(rows):
        for f, (a, b) in enumerate(rows):
            k = a + b - s if s in (a, b) else None
            if s == t or k is None or k in (s, t):
                continue
            found += [
                (e, 2 * (a != s) + (d != t), f, g) for g, (c, d) in enumerate(rows) if {c, d} == {k, t} and c != d
            ]
    return sorted(found)


def listed(incidence: Incidence) -> list[tuple[int, int, int, int]]:
    found = find_triangles(incidence, directed=True)
    row = torch.arange(found.count.numel()).repeat_interleave(found.count.view(-1))
    order = found.segments.index.long()
    columns = row // 4, row % 4, found.first[order], found.second[order]
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


@given(incidences())
@settings(max_examples=200, deadline=None)
def test_every_triangle_is_found_once_with_its_type(incidence: Incidence) -> None:
    assert listed(incidence) == one_by_one(incidence.ends)
    total = find_triangles(Incidence(incidence.ends, incidence.num_nodes), directed=False).count
    assert torch.equal(total[:, 0], find_triangles(incidence, directed=True).count.sum(1))


def test_pairs_are_found_in_chunks_too(monkeypatch) -> None:
    ends = torch.randint(9, (2, 60), generator=torch.Generator().manual_seed(0))
    expected = listed(Incidence(ends, 9))
    monkeypatch.setattr(triangles, "_CHUNK", 7)
    assert listed(Incidence(ends, 9)) == expected


def test_sums_are_over_the_pairs_of_an_edge() -> None:
    ends = torch.tensor([[0, 0, 1, 1], [2, 1, 2, 2]])  # 0 -> 2 by way of 1, twice
    found = find_triangles(Incidence(ends, 3), directed=True)
    value = torch.tensor([[5.0], [2.0], [3.0], [7.0]])
    sums = found.sum(value[found.first] * value[found.second]).squeeze(2)
    assert sums[0].tolist() == [2 * 3 + 2 * 7, 0, 0, 0]
    assert sums[1].tolist() == [0, 5 * 3 + 5 * 7, 0, 0]


def test_an_edge_between_two_hubs_has_none_and_hubs_cost_no_more_than_their_neighbors() -> None:
    leaves = torch.arange(2, 602)
    zero, one = torch.zeros_like(leaves), torch.ones_like(leaves)
    ends = torch.cat([torch.tensor([[0], [1]]), torch.stack([zero, leaves]), torch.stack([one, leaves])], dim=1)
    incidence = Incidence(ends, 602)
    count = find_triangles(incidence, directed=False).count[:, 0]
    assert count[0] == 0
    assert (count[1:] == 1).all()
    assert count_wedges(incidence) == 2 * 2 * 600
