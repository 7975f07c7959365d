"""Calibrated probabilities are those of rows that the calibration did not see, and keep the order of predictions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis.strategies import integers
from pydantic import ValidationError
from scipy.special import expit, softmax
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import roc_auc_score

from censnet.tasks.calibration import MAX_KNOTS, MIN_ROWS, ClassCalibration, row_log_loss
from censnet.tasks.metrics import expected_calibration_error


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
