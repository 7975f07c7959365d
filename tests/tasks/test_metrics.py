"""Scores against scikit-learn on probabilities; what cannot be judged is left out."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn import metrics as sk

from censnet.tasks.metrics import METRICS, MONITORS, higher_is_better, score, score_links
from censnet.tasks.targets import Target

NONE = float("nan")
BINARY = Target(level="node", column="b", kind="binary", classes=["no", "yes"])
CLASSES = Target(level="node", column="c", kind="multiclass", classes=["x", "y", "z"])
NUMBER = Target(level="node", column="n", kind="regression", mean=30.0, scale=4.0)


def draw(seed: int = 0, rows: int = 200) -> tuple[Any, Any]:
    """Outputs and labels of a binary, a classes and a number column, with gaps."""
    rng = np.random.default_rng(seed)
    labels = np.stack([rng.integers(0, 2, rows), rng.integers(0, 3, rows), rng.normal(size=rows)], axis=1)
    outputs = rng.normal(size=(rows, 5)).round(1)  # rounded, so that some are equal
    outputs[:, 0] += labels[:, 0]
    outputs[:, 4] += labels[:, 2]
    labels[rng.random(labels.shape) < 0.2] = NONE
    return outputs.astype(np.float32), labels.astype(np.float32)


def slow_ece(p: Any, hit: Any) -> float:
    """Bin by bin."""
    found = 0.0
    for low in np.arange(15) / 15:
        inside = (p >= low) & (p < low + 1 / 15)
        found += abs((p[inside] - hit[inside]).sum())
    return float(found) / len(p)


@pytest.mark.parametrize("seed", range(5))
def test_every_score_is_that_of_scikit_learn(seed: int) -> None:
    outputs, labels = draw(seed)
    known = ~np.isnan(labels)
    y, p = labels[known[:, 0], 0], expit(outputs[known[:, 0], 0].astype(float))
    codes, each = labels[known[:, 1], 1], softmax(outputs[known[:, 1], 1:4].astype(float), axis=1)
    true, constant = labels[known[:, 2], 2] * 4.0 + 30, outputs[known[:, 2], 4] * 4.0 + 30
    expected = {
        "b/auc": sk.roc_auc_score(y, p),
        "b/ap": sk.average_precision_score(y, p),
        "b/accuracy": sk.accuracy_score(y, p > 0.5),
        "b/f1": sk.f1_score(y, p > 0.5),
        "b/log_loss": sk.log_loss(y, p),
        "b/brier": sk.brier_score_loss(y, p),
        "b/ece": slow_ece(p, y == 1),
        "c/accuracy": sk.accuracy_score(codes, each.argmax(1)),
        "c/f1": sk.f1_score(codes, each.argmax(1), average="macro"),
        "c/log_loss": sk.log_loss(codes, each),
        "c/brier": np.mean(((each - np.eye(3)[codes.astype(int)]) ** 2).sum(1)),
        "c/ece": slow_ece(each.max(1), each.argmax(1) == codes),
        "c/auc": sk.roc_auc_score(codes, each, multi_class="ovr", average="macro"),
        "n/rmse": np.sqrt(np.mean((true - constant) ** 2)),
        "n/mae": np.mean(np.abs(true - constant)),
        "n/r2": sk.r2_score(true, constant),
    }
    found = score([BINARY, CLASSES, NUMBER], outputs, labels)
    assert {name: value for name, value in found.items() if "/" in name} == pytest.approx(expected, rel=1e-5)
    assert found["auc"] == pytest.approx((expected["b/auc"] + expected["c/auc"]) / 2)
    assert found["ap"] == pytest.approx(expected["b/ap"])
    assert found["rmse"] == pytest.approx(expected["n/rmse"], rel=1e-5)
    assert all(type(value) is float for value in found.values())


def test_only_what_is_asked_for_is_computed() -> None:
    outputs, labels = draw()
    every = score([BINARY, CLASSES, NUMBER], outputs, labels)
    found = score([BINARY, CLASSES, NUMBER], outputs, labels, quick={"accuracy", "rmse"})
    assert set(found) == {"b/accuracy", "c/accuracy", "n/rmse", "accuracy", "rmse"}
    assert found == {name: every[name] for name in found}
    assert score([NUMBER], outputs[:, 4:], labels[:, 2:], quick={"auc"}) == {}


def test_where_one_class_is_missing_the_curve_is_left_out() -> None:
    ones = np.ones((4, 1))
    found = score([BINARY], np.array([[1.0], [2.0], [-1.0], [0.5]]), ones)
    assert set(found) == {
        f"{part}{name}" for part in ("b/", "") for name in ("accuracy", "f1", "log_loss", "brier", "ece")
    }
    assert found["accuracy"] == 0.75
    codes = np.array([[0.0], [1.0], [1.0], [0.0]])
    assert "auc" not in score([CLASSES], np.random.default_rng(0).normal(size=(4, 3)), codes)


def test_the_mean_is_over_the_columns_that_have_a_score() -> None:
    outputs = np.array([[1.0, 1.0, 1.0], [-1.0, -1.0, 2.0]])
    labels = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    targets = [BINARY.model_copy(update={"column": name}) for name in "uvw"]
    found = score(targets, outputs, labels, quick={"auc"})
    assert found == {"u/auc": 1.0, "v/auc": 0.0, "auc": 0.5}


def test_columns_without_labels_and_tables_without_rows_have_no_score() -> None:
    assert score([BINARY], np.zeros((3, 1)), np.full((3, 1), NONE)) == {}
    assert score([BINARY, NUMBER], np.zeros((0, 2)), np.zeros((0, 2))) == {}
    found = score([BINARY, NUMBER], np.zeros((3, 2)), np.array([[NONE, 1.0]] * 3))
    assert set(found) == {"n/rmse", "n/mae", "rmse", "mae"}  # r2 of equal numbers is not defined either


def test_numbers_are_judged_in_the_users_units() -> None:
    far = NUMBER.model_copy(update={"mean": 1e6, "scale": 1000.0})
    found = score([far], np.array([[0.5], [0.0]]), np.array([[0.0], [0.0]]), quick={"rmse", "mae"})
    assert found["rmse"] == pytest.approx(1000 * (0.25 / 2) ** 0.5)
    assert found["mae"] == pytest.approx(250)


def test_two_classes_by_softmax_are_as_one_sigmoid() -> None:
    rng = np.random.default_rng(0)
    outputs, labels = rng.normal(size=(100, 2)), rng.integers(0, 2, (100, 1)).astype(float)
    pair = Target(level="node", column="b", kind="multiclass", classes=["no", "yes"])
    found = score([pair], outputs, labels, quick={"auc", "accuracy", "log_loss"})
    expected = score([BINARY], outputs[:, [1]] - outputs[:, [0]], labels, quick={"auc", "accuracy", "log_loss"})
    assert found == pytest.approx(expected)


def test_sure_and_wrong_answers_cost_what_they_should() -> None:
    found = score([BINARY], np.array([[1000.0], [-1000.0]]), np.array([[0.0], [0.0]]), quick={"log_loss"})
    assert found["log_loss"] == 500


@pytest.mark.parametrize("bad", [NONE, np.inf, -np.inf])
def test_outputs_that_are_not_finite_are_named(bad: float) -> None:
    outputs = np.zeros((3, 1), np.float32)
    outputs[2] = bad
    with pytest.raises(ValueError, match="the outputs for b are not finite in row 2, expected numbers: training dive"):
        score([BINARY], outputs, np.ones((3, 1)))
    assert score([BINARY], outputs, np.array([[1.0], [0.0], [NONE]]), quick={"accuracy"})["accuracy"] == 0.5


def test_large_outputs_are_finite() -> None:
    huge = np.full((4, 1), np.finfo(np.float64).max)
    assert score([BINARY], huge, np.ones((4, 1)), quick={"accuracy"})["accuracy"] == 1


@pytest.mark.parametrize(
    ("outputs", "labels", "message"),
    [
        (np.zeros((3, 2)), np.zeros((3, 1)), r"outputs has shape \(3, 2\), expected \(n, 1\)"),
        (np.zeros(3), np.zeros((3, 1)), r"outputs has shape \(3,\), expected \(n, 1\)"),
        (np.zeros((3, 1)), np.zeros((2, 1)), r"labels has shape \(2, 1\), expected \(3, 1\)"),
    ],
)
def test_shapes_that_do_not_fit_are_named(outputs: Any, labels: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        score([BINARY], outputs, labels)


# -- links -------------------------------------------------------------------------------------------------------------


def test_links_are_scored_as_scikit_learn_does() -> None:
    rng = np.random.default_rng(0)
    linked, apart = rng.normal(1, 1, 50).round(1), rng.normal(0, 1, 70).round(1)
    y, x = np.repeat([1, 0], [50, 70]), np.concatenate([linked, apart])
    found = score_links(linked, apart)
    curve = {"auc": sk.roc_auc_score(y, x), "ap": sk.average_precision_score(y, x)}
    assert found == pytest.approx(curve | {"brier": sk.brier_score_loss(y, expit(x)), "ece": slow_ece(expit(x), y)})


def test_links_without_a_pair_of_each_sort_have_no_score() -> None:
    assert score_links(np.zeros(0), np.ones(3)) == score_links(np.ones(3), np.zeros(0)) == {}


# -- which way is up ---------------------------------------------------------------------------------------------------


def test_every_monitor_is_a_metric_of_its_kind_and_knows_which_way_is_up() -> None:
    assert all(MONITORS[kind] in METRICS[kind] for kind in METRICS)
    up = {name for names in METRICS.values() for name in names if higher_is_better(name)}
    assert up == {"auc", "ap", "accuracy", "f1", "r2"}
    assert not higher_is_better("loss")
    assert higher_is_better("a/b/auc")
    assert not higher_is_better("a/mae")


def test_a_metric_that_is_none_is_named() -> None:
    with pytest.raises(
        ValueError, match="metric is 'aucc', expected one of accuracy, ap, auc, brier, cost, coverage, ece, f1"
    ):
        higher_is_better("aucc")


# -- speed -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [BINARY, CLASSES], ids=["binary", "classes"])
def test_a_million_rows_are_judged_about_as_fast_as_their_largest_output_is_found(target: Target) -> None:
    rng = np.random.default_rng(0)
    outputs = rng.normal(size=(10**6, target.width)).astype(np.float32)
    labels = rng.integers(0, 2, (10**6, 1)).astype(np.float32)

    def best(task: Any) -> float:
        times = []
        for _ in range(5):
            start = time.perf_counter()
            task()
            times.append(time.perf_counter() - start)
        return min(times)

    plain = best(lambda: np.mean(outputs.argmax(1) == labels[:, 0]))
    assert best(lambda: score([target], outputs, labels, quick={"accuracy"})) < 5 * plain


def test_censored_labels_are_scored_apart_and_exact_ones_as_before() -> None:
    age = Target(level="node", column="age", kind="regression", mean=40.0, scale=10.0)
    outputs = np.array([[0.0], [1.0], [2.0], [3.0], [0.5]])
    labels = np.array([[0.5], [1.0], [1.0], [4.0], [np.nan]])
    censoring = np.array([[0], [0], [1], [1], [0]], dtype=np.int8)  # answers 60 and 70 for >50 and >80
    found = score([age], outputs, labels, censoring=censoring)
    exact = score([age], outputs[:2], labels[:2])
    assert {name: found[name] for name in exact} == exact
    assert found["age/censored_rows"] == 2
    assert found["age/censored_satisfied"] == 0.5
    assert found["age/censored_violation"] == pytest.approx(5.0)  # 10 years in one of two
    below = score([age], outputs, labels, censoring=-censoring)
    assert below["age/censored_violation"] == pytest.approx(5.0)  # 60 for <50
    assert set(score([age], outputs, labels, quick={"rmse"}, censoring=censoring)) == {"age/rmse", "rmse"}


def test_censored_rows_of_several_columns_are_added_and_their_shares_averaged() -> None:
    targets = [Target(level="node", column=name, kind="regression") for name in "ab"]
    censoring = np.array([[1, 0], [1, -1]], dtype=np.int8)
    found = score(targets, np.zeros((2, 2)), np.array([[1.0, 3.0], [-1.0, 2.0]]), censoring=censoring)
    assert (found["censored_rows"], found["censored_satisfied"]) == (3, 0.75)
    assert higher_is_better("a/censored_satisfied")
    assert not higher_is_better("censored_violation")
