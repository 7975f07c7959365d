"""Labels: the type of a target by its labels, the reason for it, each row's word, and which of two is positive."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from censnet.data.tables.columns import MISSING, as_arrow, as_text, is_number, read_dates, read_numbers
from censnet.data.tables.number_notation import ABOVE, LIMIT, Notation, find_notation
from censnet.data.tables.target_spec import TargetKind
from censnet.errors import DataError, quote
from censnet.ops.arrays import Array, IntArray

Censoring = NDArray[np.int8]  # -1 for a label such as <5, 1 for >5, 0 for a number
LabelDtype = Literal["text", "integer", "float", "boolean"]

_TRUTH = {"true": 1, "t": 1, "yes": 1, "y": 1, "1": 1, "false": 0, "f": 0, "no": 0, "n": 0, "0": 0}
_SIGNS = {
    "positive": 1,
    "pos": 1,
    "+": 1,
    "on": 1,
    "present": 1,
    "negative": 0,
    "neg": 0,
    "-": 0,
    "off": 0,
    "absent": 0,
}
_MISSING = frozenset(MISSING)
_NEGATIONS = ("not", "non", "no", "in", "un")
_WHOLE = re.compile(r"\+?(-?(?:0|[1-9][0-9]{0,17}))(?:\.0*)?")
_PLAIN = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_FRACTION = re.compile(r"-?[0-9]{1,17}(?:\.[0-9]{1,17})?(?:e[+-]?[0-9]{1,3})?")


def encode_labels(labels: pd.Series[Any]) -> tuple[IntArray, list[str]]:
    """For each row the number of its word, -1 where it is missing, and the words in the order they appear.

    >>> encode_labels(pd.Series([" yes", "no", None, "yes"]))
    (array([ 0,  1, -1,  0]), ['yes', 'no'])
    """
    values = as_arrow(labels)
    truth = pa.types.is_boolean(values.type)
    encoded = as_text(values).combine_chunks().dictionary_encode()
    number: dict[str, int] = {}
    places = []
    for value in encoded.dictionary.to_pylist():  # the different values alone
        word = value.capitalize() if truth else _spell(value)
        places.append(-1 if word in _MISSING else number.setdefault(word, len(number)))
    lookup = np.array([*places, -1], dtype=np.int64)  # -1, a missing value, finds the last
    codes = lookup[pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)]
    return _merge_truths(codes, list(number))


def _merge_truths(codes: IntArray, words: list[str]) -> tuple[IntArray, list[str]]:
    """yes, Yes and YES are one word where all others are no, No and NO; the first way of writing it is kept."""
    if (
        len(words) < 3
        or {parse_boolean(word) for word in words} != {0, 1}
        or len({word.lower() for word in words}) != 2
    ):
        return codes, words
    truths = [parse_boolean(word) for word in words]
    firsts = sorted(truths.index(truth) for truth in (0, 1))
    merged = [firsts.index(truths.index(truth)) for truth in truths]
    return np.array([*merged, -1])[codes], [words[first] for first in firsts]


def label_dtype(labels: pd.Series[Any], words: Sequence[str]) -> LabelDtype:
    """The type of the user's labels, so that predictions have the same."""
    kind = as_arrow(labels).type
    if pa.types.is_boolean(kind):
        return "boolean"
    forms: tuple[LabelDtype, ...] = ("integer", "float") if is_number(kind) and not pa.types.is_decimal(kind) else ()
    return next((form for form in forms if fits(form, words)), "text")


def fits(form: LabelDtype, words: Sequence[str]) -> bool:
    """Whether words can be given back in a form without loss."""
    if form == "boolean":
        return set(words) <= {"False", "True"}
    if form == "integer":
        return all(map(_PLAIN.fullmatch, words))
    return form == "text" or all(map(_FRACTION.fullmatch, words))


def sort_words(words: Sequence[str]) -> list[str]:
    """Numbers by size where all are numbers, else by the alphabet."""
    return sorted(words, key=lambda word: (float(word), word)) if fits("float", words) else sorted(words)


def parse_boolean(word: str) -> int | None:
    """1 for true, yes and the like, 0 for false and no, else None."""
    return _TRUTH.get(word.lower())


