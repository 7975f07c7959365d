"""Checks of the arguments of public functions against their annotations."""

from __future__ import annotations

import os
import types
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from numbers import Integral, Real
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from censnet.errors import ArgumentError, quote

EXAMPLES = {
    "target": "node:COLUMN, edge:COLUMN, graph:COLUMN or link",
    "preset": "strong",
    "settings": '{"model.hidden": 64}',
    "changes": '{"model.hidden": 64}',
    "overrides": '{"amount": "number", "memo": "drop"}',
}
UNCHECKED = ("return", "device")  # torch says which devices there are
_NAMES: dict[Any, str] = {
    str: "text",
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    types.NoneType: "None",
    os.PathLike: "a path",
}


def check_arguments(function: Callable[..., Any], given: Mapping[str, object]) -> None:
    """Raise unless each argument is what the annotations of the function say.

    Annotations of `object` and those of type variables are not checked.

    Args:
        function: the annotated function.
        given: name -> value; names that are no arguments of the function are ignored, so `locals()` will do.

    Example:
        >>> def grow(rate: float, mode: Literal["slow", "fast"] = "slow", names: Sequence[str] = ()) -> None: ...
        >>> check_arguments(grow, {"rate": 2, "mode": "fast"})
        >>> check_arguments(grow, {"rate": 2, "mode": "banana"})
        Traceback (most recent call last):
        censnet.errors.ArgumentError: mode is 'banana', expected 'slow' or 'fast'
        >>> check_arguments(grow, {"rate": "2"})
        Traceback (most recent call last):
        censnet.errors.ArgumentError: rate is '2', expected a number
    """
    for name, kind in _annotations(function).items():
        if name in given and name not in UNCHECKED and not _fits(given[name], kind):
            example = f", such as {EXAMPLES[name]}" if name in EXAMPLES else ""
            raise ArgumentError(f"{name} is {quote(given[name])}, expected {_describe(kind)}{example}")


@cache
def _annotations(function: Callable[..., Any]) -> dict[str, Any]:
    return get_type_hints(function)


def _fits(value: object, kind: Any) -> bool:
    origin = get_origin(kind)
    if kind in (Any, object):
        return True
    if origin in (Union, types.UnionType):
        return any(_fits(value, part) for part in get_args(kind))
    if origin is Literal:
        return any(type(value) is type(choice) and value == choice for choice in get_args(kind))
    if kind is bool:
        return isinstance(value, bool | np.bool_)
    if kind in (int, float):
        return isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool | np.bool_)
    if origin in (os.PathLike, Callable):
        return isinstance(value, os.PathLike) if origin is os.PathLike else callable(value)
    plain = origin or kind
    if not isinstance(plain, type) or not isinstance(value, plain):
        return not isinstance(plain, type)
    if isinstance(value, Mapping):
        of_keys, of_values = get_args(kind) or (object, object)
        return all(_fits(key, of_keys) and _fits(part, of_values) for key, part in value.items())
    if plain is Sequence and get_args(kind) == (str,):
        return not isinstance(value, str | bytes) and all(isinstance(part, str) for part in value)  # type: ignore
    return True


def _describe(kind: Any) -> str:
    """An annotation in words."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        path = any(get_origin(part) is os.PathLike for part in parts)
        words = list(dict.fromkeys(_describe(part) for part in parts if not (path and part is str)))
        return ", ".join(words[:-1]) + f" or {words[-1]}" if len(words) > 1 else words[0]
    if origin is Literal:
        choices = [repr(choice) for choice in parts]
        return ", ".join(choices[:-1]) + f" or {choices[-1]}" if len(choices) > 1 else choices[0]
    plain = origin or kind
    if plain in _NAMES:
        return _NAMES[plain]
    if isinstance(plain, type) and issubclass(plain, Mapping):
        return "a dictionary" + (f" of {_NAMES[parts[1]]}" if len(parts) == 2 and parts[1] in _NAMES else "")
    if plain is Sequence:
        return "a list" + (" of texts" if parts == (str,) else "")
    return f"a {plain.__name__}" if isinstance(plain, type) else str(plain)
