"""The inputs of a split of one level, and a split of them at random."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from censnet.data.splits.split_file import Split
from censnet.data.splits.splitters import Fractions, label_rate, ratio, scaffold, stratified
from censnet.data.tables.keys import says_split
from censnet.data.typed_data import TypedData
from censnet.errors import DataError, first_few
from censnet.levels import Level
from censnet.ops.arrays import BoolArray, IntArray
from censnet.settings.schema import DataSettings


@dataclass(frozen=True, eq=False)
class SplitInputs:
    """The inputs of a split of one level: its labels, the settings and a seed."""

    data: TypedData
    level: Level
    labels: pd.DataFrame
    settings: DataSettings
    seed: int

    @property
    def rows(self) -> IntArray:
        """For each input row its row in the tensors, or -1."""
        return np.asarray(self.data.rows(self.level).numpy())

    @property
    def labeled(self) -> BoolArray:
        """A mask of the input rows that can be used and have a label."""
        return np.asarray((self.rows >= 0) & self.labels.notna().any(axis=1).to_numpy())

    def _count_classes(self, column: str) -> int:
        """The number of different labels of a column."""
        try:
            return int(self.labels[column].nunique())
        except TypeError:  # arrays, frames and the like
            kind = type(self.labels[column].dropna().iloc[0]).__name__
            file = self.data.tables.name(self.level.table)
            raise DataError(
                f"holds {kind}, expected one number or one class in each row", file, column=column
            ) from None

    def at_random(self, chosen: BoolArray, fractions: Fractions) -> tuple[Split, str]:
        """Some of the input rows, at random in these shares, and how it was done."""
        groups = self.rows if self.level is Level.EDGE else None
        few = all(self._count_classes(str(name)) <= 20 for name in self.labels)
        if self.settings.split == "stratified" or (
            self.settings.split != "ratio" and few and self.level is not Level.GRAPH
        ):
            labels = self.labels.where(pd.Series(chosen, index=self.labels.index), None)
            return stratified(labels, fractions, self.seed, groups=groups), f"stratified, seed {self.seed}"
        rows = np.flatnonzero(chosen)
        return ratio(len(chosen), fractions, self.seed, rows=rows, groups=groups), f"seed {self.seed}"


def draw_split(inputs: SplitInputs) -> Split:
    """A split at random, or by the structure of the molecules."""
    data, settings, labels = inputs.data, inputs.settings, inputs.labels
    where = data.tables.name(inputs.level.table)
    if not inputs.labeled.any():
        raise DataError(f"no row has a label, expected some in {first_few(labels.columns)}", where)
    unread = unread_columns(inputs)
    if settings.split == "scaffold":
        if inputs.level is not Level.GRAPH or data.schema.smiles is None:
            raise DataError("data.split is scaffold, expected molecules: use stratified or ratio")
        if data.scaffolds is None:
            raise ValueError("the scaffolds were not computed, expected read_data(..., scaffolds=True)")
        split = scaffold(data.scaffolds, settings.fractions, inputs.seed)
        how = f"scaffolds, seed {inputs.seed}"
    elif settings.split == "label-rate":
        if labels.shape[1] > 1:
            raise DataError(f"data.split is label-rate with {labels.shape[1]} columns of labels, expected one")
        rate = settings.label_rate
        split = label_rate(labels.iloc[:, 0].where(inputs.rows >= 0), rate, inputs.seed)
        return replace(split, source=f"drawn at random, label rate {rate:g}, seed {inputs.seed}{unread}")
    else:
        split, how = inputs.at_random(inputs.labeled, settings.fractions)
        how = f"drawn at random, {how}"
    return replace(split, source=f"{how}{unread}", by_fractions=True)


def unread_columns(inputs: SplitInputs) -> str:
    """A remark where the table states a split and another one was asked for."""
    if inputs.settings.split == "auto":
        return ""
    frame = inputs.data.tables.frames()[inputs.level.table]
    found = [name for name in map(str, frame.columns) if says_split(name)]
    return f" ({', '.join(found)} not read: data.split is {inputs.settings.split})" if found else ""
