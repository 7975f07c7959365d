from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from commands import run, succeed


@pytest.mark.slow
def test_rows_are_explained_on_the_screen_and_drawn(place: Path, tmp_path: Path) -> None:
    to = tmp_path / "why"
    asked = ["explain", place / "joint", place / "payments", "--target", "age"]
    printed = succeed(*asked, "--row", "acct-3", "--to", to).output
    assert "row 4, acct-3: age: " in printed
    assert "closed gate" in printed
    assert "at random" in printed
    table = pd.read_csv(to / "explanations.csv")
    assert set(table["kind"]) == {"edge", "node", "column"}
    assert {path.name for path in to.iterdir()} == {"explanations.csv", "row-4.svg", "row-4.png"}
    assert "expected one column of edge:is_fraud, node:age" in run(*asked[:3], "--top", "1").output
    assert "--row and --top" in run(*asked).output
    bad = run("explain", place / "joint", place / "payments", "--target", "is_fraud", "--row", "#91")
    assert bad.exit_code == 2
    assert "it cannot be explained" in bad.output
