"""The first act of the demo: the compared methods, their split, the written files and the curves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import citations
import figures
import numpy as np
import pandas as pd
import pytest
import torch
from figures import MethodScores
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import imread

from censnet.console import Console
from censnet.data.load import load_data
from censnet.data.splits.split_file import Split
from censnet.data.tables.files import Tables
from censnet.errors import DataError
from censnet.ops.graph import Graph
from censnet_experiments.baselines.encoders import BaselineEncoder

ONE = MethodScores("one", [[0.2, 0.8, 0.7], [0.3, 0.6, 0.9]], [2, 3], [0.75, 0.85], (79.4, 1.0))
OTHER = MethodScores("other", [[0.4, 0.5], [0.5, 0.4]], [2, 1], [0.5, 0.52])


@pytest.fixture
def without_cora(monkeypatch: Any) -> None:
    def find(name: str) -> dict[str, Path]:
        raise DataError(f"{name} is nowhere to be had")

    monkeypatch.setattr(citations, "find", find)


@pytest.mark.slow
@pytest.mark.usefixtures("without_cora")
def test_without_cora_the_first_act_uses_the_karate_club(tmp_path: Path, capsys: Any) -> None:
    citations.play(tmp_path, Console(), epochs=2)
    said = " ".join(capsys.readouterr().out.split())
    assert "Cora is not available: cora is nowhere to be had" in said
    assert "karate" in said
    scores = pd.read_csv(tmp_path / "scores.csv")
    assert scores["method"].tolist() == ["CensNet, strong", "GCN, same recipe", "CensNet, paper", "GCN, own settings"]
    assert "Trained by the same recipe, CensNet" in said
    assert scores[["validation", "test"]].stack().between(0, 1).all()
    assert imread(tmp_path / "learning_curves.png").shape[1] > 1000
    for run in ("paper", "strong"):
        assert (tmp_path / run / "config.json").exists()


@pytest.mark.slow
def test_every_method_is_trained_and_tested_on_the_same_split(tmp_path: Path) -> None:
    karate = citations.make_karate()
    first = citations.train_censnet(karate, "paper", tmp_path / "paper", epochs=1)
    others = [
        citations.train_censnet(karate, "strong", tmp_path / "strong", epochs=1),
        citations.train_gcn_by_recipe(karate, epochs=1),
    ]
    for other in others:
        pd.testing.assert_frame_equal(first.splits, other.splits)


def test_gcn_by_recipe_has_the_candidates_and_settings_of_strong(tmp_path: Path) -> None:
    karate = citations.make_karate()
    ours = citations.train_censnet(karate, "strong", tmp_path / "strong", epochs=1)
    gcn = citations.train_gcn_by_recipe(karate, epochs=1)
    assert isinstance(gcn.models[0].encoder, BaselineEncoder)
    for one, other in ((ours.config.selection, gcn.config.selection),):
        assert one is not None
        assert other is not None
        assert one.candidates == other.candidates
        assert len(one.candidates) == 8
    ours_training, gcn_training = (run.config.settings.training.model_dump() for run in (ours, gcn))
    differ = {name for name, value in ours_training.items() if gcn_training[name] != value}
    assert differ <= {"weight_decay_by_name"}  # by the name of the layer that it is for
    assert ours.config.settings.data == gcn.config.settings.data


def test_karate_has_a_name_for_each_member_and_common_friends_for_each_friendship() -> None:
    data = citations.make_karate().data
    assert isinstance(data, Tables)
    assert data.nodes is not None
    assert data.edges is not None
    assert np.array_equal(np.stack(data.nodes["name"].to_numpy()), np.eye(34))
    friends = {(a, b) for a, b in data.edges[["source", "target"]].to_numpy().tolist()}
    friends |= {(b, a) for a, b in friends}
    row = data.edges.iloc[5]
    one, other = ({b for a, b in friends if a == row[end]} for end in ("source", "target"))
    assert row["common"] == len(one & other) / len(one | other)


def test_published_scores_are_those_of_table_1() -> None:
    assert citations.find_published("censnet", citations.CORA.cell) == (79.4, 1.0)
    assert citations.find_published("gcn", citations.CORA.cell) == (74.0, 2.8)
    assert citations.find_published("gcn", citations.make_karate().cell) is None


def test_the_test_score_of_gcn_is_that_of_its_best_epoch_on_validation() -> None:
    torch.manual_seed(0)
    labels = torch.arange(60) % 2
    nodes = torch.nn.functional.one_hot(labels, 2).float() + 0.3 * torch.randn(60, 2)
    ring = torch.arange(0, 60)
    graph = Graph(nodes, torch.ones(60, 1), torch.stack([ring, (ring + 2) % 60]))
    rows = torch.arange(60)
    split = Split(rows[:20], rows[20:40], rows[40:])
    found = citations.train_gcn(load_data(graph), labels, split, epochs=60)
    (curve,), (best,) = found.curves, found.best_epochs
    assert curve[best - 1] == max(curve)
    assert max(curve[: best - 1], default=0) < max(curve)  # of equals, the first
    assert found.tested[0] > 0.9
    again = citations.train_gcn(load_data(graph), labels, split, epochs=best)
    assert again.tested == found.tested  # later epochs change nothing


def test_gcn_has_the_patience_of_the_other_methods(monkeypatch: Any) -> None:
    monkeypatch.setattr(citations, "PATIENCE", 3)
    graph = Graph(torch.ones(6, 1), torch.ones(5, 1), torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]]))
    rows = torch.arange(6)
    split = Split(rows[:2], rows[2:4], rows[4:])
    labels = torch.tensor([0, 1, 0, 0, 0, 1])
    found = citations.train_gcn(load_data(graph), labels, split, epochs=50)
    assert len(found.curves[0]) == found.best_epochs[0] + 3


def test_the_title_claims_no_more_than_the_test_nodes_show() -> None:
    assert citations.describe_difference(2.5, 1.0).endswith("CensNet is 2.5 points better than GCN on this split")
    assert citations.describe_difference(-2.5, 1.0).endswith("CensNet is 2.5 points worse than GCN on this split")
    for gap in (0.9, -0.9, 0.0):
        assert "equal within the error of this test set" in citations.describe_difference(gap, 1.0)


def test_the_margin_is_that_of_the_paired_difference(tmp_path: Path) -> None:
    karate = citations.make_karate()
    ours = citations.train_censnet(karate, "paper", tmp_path / "paper", epochs=1)
    frame = ours.predictions["node"]
    other = np.where(frame["faction"] == "Officer", "Mr. Hi", "Officer")
    right, wrong = (
        replace(ours, predictions={"node": frame.assign(faction_predicted=values)})
        for values in (frame["faction"], other)
    )
    assert citations.compare_runs(ours, ours, "faction") == (0.0, 0.0)
    assert citations.compare_runs(right, wrong, "faction") == (100.0, 0.0)
    accuracy = ours.metrics["test"]["node"]["accuracy"]
    gap, margin = citations.compare_runs(ours, wrong, "faction")
    assert gap == pytest.approx(100 * accuracy)
    count = int((frame["split"] == "test").sum())
    assert margin == pytest.approx(196 * (accuracy * (1 - accuracy) / count) ** 0.5)


def test_recorded_splits_are_compared_where_there_are_any(tmp_path: Path) -> None:
    assert citations.describe_records(None) == ""
    assert citations.describe_records("cora-3", tmp_path) == ""
    results = Path(__file__).parents[2] / "results"
    assert "Over the 20 splits recorded" in citations.describe_records("cora-3", results)


def test_curves_are_drawn_without_a_display(tmp_path: Path) -> None:
    figures.draw_curves([ONE, OTHER], "title", "subtitle", tmp_path / "deep" / "curves.png")
    assert imread(tmp_path / "deep" / "curves.png").std() > 0


def test_overlapping_labels_are_pushed_apart() -> None:
    figure = Figure()
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], "o")
    names = [figures.write_label(axes, (x, 0.5), "a long name", "#332288") for x in (0.0, 0.01, 0.02)]
    figures.push_apart(axes, names)
    figure.canvas.draw()
    boxes = [name.get_window_extent() for name in names]
    assert not any(boxes[a].overlaps(boxes[b]) for a in range(3) for b in range(a))
    assert all(box.x0 >= axes.get_window_extent().x0 - 1 for box in boxes)
