"""Runs to read, and to spoil copies of."""

from __future__ import annotations

from pathlib import Path

import pytest
from samples import payments, quick

from censnet.pipeline import train


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two finished runs."""
    home = tmp_path_factory.mktemp("runs")
    train(payments(), "node:vip", home / "a", settings=quick(training__epochs=2))
    train(payments(), "node:vip", home / "b", settings=quick(training__epochs=3), seed=1)
    return home
