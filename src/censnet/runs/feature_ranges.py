"""Ranges of features in training rows, beyond which a row is unlike them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Self

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator
from torch import Tensor

from censnet.data.dataset import Dataset
from censnet.data.molecules.atoms import PAPER_ATOM, RICH_ATOM, RICH_BOND, names_of
from censnet.data.tables.schema import TableSchema
from censnet.errors import RunError
from censnet.levels import Level
from censnet.ops.arrays import Array, BoolArray
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet

MOST_MARKED = 0.01  # share of validation rows that all features together may mark
MARGIN = 0.5  # beyond the range of training rows, in units of its width


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
