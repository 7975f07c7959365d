"""Statistics of records: mean and spread over seeds, comparison with published scores, paired tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats

from censnet_experiments.cells import Cell, find_cell
from censnet_experiments.records import Record

Verdict = Literal["above", "same", "near", "below"]
Key = tuple[str, str, str]  # table, cell, method

CONFIDENCE = 0.95
SIGNIFICANT = 0.05
SIGNIFICANCE = f"Wilcoxon's signed-rank test, or Student's t-test for five splits or fewer, has p < {SIGNIFICANT}"


@dataclass(frozen=True)
class Summary:
    """One metric of one cell and method, in the table's unit: its mean and standard deviation over seeds."""

    values: tuple[float, ...]

    @property
    def count(self) -> int:
        return len(self.values)

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))

    @property
    def spread(self) -> float:
        """The sample standard deviation; 0 for a single seed."""
        return float(np.std(self.values, ddof=1)) if self.count > 1 else 0.0

    @property
    def half_width(self) -> float:
        """Half of the confidence interval of the mean, by Student's t; infinite for a single seed."""
        if self.count < 2:
            return float("inf")
        return float(stats.t.ppf((1 + CONFIDENCE) / 2, self.count - 1) * self.spread / self.count**0.5)


@dataclass(frozen=True)
class Comparison:
    """Our score compared with the published one. `gap` is positive where ours is better.

    Args:
        ours: over seeds.
        published: mean and spread, as printed.
        cell: gives the direction of the metric.
        digits: decimals of the printed mean.
    """

    ours: Summary
    published: tuple[float, float]
    cell: Cell
    digits: int

    @property
    def gap(self) -> float:
        return (self.ours.mean - self.published[0]) * (-1 if self.cell.lower else 1)

    @property
    def reached(self) -> bool:
        """Whether our mean, rounded as the published one is, is as good."""
        return bool(self.gap >= -0.5 * 10**-self.digits)

    @property
    def within_spread(self) -> bool:
        """Whether our mean is at most one published spread worse."""
        return self.reached or self.gap >= -self.published[1]

    @property
    def share_of_seeds(self) -> float:
        """The share of our seeds that are as good as the published mean."""
        sign = -1 if self.cell.lower else 1
        good = [sign * (value - self.published[0]) >= -0.5 * 10**-self.digits for value in self.ours.values]
        return float(np.mean(good))

    @property
    def verdict(self) -> Verdict:
        """above or same, by the confidence interval of our mean; near, within a published spread; else below."""
        margin = max(self.ours.half_width if self.ours.count > 1 else 0.0, 0.5 * 10**-self.digits)
        if self.gap > margin:
            return "above"
        if self.gap >= -margin:
            return "same"
        return "near" if self.within_spread else "below"


def summarize(records: Iterable[Record]) -> dict[Key, dict[str, Summary]]:
    """For each cell and method, each of its metrics over its seeds, in the table's unit.

    A seed that was recorded twice counts once, by its first record.
    """
    found: dict[Key, dict[int, Record]] = {}
    for record in records:
        found.setdefault((record.table, record.cell, record.method), {}).setdefault(record.seed, record)
    summaries = {}
    for (table, cell, method), by_seed in found.items():
        unit = find_cell(table, cell).unit
        rows = [by_seed[seed].metrics for seed in sorted(by_seed)]
        names = [name for name in rows[0] if all(name in row for row in rows)]
        summaries[table, cell, method] = {name: Summary(tuple(unit * row[name] for row in rows)) for name in names}
    return summaries


@dataclass(frozen=True)
class Paired:
    """Paired comparison of two methods on the same splits.

    Args:
        count: number of common splits.
        won: splits on which the first is better.
        difference: mean difference in the table's unit; positive where the first is better.
        low, high: the confidence interval of the difference, by Student's t.
        t: p value of the paired t-test.
        wilcoxon: p value of Wilcoxon's signed-rank test.
    """

    count: int
    won: int
    difference: float
    low: float
    high: float
    t: float
    wilcoxon: float

    @property
    def is_significant(self) -> bool:
        """Whether the difference is significant. With five splits Wilcoxon's p is at least 0.06, so t decides."""
        return (self.wilcoxon if self.count > 5 else self.t) < SIGNIFICANT


def pair(first: Sequence[Record], second: Sequence[Record], metric: str) -> Paired | None:
    """Compare two methods of one cell split by split; None with fewer than two splits in common.

    Records of one split, such as several initialisations, are averaged first.
    """
    one, other = _by_split(first, metric), _by_split(second, metric)
    common = sorted(set(one) & set(other))
    if len(common) < 2:
        return None
    cell = find_cell(first[0].table, first[0].cell)
    sign = cell.unit * (-1 if cell.lower else 1)
    gaps = np.array([sign * (one[split] - other[split]) for split in common])
    won = int((gaps > 0).sum())
    if gaps.std() == 0:  # no test is defined for equal differences
        p = 1.0 if gaps[0] == 0 else 0.0
        return Paired(len(gaps), won, float(gaps[0]), float(gaps[0]), float(gaps[0]), p, p)
    t = stats.ttest_1samp(gaps, 0)
    interval = t.confidence_interval(CONFIDENCE)
    return Paired(
        len(gaps),
        won,
        float(gaps.mean()),
        float(interval.low),
        float(interval.high),
        float(t.pvalue),
        float(stats.wilcoxon(gaps).pvalue),
    )


def _by_split(records: Sequence[Record], metric: str) -> dict[int, float]:
    found: dict[int, list[float]] = {}
    for record in records:
        if metric in record.metrics:
            found.setdefault(record.split_seed, []).append(record.metrics[metric])
    return {split: float(np.mean(values)) for split, values in found.items()}
