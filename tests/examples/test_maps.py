"""Maps of the demo: two dimensions, nearest neighbors, and where labels are written."""

from __future__ import annotations

from pathlib import Path

import maps
import numpy as np
from maps import Map, Marks
from matplotlib.image import imread


def test_maps_are_drawn_without_a_display(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    values, kind = rng.normal(size=(60, 5)).astype(np.float32), rng.integers(0, 4, 60)
    marks = [
        Marks("pale", kind == 0, "#99C7EC"),
        Marks("pale too", kind == 1, "#F4A582"),
        Marks("cross", kind == 2, "#555555", "x"),
        Marks("shape", kind == 3, "#CC3311", "^", hollow=rng.random(60) < 0.5),
        Marks("of no points", kind == 4, "#111111", "s"),
    ]
    maps.draw_maps([Map("one", values, marks, "a note")] * 2, "title", "subtitle", tmp_path / "deep" / "maps.png")
    assert imread(tmp_path / "deep" / "maps.png").std() > 0


def test_a_label_stands_where_its_points_are_dense_and_away_from_shapes() -> None:
    rng = np.random.default_rng(0)
    dense, sparse = rng.normal(0, 0.1, (60, 2)), rng.normal(5, 0.3, (40, 2))
    points = np.concatenate([dense, sparse])
    assert np.linalg.norm(maps._densest(points, points[:0])) < 1
    x, y = maps._densest(points, dense[:5])
    assert min(x, y) > 3
    assert np.isfinite(maps._densest(dense, dense)).all()  # no point is free


def test_classes_that_are_apart_stay_apart_in_two_dimensions() -> None:
    rng = np.random.default_rng(0)
    centre = np.repeat(np.eye(3, 8), 30, axis=0)
    labels = np.repeat(np.arange(3), 30)
    values = (centre + 0.05 * rng.normal(size=(90, 8))).astype(np.float32)
    flat = maps.tsne_2d(values)
    assert flat.shape == (90, 2)
    gaps = np.linalg.norm(flat[:, None] - flat[None], axis=2) + 1e9 * np.eye(90)
    assert (labels[gaps.argmin(1)] == labels).all()


def test_nearest_neighbors_are_counted_for_the_given_rows() -> None:
    values = np.array([[1, 0], [1, 0.1], [0, 1], [0.1, 1]], np.float32)
    assert maps.nearest_neighbor_accuracy(values, np.array([0, 0, 1, 0]), np.array([0, 1])) == 1.0
    assert maps.nearest_neighbor_accuracy(values, np.array([0, 0, 1, 0]), np.array([0, 2])) == 0.5
    same = np.ones((3, 2), np.float32)  # a row is not its own neighbor, wherever it is listed
    assert maps.nearest_neighbor_accuracy(same, np.array([0, 1, 2]), np.arange(3)) == 0.0
