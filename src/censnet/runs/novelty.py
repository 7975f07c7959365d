"""Rows unlike all training rows: features that no training row had, and embeddings far from all of theirs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Self

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator
from torch import Tensor

from censnet.data.dataset import Dataset
from censnet.data.molecules.atoms import PAPER_ATOM, RICH_ATOM, RICH_BOND, names_of
from censnet.data.splits.split_file import PARTS
from censnet.data.tables.schema import TableSchema
from censnet.errors import RunError
from censnet.levels import Level
from censnet.ops.arrays import Array, BoolArray
from censnet.ops.caching import cached
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.runs.watched import Watch
from censnet.training.task_data import TaskData

MOST_MARKED = 0.01  # share of validation rows that all features together may mark
MARGIN = 0.5  # beyond the range of training rows, in units of its width
REFERENCES = 256  # training rows whose embeddings are stored
NEAREST = 3
FAR = 0.97  # share of validation rows that are nearer than the threshold
MAX_NUMBERS = 2**27  # in the embeddings of the training data, above which distances are left out
ELEMENT = names_of(RICH_ATOM).index("element")  # the column of the atomic number, in hundreds


class FeatureRange(BaseModel):
    """The values of one feature in training rows.

    Args:
        name: as the user knows it.
        start, stop: its columns in the tensor; a category has one for each word.
        low, high: least and greatest value that is not unusual; None for a category, of which a row has to have one.
        mean, scale: value = column * scale + mean, in the user's units.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    start: int = Field(ge=0)
    stop: int = Field(ge=0)
    low: FiniteFloat | None = None
    high: FiniteFloat | None = None
    mean: FiniteFloat = 0.0
    scale: FiniteFloat = 1.0

    @model_validator(mode="after")
    def _has_columns(self) -> Self:
        if self.start >= self.stop or (self.low is None) != (self.high is None):
            raise ValueError(f"{self.name!r} has no columns, or one limit alone")
        return self

    def outside(self, features: Tensor) -> BoolArray:
        """A mask of the rows that have an unusual value. (n,)"""
        if self.stop > features.shape[1]:
            raise RunError(f"{self.name} is column {self.stop} of {features.shape[1]} features: the run is damaged")
        x = features[:, self.start : self.stop]
        if self.low is None or self.high is None:
            return np.asarray((x.max(1).values < 0.999).numpy())
        return np.asarray(((x < self.low) | (x > self.high)).any(1).numpy())

    def describe(self, features: Tensor) -> str:
        """The unusual value of a row. (1, width)"""
        if self.low is None or self.high is None:
            return f"{self.name} is of no category in training"
        value, low, high = (x * self.scale + self.mean for x in (float(features[0, self.start]), self.low, self.high))
        if self.low == self.high == 0:
            name = f"{self.name[:-2]} of another kind" if self.name.endswith("=?") else self.name
            return f"{name} is in no training row"
        limit = f"above {high:.4g}" if value > high else f"below {low:.4g}"
        return f"{self.name} is {value:.4g}, {limit}: far from training rows"


Places = Callable[[Array], tuple[Array, Array]]  # rows of a table -> pairs of a row of the level, and one of those


def novelty_features(dataset: Dataset, level: str) -> Iterator[tuple[str, Tensor, Places]]:
    """Each table with features that the rows of a level have: its name, the features, and whose they are."""
    graph = dataset.graph

    def own(rows: Array) -> tuple[Array, Array]:
        return rows, rows

    def of_owner(level: Level) -> Places:
        assert isinstance(graph, GraphSet)
        owner = level.owners(graph).numpy()
        return lambda rows: (owner[rows], rows)

    if level == "graph" and isinstance(graph, GraphSet):
        yield "nodes", _dense(graph.nodes), of_owner(Level.NODE)
        yield "edges", graph.edges, of_owner(Level.EDGE)
        if graph.graph_features is not None:
            yield "graphs", graph.graph_features, own
        sizes = torch.stack([graph.node_offset.diff(), graph.edge_offset.diff()], 1).float()
        yield "sizes", sizes, own
        return
    yield f"{level}s", _dense(graph.nodes) if level == "node" else graph.edges, own
    if level == "edge" and isinstance(graph, Graph):
        ends = graph.ends.numpy()

        def of_ends(rows: Array) -> tuple[Array, Array]:
            there = np.zeros(graph.num_nodes, bool)
            there[rows] = True
            edges = [np.flatnonzero(there[side]) for side in ends]
            return np.concatenate(edges), np.concatenate([side[few] for side, few in zip(ends, edges, strict=True)])

        yield "nodes", _dense(graph.nodes), of_ends


