"""Does a column give the target away? Tests of one column against one target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from censnet.data.tables.censoring import split_limits
from censnet.data.tables.columns import as_arrow, read_numbers

Array = np.ndarray[Any, Any]

CORRELATION = 0.98
GAIN = 0.95  # share of the labels beyond the most common one that a column explains
SEPARATION = 0.995  # area under the curve of a column that sorts two classes apart
MOST_ROWS = 200_000
FEWEST = 5  # rows of a class, below which anything may be chance
MOST_ODD = 0.1  # share of words among numbers in text
_PADDED = r"^\s*[+-]?0[0-9]"


def sample_rows(labels: pd.Series[Any], most: int = MOST_ROWS) -> Array:
    """The labelled rows, or so many of them at random."""
    rows = np.flatnonzero(labels.notna().to_numpy())
    return rows if len(rows) <= most else np.sort(np.random.default_rng(0).choice(rows, most, replace=False))


def is_quantity(labels: pd.Series[Any]) -> bool:
    """Whether a target is a number to be estimated rather than a class: numbers with more than 20 different values."""
    return bool(
        pd.api.types.is_numeric_dtype(labels) and not pd.api.types.is_bool_dtype(labels) and labels.nunique() > 20
    )


def gives_away(values: pd.Series[Any], labels: pd.Series[Any]) -> tuple[bool, str] | None:
    """Whether these values (nearly) tell the labels, all of which are there: sure or only suspicious, and how.

    A number tells a quantity, or one of two classes, by a correlation above 0.98 (of values or of ranks). Any column
    tells classes if rows with one value have one label: of the labels that guessing the most common one gets wrong, it
    gets 95 % right. A missing value is a value. A number that only sorts two classes apart is suspicious.

    Example:
        >>> labels = pd.Series([0, 1, 1, 0, 1, 0, 0, 0] * 5)
        >>> gives_away(labels * 3.5 + 1, labels)
        (True, 'correlation 1.000 with the target')
        >>> gives_away(pd.Series(range(40)), labels) is None
        True
    """
    quantity = is_quantity(labels)
    codes, classes = pd.factorize(labels)
    number = as_numbers(values)
    if quantity or len(classes) == 2:
        target = labels.to_numpy(dtype=np.float64, na_value=np.nan) if quantity else codes.astype(np.float64)
        found = _correlation(number, target)
        if found > CORRELATION:
            return True, f"correlation {found:.3f} with the target"
    if quantity:
        return None
    gain, groups = _gain(values, codes)
    if gain > GAIN:
        return True, f"its {groups:,} values tell {gain:.0%} of the labels"
    if len(classes) == 2 and _separation(number, codes) > SEPARATION:
        return False, f"sorting by it separates the two classes (AUC {_separation(number, codes):.3f})"
    return None


def follows(values: pd.Series[Any], labels: pd.Series[Any]) -> str | None:
    """Whether an id, or the number in it, rises or falls with the target."""
    text = values.astype("string")
    number = pd.to_numeric(text.str.extract(r"(\d{1,15})(?!.*\d)", expand=False), errors="coerce").to_numpy(
        np.float64, na_value=np.nan
    )
    codes, classes = pd.factorize(labels)
    if is_quantity(labels):
        found = _correlation(number, labels.to_numpy(dtype=np.float64, na_value=np.nan))
        return f"correlation {found:.3f} with the target" if found > 0.9 else None
    if len(classes) == 2:
        found = _separation(number, codes)
        return f"sorting by it separates the two classes (AUC {found:.3f})" if found > 0.95 else None
    return None


def telling_features(features: Array, labels: pd.Series[Any]) -> list[tuple[int, float]]:
    """The columns of a matrix of numbers with a correlation above 0.98 with the target, or with one of its classes."""
    if is_quantity(labels):
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


def _gain(values: pd.Series[Any], codes: Array) -> tuple[float, int]:
    """Of the labels that the most common one gets wrong, the share that the column's values get right."""
    value = pd.factorize(values.astype("string"), use_na_sentinel=True)[0] + 1  # a missing value is 0, a value too
    size = np.bincount(value)
    often = size[value] > 1
    rows, groups = int(often.sum()), int((size > 1).sum())
    if rows < 4 * FEWEST or rows < 0.5 * len(codes) or groups > rows / 4 or groups < 2:
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
    return pd.Series(number).rank().to_numpy()