def infer_positive_class(words: Sequence[str], counts: Sequence[int]) -> tuple[str, str]:
    """The positive one of two words, and the reason: the rarer, or by its meaning where both are as frequent.

    >>> infer_positive_class(["paid", "late"], [90, 10])
    ('late', 'the rarer')
    >>> infer_positive_class(["inactive", "active"], [50, 50])
    ('active', 'the other one is its negation')
    """
    if counts[0] != counts[1]:
        return words[int(counts[1] < counts[0])], "the rarer"
    lower = [word.lower() for word in words]
    for known in (_TRUTH, _SIGNS):
        if {known.get(word) for word in lower} == {0, 1}:
            return words[int(known[lower[1]] == 1)], "by its name"
    try:
        first, second = map(float, words)
    except ValueError:
        pass
    else:
        return words[int(second > first)], "the larger of the two numbers"
    bare = [re.sub(r"[\W_]+", "", word) for word in lower]
    for other, word in ((0, 1), (1, 0)):
        if bare[word] and any(bare[other] == negation + bare[word] for negation in _NEGATIONS):
            return words[word], "the other one is its negation"
    return max(words), "the last of the two"


def match_word(word: str, words: Sequence[str]) -> str | None:
    """The word that is meant, however it is written: 1.0 is 1, YES is yes; None if it is none of them.

    >>> match_word("1.0", ["0", "1"]), match_word("YES", ["no", "yes"]), match_word("maybe", ["no", "yes"])
    ('1', 'yes', None)
    """
    spelt = _spell(word)
    if spelt in words:
        return spelt
    meant = [known for known in words if known.lower() == spelt.lower()]
    return meant[0] if len(meant) == 1 else None


def _spell(value: str) -> str:
    """Without spaces around it, and whole numbers without a fraction; 007 stays as it is, a code and no number."""
    word = value.strip()
    whole = _WHOLE.fullmatch(word)
    return word if whole is None else whole[1]


MAX_INTEGERS = 20  # different whole numbers that are still taken for classes
MAX_INFERRED = 1_000  # classes that are learned without being asked for
ROWS_FOR_EACH = 3  # labeled rows for each whole number that is taken for a class
MAX_ODD = 0.1  # share of words among numbers in text

_PADDED = re.compile(r"[+-]?0[0-9]")
_NO_LABEL = "has no label in any row, expected some to learn from"
_DATES = "holds dates or times, expected numbers or classes: count the days from one of them"


def infer_kind(
    labels: pd.Series[Any], table: str, column: str, notation: Notation | None = None
) -> tuple[TargetKind, str]:
    """The kind of a column of labels, by its labeled rows; the `notation` of numbers in text is found if None.

    >>> infer_kind(pd.Series([0.0, 1.0, None, 1.0]), "nodes", "sick")
    ('binary', '0 or 1')
    """
    values = as_arrow(labels)
    kind = values.type
    if pc.all(pc.is_null(values, nan_is_null=True)).as_py() is not False:
        raise DataError(_NO_LABEL, table, column=column)
    if pa.types.is_boolean(kind):
        return "binary", "true or false"
    if is_number(kind) or pa.types.is_duration(kind):
        return _of_numbers(read_finite(labels, table, column)[0], "numbers")
    if pa.types.is_temporal(kind):
        raise DataError(_DATES, table, column=column)
    if not pa.types.is_string(kind):
        raise DataError(f"holds {kind}, expected one number or one class in each row", table, column=column)
    return _of_text(labels, table, column, notation)


def _of_numbers(numbers: Array, what: str) -> tuple[TargetKind, str]:
    numbers = numbers[~np.isnan(numbers)]
    distinct = np.unique(numbers)
    few = ROWS_FOR_EACH * len(distinct) <= len(numbers)
    if len(distinct) == 2 and (few or distinct.tolist() == [0, 1]):
        return "binary", f"{distinct[0]:g} or {distinct[1]:g}"
    if few and 2 < len(distinct) <= MAX_INTEGERS and bool((distinct == np.floor(distinct)).all()):
        return "multiclass", f"{len(distinct)} different whole numbers"
    return "regression", f"{len(distinct):,} different {what}" if len(distinct) <= MAX_INTEGERS else what


def _of_text(labels: pd.Series[Any], table: str, column: str, notation: Notation | None) -> tuple[TargetKind, str]:
    codes, words = encode_labels(labels)
    labeled = codes[codes >= 0]
    count, distinct = len(labeled), len(words)
    if distinct == 0:
        raise DataError(_NO_LABEL, table, column=column)
    limits, censoring = split_limits(pa.chunked_array([pa.array(words, pa.string())]))
    parsed = read_numbers(limits, notation)
    padded = [number for number, word in enumerate(words) if _PADDED.match(word)]  # 007 is a code
    odd = np.isin(labeled, [*parsed.bad, *padded])
    if censoring is not None:
        censored = np.isin(labeled, np.flatnonzero(censoring))
        if odd.mean() <= MAX_ODD and not (odd | censored).all():  # limits alone are words: <5 or >=5
            return "regression", "numbers and limits in text"
        parsed = read_numbers(pa.chunked_array([pa.array(words, pa.string())]), notation)
        odd = np.isin(labeled, [*parsed.bad, *padded])
    if odd.mean() <= MAX_ODD:
        comma = ", with a comma before decimals" if parsed.notation == "comma" else ""
        found = _of_numbers(parsed.numbers[labeled], f"numbers in text{comma}")
        if found[0] == "regression" or not odd.any():  # among classes, an odd word is one more
            return found
    if distinct <= 2:
        return "binary", "one of two words"
    crowded = distinct > MAX_INFERRED or (distinct > 10 and 2 * distinct > count)
    if (crowded or distinct == count) and len(read_dates(pa.chunked_array([words])).bad) == 0:
        raise DataError(_DATES, table, column=column)
    if crowded:
        raise DataError(
            f"has {distinct:,} different words in {count:,} labeled rows, expected numbers, or classes that come "
            f"again: if these are classes, ask for {column}=multiclass",
            table,
            column=column,
        )
    return "multiclass", f"{distinct:,} different words"


