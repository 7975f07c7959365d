"""A comparison on one screen: a table of methods for each target, and the sentence."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
from rich.console import Group, RenderableType
from rich.table import Table

from censnet.comparison import Comparison
from censnet.console import Text
from censnet.tasks.metrics import higher_is_better


def comparison_screen(found: Comparison) -> RenderableType:
    """The split, a table for each target, and the sentence."""
    parts: list[RenderableType] = []
    if found.path is not None:
        parts.append(Text(str(found.path), "bold"))
    parts.append(Text(f"split of the last seed: {found.stored.split}"))
    table = found.table
    for target, mine in table.groupby("target", sort=False):
        parts += [Text(""), *_target_table(str(target), mine)]
    return Group(*parts, Text(""), Text(found.sentence))


def _target_table(target: str, rows: pd.DataFrame) -> Iterable[RenderableType]:
    """Methods of one target on test rows with their intervals, then why some were skipped."""
    metrics = list(dict.fromkeys(rows["metric"]))
    seeds = int(rows["seeds"].max())
    about = "one seed" if seeds == 1 else f"{seeds} seeds, ± is a 95 % interval of the mean"
    grid = Table.grid(padding=(0, 3))
    grid.add_column(overflow="fold")
    for _ in (*metrics, "seconds"):
        grid.add_column(justify="right", no_wrap=True)
    arrows = [metric if higher_is_better(metric) else f"{metric} (less)" for metric in metrics]
    grid.add_row(Text(target, "bold"), *(Text(name, "cyan") for name in (*arrows, "seconds")))
    best = _best(rows[rows["metric"] == metrics[0]], metrics[0])
    for method, mine in rows[rows["note"] == ""].groupby("method", sort=False):
        style = "bold" if method == best else ""
        cells = [_cell(mine[mine["metric"] == metric]) for metric in metrics]
        seconds = f"{mine['seconds'].iloc[0]:.1f}"
        grid.add_row(Text(f"  {method}", style), *(Text(cell, style) for cell in (*cells, seconds)))
    yield grid
    yield Text(f"  test rows of {about}", "dim")
    for _, row in rows[rows["note"] != ""].iterrows():
        yield Text(f"  without {row['method']}: {row['note']}", "dim")


def _best(rows: pd.DataFrame, metric: str) -> str:
    means = rows.set_index("method")["mean"].dropna()
    if means.empty:
        return ""
    return str(means.idxmax() if higher_is_better(metric) else means.idxmin())


def _cell(row: pd.DataFrame) -> str:
    if row.empty or np.isnan(row["mean"].iloc[0]):
        return ""
    mean, high = row["mean"].iloc[0], row["high"].iloc[0]
    return f"{mean:.4f}" if np.isnan(high) else f"{mean:.4f} ± {high - mean:.4f}"
