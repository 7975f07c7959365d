"""The scikit-learn estimators: scikit-learn's own checks where they apply, and what such input needs beyond them.

Its checks give rows of numbers to every estimator. Ours take texts or graphs, so on the estimators as they are only
the checks that fit nothing can run (`WITHOUT_DATA`). All others run through `RowClassifier` and `RowRegressor`, which
make a graph of one node from each row; `NOT_FOR_US` has those that do not apply, each with its reason.
"""

from __future__ import annotations

import pickle
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError, SkipTestWarning
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks
from sklearn.utils.validation import check_is_fitted, validate_data

from censnet.data.molecules.featurize import canonical, featurize
from censnet.estimators import CensNetClassifier, CensNetRegressor
from censnet.ops.graph_set import GraphSet
from censnet.settings.presets import make_settings
from censnet.settings.schema import Settings

TINY = {
    "model.layers": "N",
    "model.hidden": 16,
    "model.head": [16],
    "model.norm": None,
    "model.dropout": 0.0,
    "model.pool": ["sum"],
    "model.pool_from": "nodes",
    "training.epochs": 20,
    "training.learning_rate": 0.03,
    "training.schedule": "constant",
    "training.warmup": 0.0,
    "training.batch_size": 1000,
}
QUICK = {"training.epochs": 10, "training.learning_rate": 0.1}
ALCOHOLS = ["CO", "CCO", "CCCO", "CC(C)O", "OCC=C", "OC1CCCC1", "OCCO", "CCCCO", "OCC#C", "CC(O)CC"]
SMILES = [*ALCOHOLS, *(text.replace("O", "N") for text in ALCOHOLS)]
KIND = ["alcohol"] * 10 + ["amine"] * 10
USUAL = {"settings": TINY, "validation_fraction": 0.0, "random_state": 0, "device": "cpu"}
ATOMS = [float(sum(letter.isalpha() for letter in text)) for text in SMILES]


def classifier(**parameters: Any) -> CensNetClassifier:
    return CensNetClassifier(**{**USUAL, **parameters})


def regressor(**parameters: Any) -> CensNetRegressor:
    return CensNetRegressor(**{**USUAL, **parameters})


@pytest.fixture(scope="module")
def fitted() -> CensNetClassifier:
    return classifier().fit(SMILES, KIND)


# -- scikit-learn's own checks -----------------------------------------------------------------------------------------


