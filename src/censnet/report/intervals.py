"""Confidence intervals of scores: the bootstrap over rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from censnet.ops.arrays import Array
from censnet.report.rows import PARTS, TargetRows
from censnet.tasks.metrics import score

LEVEL = 0.95
MOST_TARGETS = 24  # of a level, beyond which there are no intervals: they would take minutes
RESAMPLES = (100, 200)
BIASED = ("ece",)  # larger in every sample drawn with replacement, so that quantiles of these miss it
TOLERANCE = 1e-3  # relative; a score that differs by more was not computed from these predictions


class Interval(NamedTuple):
    """The ends of an interval of a score."""

    low: float
    high: float


def part_with_intervals(rows: Sequence[TargetRows]) -> str | None:
    """The part whose scores get intervals: test, which nothing was chosen on, or the last one that has labels."""
    there = [part for part in ("all", "test", "validation", "train") if any(part in each.parts for each in rows)]
    return there[0] if there else None


def score_intervals(
    rows: Sequence[TargetRows], part: str, scores: Mapping[str, float], units: Array | None = None, seed: int = 0
) -> dict[str, Interval]:
    """Metric -> the interval that holds 95 % of the scores of rows that are drawn with replacement.

    A score that the predictions do not reproduce gets none: it was computed otherwise, such as with links hidden.

    Args:
        rows: of each target of a level.
        part: whose rows are drawn.
        scores: the scores of that part, as the run has them.
        units: of each row, the number of what is drawn, where several rows are one: an edge that is there twice.
        seed: of the draws.
    """
    outputs = [each.outputs for each in rows]
    if len(rows) > MOST_TARGETS or not rows:
        return {}
    usable = [(each, x) for each, x in zip(rows, outputs, strict=True) if x is not None]
    if not usable:
        return {}
    targets = [each.target for each, _ in usable]
    there = np.flatnonzero(rows[0].part == PARTS.index(part))
    labels = np.stack([_encoded(each)[there] for each, _ in usable], axis=1)
    x = np.concatenate([values[there] for _, values in usable], axis=1)
    good = ~np.isnan(x).any(axis=1) & ~np.isnan(labels).all(axis=1)
    x, labels, there = x[good], labels[good], there[good]
    if units is not None:
        there, kept = np.unique(units[there], return_index=True)
        x, labels = x[kept], labels[kept]
    if len(x) < 2:
        return {}
    here = score(targets, x, labels)
    known = {
        name: value
        for name, value in here.items()
        if name in scores
        and name.rpartition("/")[2] not in BIASED
        and abs(value - scores[name]) <= TOLERANCE * max(abs(scores[name]), TOLERANCE)
    }
    quick = {name.rpartition("/")[2] for name in known}
    rng, drawn = np.random.default_rng(seed), dict[str, list[float]]()
    cost = len(targets) * (1 + len(x) / 20_000)
    for _ in range(int(np.clip(600 / cost, *RESAMPLES))):
        chosen = rng.integers(0, len(x), len(x))
        for name, value in score(targets, x[chosen], labels[chosen], quick=quick).items():
            drawn.setdefault(name, []).append(value)
    tail = (1 - LEVEL) / 2
    return {name: Interval(*map(float, np.quantile(drawn[name], [tail, 1 - tail]))) for name in known if name in drawn}


def _encoded(rows: TargetRows) -> Array:
    """Labels as metrics read them: those of a number by its mean and scale; none that is known by a limit alone."""
    labels = (rows.labels - rows.target.mean) / rows.target.scale if rows.target.is_number else rows.labels
    return labels if rows.censoring is None else np.where(rows.censoring == 0, labels, np.nan)
