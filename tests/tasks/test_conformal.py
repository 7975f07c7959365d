"""Intervals and sets hold the label of a fresh row as often as was asked for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.special import softmax

from censnet.levels import Level
from censnet.tasks.conformal import MAX_SCORES, Conformal
from censnet.tasks.targets import Target

AGE = Target(level=Level.NODE, column="age", kind="regression", mean=40.0, scale=10.0)
SICK = Target(level=Level.NODE, column="sick", kind="binary", classes=["no", "yes"])
COLOR = Target(level=Level.NODE, column="color", kind="multiclass", classes=["red", "green", "blue"])


def numbers(rng, rows, members=1):
    """Predictions of the mean, whose errors grow with the standard deviation of the members."""
    spread = rng.uniform(0.5, 5, rows)
    y = 40 + rng.normal(size=rows) * spread
    found = {"mean": np.full(rows, 40.0)}
    return (found if members == 1 else {**found, "std": spread}), ((y - 40) / 10).astype(np.float32), y


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("coverage", [0.5, 0.9])
def test_intervals_of_numbers_cover_fresh_rows(members, coverage):
    rng, inside, widths = np.random.default_rng(0), [], []
    for _ in range(100):
        summary, labels, _ = numbers(rng, 200, members)
        found = Conformal.fit(AGE, summary, labels, np.ones(200, bool))
        fresh, _, y = numbers(rng, 200, members)
        half = found.half_widths(fresh, coverage)
        inside.append((np.abs(y - fresh["mean"]) <= half).mean())
        widths.append(np.corrcoef(half, fresh["std"])[0, 1] if members > 1 else half.std())
    assert coverage - 0.01 < np.mean(inside) < coverage + 0.02
    assert np.mean(widths) == pytest.approx(1.0 if members > 1 else 0.0, abs=1e-6)  # as wide as members differ


def classes(rng, rows, width):
    x = rng.normal(scale=1.5, size=(rows, width)) - np.linspace(0, 2, width)
    p = softmax(x, axis=1)
    y = (rng.random((rows, 1)) > p.cumsum(1)).sum(1).clip(max=width - 1)
    return {"mean": softmax(x * 2.5, axis=1)}, y.astype(np.float32)  # overconfident


@pytest.mark.parametrize(("target", "width"), [(SICK, 2), (COLOR, 3)])
def test_sets_of_classes_cover_fresh_rows_and_of_two_classes_each(target, width):
    rng, inside, of_last = np.random.default_rng(0), [], []
    for _ in range(100):
        summary, labels = classes(rng, 300, width)
        found = Conformal.fit(target, summary, labels, np.ones(300, bool))
        fresh, y = classes(rng, 300, width)
        covered = found.sets(fresh, 0.9)[np.arange(300), y.astype(int)]
        inside.append(covered.mean())
        of_last.append(covered[y == width - 1].mean())
    assert 0.89 < np.mean(inside) < 0.93
    assert (0.89 < np.mean(of_last) < 0.93) == (target is SICK)


def test_a_set_is_never_empty():
    found = Conformal(scores=[[0.01] * 20], rows=[20])
    p = np.array([[0.4, 0.3, 0.3], [0.2, 0.3, 0.5]])
    assert found.sets({"mean": p}, 0.9).tolist() == [[True, False, False], [False, False, True]]


@pytest.mark.parametrize("rows", [1, 8, 9, 10, 57, 1999])
@pytest.mark.parametrize("coverage", [0.1, 0.5, 0.9, 0.99])
def test_the_quantile_is_the_printed_rank(rows, coverage):
    values = np.sort(np.random.default_rng(rows).random(rows))
    rank = math.ceil((rows + 1) * coverage - 1e-9)
    expected = values[rank - 1] if rank <= rows else math.inf
    assert Conformal(scores=[values.tolist()], rows=[rows]).quantiles(coverage) == [expected]


def test_of_very_many_scores_those_kept_promise_no_less():
    labels = np.random.default_rng(0).normal(size=12_345).astype(np.float32)
    found = Conformal.fit(AGE, {"mean": np.full(len(labels), 40.0)}, labels, np.ones(len(labels), bool))
    assert len(found.scores[0]) == MAX_SCORES
    every = np.sort(np.abs(labels.astype(float) * 10 + 40 - 40))
    for coverage in (0.05, 0.5, 0.9, 0.99):
        exact = every[math.ceil((len(every) + 1) * coverage) - 1]
        (kept,) = found.quantiles(coverage)
        assert exact * (1 - 1e-8) <= kept <= exact * 1.02 + 0.02


def test_a_rare_class_with_too_few_rows_is_in_every_set():
    p = np.array([[0.99, 0.01]] * 50 + [[0.5, 0.5]] * 5)
    found = Conformal.fit(SICK, {"mean": p}, np.array([0.0] * 50 + [1.0] * 5), np.ones(55, bool))
    assert found.rows == [50, 5]
    assert found.sets({"mean": p}, 0.9)[:, 1].all()
    assert not found.sets({"mean": p}, 0.8)[:50, 1].any()


def test_censored_labels_and_missing_ones_have_no_score():
    summary, labels, _ = numbers(np.random.default_rng(0), 30)
    exact = np.arange(30) < 12
    assert Conformal.fit(AGE, summary, np.where(exact, labels, np.nan), exact).rows == [12]
    assert Conformal.fit(AGE, summary, labels, np.zeros(30, bool)) is None


def test_stored_scores_have_to_be_in_order():
    for broken in ({"scores": [[2.0, 1.0]], "rows": [2]}, {"scores": [[1.0]], "rows": [3]}, {"scores": [], "rows": []}):
        with pytest.raises(ValidationError, match="scores"):
            Conformal.model_validate(broken)
