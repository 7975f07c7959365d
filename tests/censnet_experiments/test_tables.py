"""Tables as Markdown and LaTeX, from synthetic records."""

from __future__ import annotations

from pathlib import Path

from record_samples import write_full_results

from censnet_experiments.spec import find_spec, load_specs
from censnet_experiments.summary import summarize
from censnet_experiments.tables import compare, latex_table, markdown_table


def test_tables_show_ours_beside_the_published(tmp_path: Path) -> None:
    summaries = summarize(write_full_results(tmp_path))
    specs = [spec for spec in load_specs("table1").values() if spec.section == "table"]
    text = markdown_table(specs, summaries)
    assert len(text.splitlines()) == 2 + 9
    assert text.splitlines()[0].startswith("|  | ChebyNet | GCN | GraphSAGE |")
    assert "75.4 ± 0.0 (74.0) ▲" in text  # GCN on cora-3: 74.0 + 1.4 + 0.01
    tex = latex_table(specs, summaries)
    assert r"75.4$\pm$0.0 $\uparrow$" in tex
    assert r"74.0$\pm$2.8" in tex
    assert tex.count(r"\\") == 1 + 2 * 9


def test_what_has_no_record_says_so() -> None:
    spec = find_spec("table3", "vgae")
    assert compare(spec, "cora", "auc", {}) is None
    assert "no record (91.4)" in markdown_table([spec], {})
