"""Rules that split rows into training, validation and test parts. A split has its own seed and no global state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from censnet.data.splits.split_file import SPELLINGS, Split
from censnet.data.tables.columns import as_arrow, as_text, is_missing, is_number, read_dates, read_numbers
from censnet.errors import DataError, quote
from censnet.ops.arrays import Array

__all__ = ["Split", "by_column", "by_time", "label_rate", "ratio", "scaffold", "stratified"]

Fractions = tuple[float, float, float]


def label_rate(labels: Any, rate: float, seed: int = 0) -> Split:
    """The released rule for few labels: the same number of rows of each class, chosen at random, is learned from.

    Of N labeled rows in C classes, round(rate * N / C) of each class are for training, round((0.5 - rate) * N) of the
    others for validation, and the rest for testing. Rows without a label are in no part.

    Example:
        >>> label_rate(["a", "b"] * 50, 0.1)
        Split(10 train, 40 validation, 50 test)
    """
    codes, classes = pd.factorize(pd.Series(labels), sort=False)
    labeled = np.flatnonzero(codes >= 0)
    if not 0 < rate < 0.5:
        raise DataError(
            f"rate is {rate}, expected more than 0 and less than 0.5: validation takes (0.5 - rate) of rows"
        )
    if len(labeled) == 0:
        raise DataError("no row has a label, expected some: a label rate needs labels")
    each, num_validation = round(rate * len(labeled) / len(classes)), round((0.5 - rate) * len(labeled))
    if each == 0:
        raise DataError(
            f"rate {rate} of {len(labeled):,} labeled rows in {len(classes)} classes is less than one row for each: "
            "ask for a higher rate"
        )
    order = np.random.default_rng(seed).permutation(labeled)
    by_class = order[np.argsort(codes[order], kind="stable")]
    count = np.bincount(codes[labeled], minlength=len(classes))
    if count.min() < each:
        poor = int(count.argmin())
        raise DataError(
            f"class {classes[poor]!r} has {count[poor]} labeled rows, expected {each} for training at rate {rate}: "
            "use a lower rate, or a stratified split"
        )
    rank = np.arange(len(by_class)) - np.repeat(np.cumsum(count) - count, count)
    part = np.full(len(codes), -1)
    part[order] = 2
    part[by_class[rank < each]] = 0
    part[order[part[order] == 2][:num_validation]] = 1
    return Split.of(part)


def ratio(
    num_rows: int, fractions: Fractions = (0.8, 0.1, 0.1), seed: int = 0, *, rows: Any = None, groups: Any = None
) -> Split:
    """Rows at random in these shares.

    Args:
        num_rows: how many rows the table has.
        fractions: the shares of training, validation and test rows. They are divided by their sum.
        seed: of this split alone.
        rows: the rows to split, all if None; the others are in no part.
        groups: a number for each row; rows with one number go together, and rows with -1 are in no part. Rows of one
            edge given twice, or of one molecule, are such groups.

    Example:
        >>> ratio(10, (0.6, 0.2, 0.2))
        Split(6 train, 2 validation, 2 test)
    """
    shares = _shares(fractions)
    group = _groups(num_rows, rows, groups)
    order, size = _shuffled_groups(group, seed)
    first, second = _cut(np.cumsum(size[order]), shares, "rows or groups")
    part = np.full(len(size), 2)
    part[order[:first]], part[order[first:second]] = 0, 1
    return _spread(part, group)


def stratified(labels: Any, fractions: Fractions = (0.8, 0.1, 0.1), seed: int = 0, *, groups: Any = None) -> Split:
    """Rows at random, each class in the same shares everywhere, for one task or for many with blanks.

    Classes are dealt out from the rarest to the most common (iterative stratification: Sechidis et al., 2011); each
    gives every part its share of what the part still lacks of that class, and what rounding left is owed to the next.
    A class is in training before it is anywhere else. Numbers with more than 20 different values are cut into
    ten classes of equal size. A row without any label is in no part.

    Args:
        labels: one label for each row, or a table with a column for each task; missing values are no labels.
        fractions, seed: as in `ratio`.
        groups: as in `ratio`; a group counts as its first row.

    Example:
        >>> split = stratified(["rare"] * 10 + ["common"] * 90)
        >>> split, int((split.test < 10).sum())
        (Split(80 train, 10 validation, 10 test), 1)
    """
    shares = _shares(fractions)
    table = pd.DataFrame(labels) if not isinstance(labels, pd.Series | pd.DataFrame) else pd.DataFrame(labels).copy()
    codes = np.stack([_classes(table.iloc[:, task]) for task in range(table.shape[1])], axis=1)
    group = _groups(len(table), np.flatnonzero((codes >= 0).any(1)), groups)
    order, size = _shuffled_groups(group, seed)
    first = np.zeros(len(size), dtype=np.int64)
    kept = np.flatnonzero(group >= 0)[::-1]
    first[group[kept]] = kept  # the last write wins, and that is a group's first row
    codes = codes[first]

    part, owed = np.full(len(size), -1), np.zeros(3)
    kinds = [
        (int((codes[:, task] == code).sum()), task, code)
        for task in range(codes.shape[1])
        for code in np.unique(codes[:, task])
        if code >= 0
    ]
    for total, task, code in sorted(kinds):
        members = codes[:, task] == code
        free = order[members[order] & (part[order] < 0)]
        if len(free) == 0:
            continue
        lacking = shares * total - np.bincount(part[members & (part >= 0)], minlength=3)
        exact = np.maximum(lacking, 0) / max(np.maximum(lacking, 0).sum(), 1e-12) * len(free)
        given = _whole(exact + owed, len(free))
        if shares[0] > 0 and given[0] == 0 and not (members & (part == 0)).any():
            given += np.array([1, 0, 0]) - np.eye(3, dtype=np.int64)[given.argmax()]
        owed += exact - given
        part[free] = np.repeat([0, 1, 2], given)
    return _spread(part, group)


def scaffold(
    scaffolds: Sequence[str | None],
    fractions: Fractions = (0.8, 0.1, 0.1),
    seed: int = 0,
) -> Split:
    """Molecules by their Bemis-Murcko scaffold: a scaffold is in one part alone.

    Scaffolds go from the largest to the smallest, to training while they fit, then to validation, then to
    testing, as in DeepChem. The seed decides among scaffolds of one size and nothing else. Molecules without a ring
    share the empty scaffold.

    Args:
        scaffolds: of each row; a row that is no molecule has None, and is in no part.
        fractions: of training, validation and test molecules.
        seed: of this split.
    """
    shares = _shares(fractions)
    group = _groups(len(scaffolds), None, pd.factorize(np.array(scaffolds, dtype=object))[0])
    order, size = _shuffled_groups(group, seed)
    limit = np.cumsum(shares) * size.sum()
    part, filled = np.full(len(size), 2), np.zeros(2)
    for number in order[np.argsort(-size[order], kind="stable")]:
        if filled[0] + size[number] <= limit[0] + 1e-9:
            part[number] = 0
            filled[0] += size[number]
        elif filled.sum() + size[number] <= limit[1] + 1e-9:
            part[number] = 1
            filled[1] += size[number]
    return _spread(part, group)


def by_column(values: Any, file: str = "the table", column: str = "split", gaps: bool = False) -> Split:
    """The split a user wrote into a column: train, val, valid, validation or test, in any case.

    With `gaps`, a row without a value is in no part; otherwise that is an error.

    Example:
        >>> by_column(["train", "Valid", "TEST", "train"])
        Split(2 train, 1 validation, 1 test)
    """
    series = pd.Series(values)
    text = as_text(as_arrow(series)).to_pandas().astype("string").str.strip().str.lower().set_axis(series.index)
    part = text.map(SPELLINGS)
    blank = text.isna() | (text == "") if gaps else pd.Series(False, index=text.index)
    bad = np.flatnonzero((part.isna() & ~blank).to_numpy(dtype=bool))
    if len(bad):
        found = series.iloc[bad[0]]
        what = "no split" if is_missing(found) else f"the split {quote(str(found))}"
        raise DataError(f"{what}, expected train, validation or test", file=file, row=int(bad[0]), column=column)
    return Split.of(part.fillna(-1).to_numpy(dtype=np.int64))


def by_time(
    times: Any, fractions: Fractions = (0.8, 0.1, 0.1), *, file: str = "the table", column: str = "time"
) -> Split:
    """The oldest rows for training, the next for validation, the newest for testing. Equal times stay together.

    Each boundary is the one between two different times that comes nearest to the share asked for.

    Example:
        >>> by_time([2001, 2001, 2001, 2002, 2003], (0.4, 0.4, 0.2))
        Split(3 train, 1 validation, 1 test)
    """
    shares = _shares(fractions)
    given = pd.Series(times).reset_index(drop=True)
    values = as_arrow(given)
    parsed = read_numbers(values) if is_number(values.type) or pa.types.is_string(values.type) else read_dates(values)
    if len(parsed.bad):
        parsed = read_dates(values)
    missing = np.flatnonzero(np.isnan(parsed.numbers))
    if len(missing):
        found = given.iloc[missing[0]]
        what = "no time" if pd.isna(found) else f"{quote(str(found))} is not a time"
        raise DataError(f"{what}: a split by time needs one in each row", file, int(missing[0]), column)
    number = pd.factorize(parsed.numbers, sort=True)[0]
    first, second = _cut(np.cumsum(np.bincount(number)), shares, f"different times in column {column}")
    return Split.of((number >= first).astype(int) + (number >= second))


# -- the pieces -------------------------------------------------------------------------------------------------------


def _shares(fractions: Fractions) -> Array:
    shares = np.asarray(fractions, dtype=np.float64)
    if shares.shape != (3,) or not np.isfinite(shares).all() or shares.min() < 0 or shares[0] == 0:
        raise DataError(
            f"fractions is {fractions!r}, expected three numbers for training, validation and test, the first above 0"
        )
    return np.asarray(shares / shares.sum())


def _groups(num_rows: int, rows: Any, groups: Any) -> Array:
    """A number from 0 for each row, the same within a group; -1 for a row that is in no part."""
    keep = np.ones(num_rows, dtype=bool)
    if rows is not None:
        keep[:] = False
        keep[np.asarray(rows)] = True
    if groups is None:
        number = np.arange(num_rows)
    else:
        number = np.asarray(groups)
        if number.shape != (num_rows,):
            raise DataError(f"groups has shape {number.shape}, expected ({num_rows},): one number for each row")
        keep &= number >= 0
    group = np.full(num_rows, -1)
    group[keep] = pd.factorize(number[keep], sort=True)[0]
    if not keep.any():
        raise DataError("there is no row to split, expected some: every row is bad or without a label")
    return group


def _shuffled_groups(group: Array, seed: int) -> tuple[Array, Array]:
    """The groups in random order, and how many rows each has."""
    size = np.bincount(group[group >= 0])
    return np.random.default_rng(seed).permutation(len(size)), size


def _cut(total: Array, shares: Array, what: str) -> tuple[int, int]:
    """Cut a sequence with these running totals so that each part is nearest to its share and none empty."""
    room = (shares > 0).astype(int)
    if len(total) < room.sum():
        raise DataError(f"there are {len(total)} {what}, expected at least {room.sum()}: one for each part")
    before = np.concatenate([[0], total])
    first, second = (int(np.abs(before - share * total[-1]).argmin()) for share in np.cumsum(shares)[:2])
    first = min(max(first, room[0]), len(total) - room[1] - room[2])
    return first, min(max(second, first + room[1]), len(total) - room[2])


def _whole(exact: Array, total: int) -> Array:
    """Whole numbers that add up to `total`, nearest to `exact` (the largest remainders are rounded up)."""
    exact = np.maximum(exact, 0) * total / max(np.maximum(exact, 0).sum(), 1e-12)
    whole = np.floor(exact + 1e-9).astype(np.int64)
    whole[np.argsort(whole - exact, kind="stable")[: total - whole.sum()]] += 1
    return whole


def _classes(labels: pd.Series[Any]) -> Array:
    """A class for each row, -1 where there is no label; many different numbers are cut into ten."""
    if pd.api.types.is_float_dtype(labels) and labels.nunique() > 20:
        labels = pd.qcut(labels.rank(), 10, labels=False)
    return np.asarray(pd.factorize(labels)[0], dtype=np.int64)


def _spread(part: Array, group: Array) -> Split:
    """The split of the rows whose groups are in these parts."""
    return Split.of(np.where(group >= 0, part[group], -1))
