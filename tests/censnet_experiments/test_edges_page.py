"""The page "Results where edges carry data", from synthetic records."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from record_samples import make_records

from censnet_experiments.cells import TABLES
from censnet_experiments.edges_page import SETS, best_trees, page, paired
from censnet_experiments.pages import write_pages
from censnet_experiments.records import Record, append, record_path
from censnet_experiments.spec import load_specs
from censnet_experiments.summary import summarize


def scored(cell: str, method: str, *values: float, validation: float | None = None) -> list[Record]:
    """Records whose metrics all have these values, and one value or the same on validation rows."""
    metrics = TABLES["edges"][cell].metrics
    rows = [
        dict.fromkeys(metrics, value)
        | {f"validation_{metric}": value if validation is None else validation for metric in metrics}
        for value in values
    ]
    return make_records("edges", cell, method, rows, chosen={"epoch": 7, "shows_labels": 1.0})


def rows_of(text: str) -> dict[str, list[str]]:
    """The first table, by its first column."""
    lines = [line for line in text.split("## Bitcoin OTC")[0].splitlines() if line.startswith("| ")]
    return {cells[1]: cells for cells in ([part.strip() for part in line.split("|")] for line in lines)}


def test_the_first_table_says_who_wins() -> None:
    records = scored("otc-sign", "strong", 0.98, 0.981, 0.982) + scored("otc-sign", "trees", 0.97, 0.972, 0.971)
    records += scored("otc-rating", "strong", 2.5, 2.51, 2.52) + scored("otc-rating", "trees", 2.2, 2.22, 2.21)
    records += scored("payments", "strong", 0.5, 0.6, 0.7) + scored("payments", "trees", 0.6, 0.5, 0.7)
    records += scored("direction", "strong", 0.99)
    rows = rows_of(page(records, summarize(records)))
    assert rows["otc-sign"][3:8] == [
        "0.981 ± 0.002", "0.971 ± 0.002 (graph features)", "+0.010, +0.008 to +0.012", "3", "`strong` wins",
    ]  # fmt: skip
    assert rows["otc-rating"][7] == "**trees win**"
    assert rows["otc-rating"][5].startswith("-0.300")
    assert rows["payments"][7] == "no significant difference"
    assert rows["direction"][3:8] == ["0.990 (one seed)", "not run", "", "", "not compared"]
    assert rows["karate"][3:5] == ["not run", "not run"]


def test_the_best_trees_are_chosen_on_validation_rows() -> None:
    records = scored("otc-rating", "trees", 2.0, 2.1, validation=2.6)
    records += scored("otc-rating", "trees-gaps", 2.2, 2.3, validation=2.4)
    records += scored("otc-rating", "trees-raw", 1.0, validation=1.0)  # not all of its seeds are there yet
    summaries = summarize(records)
    found = best_trees("otc-rating", "rmse", summaries)
    assert found is not None
    assert found.method == "trees-gaps"
    assert best_trees("otc-sign", "auc", summaries) is None


def test_seeds_of_one_split_are_paired_by_number() -> None:
    first, second = (scored("otc-sign-time", name, 0.8, 0.81, 0.85) for name in ("strong", "trees"))
    first, second = ([replace(record, split_seed=0) for record in some] for some in (first, second))
    found = paired(first, second, "auc")
    assert found is not None
    assert (found.count, found.difference) == (3, 0)


def test_every_method_and_ablation_is_in_the_section_of_its_set() -> None:
    records = scored("case118", "strong", 0.05, 0.06) + scored("case118", "strong-no-edge-stream", 0.1, 0.11)
    records += make_records("edges", "case118", "dc-flow", [{"nrmse_P": 0.1}, {"nrmse_P": 0.1}])
    text = page(records, summarize(records))
    section = text.split("## Power grid")[1].split("## Bond")[0]
    assert "| no edge stream | 0.105 ± 0.064 (**+0.050**) | 0.105 ± 0.064 (**+0.050**) |" in section
    assert "| DC power flow | 0.100 ± 0.000 (+0.045) |  |" in section
    assert "| strong | 2 | epoch 7, known labels shown in 2 of 2 | 1 |" in section
    assert "- **no edge stream**: As many layers" in section
    assert "censnet reproduce edges --cell case118 --cell case118-unseen\n" in section


def test_cells_without_records_are_listed_beside_published_scores() -> None:
    records = scored("direction", "strong", 1.0, 1.0)
    text = page(records, summarize(records))
    assert all(f"## {about.title}" in text for about in SETS.values())
    assert "Not run yet: bde, bde-10." in text
    assert "| published: ALFABET 0.1.0 (St. John et al. 2020) | 0.678 | 0.654 |  |  |" in text
    assert "Not run yet: direction." not in text
    assert text.count("not run | not run") == sum(len(about.metrics) for about in TABLES["edges"].values()) - 1


def test_the_page_is_written_where_there_are_records(tmp_path: Path) -> None:
    for record in scored("karate", "strong", 0.9, 1.0):
        append(record_path(tmp_path, "edges", "karate", "strong"), [record])
    written = [path.name for path in write_pages(tmp_path, tmp_path / "docs")]
    assert "edges-results.md" in written
    assert "| karate | accuracy | 95.0 ± 63.5 | not run |" in (tmp_path / "docs" / "edges-results.md").read_text()


def test_every_data_set_of_the_table_has_a_section() -> None:
    assert set(SETS) == {about.data for about in TABLES["edges"].values()}
    assert {spec.table for spec in load_specs("edges").values()} == {"edges"}
