"""Pictures of a training: how its scores rose, what they came to, and how nodes and edges lie in their embedding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from sklearn.neighbors import NearestNeighbors

INK, FAINT, BETWEEN = "#222222", "#8a8a8a", "#c4c4c4"
# Paul Tol's muted scheme, which the colour-blind tell apart
COLOURS = "#332288", "#CC6677", "#117733", "#DDAA33", "#88CCEE", "#882255", "#44AA99", "#999933", "#AA4499"
DOTS_PER_INCH = 160


@dataclass(frozen=True)
class Contender:
    """A method on several splits.

    Args:
        name: as the figure says it.
        curves: for each split, the validation accuracy after each epoch.
        kept: for each split, the epoch that was kept, counted from 1.
        tested: for each split, the test accuracy of that epoch.
        published: the published mean and spread, in the unit of the others, if there is one.
    """

    name: str
    curves: Sequence[Sequence[float]]
    kept: Sequence[int]
    tested: Sequence[float]
    published: tuple[float, float] | None = None

    @property
    def mean(self) -> float:
        """Of the test accuracy."""
        return fmean(self.tested)


@dataclass(frozen=True)
class Cloud:
    """Rows of an embedding with the class of each; a row without a class, between two of them, has -1.

    Args:
        title: what is to be seen.
        values: the embedding.
        labels: the number of each row's class.

    Shape:
        values (n, d), labels (n,).
    """

    title: str
    values: NDArray[np.float32]
    labels: NDArray[np.int64]


def draw_curves(contenders: Sequence[Contender], title: str, subtitle: str, path: Path) -> None:
    """Validation accuracy by epoch on the left, test accuracy of the kept epochs on the right."""
    figure = _figure(11, 4.9)
    left, right = figure.subplots(1, 2, width_ratios=(1.55, 1), gridspec_kw={"wspace": 0.1})
    figure.subplots_adjust(left=0.06, right=0.985, top=0.76, bottom=0.125)
    _head(figure, title, subtitle)
    _draw_epochs(left, contenders)
    _draw_tests(right, contenders)
    _save(figure, path)


def draw_clouds(clouds: Sequence[Cloud], classes: Sequence[str], title: str, subtitle: str, path: Path) -> None:
    """Embeddings in two dimensions, side by side, each row in the colour of its class, each class with its name."""
    figure = _figure(5.7 * len(clouds), 6.6)
    figure.subplots_adjust(left=0.015, right=0.985, top=0.83, bottom=0.055, wspace=0.03)
    _head(figure, title, subtitle)
    for axes, cloud in zip(np.atleast_1d(figure.subplots(1, len(clouds))), clouds, strict=True):
        _draw_cloud(axes, cloud, classes)
    _save(figure, path)


def flatten(values: NDArray[np.float32], seed: int = 0) -> NDArray[np.float64]:
    """Rows in two dimensions, near ones near: t-SNE of their first 50 principal components. (n, d) -> (n, 2)."""
    standard = (values - values.mean(0)) / np.maximum(values.std(0), 1e-6)
    width = min(50, *standard.shape)
    reduced = PCA(width, random_state=seed).fit_transform(standard)
    perplexity = min(30.0, max(2.0, len(values) / 10))
    flat: NDArray[np.float64] = TSNE(perplexity=perplexity, init="pca", random_state=seed).fit_transform(reduced)
    return flat


def neighbour_share(values: NDArray[np.float32], labels: NDArray[np.int64], rows: NDArray[np.int64]) -> float:
    """The share of some rows whose nearest other row in the embedding is of their class.

    >>> neighbour_share(np.float32([[0], [1], [5], [6.5], [8.5]]), np.array([0, 0, 1, 1, 0]), np.arange(5))
    0.8
    """
    _, nearest = NearestNeighbors(n_neighbors=2).fit(values).kneighbors(values[rows])
    other = np.where(nearest[:, 0] == rows, nearest[:, 1], nearest[:, 0])
    return float((labels[other] == labels[rows]).mean())


def _draw_epochs(axes: Axes, contenders: Sequence[Contender]) -> None:
    _clean(axes, "validation accuracy after each epoch, %")
    for contender, colour in zip(contenders, COLOURS, strict=False):
        for curve, kept in zip(contender.curves, contender.kept, strict=True):
            axes.plot(np.arange(1, len(curve) + 1), 100 * np.asarray(curve), color=colour, linewidth=0.8, alpha=0.55)
            axes.plot(kept, 100 * curve[kept - 1], "o", color=colour, markersize=6, markeredgecolor="white", zorder=3)
    longest = max(len(curve) for contender in contenders for curve in contender.curves)
    axes.set_xlim(0, 1.015 * longest)
    best = 100 * max(max(curve) for contender in contenders for curve in contender.curves)
    axes.set_ylim(top=best + 2)
    axes.set_xlabel("epoch  (a dot: the epoch that was kept)", color=FAINT)


def _draw_tests(axes: Axes, contenders: Sequence[Contender]) -> None:
    _clean(axes, "test accuracy of the kept epoch, %")
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", color="#e6e6e6")
    places = np.arange(len(contenders), 0, -1)
    for place, contender, colour in zip(places, contenders, COLOURS, strict=False):
        axes.plot([100 * x for x in contender.tested], [place] * len(contender.tested), "o", color=colour,
                  markersize=7, alpha=0.55, markeredgewidth=0)  # fmt: skip
        axes.plot([100 * contender.mean] * 2, [place - 0.16, place + 0.16], color=colour, linewidth=2.5)
        axes.annotate(f"{contender.name}   {100 * contender.mean:.1f}", (100 * contender.mean, place + 0.2),
                      ha="center", va="bottom", color=colour, fontsize=12, fontweight="bold")  # fmt: skip
        if contender.published is not None:
            mean, spread = contender.published
            axes.errorbar(mean, place - 0.3, xerr=spread, fmt="D", color=FAINT, markersize=5, capsize=0, linewidth=1.2)
            axes.annotate("published", (mean, place - 0.37), ha="center", va="top", color=FAINT, fontsize=9.5)
    axes.set_ylim(0.35, len(contenders) + 0.6)
    axes.margins(x=0.14)
    axes.set_yticks([])
    axes.set_xlabel("a dot: one split;  a bar: their mean", color=FAINT)


def _draw_cloud(axes: Axes, cloud: Cloud, classes: Sequence[str]) -> None:
    flat = flatten(cloud.values)
    size = float(np.clip(9000 / len(flat), 3, 60))
    for number in range(-1, len(classes)):
        mine = flat[cloud.labels == number]
        colour = BETWEEN if number < 0 else COLOURS[number % len(COLOURS)]
        axes.scatter(mine[:, 0], mine[:, 1], s=size, color=colour, alpha=0.75, linewidths=0, rasterized=True)
    for number, name in enumerate(classes):
        mine = flat[cloud.labels == number]
        if len(mine):
            _name_class(axes, mine, name, COLOURS[number % len(COLOURS)])
    axes.set_title(cloud.title, loc="left", fontsize=12, color=INK)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(False)
    axes.margins(0.02)


def _name_class(axes: Axes, places: NDArray[np.float64], name: str, colour: str) -> None:
    """Write a class's name where its rows are densest."""
    near = NearestNeighbors(n_neighbors=max(1, len(places) // 5)).fit(places).kneighbors(places)[0][:, -1]
    x, y = places[near.argmin()]
    text = axes.annotate(name.replace("_", " "), (x, y), ha="center", va="center", fontsize=11, fontweight="bold")
    text.set_color(colour)
    text.set_path_effects([withStroke(linewidth=3.5, foreground="white")])


def _figure(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height), dpi=DOTS_PER_INCH, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def _head(figure: Figure, title: str, subtitle: str) -> None:
    height = figure.get_figheight()
    figure.text(0.015, 1 - 0.16 / height, title, fontsize=16, fontweight="bold", color=INK, va="top")
    figure.text(0.015, 1 - 0.52 / height, subtitle, fontsize=11, color="#555555", va="top")


def _clean(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=12, color=INK)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(FAINT)
    axes.tick_params(colors=FAINT, length=0, labelsize=10.5)
    axes.grid(axis="y", color="#e6e6e6")
    axes.set_axisbelow(True)


def _save(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
