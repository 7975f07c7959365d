"""Synthetic records of the tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from censnet_experiments.cells import TABLES
from censnet_experiments.records import Record, append, record_path
from censnet_experiments.reproduction_page import TITLES
from censnet_experiments.spec import load_specs

TIMES = {"milliseconds": (10.0, 1.0)}  # of an epoch, of which nothing is published
BLANK = Record("table1", "cora-3", "gcn", 0, 0, {}, {}, 2, {}, 1.0, "cpu, 1 threads", {})


def make_records(table: str, cell: str, method: str, rows: list[dict[str, float]], **more: object) -> list[Record]:
    """A record for each row of metrics, with the seeds 0, 1, ..."""
    made = replace(BLANK, table=table, cell=cell, method=method)
    return [
        replace(made, seed=seed, split_seed=seed, metrics=metrics, **more)  # type: ignore[arg-type]
        for seed, metrics in enumerate(rows)
    ]


def tested(*values: float) -> list[dict[str, float]]:
    """Rows of test scores."""
    return [{"test": value} for value in values]


def write_full_results(folder: Path) -> list[Record]:
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
                found = make_records(table, cell, spec.method, rows, **more)
                append(record_path(folder, table, cell, spec.method), found)
                records += found
    return records
