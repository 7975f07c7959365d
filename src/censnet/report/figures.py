"""The content of figures: confusion, threshold curves, reliability, parity and the worst errors of a target."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from censnet.markup import visible
from censnet.ops.arrays import Array
from censnet.report.rows import TargetRows
from censnet.tasks.uncertainty import COVERAGE

MOST_CLASSES = 12  # with a threshold curve each
CONFUSED = 20  # classes of a confusion table; the others are one
CURVE_ROWS = 60_000  # of a part; of more, a sample
PARITY_ROWS = 4_000
BINS = 10
WORST = 15


def pack(values: Array, kind: str) -> str:
    """Numbers as base64 of their little-endian bytes, for a typed array.

    >>> pack(np.array([1, 258]), "u2")
    'AQACAQ=='
    """
    return base64.b64encode(np.ascontiguousarray(values, dtype=f"<{kind}").tobytes()).decode()


def target_figures(rows: TargetRows) -> dict[str, Any]:
    """All figures of a target, part by part, as JSON."""
    target, parts = rows.target, {part: rows.of_part(part) for part in rows.parts}
    found: dict[str, Any] = {
        "level": str(target.level),
        "column": visible(target.column),
        "kind": target.kind,
        "parts": {part: len(chosen) for part, chosen in parts.items()},
    }
    if target.is_number:
        found["parity"] = {part: _parity(rows, chosen) for part, chosen in parts.items()}
        return found
    if target.kind == "binary":
        found |= {"threshold": rows.threshold, "rule": rows.rule}
    found["classes"] = [visible(name, 60) for name in target.classes[: max(CONFUSED, MOST_CLASSES)]]
    found["confusion"] = {part: confusion(rows, chosen) for part, chosen in parts.items()}
    if rows.probability is not None:
        found["reliability"] = {part: reliability(rows, chosen) for part, chosen in parts.items()}
        found["curves"] = _curves(rows, parts)
    return found


def confusion(rows: TargetRows, chosen: Array) -> dict[str, Any]:
    """How often each class was predicted for each label; beyond `CONFUSED` classes the rarer ones are one.

    Returns:
        `names`, and `counts` with a row for each label and a column for each predicted class.
    """
    labels, predicted = rows.labels[chosen].astype(np.int64), rows.predicted[chosen].astype(np.int64)
    classes = rows.target.classes
    codes = np.arange(len(classes))
    if len(classes) > CONFUSED:
        frequent = np.argsort(-np.bincount(labels, minlength=len(classes)), kind="stable")[: CONFUSED - 1]
        codes = np.full(len(classes), CONFUSED - 1)
        codes[frequent] = np.arange(CONFUSED - 1)
        names = [*(classes[number] for number in frequent), f"{len(classes) - CONFUSED + 1:,} other classes"]
    else:
        names = list(classes)
    counts = np.zeros((len(names), len(names)), np.int64)
    np.add.at(counts, (codes[labels], codes[predicted]), 1)
    return {"names": [visible(name, 60) for name in names], "counts": counts.tolist()}


def reliability(rows: TargetRows, chosen: Array) -> list[dict[str, float]]:
    """Predicted probability beside observed share, in bins of equally many rows.

    Of two classes it is the probability of the positive one, of several that of the predicted class.
    """
    assert rows.probability is not None
    p = rows.probability[chosen]
    if rows.target.kind == "binary":
        p, hit = p[:, 1], rows.labels[chosen] == 1
    else:
        p, hit = p.max(axis=1), rows.labels[chosen] == rows.predicted[chosen]
    order = np.argsort(p, kind="stable")
    bins = [part for part in np.array_split(order, min(BINS, len(order))) if len(part)]
    return [
        {"rows": len(part), "predicted": float(p[part].mean()), "observed": float(hit[part].mean())} for part in bins
    ]


def _curves(rows: TargetRows, parts: dict[str, Array]) -> list[dict[str, Any]]:
    """For each class (of two, the positive one) and part the sorted probabilities of its rows and of all others."""
    assert rows.probability is not None
    target, found = rows.target, list[dict[str, Any]]()
    codes = [1] if target.kind == "binary" else range(len(target.classes) if len(target.classes) <= MOST_CLASSES else 0)
    shown: list[str] = [part for part in ("all", "test", "validation") if part in parts] or [*parts]
    rng = np.random.default_rng(0)
    for code in codes:
        by_part = dict[str, Any]()
        for part in shown:
            chosen = parts[part]
            share = len(chosen) / CURVE_ROWS
            if share > 1:
                chosen = rng.choice(chosen, CURVE_ROWS, replace=False)
            p, hit = rows.probability[chosen, code], rows.labels[chosen] == code
            by_part[part] = {
                "positive": pack(np.sort(p[hit]), "f4"),
                "negative": pack(np.sort(p[~hit]), "f4"),
                "rows": len(parts[part]),
                "sampled": share > 1,
            }
        found.append({"name": visible(target.classes[code], 60), "parts": by_part})
    return found


def _parity(rows: TargetRows, chosen: Array) -> dict[str, Any]:
    """Labels and predictions of a number, with their intervals, and a summary by fifths of the labels."""
    labels, predicted = rows.labels[chosen], rows.predicted[chosen]
    order = np.argsort(labels, kind="stable")
    fifths = [
        {
            "rows": len(part),
            "low": float(labels[part].min()),
            "high": float(labels[part].max()),
            "predicted": float(predicted[part].mean()),
            "error": float(np.abs(predicted[part] - labels[part]).mean()),
        }
        for part in np.array_split(order, min(5, len(order)))
    ]
    found: dict[str, Any] = {"fifths": fifths}
    if rows.interval is not None:
        low, high = (end[chosen] for end in rows.interval)
        inside = (labels >= low) & (labels <= high)
        found |= {"coverage": float(inside.mean()), "wanted": COVERAGE}
        found["width"] = float((high - low).mean())
    if len(chosen) > PARITY_ROWS:
        keep = np.sort(np.random.default_rng(0).choice(len(chosen), PARITY_ROWS, replace=False))
        chosen, labels, predicted = chosen[keep], labels[keep], predicted[keep]
    found |= {"row": pack(chosen, "i4"), "label": pack(labels, "f4"), "predicted": pack(predicted, "f4")}
    if rows.interval is not None:
        low, high = (end[chosen] for end in rows.interval)
        found |= {"interval_low": pack(low, "f4"), "interval_high": pack(high, "f4")}
    return found


def worst_rows(rows: TargetRows, part: str) -> Array:
    """The rows of a part whose predictions are farthest from their labels, the worst first."""
    chosen, loss = rows.of_part(part), rows.loss
    return chosen[np.argsort(-loss[chosen], kind="stable")[:WORST]]
