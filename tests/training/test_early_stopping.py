"""Early stopping: which epoch is the best, and when there is no use in waiting for another."""

from __future__ import annotations

import pytest

from censnet.training.early_stopping import EarlyStopping, ValidationScore


@pytest.mark.parametrize(
    ("monitor", "score", "best", "improves"),
    [
        ("auc", (0.8, 1.0), None, True),
        ("auc", (0.8, 1.0), (0.7, 0.1), True),
        ("auc", (0.7, 0.1), (0.8, 1.0), False),
        ("rmse", (0.7, 1.0), (0.8, 0.1), True),
        ("loss", (0.8, 0.8), (0.7, 0.7), False),
        ("auc", (1.0, 0.2), (1.0, 0.3), True),
        ("auc", (1.0, 0.3), (1.0, 0.3), False),
    ],
)
def test_an_epoch_improves_by_its_metric_and_between_equals_by_its_loss(monitor, score, best, improves):
    old = None if best is None else ValidationScore(*best)
    assert EarlyStopping(monitor, 1).improves(ValidationScore(*score), old) == improves


def test_patience_counts_epochs_since_the_best_at_the_last_validation():
    every = EarlyStopping("auc", patience=3)
    assert [every.is_over(epoch, 2) for epoch in range(2, 7)] == [False, False, False, True, True]
    rare = EarlyStopping("auc", patience=3, validate_every=5)
    assert [epoch for epoch in range(5, 16) if not rare.is_over(epoch, 5)] == [5, 6, 7, 8, 9]
    assert not every.is_over(2, -1)
    assert every.is_over(3, -1), "without any best epoch, patience counts from the start"


def test_without_patience_a_training_never_stops_early():
    assert not EarlyStopping("auc", None).is_over(10**6, 1)
