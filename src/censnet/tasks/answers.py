"""Answers as the user reads them: classes by name, with probabilities; numbers in the user's units."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from censnet.ops.checks import check_shape
from censnet.tasks.targets import Target, output_slices

_NONE: frozenset[str] = frozenset()


def answers(targets: Sequence[Target], outputs: Tensor, taken: Collection[str] = _NONE) -> pd.DataFrame:
    """A row of answers for each row of outputs. (members, n, width) -> n rows

    For classes, `COLUMN_predicted` and a probability `COLUMN_p_CLASS` for each; for a number, `COLUMN_predicted`. Of
    several members the mean is given, of probabilities or of numbers, and their standard deviation: `COLUMN_std_CLASS`
    for each class, `COLUMN_std` for a number. A name that is there already gets a number at its end.

    Args:
        targets: what the outputs are of; they stand side by side.
        outputs: of each member.
        taken: names that no column may have, such as those of the user's ids.

    Example:
        >>> sick = Target(level="node", column="sick", kind="binary", classes=["no", "yes"])
        >>> answers([sick], torch.tensor([[[0.0986], [-3.0]]])).round(3)
          sick_predicted  sick_p_no  sick_p_yes
        0            yes      0.475       0.525
        1             no      0.953       0.047
    """
    check_shape("outputs", outputs, (None, None, sum(target.width for target in targets)), "(members, n, width)")
    if len(outputs) == 0:
        raise ValueError("outputs has no members, expected at least one")
    outputs = outputs.detach().cpu()
    found: dict[str, Any] = {}

    def add(name: str, values: Any) -> None:
        free, number = name, 2
        while free in found or free in taken:
            free, number = f"{name}_{number}", number + 1
        found[free] = values

    for target, part in zip(targets, output_slices(targets), strict=True):
        x = outputs[..., part].float() if target.kind != "number" else outputs[..., part].double()
        if target.kind == "number":
            values, std = _mean_and_std(x * target.scale + target.mean)
            add(f"{target.column}_predicted", values[:, 0].numpy())
            if std is not None:
                add(f"{target.column}_std", std[:, 0].numpy())
            continue
        p, std = _mean_and_std(probabilities(target, x))
        add(f"{target.column}_predicted", class_names(target)[p.argmax(1).numpy()])
        for prefix, share in [("p", p)] if std is None else [("p", p), ("std", std)]:
            for code, name in enumerate(target.classes):
                add(f"{target.column}_{prefix}_{name}", share[:, code].numpy())
    return pd.DataFrame(found)


def probabilities(target: Target, outputs: Tensor) -> Tensor:
    """How likely each class is: (..., target.width) -> (..., classes).

    >>> sick = Target(level="node", column="sick", kind="binary", classes=["no", "yes"])
    >>> probabilities(sick, torch.tensor([[0.0], [2.0]])).round(decimals=3)
    tensor([[0.5000, 0.5000],
            [0.1190, 0.8810]])
    """
    if target.kind == "binary":
        return torch.cat([(-outputs).sigmoid(), outputs.sigmoid()], dim=-1)
    return outputs.softmax(-1)


def class_names(target: Target) -> np.ndarray[Any, Any]:
    """The classes as the user has them: text, whole numbers, fractions or truth values."""
    if target.form == "boolean":
        return np.array([name.lower() == "true" for name in target.classes])
    if target.form == "text":
        return np.array(target.classes, dtype=object)
    return np.array([int(name) if target.form == "integer" else float(name) for name in target.classes])


def _mean_and_std(values: Tensor) -> tuple[Tensor, Tensor | None]:
    """Over the members; one alone has no deviation."""
    return (values[0], None) if len(values) == 1 else (values.mean(0), values.std(0))
