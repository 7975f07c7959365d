"""Windows in time against loops over all pairs of edges."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import assert_near, incidences
from torch import Tensor

from censnet.ops.graph import Graph
from censnet.ops.incidence import Incidence
from censnet.ops.windows import GROUPS, TimeWindows, WindowSums

WIDTHS = (1.0, 2.5, math.inf)


def timed(incidence: Incidence, seed: int, moments: int = 6) -> Graph:
    """A graph whose edges have few different times, so that many are equal."""
    generator = torch.Generator().manual_seed(seed)
    times = torch.randint(moments, (incidence.num_edges,), generator=generator).double() - 2
    nodes, edges = torch.ones(incidence.num_nodes, 1), torch.ones(incidence.num_edges, 1)
    return Graph(nodes, edges, incidence.ends, times=times)


def in_group(graph: Graph, e: int, f: int, directed: bool) -> list[bool]:
    """Whether f is in each group of e."""
    (s, t), (a, b) = graph.ends[:, e].tolist(), graph.ends[:, f].tolist()
    if directed:
        return [a == s, b == s, a == t, b == t, (a, b) == (s, t), (a, b) == (t, s)]
    return [s in (a, b), t in (a, b), {a, b} == {s, t}]


def slow(graph: Graph, values: Tensor, directed: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Gaps, counts and sums by a loop over all pairs of edges."""
    times, E = graph.times, graph.num_edges
    assert times is not None
    gaps = torch.full((E, GROUPS[directed], 2), torch.inf, dtype=torch.float64)
    counts = torch.zeros(E, GROUPS[directed], 2, len(WIDTHS), dtype=torch.float64)
    sums = torch.zeros(*counts.shape, values.shape[1], dtype=torch.float64)
    for e in range(E):
        for f in range(E):
            for group, member in enumerate(in_group(graph, e, f, directed)):
                if not member or e == f:
                    continue
                for side, gap in enumerate((times[e] - times[f], times[f] - times[e])):
                    if gap >= 0:
                        gaps[e, group, side] = torch.minimum(gaps[e, group, side], gap)
                        for number, width in enumerate(WIDTHS):
                            counts[e, group, side, number] += gap <= width
                            sums[e, group, side, number] += values[f] * (gap <= width)
    return gaps, counts, sums


@pytest.mark.slow
@given(incidence=incidences(union=False, max_nodes=4), seed=st.integers(0, 2**16), directed=st.booleans())
def test_windows_are_those_of_a_loop_over_all_pairs(incidence: Incidence, seed: int, directed: bool) -> None:
    graph = timed(incidence, seed)
    values = torch.randn(graph.num_edges, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    windows = TimeWindows.of(graph, directed)
    gaps, counts, sums = slow(graph, values, directed)
    torch.testing.assert_close(windows.gaps(), gaps, rtol=0, atol=0)
    assert_near(windows.counts(WIDTHS), counts, 1e-12)
    assert_near(windows.sums(values, WIDTHS), sums, 1e-12)


@pytest.mark.slow
@given(incidence=incidences(union=False, max_nodes=4), seed=st.integers(0, 2**16), data=st.data())
def test_sums_of_some_edges_and_without_others(incidence: Incidence, seed: int, data: st.DataObject) -> None:
    graph = timed(incidence, seed)
    if not graph.num_edges:
        return
    some = st.lists(st.integers(0, graph.num_edges - 1), max_size=6, unique=True)
    rows, without = (torch.tensor(data.draw(some), dtype=torch.int64) for _ in range(2))
    values = torch.randn(graph.num_edges, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    windows = TimeWindows.of(graph, directed=True)
    expected = windows.sums(values.index_fill(0, without, 0), WIDTHS)[rows]
    assert_near(WindowSums(windows, values)(WIDTHS, rows, without), expected, 1e-12)
    torch.testing.assert_close(windows.gaps(rows), windows.gaps()[rows], rtol=0, atol=0)
    assert_near(windows.counts(WIDTHS, rows), windows.counts(WIDTHS)[rows], 1e-12)


def test_reversing_all_edges_exchanges_the_roles() -> None:
    ends = torch.randint(5, (2, 40), generator=torch.Generator().manual_seed(0))
    graph = timed(Incidence(ends, 5), 0)
    back = timed(Incidence(ends.flip(0), 5), 0)
    forward, backward = (TimeWindows.of(one, True).gaps() for one in (graph, back))
    torch.testing.assert_close(backward, forward[:, [3, 2, 1, 0, 4, 5]], rtol=0, atol=0)


def test_the_order_of_rows_does_not_matter_and_time_backward_exchanges_the_sides() -> None:
    graph = timed(Incidence(torch.randint(4, (2, 30), generator=torch.Generator().manual_seed(1)), 4), 1)
    assert graph.times is not None
    order = torch.randperm(30, generator=torch.Generator().manual_seed(2))
    shuffled = graph.with_edges(order)
    assert_near(TimeWindows.of(shuffled, True).counts(WIDTHS), TimeWindows.of(graph, True).counts(WIDTHS)[order], 1e-12)
    mirrored = TimeWindows.of(graph.with_times(-graph.times), True)
    assert_near(mirrored.counts(WIDTHS), TimeWindows.of(graph, True).counts(WIDTHS).flip(2), 1e-12)


def test_a_later_event_of_another_group_changes_no_bit_of_a_sum() -> None:
    ends = torch.tensor([[0] * 50 + [7] * 50, [1] * 50 + [8] * 50])
    graph = timed(Incidence(ends, 9), 3, moments=1000)
    values = torch.rand(100, 1, generator=torch.Generator().manual_seed(0))
    other = values.clone()
    other[50:] = 1e12
    first, second = (TimeWindows.of(graph, True).sums(each, (3.0, math.inf))[:50] for each in (values, other))
    assert torch.equal(first, second)


@pytest.mark.slow
def test_a_star_of_many_events_is_exact() -> None:
    count = 100_000
    ends = torch.stack([torch.zeros(count, dtype=torch.int64), torch.arange(1, count + 1)])
    graph = Graph(torch.ones(count + 1, 1), torch.ones(count, 1), ends, times=torch.arange(count).double())
    windows = TimeWindows.of(graph, directed=True)
    sums = windows.sums(torch.full((count, 1), 0.1), (10.0, math.inf))[:, 0, 0, :, 0]
    assert float((sums[:, 1] - 0.1 * torch.arange(count)).abs().max()) < 1e-3  # 0.1 is one of float32
    assert_near(sums[100:, 0], torch.full((count - 100,), 10 * float(torch.tensor(0.1)), dtype=torch.float64), 1e-12)


def test_a_graph_without_times_is_refused() -> None:
    graph = Graph(torch.ones(2, 1), torch.ones(1, 1), torch.tensor([[0], [1]]))
    with pytest.raises(ValueError, match="the edges of the graph have no times"):
        TimeWindows.of(graph, directed=True)
