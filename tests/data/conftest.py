from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture
def real_data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with the original files, set as CENSNET_DATA: the one in the environment, or beside the repository."""
    given = os.environ.get("CENSNET_DATA")
    folder = Path(given) if given else Path(__file__).parents[2].parent / "shared" / "data"
    if not (folder / "moleculenet").is_dir():
        pytest.skip("no folder with the original data: set CENSNET_DATA")
    monkeypatch.setenv("CENSNET_DATA", str(folder))
    return folder
