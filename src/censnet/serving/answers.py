"""Frames as JSON: values as they stand in a CSV file, what is missing as null."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd

from censnet.data.tables.columns import is_missing


def to_json(content: object) -> bytes:
    """Compact JSON in UTF-8."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=str)
    return text.encode("utf-8", "replace")


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame as objects.

    >>> records(pd.DataFrame({"id": ["a", "b"], "fee": np.array([0.1, np.nan], np.float32)}))
    [{'id': 'a', 'fee': 0.1}, {'id': 'b', 'fee': None}]
    """
    names = list(map(str, frame.columns))
    return [dict(zip(names, row, strict=True)) for row in zip(*(_cells(frame[name]) for name in frame), strict=True)]


def _cells(column: pd.Series) -> list[Any]:
    if column.dtype == np.float32:  # the fewest digits that are this number, as in a CSV file
        column = pd.Series(column.to_numpy().astype(str).astype(np.float64))
    return [_plain(value) for value in column.tolist()]


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | list):
        return [_plain(entry) for entry in value]
    if is_missing(value):
        return None
    if isinstance(value, np.generic):
        return _plain(value.item())
    return value.isoformat() if hasattr(value, "isoformat") else value
