"""`censnet report`, as it is typed."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import run, succeed
from page_content import content_of


@pytest.mark.slow
def test_a_page_of_the_training_data_and_of_others(place: Path, tmp_path: Path) -> None:
    printed = succeed("report", place / "joint", "--to", tmp_path / "page.html")
    assert "a browser shows it" in printed.output
    found = content_of((tmp_path / "page.html").read_text())
    assert [target["level"] for target in found["targets"]] == ["node", "edge"]
    assert [panel["shown"] for panel in found["map"]["panels"]] == [30, 118]
    smiles = tmp_path / "few.csv"
    smiles.write_text("smiles\nCCO\nCCN\nCCCl\n")
    succeed("report", place / "graphs", smiles, "--to", tmp_path / "few.html", "--map", "tsne")
    panels = content_of((tmp_path / "few.html").read_text())["map"]["panels"]
    assert [panel["shown"] for panel in panels] == [9, 6, 3]


def test_a_page_is_not_written_over_a_file_of_the_run_or_under_another_name(place: Path, tmp_path: Path) -> None:
    result = run("report", place / "links", "--to", tmp_path / "page.pdf")
    assert (result.exit_code, "ends in .html" in result.stderr) == (2, True)
    (tmp_path / "page.html").mkdir()
    result = run("report", place / "links", "--to", tmp_path / "page.html")
    assert (result.exit_code, "is a folder" in result.stderr) == (2, True)
