"""Figures from records: Figure 2 of the paper, validation scores by epoch; and scores by depth."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from censnet_experiments.cells import TABLES, Cell
from censnet_experiments.records import Record

ROWS = {"tox21": "validation AUC", "lipophilicity": "validation RMSE"}
LINES = {"gcn": ("GCN", "#117733"), "censnet": ("CensNet", "#332288")}
GREY = "#767676"
COLORS = ("#332288", "#117733", "#CC6677", "#88CCEE", "#DDCC77", "#AA4499")
DEPTHS = (2, 4, 8, 16)


def figure2(records: Iterable[Record]) -> Figure:
    """A panel for each dataset and rate: for each method a thin line for every seed and a thick one for the mean."""
    curves: dict[tuple[str, str], list[list[float]]] = {}
    for record in records:
        if record.table == "table2" and "validation" in record.curves:
            curves.setdefault((record.cell, record.method), []).append(record.curves["validation"])
    figure = Figure(figsize=(11, 5.6), layout="constrained")
    panels = figure.subplots(len(ROWS), 4, sharex=True, sharey="row")
    for row, (data, label) in zip(panels, ROWS.items(), strict=True):
        cells = [(cell, about) for cell, about in TABLES["table2"].items() if about.data == data]
        for panel, (cell, about) in zip(row, cells, strict=True):
            for method, (name, color) in LINES.items():
                _draw(panel, curves.get((cell, method), []), name, color)
            panel.set_title(f"{data}, {round(100 * about.rate)} % for training", fontsize="medium", loc="left")
            panel.spines[["top", "right"]].set_visible(False)
            panel.tick_params(colors=GREY)
            panel.grid(alpha=0.25)
        row[0].set_ylabel(label)
    for panel in panels[-1]:
        panel.set_xlabel("epoch", color=GREY)
    if panels[0][0].lines or panels[1][0].lines:
        handles = [Line2D([], [], color=color, lw=2, label=name) for name, color in LINES.values()]
        figure.legend(handles=handles, loc="outside upper right", ncols=len(LINES), frameon=False)
    return figure


def _draw(panel: Axes, curves: Sequence[Sequence[float]], name: str, color: str) -> None:
    if not curves:
        return
    length = min(map(len, curves))
    rows, epochs = np.array([curve[:length] for curve in curves]), np.arange(1, length + 1)
    for seed in rows:
        panel.plot(epochs, seed, color=color, lw=0.6, alpha=0.3)
    panel.plot(epochs, rows.mean(0), color=color, lw=1.8, label=name)


def depth_figure(records: Iterable[Record]) -> Figure:
    """A panel for each task and metric: the mean of each cell and its spread, by alternations.

    Splits differ more than depths do, so the means of a cell are over the seeds that all its depths have.
    """
    scores: dict[tuple[str, str], dict[str, dict[int, dict[int, float]]]] = {}
    for record in records:
        method, _, depth = record.method.rpartition("-depth-")
        about = TABLES[record.table].get(record.cell)
        if method and about is not None:
            metric = "test" if "test" in about.metrics else about.metrics[0]
            found = scores.setdefault((record.table, _metric(record.table, about)), {}).setdefault(record.cell, {})
            found.setdefault(int(depth), {})[record.seed] = about.unit * record.metrics[metric]
    figure = Figure(figsize=(3.8 * max(len(scores), 1), 3.6), layout="constrained")
    panels = figure.subplots(1, max(len(scores), 1), squeeze=False)[0]
    for panel, ((table, metric), cells) in zip(panels, scores.items(), strict=False):
        for number, (cell, depths) in enumerate(cells.items()):
            order, seeds = sorted(depths), set.intersection(*map(set, depths.values()))
            values = [[depths[depth][seed] for seed in sorted(seeds)] for depth in order]
            if not seeds:
                continue
            means, spreads = [np.mean(each) for each in values], [_spread(each) for each in values]
            color = COLORS[number % len(COLORS)]
            panel.errorbar(order, means, yerr=spreads, color=color, lw=1.6, marker="o", ms=4, capsize=2, label=cell)
        panel.set_xscale("log", base=2)
        panel.set_xticks(DEPTHS, [str(depth) for depth in DEPTHS])
        panel.set_title(f"{table}: {metric}", fontsize="medium", loc="left")
        panel.set_xlabel("alternations of node and edge layers", color=GREY)
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(colors=GREY)
        panel.grid(alpha=0.25)
        panel.legend(frameon=False, fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3)
    return figure


def _spread(values: Sequence[float]) -> float:
    """The sample standard deviation, as in the tables."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def _metric(table: str, cell: Cell) -> str:
    if table == "nodes":
        return "accuracy, %"
    return "RMSE, less is better" if cell.lower else "AUC, %" if cell.unit == 100 else "AUC"


def save_figure(figure: Figure, path: Path) -> None:
    """Save as SVG, the same bytes each time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({"svg.hashsalt": "censnet", "svg.fonttype": "none"}):
        figure.savefig(path, format="svg", metadata={"Date": None})
