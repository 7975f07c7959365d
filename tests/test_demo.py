"""The demo: who is compared with whom, on which rows, what is written, and how it is drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import imread

from censnet import demo, figures
from censnet.data.load import load_data
from censnet.data.splits.split import Split
from censnet.data.tables.files import Tables
from censnet.errors import DataError
from censnet.figures import EmbeddingPanel, MethodScores
from censnet.ops.graph import Graph

ONE = MethodScores("one", [[0.2, 0.8, 0.7], [0.3, 0.6, 0.9]], [2, 3], [0.75, 0.85], (79.4, 1.0))
OTHER = MethodScores("other", [[0.4, 0.5], [0.5, 0.4]], [2, 1], [0.5, 0.52])


@pytest.fixture
def without_cora(monkeypatch: Any) -> None:
    def find(name: str) -> dict[str, Path]:
        raise DataError(f"{name} is nowhere to be had")

    monkeypatch.setattr(demo, "find", find)


@pytest.mark.usefixtures("without_cora")
def test_without_cora_it_shows_the_karate_club_and_says_so(tmp_path: Path, capsys: Any) -> None:
    demo.main(tmp_path, epochs=2)
    said = " ".join(capsys.readouterr().out.split())
    assert "Cora cannot be had here: cora is nowhere to be had" in said
    assert "karate" in said
    scores = pd.read_csv(tmp_path / "scores.csv")
    assert scores["method"].tolist() == ["CensNet, strong"] * 3 + ["CensNet, paper"] * 3 + ["GCN"] * 3
    assert scores[["validation", "test"]].stack().between(0, 1).all()
    for name, rows in {"predictions": 34, "nodes": 34, "edges": 78}.items():
        assert len(pd.read_csv(tmp_path / f"{name}.csv")) == rows
    for name in ("learning_curves", "embeddings"):
        assert imread(tmp_path / f"{name}.png").shape[1] > 1000
    for run in ("paper/seed-0", "strong/seed-2", "pictured"):
        assert (tmp_path / run / "config.json").exists()


def test_every_method_is_trained_and_judged_on_the_same_rows(tmp_path: Path) -> None:
    karate = demo.make_karate()
    runs = [demo.train_censnet(karate, preset, tmp_path / preset, epochs=1) for preset in ("paper", "strong")]
    for one, other in zip(*runs, strict=True):
        pd.testing.assert_frame_equal(one.splits, other.splits)
    pictured = demo.train_pictured(karate, tmp_path / "pictured", epochs=1)
    pd.testing.assert_frame_equal(pictured.splits, runs[0][0].splits)
    assert len({tuple(run.splits["split"]) for run in runs[0]}) == demo.SPLITS  # and each split is another


def test_karate_has_a_name_for_each_member_and_common_friends_for_each_friendship() -> None:
    data = demo.make_karate().data
    assert isinstance(data, Tables)
    assert data.nodes is not None
    assert data.edges is not None
    assert np.array_equal(np.stack(data.nodes["name"].to_numpy()), np.eye(34))
    friends = {(a, b) for a, b in data.edges[["source", "target"]].to_numpy().tolist()}
    friends |= {(b, a) for a, b in friends}
    row = data.edges.iloc[5]
    one, other = ({b for a, b in friends if a == row[end]} for end in ("source", "target"))
    assert row["common"] == len(one & other) / len(one | other)


def test_the_published_figures_are_those_of_table_1() -> None:
    assert demo.find_published("censnet", demo.CORA.cell) == (79.4, 1.0)
    assert demo.find_published("gcn", demo.CORA.cell) == (74.0, 2.8)
    assert demo.find_published("gcn", demo.make_karate().cell) is None


def test_the_gcn_learns_and_its_test_score_is_that_of_the_epoch_best_on_validation() -> None:
    torch.manual_seed(0)
    labels = torch.arange(60) % 2
    nodes = torch.nn.functional.one_hot(labels, 2).float() + 0.3 * torch.randn(60, 2)
    ring = torch.arange(0, 60)
    graph = Graph(nodes, torch.ones(60, 1), torch.stack([ring, (ring + 2) % 60]))
    rows = torch.arange(60)
    split = Split(rows[:20], rows[20:40], rows[40:])
    found = demo.train_gcn(load_data(graph), labels, split, seed=0, epochs=60)
    (curve,), (kept,) = found.curves, found.kept
    assert curve[kept - 1] == max(curve)
    assert max(curve[: kept - 1], default=0) < max(curve)  # of equals, the first
    assert found.tested[0] > 0.9
    again = demo.train_gcn(load_data(graph), labels, split, seed=0, epochs=kept)
    assert again.tested == found.tested  # later epochs decide nothing


def test_the_gcn_waits_no_longer_than_the_others(monkeypatch: Any) -> None:
    monkeypatch.setattr(demo, "PATIENCE", 3)
    graph = Graph(torch.ones(6, 1), torch.ones(5, 1), torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]]))
    rows = torch.arange(6)
    split = Split(rows[:2], rows[2:4], rows[4:])
    labels = torch.tensor([0, 1, 0, 0, 0, 1])
    found = demo.train_gcn(load_data(graph), labels, split, seed=0, epochs=50)
    assert len(found.curves[0]) == found.kept[0] + 3


def test_the_title_says_who_is_ahead_or_that_it_is_luck(tmp_path: Path, monkeypatch: Any) -> None:
    titles: list[str] = []
    monkeypatch.setattr(demo, "draw_curves", lambda contenders, title, *rest: titles.append(title))
    split = Split.of([0, 1, 2])
    near = MethodScores("near", OTHER.curves, OTHER.kept, [0.74, 0.84])
    demo.draw_accuracy([OTHER, ONE], demo.make_karate(), split, tmp_path / "a.png")
    demo.draw_accuracy([near, ONE], demo.make_karate(), split, tmp_path / "a.png")
    assert titles == ["one is 29.0 points ahead of other", "one and near are within a split's luck of each other"]


def test_figures_are_drawn_without_a_display(tmp_path: Path) -> None:
    figures.draw_curves([ONE, OTHER], "title", "subtitle", tmp_path / "deep" / "curves.png")
    rng = np.random.default_rng(0)
    values, labels = rng.normal(size=(40, 5)).astype(np.float32), rng.integers(-1, 3, 40)
    figures.draw_clouds(
        [EmbeddingPanel("cloud", values, labels)], ["a", "b", "c"], "title", "subtitle", tmp_path / "cloud.png"
    )
    assert imread(tmp_path / "deep" / "curves.png").std() > 0
    assert imread(tmp_path / "cloud.png").std() > 0


def test_rows_that_are_near_stay_near_in_the_plane() -> None:
    rng = np.random.default_rng(0)
    centre = np.repeat(np.eye(3, 8), 30, axis=0)
    labels = np.repeat(np.arange(3), 30)
    values = (centre + 0.05 * rng.normal(size=(90, 8))).astype(np.float32)
    flat = figures.flatten(values)
    assert flat.shape == (90, 2)
    gaps = np.linalg.norm(flat[:, None] - flat[None], axis=2) + 1e9 * np.eye(90)
    assert (labels[gaps.argmin(1)] == labels).all()


def test_neighbours_are_counted_for_the_rows_asked_about() -> None:
    values = np.array([[1, 0], [1, 0.1], [0, 1], [0.1, 1]], np.float32)
    assert figures.neighbour_share(values, np.array([0, 0, 1, 0]), np.array([0, 1])) == 1.0
    assert figures.neighbour_share(values, np.array([0, 0, 1, 0]), np.array([0, 2])) == 0.5
    same = np.ones((3, 2), np.float32)  # a row is not its own neighbour, wherever it is listed
    assert figures.neighbour_share(same, np.array([0, 1, 2]), np.arange(3)) == 0.0


def test_names_that_would_cover_each_other_are_pushed_apart() -> None:
    figure = Figure()
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], "o")
    names = [figures._write(axes, (x, 0.5), "a long name", "#332288") for x in (0.0, 0.01, 0.02)]
    figures._spread(axes, names)
    figure.canvas.draw()
    boxes = [name.get_window_extent() for name in names]
    assert not any(boxes[a].overlaps(boxes[b]) for a in range(3) for b in range(a))
    assert all(box.x0 >= axes.get_window_extent().x0 - 1 for box in boxes)
