"""Sums over the past against the dense masks, with gradients, and what no future may change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from censnet.ops import scan, textbook
from censnet.ops.causal import TimedLists, decayed_sums, prefix_sums
from censnet.ops.history import History
from censnet.ops.incidence import Incidence

SAMPLES = 60


@dataclass(frozen=True)
class Timed:
    """A multigraph with loops and ties, late labels of which some never arrive, and messages."""

    incidence: Incidence
    times: Tensor
    arrivals: Tensor
    as_of: Tensor
    messages: Tensor
    grad: Tensor

    def history(self, ties: str = "time") -> History:
        return History(self.incidence, self.times, self.arrivals, ties, self.as_of)  # type: ignore[arg-type]


def timed(seed: int) -> Timed:
    generator = torch.Generator().manual_seed(seed)

    def number(most: int, *shape: int) -> Tensor:
        return torch.randint(most, shape, generator=generator)

    nodes, edges = 1 + int(number(8)), int(number(90))
    times = number(1 + int(number(40)), edges).double() / 4
    late = number(3, edges).double() * number(8, edges)
    arrivals = torch.where(number(6, edges) == 0, torch.inf, times + late / 4)
    as_of = number(40, nodes).double() / 4
    messages, grad = (torch.randn(n, 4, generator=generator, dtype=torch.float64) for n in (edges, 2 * edges + nodes))
    return Timed(Incidence(number(nodes, 2, edges), nodes), times, arrivals, as_of, messages, grad)


def numbers_of(history: History, ties: str, labels: bool) -> tuple[Tensor, Tensor]:
    """The order of entries and of queries, as numbers of which the smaller is before."""
    order = history.times.argsort(stable=True)
    now = torch.empty_like(history.times).index_copy_(0, order, torch.arange(len(order)).double())
    if ties == "time":
        return (history.arrivals if labels and history.arrivals is not None else history.times), history.times
    if not labels or history.arrivals is None:
        return now, now
    after = (history.times.unsqueeze(0) <= history.arrivals.unsqueeze(1)).sum(1) - 0.5
    return torch.where(history.arrivals == history.times, now, after), now


def keys_of(incidence: Incidence, relation: str) -> tuple[Tensor, Tensor]:
    (start, end), n = incidence.ends, incidence.num_nodes
    if relation == "pair":
        return start * n + end, torch.cat([start * n + end, end * n + start])
    return (start if relation == "out" else end), torch.cat([start, end])


@pytest.mark.slow
@pytest.mark.parametrize("ties", ["time", "row"])
@pytest.mark.parametrize("size", [1, 7, 1 << 13])
def test_sums_over_the_past_are_the_dense_masks(ties: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(scan.BLOCK, "cpu", size)
    monkeypatch.setitem(scan.CHUNK, "cpu", 2 + size % 62)
    for seed in range(SAMPLES // 6):
        sample = timed(1000 * size + seed)
        rate = torch.tensor([0.3, 2.0], dtype=torch.float64)
        history, nodes = sample.history(ties), torch.arange(sample.incidence.num_nodes)
        for relation in ("out", "in", "pair"):
            for labels in (False, True):
                key, asked = keys_of(sample.incidence, relation)
                order, now = numbers_of(history, ties, labels)
                seen = textbook.past(key, order, asked, now.repeat(2))
                entry, time = sample.arrivals if labels else sample.times, sample.times.repeat(2)
                if relation != "pair":
                    of_nodes = (key == nodes.unsqueeze(1)) & (entry <= sample.as_of.unsqueeze(1))
                    seen, time = torch.cat([seen, of_nodes.double()]), torch.cat([time, sample.as_of])
                gap = (time.unsqueeze(1) - entry).clamp(min=0)
                inside = seen * (gap <= 1.25)
                reads = history.reads(relation, labels)  # type: ignore[arg-type]
                window = history.reads(relation, labels, window=1.25)  # type: ignore[arg-type]
                assert reads.count.tolist() == seen.sum(1).tolist()
                assert window.count.tolist() == inside.sum(1).tolist()
                check(sample, lambda m, r, q=reads: prefix_sums(m, q), lambda m, r, A=seen: A @ m, rate)
                check(sample, lambda m, r, q=window: prefix_sums(m, q), lambda m, r, A=inside: A @ m, rate)

                def decays(m: Tensor, r: Tensor, A: Tensor = seen, gap: Tensor = gap) -> Tensor:
                    halves = zip(r, m.chunk(2, dim=1), strict=True)
                    return torch.cat([(torch.exp(-one * gap).nan_to_num() * A) @ half for one, half in halves], 1)

                check(sample, lambda m, r, q=reads: decayed_sums(m, r, q), decays, rate)


def check(
    sample: Timed,
    fast: Callable[[Tensor, Tensor], Tensor],
    dense: Callable[[Tensor, Tensor], Tensor],
    rate: Tensor,
) -> None:
    """Values, and the gradients of messages and rates."""
    found = []
    for function in (fast, dense):
        messages, rates = sample.messages.clone().requires_grad_(), rate.clone().requires_grad_()
        out = function(messages, rates)
        of, grad = (messages, rates), sample.grad[: len(out)]
        gradients = torch.autograd.grad(out, of, grad, allow_unused=True, materialize_grads=True)
        found.append((out.detach(), *gradients))
    for mine, expected in zip(*found, strict=True):
        torch.testing.assert_close(mine, expected, rtol=1e-10, atol=1e-10)


def test_decayed_past_is_the_matrix_of_the_textbook() -> None:
    sample = timed(3)
    start = sample.incidence.ends[0]
    matrix = textbook.past(start, sample.times, start, sample.times, rate=0.7)
    reads = TimedLists(start, sample.times, sample.incidence.num_nodes).before(start, sample.times)
    found = decayed_sums(sample.messages, torch.tensor([0.7], dtype=torch.float64), reads)
    torch.testing.assert_close(found, matrix @ sample.messages)


def test_later_values_change_no_bit_and_later_edges_nothing_but_rounding() -> None:
    for seed in range(20):
        sample = timed(100 + seed)
        history, cut = sample.history(), sample.times.median() if len(sample.times) else 0.0
        early, later = sample.times <= cut, sample.times > cut
        other = torch.where(later.unsqueeze(1), 1e6 * sample.messages, sample.messages)
        rate = torch.tensor([0.5], dtype=torch.float64)
        rest = History(Incidence(sample.incidence.ends[:, early], sample.incidence.num_nodes), sample.times[early])
        for relation in ("out", "in", "pair"):
            reads, fewer = history.reads(relation), rest.reads(relation)  # type: ignore[arg-type]
            for dtype, tolerance in ((torch.float32, 1e-5), (torch.float64, 1e-12)):
                for sums in (prefix_sums, lambda m, q, r=rate: decayed_sums(m, r.to(m.dtype), q)):
                    both = torch.cat([early.repeat(2), torch.zeros(len(reads) - 2 * len(early), dtype=torch.bool)])
                    before = sums(sample.messages.to(dtype), reads)[both]
                    assert torch.equal(before, sums(other.to(dtype), reads)[both])
                    fewer_rows = sums(sample.messages[early].to(dtype), fewer)[: len(before)]
                    torch.testing.assert_close(before, fewer_rows, rtol=tolerance, atol=tolerance)


def test_an_edge_has_no_derivative_by_itself_or_by_the_future() -> None:
    sample = timed(7)
    history, messages = History(sample.incidence, sample.times), sample.messages.clone().requires_grad_()
    for edge in range(0, len(sample.times), 9):
        for relation in ("out", "in", "pair"):
            out = prefix_sums(messages, history.reads(relation))  # type: ignore[arg-type]
            rows = out[[edge, edge + len(sample.times)]]
            (grad,) = torch.autograd.grad(rows.sum(), messages)
            assert bool((grad[sample.times >= sample.times[edge]] == 0).all())


def test_sums_are_kept_in_float64_whatever_comes_in() -> None:
    count = 100_000
    lists = TimedLists(torch.zeros(count, dtype=torch.int64), torch.arange(count).double(), 1)
    end, start = (torch.tensor([float(at)]).double() for at in (count, count - 3))
    reads = lists.before(torch.tensor([0]), end).since(start)
    messages = torch.full((count, 2), 1000.1)
    for dtype in (torch.float32, torch.bfloat16):
        values = messages.to(dtype)
        out = prefix_sums(values, reads)
        assert out.dtype == dtype
        torch.testing.assert_close(
            out.double(), 3 * values[:1].double(), rtol=4e-3 if dtype.itemsize == 2 else 1e-7, atol=0
        )
    first, again = (prefix_sums(messages, lists.before(lists.key, lists.time)) for _ in range(2))
    assert torch.equal(first, again)


def test_errors_name_the_argument() -> None:
    lists = TimedLists(torch.tensor([0]), torch.tensor([1.0]).double(), 1)
    reads = lists.before(torch.tensor([0]), torch.tensor([2.0]).double())
    with pytest.raises(ValueError, match=r"messages has shape \(2, 1\), expected \(1, \*\)"):
        prefix_sums(torch.ones(2, 1), reads)
    with pytest.raises(ValueError, match="rate has 2 rates, expected a divisor of the 3 channels"):
        decayed_sums(torch.ones(1, 3), torch.ones(2), reads)
    with pytest.raises(ValueError, match=r"time has dtype torch\.float32, expected torch\.float64"):
        TimedLists(torch.tensor([0]), torch.tensor([1.0]), 1)
    incidence = Incidence(torch.tensor([[0], [1]]), num_nodes=2)
    with pytest.raises(ValueError, match=r"arrivals\[0\] is 1.0, expected 2.0 or later"):
        History(incidence, torch.tensor([2.0]).double(), torch.tensor([1.0]).double())
