"""What docs/ shows is what happens."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pages import ROOT, PageError, find_blocks, find_commands, run_page

DOCS = sorted((ROOT / "docs").glob("*.md"))


def score(folder: Path, run: str, level: str, metric: str, part: str = "test") -> float:
    metrics: dict[str, Any] = json.loads((folder / "runs" / run / "metrics.json").read_text())
    return float(metrics[part][level][metric])


@pytest.mark.parametrize("page", [page for page in DOCS if find_blocks(page.read_text())], ids=lambda page: page.stem)
def test_a_page_runs(page: Path, tmp_path: Path) -> None:
    run_page(page, tmp_path)
