"""The committed pages of results are computed from the committed records."""

from __future__ import annotations

from pathlib import Path

import pytest

from censnet_experiments.pages import write_pages

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / "results").exists(), reason="needs the records of the repository")
def test_committed_pages_and_tables_are_those_of_the_records(tmp_path: Path) -> None:
    written = write_pages(ROOT / "results", tmp_path)
    texts = [path for path in written if path.suffix in (".md", ".tex")]
    assert {path.name for path in texts} == {
        "reproduction.md", "results.md", "edges-results.md", "table1.tex", "table2.tex", "table3.tex",
    }  # fmt: skip
    for path in texts:
        assert path.read_text() == (ROOT / "docs" / path.relative_to(tmp_path)).read_text()


def test_no_records_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has no records, expected some: run `censnet reproduce` first"):
        write_pages(tmp_path / "results", tmp_path / "docs")
