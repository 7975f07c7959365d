"""The page "Results of the default preset", from synthetic records."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from record_samples import make_records, tested

from censnet_experiments.pages import write_pages
from censnet_experiments.plots import depth_figure
from censnet_experiments.records import append, record_path
from censnet_experiments.results_page import page
from censnet_experiments.spec import load_specs
from censnet_experiments.summary import summarize


def test_a_row_compares_with_the_paper_and_with_the_best_published_since() -> None:
    records = make_records("nodes", "cora-1", "strong", tested(0.77, 0.772))
    records += make_records("nodes", "cora-3", "strong", tested(0.82, 0.822))
    records += make_records("nodes", "pubmed-0.1", "strong", tested(0.70, 0.71))
    records += make_records("molecules", "lipophilicity-random", "strong", tested(0.57, 0.56))
    text = page(records, summarize(records), "depth.svg")
    rows = {line.split("|")[1].strip(): line for line in text.splitlines() if line.startswith("|")}
    assert "reaches the paper" in rows["cora-1"]
    assert "reaches both" in rows["cora-3"]
    assert "below the paper" in rows["pubmed-0.1"]
    assert "0.565" in rows["lipophilicity-random"]
    assert "reaches the baseline" in rows["lipophilicity-random"]
    assert "| nodes | 2 of 9 | 1 of 8 | no record |" in text
    assert "| molecules | 1 of 4 | 0 of 3 | no record |" in text
    assert "| links |" not in text
    assert "Candidates for each split: 2." in text


def test_fresh_splits_have_a_column_of_their_own() -> None:
    records = make_records("nodes", "cora-1", "strong", tested(0.77, 0.772))
    assert "fresh" not in page(records, summarize(records), "depth.svg").split("## Nodes")[1]
    fresh = make_records("nodes", "cora-1", "strong-fresh", tested(0.76, 0.764))
    text = page(records + fresh, summarize(records + fresh), "depth.svg")
    rows = {line.split("|")[1].strip(): line.split("|") for line in text.splitlines() if line.startswith("|")}
    assert rows["cora-1"][5].strip() == "76.2 ± 2.5"
    assert "| nodes | 1 of 9 | 0 of 8 | 0 of 1 |" in text
    seen = make_records("nodes", "cora-1", "strong", tested(0.78, 0.782))
    text = page(seen + fresh, summarize(seen + fresh), "depth.svg")
    assert (
        "| reaches both, not on fresh splits |" in text
        or "the second within the interval, not on fresh splits |" in text
    )
    better = make_records("nodes", "cora-3", "strong-fresh", tested(0.82, 0.822))
    assert "| nodes | 1 of 9 | 0 of 8 | 1 of 2 |" in page(records, summarize(records + fresh + better), "depth.svg")
    assert len({len(row) for name, row in rows.items() if name.startswith(("cora", "pubmed"))}) == 1
    for table, seen in (("nodes", 26), ("molecules", 5), ("links", 16)):
        specs = load_specs(table)
        assert specs["strong-fresh"].recipe == specs["strong"].recipe
        assert min(specs["strong-fresh"].plan().seeds()) >= max(seen, specs["strong"].runs)


def test_the_page_counts_selected_gates_and_rounds() -> None:
    records = make_records("nodes", "cora-1", "strong", tested(0.7, 0.7, 0.7))
    assert "The selected network has" not in page(records, summarize(records), "depth.svg")
    chosen = [{"frozen_gates": 0.0, "round": 3}, {"frozen_gates": 1.0, "round": 1}, {"frozen_gates": 0.0, "round": 1}]
    records = [replace(record, chosen=one) for record, one in zip(records, chosen, strict=True)]
    records += make_records("nodes", "cora-1", "strong-hop", tested(0.7))
    text = page(records, summarize(records), "depth.svg")
    assert "has learned gates on 2 of 3 splits, and is of a later round on 1." in text


def test_baselines_and_variants_are_paired_with_strong_on_the_same_splits() -> None:
    values = [0.70 + 0.01 * number for number in range(8)]
    records = make_records("nodes", "cora-1", "strong", tested(*values))
    records += make_records("nodes", "cora-1", "gcn", tested(*(value - 0.02 for value in values)))
    records += make_records("nodes", "cora-1", "strong-no-stream", tested(*(value + 0.01 for value in values)))
    text = page(records, summarize(records), "depth.svg")
    assert "71.5 (**+2.0, +2.0 to +2.0**)" in text
    assert "- **GCN**: `strong` is better in 1 of 1, significantly in 1; split by split, in 8 of 8." in text
    worse = "- **no edge stream**: `strong` is better in 0 of 1, significantly in 0, and significantly worse in 1"
    assert f"{worse}; split by split, in 0 of 8." in text


def test_baselines_on_fresh_splits_are_paired_with_strong_on_those() -> None:
    values = [0.70 + 0.01 * number for number in range(8)]
    records = make_records("nodes", "cora-1", "strong", tested(*values)) + make_records(
        "nodes", "cora-1", "gcn", tested(*values)
    )
    records += make_records("nodes", "cora-1", "strong-fresh", tested(*(value + 0.03 for value in values)))
    assert "### Baselines on fresh splits" not in page(records, summarize(records), "depth.svg")
    records += make_records("nodes", "cora-1", "gcn-fresh", tested(*(value + 0.01 for value in values)))
    seen, fresh = page(records, summarize(records), "depth.svg").split("### Baselines on fresh splits")
    assert "| cora-1 | 73.5 | 73.5 (+0.0, +0.0 to +0.0) |" in seen
    assert "| cora-1 | 76.5 | 74.5 (**+2.0, +2.0 to +2.0**) |" in fresh
    doubt = load_specs("nodes")["gcn"].caveats[0]
    assert doubt in seen
    assert doubt not in fresh  # it is said once
    for baseline in ("gcn", "appnp", "gat"):
        usual, again = (load_specs("nodes")[f"{baseline}{suffix}"] for suffix in ("", "-fresh"))
        assert again.recipe == usual.recipe
        assert again.plan().seeds() == load_specs("nodes")["strong-fresh"].plan().seeds()


def test_the_report_writes_the_page_and_the_curve_of_depth(tmp_path: Path) -> None:
    for depth in (2, 4, 8, 16):
        records = make_records("nodes", "cora-1", f"strong-depth-{depth}", tested(0.7, 0.71))
        append(record_path(tmp_path / "results", "nodes", "cora-1", f"strong-depth-{depth}"), records)
    written = write_pages(tmp_path / "results", tmp_path / "docs")
    assert {path.name for path in written} >= {"results.md", "depth.svg"}
    assert "8 alternations" in (tmp_path / "docs" / "results.md").read_text("utf-8")
    (panel,) = depth_figure(records).axes
    assert panel.get_title(loc="left") == "nodes: accuracy, %"


def test_depths_are_compared_on_splits_that_all_of_them_have() -> None:
    deep = make_records("nodes", "cora-1", "strong-depth-16", tested(0.7, 0.71))
    records = make_records("nodes", "cora-1", "strong-depth-2", tested(0.72, 0.73, 0.1)) + deep
    (panel,) = depth_figure(records).axes
    assert list(panel.containers[0].lines[0].get_ydata()) == pytest.approx([72.5, 70.5])
    strong = make_records("nodes", "cora-1", "strong", tested(0.75, 0.75, 0.75, 0.75))
    text = page(strong + records, summarize(strong + records), "depth.svg")
    (row,) = [line for line in text.split("### Depth")[1].splitlines() if line.startswith("| cora-1")]
    assert "70.5 (+4.5, -1.9 to +10.9, 2 splits)" in row


def test_links_are_compared_with_the_papers_methods_on_the_same_splits() -> None:
    ours = make_records("links", "cora", "strong", [{"auc": 0.96, "ap": 0.95}, {"auc": 0.97, "ap": 0.97}])
    theirs = make_records("table3", "cora", "vgae-splits", [{"auc": 0.92, "ap": 0.95}, {"auc": 0.92, "ap": 0.93}])
    one_split = make_records("table3", "cora", "vgae", [{"auc": 0.5, "ap": 0.5}])
    records = ours + theirs + one_split
    text = page(records, summarize(records), "depth.svg")
    baselines = text.split("### Baselines on the same splits")[1]
    assert "| | strong | VGAE |" in baselines
    assert "| cora auc | 96.5 | 92.0 (+4.5, " in baselines
    assert "from 2 records" in text  # those of ours


def test_every_table_of_ours_has_the_preset_its_ablations_and_depths() -> None:
    for table in ("nodes", "molecules", "links"):
        specs = load_specs(table)
        assert specs["strong"].section == "table"
        assert {"strong-no-stream", "strong-no-features", "strong-printed-gate"} <= set(specs)
        assert {f"strong-depth-{depth}" for depth in (2, 4, 8, 16)} <= set(specs)
    assert {"gcn", "appnp", "gat"} <= set(load_specs("nodes"))
