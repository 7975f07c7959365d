"""Censored labels on every way from the table to the screen: steps, judging, resuming, run directories, estimators."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from crashes import stop_at
from rich.console import Console
from samples import payments, quick, shapes
from torch import Tensor

from censnet.cli.render_run import scores_screen
from censnet.data.tables.files import Tables
from censnet.errors import TrainingStopped
from censnet.nn import chunked
from censnet.pipeline import train
from censnet.pipeline.prepare import Prepared, prepare
from censnet.runs import load_run
from censnet.tasks.losses import row_loss
from censnet.training.batches import make_batches
from censnet.training.evaluator import Evaluator
from censnet.training.task_data import build_model

LIMIT = 8.0  # of fees
POOR = 150.0  # of wealth
HEAVY = 6.25  # of graphs


def censor(values: pd.Series, limit: float) -> list[str]:
    return [f">{limit}" if value > limit else str(value) for value in values]


def fees() -> Tables:
    """Payments whose fee is known up to a limit alone, and wealth with gaps that is known from one on."""
    data = payments()
    wealth = [f"<= {POOR}" if value < POOR else str(value) for value in data.nodes["wealth"]]
    wealth[::4] = [None] * len(wealth[::4])
    fee = censor(data.edges["fee"], LIMIT)
    return data.with_frames({"nodes": data.nodes.assign(wealth=wealth), "edges": data.edges.assign(fee=fee)})


def beads() -> Tables:
    data = shapes()
    return data.with_frames({"graphs": data.graphs.assign(weight=censor(data.graphs["weight"], HEAVY))})


def numbers(prepared: Prepared, level: str, labels: Tensor) -> Tensor:
    (target,) = (target for target in prepared.targets if target.level == level)
    return labels[:, 0] * target.scale + target.mean


@pytest.fixture(scope="module")
def prepared() -> Prepared:
    return prepare(fees(), ["edge:fee", "node:wealth"], "strong", quick())


@pytest.mark.parametrize("sampling", ["full", "neighbors", "proportional", "balanced"])
def test_every_step_knows_which_of_its_labels_are_limits(prepared: Prepared, sampling: str) -> None:
    changes = {"sampling": "full", "imbalance": "sampling"} if sampling == "balanced" else {"sampling": sampling}
    settings = prepared.settings.training.model_copy(update={**changes, "batch_size": 16})
    batches, seen = make_batches(prepared.task_data, settings, hops=2), {"edge": 0, "node": 0}
    generator = torch.Generator().manual_seed(0)
    for chosen in batches.plan(generator):
        batch = batches.make(chosen, generator)
        for level, side, limit in (("edge", 1, LIMIT), ("node", -1, POOR)):
            at = (numbers(prepared, level, batch.labels[level]) - limit).abs() < 1e-4
            assert torch.equal(batch.censoring[level][:, 0], side * at.to(torch.int8))
            seen[level] += int(at.sum())
    assert min(seen.values()) >= 2


def test_batches_of_graphs_and_the_graphs_of_a_part_keep_their_limits() -> None:
    prepared = prepare(beads(), "graph:weight", "strong", quick(training__batch_size=8))
    batches, seen = make_batches(prepared.task_data, prepared.settings.training, hops=2), 0
    generator = torch.Generator().manual_seed(0)
    steps = [batches.make(chosen, generator) for chosen in batches.plan(generator)]
    test = prepared.task_data.only("test")
    for labels, censoring in [(s.labels["graph"], s.censoring["graph"]) for s in steps] + [
        (test.labels["graph"], test.censoring["graph"])
    ]:
        at = (numbers(prepared, "graph", labels) - HEAVY).abs() < 1e-4
        assert torch.equal(censoring[:, 0], at.to(torch.int8))
        seen += int(at.sum())
    assert seen > 3


def test_several_columns_with_gaps_have_their_limits_in_their_own_column() -> None:
    prepared = prepare(beads(), "graph:red,weight,many_red", "strong", quick())
    censoring, labels = prepared.task_data.censoring["graph"], prepared.task_data.labels["graph"]
    assert censoring.shape == labels.shape
    assert censoring.any(0).tolist() == [False, True, False]
    assert bool(labels[:, 2].isnan().any())
    expected = beads().graphs["weight"].str.startswith(">").to_numpy()
    assert (censoring[prepared.data.rows("graph")][:, 1].numpy() == expected).all()


def test_hidden_links_and_members_keep_limits_with_their_rows() -> None:
    linked = prepare(fees(), ["edge:fee", "link"], "strong", quick(training__edge_mask_ratio=0.3))
    assert linked.task_data.censoring["edge"].shape == linked.task_data.labels["edge"].shape
    batch = make_batches(linked.task_data, linked.settings.training, 2, True).make(torch.empty(0), torch.Generator())
    at = (numbers(linked, "edge", batch.labels["edge"]) - LIMIT).abs() < 1e-4
    assert torch.equal(batch.censoring["edge"][:, 0], at.to(torch.int8))
    assert torch.equal(linked.task_data.member(0).censoring["edge"], linked.task_data.censoring["edge"])


def test_a_judge_counts_limits_apart_and_its_loss_is_one_sided(prepared: Prepared) -> None:
    task_data = prepared.task_data
    torch.manual_seed(0)
    model = build_model(task_data, prepared.settings).eval()
    scores = Evaluator(task_data, "train")(model)[0]["edge"]
    rows = (task_data.parts["edge"][:, 0] == 0).nonzero().squeeze(1)
    with torch.no_grad():
        answers = model(task_data.graph).by_level["edge"][rows].unsqueeze(1)
    censoring = task_data.censoring["edge"][rows]
    expected = row_loss(task_data.of("edge"), answers, task_data.labels["edge"][rows], censoring=censoring)
    assert scores["loss"] == pytest.approx(float(expected), rel=1e-5)
    assert scores["fee/censored_rows"] == int((censoring != 0).sum()) > 3
    assert 0 <= scores["fee/censored_satisfied"] <= 1


@pytest.mark.slow
def test_a_run_learns_from_limits_judges_them_apart_and_shows_them_as_they_are_written(tmp_path: Any) -> None:
    data = fees()
    settings = quick(training__epochs=15, training__learning_rate=0.05, model__dropout=0.0)
    run = train(data, ["edge:fee", "node:wealth"], tmp_path / "run", settings=settings, ensemble=2)
    fee = next(target for target in run.config.targets if target.column == "fee")
    assert "labels are censored (0 <, " in fee.reason
    assert run.metrics["train"]["edge"]["fee/censored_satisfied"] > 0.2
    loaded = load_run(tmp_path / "run")
    for level, scores in loaded.evaluate(data)["test"].items():
        assert scores == pytest.approx(run.metrics["test"][level])
    other = data.with_frames({"edges": data.edges.iloc[:60]})
    scores = loaded.evaluate(other)["all"]
    count = int(other.edges["fee"].str.startswith(">").sum())
    assert scores["edge"]["fee/censored_rows"] == count
    exact = loaded.predict(other, "edge")[~other.edges["fee"].str.startswith(">").to_numpy()]
    error = exact["fee_predicted"] - exact["fee"].astype(float)
    assert scores["edge"]["fee/rmse"] == pytest.approx(float(np.sqrt((error**2).mean())), rel=1e-4)
    assert loaded.predict(other, "edge")["fee"].tolist() == other.edges["fee"].tolist()
    with open(os.devnull, "w", encoding="utf-8") as file:
        console = Console(width=100, file=file, record=True, highlight=False)
        console.print(scores_screen(loaded, {"all": scores}))
    shown = [line.split() for line in console.export_text().splitlines()]
    assert ["censored_rows", str(count)] in shown


@pytest.mark.slow
def test_limits_pull_answers_beyond_them() -> None:
    """A number that is known to be above a limit is answered higher than by who takes the limit for the number."""
    data = fees()
    plain = data.with_frames({"edges": data.edges.assign(fee=data.edges["fee"].str.lstrip(">").astype(float))})
    settings = quick(training__epochs=30, training__learning_rate=0.05, training__ema_decay=0.0, model__dropout=0.0)
    limits, numbers = (train(tables, "edge:fee", settings=settings).predict(data) for tables in (data, plain))
    above = (payments().edges["fee"] > 2 * LIMIT).to_numpy()
    assert limits["fee_predicted"][above].mean() > numbers["fee_predicted"][above].mean() + 1


@pytest.mark.slow
def test_a_training_goes_on_with_its_limits_and_not_with_others(tmp_path: Any, monkeypatch: Any) -> None:
    data, settings = fees(), quick(training__epochs=4)
    whole = train(data, "edge:fee", tmp_path / "whole", settings=settings)
    with monkeypatch.context() as patch:
        stop_at(patch, 3, "ctrl-c")
        with pytest.raises(TrainingStopped):
            train(data, "edge:fee", tmp_path / "cut", settings=settings)
    exact = data.with_frames({"edges": data.edges.assign(fee=data.edges["fee"].str.lstrip(">"))})
    with pytest.raises(ValueError, match="started with another"):
        train(exact, "edge:fee=regression", tmp_path / "cut", settings=settings, if_exists="resume")
    again = train(data, "edge:fee", tmp_path / "cut", settings=settings, if_exists="resume")
    assert again.metrics == whole.metrics


def test_a_limit_in_a_feature_is_no_number_and_the_row_says_that_it_is_censored() -> None:
    data = payments()
    amounts = data.edges["amount"].astype(str).tolist()
    amounts[3] = ">10"
    data = data.with_frames({"edges": data.edges.assign(amount=amounts)})
    run = train(data, "edge:fraud", settings=quick(training__epochs=1))
    error = run.predict(data)["error"]
    assert error.notna().sum() == 1
    assert error[3] == (
        "edges, row 4, column amount: '>10' is a limit (censored), expected a finite number: a feature has to be known"
    )


@pytest.mark.slow
def test_outputs_in_chunks_know_limits_and_clipping_as_those_at_once_do(monkeypatch: Any) -> None:
    """What is computed some rows at a time, because of its many classes, may have numbers beside them."""
    data = fees()
    settings = quick(training__epochs=3, model__clip_to_label_range=True, model__dropout=0.0)
    run = train(data, ["edge:fee", "edge:sort"], settings=settings, ensemble=2)
    other = data.with_frames({"edges": data.edges.iloc[:60]})
    at_once = run.evaluate(other)["all"]["edge"], run.predict(other)
    assert at_once[0]["fee/censored_rows"] > 3
    assert "fee_clipped" in at_once[1]
    monkeypatch.setattr(chunked, "MAX_AT_ONCE", 8)
    monkeypatch.setattr(chunked, "CHUNK", 64)
    assert run.evaluate(other)["all"]["edge"] == pytest.approx(at_once[0], rel=1e-5)
    pd.testing.assert_frame_equal(run.predict(other), at_once[1], rtol=1e-5)
    again = train(data, ["edge:fee", "edge:sort"], settings=settings, ensemble=2)
    assert again.metrics["train"]["edge"] == pytest.approx(run.metrics["train"]["edge"], rel=0.01, abs=0.01)
