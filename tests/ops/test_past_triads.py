"""Triads of the past: three loops over edges, bounds, and what nothing later changes."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from censnet.ops import past_triads as module
from censnet.ops.history import History, Ties
from censnet.ops.incidence import Incidence
from censnet.ops.past_triads import past_triads, triad_width


def history_of(seed: int, edges: int, ties: Ties, delay: float) -> tuple[History, Tensor, Tensor]:
    """A multigraph with loops and ties, and labels in two channels of which some are not known."""
    draw = torch.Generator().manual_seed(seed)
    nodes = 2 + seed % 6
    ends = torch.randint(nodes, (2, edges), generator=draw)
    times = (torch.randint(edges // 2, (edges,), generator=draw).double() / 4).sort().values
    known = (torch.rand(edges, generator=draw) < 0.7).double()
    labels = torch.randn(edges, 2, generator=draw, dtype=torch.float64) * known.unsqueeze(1)
    return History(Incidence(ends, nodes), times, times + delay if delay else None, ties), labels, known


def slow_triads(history: History, labels: Tensor, known: Tensor) -> Tensor:
    """Every edge e with every pair of edges f and g."""
    (start, end), times = history.incidence.ends.tolist(), history.times.tolist()
    arrivals = times if history.arrivals is None else history.arrivals.tolist()
    every = range(len(times))
    out = torch.zeros(len(times), 4, triad_width(labels.shape[1]), dtype=torch.float64)

    def is_before(f: int, e: int) -> bool:
        return times[f] < times[e] if history.ties == "time" else f < e

    def is_known(f: int, e: int) -> bool:
        early = is_before(f, e) if arrivals[f] == times[f] else arrivals[f] < times[e]
        return early and bool(known[f])

    for e, f, g in itertools.product(every, every, every):
        if start[e] == end[e] or not (is_before(f, e) and is_before(g, e)):
            continue
        for kind, (leaves, arrives) in enumerate(itertools.product((True, False), (True, False))):
            s, k = (start[f], end[f]) if leaves else (end[f], start[f])
            other, t = (start[g], end[g]) if arrives else (end[g], start[g])
            if (s, k, t) == (start[e], other, end[e]) and k not in (s, t):
                out[e, kind, 0] += 1
                if is_known(f, e) and is_known(g, e):
                    out[e, kind, 1] += 1
                    out[e, kind, 2:] += torch.outer(labels[f], labels[g]).flatten()
    return out


@pytest.mark.parametrize("ties", ["time", "row"])
@pytest.mark.parametrize("delay", [0.0, 1.0])
def test_triads_are_those_of_three_loops(ties: Ties, delay: float) -> None:
    for seed in range(6):
        history, labels, known = history_of(seed, 24, ties, delay)
        found = past_triads(history, labels, known)
        torch.testing.assert_close(found, slow_triads(history, labels, known), rtol=1e-12, atol=1e-12)


def test_many_chunks_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    history, labels, known = history_of(5, 200, "time", 0.0)
    whole = past_triads(history, labels, known)
    monkeypatch.setattr(module, "_CHUNK", 16)
    torch.testing.assert_close(past_triads(history, labels, known), whole, rtol=1e-12, atol=1e-12)


def test_only_what_came_before_decides_whether_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_DEGREE", 2)
    # 0 -> 2 -> 1, 0 -> 3 -> 1; then 0 -> 1 with two triads; then both meet a third node, and 0 -> 1 comes again
    ends = torch.tensor([[0, 2, 0, 3, 0, 0, 4, 0], [2, 1, 3, 1, 1, 4, 1, 1]])
    history = History(Incidence(ends, 5), torch.arange(8).double())
    count = past_triads(history, torch.zeros(8, 0), torch.zeros(8))[:, 0, 0]
    assert count[4] == 2
    assert count[7] == 0


def test_many_channels_are_multiplied_with_their_equals_alone() -> None:
    path = Incidence(torch.tensor([[0, 1, 0], [1, 2, 2]]), num_nodes=3)
    history = History(path, torch.tensor([1.0, 2.0, 3.0]).double())
    labels = torch.arange(15.0).view(3, 5)
    found = past_triads(history, labels, torch.ones(3))
    assert found.shape == (3, 4, triad_width(5))
    assert found[2, 0, 2:].tolist() == (labels[0] * labels[1]).tolist()


def test_nothing_that_is_later_changes_a_bit() -> None:
    history, labels, known = history_of(4, 120, "time", 0.5)
    early = history.times <= history.times.median()
    other = torch.where(early.unsqueeze(1), labels, labels * 9 + 1)
    assert torch.equal(past_triads(history, labels, known)[early], past_triads(history, other, known)[early])
    shorter = History(
        Incidence(history.incidence.ends[:, early], history.incidence.num_nodes),
        history.times[early],
        history.times[early] + 0.5,
    )
    rest = past_triads(shorter, labels[early], known[early])
    torch.testing.assert_close(past_triads(history, labels, known)[early], rest, rtol=1e-12, atol=1e-12)


def test_no_edge_has_none() -> None:
    history = History(Incidence(torch.zeros(2, 0, dtype=torch.long), 3), torch.zeros(0).double())
    assert past_triads(history, torch.zeros(0, 2), torch.zeros(0)).shape == (0, 4, 6)
