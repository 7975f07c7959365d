"""One thread, Ctrl-C as at a terminal, and examples and weights that are always the same, whatever was run before."""

from __future__ import annotations

import importlib.util
import os
import signal
from pathlib import Path

import pytest
import torch

torch.set_num_threads(1)
signal.signal(signal.SIGINT, signal.default_int_handler)  # a suite in the background of a shell ignores Ctrl-C

if importlib.util.find_spec("hypothesis") is not None:  # a GPU machine may have pytest alone
    from hypothesis import HealthCheck, settings

    settings.register_profile(
        "censnet", deadline=None, derandomize=True, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("censnet")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """What a test draws does not depend on those before it, in any order and on any number of processes."""
    torch.manual_seed(0)


@pytest.fixture
def real_data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with the original files, set as CENSNET_DATA: the one in the environment, or beside the repository."""
    given = os.environ.get("CENSNET_DATA")
    folder = Path(given) if given else Path(__file__).parents[2] / "shared" / "data"
    if not (folder / "moleculenet").is_dir():
        pytest.skip("no folder with the original data: set CENSNET_DATA")
    monkeypatch.setenv("CENSNET_DATA", str(folder))
    return folder
