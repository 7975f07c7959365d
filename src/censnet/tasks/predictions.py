"""Answers as the user reads them: classes by name, with probabilities; numbers in the user's units."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any

import numpy as np
import pandas as pd
from torch import Tensor

from censnet.ops.arrays import Array
from censnet.ops.checks import check_shape
from censnet.tasks.targets import Target, output_slices
from censnet.tasks.uncertainty import TargetUncertainty, probabilities

_NONE: frozenset[str] = frozenset()
SEPARATOR = " | "  # between the names of the classes of a set
# Of very many classes the five likeliest: the suffix of the column of a class, and the prefix of its probability.
RANKS = (("predicted", ""), ("2nd", "2nd_"), ("3rd", "3rd_"), ("4th", "4th_"), ("5th", "5th_"))


def prediction_rows(
    targets: Sequence[Target],
    outputs: Tensor,
    taken: Collection[str] = _NONE,
    raw: Tensor | None = None,
    uncertainty: Sequence[TargetUncertainty] | None = None,
    coverage: float | None = None,
) -> pd.DataFrame:
    """Predictions for each row of outputs. (members, n, width) -> n rows

    For classes, `COLUMN_predicted` and a probability `COLUMN_p_CLASS` for each, the positive one of two last; for a
    number, `COLUMN_predicted`. Of several members the mean is given, of probabilities or of numbers, and their standard
    deviation: `COLUMN_std_CLASS` for each class, `COLUMN_std` for a number. Of very many classes (`Target.is_wide`) the
    likeliest alone are given: `COLUMN_predicted` with `COLUMN_p`, and the next four as `COLUMN_2nd` with `COLUMN_2nd_p`
    to `COLUMN_5th`. Where numbers are clipped to the range of training labels, `COLUMN_clipped` says whether that
    changed the prediction of any member, `COLUMN_raw` is that without clipping, and the deviation is that of those
    without it. With a coverage, `COLUMN_low` and `COLUMN_high` are the interval of a number, and `COLUMN_set` names the
    classes in the set, with SEPARATOR between them. A name that is there already gets a number at its end.

    Args:
        targets: of the outputs, which are concatenated.
        outputs: of each member.
        taken: names that no column may have, such as those of the user's ids.
        raw: the outputs before they were clipped, if they were.
        uncertainty: of each target: the mean probabilities are calibrated by it.
        coverage: of intervals and sets, if they are wanted.

    Example:
        >>> import torch
        >>> sick = Target(level="node", column="sick", kind="binary", classes=["no", "yes"])
        >>> prediction_rows([sick], torch.tensor([[[0.0986], [-3.0]]])).round(3)
          sick_predicted  sick_p_no  sick_p_yes
        0            yes      0.475       0.525
        1             no      0.953       0.047
    """
    check_shape("outputs", outputs, (None, None, sum(target.width for target in targets)), "(members, n, width)")
    if len(outputs) == 0:
        raise ValueError("outputs has no members, expected at least one")
    before = None if raw is None else [raw]
    return prediction_table(targets, [outputs], outputs.shape[1], taken, before, uncertainty, coverage)


def prediction_table(
    targets: Sequence[Target],
    chunks: Iterable[Tensor],
    num_rows: int,
    taken: Collection[str] = _NONE,
    raw: Iterable[Tensor] | None = None,
    uncertainty: Sequence[TargetUncertainty] | None = None,
    coverage: float | None = None,
) -> pd.DataFrame:
    """The same as `prediction_rows`, from outputs that come some rows at a time: (members, k, width) each."""
    summaries: list[dict[str, Tensor]] = [{} for _ in targets]
    start, sure = 0, uncertainty or [TargetUncertainty()] * len(targets)
    for outputs, before in zip(chunks, repeat(None)) if raw is None else zip(chunks, raw, strict=True):
        rows = slice(start, start + outputs.shape[1])
        for target, part, found, own in zip(targets, output_slices(targets), summaries, sure, strict=True):
            free = None if before is None else before[..., part].detach().cpu()
            summary = summarize(target, outputs[..., part].detach().cpu(), free)
            summary |= own.refine(target, summary, coverage)
            for name, values in (_likeliest(summary) if target.is_wide else summary).items():
                if rows == slice(0, num_rows):
                    found[name] = values
                    continue
                # filled in place: small tensors that stay between large ones that go would keep the memory of all
                found.setdefault(name, values.new_empty(num_rows, *values.shape[1:]))[rows] = values
        start = rows.stop
    table: dict[str, Any] = {}

    def add(name: str, values: Any) -> None:
        free, number = name, 2
        while free in table or free in taken:
            free, number = f"{name}_{number}", number + 1
        table[free] = values

    for target, found in zip(targets, summaries, strict=True):
        for name, column in _columns(target, {name: values.numpy() for name, values in found.items()}):
            add(f"{target.column}_{name}", column)
    return pd.DataFrame(table)


def summarize(target: Target, outputs: Tensor, raw: Tensor | None = None) -> dict[str, Tensor]:
    """The mean of the outputs of each row over the members, as probabilities or numbers, and their deviation `std`.

    Of numbers that were clipped, the deviation is that of the `raw` ones, with their mean and whether one was clipped.

    (members, n, target.width) -> (n,) for a number, (n, classes) otherwise
    """
    if target.is_number:
        x = outputs.double()[..., 0] * target.scale + target.mean
    else:
        x = probabilities(target, outputs.float())
    found = {"mean": x[0]} if len(x) == 1 or not x.shape[1] else {"mean": x.mean(0), "std": x.std(0)}
    if target.is_number and raw is not None:
        free = raw.double()[..., 0] * target.scale + target.mean
        found |= {"std": free.std(0)} if len(free) > 1 else {}
        return {**found, "clipped": (raw != outputs)[..., 0].any(0), "raw": free.mean(0)}
    return found


def _likeliest(summary: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Of very many classes the likeliest of each row: their `classes`, and the mean and the deviation of each."""
    share, classes = summary["mean"].topk(len(RANKS), dim=1)
    found = {name: values.gather(1, classes) for name, values in summary.items() if name == "std"}
    return {"mean": share, **found, "classes": classes}


