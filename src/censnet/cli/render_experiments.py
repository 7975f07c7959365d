"""A reproduced table beside the published numbers, on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Group
from rich.table import Table

from censnet.console import Text
from censnet_experiments.cells import find_cell
from censnet_experiments.records import Record
from censnet_experiments.spec import Spec
from censnet_experiments.summary import summarize
from censnet_experiments.tables import compare, digits_of

WORDS = {"above": "better", "same": "the same", "near": "worse, within a published spread", "below": "worse"}


def comparison(asked: Sequence[tuple[str, Spec]], records: Iterable[Record]) -> Table:
    """A row for each cell, method and metric: the mean and spread over seeds, what was published, and the verdict."""
    summaries = summarize(records)
    table = Table("cell", "method", "metric")
    for name in ("mean", "spread", "seeds", "published"):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    for cell, spec in asked:
        about = find_cell(spec.table, cell)
        digits = digits_of(about)
        for metric in about.metrics:
            ours = summaries.get((spec.table, cell, spec.method), {}).get(metric)
            if ours is None:
                continue
            against = compare(spec, cell, metric, summaries)
            published = "" if against is None else "{:.{d}f} ± {:.{d}f}".format(*against.published, d=digits)
            spread = f"{ours.spread:.{digits}f}" if ours.count > 1 else ""
            verdict = "" if against is None else WORDS[against.verdict]
            row = (cell, spec.title, metric, f"{ours.mean:.{digits}f}", spread, str(ours.count), published, verdict)
            table.add_row(*row)
    return table


def methods_table(specs: Iterable[Spec]) -> Table:
    """The methods of a table: the name that `--method` takes, the title, the runs, the caveats."""
    table = Table("method", "title", "runs", "caveats")
    for spec in specs:
        table.add_row(spec.method, spec.title, str(spec.runs), Group(*(Text(f"- {caveat}") for caveat in spec.caveats)))
    return table
