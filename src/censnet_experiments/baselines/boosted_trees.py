"""Boosted trees on hand-made graph features: the opponent on graphs whose edges carry data.

`HistGradientBoosting` of scikit-learn on the features of `tree_features`. Settings, the number of trees and the way in
which labels are shown are chosen on validation rows. Test rows are predicted once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import log_loss, roc_auc_score

from censnet.data.splits.split_file import Split
from censnet.errors import DataError
from censnet.ops.arrays import Array
from censnet_experiments.baselines.tree_features import TreeGraph, edge_features, node_features
from censnet_experiments.baselines.tree_labels import label_sums

Metric = Callable[[Array, Array], float]  # labels, predictions -> a score, of which more is better
Scheme = Literal["all", "none", "past"]
STEP, PATIENCE = 50, 100  # trees that are added at once; trees without a better score after which no more are added
EVERY = 10  # trees between scores on validation rows


@dataclass(frozen=True)
class TreeSettings:
    """Settings of `HistGradientBoosting`, by its names."""

    learning_rate: float = 0.03
    max_leaf_nodes: int = 15
    min_samples_leaf: int = 40
    l2_regularization: float = 10.0
    max_features: float = 0.5
    max_iter: int = 500


CANDIDATES = (
    TreeSettings(),
    TreeSettings(max_leaf_nodes=31, max_features=0.3),
    TreeSettings(learning_rate=0.06, max_leaf_nodes=7, min_samples_leaf=20, l2_regularization=1.0),
)


@dataclass
class BoostedTrees:
    """Boosted trees whose settings and number of trees are chosen on validation rows, averaged over several seeds.

    Args:
        numeric: whether labels are numbers rather than classes counted from 0.
        candidates: the settings to choose from.
        ensemble: how many models with the chosen settings are averaged.
        metric: for the choice; by default the area under the ROC curve for two classes, the log likelihood for more,
            and the negative root mean squared error for numbers.
        seed: of the first model.
    """

    numeric: bool = False
    candidates: Sequence[TreeSettings] = CANDIDATES
    ensemble: int = 3
    metric: Metric | None = None
    seed: int = 0
    settings: TreeSettings | None = field(default=None, init=False)
    num_trees: int = field(default=0, init=False)
    score: float = field(default=-np.inf, init=False)  # on validation rows, of a single model

    def fit(
        self, train: tuple[pd.DataFrame, Array], validation: tuple[pd.DataFrame, Array], categories: Sequence[str] = ()
    ) -> BoostedTrees:
        """Fit on the features and labels of training rows, and choose on those of validation rows.

        Features that have one value in all training rows are left out. `categories` are columns of codes.
        """
        features, labels = train
        self._columns = [str(name) for name in features if features[name].nunique(dropna=False) > 1]
        if not self._columns:
            raise DataError("no feature differs between training rows, expected at least one")
        self._categories = [name for name in self._columns if name in categories]
        metric = self.metric or (negative_rmse if self.numeric else area_or_likelihood)
        for settings in self.candidates:
            model = self._make(settings, self.seed)
            model.warm_start = True
            scores: list[float] = []
            while len(scores) * EVERY < settings.max_iter:
                model.max_iter = min(len(scores) * EVERY + STEP, settings.max_iter)
                model.fit(features[self._columns], labels)
                stages = islice(self._staged(model, validation[0]), EVERY - 1, None, EVERY)
                scores = [metric(validation[1], predictions) for predictions in stages]
                if (len(scores) - 1 - int(np.argmax(scores))) * EVERY >= PATIENCE:
                    break
            if max(scores) > self.score:
                self.settings, self.num_trees = settings, EVERY * (1 + int(np.argmax(scores)))
                self.score = max(scores)
        if self.settings is None:
            raise DataError("no candidate has a score on validation rows, expected rows of two classes")
        chosen = replace(self.settings, max_iter=self.num_trees)
        seeds = range(self.seed, self.seed + self.ensemble)
        self._models = [self._make(chosen, seed).fit(features[self._columns], labels) for seed in seeds]
        return self

    def predict(self, features: pd.DataFrame) -> Array:
        """Numbers, probabilities of class 1 of two, or (rows, classes) probabilities of more."""
        asked = features[self._columns]
        if self.numeric:
            return np.asarray(np.mean([model.predict(asked) for model in self._models], axis=0))
        shares = np.mean([model.predict_proba(asked) for model in self._models], axis=0)
        return np.asarray(shares[:, 1] if shares.shape[1] == 2 else shares)

    def _make(self, settings: TreeSettings, seed: int) -> Any:
        make = HistGradientBoostingRegressor if self.numeric else HistGradientBoostingClassifier
        return make(
            learning_rate=settings.learning_rate,
            max_iter=settings.max_iter,
            max_leaf_nodes=settings.max_leaf_nodes,
            min_samples_leaf=settings.min_samples_leaf,
            l2_regularization=settings.l2_regularization,
            max_features=settings.max_features,
            categorical_features=self._categories,
            early_stopping=False,
            random_state=seed,
        )

    def _staged(self, model: Any, features: pd.DataFrame) -> Any:
        """The predictions after each tree."""
        if self.numeric:
            return model.staged_predict(features[self._columns])
        stages = model.staged_predict_proba(features[self._columns])
        return (stage[:, 1] if stage.shape[1] == 2 else stage for stage in stages)


def negative_rmse(labels: Array, predictions: Array) -> float:
    """The root mean squared error with a minus sign."""
    return -float(np.sqrt(np.mean((labels - predictions) ** 2)))


def area_or_likelihood(labels: Array, predictions: Array) -> float:
    """The area under the ROC curve for two classes, and the mean log likelihood for more."""
    if predictions.ndim == 1:
        return float(roc_auc_score(labels, predictions))
    return -float(log_loss(labels, predictions, labels=np.arange(predictions.shape[1])))


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

    trees = (numeric, candidates, ensemble, metric, seed)
    return _fit(describe, labels, split, graph.categories, known_labels, validation_labels, ordered, trees)


def _fit(
    describe: Callable[[Array | None], pd.DataFrame],
    labels: Array,
    split: Split,
    categories: frozenset[str],
    known_labels: bool,
    validation_labels: bool,
    ordered: Array | None,
    trees: tuple[Any, ...],
) -> TreeResult:
    train, validation, test = (rows.numpy() for rows in (split.train, split.validation, split.test))
    schemes: tuple[Scheme, ...] = ("none",)
    if known_labels:
        schemes = ("all",) if ordered is None else ("all", "none", "past")
    best, chosen, known = None, schemes[0], None
    for scheme in schemes:
        fitted, seen = train, train
        if scheme == "past" and ordered is not None:
            by_age = train[np.argsort(ordered[train], kind="stable")]
            seen, fitted = by_age[: len(by_age) // 2], by_age[len(by_age) // 2 :]
        shown = scheme != "none"
        features = describe(_mask(len(labels), seen) if shown else None)
        later = describe(_mask(len(labels), train)) if scheme == "past" else features
        model = BoostedTrees(*trees).fit(
            (features.iloc[fitted], labels[fitted]),
            (later.iloc[validation], labels[validation]),
            [f"{end}{name}" for name in categories for end in ("", "source: ", "target: ")],
        )
        if best is None or model.score > best.score:
            best, chosen, known = model, scheme, later
    if best is None or known is None:
        raise DataError("nothing was fitted, expected a scheme")
    last = known
    if validation_labels and chosen != "none":
        last = describe(_mask(len(labels), np.concatenate([train, validation])))
    predictions = best.predict(known.iloc[validation]), best.predict(last.iloc[test])
    return TreeResult(*predictions, scheme=chosen, trees=best, features=best._columns)


def _mask(count: int, rows: Array) -> Array:
    mask = np.zeros(count, bool)
    mask[rows] = True
    return mask