def _dense(features: Tensor) -> Tensor:
    """Sparse features are words: these are not compared."""
    return features if features.layout == torch.strided else features.new_empty(features.shape[0], 0)


def fit_ranges(dataset: Dataset, level: str, training: Tensor, validation: Tensor) -> dict[str, list[FeatureRange]]:
    """The ranges of features in training rows; those that mark too many validation rows are widened or left out."""
    found: dict[str, list[FeatureRange]] = {}
    inside = {name: np.zeros(dataset.count(level), bool) for name in ("training", "validation")}
    inside["training"][training.numpy()], inside["validation"][validation.numpy()] = True, True
    for table, features, rows_of in novelty_features(dataset, level):
        rows, places = rows_of(np.arange(len(features)))
        seen, judged = (np.zeros(len(features), bool) for _ in inside)
        seen[places[inside["training"][rows]]] = True
        judged[places[inside["validation"][rows]]] = True
        if not seen.any():
            continue
        kept = []
        budget = max(1, int(MOST_MARKED * len(validation)))
        for name, start, stop, mean, scale in _columns(dataset, table, features.shape[1]):
            x = features[seen, start:stop]
            whole = stop - start > 1
            low, high = (None, None) if whole else (float(x.min()), float(x.max()))
            margin = 0.0 if low is None or high is None else MARGIN * (high - low)
            for _ in range(8):
                wide = {} if low is None or high is None else {"low": low - margin, "high": high + margin}
                one = FeatureRange(name=name, start=start, stop=stop, mean=mean, scale=scale, **wide)
                marked = rows_of(np.flatnonzero(one.outside(features) & judged))[0]
                new = int(inside["validation"][np.unique(marked)].sum())
                if new <= budget:
                    kept.append(one)
                    budget -= new
                    break
                if margin == 0:
                    break
                margin *= 2
        found[table] = kept
    return found


def _columns(dataset: Dataset, table: str, width: int) -> Iterator[tuple[str, int, int, float, float]]:
    """Name, first and last column, mean and scale of each feature of a table that is compared."""
    schema = dataset.schema
    if table == "sizes":
        yield from (("number of nodes", 0, 1, 0.0, 1.0), ("number of edges", 1, 2, 0.0, 1.0))
        return
    if schema.smiles is not None and table in ("nodes", "edges"):
        blocks = {"nodes": RICH_ATOM if schema.features == "rich" else PAPER_ATOM, "edges": RICH_BOND}[table]
        names = names_of(blocks)
        word = "atom" if table == "nodes" else "bond"
        if len(names) == width and (table == "nodes" or schema.features == "rich"):
            yield from ((f"{word} {name}", place, place + 1, 0.0, 1.0) for place, name in enumerate(names))
        return
    for fitted, offset in _schemas(dataset, table):
        yield from _columns_of(fitted, offset, width)


def _schemas(dataset: Dataset, table: str) -> list[tuple[TableSchema, int]]:
    """The schemas of the features of a table, and the first column of each."""
    own = dataset.schema.features_of(table)
    return [(own, 0), (dataset.schema.descriptors, own.width)] if table == "graphs" else [(own, 0)]


def _columns_of(fitted: TableSchema, offset: int, width: int) -> Iterator[tuple[str, int, int, float, float]]:
    if not fitted.columns or fitted.structure != "none" or offset + fitted.width > width:
        return
    columns, place = fitted.feature_columns, 0
    while place < len(columns):
        column, first = columns[place], place + offset
        if column.kind == "category":
            if not column.categories_complete:  # training rows had others, too
                place += column.width
                continue
            yield column.name, first, first + column.width, 0.0, 1.0
            place += column.width
        else:
            if column.kind in ("number", "date"):
                mean = column.mean[0] if column.is_centered[0] else 0.0
                yield column.name, first, first + 1, mean, column.scale[0]
            same = [each is column for each in columns[place:]]
            place += same.index(False) if False in same else len(same)


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
