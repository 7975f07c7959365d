"""Does a column give the target away? Tests of one column against one target."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from scipy.stats import rankdata

from censnet.data.tables.censoring import split_limits
from censnet.data.tables.columns import as_arrow, read_numbers

Array = np.ndarray[Any, Any]

CORRELATION = 0.98
GAIN = 0.95  # share of the labels beyond the most common one that a column explains
SEPARATION = 0.995  # area under the curve of a column that sorts two classes apart
EXPLAINED = 0.98  # share of the variance of a quantity's ranks that the values of a column, or bins of it, explain
MOST_ROWS = 10_000
MOST_BINS = 50
FEWEST_IN_BIN = 20
FEWEST = 5  # rows of a class, below which anything may be chance
MOST_ODD = 0.1  # share of words among numbers in text
_PADDED = r"^\s*[+-]?0[0-9]"


def sample_rows(labels: pd.Series[Any], most: int = MOST_ROWS) -> Array:
    """The labelled rows, or so many of them at random: of a rare class all, of a common one fewer."""
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
    """Whether a target is a number to be estimated rather than a class: numbers with more than 20 different values."""
    return bool(
        pd.api.types.is_numeric_dtype(labels) and not pd.api.types.is_bool_dtype(labels) and labels.nunique() > 20
    )


class Values(NamedTuple):
    """A column as numbers, NaN for what is none, and as codes, equal for equal values and 0 for a missing one."""

    numbers: Array
    codes: Array

    @classmethod
    def read(cls, column: pd.Series[Any]) -> Values:
        """From a column of any type; of text, each different word is looked at once."""
        values = as_arrow(column)
        if not pa.types.is_string(values.type):
            numbers = as_numbers(column)
            return cls(numbers, np.asarray(pd.factorize(numbers)[0]) + 1)
        coded = values.combine_chunks().dictionary_encode()
        codes = np.asarray(coded.indices.fill_null(-1)).astype(np.int64) + 1
        words = read_numbers(pa.chunked_array([coded.dictionary])).numbers.astype(np.float64, copy=False)
        return cls(np.concatenate([[np.nan], words])[codes], codes)

    def take(self, rows: Array) -> Values:
        """Those of some rows."""
        return Values(self.numbers[rows], self.codes[rows])


class Labels:
    """Labels, all of which are there, as the tests of many columns need them."""

    def __init__(self, labels: pd.Series[Any]) -> None:
        self.quantity = is_regression_target(labels)
        codes, classes = pd.factorize(labels)
        self.codes, self.num_classes = np.asarray(codes), len(classes)
        self.numbers = labels.to_numpy(dtype=np.float64, na_value=np.nan) if self.quantity else codes.astype(np.float64)


def leaks_target(values: pd.Series[Any] | Values, labels: pd.Series[Any] | Labels) -> tuple[bool, str] | None:
    """Whether these values (nearly) tell the labels, all of which are there: sure or only suspicious, and how.

    A number tells a quantity, or one of two classes, by a correlation above 0.98 (of values or of ranks). Any column
    tells classes if rows with one value have one label: of the labels that guessing the most common one gets wrong, it
    gets 95 % right; it tells a quantity if rows with one value, or in one range of values, hardly differ. A missing
    value is a value. A number that only sorts two classes apart, or has ranges for classes, is suspicious.

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
        return True, f"its {groups:,} values tell {gain:.0%} of the labels"
    if labels.num_classes == 2 and (area := _separation(number, codes)) > SEPARATION:
        return False, f"sorting by it separates the two classes (AUC {area:.3f})"
    if bins is not None and (gain := label_gain(bins, codes)[0]) > GAIN:
        return False, f"its ranges tell {gain:.0%} of the labels"
    return None


def follows(values: pd.Series[Any], labels: pd.Series[Any]) -> str | None:
    """Whether an id, or the number in it, rises or falls with the target."""
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
    return f"its ranges tell {gain:.0%} of the labels" if gain > 0.9 else None


def leaking_features(features: Array, labels: pd.Series[Any]) -> list[tuple[int, float]]:
    """The columns of a matrix of numbers with a correlation above 0.98 with the target, or with one of its classes."""
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
    """A column as numbers, dates as such; NaN for what is none."""
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
    few = len(parsed.bad) <= MOST_ODD * (len(values) - values.null_count)
    numbers = parsed.numbers if censoring is None else np.where(censoring == 0, parsed.numbers, np.nan)
    few &= censoring is None or not bool(np.isnan(numbers).all())
    return pd.Series(numbers, labels.index, name=labels.name) if few else labels


def _correlation(number: Array, target: Array) -> float:
    good = np.isfinite(number) & np.isfinite(target)
    if good.sum() < max(2 * FEWEST, 0.5 * len(good)) or np.ptp(number[good]) == 0 or np.ptp(target[good]) == 0:
        return 0.0
    plain = np.corrcoef(number[good], target[good])[0, 1]
    ranks = np.corrcoef(_ranks(number[good]), _ranks(target[good]))[0, 1]
    return float(np.nan_to_num([abs(plain), abs(ranks)]).max())


def _bins(number: Array) -> Array | None:
    """Numbers of many values as ranges with equally many rows; None where there are too few rows or values."""
    good = np.isfinite(number)
    bins = min(MOST_BINS, int(good.sum()) // FEWEST_IN_BIN)
    if bins < 4 or good.sum() < 0.5 * len(good) or len(np.unique(number[good])) <= bins:
        return None
    edges = np.quantile(number[good], np.linspace(0, 1, bins + 1)[1:-1])
    return np.where(good, np.searchsorted(edges, number, side="right") + 1, 0)


def _explained(group: Array, target: Array) -> float:
    """The share of the variance of a quantity, or of its ranks, that groups of rows explain, less what chance would."""
    size = np.bincount(group)
    groups = int((size > 0).sum())
    if groups < 2 or groups > len(group) / FEWEST_IN_BIN or len(group) < 4 * FEWEST_IN_BIN or np.ptp(target) == 0:
        return 0.0
    shares = []
    for values in (target, _ranks(target)):
        mean = np.bincount(group, values) / np.maximum(size, 1)
        within = ((values - mean[group]) ** 2).sum() / (len(group) - groups)
        shares.append(float(1 - within / np.var(values, ddof=1)))
    return max(shares)


def label_gain(value: Array, codes: Array) -> tuple[float, int]:
    """Of the labels that the most common one gets wrong, the share that the column's values get right."""
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
    """The area under the curve of the column as a score, whichever way round."""
    good = np.isfinite(number)
    ones = int((codes[good] == 1).sum())
    zeros = int(good.sum()) - ones
    if min(ones, zeros) < FEWEST or good.sum() < 0.5 * len(good):
        return 0.0
    area = (_ranks(number[good])[codes[good] == 1].sum() - ones * (ones + 1) / 2) / (ones * zeros)
    return float(max(area, 1 - area))


def _ranks(number: Array) -> Array:
    return np.asarray(rankdata(number))
