"""Labels as words: each row's word, the same for 3, 3.0 and "3", and which of two words is the positive one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from censnet.data.tables.columns import MISSING, as_arrow, as_text, is_number
from censnet.ops.arrays import IntArray

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
            return words[int(known[lower[1]] == 1)], "as the word says"
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
