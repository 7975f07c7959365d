"""A run is as sure as its validation rows, in every way that it is asked, and says which rows it knows nothing of."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
import torch
from samples import payments, quick, smiles

from censnet.data.tables.files import Tables
from censnet.errors import ArgumentError, RunError, SettingsError
from censnet.levels import Level
from censnet.pipeline import train
from censnet.runs import Run, load_run
from censnet.runs.novelty import LevelNovelty
from censnet.runs.uncertainty import Uncertainty, least_rows

HALF = {"data.fractions": (0.4, 0.4, 0.2)}


def fees(seed: int = 0) -> Tables:
    """400 payments whose fee is learnable, and some of whose labels are limits or missing."""
    data, rng = payments(seed=seed), np.random.default_rng(seed)
    edges = pd.concat([data.edges] * 5, ignore_index=True)
    edges["amount"] = rng.uniform(5, 500, len(edges)).round(2)
    fee = (0.02 * edges["amount"] + rng.normal(scale=0.5, size=len(edges))).round(2).astype(str)
    edges["fee"] = np.where(rng.random(len(edges)) < 0.1, ">" + fee, fee)
    edges.loc[::17, "fee"] = None
    return Tables(data.nodes, edges)


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """An ensemble for a number and a class of payments, read from its directory."""
    folder = tmp_path_factory.mktemp("town") / "run"
    train(fees(), "edge:fee,fraud", folder, settings=quick(**{"training.epochs": 10}) | HALF, ensemble=2)
    return load_run(folder)


def test_what_is_promised_of_the_training_data_is_what_predictions_show(town):
    data = fees()
    found, scores = town.predict(data, coverage=0.8), town.evaluate(data, coverage=0.8)["validation"]["edge"]
    exact = pd.to_numeric(data.edges["fee"], errors="coerce").to_numpy()
    rows = (town.predictions["edge"]["split"] == "validation").to_numpy() & ~np.isnan(exact)
    inside = ((found["fee_low"] <= exact) & (exact <= found["fee_high"]))[rows]
    assert scores["fee/coverage"] == pytest.approx(inside.mean(), abs=0.02)  # rounded where a label is the limit
    assert inside.mean() == pytest.approx(0.8, abs=0.02)
    assert scores["fee/width"] == pytest.approx((found["fee_high"] - found["fee_low"])[rows].mean(), rel=1e-3)
    sets = found["fraud_set"].str.split(" | ", regex=False)
    assert all(str(one) in each for one, each in zip(found["fraud_predicted"], sets, strict=True))


def test_the_loss_of_calibrated_probabilities_is_that_of_predictions(town):
    data = fees()
    scores = town.evaluate(data)["test"]["edge"]
    found = town.predict(data)[(town.predictions["edge"]["split"] == "test").to_numpy()]
    p, y = found["fraud_p_1"].to_numpy(), data.edges["fraud"].to_numpy()[found.index]
    assert scores["fraud/log_loss"] == pytest.approx(-np.log(np.where(y == 1, p, 1 - p)).mean(), rel=1e-3)
    assert scores["fraud/brier"] == pytest.approx(((p - y) ** 2).mean(), rel=1e-3)


def test_a_stored_run_is_as_sure_as_it_was(town, tmp_path):
    town.save(tmp_path / "copy")
    again = load_run(tmp_path / "copy")
    assert again.uncertainty == town.uncertainty
    pd.testing.assert_frame_equal(again.predict(fees(), coverage=0.9), town.predict(fees(), coverage=0.9))
    plain = town.predict(fees())
    assert not {"fee_low", "fee_high", "fraud_set"} & set(plain)


def test_a_coverage_that_so_few_rows_cannot_promise_is_refused(town):
    with pytest.raises(RunError, match=r"edge:fee has labels in \d+ validation rows, expected at least 9,999 for a"):
        town.predict(fees(), coverage=0.9999)
    with pytest.raises(ArgumentError, match="coverage is 1, expected more than 0 and less than 1"):
        town.predict(fees(), coverage=1.0)
    with pytest.raises(ArgumentError, match="coverage is 0"):
        town.evaluate(fees(), coverage=0.0)
    assert [least_rows(coverage) for coverage in (0.5, 0.9, 0.99)] == [1, 9, 99]


def test_a_run_without_validation_rows_promises_nothing():
    run = train(payments(), "edge:fraud", settings=quick(**{"data.fractions": (0.8, 0.0, 0.2), "training.epochs": 2}))
    assert str(run.uncertainty.levels[Level.EDGE][0].calibration).startswith("none: 0 validation rows")
    assert "coverage" not in run.metrics["test"]["edge"]
    with pytest.raises(RunError, match="0 validation rows, expected at least 9"):
        run.predict(payments(), coverage=0.9)


def test_links_are_calibrated():
    run = train(payments(), "link", settings=quick())
    run.uncertainty = Uncertainty()
    raw = run.predict(payments())["link_p"].to_numpy()
    run.uncertainty = Uncertainty.model_validate({"link": {"method": "temperature", "temperature": 2.0}})
    odds = np.sqrt(raw / (1 - raw))
    assert run.predict(payments())["link_p"].to_numpy() == pytest.approx(odds / (1 + odds), rel=1e-4)
    assert run.uncertainty.calibrate_links(torch.tensor([0.8, 0.2])).tolist() == pytest.approx([2 / 3, 1 / 3])
    with pytest.raises(RunError, match="0 held-out validation links, expected at least 9"):
        run.predict(payments(), coverage=0.9)


def test_links_have_sets_and_pairs_of_odd_nodes_are_marked(tmp_path):
    data = payments(accounts=60, rows=900)
    train(data, "link", tmp_path / "run", settings=quick() | {"data.link_fractions": (0.6, 0.2, 0.2)})
    run = load_run(tmp_path / "run")
    test = run.metrics["test"]["link"]
    assert test["coverage"] > 0.8
    assert 1 <= test["set_size"] <= 2
    assert run.evaluate(data)["test"]["link"]["coverage"] == pytest.approx(test["coverage"])
    held_out = run.predictions["link"]
    linked = held_out[(held_out["link"] == 1) & (held_out["split"] == "validation")][["source", "target"]]
    found = run.predict(data, pairs=linked.reset_index(drop=True), coverage=0.9)
    assert set(found["link_set"]) <= {"link", "no link", "no link | link"}
    likely = found["link_p"] > 0.5
    assert found.loc[likely, "link_set"].str.contains(r"(?:^|\| )link$").all()  # the likelier one always is in it
    smaller = run.predict(data, pairs=linked.reset_index(drop=True), coverage=0.5)["link_set"]
    assert (smaller.str.len() <= found["link_set"].str.len()).all()
    assert run.predict(data, top=3, coverage=0.9)["link_set"].notna().all()
    nodes = data.nodes.copy()
    name = "wealth"
    nodes.loc[5, name] = 10 * nodes[name].max() + 1000
    marked = run.predict(Tables(nodes, data.edges))
    odd = nodes["id"][5]
    is_odd = (marked["source"] == odd) | (marked["target"] == odd)
    assert marked["unlike_training"].notna().equals(is_odd)
    assert marked.loc[is_odd, "unlike_training"].str.contains(f"(?:source|target): {name} is .* above").all()


def test_far_numbers_and_new_categories_are_named_and_ordinary_rows_are_not(town):
    data = fees()
    edges = data.edges.copy()
    edges.loc[3, "amount"] = 2000.0
    reason = town.predict(Tables(data.nodes, edges))["unlike_training"]
    assert re.match(r"amount is 2000, above \d+(\.\d+)?: far from training rows", reason[3])
    assert reason.drop(3).notna().mean() < 0.08
    assert town.predictions["edge"]["unlike_training"].notna().mean() < 0.06


def test_edges_beside_links_are_compared_by_their_columns():
    data = fees()
    run = train(data, ["edge:fraud", "link"], settings=quick(**{"training.epochs": 2}) | HALF)
    edges = data.edges.copy()
    edges.loc[3, "amount"] = 2000.0
    reason = run.predict(Tables(data.nodes, edges), "edge")["unlike_training"]
    assert "amount is 2000" in reason[3]
    assert reason.drop(3).notna().mean() < 0.08


def test_molecules_unlike_those_of_the_training_are_marked():
    run = train(smiles(120), "graph:size", settings=quick(**{"training.epochs": 2}) | HALF)
    odd = ["C" * 600, "[NH3][Pt]([NH3])(Cl)Cl", "[Fe+2]", "N" * 300]
    reason = run.predict(odd)["unlike_training"]
    assert reason.notna().all()
    assert "number of nodes is 600" in reason[0]
    assert "element" in reason[1]


def test_distances_are_those_of_a_slow_reference():
    rows = torch.randn(40, 6, generator=torch.Generator().manual_seed(0))
    scale = [2.0, 1.0, 0.5, 1.0, 1.0, 3.0]
    references = rows[:10].tolist()
    found = LevelNovelty(mean=[0.5] * 6, scale=scale, references=references, threshold=1.0).distance(rows)
    for row, value in zip((rows - 0.5) / torch.tensor(scale), found, strict=True):
        nearest = sorted(float((row - other).norm()) for other in rows[:10])[:3]
        assert float(value) == pytest.approx(sum(nearest) / 3, rel=1e-4)


def test_a_damaged_calibration_is_refused(town, tmp_path):
    with pytest.raises(ValueError, match="references do not fit"):
        LevelNovelty(mean=[0.0], scale=[1.0, 1.0], references=[[0.0]])
    novelty = LevelNovelty(mean=[0.0], scale=[1.0], references=[[0.0]], threshold=1.0)
    run = load_run(town.path)
    run.uncertainty = run.uncertainty.model_copy(update={"novelty": {Level.EDGE: novelty}})
    with pytest.raises(RunError, match="embeddings have 16 channels, expected 1: the run is damaged"):
        run.predict(fees())


def test_a_threshold_is_stored_and_used_by_every_answer(town, tmp_path):
    town.save(tmp_path / "run")
    run, data = load_run(tmp_path / "run"), fees()
    scores = run.evaluate(data, recall=0.8)
    assert scores["validation"]["edge"]["fraud/recall"] >= 0.8
    run.save(tmp_path / "run")
    again = load_run(tmp_path / "run")
    (threshold,) = (own.threshold for own in again.uncertainty.levels[Level.EDGE] if own.curve is not None)
    found = again.predict(data)
    assert (found["fraud_predicted"] == (found["fraud_p_1"] >= threshold)).all()
    assert (again.predictions["edge"]["fraud_predicted"] == found["fraud_predicted"]).all()
    test = (again.predictions["edge"]["split"] == "test").to_numpy()
    truth, chosen = data.edges["fraud"].to_numpy()[test] == 1, (found["fraud_predicted"] == 1).to_numpy()[test]
    for row, column in ((0, 0), (0, 1), (1, 0), (1, 1)):
        assert scores["test"]["edge"][f"fraud/confusion_{row}_{column}"] == ((truth == row) & (chosen == column)).sum()
    assert scores["test"]["edge"]["accuracy"] == pytest.approx((truth == chosen).mean())
    for part, levels in scores.items():
        assert again.metrics[part]["edge"] == pytest.approx(levels["edge"]), part
    again.decide()
    assert again.predict(data)["fraud_predicted"].equals(town.predict(data)["fraud_predicted"])
    for part, levels in town.metrics.items():
        assert again.metrics[part]["edge"] == pytest.approx(levels["edge"]), part


def test_a_training_chooses_by_costs_and_refuses_them_where_there_are_no_two_classes(tmp_path):
    settings = quick(training__epochs=2, training__cost={"fp": 1, "fn": 20}) | HALF
    run = train(payments(), "edge:fraud", tmp_path / "run", settings=settings)
    (own,) = run.uncertainty.levels[Level.EDGE]
    assert str(own.decision.rule) == "cost fp=1,fn=20"
    assert "cost" in run.metrics["test"]["edge"]
    assert load_run(tmp_path / "run").uncertainty == run.uncertainty
    with pytest.raises(SettingsError, match="nothing reads it, since no target has two classes"):
        train(payments(), "edge:fee", settings=settings)
    with pytest.raises(SettingsError, match="cost and recall, expected one"):
        train(payments(), "edge:fraud", settings=settings | {"training.recall": 0.5})
    number = train(payments(), "edge:fee", settings=quick(training__epochs=1))
    with pytest.raises(ArgumentError, match="no target has two classes"):
        number.evaluate(payments(), recall=0.5)
