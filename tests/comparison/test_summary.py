from __future__ import annotations

import numpy as np
import pytest

from censnet.comparison.methods import NO_FEATURES, NO_STREAM, OURS
from censnet.comparison.records import Compared, Record, Start, Stored
from censnet.comparison.summary import comparison_table, describe_comparison, gain

START = Start(data="", target_specs=["edge:fraud"], preset="strong", changes={}, overrides={}, strict=False)


def stored(values: dict[str, list[float]], metric: str = "auc", kind: str = "binary") -> Stored:
    """Test scores of each method, seed by seed; validation scores are the same."""
    target = Compared.of("edge", "fraud", kind, metric)
    records = [
        Record(method=method, seed=seed, seconds=2.0 + seed,
               scores={part: {"edge": {f"fraud/{metric}": value}} for part in ("validation", "test")})
        for method, found in values.items()
        for seed, value in enumerate(found)
    ]  # fmt: skip
    return Stored(start=START, targets=[target], records=records)


def test_intervals_are_those_of_student():
    table = comparison_table(stored({OURS: [0.8, 0.9, 1.0], "trees-own": [0.7, 0.7, 0.7]})).set_index("method")
    ours = table.loc["CensNet"][table.loc["CensNet"]["metric"] == "auc"].iloc[0]
    assert ours["mean"] == pytest.approx(0.9)
    assert ours["high"] - ours["mean"] == pytest.approx(4.302652729911275 * 0.1 / np.sqrt(3))
    assert ours["seeds"] == 3
    assert ours["seconds"] == 3


def test_the_gain_is_paired_and_positive_where_less_is_better():
    found = stored({OURS: [0.5, 0.7], NO_STREAM: [0.6, 0.8]}, "rmse", "regression")
    value = gain(found, found.targets, NO_STREAM)
    assert (value.mean, value.count) == (pytest.approx(0.1), 2)
    assert value.low == pytest.approx(value.high)  # the same for both seeds, however the scores differ


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (
            {OURS: [0.8, 0.81, 0.8], "trees-neighbors": [0.9, 0.92, 0.9], NO_STREAM: [0.7, 0.72, 0.71]},
            ["updating edges improves auc by", "trees on neighbors are better than CensNet by"],
        ),
        (
            {OURS: [0.9, 0.92, 0.9], "trees-neighbors": [0.8, 0.81, 0.8], NO_STREAM: [0.95, 0.97, 0.96]},
            ["updating edges worsens auc by", "CensNet is better than trees on neighbors by"],
        ),
        (
            {OURS: [0.8, 0.7, 0.9], "trees-own": [0.9, 0.8, 0.7], NO_FEATURES: [0.7, 0.8, 0.85]},
            [
                "the columns of edges make no difference that shows",
                "trees on own columns cannot be told apart",
            ],
        ),
        ({OURS: [0.8], "trees-own": [0.7]}, ["On one seed, which has no interval", "CensNet is better than trees"]),
        ({OURS: [0.8]}, ["no trees could be fitted"]),
    ],
)
def test_the_sentence_claims_what_the_seeds_show(values, expected):
    sentence = describe_comparison(stored(values))
    assert all(words in sentence for words in expected), sentence
    assert sentence.count(". ") == 0
    assert "nan" not in sentence


def test_a_seed_that_is_not_finished_is_no_part_of_the_sentence():
    sentence = describe_comparison(stored({"trees-own": [0.7, 0.9], OURS: [0.8]}))
    assert sentence.startswith("On one seed, which has no interval")
    assert "CensNet is better than trees on own columns by 0.1 " in sentence


def test_the_best_other_method_is_chosen_on_validation_rows():
    found = stored({OURS: [0.8, 0.8], "trees-own": [0.7, 0.7], "trees-neighbors": [0.9, 0.9]})
    swapped = [
        one.model_copy(update={"scores": one.scores | {"validation": {"edge": {"fraud/auc": 0.95}}}})
        if one.method == "trees-own" else one
        for one in found.records
    ]  # fmt: skip
    assert "than trees on own columns" in describe_comparison(found.model_copy(update={"records": swapped}))
