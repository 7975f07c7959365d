"""Boosted trees, `HistGradientBoosting` of scikit-learn, whose settings and number validation rows choose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import average_precision_score, log_loss, roc_auc_score

from censnet.errors import DataError
from censnet.ops.arrays import Array

Metric = Callable[[Array, Array], float]  # labels, predictions -> a score, of which more is better
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
MANY_ROWS = 400  # training rows, from which on trees have their usual settings: leaves of 20 rows or more
FEW_ROWS = tuple(
    TreeSettings(max_leaf_nodes=leaves, min_samples_leaf=rows, l2_regularization=1.0, max_iter=200)
    for leaves, rows in ((4, 2), (4, 5), (8, 2))
)


def candidates_for(training_rows: int) -> tuple[TreeSettings, ...]:
    """The settings to choose from for so many training rows."""
    return CANDIDATES if training_rows >= MANY_ROWS else FEW_ROWS


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
        num_classes: of labels that are classes, also of those that no training row has; None is by the labels.
    """

    numeric: bool = False
    candidates: Sequence[TreeSettings] = CANDIDATES
    ensemble: int = 3
    metric: Metric | None = None
    seed: int = 0
    num_classes: int | None = None
    settings: TreeSettings | None = field(default=None, init=False)
    num_trees: int = field(default=0, init=False)
    score: float = field(default=-np.inf, init=False)  # on validation rows, of a single model
    columns: list[str] = field(default_factory=list, init=False)  # features that are used

    def fit(
        self, train: tuple[pd.DataFrame, Array], validation: tuple[pd.DataFrame, Array], categories: Sequence[str] = ()
    ) -> BoostedTrees:
        """Fit on the features and labels of training rows, and choose on those of validation rows.

        Features that have one value in all training rows are left out. `categories` are columns of codes.
        """
        features, labels = train
        if not self.numeric and self.num_classes is None:
            self.num_classes = max(2, int(np.concatenate([labels, validation[1]]).max()) + 1)
        self.columns = [str(name) for name in features if features[name].nunique(dropna=False) > 1]
        if not self.columns:
            raise DataError("no feature differs between training rows, expected at least one")
        self._categories = [name for name in self.columns if name in categories]
        metric = self.metric or (negative_rmse if self.numeric else area_or_likelihood)
        for settings in self.candidates:
            model = self._make(settings, self.seed)
            model.warm_start = True
            scores: list[float] = []
            while len(scores) * EVERY < settings.max_iter:
                model.max_iter = min(len(scores) * EVERY + STEP, settings.max_iter)
                model.fit(features[self.columns], labels)
                stages = islice(self._staged(model, validation[0]), (len(scores) + 1) * EVERY - 1, None, EVERY)
                scores += [metric(validation[1], predictions) for predictions in stages]
                if (len(scores) - 1 - int(np.argmax(scores))) * EVERY >= PATIENCE:
                    break
            if max(scores) > self.score:
                self.settings, self.num_trees = settings, EVERY * (1 + int(np.argmax(scores)))
                self.score = max(scores)
        if self.settings is None:
            raise DataError("no candidate has a score on validation rows, expected rows of two classes")
        chosen = replace(self.settings, max_iter=self.num_trees)
        seeds = range(self.seed, self.seed + self.ensemble)
        self._models = [self._make(chosen, seed).fit(features[self.columns], labels) for seed in seeds]
        return self

    def predict(self, features: pd.DataFrame) -> Array:
        """Numbers, probabilities of class 1 of two, or (rows, classes) probabilities of more."""
        asked = features[self.columns]
        if self.numeric:
            return np.asarray(np.mean([model.predict(asked) for model in self._models], axis=0))
        shares = np.mean([model.predict_proba(asked) for model in self._models], axis=0)
        return self._of_all_classes(shares, self._models[0].classes_)

    def _make(self, settings: TreeSettings, seed: int) -> Any:
        make = HistGradientBoostingRegressor if self.numeric else HistGradientBoostingClassifier
        return make(categorical_features=self._categories, early_stopping=False, random_state=seed, **asdict(settings))

    def _staged(self, model: Any, features: pd.DataFrame) -> Any:
        """The predictions after each tree."""
        if self.numeric:
            return model.staged_predict(features[self.columns])
        stages = model.staged_predict_proba(features[self.columns])
        return (self._of_all_classes(stage, model.classes_) for stage in stages)

    def _of_all_classes(self, shares: Array, classes: Array) -> Array:
        """Probabilities of all classes, 0 for those that no training row has; of two classes that of the second."""
        every = np.zeros((len(shares), self.num_classes or 2))
        every[:, classes.astype(np.int64)] = (
            shares if len(classes) > 1 else 1.0
        )  # scikit-learn gives one class two columns
        return every[:, 1] if every.shape[1] == 2 else every


def negative_rmse(labels: Array, predictions: Array) -> float:
    """The root mean squared error with a minus sign."""
    return -float(np.sqrt(np.mean((labels - predictions) ** 2)))


def area_or_likelihood(labels: Array, predictions: Array) -> float:
    """The area under the ROC curve for two classes, and the mean log likelihood for more, or where one is missing."""
    if predictions.ndim == 1 and len(np.unique(labels)) == 2:
        return float(roc_auc_score(labels, predictions))
    return log_likelihood(labels, predictions)


def average_precision(labels: Array, predictions: Array) -> float:
    """The average precision of class 1."""
    return float(average_precision_score(labels, predictions))


def log_likelihood(labels: Array, predictions: Array) -> float:
    """The mean log likelihood of the labels."""
    every = predictions if predictions.ndim == 2 else np.column_stack([1 - predictions, predictions])
    return -float(log_loss(labels, every, labels=np.arange(every.shape[1])))


METRICS: dict[str, Metric] = {"ap": average_precision, "accuracy": log_likelihood, "log_loss": log_likelihood}
