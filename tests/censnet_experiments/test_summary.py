"""Summaries, verdicts and paired tests of synthetic records."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from record_samples import make_records
from scipy import stats

from censnet_experiments.cells import find_cell
from censnet_experiments.summary import Comparison, Summary, pair, summarize


def test_a_summary_has_the_mean_the_sample_deviation_and_its_interval() -> None:
    found = summarize(make_records("table1", "cora-3", "gcn", [{"test": 0.7}, {"test": 0.8}, {"test": 0.75}]))
    summary = found["table1", "cora-3", "gcn"]["test"]
    assert (summary.count, summary.mean, summary.spread) == pytest.approx((3, 75.0, 5.0))
    low, high = stats.t.interval(0.95, 2, loc=75, scale=5 / 3**0.5)
    assert (75 - summary.half_width, 75 + summary.half_width) == pytest.approx((low, high))


def test_a_seed_that_was_recorded_twice_counts_once() -> None:
    records = make_records("table1", "cora-3", "gcn", [{"test": 0.7}, {"test": 0.8}])
    found = summarize([*records, replace(records[0], metrics={"test": 0.1})])
    assert found["table1", "cora-3", "gcn"]["test"].mean == pytest.approx(75)


@pytest.mark.parametrize(
    ("values", "published", "lower", "verdict", "reached"),
    [
        ((80.0, 80.2, 79.8), (74.0, 2.8), False, "above", True),
        ((74.0, 74.5, 73.6), (74.0, 2.8), False, "same", True),
        ((72.0, 72.1, 71.9), (74.0, 2.8), False, "near", False),
        ((70.0, 70.1, 69.9), (74.0, 2.8), False, "below", False),
        ((73.96, 73.96, 73.96), (74.0, 0.0), False, "same", True),  # equal as printed
        ((0.80, 0.81, 0.79), (0.94, 0.01), True, "above", True),
        ((1.10, 1.11, 1.09), (0.94, 0.01), True, "below", False),
    ],
)
def test_verdicts(
    values: tuple[float, ...], published: tuple[float, float], lower: bool, verdict: str, reached: bool
) -> None:
    cell = find_cell("table2", "lipophilicity-60") if lower else find_cell("table1", "cora-3")
    found = Comparison(Summary(values), published, cell, digits=2 if lower else 1)
    assert (found.verdict, found.reached) == (verdict, reached)


def test_the_share_of_seeds_that_reach_the_published_mean() -> None:
    found = Comparison(Summary((79.5, 70.0, 71.0, 79.36)), (79.4, 1.0), find_cell("table1", "cora-3"), 1)
    assert found.share_of_seeds == 0.5


def test_paired_tests_are_scipys_on_common_splits() -> None:
    draw = np.random.default_rng(0)
    one = draw.normal(0.75, 0.02, 12)
    other = one - draw.normal(0.02, 0.01, 12)
    first = make_records("table1", "cora-3", "censnet", [{"test": value} for value in one])
    second = make_records("table1", "cora-3", "gcn", [{"test": value} for value in other])
    found = pair(first, list(reversed(second[:10])), "test")
    assert found is not None
    assert found.count == 10
    assert found.won == sum(one[:10] > other[:10])
    assert found.t == pytest.approx(stats.ttest_rel(one[:10], other[:10]).pvalue)
    assert found.wilcoxon == pytest.approx(stats.wilcoxon(one[:10], other[:10]).pvalue)
    interval = stats.ttest_rel(one[:10], other[:10]).confidence_interval()
    assert (found.low, found.high) == pytest.approx((100 * interval.low, 100 * interval.high))
    assert pair(first, second[:1], "test") is None
    assert found.is_significant
    steady = make_records(
        "table1", "cora-3", "gcn", [{"test": value - 0.02 - 0.001 * n} for n, value in enumerate(one)]
    )
    few = pair(first, steady[:5], "test")
    assert few is not None
    assert few.wilcoxon > 0.05  # the least that five splits can have
    assert few.is_significant


def test_less_is_better_where_it_is() -> None:
    rows = [{"test": 0.9}, {"test": 0.8}, {"test": 0.85}]
    worse = [{"test": 1.0}, {"test": 0.95}, {"test": 0.99}]
    found = pair(
        make_records("table2", "lipophilicity-80", "censnet", rows),
        make_records("table2", "lipophilicity-80", "gcn", worse),
        "test",
    )
    assert found is not None
    assert found.difference > 0
    assert found.won == 3
