"""Measures on the device are scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis.strategies import integers
from sklearn.metrics import roc_auc_score

from censnet_experiments.measures import area_under_curve, root_mean_square


@given(seed=integers(0, 2**16), levels=integers(2, 20))
def test_area_is_scikit_learns_with_ties_and_missing_labels(seed: int, levels: int) -> None:
    draw = np.random.default_rng(seed)
    scores = draw.integers(levels, size=(2, 40, 3)).astype(np.float32)
    labels = draw.choice([0.0, 1.0, np.nan], size=(40, 3))
    chosen = draw.random((2, 40)) < 0.6
    expected = []
    for member in range(2):
        tasks = []
        for task in range(3):
            rows = chosen[member] & ~np.isnan(labels[:, task])
            if len(np.unique(labels[rows, task])) == 2:
                tasks.append(roc_auc_score(labels[rows, task], scores[member, rows, task]))
        expected.append(np.mean(tasks) if tasks else np.nan)
    found = area_under_curve(torch.tensor(scores), torch.tensor(labels), torch.tensor(chosen))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_area_without_both_classes_is_not_a_number() -> None:
    scores = torch.rand(1, 4, 1)
    found = area_under_curve(scores, torch.ones(4, 1), torch.ones(1, 4, dtype=torch.bool))
    assert bool(found.isnan())


def test_root_mean_square_by_hand() -> None:
    found = root_mean_square(
        torch.tensor([[1.0, -1.0, 5.0], [2.0, 0.0, 0.0]]), torch.tensor([[1, 1, 0], [1, 1, 0]]) > 0
    )
    assert found.tolist() == pytest.approx([1.0, 2**0.5])
