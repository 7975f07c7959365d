"""Calibrated probabilities are those of rows that the calibration did not see, and keep the order of predictions.

Intervals and sets hold the label of a fresh row as often as was asked for.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis.strategies import integers
from pydantic import ValidationError
from scipy.special import expit, softmax
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import roc_auc_score

from censnet.levels import Level
from censnet.tasks.calibration import MAX_KNOTS, MAX_SCORES, MIN_ROWS, ClassCalibration, Conformal, row_log_loss
from censnet.tasks.metrics import expected_calibration_error
from censnet.tasks.targets import Target


def draw(rows: int, classes: int, seed: int = 0, sharpness: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Logits, and labels drawn with the probabilities of logits that are `sharpness` times smaller."""
    rng = np.random.default_rng(seed)
    x = rng.normal(scale=2, size=(rows, classes))
    if classes == 1:
        return x * sharpness, (rng.random(rows) < expit(x[:, 0])).astype(float)
    p = softmax(x, axis=1).cumsum(1)
    return x * sharpness, (rng.random((rows, 1)) > p).sum(1).clip(max=classes - 1).astype(float)


@pytest.mark.parametrize("classes", [1, 4])
def test_the_temperature_of_overconfident_logits_is_found(classes):
    found = ClassCalibration.fit(*draw(4000, classes, sharpness=3.0))
    assert found.method == "temperature"
    assert found.temperature == pytest.approx(3.0, rel=0.1)
    fresh, labels = draw(4000, classes, seed=1, sharpness=3.0)
    x = found(torch.from_numpy(fresh)).numpy()
    assert row_log_loss(x, labels.astype(int)).mean() < row_log_loss(fresh, labels.astype(int)).mean()


@pytest.mark.parametrize("classes", [1, 4])
def test_logits_that_are_calibrated_stay_nearly_as_they_are(classes):
    logits, labels = draw(4000, classes)
    x = ClassCalibration.fit(logits, labels)(torch.from_numpy(logits)).numpy()
    assert np.abs(x / logits - 1).max() < 0.1


def test_what_no_temperature_repairs_is_repaired_by_isotonic_scaling():
    logits, labels = draw(4000, 1)
    shifted = np.where(logits > 0, logits / 4, logits) + 2  # a shift, and one side alone too flat
    found = ClassCalibration.fit(shifted, labels)
    assert found.method == "isotonic"
    fresh, truth = draw(4000, 1, seed=1)
    fresh = np.where(fresh > 0, fresh / 4, fresh) + 2
    x = found(torch.from_numpy(fresh)).numpy()
    assert expected_calibration_error(expit(x[:, 0]), truth == 1) < 0.03
    assert expected_calibration_error(expit(fresh[:, 0]), truth == 1) > 0.1
    assert roc_auc_score(truth, x) == pytest.approx(roc_auc_score(truth, fresh), abs=1e-12)


