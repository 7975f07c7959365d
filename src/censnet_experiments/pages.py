"""Everything that is published, from records alone: the page, the tables, the figure."""

from __future__ import annotations

from pathlib import Path

from censnet_experiments import results_page as beyond
from censnet_experiments.plots import depth_figure, figure2, save_figure
from censnet_experiments.records import read_all
from censnet_experiments.reproduction_page import TITLES, page
from censnet_experiments.spec import load_specs
from censnet_experiments.summary import summarize
from censnet_experiments.tables import latex_table

FIGURE, DEPTH = "figures/figure2.svg", "figures/depth.svg"


def report(results: Path = Path("results"), docs: Path = Path("docs")) -> list[Path]:
    """Write both pages, a LaTeX table for each of the paper's, and the figures; what has no records is left out.

    Args:
        results: the directory of records.
        docs: where the pages go, with `tables/` and `figures/` beside them.

    Returns:
        what was written, the page of what reproduces first.
    """
    records = list(read_all(results))
    if not records:
        raise ValueError(f"{results} has no records, expected some: run `censnet reproduce` first")
    summaries = summarize(records)
    written = [docs / "reproduction.md"]
    written[0].parent.mkdir(parents=True, exist_ok=True)
    written[0].write_text(page(records, summaries, FIGURE), "utf-8")
    for table in TITLES:
        if any(record.table == table for record in records):
            specs = [spec for spec in load_specs(table).values() if spec.place == "table"]
            written.append(docs / "tables" / f"{table}.tex")
            written[-1].parent.mkdir(parents=True, exist_ok=True)
            written[-1].write_text(latex_table(specs, summaries), "utf-8")
    if any(record.curves for record in records):
        written.append(docs / FIGURE)
        save_figure(figure2(records), written[-1])
    if any(record.table in beyond.TITLES for record in records):
        written.append(docs / "results.md")
        written[-1].write_text(beyond.page(records, summaries, DEPTH), "utf-8")
    if any("-depth-" in record.method for record in records):
        written.append(docs / DEPTH)
        save_figure(depth_figure(records), written[-1])
    return written