def _columns(target: Target, summary: Mapping[str, Array]) -> Iterator[tuple[str, Array]]:
    """The columns of one target: the end of each name, and its values."""
    mean, std = summary["mean"], summary.get("std")
    if target.is_number:
        yield "predicted", mean
        for name in ("low", "high", "std", "clipped", "raw"):
            if name in summary:
                yield name, summary[name]
        return
    names = class_names(target)
    if target.is_wide:
        for rank, (name, prefix) in enumerate(RANKS):
            yield name, names[summary["classes"][:, rank]]
            yield f"{prefix}p", mean[:, rank]
            if std is not None:
                yield f"{prefix}std", std[:, rank]
        return
    yield "predicted", names[summary["positive"].astype(np.int64) if "positive" in summary else mean.argmax(1)]
    if "set" in summary:
        yield "set", _spell_sets(target, summary["set"])
    for prefix, values in [("p", mean)] if std is None else [("p", mean), ("std", std)]:
        for code, name in enumerate(target.classes):
            yield f"{prefix}_{name}", values[:, code]


def _spell_sets(target: Target, sets: Array) -> Array:
    """The names of the classes of each set."""
    different, which = np.unique(sets, axis=0, return_inverse=True)
    names = np.array(target.classes, dtype=object)
    return np.array([SEPARATOR.join(names[one]) for one in different], dtype=object)[which.reshape(-1)]


def class_names(target: Target) -> Array:
    """The classes as the user has them: text, whole numbers, fractions or truth values."""
    if target.form == "boolean":
        return np.array([name.lower() == "true" for name in target.classes])
    if target.form == "text":
        return np.array(target.classes, dtype=object)
    return np.array([int(name) if target.form == "integer" else float(name) for name in target.classes])
