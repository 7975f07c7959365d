"""Result pages: Markdown pages, LaTeX tables and figures, computed from records alone."""

from __future__ import annotations

from pathlib import Path

from censnet.errors import DataError
from censnet_experiments import edges_page, reproduction_page, results_page
from censnet_experiments.plots import depth_figure, figure2, save_figure
from censnet_experiments.records import read_all
from censnet_experiments.spec import load_specs
from censnet_experiments.summary import summarize
from censnet_experiments.tables import latex_table

FIGURE2, DEPTH = "figures/figure2.svg", "figures/depth.svg"


def write_pages(results: Path = Path("results"), to: Path = Path("docs")) -> list[Path]:
    """Write the pages, a LaTeX table for each table of the paper, and the figures, where there are records.

    Args:
        results: directory of records.
        to: directory of the pages, with `tables/` and `figures/` beside them.

    Returns:
        the written files, `reproduction.md` first.
    """
    records = list(read_all(results))
    if not records:
        raise DataError(f"{results} has no records, expected some: run `censnet reproduce` first")
    summaries = summarize(records)
    written = [to / "reproduction.md"]
    written[0].parent.mkdir(parents=True, exist_ok=True)
    written[0].write_text(reproduction_page.page(records, summaries, FIGURE2), "utf-8")
    for table in reproduction_page.TITLES:
        if any(record.table == table for record in records):
            specs = [spec for spec in load_specs(table).values() if spec.section == "table"]
            written.append(to / "tables" / f"{table}.tex")
            written[-1].parent.mkdir(parents=True, exist_ok=True)
            written[-1].write_text(latex_table(specs, summaries), "utf-8")
    if any(record.curves for record in records):
        written.append(to / FIGURE2)
        save_figure(figure2(records), written[-1])
    if any(record.table in results_page.TITLES for record in records):
        written.append(to / "results.md")
        written[-1].write_text(results_page.page(records, summaries, DEPTH), "utf-8")
    if any(record.table == edges_page.TABLE for record in records):
        written.append(to / "edges-results.md")
        written[-1].write_text(edges_page.page(records, summaries), "utf-8")
    if any("-depth-" in record.method for record in records):
        written.append(to / DEPTH)
        save_figure(depth_figure(records), written[-1])
    return written
