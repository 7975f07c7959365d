"""Measurements that take turns, and the records they become."""

from __future__ import annotations

import json
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

RESULTS = Path(__file__).parent / "results"


def take_turns(
    work: Mapping[str, Callable[[], object]], repetitions: int, warm: int = 3, burst: int = 1
) -> dict[str, float]:
    """The median seconds of each piece of work. They take turns, so that a noisy moment touches all alike.

    In a turn the work is done `burst` times and once before, uncounted: what it then finds in the caches is what it
    left there itself, as in training, and not what another left.
    """
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for repetition in range(warm + repetitions):
        for name, run in work.items():
            for number in range(burst + (burst > 1)):
                begin = time.perf_counter()
                run()
                if repetition >= warm and (burst == 1 or number):
                    seconds[name].append(time.perf_counter() - begin)
    return {name: statistics.median(times) for name, times in seconds.items()}


def versions() -> dict[str, str]:
    import numpy
    import torch_geometric

    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_geometric": torch_geometric.__version__,
        "numpy": numpy.__version__,
    }


def write_record(name: str, measured: Mapping[str, Any], device: str, command: str) -> Path:
    """Write benchmarks/results/NAME.json: what was measured, where, with what, and the command that does it again."""
    record = {
        "command": command,
        "when": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "device": device,
        "threads": torch.get_num_threads(),
        "versions": versions(),
        "measured": measured,
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(record, indent=1) + "\n")
    return path
