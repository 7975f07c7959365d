"""Maps of the demo: embeddings in two dimensions by t-SNE, with marks for kinds of nodes or edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from figures import FAINT, INK, make_figure, push_apart, save_figure, write_head, write_label
from matplotlib.axes import Axes
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from sklearn.neighbors import NearestNeighbors

SIZE = 42  # of shapes
ROOM = 0.1  # between a label and shapes, as a share of the map


@dataclass(frozen=True, eq=False)
class Marks:
    """Some points of a map, drawn alike.

    Args:
        name: on the map if points are dots without a shape, otherwise in the legend.
        rows: which points they are, (n,).
        color: of the points.
        shape: marker of matplotlib; None for the small dots of a background.
        hollow: which points are drawn as an outline, (n,); none if None.
    """

    name: str
    rows: NDArray[np.bool_]
    color: str
    shape: str | None = None
    hollow: NDArray[np.bool_] | None = None


@dataclass(frozen=True, eq=False)
class Map:
    """Embeddings to draw in one panel.

    Args:
        title: above the panel.
        values: the embeddings, (n, d).
        marks: from the background to the front.
        note: below the legend.
    """

    title: str
    values: NDArray[np.float32]
    marks: Sequence[Marks]
    note: str = ""


def draw_maps(maps: Sequence[Map], title: str, subtitle: str, path: Path) -> None:
    """Embeddings in two dimensions, one panel each."""
    figure = make_figure(7.0 * len(maps), 8.8)
    every = np.atleast_1d(figure.subplots(1, len(maps)))
    figure.subplots_adjust(left=0.015, right=0.985, top=0.815, bottom=0.1, wspace=0.04)
    write_head(figure, title, subtitle)
    for axes, one in zip(every, maps, strict=True):
        _draw(axes, one)
    save_figure(figure, path)


def tsne_2d(values: NDArray[np.float32], seed: int = 0) -> NDArray[np.float64]:
    """t-SNE with cosine distance of 50 principal components. (n, d) -> (n, 2)."""
    reduced = PCA(min(50, *values.shape), random_state=seed).fit_transform(values)
    perplexity = min(30.0, max(2.0, len(values) / 10))
    tsne = TSNE(perplexity=perplexity, metric="cosine", init="pca", max_iter=600, random_state=seed)
    flat: NDArray[np.float64] = tsne.fit_transform(reduced)
    return flat


def nearest_neighbor_accuracy(values: NDArray[np.float32], labels: NDArray[np.int64], rows: NDArray[np.int64]) -> float:
    """The share of some rows whose nearest other row by cosine distance has the same class.

    >>> angles = np.radians([0, 1, 50, 65, 85])
    >>> values = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    >>> nearest_neighbor_accuracy(values, np.array([0, 0, 1, 1, 0]), np.arange(5))
    0.8
    """
    _, nearest = NearestNeighbors(n_neighbors=2, metric="cosine").fit(values).kneighbors(values[rows])
    other = np.where(nearest[:, 0] == rows, nearest[:, 1], nearest[:, 0])
    return float((labels[other] == labels[rows]).mean())


def _draw(axes: Axes, one: Map) -> None:
    flat = tsne_2d(one.values)
    _draw_background(axes, flat, [marks for marks in one.marks if marks.shape is None])
    shapes = [marks for marks in one.marks if marks.shape is not None]
    for order, marks in enumerate(shapes):
        _draw_shapes(axes, flat, marks, 3 + order)
    axes.set_title(one.title, loc="left", fontsize=12, color=INK, linespacing=1.35)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(False)
    axes.margins(0.04)
    legend = axes.legend(loc="upper left", bbox_to_anchor=(-0.01, 0), ncols=len(one.marks), frameon=False, fontsize=11,
                         handletextpad=0.2, columnspacing=1.4, borderaxespad=0, reverse=True)  # fmt: skip
    legend.set_zorder(0)
    axes.annotate(one.note, (0, 0), (2, -24), "axes fraction", "offset points", va="top", fontsize=10, color=FAINT)
    labeled = [marks for marks in one.marks if marks.shape is None and marks.rows.any()]
    taken = flat[np.any([marks.rows for marks in shapes], axis=0)] if shapes else flat[:0]
    names = [write_label(axes, _densest(flat[marks.rows], taken), marks.name, marks.color) for marks in labeled]
    push_apart(axes, names)


def _draw_background(axes: Axes, flat: NDArray[np.float64], marks: Sequence[Marks]) -> None:
    """Small dots in random order, so that no kind covers the others."""
    tints = np.full(len(flat), "", dtype=object)
    for one in marks:
        tints[one.rows] = one.color
    order = np.random.default_rng(0).permutation(np.flatnonzero(tints != ""))
    x, y = flat[order].T
    axes.scatter(x, y, s=float(np.clip(14_000 / len(flat), 7, 40)), c=list(tints[order]), alpha=0.8, linewidths=0)


def _draw_shapes(axes: Axes, flat: NDArray[np.float64], marks: Marks, order: int) -> None:
    """Crosses, or filled shapes with a white border, and outlines for hollow ones."""
    filled = marks.rows if marks.hollow is None else marks.rows & ~marks.hollow
    style: dict[str, Any] = {"s": SIZE, "marker": marks.shape, "zorder": order}
    border = {"linewidths": 1.3} if marks.shape == "x" else {"linewidths": 0.5, "edgecolors": "white"}
    x, y = flat[filled].T
    axes.scatter(x, y, c=marks.color, label=marks.name, **style, **border)
    if marks.hollow is not None:
        x, y = flat[marks.rows & marks.hollow].T
        axes.scatter(x, y, c="white", edgecolors=marks.color, linewidths=1.3, **style)


def _densest(points: NDArray[np.float64], taken: NDArray[np.float64]) -> tuple[float, float]:
    """The point with the densest neighborhood, away from points that are taken if there are such."""
    near = NearestNeighbors(n_neighbors=max(1, len(points) // 4)).fit(points).kneighbors(points)[0][:, -1]
    if len(taken):
        room = NearestNeighbors(n_neighbors=1).fit(taken).kneighbors(points)[0][:, 0]
        free = room > ROOM * np.ptp(np.concatenate([points, taken]))
        near = np.where(free, near, near + near.max())
    x, y = points[near.argmin()]
    return float(x), float(y)