class Rows(BaseEstimator):
    """Each row of numbers is a graph of one node."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.one_d_array, tags.input_tags.string = True, False, False
        return tags

    def _make_settings(self, split: str) -> tuple[Settings, set[str]]:
        changes = {**TINY, **QUICK, "data.split": split, "data.fractions": (1.0, 0.0, 0.0)}
        settings, changed = super()._make_settings(split)
        return make_settings(self.preset, "graph", changes, settings.seed), changed

    def fit(self, X: Any, y: Any) -> Any:
        return super().fit(self._graphs(validate_data(self, X)), y)

    def _outputs(self, X: Any) -> Any:
        check_is_fitted(self)
        return super()._outputs(self._graphs(validate_data(self, X, reset=False)))

    @staticmethod
    def _graphs(X: Any) -> GraphSet:
        nodes = torch.tensor(np.asarray(X), dtype=torch.float32)
        none = torch.zeros(len(nodes) + 1, dtype=torch.long)
        each = torch.arange(len(nodes) + 1)
        return GraphSet(nodes, torch.zeros(0, 1), torch.zeros(2, 0, dtype=torch.long), each, none)


class RowClassifier(Rows, CensNetClassifier):
    """Classes of rows."""


class RowRegressor(Rows, CensNetRegressor):
    """Numbers of rows."""


WITHOUT_DATA = [
    "check_estimator_cloneable",
    "check_estimator_tags_renamed",
    "check_valid_tag_types",
    "check_estimator_repr",
    "check_no_attributes_set_in_init",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_mixin_order",
    "check_parameters_default_constructible",
    "check_get_params_invariance",
    "check_set_params",
    "check_estimators_unfitted",
]
NOT_FOR_US = {
    "check_array_api_input": "skipped by scikit-learn unless SCIPY_ARRAY_API is set; graphs are torch's",
    "check_classifiers_multilabel_output_format_decision_function": "there is no decision_function",
    "check_methods_subset_invariance": "asks for 1e-7; float32 in batches of other sizes agrees to 1e-5: see below",
}


@pytest.mark.slow
@parametrize_with_checks([RowClassifier(), RowRegressor()])
def test_scikit_learn_finds_nothing_wrong(estimator: BaseEstimator, check: partial[None]) -> None:
    if check.func.__name__ in NOT_FOR_US:
        pytest.skip(NOT_FOR_US[check.func.__name__])
    check(estimator)


@pytest.mark.parametrize("name", WITHOUT_DATA)
@pytest.mark.parametrize("kind", [CensNetClassifier, CensNetRegressor])
def test_scikit_learn_finds_nothing_wrong_with_the_estimators_as_they_are(kind: type[BaseEstimator], name: str) -> None:
    getattr(estimator_checks, name)(kind.__name__, kind())


def test_scikit_learn_knows_that_it_cannot_fit_such_input() -> None:
    with pytest.warns(SkipTestWarning, match="string=True"):
        check_estimator(CensNetClassifier())
    assert is_classifier(CensNetClassifier())
    assert is_regressor(CensNetRegressor())


# -- what goes in ------------------------------------------------------------------------------------------------------


def test_it_learns_and_the_predictions_are_in_the_order_of_the_rows(fitted: CensNetClassifier) -> None:
    assert fitted.score(SMILES, KIND) == 1.0
    order = np.random.default_rng(0).permutation(len(SMILES))
    shuffled = [SMILES[row] for row in order]
    assert fitted.predict(shuffled).tolist() == [KIND[row] for row in order]
    np.testing.assert_allclose(fitted.predict_proba(shuffled), fitted.predict_proba(SMILES)[order], atol=1e-5)
    one_by_one = np.concatenate([fitted.predict_proba([text]) for text in SMILES])
    np.testing.assert_allclose(one_by_one, fitted.predict_proba(SMILES), atol=1e-5)
    np.testing.assert_allclose(one_by_one.sum(1), 1)


@pytest.mark.parametrize(
    "form",
    [
        tuple,
        np.array,
        lambda rows: np.array(rows, dtype=object).reshape(-1, 1),
        lambda rows: pd.Series(rows, index=range(100, 100 + len(rows)), dtype="string"),
        lambda rows: pd.DataFrame({"name": range(len(rows)), "SMILES": rows}),
        lambda rows: pd.DataFrame({"what": rows}),
        lambda rows: featurize(rows).graphs,
        lambda rows: [featurize([text]).graphs[0] for text in rows],
    ],
    ids=["tuple", "array", "column", "series", "table", "one column", "graph set", "graphs"],
)
def test_molecules_come_in_many_forms(fitted: CensNetClassifier, form: Any) -> None:
    np.testing.assert_allclose(fitted.predict_proba(form(SMILES)), fitted.predict_proba(SMILES), atol=1e-6)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (["CCO", "C1CCC"], r"X, row 2, column smiles: not a molecule: 'C1CCC' \(unclosed ring\)"),
        (["CCO", None], "X, row 2: None is a NoneType, expected a SMILES"),
        (["CCO", 7], "X, row 2: 7 is a int, expected a SMILES"),
        ("CCO", "X is 'CCO', expected a list of SMILES"),
        ([], r"0 sample\(s\)"),
        (pd.DataFrame({"a": ["C"], "b": ["C"]}), "X: has the columns a, b, expected smiles"),
        (3, "X is 3, expected a list of SMILES"),
    ],
)
def test_what_is_no_molecule_is_an_error_that_names_its_row(fitted: CensNetClassifier, X: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fitted.predict(X)
    with pytest.raises(ValueError, match=message):
        classifier().fit(X, ["a", "b"][: len(X) if hasattr(X, "__len__") else 1])


def test_texts_are_refused_by_what_was_fitted_on_graphs() -> None:
    graphs = featurize(SMILES).graphs
    model = classifier().fit(graphs, KIND)
    assert model.score(graphs, KIND) == 1.0
    with pytest.raises(ValueError, match="X has texts, expected graphs"):
        model.predict(SMILES)
    assert not hasattr(model, "n_features_in_")  # a graph has no number of features, as a text has none


@pytest.mark.parametrize(
    ("parameters", "y", "message"),
    [
        ({}, ["a"] * 20, "y has one class, expected two or more classes"),
        ({}, [None, *KIND[1:]], "Input y contains NaN in row 1"),
        ({}, KIND[:-1], "inconsistent numbers of samples"),
        ({}, None, "requires y to be passed"),
        ({}, np.zeros((20, 0)), "y has no column"),
        ({"ensemble": 0}, KIND, "ensemble is 0, expected a whole number, at least 1"),
        ({"validation_fraction": 1.0}, KIND, "validation_fraction is 1.0, expected"),
        ({"settings": {"data.fractions": [1, 1, 1]}}, KIND, "expected validation_fraction"),
        ({"settings": {"model.hiden": 3}}, KIND, "did you mean model.hidden"),
        ({"preset": "weak"}, KIND, "preset is 'weak', expected one of strong, paper, released"),
    ],
)
def test_what_cannot_be_fitted_says_why(parameters: dict[str, Any], y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        classifier(**parameters).fit(SMILES, y)


# -- what comes out ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("names", [["b", "a"], [7, -3], [True, False], ["nan", " x "], [1.0, 0.0]])
def test_classes_are_the_users_own_in_the_order_of_numpy(names: list[Any]) -> None:
    y = np.array([names[kind == "amine"] for kind in KIND])
    model = classifier().fit(SMILES, y)
    assert model.classes_.tolist() == np.unique(y).tolist()
    assert model.classes_.dtype == y.dtype
    assert model.predict(SMILES).tolist() == y.tolist()
    likeliest = model.classes_[model.predict_proba(SMILES).argmax(1)]
    assert likeliest.tolist() == y.tolist()


def test_twelve_classes_keep_their_order() -> None:
    y = np.arange(len(SMILES)) % 12
    model = classifier(settings={**TINY, "training.epochs": 1}).fit(SMILES, y)
    assert model.run_.config.targets[0].classes == [str(number) for number in range(12)]  # 10 stands behind 9
    p = model.predict_proba(SMILES)
    np.testing.assert_allclose(p.sum(1), 1)
    assert model.predict(SMILES).tolist() == p.argmax(1).tolist()


def test_several_tasks_with_blanks_are_learned_and_scored_on_their_labeled_rows() -> None:
    y = np.array([[kind == "amine", "CC" in text] for kind, text in zip(KIND, SMILES, strict=True)], dtype=float)
    y[::4, 0], y[1::4, 1] = np.nan, np.nan
    model = classifier().fit(SMILES, y)
    first, second = model.predict_proba(SMILES)
    assert [names.tolist() for names in model.classes_] == [[0.0, 1.0], [0.0, 1.0]]
    prediction = model.predict(SMILES)
    assert prediction.shape == (20, 2)
    np.testing.assert_array_equal(prediction, np.stack([first.argmax(1), second.argmax(1)], axis=1))
    known = ~np.isnan(y)
    each = [accuracy_score(y[known[:, task], task], prediction[known[:, task], task]) for task in range(2)]
    assert model.score(SMILES, y) == pytest.approx(np.mean(each))
    assert each[0] == 1.0
    with pytest.raises(ValueError, match="column 2 of y has one class"):
        classifier().fit(SMILES, np.stack([y[:, 0], np.ones(20)], axis=1))


@pytest.mark.slow
def test_numbers_come_in_the_users_units() -> None:
    y = 1000 + 10 * np.array(ATOMS)
    model = regressor(settings={**TINY, "training.epochs": 60}).fit(SMILES, y)
    assert model.score(SMILES, y) > 0.8
    assert np.abs(model.predict(SMILES) - y).max() < 30
    both = regressor().fit(SMILES, pd.DataFrame({"size": y, "none": [np.nan, *ATOMS[1:]]})).predict(SMILES)
    assert both.shape == (20, 2)
    assert both[:, 0].min() > 900
    assert both[:, 1].max() < 100


@pytest.mark.slow
def test_the_same_seed_gives_the_same_model_and_another_another() -> None:
    first, again, other = (regressor(random_state=seed).fit(SMILES, ATOMS).predict(SMILES) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-3
    drawn = [regressor(random_state=np.random.RandomState(3)).fit(SMILES, ATOMS).predict(SMILES) for _ in range(2)]
    np.testing.assert_array_equal(*drawn)


def test_an_ensemble_averages_its_members() -> None:
    model = classifier(ensemble=2, settings={**TINY, "training.epochs": 1}).fit(SMILES, KIND)
    mean = model.predict_proba(SMILES)
    members, alone = model.run_.models, []
    for member in members:
        model.run_.models = [member]
        alone.append(model.predict_proba(SMILES))
    np.testing.assert_allclose(mean, np.mean(alone, axis=0), atol=1e-6)
    assert np.abs(alone[0] - alone[1]).max() > 1e-3


@pytest.mark.slow
def test_the_share_that_decides_which_epoch_is_kept() -> None:
    parts = {
        share: classifier(validation_fraction=share).fit(SMILES, KIND).run_.splits["split"].value_counts().to_dict()
        for share in (0.0, 0.2)
    }
    assert parts == {0.0: {"train": 20}, 0.2: {"train": 16, "validation": 4}}


def test_nothing_touches_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    regressor().fit(SMILES, ATOMS).predict(SMILES)
    assert list(tmp_path.iterdir()) == []


# -- among other estimators --------------------------------------------------------------------------------------------


def test_pickle_and_joblib_keep_every_bit(fitted: CensNetClassifier, tmp_path: Path) -> None:
    joblib.dump(fitted, tmp_path / "model.joblib")
    for copy in (pickle.loads(pickle.dumps(fitted)), joblib.load(tmp_path / "model.joblib")):
        np.testing.assert_array_equal(copy.predict_proba(SMILES), fitted.predict_proba(SMILES))
        assert copy.get_params() == fitted.get_params()


def test_a_clone_has_the_parameters_and_nothing_learned(fitted: CensNetClassifier) -> None:
    copy = clone(fitted).set_params(ensemble=3)
    assert copy.get_params() == {**fitted.get_params(), "ensemble": 3}
    with pytest.raises(NotFittedError):
        copy.predict(SMILES)


@pytest.mark.slow
@pytest.mark.parametrize("graphs", [SMILES, featurize(SMILES).graphs], ids=["texts", "graphs"])
def test_cross_validation(graphs: Any) -> None:
    found = cross_val_score(classifier(), graphs, KIND, cv=2, error_score="raise")
    assert found.mean() > 0.8


@pytest.mark.slow
def test_a_grid_of_settings_in_a_pipeline() -> None:
    steps = make_pipeline(FunctionTransformer(canonical), classifier())
    grid = {"censnetclassifier__settings": [{**TINY, "training.epochs": epochs} for epochs in (1, 20)]}
    search = GridSearchCV(steps, grid, cv=2, scoring="roc_auc", error_score="raise").fit(SMILES, KIND)
    assert search.best_params_["censnetclassifier__settings"]["training.epochs"] == 20
    assert search.predict(["CCCCCO", "CCCCCN"]).tolist() == ["alcohol", "amine"]


@pytest.mark.slow
def test_a_grid_search_reaches_the_main_settings_by_their_names() -> None:
    grid = {"hidden": [4, 16], "epochs": [1, 20], "learning_rate": [0.03], "dropout": [0.0], "layers": ["N"]}
    search = GridSearchCV(classifier(), grid, cv=2, error_score="raise").fit(SMILES, KIND)
    assert search.best_params_["epochs"] == 20
    settings = search.best_estimator_.run_.config.settings
    found = settings.model.hidden, settings.training.epochs, settings.training.learning_rate, settings.model.layers
    assert found == (search.best_params_["hidden"], 20, 0.03, "N")


def test_parameters_that_are_not_given_are_those_of_the_preset_and_others_take_precedence_over_settings() -> None:
    few = {name: value for name, value in TINY.items() if name not in ("model.hidden", "training.epochs")}
    model = classifier(settings={**few, "model": {"hidden": 8}}, epochs=1, batch_size=7)
    settings = clone(model).fit(SMILES, KIND).run_.config.settings
    assert (settings.model.hidden, settings.training.epochs, settings.training.batch_size) == (8, 1, 7)
    assert clone(model).set_params(hidden=4).fit(SMILES, KIND).run_.config.settings.model.hidden == 4
    for wrong in ({"hidden": "many"}, {"layers": 3}, {"epochs": 1.5}, {"hidden": 0}, {"layers": "X"}):
        with pytest.raises(ValueError, match=rf"{next(iter(wrong))} is .*, expected "):
            classifier(**wrong).fit(SMILES, KIND)


def test_a_settings_object_is_taken_as_it_is_and_stored() -> None:
    settings = make_settings("paper", "graph", {"model.hidden": 5, "training.epochs": 1})
    found = CensNetClassifier(settings=settings, random_state=3).fit(SMILES, KIND).run_.config.settings
    assert (found.preset, found.model.hidden, found.training.epochs, found.seed) == ("paper", 5, 1, 3)
    assert found.model == settings.model


@pytest.mark.slow
def test_probabilities_are_in_the_order_of_the_classes_whichever_is_positive() -> None:
    most = np.array([1] * 14 + [0] * 6)
    kind = np.where(np.arange(20) < 14, "CCO", "CCCCN")
    model = classifier().fit(list(kind), most)
    assert model.run_.config.targets[0].classes == ["1", "0"]  # the rarer is the positive one
    p = model.predict_proba(["CCO", "CCCCN"])
    assert (p.argmax(1) == [1, 0]).all()
    chosen = classifier(pos_label=1).fit(list(kind), most)
    assert chosen.run_.config.targets[0].classes == ["0", "1"]
    assert (chosen.predict(["CCO", "CCCCN"]) == [1, 0]).all()
    words = classifier(pos_label="alcohol").fit(SMILES, KIND)
    assert words.run_.config.targets[0].classes == ["1", "0"]
    with pytest.raises(ValueError, match=r"pos_label is 'x', expected one of \['alcohol', 'amine'\]"):
        classifier(pos_label="x").fit(SMILES, KIND)
    with pytest.raises(ValueError, match="pos_label is 'a', expected None: no column of y has two classes"):
        classifier(pos_label="a").fit(SMILES, ["a", "b", "c", "d"] * 5)


@pytest.mark.slow
def test_a_regressor_learns_from_limits_and_scores_exact_numbers() -> None:
    limited = [">4" if atoms > 4 else str(atoms) for atoms in ATOMS]
    model = regressor(settings=TINY | {"training.epochs": 40}).fit(SMILES, limited)
    (target,) = model.run_.config.targets
    assert "labels are censored (0 <, " in target.reason
    assert target.high is None
    exact = [text for text, atoms in zip(SMILES, ATOMS, strict=True) if atoms <= 4]
    numbers = [atoms for atoms in ATOMS if atoms <= 4]
    assert model.score(SMILES, limited) == pytest.approx(model.score(exact, numbers))
    assert model.run_.metrics["train"]["graph"]["censored_rows"] == len(ATOMS) - len(exact)
    with pytest.raises(ValueError, match="y, row 2: 'many' is no number, expected one, or a limit such as '>10'"):
        regressor().fit(SMILES[:4], [">4", "many", "3", "2"])
