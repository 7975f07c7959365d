"""Known labels as sums: each row's own label is subtracted, so that no sum a row sees depends on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from censnet.ops.arrays import Array


@dataclass(frozen=True, eq=False)
class LabelSums:
    """What known labels add to a sum, and how the sums are read.

    Args:
        channels: (rows, C), 0 in rows whose label is not known. The first `num_kinds` count the rows of each kind: a
            class, or numbers below the center and the others. For numbers the distance from the center and its square
            follow.
        num_kinds: how many kinds there are.
        numeric: whether labels are numbers.
    """

    channels: Array
    num_kinds: int
    numeric: bool

    @property
    def kinds(self) -> Array:
        """(rows, kinds): 1 for the kind of a known label."""
        return self.channels[:, : self.num_kinds]

    def describe(self, sums: Array, name: str) -> dict[str, Array]:
        """Columns for (rows, C) sums: counts of kinds; then, NaN where nothing is known, shares or mean and spread."""
        count = sums[:, : self.num_kinds].sum(1)
        found = {f"{name} count of kind {kind}": sums[:, kind] for kind in range(self.num_kinds)}
        whole = np.where(count > 0, count, np.nan)
        if self.numeric:
            mean = sums[:, -2] / whole
            found[f"{name} mean"] = mean
            found[f"{name} spread"] = np.sqrt(np.maximum(sums[:, -1] / whole - mean**2, 0))
        else:
            found |= {f"{name} share of kind {kind}": sums[:, kind] / whole for kind in range(1, self.num_kinds)}
        return found


def label_sums(labels: Array, known: Array, numeric: bool, center: float = 0.0) -> LabelSums:
    """What the known labels add to sums.

    Args:
        labels: (rows,): numbers, or classes counted from 0; anything where not known.
        known: (rows,) bool, whose labels may be seen.
        numeric: whether labels are numbers rather than classes.
        center: of the numbers: below it a label is of kind 0, from it on of kind 1. It must be the same whenever
            features are computed for one model.
    """
    values = np.where(known, labels, 0.0)
    if not numeric:
        num_classes = int(labels[known].max()) + 1 if known.any() else 2
        kinds = (values[:, None] == np.arange(max(2, num_classes))) & known[:, None]
        return LabelSums(kinds.astype(np.float64), kinds.shape[1], numeric)
    values = np.where(known, values - center, 0.0)
    kinds = np.stack([values < 0, values >= 0], 1) & known[:, None]
    return LabelSums(np.column_stack([kinds, values, values**2]).astype(np.float64), 2, numeric)


def sum_by(group: Array, values: Array, num_groups: int) -> Array:
    """(rows, C) values added up by group: (groups, C)."""
    rows = np.arange(len(group))
    matrix = sp.csr_matrix((np.ones(len(group)), (group, rows)), (num_groups, len(group)))
    return np.asarray(matrix @ values)