def split_limits(values: pa.ChunkedArray) -> tuple[pa.ChunkedArray, Censoring | None]:
    """The values without the sign in front of a limit, and the side of each: -1 below, 1 above, 0 where there is none.

    Where no value has such a sign, there are no sides (None) and the values are as they were. Whether what is behind a
    sign is a number is for a reader of numbers to say.

    >>> values, censoring = split_limits(pa.chunked_array([["3.5", "<-5", None, ">= 10", "<NA>"]]))
    >>> values.to_pylist(), censoring.tolist()
    (['3.5', '-5', None, '10', '<NA>'], [0, -1, 0, 1, 0])
    """
    if not pa.types.is_string(values.type):
        return values, None
    limits = pc.fill_null(pc.match_substring_regex(values, LIMIT), False)
    if not pc.any(limits).as_py():
        return values, None
    above = pc.match_substring_regex(values, rf"^\s*(?:{ABOVE})")
    censoring = np.asarray(limits.to_numpy(), np.int8)
    censoring[np.asarray(limits.to_numpy(), bool) & ~np.asarray(pc.fill_null(above, False).to_numpy(), bool)] = -1
    bare = pc.replace_substring_regex(values, LIMIT, r"\1")
    return pc.if_else(limits, bare, values), censoring


def read_finite(
    labels: pd.Series[Any], table: str, column: str, notation: Notation | None = None
) -> tuple[NDArray[np.float64], IntArray, Censoring | None]:
    """Numbers and limits, NaN where there is none; the rows whose label is no number; and the side of each limit.

    The side is -1 for `<5`, 1 for `>5`, 0 for a number; None where no row has a limit. An infinite number is an error.
    """
    values, censoring = split_limits(as_arrow(labels))
    parsed = read_numbers(values, notation)
    if len(parsed.bad) and is_number(values.type):
        raise DataError("is infinite, expected a number, or nothing", table, int(parsed.bad[0]), column)
    if censoring is not None:
        censoring[np.isnan(parsed.numbers)] = 0
        censoring = censoring if censoring.any() else None
    return parsed.numbers.astype(np.float64, copy=False), parsed.bad, censoring


def read_oriented(
    labels: pd.Series[Any], table: str, column: str, notation: Notation | None = None
) -> NDArray[np.float64]:
    """Numbers whose sign follows the order of the ends, NaN where there is none; a class or a limit is an error.

    >>> read_oriented(pd.Series([1.5, None, -2.0]), "edges", "flow").tolist()
    [1.5, nan, -2.0]
    """
    expected = f"expected a number that changes sign with the order of the ends, as {column}=oriented asks for"
    values = as_arrow(labels)
    if pa.types.is_boolean(values.type):
        row = int(np.flatnonzero(~labels.isna().to_numpy())[0]) if labels.notna().any() else None
        raise DataError(f"holds true and false, which are classes, {expected}", table, row, column)
    numbers, bad, censoring = read_finite(labels, table, column, notation)
    if len(bad):
        found = f"{quote(labels.iloc[bad[0]])} is no number, {expected}: leave it empty where it is not known"
        raise DataError(found, table, int(bad[0]), column)
    if censoring is not None:
        row = int(np.flatnonzero(censoring)[0])
        raise DataError(f"{quote(labels.iloc[row])} is a limit, {expected}", table, row, column)
    known = np.flatnonzero(~np.isnan(numbers))
    if len(known) == 0:
        raise DataError(_NO_LABEL, table, column=column)
    if np.isin(numbers[known], (0, 1)).all():
        row = int(known[0])
        raise DataError(f"is 0 or 1 in each labeled row, which are two classes, {expected}", table, row, column)
    return numbers


def notation_of(labels: pd.Series[Any]) -> Notation | None:
    """The notation of numbers in text, by all labels; None where the labels are no text."""
    values = split_limits(as_arrow(labels))[0]
    return find_notation(values) if pa.types.is_string(values.type) else None
