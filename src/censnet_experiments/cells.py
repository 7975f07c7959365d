"""Cells of the tables: dataset, training share and metrics.

Tables 1 to 3 are the paper's, "speed" is its statement on time; "nodes", "molecules", "links" and "edges" are ours.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from censnet.errors import ArgumentError
from censnet_experiments.edges.patterns import LABELS


@dataclass(frozen=True)
class Cell:
    """One row of a table.

    Args:
        data: name of the dataset.
        rate: training share of the labels.
        metrics: of a record and of the table, in order.
        unit: factor from the fraction of a record to the unit of the table, 100 for percent.
        lower: whether lower is better.
        split: kind of split, where a table has several.
        targets: of `censnet train`, in the table of edges.
        runs: number of seeds, where it is not that of the spec.
        one_split: whether all seeds share one split, such as that by time.
    """

    data: str
    rate: float
    metrics: tuple[str, ...]
    unit: float = 1.0
    lower: bool = False
    split: str = ""
    targets: tuple[str, ...] = field(default=(), repr=False)
    runs: int | None = field(default=None, repr=False)
    one_split: bool = field(default=False, repr=False)


def _nodes() -> dict[str, Cell]:
    rates = {"cora": ("3", "1", "0.5"), "citeseer": ("1", "0.5", "0.3"), "pubmed": ("0.1", "0.05", "0.03")}
    return {
        f"{data}-{rate}": Cell(data, float(rate) / 100, ("test",), unit=100)
        for data, percents in rates.items()
        for rate in percents
    }


def _molecules() -> dict[str, Cell]:
    return {
        f"{data}-{percent}": Cell(data, percent / 100, ("validation", "test"), lower=data == "lipophilicity")
        for data in ("tox21", "lipophilicity")
        for percent in (60, 70, 80, 90)
    }


def _edges() -> dict[str, Cell]:
    """A metric is `METRIC`, or `METRIC_COLUMN` where there are several targets: see `edge_scores`."""
    bonds: dict[str, Any] = {
        "metrics": ("mae_bde", "mae_bdfe"),
        "lower": True,
        "targets": ("bond:bde", "bond:bdfe"),
        "runs": 3,
    }
    payments: dict[str, Any] = {"metrics": ("ap",), "targets": ("edge:is_fraud",)}
    karate: dict[str, Any] = {"metrics": ("accuracy",), "unit": 100, "targets": ("node:faction",), "runs": 20}
    grid: dict[str, Any] = {"metrics": ("nrmse_P", "nrmse_Va"), "targets": ("edge:P=oriented", "node:Va")}
    return {
        "otc-sign": Cell("otc", 0.8, ("auc",), split="random", targets=("edge:sign",)),
        "otc-sign-time": Cell("otc", 0.8, ("auc", "ap"), split="time", targets=("edge:sign",), one_split=True),
        "otc-sign-stream": Cell("otc", 0.8, ("auc", "ap"), split="stream", targets=("edge:sign",), one_split=True),
        "otc-rating": Cell("otc", 0.8, ("rmse",), lower=True, split="random", targets=("edge:rating=regression",)),
        "direction": Cell("direction", 0.8, ("auc",), split="random", targets=("edge:label",)),
        "payments": Cell("payments", 0.8, split="random", **payments),
        "payments-time": Cell("payments", 0.8, split="stream", one_split=True, **payments),
        "karate": Cell("karate", 0.8, split="stratified", **karate),
        "karate-9": Cell("karate", 9 / 34, split="stratified", **karate),
        **{
            f"patterns-{label.replace('_', '-')}": Cell(
                "patterns", 1 / 3, ("f1",), unit=100, split="graphs", targets=(f"node:{label}",)
            )
            for label in LABELS
        },
        "case118": Cell("case118", 0.8, lower=True, split="graphs", **grid),
        "case118-unseen": Cell("case118", 0.9, ("r2_P",), split="grids", targets=("edge:P=oriented",)),
        "bde": Cell("bde", 0.97, split="authors", one_split=True, **bonds),
        "bde-10": Cell("bde", 0.1, split="authors", **bonds),
    }  # fmt: skip


TABLES: dict[str, dict[str, Cell]] = {
    "table1": _nodes(),
    "table2": _molecules(),
    "table3": {data: Cell(data, 0.85, ("auc", "ap"), unit=100) for data in ("cora", "citeseer", "pubmed")},
    "nodes": _nodes(),
    "molecules": {
        f"{data}-{split}": Cell(data, 0.8, ("validation", "test"), lower=data == "lipophilicity", split=split)
        for data in ("tox21", "lipophilicity")
        for split in ("random", "scaffold")
    },
    "links": {data: Cell(data, 0.85, ("auc", "ap"), unit=100) for data in ("cora", "citeseer", "pubmed")},
    "edges": _edges(),
    "speed": {f"cora-{place}": Cell("cora", 0.03, ("milliseconds",), lower=True) for place in ("cpu", "gpu")},
}


def find_cell(table: str, cell: str) -> Cell:
    """Find the cell with this name.

    >>> find_cell("table1", "cora-3")
    Cell(data='cora', rate=0.03, metrics=('test',), unit=100, lower=False, split='')
    """
    if table not in TABLES:
        raise ArgumentError(f"there is no table {table!r}, expected one of {', '.join(TABLES)}")
    if cell not in TABLES[table]:
        raise ArgumentError(f"{table} has no cell {cell!r}, expected one of {', '.join(TABLES[table])}")
    return TABLES[table][cell]