def surest(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Logits of four classes, whose likeliest one is right with 0.35 to 0.75, and else the second, and labels."""
    rng = np.random.default_rng(seed)
    x = rng.normal(scale=3, size=(rows, 4))
    right = rng.random(rows) < 0.1 + 0.65 * softmax(x, axis=1).max(1)
    return x, np.where(right, x.argmax(1), x.argsort(1)[:, 2]).astype(float)


def test_the_probability_of_the_likeliest_of_many_classes_is_its_share_of_right_predictions():
    x, y = surest(3_000, 0)
    found = ClassCalibration.fit(x, y)
    assert found.method == "isotonic-top"
    assert found.log_loss["isotonic-top"] < min(found.log_loss[name] for name in ("none", "temperature", "isotonic"))
    fresh, labels = surest(40_000, 1)
    p = softmax(found(torch.from_numpy(fresh)).numpy(), axis=1)
    assert (p.argmax(1) == fresh.argmax(1)).all()
    sure = p.max(1)
    for low, high in ((0, 0.55), (0.55, 0.7), (0.7, 1)):
        inside = (sure >= low) & (sure < high)
        assert abs(sure[inside].mean() - (fresh.argmax(1) == labels)[inside].mean()) < 0.05
    rest = np.sort(p, axis=1)[:, :-1]
    plain = np.sort(softmax(found.model_copy(update={"method": "isotonic"})(torch.from_numpy(fresh)).numpy(), 1), 1)[
        :, :-1
    ]
    ratio = rest[:, 2] / rest[:, 1]
    ahead = found.top[0][1] > 0  # nothing was raised to stay the likeliest
    np.testing.assert_allclose(ratio, plain[:, 2] / plain[:, 1], rtol=1e-6 if ahead else 1e-4)


def test_isotonic_knots_are_the_means_of_the_level_sets_of_scikit_learn():
    logits, labels = draw(300, 1)
    fitted = IsotonicRegression().fit_transform(logits[:, 0], labels)
    found = ClassCalibration.fit(np.where(logits > 0, logits / 9, logits) + 3, labels)
    assert found.method == "isotonic"
    levels = np.unique(fitted[(fitted > 0) & (fitted < 1)])
    assert set(np.round(levels, 9)) <= set(np.round(expit([y for _, y in found.knots]), 9))


@given(seed=integers(0, 2**16), classes=integers(2, 5))
@settings(max_examples=25, deadline=None)
def test_the_likeliest_class_and_the_order_of_rows_stay(seed, classes):
    width = 1 if classes == 2 else classes
    logits, labels = draw(400, width, seed, sharpness=0.3)
    found = ClassCalibration.fit(logits + np.linspace(0, 1, width), labels)
    fresh = np.random.default_rng(seed).normal(scale=8, size=(100, width))
    x = found(torch.from_numpy(fresh)).numpy()
    assert np.isfinite(x).all()
    assert (x.argmax(1) == fresh.argmax(1)).all()
    if width == 1:
        assert (np.diff(x[fresh[:, 0].argsort(), 0]) > 0).all()


@pytest.mark.parametrize(
    ("rows", "labels", "reason"),
    [
        (MIN_ROWS - 1, [0.0, 1.0], "49 validation rows with a label, expected at least 50"),
        (1, [0.0], "1 validation row with a label"),
        (0, [0.0], "0 validation rows with a label"),
        (60, [0.0] * 56 + [1.0] * 4, "4 of the rarer class with a label, expected at least 5"),
        (60, [0.0], "0 of the rarer class"),
    ],
)
def test_too_few_rows_calibrate_nothing_and_it_says_so(rows, labels, reason):
    y = np.resize(np.array(labels), rows)
    found = ClassCalibration.fit(np.linspace(-3, 3, rows)[:, None], y)
    assert found.method == "none"
    assert reason in str(found)
    x = torch.randn(5, 1)
    assert found(x) is x


def test_missing_labels_are_left_out():
    logits, labels = draw(1000, 1, sharpness=3.0)
    gaps = labels.copy()
    gaps[::2] = np.nan
    assert ClassCalibration.fit(logits, gaps) == ClassCalibration.fit(logits[1::2], labels[1::2]).model_copy(
        update={"temperature": ClassCalibration.fit(logits, gaps).temperature,
                "log_loss": ClassCalibration.fit(logits, gaps).log_loss}
    )  # fmt: skip


def test_knots_are_bounded_and_stored_ones_have_to_increase():
    logits, labels = draw(20_000, 1)
    found = ClassCalibration.fit(np.exp(logits / 3), labels)
    assert found.method == "isotonic"
    assert 2 <= len(found.knots) <= MAX_KNOTS
    assert ClassCalibration.model_validate_json(found.model_dump_json()) == found
    for knots in ([(0.0, 1.0), (1.0, 1.0)], [(1.0, 0.0), (0.0, 1.0)], []):
        with pytest.raises(ValidationError, match="knots"):
            ClassCalibration(method="isotonic", knots=knots)
    with pytest.raises(ValidationError, match="top is empty"):
        ClassCalibration(method="isotonic-top", knots=[(0.0, 1.0)])


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
