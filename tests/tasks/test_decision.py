"""The threshold of two classes is the one that costs or a recall imply on validation rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.strategies import floats, integers
from pydantic import ValidationError
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, precision_score, recall_score

from censnet.errors import ArgumentError
from censnet.tasks.decision import MAX_POINTS, Decision, Rule, ValidationCurve, score_decision


def draw(seed: int, rows: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities with ties, and whether rows are positive."""
    rng = np.random.default_rng(seed)
    p = rng.random(rows).round(2)
    return p, (rng.random(rows) < p**2) | (np.arange(rows) == 0)


@given(seed=integers(0, 2**16), fp=floats(0.1, 10), fn=floats(0.1, 100))
@settings(max_examples=50, deadline=None)
def test_no_other_threshold_costs_less(seed, fp, fn):
    p, positive = draw(seed)
    found = ValidationCurve.fit(p, positive).threshold(Rule(fp=fp, fn=fn))

    def cost(threshold: float) -> float:
        chosen = p >= threshold
        return float(fp * (chosen & ~positive).sum() + fn * (~chosen & positive).sum())

    assert cost(found) <= min(cost(threshold) for threshold in [*p, 0.0, 1.01]) + 1e-9


@given(seed=integers(0, 2**16), recall=floats(0.05, 1))
@settings(max_examples=50, deadline=None)
def test_the_highest_threshold_with_the_recall_is_taken(seed, recall):
    p, positive = draw(seed)
    found = ValidationCurve.fit(p, positive).threshold(Rule(recall=recall))
    assert positive[p >= found].sum() / positive.sum() >= recall - 1e-9
    higher = p[p > found].min()
    if (p > higher).any():
        assert positive[p > higher].sum() / positive.sum() < recall


@pytest.mark.parametrize("decision", [None, Decision(threshold=0.3, rule=Rule(fp=2, fn=7))])
def test_scores_of_decisions_are_those_of_scikit_learn(decision):
    p, positive = draw(3, 400)
    chosen = p >= (0.5 if decision is None else 0.3)
    found = dict(score_decision(p, positive, decision))
    table = confusion_matrix(positive, chosen)
    assert [[found[f"confusion_{i}_{j}"] for j in range(2)] for i in range(2)] == table.tolist()
    assert found["precision"] == pytest.approx(precision_score(positive, chosen))
    assert found["recall"] == pytest.approx(recall_score(positive, chosen))
    first = positive[np.argsort(-p, kind="stable")[:100]]
    assert found["precision@100"] == first.mean()
    assert found["recall@100"] == pytest.approx(first.sum() / positive.sum())
    assert "precision@1000" not in found
    if decision is None:
        assert not {"cost", "accuracy", "f1"} & set(found)  # those at 0.5 are with the other metrics
    else:
        assert found["cost"] == pytest.approx((2 * table[0, 1] + 7 * table[1, 0]) / 400)
        assert found["accuracy"] == pytest.approx(accuracy_score(positive, chosen))
        assert found["f1"] == pytest.approx(f1_score(positive, chosen))


def test_a_curve_of_very_many_rows_is_bounded_and_keeps_its_ends():
    p = np.random.default_rng(0).random(50_000)
    found = ValidationCurve.fit(p, p > 0.9)
    assert len(found.rows) == MAX_POINTS
    assert found.rows[-1] == 50_000
    assert found.threshold(Rule(recall=1.0)) == pytest.approx(0.9, abs=0.002)
    assert ValidationCurve.fit(p, p > 2) is None
    with pytest.raises(ValidationError, match="not in order"):
        ValidationCurve(probability=[0.1, 0.2], rows=[1, 2], hits=[0, 1])


def test_rules_that_are_none_are_refused():
    assert Rule.of(None, None) is None
    for cost, recall, message in [
        ({"fp": 1}, None, "cost is 'fp=1', expected fp and fn"),
        ({"fp": 1, "fn": 0}, None, "each more than 0"),
        ({"fp": 1, "fn": 2}, 0.5, "cost and recall are both given, expected one"),
        (None, 1.5, "recall is 1.5, expected more than 0, at most 1"),
    ]:
        with pytest.raises(ArgumentError, match=message):
            Rule.of(cost, recall)
