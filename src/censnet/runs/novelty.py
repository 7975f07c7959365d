"""Rows unlike all training rows: features that no training row had, and embeddings far from all of theirs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Self

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator
from torch import Tensor

from censnet.data.dataset import Dataset
from censnet.data.molecules.atoms import RICH_ATOM, names_of
from censnet.data.splits.split_file import PARTS
from censnet.errors import RunError
from censnet.levels import Level
from censnet.ops.arrays import Array
from censnet.ops.caching import cached
from censnet.runs.feature_ranges import FeatureRange, fit_ranges, novelty_features
from censnet.runs.watched import Watch
from censnet.training.task_data import TaskData

REFERENCES = 256  # training rows whose embeddings are stored
NEAREST = 3
FAR = 0.97  # share of validation rows that are nearer than the threshold
MAX_NUMBERS = 2**27  # in the embeddings of the training data, above which distances are left out
ELEMENT = names_of(RICH_ATOM).index("element")  # the column of the atomic number, in hundreds


class LevelNovelty(BaseModel):
    """What training rows of one level are like.

    Args:
        ranges: table (nodes, edges, graphs, sizes) -> the features that are compared.
        mean, scale: of each channel of an embedding.
        references: embeddings of training rows, in these units.
        threshold: of the mean distance from the nearest of these; None where there are too few validation rows.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ignored_types=(cached,))

    ranges: dict[str, list[FeatureRange]] = Field(default_factory=dict)
    mean: list[FiniteFloat] = Field(default_factory=list)
    scale: list[FiniteFloat] = Field(default_factory=list)
    references: list[list[FiniteFloat]] = Field(default_factory=list, max_length=REFERENCES)
    threshold: float | None = Field(None, gt=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _widths_agree(self) -> Self:
        if {len(self.scale), *map(len, self.references)} - {len(self.mean)} or any(scale <= 0 for scale in self.scale):
            raise ValueError("scale or references do not fit the mean, or a scale is not positive")
        if self.threshold is not None and not self.references:
            raise ValueError("threshold is given without references")
        return self

    @classmethod
    def fit(
        cls, dataset: Dataset, level: str, embedded: Tensor | None, training: Tensor, validation: Tensor
    ) -> LevelNovelty:
        """From training rows, with thresholds by validation rows.

        Args:
            dataset: the training data.
            level: whose rows they are.
            embedded: the embedding of each row; None leaves distances out.
            training, validation: numbers of rows.
        """
        ranges = fit_ranges(dataset, level, training, validation)
        if embedded is None or not len(training):
            return cls(ranges=ranges)
        order = torch.randperm(len(training), generator=torch.Generator().manual_seed(0))[:REFERENCES]
        own = embedded[training[order]].double()
        deviation = own.std(0, correction=0)
        scale = deviation.clamp(min=max(0.1 * float(deviation.mean()), 1e-12))
        found = cls(
            ranges=ranges,
            mean=_digits(own.mean(0)),
            scale=_digits(scale),
            references=[_digits(row) for row in (own - own.mean(0)) / scale],
        )
        rank = math.ceil(FAR * (len(validation) + 1))
        if rank > len(validation):
            return cls(ranges=ranges)
        threshold = float(found.distance(embedded[validation]).sort().values[rank - 1])
        return found.model_copy(update={"threshold": max(threshold, 1e-9)})

    @cached
    def _tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        """The mean, the scale and the references: lists of many numbers take longer to read than to compute with."""
        return torch.tensor(self.mean), torch.tensor(self.scale), torch.tensor(self.references)

    def distance(self, embedded: Tensor) -> Tensor:
        """The mean distance of each row from the nearest training rows that are stored. (n, channels) -> (n,)"""
        if embedded.shape[1] != len(self.mean):
            raise RunError(
                f"embeddings have {embedded.shape[1]} channels, expected {len(self.mean)}: the run is damaged"
            )
        mean, scale, references = (values.to(embedded.device) for values in self._tensors)
        found = []
        for rows in torch.split(embedded, 2**14):
            apart = torch.cdist((rows.float() - mean) / scale, references)
            found.append(apart.topk(min(NEAREST, len(references)), largest=False).values.mean(1))
        return torch.cat(found) if found else embedded.new_empty(0)

    def describe(self, dataset: Dataset, level: str, distance: Tensor | None) -> Array:
        """Why each row is unlike training rows, in words; None where it is not. (n,)"""
        reasons: list[list[str]] = [[] for _ in range(dataset.count(level))]
        for table, features, rows_of in novelty_features(dataset, level):
            for each in self.ranges.get(table, []):
                there = each.outside(features)
                if not there.any():
                    continue
                rows, places = rows_of(np.flatnonzero(there))
                rows, first = np.unique(rows, return_index=True)
                for row, place in zip(rows.tolist(), places[first].tolist(), strict=True):
                    reason = _unseen_element(dataset, table, each, features[place]) or each.describe(features[[place]])
                    if reason not in reasons[row]:
                        reasons[row].append(reason)
        if distance is not None and self.threshold is not None:
            for row in (distance[:, 0] > self.threshold).nonzero().squeeze(1).tolist():
                times = float(distance[row, 0]) / self.threshold
                reasons[row].append(f"embedding far from training rows ({times:.2f} times the threshold)")
        return np.array(["; ".join(each) if each else None for each in reasons], dtype=object)


def _unseen_element(dataset: Dataset, table: str, unusual: FeatureRange, atom: Tensor) -> str | None:
    """The element of an atom by its symbol, if that is what is unusual: its number says nothing to a chemist."""
    if dataset.schema.smiles is None or dataset.schema.features != "rich" or table != "nodes":
        return None
    if unusual.name.partition("=")[0] != "atom element":
        return None
    from rdkit.Chem import GetPeriodicTable

    number = round(100 * float(atom[ELEMENT]))
    return f"element {GetPeriodicTable().GetElementSymbol(number)} is in no training molecule"


def _digits(values: Tensor) -> list[float]:
    """With five significant digits."""
    return [float(f"{value:.5g}") for value in values.tolist()]


def fit_novelty(dataset: Dataset, embedded: Mapping[str, Tensor], task_data: TaskData) -> dict[Level, LevelNovelty]:
    """Of each level, from the embeddings of the training data.

    Where links are predicted, edges are both what is asked and what is read: those with a target of their own are
    compared by their columns alone, and pairs by the columns of their nodes, all of which training has seen.

    Args:
        dataset: the training data.
        embedded: level -> the embedding of each row, as `keep_embedded` keeps them.
        task_data: the split.
    """
    found = {}
    for level, parts in task_data.parts.items():
        with_links = level == "edge" and task_data.links is not None
        if with_links and not task_data.of(level):
            continue
        train, validation = ((parts[:, 0] == PARTS.index(part)).nonzero().squeeze(1) for part in PARTS[:2])
        rows = embedded.get(level)
        rows = None if with_links or rows is None or not rows.shape[1] else rows
        found[Level(level)] = LevelNovelty.fit(dataset, level, rows, train, validation)
    if task_data.links is not None and Level.NODE not in found:
        every, none = torch.arange(dataset.count(Level.NODE)), torch.arange(0)
        nodes = LevelNovelty.fit(dataset, Level.NODE, None, every, none)
        found |= {Level.NODE: nodes} if any(nodes.ranges.values()) else {}
    return found


def keep_embedded(dataset: Dataset) -> Watch:
    """Embeddings as they are; without channels where they are too many to keep."""
    return lambda level, rows: rows if dataset.count(level) * rows.shape[1] <= MAX_NUMBERS else rows[:, :0]
