"""From synthetic records to tables, verdicts, paired tests, the figure and the page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from record_samples import make_records, write_full_results

from censnet_experiments.pages import write_pages
from censnet_experiments.records import append, record_path
from censnet_experiments.spec import find_spec


@pytest.mark.slow
def test_the_page_is_computed_from_records_alone(tmp_path: Path) -> None:
    write_full_results(tmp_path / "results")
    written = write_pages(tmp_path / "results", tmp_path / "docs")
    assert [path.relative_to(tmp_path / "docs").as_posix() for path in written] == [
        "reproduction.md",
        "tables/table1.tex",
        "tables/table2.tex",
        "tables/table3.tex",
        "figures/figure2.svg",
    ]
    page = written[0].read_text()
    # three seeds are all that Table 2 asks for, and too few for the others
    assert "| Table 1 | 0 of 72 | 54 of 54 | 9 of 9, within 2 points in 9 |" in page
    assert "| Table 2 | 64 of 64 | 48 of 48 | 16 of 16 |" in page
    assert "| Table 3 | 0 of 24 | 18 of 18 | 6 of 6 |" in page
    assert "**CensNet** reaches the published mean in 9 of 9, and is at most 2 points worse in 9." in page
    assert "**CensNet** reaches the published mean in 16 of 16" in page
    assert "**CensNet-VAE** reaches the published mean in 6 of 6" in page
    assert "Cells that do not reproduce" not in page
    assert "![Figure 2](figures/figure2.svg)" in page
    assert "CensNet is better in 24 of 24 comparisons of a lower with a higher rate." in page
    assert "on cpu, 1 threads: GCN of PyTorch Geometric 9.49 ms, CensNet 9.49 ms (+0 %)" in page
    assert "cora-3, half of the nodes in a batch: +0.0 points (+0.0 to +0.0, 3 splits)" in page


def test_what_does_not_reproduce_is_listed_with_its_evidence(tmp_path: Path) -> None:
    rows = [{"test": value} for value in (0.731, 0.739, 0.794, 0.735, 0.738)]
    append(record_path(tmp_path, "table1", "cora-3", "censnet"), make_records("table1", "cora-3", "censnet", rows))
    page = write_pages(tmp_path, tmp_path / "docs")[0].read_text()
    assert "CensNet, cora-3, test: 74.7 against 79.4, worse by 4.7. 1 of 5 seeds are as good" in page
    assert f"Likely reason: {find_spec('table1', 'censnet').reason}" in page
    assert "There are no records yet." in page


def test_methods_that_keep_one_split_are_paired_by_their_runs_over_splits(tmp_path: Path) -> None:
    """Ten initialisations on one split are one split; the variants that draw splits are what can be paired."""
    for method, base in (("censnet-vae", 0.9), ("vgae", 0.8)):
        rows = [{"auc": base + 0.01 * seed, "ap": base} for seed in range(4)]
        fixed = [replace(record, split_seed=0) for record in make_records("table3", "cora", method, rows)]
        append(record_path(tmp_path, "table3", "cora", method), fixed)
        drawn = make_records("table3", "cora", f"{method}-splits", rows)
        append(record_path(tmp_path, "table3", "cora", f"{method}-splits"), drawn)
    page = write_pages(tmp_path, tmp_path / "docs")[0].read_text()
    assert "| cell | VGAE, splits |" in page.replace("Spectral clustering, splits | DeepWalk, splits | ", "")
    assert "+10.00 (+10.00 to +10.00)" in page
