"""Figure 2 of the paper from records: how good GCN and CensNet are on validation rows as they train."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from censnet.experiments.cells import TABLES
from censnet.experiments.records import Record

ROWS = {"tox21": "validation AUC", "lipophilicity": "validation RMSE"}
LINES = {"gcn": ("GCN", "#117733"), "censnet": ("CensNet", "#332288")}
GREY = "#767676"


def figure2(records: Iterable[Record]) -> Figure:
    """A panel for each data set and rate: for each method a thin line for every seed and a thick one for their mean."""
    curves: dict[tuple[str, str], list[list[float]]] = {}
    for record in records:
        if record.table == "table2" and "validation" in record.curves:
            curves.setdefault((record.cell, record.method), []).append(record.curves["validation"])
    figure = Figure(figsize=(11, 5.6), layout="constrained")
    panels = figure.subplots(len(ROWS), 4, sharex=True, sharey="row")
    for row, (data, label) in zip(panels, ROWS.items(), strict=True):
        cells = [(cell, about) for cell, about in TABLES["table2"].items() if about.data == data]
        for panel, (cell, about) in zip(row, cells, strict=True):
            for method, (name, colour) in LINES.items():
                _draw(panel, curves.get((cell, method), []), name, colour)
            panel.set_title(f"{data}, {round(100 * about.rate)} % for training", fontsize="medium", loc="left")
            panel.spines[["top", "right"]].set_visible(False)
            panel.tick_params(colors=GREY)
            panel.grid(alpha=0.25)
        row[0].set_ylabel(label)
    for panel in panels[-1]:
        panel.set_xlabel("epoch", color=GREY)
    if panels[0][0].lines or panels[1][0].lines:
        handles = [Line2D([], [], color=colour, lw=2, label=name) for name, colour in LINES.values()]
        figure.legend(handles=handles, loc="outside upper right", ncols=len(LINES), frameon=False)
    return figure


def _draw(panel: Axes, curves: Sequence[Sequence[float]], name: str, colour: str) -> None:
    if not curves:
        return
    length = min(map(len, curves))
    rows, epochs = np.array([curve[:length] for curve in curves]), np.arange(1, length + 1)
    for seed in rows:
        panel.plot(epochs, seed, color=colour, lw=0.6, alpha=0.3)
    panel.plot(epochs, rows.mean(0), color=colour, lw=1.8, label=name)


def save_figure(figure: Figure, path: Path) -> None:
    """As SVG, which is text, and the same to the byte each time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({"svg.hashsalt": "censnet", "svg.fonttype": "none"}):
        figure.savefig(path, format="svg", metadata={"Date": None})
