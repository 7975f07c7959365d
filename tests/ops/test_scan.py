"""The segmented scan against a loop, whatever the chunks."""

from __future__ import annotations

import pytest
import torch

from censnet.ops import scan
from censnet.ops.scan import ScanPlan


@pytest.mark.parametrize("chunk", [2, 3, 64])
def test_scan_is_the_recurrence_of_each_list(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(scan.CHUNK, "cpu", chunk)
    generator = torch.Generator().manual_seed(chunk)
    for _ in range(5):
        lengths = torch.randint(0, 40, (6,), generator=generator)
        values = torch.randn(int(lengths.sum()), 4, generator=generator, dtype=torch.float64)
        times = torch.rand(len(values), generator=generator, dtype=torch.float64)
        times = torch.cat([part.sort().values for part in times.split(lengths.tolist())])
        rate = torch.tensor([0.0, 3.0], dtype=torch.float64)
        expected = torch.empty_like(values)
        decayed = torch.empty_like(values)
        place = 0
        for length in lengths.tolist():
            sums, old, before = torch.zeros(4).double(), torch.zeros(4).double(), 0.0
            for _ in range(length):
                sums = sums + values[place]
                factor = torch.exp(-rate * (times[place] - before)).repeat_interleave(2)
                old, before = factor * old + values[place], float(times[place])
                expected[place], decayed[place] = sums, old
                place += 1
        plan = ScanPlan(lengths)
        torch.testing.assert_close(plan.scan(values), expected, rtol=1e-13, atol=1e-13)
        torch.testing.assert_close(plan.scan(values, times, rate), decayed, rtol=1e-13, atol=1e-13)


def test_bits_of_a_list_do_not_depend_on_other_lists_or_later_entries() -> None:
    values = torch.randn(700, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    alone = ScanPlan(torch.tensor([300])).scan(values[200:500])
    among = ScanPlan(torch.tensor([150, 50, 500])).scan(values)
    assert torch.equal(among[200:500], alone)
