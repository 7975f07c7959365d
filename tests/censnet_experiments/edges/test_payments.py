from __future__ import annotations

import hashlib
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from censnet.data.load import read_data
from censnet_experiments.edges.payments import DAY, FRAUD, HOUR, simulate_history, simulate_payments


@pytest.fixture(scope="module")
def history() -> tuple[pd.DataFrame, pd.DataFrame]:
    return simulate_history(20_000, seed=3)


def test_rows_are_payments_between_known_accounts_in_order_of_time(history):
    nodes, edges = history
    assert nodes["id"].tolist() == list(range(2_000))
    assert edges["source"].isin(nodes["id"]).all()
    assert edges["target"].isin(nodes["id"]).all()
    assert (edges["source"] != edges["target"]).all()
    assert edges["time"].is_monotonic_increasing
    assert edges["time"].between(0, 90 * DAY).all()
    assert (edges["amount"] > 0).all()
    assert abs(len(edges) - 20_000) < 400


def test_between_one_and_two_percent_are_fraud_of_three_kinds(history):
    edges = history[1]
    assert 0.01 < edges["is_fraud"].mean() < 0.02
    assert set(edges["scheme"][edges["is_fraud"] == 1]) == set(FRAUD)
    fraud = edges[edges["scheme"].isin(FRAUD)]
    assert 0.03 < 1 - fraud["is_fraud"].mean() < 0.14  # unreported
    assert fraud["scheme"].value_counts(normalize=True).min() > 0.2


def test_rings_give_every_member_as_many_payments_as_they_take(history):
    rings = history[1].query("scheme == 'ring' and time < 85 * @DAY")
    taken, given = rings["target"].value_counts(), rings["source"].value_counts()
    members = taken.index.union(given.index)
    balance = taken.reindex(members, fill_value=0) - given.reindex(members, fill_value=0)
    assert (balance == 0).mean() > 0.9  # but for rings that end after day 85
    passed = rings.merge(rings, left_on="target", right_on="source", suffixes=("", "_next"))
    wait = (passed["time_next"] - passed["time"]) / HOUR
    assert (wait.between(0, 24)).sum() > 0.6 * len(rings)


def test_stolen_cards_pay_new_recipients_within_hours(history):
    edges = history[1]
    stolen, other = edges.query("scheme == 'stolen card'"), edges.query("scheme == 'shopping'")
    pairs = set(zip(other["source"], other["target"], strict=True))
    known = [pair in pairs for pair in zip(stolen["source"], stolen["target"], strict=True)]
    assert np.mean(known) < 0.05
    span = stolen.groupby("source")["time"].agg(np.ptp)
    assert span.median() < 6 * HOUR


def test_mules_collect_from_several(history):
    mules = history[1].query("scheme == 'mule'")
    assert mules.groupby("target").size().max() >= 8


def test_amounts_have_heavy_tails(history):
    edges = history[1]
    assert edges["target"].value_counts().max() > 100 * edges["target"].value_counts().median()
    assert edges["amount"].max() > 100 * edges["amount"].median()


def test_a_seed_is_one_history():
    first, again, other = (simulate_payments(2_000, seed) for seed in (0, 0, 1))
    pd.testing.assert_frame_equal(first.edges, again.edges)
    pd.testing.assert_frame_equal(first.nodes, again.nodes)
    assert not first.edges.equals(other.edges)
    assert "scheme" not in first.edges


def test_the_history_stays_as_it_was_committed():
    text = simulate_payments(2_000).edges.to_csv(index=False)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "b39650f73a69cbba"


def test_too_few_payments_are_refused():
    with pytest.raises(ValueError, match="payments is 100, expected 2,000 or more"):
        simulate_payments(100)


@pytest.mark.slow
def test_the_command_writes_tables_that_train_can_read(tmp_path):
    command = [sys.executable, "-m", "censnet_experiments.edges.payments", "--to", str(tmp_path), "--payments", "2000"]
    subprocess.run(command, check=True)
    data = read_data(tmp_path, target=["edge:is_fraud"])
    assert data is not None
    assert len(pd.read_csv(tmp_path / "edges.csv")) == len(simulate_payments(2_000).edges)
