"""From synthetic records to tables, verdicts, paired tests, the figure and the page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from censnet_experiments.cells import TABLES, find_cell
from censnet_experiments.pages import write_pages
from censnet_experiments.plots import figure2, save_figure
from censnet_experiments.records import Record, append, record_path
from censnet_experiments.reproduction_page import TITLES
from censnet_experiments.spec import find_spec, load_specs
from censnet_experiments.summary import Comparison, Summary, pair, summarize
from censnet_experiments.tables import compare, latex_table, markdown_table

TIMES = {"milliseconds": (10.0, 1.0)}  # of an epoch, of which nothing is published
BLANK = Record("table1", "cora-3", "gcn", 0, 0, {}, {}, 4, {}, 1.0, "cpu, 1 threads", {})


def many(table: str, cell: str, method: str, rows: list[dict[str, float]], **more: object) -> list[Record]:
    made = replace(BLANK, table=table, cell=cell, method=method)
    return [
        replace(made, seed=seed, split_seed=seed, metrics=metrics, **more)  # type: ignore[arg-type]
        for seed, metrics in enumerate(rows)
    ]


def test_a_summary_has_the_mean_the_sample_deviation_and_its_interval() -> None:
    found = summarize(many("table1", "cora-3", "gcn", [{"test": 0.7}, {"test": 0.8}, {"test": 0.75}]))
    summary = found["table1", "cora-3", "gcn"]["test"]
    assert (summary.count, summary.mean, summary.spread) == pytest.approx((3, 75.0, 5.0))
    low, high = stats.t.interval(0.95, 2, loc=75, scale=5 / 3**0.5)
    assert (75 - summary.half_width, 75 + summary.half_width) == pytest.approx((low, high))


def test_a_seed_that_was_recorded_twice_counts_once() -> None:
    records = many("table1", "cora-3", "gcn", [{"test": 0.7}, {"test": 0.8}])
    found = summarize([*records, replace(records[0], metrics={"test": 0.1})])
    assert found["table1", "cora-3", "gcn"]["test"].mean == pytest.approx(75)


@pytest.mark.parametrize(
    ("values", "published", "lower", "verdict", "reached"),
    [
        ((80.0, 80.2, 79.8), (74.0, 2.8), False, "above", True),
        ((74.0, 74.5, 73.6), (74.0, 2.8), False, "same", True),
        ((72.0, 72.1, 71.9), (74.0, 2.8), False, "near", False),
        ((70.0, 70.1, 69.9), (74.0, 2.8), False, "below", False),
        ((73.96, 73.96, 73.96), (74.0, 0.0), False, "same", True),  # equal as printed
        ((0.80, 0.81, 0.79), (0.94, 0.01), True, "above", True),
        ((1.10, 1.11, 1.09), (0.94, 0.01), True, "below", False),
    ],
)
def test_verdicts(
    values: tuple[float, ...], published: tuple[float, float], lower: bool, verdict: str, reached: bool
) -> None:
    cell = find_cell("table2", "lipophilicity-60") if lower else find_cell("table1", "cora-3")
    found = Comparison(Summary(values), published, cell, digits=2 if lower else 1)
    assert (found.verdict, found.reached) == (verdict, reached)


def test_the_share_of_seeds_that_reach_the_published_mean() -> None:
    found = Comparison(Summary((79.5, 70.0, 71.0, 79.36)), (79.4, 1.0), find_cell("table1", "cora-3"), 1)
    assert found.share_of_seeds == 0.5


def test_paired_tests_are_scipys_on_common_splits() -> None:
    draw = np.random.default_rng(0)
    one = draw.normal(0.75, 0.02, 12)
    other = one - draw.normal(0.02, 0.01, 12)
    first = many("table1", "cora-3", "censnet", [{"test": value} for value in one])
    second = many("table1", "cora-3", "gcn", [{"test": value} for value in other])
    found = pair(first, list(reversed(second[:10])), "test")
    assert found is not None
    assert found.count == 10
    assert found.won == sum(one[:10] > other[:10])
    assert found.t == pytest.approx(stats.ttest_rel(one[:10], other[:10]).pvalue)
    assert found.wilcoxon == pytest.approx(stats.wilcoxon(one[:10], other[:10]).pvalue)
    interval = stats.ttest_rel(one[:10], other[:10]).confidence_interval()
    assert (found.low, found.high) == pytest.approx((100 * interval.low, 100 * interval.high))
    assert pair(first, second[:1], "test") is None
    assert found.is_significant
    steady = many("table1", "cora-3", "gcn", [{"test": value - 0.02 - 0.001 * n} for n, value in enumerate(one)])
    few = pair(first, steady[:5], "test")
    assert few is not None
    assert few.wilcoxon > 0.05  # the least that five splits can have
    assert few.is_significant


def test_less_is_better_where_it_is() -> None:
    rows = [{"test": 0.9}, {"test": 0.8}, {"test": 0.85}]
    worse = [{"test": 1.0}, {"test": 0.95}, {"test": 0.99}]
    found = pair(
        many("table2", "lipophilicity-80", "censnet", rows), many("table2", "lipophilicity-80", "gcn", worse), "test"
    )
    assert found is not None
    assert found.difference > 0
    assert found.won == 3


def full_results(folder: Path) -> list[Record]:
    """Three seeds of every method of every cell, half a published spread better, a little apart from each other."""
    records = []
    for table in (*TITLES, "speed"):
        cells = TABLES[table]
        for spec in load_specs(table).values():
            for cell, about in cells.items():
                sign = -1 if about.lower else 1
                rows = [
                    {
                        metric: (mean + sign * (0.5 * spread + 0.01 * seed)) / about.unit
                        for metric, (mean, spread) in spec.published.get(cell, TIMES).items()
                    }
                    for seed in range(3)
                ]
                curve = [round(0.5 + 0.01 * step, 4) for step in range(20)]
                more = {"curves": {"validation": curve}} if table == "table2" else {}
                found = many(table, cell, spec.method, rows, **more)
                append(record_path(folder, table, cell, spec.method), found)
                records += found
    return records


def test_tables_show_ours_beside_the_published(tmp_path: Path) -> None:
    summaries = summarize(full_results(tmp_path))
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


def test_the_figure_has_a_line_for_each_method_and_rate(tmp_path: Path) -> None:
    figure = figure2(full_results(tmp_path))
    assert len(figure.axes) == 8
    for panel in figure.axes:
        means = {line.get_label(): line for line in panel.lines if not line.get_label().startswith("_")}
        assert list(means) == ["GCN", "CensNet"]
        assert len(panel.lines) == 2 * (3 + 1)
        assert means["GCN"].get_ydata()[5] == pytest.approx(0.55)
    save_figure(figure, tmp_path / "one.svg")
    save_figure(figure2(full_results(tmp_path / "again")), tmp_path / "two.svg")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_the_page_is_computed_from_records_alone(tmp_path: Path) -> None:
    full_results(tmp_path / "results")
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
    append(record_path(tmp_path, "table1", "cora-3", "censnet"), many("table1", "cora-3", "censnet", rows))
    page = write_pages(tmp_path, tmp_path / "docs")[0].read_text()
    assert "CensNet, cora-3, test: 74.7 against 79.4, worse by 4.7. 1 of 5 seeds are as good" in page
    assert f"Likely reason: {find_spec('table1', 'censnet').reason}" in page
    assert "There are no records yet." in page


def test_methods_that_keep_one_split_are_paired_by_their_runs_over_splits(tmp_path: Path) -> None:
    """Ten initialisations on one split are one split; the variants that draw splits are what can be paired."""
    for method, base in (("censnet-vae", 0.9), ("vgae", 0.8)):
        rows = [{"auc": base + 0.01 * seed, "ap": base} for seed in range(4)]
        fixed = [replace(record, split_seed=0) for record in many("table3", "cora", method, rows)]
        append(record_path(tmp_path, "table3", "cora", method), fixed)
        drawn = many("table3", "cora", f"{method}-splits", rows)
        append(record_path(tmp_path, "table3", "cora", f"{method}-splits"), drawn)
    page = write_pages(tmp_path, tmp_path / "docs")[0].read_text()
    assert "| cell | VGAE, splits |" in page.replace("Spectral clustering, splits | DeepWalk, splits | ", "")
    assert "+10.00 (+10.00 to +10.00)" in page


def test_no_records_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has no records, expected some: run `censnet reproduce` first"):
        write_pages(tmp_path / "results", tmp_path / "docs")
