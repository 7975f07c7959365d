"""Intervals are quantiles of scores of rows drawn with replacement, and cover what they should."""

from __future__ import annotations

import numpy as np
import pytest

from censnet.report.intervals import MOST_TARGETS, score_intervals
from censnet.report.rows import TargetRows
from censnet.tasks.metrics import score
from censnet.tasks.targets import Target

AGE = Target(level="node", column="age", kind="regression")


def numbers(error: np.ndarray, part: int = 2) -> TargetRows:
    return TargetRows(AGE, np.full(len(error), part), np.zeros(len(error)), error)


def scores(rows: TargetRows) -> dict[str, float]:
    assert rows.outputs is not None
    return score([rows.target], rows.outputs, rows.labels[:, None])


@pytest.mark.slow
def test_an_interval_holds_the_true_score_as_often_as_it_says() -> None:
    rng, hits = np.random.default_rng(0), 0
    for seed in range(25):
        rows = numbers(rng.normal(size=200))
        low, high = score_intervals([rows], "test", scores(rows), seed=seed)["rmse"]
        hits += low <= 1 <= high
    assert hits >= 20


def test_an_interval_is_as_wide_as_the_formula_for_a_mean() -> None:
    error = np.abs(np.random.default_rng(1).normal(size=500))
    rows = numbers(error)
    low, high = score_intervals([rows], "test", scores(rows))["mae"]
    expected = 2 * 1.96 * error.std() / 500**0.5
    assert high - low == pytest.approx(expected, rel=0.2)
    assert low < error.mean() < high


def test_a_score_that_the_rows_do_not_give_has_none() -> None:
    rows = numbers(np.random.default_rng(1).normal(size=50))
    found = score_intervals([rows], "test", scores(rows) | {"rmse": 99.0, "coverage": 0.9})
    assert "rmse" not in found
    assert "coverage" not in found
    assert "mae" in found


def test_an_edge_that_is_there_twice_is_drawn_once() -> None:
    error = np.random.default_rng(2).normal(size=300)
    once, twice = numbers(error), numbers(np.concatenate([error, error]))
    units = np.tile(np.arange(300), 2)
    assert score_intervals([twice], "test", scores(twice), units) == score_intervals([once], "test", scores(once))


def test_there_are_none_of_one_row_of_none_and_of_very_many_targets() -> None:
    one = numbers(np.array([0.5]))
    assert score_intervals([one], "test", {"rmse": 0.5}) == {}
    assert score_intervals([], "test", {}) == {}
    assert score_intervals([one] * (MOST_TARGETS + 1), "test", {"rmse": 0.5}) == {}


def test_the_calibration_error_has_none_since_every_draw_makes_it_larger() -> None:
    rng = np.random.default_rng(3)
    sick = Target(level="node", column="sick", kind="binary", classes=["no", "yes"])
    p = rng.uniform(size=300)
    labels = (rng.random(300) < p).astype(float)
    rows = TargetRows(sick, np.full(300, 2), labels, (p > 0.5).astype(float), np.stack([1 - p, p], axis=1))
    assert rows.outputs is not None
    known = score([sick], rows.outputs, labels[:, None])
    found = score_intervals([rows], "test", known)
    assert {name for name in known if name not in found} == {"ece", "sick/ece"}
    assert all(found[name].low <= known[name] <= found[name].high for name in found)
