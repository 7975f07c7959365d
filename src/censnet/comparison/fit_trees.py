"""Boosted trees on hand-made graph features: the opponent on graphs whose edges carry data.

Settings, the number of trees and the way in which labels are shown are chosen on validation rows. Test rows are
predicted once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd

from censnet.comparison.boosted_trees import CANDIDATES, BoostedTrees, Metric, TreeSettings
from censnet.comparison.tree_edge_features import edge_features
from censnet.comparison.tree_graph import TreeGraph
from censnet.comparison.tree_labels import label_sums
from censnet.comparison.tree_node_features import node_features
from censnet.data.splits.split_file import Split
from censnet.errors import DataError
from censnet.ops.arrays import Array

Scheme = Literal["all", "none", "past"]


@dataclass(frozen=True, eq=False)
class TreeResult:
    """Predictions of boosted trees, and what was chosen on validation rows.

    Args:
        validation, test: predictions in the order of the rows of the split.
        scheme: how labels were shown to training rows.
        trees: the fitted model.
        features: names of the features that it used.
    """

    validation: Array
    test: Array
    scheme: Scheme
    trees: BoostedTrees
    features: list[str]


def fit_boosted_trees(
    graph: TreeGraph,
    labels: Array,
    split: Split,
    *,
    level: Literal["node", "edge"] = "edge",
    numeric: bool = False,
    structure: bool = True,
    known_labels: bool = True,
    validation_labels: bool = False,
    gaps: Array | None = None,
    ordered: Array | None = None,
    metric: Metric | None = None,
    candidates: Sequence[TreeSettings] = CANDIDATES,
    ensemble: int = 3,
    seed: int = 0,
) -> TreeResult:
    """Fit boosted trees to a target of edges or nodes, and predict validation and test rows.

    A training row sees the labels of the other training rows, a validation row those of all training rows, and a test
    row those of validation rows as well if `validation_labels`. Where the split is by time, training rows have later
    labels around them and test rows have none; validation then chooses between three schemes: `all`, as above; `none`,
    no labels; and `past`, only the newer half of the training rows is fitted and sees the labels of the older half.

    Args:
        graph: the tables.
        labels: (E,) or (N,) numbers, or classes counted from 0. Those of test rows are not read.
        split: of the edges or nodes.
        level: of the labels.
        numeric: whether labels are numbers.
        structure, known_labels: whether features of the graph, and known labels, are used. Neither: raw columns.
        validation_labels: whether test rows see the labels of validation rows.
        gaps: (E,) times, whose gaps are features of edges as well.
        ordered: (E,) times, where the split is by time.
        metric, candidates, ensemble, seed: as in `BoostedTrees`.
    """
    center = float(labels[split.train.numpy()].mean()) if numeric else 0.0

    def describe(known: Array | None) -> pd.DataFrame:
        if level == "node" and not structure:
            return graph.nodes.astype(np.float32)
        seen = None if known is None else label_sums(labels, known, numeric, center)
        return node_features(graph, seen) if level == "node" else edge_features(graph, seen, structure, gaps)

    trees = BoostedTrees(numeric, candidates, ensemble, metric, seed)
    return fit_described(
        describe, labels, split, trees, graph.categories,
        known_labels=known_labels, validation_labels=validation_labels, ordered=ordered,
    )  # fmt: skip


def fit_described(
    describe: Callable[[Array | None], pd.DataFrame],
    labels: Array,
    split: Split,
    trees: BoostedTrees,
    categories: Collection[str] = (),
    *,
    known_labels: bool = False,
    validation_labels: bool = False,
    ordered: Array | None = None,
) -> TreeResult:
    """Fit boosted trees to rows of any level; see `fit_boosted_trees`.

    Args:
        describe: the features of all rows, given which labels are known: (rows,) bool, or None for no label at all.
        labels, split, known_labels, validation_labels, ordered: as in `fit_boosted_trees`.
        trees: not fitted yet; each scheme fits trees of these options.
        categories: names of columns that are codes.
    """
    train, validation, test = (rows.numpy() for rows in (split.train, split.validation, split.test))
    schemes: tuple[Scheme, ...] = ("none",)
    if known_labels:
        schemes = ("all",) if ordered is None else ("all", "none", "past")
    coded = [f"{end}{name}" for name in categories for end in ("", "source: ", "target: ", "lower: ", "higher: ")]
    best, chosen, known = None, schemes[0], None
    for scheme in schemes:
        fitted, seen = train, train
        if scheme == "past" and ordered is not None:
            by_age = train[np.argsort(ordered[train], kind="stable")]
            seen, fitted = by_age[: len(by_age) // 2], by_age[len(by_age) // 2 :]
        shown = scheme != "none"
        features = describe(_mask(len(labels), seen) if shown else None)
        later = describe(_mask(len(labels), train)) if scheme == "past" else features
        model = replace(trees).fit(
            (features.iloc[fitted], labels[fitted]), (later.iloc[validation], labels[validation]), coded
        )
        if best is None or model.score > best.score:
            best, chosen, known = model, scheme, later
    if best is None or known is None:
        raise DataError("nothing was fitted, expected a scheme")
    last = known
    if validation_labels and chosen != "none":
        last = describe(_mask(len(labels), np.concatenate([train, validation])))
    predictions = best.predict(known.iloc[validation]), best.predict(last.iloc[test])
    return TreeResult(*predictions, scheme=chosen, trees=best, features=best.columns)


def _mask(count: int, rows: Array) -> Array:
    mask = np.zeros(count, bool)
    mask[rows] = True
    return mask
