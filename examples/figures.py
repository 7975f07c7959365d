"""Figures of the demo: learning curves and test accuracy, and what other figures share with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from textwrap import fill
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.text import Annotation
from matplotlib.ticker import MaxNLocator

INK, FAINT = "#222222", "#8a8a8a"
# Paul Tol's muted scheme, distinguishable with color vision deficiency
COLORS = "#332288", "#CC6677", "#117733", "#DDAA33", "#88CCEE", "#882255", "#44AA99", "#999933", "#AA4499"
DOTS_PER_INCH = 160
EPOCHS = "epoch  (dot: best epoch on validation)"


@dataclass(frozen=True)
class MethodScores:
    """Scores of a method on several splits.

    Args:
        name: label in the figure.
        curves: for each split, the validation accuracy after each epoch.
        best_epochs: for each split, the best epoch on validation, counted from 1.
        tested: for each split, the test accuracy of that epoch.
        published: the published mean and spread, in the unit of the others, if there is one.
    """

    name: str
    curves: Sequence[Sequence[float]]
    best_epochs: Sequence[int]
    tested: Sequence[float]
    published: tuple[float, float] | None = None

    @property
    def mean(self) -> float:
        """Mean test accuracy."""
        return fmean(self.tested)


def draw_curves(methods: Sequence[MethodScores], title: str, subtitle: str, path: Path) -> None:
    """Validation accuracy by epoch on the left, test accuracy of the best epoch on the right."""
    figure = make_figure(11.5, 5.2)
    left, right = figure.subplots(1, 2, width_ratios=(1.5, 1), gridspec_kw={"wspace": 0.08})
    figure.subplots_adjust(left=0.045, right=0.985, top=0.735, bottom=0.12)
    write_head(figure, title, subtitle)
    _draw_epochs(left, methods)
    _draw_tests(right, methods)
    save_figure(figure, path)


def _draw_epochs(axes: Axes, methods: Sequence[MethodScores]) -> None:
    _clean(axes, "validation accuracy after each epoch, %", "y")
    names = []
    for method, color in zip(methods, COLORS, strict=False):
        for curve, best in zip(method.curves, method.best_epochs, strict=True):
            axes.plot(np.arange(1, len(curve) + 1), 100 * np.asarray(curve), color=color, linewidth=0.7, alpha=0.3)
            axes.plot(best, 100 * curve[best - 1], "o", color=color, markersize=6.5, markeredgecolor="white", zorder=3)
        common = min(len(curve) for curve in method.curves)
        mean = 100 * np.mean([curve[:common] for curve in method.curves], axis=0)
        axes.plot(np.arange(1, common + 1), mean, color=color, linewidth=2)
        names.append(write_label(axes, (common + 2, mean[-1]), method.name, color, ha="left"))
    chosen = [100 * curve[best - 1] for one in methods for curve, best in zip(one.curves, one.best_epochs, strict=True)]
    axes.set_ylim(min(chosen) - 16, min(max(chosen) + 3, 101))  # the first epochs are left out
    axes.set_xlim(0, 1.3 * max(len(curve) for one in methods for curve in one.curves))
    axes.set_xlabel(EPOCHS if len(methods[0].curves) == 1 else f"{EPOCHS}; thick: mean over splits", color=FAINT)
    push_apart(axes, names)


def _draw_tests(axes: Axes, methods: Sequence[MethodScores]) -> None:
    _clean(axes, "test accuracy of the best epoch, %", "x")
    places, names = np.arange(len(methods), 0, -1), []
    for place, method, color in zip(places, methods, COLORS, strict=False):
        mean = 100 * method.mean
        axes.plot([100 * x for x in method.tested], [place] * len(method.tested), "o", color=color, markersize=8,
                  alpha=0.55, markeredgewidth=0)  # fmt: skip
        axes.plot([mean] * 2, [place - 0.15, place + 0.15], color=color, linewidth=3)
        names.append(write_label(axes, (mean, place + 0.29), f"{method.name}  {mean:.1f}", color))
        if method.published is not None:
            known, spread = method.published
            axes.errorbar(known, place - 0.24, xerr=spread, fmt="D", color=FAINT, markersize=5, linewidth=1.2)
            note = axes.annotate(f"published  {known:.1f}", (known, place - 0.32), ha="center", va="top", fontsize=9.5)
            note.set_color(FAINT)
    axes.set_ylim(0.45, len(methods) + 0.55)
    axes.margins(x=0.16)
    axes.set_yticks([])
    axes.set_xlabel("diamond: published, with its spread", color=FAINT)
    push_apart(axes, names)


def write_label(axes: Axes, place: tuple[float, float], text: str, color: str, ha: str = "center") -> Annotation:
    """Write a label in a darker tone of its color, with a white outline, readable on dots."""
    dark = tuple(0.72 * channel for channel in to_rgb(color))
    return axes.annotate(
        text, place, ha=ha, va="center", fontsize=11.5, fontweight="bold", color=dark, zorder=4,
        path_effects=[withStroke(linewidth=3.5, foreground="white")],
    )  # fmt: skip


def push_apart(axes: Axes, names: Sequence[Annotation], most: int = 200) -> None:
    """Move overlapping labels apart vertically, and into the axes horizontally."""
    axes.autoscale_view()
    frame = axes.get_window_extent()
    boxes = [name.get_window_extent().padded(2) for name in names]
    shift = np.zeros((len(names), 2))
    for number, box in enumerate(boxes):
        shift[number, 0] = max(frame.x0 - box.x0, 0) + min(frame.x1 - box.x1, 0)
    for _ in range(most):
        moved = [box.translated(*move) for box, move in zip(boxes, shift, strict=True)]
        pairs = [(a, b) for a in range(len(names)) for b in range(a) if moved[a].overlaps(moved[b])]
        for a, b in pairs:
            up = 1 if moved[a].y0 >= moved[b].y0 else -1
            shift[a, 1] += up
            shift[b, 1] -= up
        if not pairs:
            break
    for name, move in zip(names, shift, strict=True):
        x, y = axes.transData.inverted().transform(axes.transData.transform(name.get_position()) + move)
        name.set_position((float(x), float(y)))


def make_figure(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height), dpi=DOTS_PER_INCH, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def write_head(figure: Figure, title: str, subtitle: str) -> None:
    height = figure.get_figheight()
    figure.text(0.015, 1 - 0.18 / height, title, fontsize=16, fontweight="bold", color=INK, va="top")
    lines = fill(subtitle, round(12 * figure.get_figwidth()))
    figure.text(0.015, 1 - 0.55 / height, lines, fontsize=11, color="#555555", va="top", linespacing=1.4)


def _clean(axes: Axes, title: str, grid: Literal["x", "y"]) -> None:
    axes.set_title(title, loc="left", fontsize=12, color=INK)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(FAINT)
    axes.tick_params(colors=FAINT, length=0, labelsize=10.5)
    axes.grid(axis=grid, color="#e6e6e6")
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.set_axisbelow(True)


def save_figure(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
