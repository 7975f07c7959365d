from __future__ import annotations

import numpy as np
import pytest

from censnet.errors import ArgumentError
from censnet_experiments.edge_scores import Predicted, score, score_parts


def test_the_rarer_class_is_the_one_that_is_judged():
    labels, values = np.array([1, 1, 1, 0]), np.array([0.9, 0.8, 0.2, 0.3])
    assert score("f1", Predicted(labels, values, rare=0)) == pytest.approx(2 / 3)  # two called 0, one of them is
    assert score("ap", Predicted(labels, values, rare=0)) == pytest.approx(1 / 2)
    assert score("auc", Predicted(labels, values, rare=0)) == pytest.approx(score("auc", Predicted(labels, values)))
    assert score("accuracy", Predicted(labels, values)) == 0.75
    assert score("accuracy", Predicted(np.array([0, 2]), np.eye(3)[[0, 1]])) == 0.5


def test_errors_of_numbers():
    found = Predicted(np.array([1.0, 3.0]), np.array([2.0, 3.0]))
    assert (score("mae", found), score("rmse", found)) == (0.5, pytest.approx(0.5**0.5))
    assert score("nrmse", found) == pytest.approx(0.5**0.5)
    assert score("r2", found) == pytest.approx(0.5)
    with pytest.raises(ArgumentError, match="there is no metric 'mape'"):
        score("mape", found)


def test_metrics_of_columns_are_those_of_test_and_validation_rows():
    found = {
        "P": {
            part: Predicted(np.array([1.0, 3.0]), np.array([1.0, by])) for part, by in (("test", 2), ("validation", 3))
        }
    }
    assert score_parts(("mae_P", "mae_Va"), found) == {"mae_P": 0.5, "validation_mae_P": 0.0}
