"""Metrics of predictions on labeled rows, for each column and on average; computed by scikit-learn."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Iterator, Sequence
from types import ModuleType

import numpy as np
from scipy.special import expit, log_softmax, softmax

from censnet.errors import ArgumentError, RunError
from censnet.ops.arrays import Array
from censnet.tasks.targets import Target, output_slices

METRICS: dict[str, tuple[str, ...]] = {
    "binary": ("auc", "ap", "accuracy", "f1", "log_loss", "brier", "ece"),
    "multiclass": ("accuracy", "f1", "log_loss", "auc", "brier", "ece"),
    "regression": ("rmse", "mae", "r2"),
    "oriented": ("rmse", "mae", "r2"),
    "link": ("auc", "ap", "brier", "ece"),
}
MONITORS = {"binary": "auc", "multiclass": "accuracy", "regression": "rmse", "oriented": "rmse", "link": "auc"}
CENSORED = ("censored_rows", "censored_satisfied", "censored_violation")  # of numbers known by a limit, beside these
_LOWER = ("log_loss", "brier", "ece", "rmse", "mae", "loss", "width", "set_size", "cost")
_HIGHER = ("coverage", "precision", "recall")  # beside those of METRICS
ECE_BINS = 15


def higher_is_better(metric: str) -> bool:
    """Whether more of a metric is better; `COLUMN/METRIC` is as `METRIC`.

    >>> higher_is_better("auc"), higher_is_better("weight/rmse")
    (True, False)
    """
    name = metric.rpartition("/")[2].partition("@")[0]
    if name in _LOWER or name in CENSORED:
        return name in CENSORED[:2]
    if name not in _HIGHER and name not in {name for names in METRICS.values() for name in names}:
        known = sorted({name for names in METRICS.values() for name in names} | {*_LOWER, *_HIGHER})
        raise ArgumentError(f"metric is {metric!r}, expected one of {', '.join(known)}")
    return True


def score(
    targets: Sequence[Target],
    outputs: Array,
    labels: Array,
    quick: Collection[str] | None = None,
    censoring: Array | None = None,
    *,
    condensed: bool = False,
) -> dict[str, float]:
    """Metrics of each column, `COLUMN/METRIC`, and the mean over the columns that have it, `METRIC`.

    What the labels do not define is left out: a column without labels, the area under a curve where one class is
    missing, r2 of equal numbers. Very many classes (`Target.is_wide`) have no area under a curve. Numbers are judged in
    the user's units. Censored ones are judged apart, unless `quick` says what to compute: how many there are, the share
    of predictions on the side that the label says, and the mean distance of those on the other side.

    Args:
        targets: one for each column of the labels.
        outputs: (n, width), of the model; or, if `condensed`, (n, condensed widths), as `condense` gives them.
        labels: (n, targets), as `Target.encode` gives them; NaN is no label.
        quick: the only metrics that are computed; all by default.
        censoring: (n, targets), as `Target.encode_censoring` gives them; None if no label is censored.
        condensed: whether the outputs are condensed already.

    Example:
        >>> sick = Target(level="node", column="sick", kind="binary", classes=["no", "yes"])
        >>> score([sick], np.array([[2.0], [-1.0], [0.5]]), np.array([[1.0], [0.0], [np.nan]]), quick={"auc"})
        {'sick/auc': 1.0, 'auc': 1.0}
    """
    width = sum(condensed_width(target) if condensed else target.width for target in targets)
    if outputs.ndim != 2 or outputs.shape[1] != width:
        raise ValueError(f"outputs has shape {outputs.shape}, expected (n, {width}): one column for each output")
    if labels.shape != (len(outputs), len(targets)):
        raise ValueError(f"labels has shape {labels.shape}, expected {(len(outputs), len(targets))}: (n, targets)")
    inputs = outputs if condensed else condense(targets, outputs, labels)
    ends = np.cumsum([condensed_width(target) for target in targets])[:-1]
    found: dict[str, float] = {}
    means: dict[str, list[float]] = {}
    columns = zip(targets, np.split(inputs, ends, axis=1), labels.T, strict=True)
    for number, (target, x, column) in enumerate(columns):
        side = None if censoring is None else censoring[:, number]
        if side is not None and side.any():
            scores = [*_score_column(target, x[side == 0], column[side == 0], quick)]
            scores += [] if quick is not None else _score_limits(target, x, column, side)
        else:
            scores = [*_score_column(target, x, column, quick)]
        for metric, value in scores:
            found[f"{target.column}/{metric}"] = value
            means.setdefault(metric, []).append(value)
    overall = {metric: float(np.mean(values)) for metric, values in means.items()}
    return found | overall | {metric: float(sum(means[metric])) for metric in CENSORED[:1] if metric in means}


def condensed_width(target: Target) -> int:
    """The number of values for each row that the metrics of a target are computed from."""
    return 4 if target.is_wide else target.width


def condense(targets: Sequence[Target], outputs: Array, labels: Array) -> Array:
    """The inputs of the metrics: of very many classes the likeliest, log p of the label, max p and sum p^2; else x.

    It is done row by row, so that rows can be condensed in chunks. (n, width), (n, targets) -> (n, condensed widths)
    """
    if not any(target.is_wide for target in targets):
        return outputs
    found = []
    for target, part, column in zip(targets, output_slices(targets), labels.T, strict=True):
        x = outputs[:, part]
        if target.is_wide:
            _check_finite(target.column, x)
            code = np.nan_to_num(column).astype(np.int64)
            top = x.max(axis=1, keepdims=True)
            raised = np.exp(x - top)
            total = raised.sum(axis=1, dtype=np.float64)
            log_p = (x[np.arange(len(x)), code] - top[:, 0]).astype(np.float64) - np.log(total)
            square = np.einsum("ij,ij->i", raised, raised, dtype=np.float64) / total**2
            x = np.stack([x.argmax(1), log_p, 1 / total, square], axis=1)
        found.append(x)
    return np.concatenate(found, axis=1)


def score_links(linked: Array, not_linked: Array) -> dict[str, float]:
    """Area under the curve and average precision, from the logits of pairs with and without a link.

    >>> score_links(np.array([3.0, 1.0]), np.array([0.0, 2.0]))["auc"]
    0.75
    """
    if len(linked) == 0 or len(not_linked) == 0:
        return {}
    x = np.concatenate([linked, not_linked])
    _check_finite("links", x)
    y = np.arange(len(x)) < len(linked)
    return {metric: _BINARY[metric](x, y) for metric in METRICS["link"]}


def _score_column(target: Target, x: Array, y: Array, quick: Collection[str] | None) -> Iterator[tuple[str, float]]:
    names = [name for name in METRICS[target.kind] if quick is None or name in quick]
    known = ~np.isnan(y)
    if not names or not known.any():
        return
    if not known.all():
        x, y = x[known], y[known]
    _check_finite(target.column, x)
    if target.is_number:
        x, y = (rows.astype(np.float64) * target.scale for rows in (x[:, 0], y))  # the mean cancels in all three
    else:
        x, y = (x[:, 0], y > 0.5) if target.kind == "binary" else (x, y.astype(np.int64))
    one = bool(y.min() == y.max())
    for name in names:
        if name in ("auc", "ap", "r2") and one:
            continue
        if target.kind == "multiclass" and name == "auc" and (target.is_wide or len(np.unique(y)) < x.shape[1]):
            continue
        functions = "number" if target.is_number else "wide" if target.is_wide else target.kind
        yield name, float(_FUNCTIONS[functions][name](x, y))


def _score_limits(target: Target, x: Array, y: Array, side: Array) -> Iterator[tuple[str, float]]:
    """The number of censored labels, the share of predictions on the right side, and the mean violation."""
    there = (side != 0) & ~np.isnan(y)
    _check_finite(target.column, x[there])
    beyond = (y[there].astype(np.float64) - x[there, 0]) * side[there] * target.scale  # positive on the wrong side
    violation = np.maximum(beyond, 0)
    yield from zip(CENSORED, (float(there.sum()), float((beyond <= 0).mean()), float(violation.mean())), strict=True)


def _check_finite(column: str, x: Array) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        total = x.sum(dtype=np.float64)  # nearly always finite, and then so are all
    if not np.isfinite(total) and not np.isfinite(x).all():
        row = int(np.argwhere(~np.isfinite(x))[0][0])
        raise RunError(f"the outputs for {column} are not finite in row {row}, expected numbers: training diverged")


def _sklearn() -> ModuleType:
    return importlib.import_module("sklearn.metrics")  # takes a moment, and predicting needs no metric


def _accuracy(x: Array, y: Array) -> float:
    return float(np.mean((x > 0 if x.ndim == 1 else x.argmax(1)) == y))


def _f1(x: Array, y: Array) -> float:
    """Of the positive class, or the mean over the classes that occur or are predicted."""
    if x.ndim == 1:
        return float(_sklearn().f1_score(y, x > 0, zero_division=0))
    return float(_sklearn().f1_score(y, x.argmax(1), average="macro", zero_division=0))


def _log_loss(x: Array, y: Array) -> float:
    """From logits, so that a confident prediction costs what it should, without rounding to 0 or 1."""
    x = x.astype(np.float64)
    if x.ndim == 1:
        return float(np.mean(np.logaddexp(0, np.where(y, -x, x))))
    return float(-log_softmax(x, axis=1)[np.arange(len(y)), y].mean())


def _auc(x: Array, y: Array) -> float:
    """Of two classes, or the mean over the classes, each against the rest."""
    if x.ndim == 1:
        return float(_sklearn().roc_auc_score(*_sorted(x, y)))
    if x.shape[1] == 2:
        return _auc(x[:, 1].astype(np.float64) - x[:, 0], y == 1)  # that of one class is that of the other
    p = softmax(x.astype(np.float64), axis=1)
    return float(np.mean([_auc(p[:, code], y == code) for code in range(x.shape[1])]))


def _ap(x: Array, y: Array) -> float:
    return float(_sklearn().average_precision_score(*_sorted(x, y)))


def _brier(x: Array, y: Array) -> float:
    """The mean squared error of the probability of the positive class, or its sum over many classes."""
    if x.ndim == 1:
        return float(np.mean((expit(x.astype(np.float64)) - y) ** 2))
    p = softmax(x.astype(np.float64), axis=1)
    p[np.arange(len(y)), y] -= 1
    return float(np.mean((p**2).sum(1)))


def _ece(x: Array, y: Array) -> float:
    """Expected calibration error: of the probability of the positive class, or of the likeliest of many."""
    if x.ndim == 1:
        return expected_calibration_error(expit(x.astype(np.float64)), y)
    p = softmax(x.astype(np.float64), axis=1)
    return expected_calibration_error(p.max(1), x.argmax(1) == y)


def expected_calibration_error(p: Array, hit: Array) -> float:
    """The mean distance of a probability from the share of rows where it came true, over bins of equal width.

    >>> expected_calibration_error(np.array([0.9, 0.9, 0.1, 0.1]), np.array([True, True, False, False]))
    0.1
    """
    number = np.minimum((p * ECE_BINS).astype(np.int64), ECE_BINS - 1)
    return round(float(np.abs(np.bincount(number, weights=p - hit)).sum()) / len(p), 12)


def _sorted(x: Array, y: Array) -> tuple[Array, Array]:
    """Labels and scores in the order of scores, as small numbers: scikit-learn takes a quarter of the time for them."""
    order = np.argsort(x)
    return y[order].astype(np.int8), x[order]


_BINARY: dict[str, Callable[[Array, Array], float]] = {
    "auc": _auc,
    "ap": _ap,
    "accuracy": _accuracy,
    "f1": _f1,
    "log_loss": _log_loss,
    "brier": _brier,
    "ece": _ece,
}
_FUNCTIONS: dict[str, dict[str, Callable[[Array, Array], float]]] = {
    "binary": _BINARY,
    "multiclass": _BINARY,
    "wide": {
        "accuracy": lambda x, y: float(np.mean(x[:, 0] == y)),
        "f1": lambda x, y: _sklearn().f1_score(y, x[:, 0].astype(np.int64), average="macro", zero_division=0),
        "log_loss": lambda x, y: -float(np.mean(x[:, 1])),
        "brier": lambda x, y: float(np.mean(x[:, 3] - 2 * np.exp(x[:, 1]) + 1)),
        "ece": lambda x, y: expected_calibration_error(x[:, 2], x[:, 0] == y),
    },
    "number": {
        "rmse": lambda x, y: _sklearn().root_mean_squared_error(y, x),
        "mae": lambda x, y: _sklearn().mean_absolute_error(y, x),
        "r2": lambda x, y: _sklearn().r2_score(y, x),
    },
}
