"""Bodies of requests as strict JSON: UTF-8, finite numbers, each name once, and no deeper than anybody needs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NoReturn

from censnet.errors import quote
from censnet.serving.limits import BAD, RefusedError

DEEPEST = 12  # arrays and objects in one another; a list in a row of a table is the fourth
DIGITS = 400  # of one number


def read_json(body: bytes) -> Any:
    """The value of a body; what is no JSON, or may be read in two ways, is refused.

    >>> read_json(b'{"smiles": ["CCO"]}')
    {'smiles': ['CCO']}
    >>> read_json(b'{"coverage": NaN}')
    Traceback (most recent call last):
    censnet.serving.limits.RefusedError: the body has the number NaN, expected finite numbers
    """
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RefusedError(BAD, f"the body is not UTF-8 at byte {error.start}, expected JSON in UTF-8") from None
    try:
        found = json.loads(
            text, object_pairs_hook=_object, parse_constant=_not_finite, parse_float=_float, parse_int=_integer
        )
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise RefusedError(BAD, f"the body is no JSON: {error.msg} at {where}") from None
    except RecursionError:
        raise RefusedError(BAD, f"the body is deeper than {DEEPEST} arrays and objects, expected fewer") from None
    _check_depth(found)
    _check_characters(text)
    return found


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise RefusedError(BAD, f"an object has {quote(twice)} twice, expected each name once")
    return found


def _not_finite(text: str) -> NoReturn:
    raise RefusedError(BAD, f"the body has the number {text}, expected finite numbers")


def _float(text: str) -> float:
    if len(text) > DIGITS:
        raise RefusedError(BAD, f"the body has a number of {len(text):,} characters, expected at most {DIGITS}")
    number = float(text)
    if number in (float("inf"), float("-inf")):
        _not_finite(quote(text)[1:-1])
    return number


def _integer(text: str) -> int:
    if len(text) > DIGITS:
        raise RefusedError(BAD, f"the body has a number of {len(text):,} characters, expected at most {DIGITS}")
    return int(text)


def _check_depth(value: Any) -> None:
    """Raise for values in one another beyond `DEEPEST`; level by level, so that no depth can exhaust the stack."""
    level = [value]
    for _ in range(DEEPEST):
        inside = [item.values() if isinstance(item, dict) else item for item in level if isinstance(item, dict | list)]
        level = [each for items in inside for each in items if isinstance(each, dict | list)]
        if not level:
            return
    raise RefusedError(BAD, f"the body is deeper than {DEEPEST} arrays and objects, expected fewer")


def _check_characters(text: str) -> None:
    """Raise for halves of characters, which JSON can spell and UTF-8 cannot."""
    if "\\u" not in text and "\\U" not in text:
        return
    try:
        json.dumps(json.loads(text), ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise RefusedError(BAD, "the body has half of a surrogate pair, expected whole characters") from None
