"""The table of a comparison, with intervals over seeds, and the sentence that it comes to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from censnet.comparison.methods import METHODS, NAMES, NO_FEATURES, NO_STREAM, OTHERS, OURS
from censnet.comparison.records import Compared, Record, Stored
from censnet.comparison.skipped import NO_MOLECULES
from censnet.tasks.metrics import higher_is_better

CONFIDENCE = 0.95
COLUMNS = ["target", "method", "metric", "mean", "low", "high", "validation", "seeds", "seconds", "note"]


@dataclass(frozen=True)
class Interval:
    """The mean of some values and its 95 % interval by Student's t, which one value does not have."""

    mean: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Interval:
        """Of values that are independent.

        >>> found = Interval.of([0.7, 0.8, 0.9])
        >>> round(found.mean, 3), round(found.low, 3), round(found.high, 3)
        (0.8, 0.552, 1.048)
        """
        if not values:
            return cls(np.nan, np.nan, np.nan, 0)
        mean = float(np.mean(values))
        if len(values) == 1:
            return cls(mean, np.nan, np.nan, 1)
        spread = float(np.std(values, ddof=1)) / len(values) ** 0.5
        half = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)) * spread
        return cls(mean, mean - half, mean + half, len(values))


def comparison_table(stored: Stored) -> pd.DataFrame:
    """One row for each target, method and metric: mean and interval on test rows, mean on validation rows, seconds."""
    rows = []
    for target in stored.targets:
        for method in METHODS:
            records = [one for one in stored.records if one.method == method.key and one.skipped != NO_MOLECULES]
            if not records:
                continue
            done = [one for one in records if score_of(one, target, target.metrics[0]) is not None]
            note = next((one.skipped for one in records if one.skipped), "") if not done else ""
            for metric in target.metrics if done else target.metrics[:1]:
                test = Interval.of(_scores(done, target, metric))
                validation = Interval.of(_scores(done, target, metric, "validation"))
                seconds = float(np.mean([one.seconds for one in done])) if done else np.nan
                rows.append([target.name, method.name, metric, test.mean, test.low, test.high, validation.mean,
                             test.count, seconds, note])  # fmt: skip
    return pd.DataFrame(rows, columns=COLUMNS)


def score_of(record: Record, target: Compared, metric: str, part: str = "test") -> float | None:
    """A metric of one target in a record."""
    found = record.scores.get(part, {}).get(target.level, {})
    return found.get(metric if target.kind == "link" else f"{target.column}/{metric}")


def gain(stored: Stored, targets: Sequence[Compared], other: str) -> Interval:
    """By how much CensNet is better than another method: the mean over targets, seed by seed; positive is better."""
    gaps = []
    for seed in sorted({one.seed for one in stored.records}):
        pair = stored.find(OURS, seed), stored.find(other, seed)
        if pair[0] is None or pair[1] is None:
            continue
        gap = [_gap(pair[0], pair[1], target) for target in targets]
        known = [value for value in gap if value is not None]
        if len(known) == len(targets):
            gaps.append(float(np.mean(known)))
    return Interval.of(gaps)


def describe_comparison(stored: Stored) -> str:
    """What edges are worth, and whether trees are better, in one sentence that claims no more than the seeds show.

    Seeds whose methods have not all been fitted yet are left out, unless there is no other.
    """
    stored = _finished(stored)
    clauses, groups = [], dict[str, list[Compared]]()
    for target in stored.targets:
        groups.setdefault(target.metrics[0], []).append(target)
    for metric, targets in groups.items():
        which = "" if len(groups) == 1 else f"for {', '.join(target.name for target in targets)} "
        parts = [
            _worth("updating edges", metric, gain(stored, targets, NO_STREAM)),
            _worth("the columns of edges", metric, gain(stored, targets, NO_FEATURES)),
            _best_other(stored, metric, targets),
        ]
        clauses += [which + ", ".join(part for part in parts[:2] if part) + ("; " if any(parts[:2]) else "") + parts[2]]
    seeds = len({one.seed for one in stored.records})
    if seeds < 2:
        what = "On one seed, which has no interval"
    else:
        what = f"Over {seeds} {'initializations on one split' if stored.one_split else 'splits'}"
    several = " (mean over the targets)" if any(len(one) > 1 for one in groups.values()) else ""
    return f"{what}{several}, {'; '.join(clauses)}."


def _finished(stored: Stored) -> Stored:
    """The records of the seeds that have one of each method that any seed has."""
    methods = {one.method for one in stored.records}
    seeds = {one.seed for one in stored.records}
    done = {seed for seed in seeds if all(stored.find(method, seed) is not None for method in methods)}
    return stored.model_copy(update={"records": [one for one in stored.records if one.seed in done or not done]})


def _worth(what: str, metric: str, found: Interval) -> str:
    """A clause on a part of the model by what its removal costs."""
    several = not what.startswith("updating")
    if found.count == 0:
        return ""
    if found.count > 1 and found.low <= 0 <= found.high:
        return f"{what} {'make' if several else 'makes'} no difference that shows ({_describe(found, metric)})"
    verb = ("improve" if found.mean >= 0 else "worsen") + ("" if several else "s")
    between = "" if found.count == 1 else f" ({_between(found)})"
    return f"{what} {verb} {metric} by {abs(found.mean):.3g}{between}"


def _best_other(stored: Stored, metric: str, targets: Sequence[Compared]) -> str:
    """A clause on CensNet beside the other method that is best on validation rows."""
    sign, means = (1 if higher_is_better(metric) else -1), {}
    for key in OTHERS:
        records = [one for one in stored.records if one.method == key]
        values = [score_of(one, target, metric, "validation") for one in records for target in targets]
        known = [value for value in values if value is not None]
        if known and len(known) == len(values):
            means[key] = sign * float(np.mean(known))
    if not means:
        return "no trees could be fitted to compare with"
    best = max(means, key=lambda key: means[key])
    found, name = gain(stored, targets, best), NAMES[best]
    if found.count == 0:
        return f"CensNet has no score to compare with {name}"
    if found.count > 1 and found.low <= 0 <= found.high:
        return f"CensNet and {name} cannot be told apart ({_describe(found, metric)})"
    if found.mean >= 0:
        ahead, behind = "CensNet is", name
    else:
        ahead, behind = f"{name} {'are' if name.startswith('trees') else 'is'}", "CensNet"
    between = "" if found.count == 1 else f" ({_between(found)})"
    return f"{ahead} better than {behind} by {abs(found.mean):.3g} in {metric}{between}"


def _describe(found: Interval, metric: str) -> str:
    return f"gain {_signed(found.mean)} in {metric}, {_between(found)}"


def _between(found: Interval) -> str:
    return f"95 % interval {_signed(found.low)} to {_signed(found.high)}"


def _signed(value: float) -> str:
    return f"{value:+.3g}"


def _scores(records: Sequence[Record], target: Compared, metric: str, part: str = "test") -> list[float]:
    found = (score_of(one, target, metric, part) for one in records)
    return [value for value in found if value is not None]


def _gap(ours: Record, other: Record, target: Compared) -> float | None:
    metric = target.metrics[0]
    one, two = score_of(ours, target, metric), score_of(other, target, metric)
    if one is None or two is None:
        return None
    return one - two if higher_is_better(metric) else two - one
