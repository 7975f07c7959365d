"""Target leakage: tests of one column against one target; `audit.find_leaks` applies them to all columns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from scipy.stats import rankdata, spearmanr
from sklearn.metrics import roc_auc_score

from censnet.data.tables.columns import as_arrow, read_numbers
from censnet.ops.arrays import Array
from censnet.tasks.labels import split_limits

CORRELATION = 0.98
GAIN = 0.95  # share of the labels beyond the majority class that a column predicts
SEPARATION = 0.995  # ROC AUC of a column as the score of a binary target
EXPLAINED = 0.98  # share of the variance of a regression target, or of its ranks, that values or bins explain
MAX_ROWS = 10_000
MAX_BINS = 50
MIN_IN_BIN = 20
FEWEST = 5  # rows of a class, below which anything may be chance
MAX_ODD = 0.1  # share of words among numbers in text
_PADDED = r"^\s*[+-]?0[0-9]"


def sample_rows(labels: pd.Series[Any], most: int = MAX_ROWS) -> Array:
    """The labeled rows, or at most so many, drawn at random: all of a rare class, fewer of a common one."""
    rows = np.flatnonzero(labels.notna().to_numpy())
    if len(rows) <= most:
        return rows
    rng = np.random.default_rng(0)
    rows = rng.permutation(rows)
    if is_regression_target(labels):
        return np.sort(rows[:most])
    codes = pd.factorize(labels.iloc[rows])[0]
    turn = pd.Series(codes).groupby(codes).cumcount().to_numpy()  # the first of each class, then the second, ...
    return np.sort(rows[np.argsort(turn, kind="stable")[:most]])


def is_regression_target(labels: pd.Series[Any]) -> bool:
    """Whether a target is a regression target: numbers with more than 20 different values."""
    return bool(
        pd.api.types.is_numeric_dtype(labels) and not pd.api.types.is_bool_dtype(labels) and labels.nunique() > 20
    )


class Values(NamedTuple):
    """A column as numbers (NaN where a value is not one) and as category codes (0 where it is missing)."""

    numbers: Array
    codes: Array

    @classmethod
    def read(cls, column: pd.Series[Any]) -> Values:
        """Read a column of any type; of text, each different value is parsed once."""
        values = as_arrow(column)
        if not pa.types.is_string(values.type):
            numbers = as_numbers(column)
            return cls(numbers, np.asarray(pd.factorize(numbers)[0]) + 1)
        coded = values.combine_chunks().dictionary_encode()
        codes = np.asarray(coded.indices.fill_null(-1)).astype(np.int64) + 1
        words = read_numbers(pa.chunked_array([coded.dictionary])).numbers.astype(np.float64, copy=False)
        return cls(np.concatenate([[np.nan], words])[codes], codes)

    def take(self, rows: Array) -> Values:
        """Select rows."""
        return Values(self.numbers[rows], self.codes[rows])


class Labels:
    """Labels without gaps, as the tests of many columns need them."""

    def __init__(self, labels: pd.Series[Any]) -> None:
        self.quantity = is_regression_target(labels)
        codes, classes = pd.factorize(labels)
        self.codes, self.num_classes = np.asarray(codes), len(classes)
        self.numbers = labels.to_numpy(dtype=np.float64, na_value=np.nan) if self.quantity else codes.astype(np.float64)


def leaks_target(values: pd.Series[Any] | Values, labels: pd.Series[Any] | Labels) -> tuple[bool, str] | None:
    """Test whether a column (nearly) determines the labels, which have no gaps. -> sure or only suspicious, and how

    A numerical column leaks a regression or binary target by a Pearson or Spearman correlation above 0.98. Any column
    leaks classes if each of its values goes with one label: of the labels that predicting the majority class gets
    wrong, it gets 95 % right. It leaks a regression target if its values, or bins of them, explain 98 % of the
    variance. A missing value is a value. A number that only separates two classes, or has a range for each class, is
    suspicious.

    Example:
        >>> labels = pd.Series([0, 1, 1, 0, 1, 0, 0, 0] * 5)
        >>> leaks_target(labels * 3.5 + 1, labels)
        (True, 'correlation 1.000 with the target')
        >>> leaks_target(pd.Series(range(40)), labels) is None
        True
    """
    number, value = values if isinstance(values, Values) else Values.read(values)
    labels = labels if isinstance(labels, Labels) else Labels(labels)
    codes, target = labels.codes, labels.numbers
    if labels.quantity or labels.num_classes == 2:
        found = _correlation(number, target)
        if found > CORRELATION:
            return True, f"correlation {found:.3f} with the target"
    bins = _bins(number)
    if labels.quantity:
        share = max(_explained(group, target) for group in (value, bins) if group is not None)
        return (True, f"its values explain {share:.1%} of the variance") if share > EXPLAINED else None
    gain, groups = label_gain(value, codes)
    if gain > GAIN:
        return True, f"its {groups:,} values predict {gain:.0%} of the labels"
    if labels.num_classes == 2 and (area := _separation(number, codes)) > SEPARATION:
        return False, f"sorting by it separates the two classes (AUC {area:.3f})"
    if bins is not None and (gain := label_gain(bins, codes)[0]) > GAIN:
        return False, f"its ranges predict {gain:.0%} of the labels"
    return None


def id_correlates(values: pd.Series[Any], labels: pd.Series[Any]) -> str | None:
    """Test whether an id, or the number in it, is correlated with the target. -> how"""
    text = values.astype("string")
    number = pd.to_numeric(text.str.extract(r"(\d{1,15})(?!.*\d)", expand=False), errors="coerce").to_numpy(
        np.float64, na_value=np.nan
    )
    codes, classes = pd.factorize(labels)
    if is_regression_target(labels):
        found = _correlation(number, labels.to_numpy(dtype=np.float64, na_value=np.nan))
        return f"correlation {found:.3f} with the target" if found > 0.9 else None
    if len(classes) == 2:
        found = _separation(number, codes)
        return f"sorting by it separates the two classes (AUC {found:.3f})" if found > 0.95 else None
    bins = _bins(number)
    gain = 0.0 if bins is None else label_gain(bins, codes)[0]
    return f"its ranges predict {gain:.0%} of the labels" if gain > 0.9 else None


def leaking_features(features: Array, labels: pd.Series[Any]) -> list[tuple[int, float]]:
    """Columns of a feature matrix whose correlation with the target, or with one of its classes, is above 0.98."""
    if is_regression_target(labels):
        target = labels.to_numpy(dtype=np.float64)[:, None]
    else:
        codes, classes = pd.factorize(labels)
        common = np.argsort(-np.bincount(codes), kind="stable")[:20]
        target = (codes[:, None] == common).astype(np.float64)
        target = (
            target[:, (target.sum(0) >= FEWEST) & ((1 - target).sum(0) >= FEWEST)]
            if len(classes) > 1
            else target[:, :0]
        )
    features = np.nan_to_num(features.astype(np.float64))
    x, y = features - features.mean(0), target - target.mean(0)
    size = np.sqrt((x**2).sum(0))[:, None] * np.sqrt((y**2).sum(0))
    found = np.abs(x.T @ y / np.where(size > 0, size, np.inf)).max(1, initial=0)
    return [(int(column), float(found[column])) for column in np.flatnonzero(found > CORRELATION)]


def as_numbers(values: pd.Series[Any]) -> Array:
    """A column as numbers, dates too; NaN where a value is not one."""
    if pd.api.types.is_datetime64_any_dtype(values):
        return values.to_numpy("datetime64[ns]").astype(np.float64)
    if pd.api.types.is_bool_dtype(values) or pd.api.types.is_numeric_dtype(values):
        return values.to_numpy(dtype=np.float64, na_value=np.nan)
    return read_numbers(as_arrow(values.astype("string"))).numbers.astype(np.float64, copy=False)


def as_labels(labels: pd.Series[Any]) -> pd.Series[Any]:
    """Labels as numbers where they are numbers in text, but for a few words; 007 is a code and no number.

    A number that is known by a limit alone, such as >10, is left out beside others.
    """
    values = as_arrow(labels)
    if not pa.types.is_string(values.type) or pc.any(pc.match_substring_regex(values, _PADDED)).as_py():
        return labels
    values, censoring = split_limits(values)
    parsed = read_numbers(values)
    few = len(parsed.bad) <= MAX_ODD * (len(values) - values.null_count)
    numbers = parsed.numbers if censoring is None else np.where(censoring == 0, parsed.numbers, np.nan)
    few &= censoring is None or not bool(np.isnan(numbers).all())
    return pd.Series(numbers, labels.index, name=labels.name) if few else labels


def _correlation(number: Array, target: Array) -> float:
    """The larger of the absolute Pearson and Spearman correlations."""
    good = np.isfinite(number) & np.isfinite(target)
    number, target = number[good], target[good]
    if len(number) < max(2 * FEWEST, 0.5 * len(good)) or np.ptp(number) == 0 or np.ptp(target) == 0:
        return 0.0
    found = np.corrcoef(number, target)[0, 1], spearmanr(number, target).statistic
    return float(np.nan_to_num(np.abs(found)).max())


def _bins(number: Array) -> Array | None:
    """Quantile bins of a column with many different numbers; None where there are too few rows or values."""
    good = np.isfinite(number)
    bins = min(MAX_BINS, int(good.sum()) // MIN_IN_BIN)
    if bins < 4 or good.sum() < 0.5 * len(good) or len(np.unique(number[good])) <= bins:
        return None
    edges = np.quantile(number[good], np.linspace(0, 1, bins + 1)[1:-1])
    return np.where(good, np.searchsorted(edges, number, side="right") + 1, 0)


def _explained(group: Array, target: Array) -> float:
    """The share of the variance of a target, or of its ranks, that groups of rows explain, corrected for chance."""
    size = np.bincount(group)
    groups = int((size > 0).sum())
    if groups < 2 or groups > len(group) / MIN_IN_BIN or len(group) < 4 * MIN_IN_BIN or np.ptp(target) == 0:
        return 0.0
    shares = []
    for values in (target, np.asarray(rankdata(target))):
        mean = np.bincount(group, values) / np.maximum(size, 1)
        within = ((values - mean[group]) ** 2).sum() / (len(group) - groups)
        shares.append(float(1 - within / np.var(values, ddof=1)))
    return max(shares)


def label_gain(value: Array, codes: Array) -> tuple[float, int]:
    """The share of the labels wrong by majority class that the majority class of each value gets right."""
    size = np.bincount(value)
    often = size[value] > 1
    rows, groups = int(often.sum()), int((size > 1).sum())
    if rows < 4 * FEWEST or rows < 0.5 * len(codes) or groups > rows / (8 if rows < 100 else 4) or groups < 2:
        return 0.0, groups
    value, label = value[often], codes[often]
    counts = np.bincount(label)
    wrong = rows - counts.max()
    if wrong < FEWEST:
        return 0.0, groups
    pair, count = np.unique(value * len(counts) + label, return_counts=True)
    best = np.zeros(len(size))
    np.maximum.at(best, pair // len(counts), count)
    return float((best.sum() - counts.max()) / wrong), groups


def _separation(number: Array, codes: Array) -> float:
    """ROC AUC of the column as a score of the two classes, in the better direction."""
    good = np.isfinite(number)
    positive = codes[good] == 1
    if min(positive.sum(), (~positive).sum()) < FEWEST or good.sum() < 0.5 * len(good):
        return 0.0
    area = roc_auc_score(positive, number[good])
    return float(max(area, 1 - area))
