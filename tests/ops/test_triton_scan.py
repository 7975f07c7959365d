"""The kernels of scans against the CPU and the dense masks, with every output filled with NaN before it is written.

Without a GPU they can be interpreted, where there is Triton: TRITON_INTERPRET=1.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import torch
from strategies import poisoned_memory
from torch import Tensor

from censnet.ops import scan, textbook, triton
from censnet.ops.causal import Reads, TimedLists, decayed_sums, prefix_sums
from censnet.ops.history import History
from censnet.ops.incidence import Incidence
from censnet.ops.scan import ScanPlan

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1" and triton.kernels is not None
DEVICE = "cpu" if INTERPRETED else "cuda"
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not INTERPRETED and not torch.cuda.is_available(), reason="needs a CUDA device"),
]
RELATIVE = {torch.float64: 1e-10, torch.float32: 1e-5, torch.bfloat16: 2e-2}
WIDTHS = (1, 3, 32, 33, 64, 300)


@pytest.fixture(autouse=True)
def _poison(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if INTERPRETED:
        monkeypatch.setattr(triton, "is_available", lambda table: table.numel() > 0)
        monkeypatch.setattr(scan, "take_rows", lambda table, rows: table.index_select(0, rows))
    with poisoned_memory():
        yield


def numbers(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def hub_history(edges: int, device: str, seed: int = 0) -> History:
    """Half of the edges leave one node; few different times; labels come later, some never."""
    generator = torch.Generator().manual_seed(seed)
    ends = torch.randint(max(2, edges // 8), (2, edges), generator=generator)
    ends[0, : edges // 2] = 0
    times = torch.randint(max(1, edges // 3), (edges,), generator=generator).double() / 7
    late = torch.randint(9, (edges,), generator=generator).double()
    arrivals = torch.where(late == 8, torch.inf, times + late)
    incidence = Incidence(ends.to(device), int(ends.max()) + 1 if edges else 3)
    return History(incidence, times.to(device), arrivals.to(device))


def check(dtype: torch.dtype, width: int, reads: list[Reads], rates: int | None = None) -> None:
    """The device against float64 on the CPU without kernels, with gradients, and twice the same to the bit."""
    found = []
    for here in (reads[0], reads[1], reads[1]):
        device, kind = here.key.device, torch.float64 if here is reads[0] else dtype
        messages = numbers(len(here.lists.key), width, seed=1).to(dtype).to(device, kind).requires_grad_()
        grad = numbers(len(here), width, seed=2).bfloat16().to(device, kind)
        leaves = [messages]
        if rates is not None:
            leaves.append(torch.linspace(0, 2, rates, dtype=torch.float64, device=device).requires_grad_())
        with pytest.MonkeyPatch.context() as patch:
            if here is reads[0]:
                patch.setattr(triton, "is_available", lambda table: False)
            out = prefix_sums(messages, here) if rates is None else decayed_sums(*leaves, here)
            found.append([out.detach(), *torch.autograd.grad(out, leaves, grad)])
    for wanted, first, again in zip(*found, strict=True):
        assert first.dtype in (dtype, torch.float64)
        assert torch.equal(first, again)
        scale = float(wanted.abs().max()) if wanted.numel() else 0.0
        torch.testing.assert_close(first.double().cpu(), wanted, rtol=0, atol=RELATIVE[dtype] * (scale or 1.0))


@pytest.mark.parametrize("dtype", RELATIVE, ids=str)
@pytest.mark.parametrize("width", WIDTHS)
def test_sums_decays_and_windows_are_those_of_float64(width: int, dtype: torch.dtype) -> None:
    histories = [hub_history(150 if INTERPRETED else 1500, device) for device in ("cpu", DEVICE)]
    for relation in ("out", "in", "pair"):
        for labels in (False, True):
            reads = [history.reads(relation, labels) for history in histories]  # type: ignore[arg-type]
            windows = [history.reads(relation, labels, window=3.0) for history in histories]  # type: ignore[arg-type]
            check(dtype, width, reads)
            check(dtype, width, windows)
            for rates in {1, 2 if width % 2 == 0 else 3 if width % 3 == 0 else 1}:
                check(dtype, width, reads, rates)


@pytest.mark.parametrize("edges", [0, 1, 63, 64, 65, 129])
def test_few_edges_and_the_edges_of_chunks(edges: int) -> None:
    histories = [hub_history(edges, device, seed=edges) for device in ("cpu", DEVICE)]
    reads = [history.reads("out") for history in histories]
    check(torch.float32, 4, reads)
    check(torch.float32, 4, reads, 2)


@pytest.mark.parametrize("length", [4096, 5000, 70_000])
def test_long_lists_have_totals_of_totals(length: int) -> None:
    every = torch.arange(min(length, 5000) if INTERPRETED else length)
    key, time = every % 50 * (every % 3 == 0), every.double()
    reads = []
    for device in ("cpu", DEVICE):
        lists = TimedLists(key.to(device), time.to(device), 50)
        reads.append(lists.before(key.to(device), time.to(device)))
    check(torch.float32, 8, reads)
    check(torch.float64, 8, reads, 2)


@pytest.mark.parametrize("decays", [False, True])
def test_inner_and_last_chunks_advance_in_one_launch(decays: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(scan.CHUNK, DEVICE, 4)
    monkeypatch.delitem(scan.BLOCK, DEVICE, raising=False)  # as on a GPU
    lengths = [3, 150, 0, 4, 8, 21, 1]
    values, times = numbers(sum(lengths), 4, seed=6), torch.arange(sum(lengths)).double() / 8
    rate = torch.tensor([0.3, 2.0]).double() if decays else torch.zeros(2).double()
    wanted = []
    for some, when in zip(values.split(lengths), times.split(lengths), strict=True):
        past = (when.unsqueeze(1) - when).unsqueeze(2)
        decay = torch.where(past >= 0, torch.exp(-rate.repeat_interleave(2) * past), 0)
        wanted.append((decay * some).sum(1))
    plan = ScanPlan(torch.tensor(lengths, device=DEVICE))
    assert len(plan.blocks) == 1
    assert plan.blocks[0].inner == 37 + 1 + 5
    assert plan.outer is not None
    assert plan.outer.outer is not None
    about = (times.to(DEVICE), rate.to(DEVICE)) if decays else ()
    torch.testing.assert_close(plan.scan(values.to(DEVICE), *about).cpu(), torch.cat(wanted))


def test_decayed_past_is_the_matrix_of_the_textbook() -> None:
    history = hub_history(300, DEVICE)
    start, times = history.incidence.ends[0], history.times
    matrix = textbook.past(start.cpu(), times.cpu(), start.cpu(), times.cpu(), rate=0.7)
    reads = TimedLists(start, times, history.incidence.num_nodes).before(start, times)
    messages = numbers(300, 4, seed=3)
    found = decayed_sums(messages.to(DEVICE), torch.tensor([0.7], dtype=torch.float64, device=DEVICE), reads)
    torch.testing.assert_close(found.cpu(), matrix @ messages)


def test_later_values_change_no_bit_and_later_edges_nothing_but_rounding() -> None:
    history = hub_history(900, DEVICE)
    cut = history.times.median()
    early, later = history.times <= cut, history.times > cut
    ends = history.incidence.ends[:, early].contiguous()
    rest = History(Incidence(ends, history.incidence.num_nodes), history.times[early], as_of=None)
    messages = numbers(900, 4, seed=4).to(DEVICE)
    other = torch.where(later.unsqueeze(1), torch.inf, messages)
    rate = torch.tensor([0.5], dtype=torch.float64, device=DEVICE)
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.float64, 1e-12)):
        for sums in (prefix_sums, lambda m, q: decayed_sums(m, rate, q)):
            for relation in ("out", "in", "pair"):
                reads, fewer = history.reads(relation), rest.reads(relation)  # type: ignore[arg-type]
                both = torch.cat([early.repeat(2), early.new_zeros(len(reads) - 1800)])
                before = sums(messages.to(dtype), reads)[both]
                assert torch.equal(before, sums(other.to(dtype), reads)[both])
                again = sums(messages[early].to(dtype), fewer)[: len(before)]
                torch.testing.assert_close(before, again, rtol=tolerance, atol=tolerance)


def test_bits_of_a_list_do_not_depend_on_other_lists_or_later_entries() -> None:
    values = numbers(700, 3, seed=0).to(DEVICE)
    alone = ScanPlan(torch.tensor([300], device=DEVICE)).scan(values[200:500])
    among = ScanPlan(torch.tensor([150, 50, 500], device=DEVICE)).scan(values)
    assert torch.equal(among[200:500], alone)


def test_rows_that_are_not_contiguous_and_gradients_that_are_expanded() -> None:
    found = []
    for device in ("cpu", DEVICE):
        history = hub_history(200, device)
        messages = numbers(8, 200, seed=5).to(device).t().requires_grad_()
        out = prefix_sums(messages, history.reads("out"))
        found.append([out.detach().cpu(), torch.autograd.grad(out.sum(), messages)[0].cpu()])
    for mine, theirs in zip(*found, strict=True):
        torch.testing.assert_close(mine, theirs)
