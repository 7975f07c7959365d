"""The second act of the demo: one split for all methods, honest comparisons, and the map of the scored run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import payments
import pytest
from matplotlib.image import imread
from numpy.typing import NDArray
from payments import Difference, History, Predicted
from sklearn.metrics import average_precision_score

from censnet.console import Console
from censnet.runs import load_run
from censnet_experiments.edges.payments import FRAUD


@pytest.fixture(scope="module")
def history() -> History:
    return payments.make_history(2_000)


def test_no_method_sees_the_purpose_of_a_payment(history: History) -> None:
    assert "scheme" not in history.edges
    assert "scheme" not in history.task.stated().frames()["edges"]
    assert len(history.scheme) == len(history.edges)
    assert np.isin(history.scheme[history.edges["is_fraud"] == 1], FRAUD).all()


def test_validation_and_test_payments_are_later(history: History) -> None:
    times = history.edges["time"].to_numpy()
    train, validation, test = (times[rows.numpy()] for rows in history.task.split.parts.values())
    assert train.max() <= validation.min()
    assert validation.max() <= test.min()
    assert [len(part) / len(times) for part in (train, validation, test)] == pytest.approx(payments.FRACTIONS, abs=1e-3)
    assert history.labels.sum() >= 5


def test_there_are_as_many_alarms_as_fraud_and_they_are_the_highest() -> None:
    values, labels = np.array([0.1, 0.9, 0.8, 0.2, 0.7]), np.array([1, 0, 1, 0, 1])
    alarms = payments.find_alarms(values, labels)
    assert alarms.sum() == 3
    assert values[alarms].min() > values[~alarms].max()


def test_equal_methods_are_not_distinguished_and_better_ones_are() -> None:
    draw = np.random.default_rng(0)
    labels = (draw.random(2_000) < 0.05).astype(np.int64)
    good, bad = labels + draw.normal(0, 0.4, 2_000), labels + draw.normal(0, 1.5, 2_000)
    assert payments.compare(labels, good, good, 50) == Difference(0, 0, 0)
    ahead, behind = payments.compare(labels, good, bad, 200), payments.compare(labels, bad, good, 200)
    assert 0 < ahead.low < ahead.gap < ahead.high
    assert behind.gap == pytest.approx(-ahead.gap)
    assert behind.high == pytest.approx(-ahead.low)
    expected = average_precision_score(labels, good) - average_precision_score(labels, bad)
    assert ahead.gap == pytest.approx(expected)


def test_the_interval_covers_the_true_difference_of_two_equally_good_methods() -> None:
    covered = 0
    for seed in range(20):
        draw = np.random.default_rng(seed)
        labels = (draw.random(1_000) < 0.1).astype(np.int64)
        found = payments.compare(labels, *(labels + draw.normal(0, 0.7, 1_000) for _ in range(2)), draws=100)
        covered += found.low <= 0 <= found.high
    assert covered >= 16


def test_the_sentence_can_say_that_trees_win() -> None:
    labels = np.tile([0, 0, 0, 1], 50)
    chance, right = np.random.default_rng(0).random(200), labels.astype(float)

    def describe(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> str:
        return payments.describe_comparison(labels, Predicted("CensNet", ours, 1.0), [Predicted("trees", theirs, 1.0)])

    assert "CensNet is worse than trees (-0." in describe(chance, right)
    assert "CensNet is better than trees (+0." in describe(right, chance)
    assert "CensNet is not distinguishable from trees (+0.00" in describe(chance, chance)


def test_average_precision_is_that_of_scikit_learn_with_weights_and_ties() -> None:
    draw = np.random.default_rng(0)
    labels, values = draw.integers(0, 2, 40), draw.integers(0, 9, 40) / 8
    times = draw.integers(0, 3, (20, 40))
    expected = [average_precision_score(labels, values, sample_weight=one) for one in times]
    assert payments.average_precision(labels, values, times) == pytest.approx(expected)


def test_the_map_shows_all_fraud_and_which_of_it_is_missed(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payments, "SHOWN", 60)
    draw = np.random.default_rng(0)
    values = draw.normal(size=(len(history.edges), 3)).astype(np.float32)
    values[:, 0] = np.arange(len(values))  # to find a payment by its embedding
    ours = Predicted("CensNet", draw.random(len(history.test)), 1.0)
    found = payments.map_payments(values, values, history, ours)
    rows = found.values[:, 0].astype(np.int64)
    assert len(rows) == 60
    assert np.isin(rows, history.test).all()
    alarms = dict(zip(history.test, payments.find_alarms(ours.values, history.labels), strict=True))
    marks = {one.name: one for one in found.marks}
    for kind in FRAUD:
        mine = rows[marks[kind].rows]
        assert set(mine) == set(history.test[history.scheme[history.test] == kind])
        missed = marks[kind].hollow
        assert missed is not None
        assert [alarms[row] for row in mine] == (~missed[marks[kind].rows]).tolist()
    false = {row for row, alarm in alarms.items() if alarm and history.scheme[row] not in FRAUD}
    assert set(rows[marks["false alarm"].rows]) == false
    families = [one.rows for name, one in marks.items() if name not in (*FRAUD, "false alarm")]
    fraud = np.isin(history.scheme[rows], FRAUD)
    assert (np.sum(families, axis=0) == ~fraud).all()  # every scheme has one family


def test_accounts_behind_fraud_are_those_that_send_it(history: History) -> None:
    values = np.ones((len(history.task.tables.frames()["nodes"]), 2), np.float32)
    found = payments.map_accounts(values, values, history)
    marks = {one.name: one.rows for one in found.marks}
    ids = history.task.tables.frames()["nodes"]["id"].to_numpy()
    rings = history.edges[history.scheme == "ring"]
    assert set(ids[marks["member of a ring"]]) == set(rings["source"])
    mules = history.edges[history.scheme == "mule"]
    assert set(ids[marks["mule"]]) == set(mules["source"]) & set(mules["target"])
    assert not (marks["people"] & marks["mule"]).any()


@pytest.mark.slow
def test_the_second_act_writes_what_it_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    payments.play(tmp_path, Console(), payments=2_000, epochs=5)
    said = " ".join(capsys.readouterr().out.split())
    assert "By average precision (AP) on these test payments, CensNet is" in said
    scores, found = pd.read_csv(tmp_path / "scores.csv"), pd.read_csv(tmp_path / "predictions.csv")
    assert scores["method"].tolist() == ["CensNet", "trees on raw columns", "trees on graph features"]
    for _, one in scores.iterrows():
        again = average_precision_score(found["is_fraud"], found[one["method"]])
        assert one["ap"] == pytest.approx(again, abs=1e-6)
        assert f"{one['ap']:.3f}" in said
    run = load_run(tmp_path / "run")
    test = run.predictions["edge"].query("split == 'test'")
    assert np.allclose(test["is_fraud_p_1"], found["CensNet"])
    assert run.metrics["test"]["edge"]["ap"] == pytest.approx(scores["ap"][0], abs=1e-6)
    history = payments.make_history(2_000)
    assert (history.test == test.index).all()
    embedded = run.embed(history.task.tables)
    for name, level in (("nodes", embedded.nodes), ("edges", embedded.edges)):
        written = payments.channels(pd.read_csv(tmp_path / f"{name}.csv"))
        np.testing.assert_allclose(written, payments.channels(level), rtol=1e-4, atol=1e-5)
    assert imread(tmp_path / "embeddings.png").shape[1] > 1000
    nodes, edges = payments.read_columns(run, history.task.tables)
    amounts = history.edges["amount"].rank()  # an encoded column has the order of the column
    assert max(abs(np.corrcoef(amounts, pd.Series(one).rank())[0, 1]) for one in edges.T if one.std() > 0) > 0.999
    assert len(nodes) == len(history.task.tables.frames()["nodes"])
