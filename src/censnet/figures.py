"""Pictures of a training: how its scores rose, what they came to, and how nodes and edges lie in their embedding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.text import Annotation
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from sklearn.neighbors import NearestNeighbors

INK, FAINT, BETWEEN = "#222222", "#8a8a8a", "#c4c4c4"
# Paul Tol's muted scheme, which the colour-blind tell apart
COLOURS = "#332288", "#CC6677", "#117733", "#DDAA33", "#88CCEE", "#882255", "#44AA99", "#999933", "#AA4499"
DOTS_PER_INCH = 160


@dataclass(frozen=True)
class MethodScores:
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
class EmbeddingPanel:
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


def draw_curves(contenders: Sequence[MethodScores], title: str, subtitle: str, path: Path) -> None:
    """Validation accuracy by epoch on the left, test accuracy of the kept epochs on the right."""
    figure = _figure(11.5, 5.2)
    left, right = figure.subplots(1, 2, width_ratios=(1.5, 1), gridspec_kw={"wspace": 0.08})
    figure.subplots_adjust(left=0.045, right=0.985, top=0.76, bottom=0.12)
    _head(figure, title, subtitle)
    _draw_epochs(left, contenders)
    _draw_tests(right, contenders)
    _save(figure, path)


def draw_clouds(
    clouds: Sequence[EmbeddingPanel], classes: Sequence[str], title: str, subtitle: str, path: Path
) -> None:
    """Embeddings in two dimensions, side by side, each row in the colour of its class, each class with its name."""
    figure = _figure(5.75 * len(clouds), 6.9)
    panels = np.atleast_1d(figure.subplots(1, len(clouds)))
    figure.subplots_adjust(left=0.015, right=0.985, top=0.785, bottom=0.02, wspace=0.04)
    _head(figure, title, subtitle)
    for axes, cloud in zip(panels, clouds, strict=True):
        _draw_cloud(axes, cloud, classes)
    _save(figure, path)


def flatten(values: NDArray[np.float32], seed: int = 0) -> NDArray[np.float64]:
    """Rows in two dimensions, near ones near: t-SNE by angle of 50 principal components. (n, d) -> (n, 2)."""
    reduced = PCA(min(50, *values.shape), random_state=seed).fit_transform(values)
    perplexity = min(30.0, max(2.0, len(values) / 10))
    tsne = TSNE(perplexity=perplexity, metric="cosine", init="pca", max_iter=600, random_state=seed)
    flat: NDArray[np.float64] = tsne.fit_transform(reduced)
    return flat


def neighbour_share(values: NDArray[np.float32], labels: NDArray[np.int64], rows: NDArray[np.int64]) -> float:
    """The share of some rows whose nearest other row, by angle, is of their class.

    >>> angles = np.radians([0, 1, 50, 65, 85])
    >>> values = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    >>> neighbour_share(values, np.array([0, 0, 1, 1, 0]), np.arange(5))
    0.8
    """
    _, nearest = NearestNeighbors(n_neighbors=2, metric="cosine").fit(values).kneighbors(values[rows])
    other = np.where(nearest[:, 0] == rows, nearest[:, 1], nearest[:, 0])
    return float((labels[other] == labels[rows]).mean())


def _draw_epochs(axes: Axes, contenders: Sequence[MethodScores]) -> None:
    _clean(axes, "validation accuracy after each epoch, %", "y")
    names = []
    for contender, colour in zip(contenders, COLOURS, strict=False):
        for curve, kept in zip(contender.curves, contender.kept, strict=True):
            axes.plot(np.arange(1, len(curve) + 1), 100 * np.asarray(curve), color=colour, linewidth=0.7, alpha=0.3)
            axes.plot(kept, 100 * curve[kept - 1], "o", color=colour, markersize=6.5, markeredgecolor="white", zorder=3)
        common = min(len(curve) for curve in contender.curves)
        mean = 100 * np.mean([curve[:common] for curve in contender.curves], axis=0)
        axes.plot(np.arange(1, common + 1), mean, color=colour, linewidth=2)
        names.append(_write(axes, (common + 2, mean[-1]), contender.name, colour, ha="left"))
    chosen = [100 * curve[best - 1] for one in contenders for curve, best in zip(one.curves, one.kept, strict=True)]
    axes.set_ylim(min(chosen) - 16, min(max(chosen) + 3, 101))  # how the first epochs rise is left out
    axes.set_xlim(0, 1.22 * max(len(curve) for one in contenders for curve in one.curves))
    axes.set_xlabel("epoch  (thick: the mean over splits; a dot: the epoch that was kept)", color=FAINT)
    _spread(axes, names)


def _draw_tests(axes: Axes, contenders: Sequence[MethodScores]) -> None:
    _clean(axes, "test accuracy of the kept epoch, %", "x")
    places = np.arange(len(contenders), 0, -1)
    for place, contender, colour in zip(places, contenders, COLOURS, strict=False):
        mean = 100 * contender.mean
        axes.plot([100 * x for x in contender.tested], [place] * len(contender.tested), "o", color=colour, markersize=8,
                  alpha=0.55, markeredgewidth=0)  # fmt: skip
        axes.plot([mean] * 2, [place - 0.15, place + 0.15], color=colour, linewidth=3)
        _write(axes, (mean, place + 0.29), f"{contender.name}  {mean:.1f}", colour)
        if contender.published is not None:
            known, spread = contender.published
            axes.errorbar(known, place - 0.24, xerr=spread, fmt="D", color=FAINT, markersize=5, linewidth=1.2)
            note = axes.annotate(f"published  {known:.1f}", (known, place - 0.32), ha="center", va="top", fontsize=9.5)
            note.set_color(FAINT)
    axes.set_ylim(0.45, len(contenders) + 0.55)
    axes.margins(x=0.16)
    axes.set_yticks([])
    axes.set_xlabel("a dot: one split;  a bar: their mean", color=FAINT)


def _draw_cloud(axes: Axes, cloud: EmbeddingPanel, classes: Sequence[str]) -> None:
    flat = flatten(cloud.values)
    size = float(np.clip(14000 / len(flat), 4, 60))
    order = np.random.default_rng(0).permutation(len(flat))  # no class lies on top of the others
    tints = np.array([*(COLOURS[number % len(COLOURS)] for number in range(len(classes))), BETWEEN])
    x, y = flat[order].T
    axes.scatter(x, y, s=size, c=tints[cloud.labels[order]], alpha=0.8, linewidths=0)
    axes.set_title(cloud.title, loc="left", fontsize=12, color=INK, linespacing=1.35)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(False)
    axes.margins(0.04)
    names = [
        _write(axes, _densest(flat[cloud.labels == number]), name.replace("_", " "), str(tints[number]))
        for number, name in enumerate(classes)
        if (cloud.labels == number).any()
    ]
    _spread(axes, names)


def _densest(places: NDArray[np.float64]) -> tuple[float, float]:
    """Where most of some points are."""
    near = NearestNeighbors(n_neighbors=max(1, len(places) // 4)).fit(places).kneighbors(places)[0][:, -1]
    x, y = places[near.argmin()]
    return float(x), float(y)


def _write(axes: Axes, place: tuple[float, float], text: str, colour: str, ha: str = "center") -> Annotation:
    """A name in a darker tone of its colour, with a white rim, so that it can be read on dots."""
    dark = tuple(0.72 * channel for channel in to_rgb(colour))
    return axes.annotate(
        text, place, ha=ha, va="center", fontsize=11.5, fontweight="bold", color=dark, zorder=4,
        path_effects=[withStroke(linewidth=3.5, foreground="white")],
    )  # fmt: skip


def _spread(axes: Axes, names: Sequence[Annotation], most: int = 200) -> None:
    """Push names apart, up and down, until none covers another, and into the axes where they stick out."""
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


def _figure(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height), dpi=DOTS_PER_INCH, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def _head(figure: Figure, title: str, subtitle: str) -> None:
    height = figure.get_figheight()
    figure.text(0.015, 1 - 0.18 / height, title, fontsize=16, fontweight="bold", color=INK, va="top")
    figure.text(0.015, 1 - 0.55 / height, subtitle, fontsize=11, color="#555555", va="top")


def _clean(axes: Axes, title: str, grid: Literal["x", "y"]) -> None:
    axes.set_title(title, loc="left", fontsize=12, color=INK)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(FAINT)
    axes.tick_params(colors=FAINT, length=0, labelsize=10.5)
    axes.grid(axis=grid, color="#e6e6e6")
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.set_axisbelow(True)


def _save(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
