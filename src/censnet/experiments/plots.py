"""Figure 2 of the paper from records: how good GCN and CensNet are on validation rows as they train."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from censnet.experiments.cells import TABLES
from censnet.experiments.records import Record

PANELS = {"tox21": "validation AUC", "lipophilicity": "validation RMSE"}
LINES = {"gcn": ("GCN", "--"), "censnet": ("CensNet", "-")}
COLOURS = {60: "#9ecae1", 70: "#6baed6", 80: "#3182bd", 90: "#08519c"}


def figure2(records: Iterable[Record]) -> Figure:
    """A panel for each data set, a line for each method and rate: the mean over seeds, between the lowest and highest.

    A line is named as in the paper: CensNet90 is CensNet with 90 % of the molecules for training.
    """
    curves: dict[tuple[str, str], list[list[float]]] = {}
    for record in records:
        if record.table == "table2" and "validation" in record.curves:
            curves.setdefault((record.cell, record.method), []).append(record.curves["validation"])
    figure = Figure(figsize=(10, 4), layout="constrained")
    for panel, (data, label) in zip(figure.subplots(1, 2), PANELS.items(), strict=True):
        for cell, about in TABLES["table2"].items():
            for method, (name, style) in LINES.items():
                found = curves.get((cell, method), [])
                if about.data != data or not found:
                    continue
                length = min(map(len, found))
                rows = np.array([curve[:length] for curve in found])
                percent, epochs = round(100 * about.rate), np.arange(1, length + 1)
                panel.plot(epochs, rows.mean(0), style, color=COLOURS[percent], label=f"{name}{percent}", lw=1.2)
                panel.fill_between(epochs, rows.min(0), rows.max(0), color=COLOURS[percent], alpha=0.12, lw=0)
        panel.set(title=data, xlabel="epoch", ylabel=label)
        if panel.lines:
            panel.legend(ncols=2, fontsize="small")
    return figure


def save_figure(figure: Figure, path: Path) -> None:
    """As SVG, which is text, and the same to the byte each time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({"svg.hashsalt": "censnet", "svg.fonttype": "none"}):
        figure.savefig(path, format="svg", metadata={"Date": None})
