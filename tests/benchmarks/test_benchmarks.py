"""Benchmarks use names that exist: every module is imported."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py") if path.stem != "__init__")


@pytest.mark.parametrize("name", MODULES)
def test_a_benchmark_is_imported(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "gpu" and importlib.util.find_spec("triton") is None:
        pytest.skip("needs Triton")
    monkeypatch.syspath_prepend(str(ROOT))
    assert importlib.import_module(f"benchmarks.{name}")
