"""Cells of the tables: dataset, training share and metrics.

Tables 1 to 3 are the paper's, "speed" is its statement on time; "nodes", "molecules" and "links" are ours.
"""

from __future__ import annotations

from dataclasses import dataclass

from censnet.errors import ArgumentError


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
    """

    data: str
    rate: float
    metrics: tuple[str, ...]
    unit: float = 1.0
    lower: bool = False
    split: str = ""


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
