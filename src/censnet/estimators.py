"""scikit-learn estimators for graph-level prediction, on molecules and other graphs.

They train in memory, by the steps of `censnet.train`; nothing is written to disk.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import assert_all_finite, check_consistent_length, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from censnet.arguments import check_arguments
from censnet.data.dataset import TypedData
from censnet.data.load import read_data
from censnet.data.tables.files import Tables
from censnet.data.tables.keys import find_key
from censnet.data.tables.number_notation import is_limit
from censnet.data.tables.target_spec import TargetKind, TargetSpec
from censnet.errors import ArgumentError, DataError, name_columns, quote
from censnet.levels import Level
from censnet.nn.chunked import dense
from censnet.ops.arrays import Array
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.pipeline.fit_run import fit_run
from censnet.pipeline.prepare import prepare_typed, read_settings
from censnet.runs.run import Run
from censnet.settings.presets import Changes, make_settings
from censnet.settings.schema import Settings
from censnet.tasks.labels import read_finite
from censnet.tasks.targets import output_slices
from censnet.tasks.uncertainty import probabilities
from censnet.training.devices import find_device, make_accelerator

SMILES = "smiles"
PROMOTED = {  # parameters of the estimators -> the settings they are
    "hidden": "model.hidden",
    "layers": "model.layers",
    "dropout": "model.dropout",
    "epochs": "training.epochs",
    "learning_rate": "training.learning_rate",
    "batch_size": "training.batch_size",
}


@dataclass(kw_only=True, eq=False, repr=False)
class _GraphEstimator(BaseEstimator):  # type: ignore[misc]
    """The base of both estimators: parameters, graphs, training, and the outputs of the model.

    The parameters are fields, from which `__init__` is made; scikit-learn reads their names from its signature.
    """

    preset: str = "strong"
    hidden: int | None = None
    layers: str | None = None
    dropout: float | None = None
    epochs: int | None = None
    learning_rate: float | None = None
    batch_size: int | None = None
    settings: Changes | None = None
    ensemble: int = 1
    validation_fraction: float = 0.1
    random_state: int | np.random.RandomState | None = None
    device: str | None = None
    run_: Run = field(init=False)
    n_outputs_: int = field(init=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        tags.input_tags.string = True
        tags.target_tags.multi_output = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """The state for pickling, on the CPU, so that it can be read where there is no GPU."""
        for model in self.run_.models if hasattr(self, "run_") else ():
            model.cpu()
        state: dict[str, Any] = super().__getstate__()
        return state

    def _fit(
        self,
        graphs: GraphSet | list[str],
        labels: Sequence[Array],
        kinds: Sequence[TargetKind],
        split: str,
        positive: Sequence[str | None] | None = None,
    ) -> None:
        """Train on graphs with labels for each output, NaN where there is none, and store the run."""
        started = time.monotonic()
        if len(labels[0]) < 2:
            raise DataError("X has one sample (n_samples=1), expected at least 2 to learn from")
        names = ["y"] if len(labels) == 1 else [f"y_{number}" for number in range(len(labels))]
        settings, changed = self._make_settings(split)
        dataset = _read_graphs(graphs, dict(zip(names, labels, strict=True)), settings)
        positive = positive or [None] * len(names)
        specs = [TargetSpec(Level.GRAPH, *one) for one in zip(names, kinds, positive, strict=True)]
        prepared = prepare_typed(dataset, specs, False, settings, [spec.name for spec in specs], changed)
        accelerator = make_accelerator(settings.training.precision, self.device)
        self.run_ = fit_run(prepared, self.ensemble, accelerator, started)
        self.n_outputs_ = len(labels)

    def _make_settings(self, split: str) -> tuple[Settings, set[str]]:
        """The settings of the training, and the names of those that the parameters of the estimator set."""
        given = {name: getattr(self, name) for name in ("preset", "settings", *PROMOTED)}
        check_arguments(_GraphEstimator.__init__, given)
        share = self.validation_fraction
        if not isinstance(self.ensemble, Integral) or self.ensemble < 1:
            raise ArgumentError(f"ensemble is {self.ensemble!r}, expected a whole number, at least 1")
        if not isinstance(share, Real) or not 0 <= share < 1:
            raise ArgumentError(f"validation_fraction is {share!r}, expected a number from 0 to less than 1")
        changes, preset, _ = read_settings(self.settings, "graph:y", self.preset, 0)
        if "data.fractions" in changes:
            raise ArgumentError("settings has data.fractions, expected validation_fraction: there is no test part here")
        changes |= {name: given[own] for own, name in PROMOTED.items() if given[own] is not None}
        stated = {"data.split": split, **changes, "data.fractions": (1.0 - float(share), float(share), 0.0)}
        drawn = not isinstance(self.random_state, Integral)
        seed = check_random_state(self.random_state).randint(2**31 - 1) if drawn else self.random_state
        return make_settings(preset, "graph", stated, int(seed)), set(changes)

    def _outputs(self, X: object) -> list[Tensor]:
        """The outputs of the model for each graph, in the order of X. -> for each target (n, its width)"""
        check_is_fitted(self)
        graphs, run = _as_graphs(X), self.run_
        if not isinstance(graphs, GraphSet) and run.schema.smiles is None:
            raise DataError("X has texts, expected graphs with the features of those it was fitted on")
        dataset = run.read(graphs if isinstance(graphs, GraphSet) else _as_tables(graphs), strict=True)
        outputs = run.outputs(dataset.graph, find_device(self.device))
        members = [member.by_level["graph"] for member in outputs]
        mean = dense(run.uncertainty.combine("graph", run.config.targets, members))[dataset.rows("graph")].double()
        return [mean[:, part] for part in output_slices(run.config.targets)]


@dataclass(kw_only=True, eq=False, repr=False)
class CensNetClassifier(ClassifierMixin, _GraphEstimator):  # type: ignore[misc]
    """Classifier of molecules, or of other graphs.

    X is a list, array or Series of SMILES, a DataFrame with a column `smiles`, a `GraphSet`, or a list of `Graph`. A
    SMILES that is no molecule is an error that names its row. y has a class for each graph; with several columns each
    is a task of its own, and NaN is no label.

    Args:
        preset: `strong`, `paper` or `released`, as in `censnet.train`.
        hidden: channels of each layer; that of the preset if None, as for the next five.
        layers: the sequence of node (N) and edge (E) layers, such as "NEN".
        dropout: the share of channels dropped in training.
        epochs: the number of passes over the training graphs.
        learning_rate: of the optimizer, at its highest.
        batch_size: graphs in each step.
        settings: other changes of the preset, such as {"training.patience": 20}, as in `censnet.train`; the six above
            take precedence over these.
        ensemble: members whose probabilities are averaged.
        validation_fraction: share of the graphs held out for early stopping; with 0 the last epoch is used.
        random_state: of the split, the weights, dropout and the order of batches.
        device: where to compute; the best there is if None.
        pos_label: of two classes, the positive one in average precision and F1 of `run_`; the rarer one if None.

    Attributes:
        classes_: the classes, sorted; for several columns a list of such.
        n_outputs_: how many columns y had.
        run_: the trained `Run`, which embeds and can be saved; its classes are the numbers of those in `classes_`.

    Example:
        >>> model = CensNetClassifier(epochs=2, hidden=8, random_state=0)
        >>> smiles = ["CCO", "CCCO", "CCN", "CCCN"] * 3
        >>> model.fit(smiles, ["alcohol", "alcohol", "amine", "amine"] * 3).classes_
        array(['alcohol', 'amine'], dtype='<U7')
        >>> model.predict_proba(["CCCCO"]).shape
        (1, 2)
    """

    pos_label: object = None
    classes_: Array | list[Array] = field(init=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def fit(self, X: object, y: object) -> Self:
        """Train. Nothing of an earlier fit is used."""
        graphs, classes, codes = _as_graphs(X), list[Array](), list[Array]()
        columns = _as_columns(self, graphs, y)
        for number, column in enumerate(columns):
            known = ~pd.isna(column)
            if not known.all() and len(columns) == 1:
                raise DataError(f"Input y contains NaN in row {int((~known).argmax()) + 1}, expected a class in each")
            check_classification_targets(column[known])
            found, inverse = np.unique(column[known], return_inverse=True)
            if len(found) < 2:
                where = "y" if len(columns) == 1 else f"column {number + 1} of y"
                raise DataError(
                    f"{where} has {'one class' if len(found) else 'no class'}, expected two or more classes"
                )
            code = np.full(len(column), np.nan)
            code[known] = inverse
            classes.append(found)
            codes.append(code)
        kinds: list[TargetKind] = ["binary" if len(found) == 2 else "multiclass" for found in classes]
        self._fit(graphs, codes, kinds, "stratified", self._positive(classes))
        self.classes_ = classes[0] if len(classes) == 1 else classes
        return self

    def predict(self, X: object) -> Array:
        """The most probable class of each graph. -> (n,), or (n, columns)"""
        found = self._probabilities(X)
        classes = [self.classes_] if self.n_outputs_ == 1 else self.classes_
        chosen = [names[p.argmax(1)] for names, p in zip(classes, found, strict=True)]
        return chosen[0] if self.n_outputs_ == 1 else np.stack(chosen, axis=1)

    def predict_proba(self, X: object) -> Array | list[Array]:
        """The probability of each class, in the order of `classes_`; for several columns a list."""
        found = self._probabilities(X)
        return found[0] if self.n_outputs_ == 1 else found

    def score(self, X: object, y: object, sample_weight: Array | None = None) -> float:
        """The accuracy; for several columns the mean, each over its labeled graphs."""
        return _mean_score(accuracy_score, _as_columns(self, X, y), self.predict(X), sample_weight)

    def _positive(self, classes: Sequence[Array]) -> list[str | None]:
        """The code of the positive class in each column of two classes, if `pos_label` is given."""
        if self.pos_label is None:
            return [None] * len(classes)
        places = [np.flatnonzero(found == self.pos_label) for found in classes]
        two = [place for place, found in zip(places, classes, strict=True) if len(found) == 2]
        if not two or any(len(place) == 0 for place in two):
            known = [found.tolist() for found in classes if len(found) == 2]
            labels = f"one of {known[0]}" if known else "None: no column of y has two classes"
            raise ArgumentError(f"pos_label is {self.pos_label!r}, expected {labels}")
        return [str(place[0]) if len(found) == 2 else None for place, found in zip(places, classes, strict=True)]

    def _probabilities(self, X: object) -> list[Array]:
        """Probabilities in the order of `classes_`; the run has the positive class of two last."""
        found, outputs = [], self._outputs(X)
        for target, x in zip(self.run_.config.targets, outputs, strict=True):
            order = [target.classes.index(str(code)) for code in range(len(target.classes))]
            found.append(probabilities(target, x)[:, order].numpy())
        return found


class CensNetRegressor(RegressorMixin, _GraphEstimator):  # type: ignore[misc]
    """Regressor of molecules, or of other graphs.

    X, the parameters and the attributes are those of `CensNetClassifier`, but for `pos_label` and `classes_`. y has a
    number for each graph; with several columns NaN is no label. A number that is known by a limit alone is written as
    text, `"<-5"` or `">10"` (censored), and only a prediction on the wrong side of it costs. Predictions are clipped to
    the range of y unless settings has {"model.clip_to_label_range": False}; `run_.predict` marks the clipped ones.

    Example:
        >>> model = CensNetRegressor(epochs=2, hidden=8, random_state=0)
        >>> model.fit(["CCO", "CCCO", "CCN", "CCCN"], [46.1, 60.1, 45.1, 59.1]).predict(["CCCCO", "C"]).shape
        (2,)
    """

    def fit(self, X: object, y: object) -> Self:
        """Train. Nothing of an earlier fit is used."""
        graphs = _as_graphs(X)
        columns = _as_columns(self, graphs, y)
        for column in columns:
            assert_all_finite(_as_numbers(column)[0], allow_nan=len(columns) > 1, input_name="y")
        labels = [column if _as_numbers(column)[1] is not None else _as_numbers(column)[0] for column in columns]
        self._fit(graphs, labels, ["regression"] * len(columns), "ratio")
        return self

    def predict(self, X: object) -> Array:
        """The number of each graph. -> (n,), or (n, columns)"""
        outputs = self._outputs(X)
        found = [
            (x[:, 0] * target.scale + target.mean).numpy()
            for target, x in zip(self.run_.config.targets, outputs, strict=True)
        ]
        return found[0] if self.n_outputs_ == 1 else np.stack(found, axis=1)

    def score(self, X: object, y: object, sample_weight: Array | None = None) -> float:
        """The coefficient of determination, r2; for several columns the mean, each over its labeled graphs.

        Censored numbers are left out; `run_.metrics` has the scores of the training data.
        """
        columns = []
        for column in _as_columns(self, X, y):
            numbers, censoring = _as_numbers(column)
            columns.append(numbers if censoring is None else np.where(censoring == 0, numbers, np.nan))
        return _mean_score(r2_score, columns, self.predict(X), sample_weight)


def _as_graphs(X: object) -> GraphSet | list[str]:
    """X as packed graphs, or as texts."""
    if isinstance(X, GraphSet):
        return X
    if isinstance(X, pd.DataFrame):
        name = find_key(X.columns, SMILES) or (X.columns[0] if X.shape[1] == 1 else None)
        if name is None:
            raise DataError(f"has the columns {name_columns(X.columns)}, expected smiles", "X")
        X = X[name]
    if isinstance(X, str | bytes | Graph) or not hasattr(X, "__len__"):
        raise ArgumentError(f"X is {quote(X)}, expected a list of SMILES, a table with a column smiles, or a GraphSet")
    rows = list(X.ravel()) if isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] == 1 else list(X)  # type: ignore
    if not rows:
        raise DataError("Found array with 0 sample(s) in X, expected at least 1 graph")
    if all(isinstance(row, Graph) for row in rows):
        return GraphSet.pack(rows)
    for number, row in enumerate(rows):
        if not isinstance(row, str):
            raise DataError(f"{quote(row)} is a {type(row).__name__}, expected a SMILES", "X", number)
    return rows


def _as_tables(smiles: Sequence[str], labels: Mapping[str, Array] | None = None) -> Tables:
    return Tables(graphs=pd.DataFrame({SMILES: smiles, **(labels or {})}), names={"graphs": "X"})


def _read_graphs(graphs: GraphSet | list[str], labels: Mapping[str, Array], settings: Settings) -> TypedData:
    """Graphs as a data set, with the labels in its table of graphs."""
    if not isinstance(graphs, GraphSet):
        targets = [f"graph:{name}" for name in labels]
        return read_data(
            _as_tables(graphs, labels),
            target=targets,
            strict=True,
            features=settings.data.features,
            descriptors=settings.data.descriptors,
            scaffolds=settings.data.split == "scaffold",
            hydrogens=settings.data.hydrogens,
        )
    dataset = read_data(graphs, descriptors=settings.data.descriptors)
    table = dataset.tables.frames()["graphs"].assign(**labels)
    return replace(dataset, tables=dataset.tables.with_frames({"graphs": table}))


def _as_columns(estimator: BaseEstimator, X: object, y: object) -> list[Array]:
    """The columns of y, each with a value for each graph."""
    if y is None:
        raise ArgumentError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    if isinstance(y, pd.DataFrame):
        columns = [y[name].to_numpy() for name in y]
    else:
        values = y.to_numpy() if isinstance(y, pd.Series) else np.asarray(y)
        if values.ndim not in (1, 2):
            raise DataError(f"y has shape {values.shape}, expected (n,), or (n, columns)")
        columns = [values] if values.ndim == 1 else list(values.T)
    if not columns:
        raise DataError("y has no column, expected at least one")
    check_consistent_length(X, columns[0])
    return columns


def _as_numbers(column: Array) -> tuple[Array, Array | None]:
    """Numbers, or limits and the side of each where some are written as text."""
    if column.dtype.kind in "OUST" and any(map(is_limit, column)):
        numbers, bad, censoring = read_finite(pd.Series(column), "y", "y")
        if len(bad):
            raise DataError(
                f"{quote(column[bad[0]])} is no number, expected one, or a limit such as '>10'", "y", bad[0]
            )
        return numbers, censoring
    return np.asarray(column, dtype=np.float64), None


def _mean_score(metric: Any, columns: Sequence[Array], predicted: Array, sample_weight: Array | None) -> float:
    """The mean of a metric over the columns, each over its labeled graphs."""
    predicted, found = predicted.reshape(len(predicted), -1), []
    for column, values in zip(columns, predicted.T, strict=True):
        known = ~pd.isna(column)
        if known.any():
            weight = None if sample_weight is None else np.asarray(sample_weight)[known]
            found.append(metric(column[known], values[known], sample_weight=weight))
    return float(np.mean(found))
