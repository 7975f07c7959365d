"""A stream that is killed answers every event as the batch pass does, for every prefix of a few histories.

`python -m benchmarks.stream_kills` does it for 200 histories and 100 kills of the command.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_streams_give_the_answers_of_every_prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    kills = importlib.import_module("benchmarks.stream_kills")
    runs = kills.train_variants(tmp_path, kills.VARIANTS[1:3])
    count = kills.kill_streams(runs, range(3), 6, tmp_path, forked=True)
    assert not count.failures
    assert (count.of["kills"], count.of["histories"], count.of["starts"]) == (6, 3, 9)
    assert count.of["prefixes"] == count.of["events"]
    assert count.of["events"] > 30
    assert count.largest_difference < 1e-5
