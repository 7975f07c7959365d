"""Arguments of the wrong type are refused in one line that names them, wherever a user calls the library."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from samples import payments, quick

from censnet import load_run, replicate, train
from censnet.data import load_data
from censnet.errors import ArgumentError
from censnet.estimators import CensNetClassifier
from censnet.pipeline import resume_run
from censnet.runs import Run
from censnet.settings import make_settings

WRONG = [
    ("target", 3, "target is 3, expected text, a TargetSpec, a tuple, a list or a Target, such as node:COLUMN"),
    ("target", None, "target is None, expected text"),
    ("target", ["node:vip", 3], "target is 3, expected node:COLUMN, edge:COLUMN"),
    ("settings", ["model.hidden=3"], "settings is .*, expected a Settings, a dictionary or None, such as"),
    ("settings", {3: 4}, "settings is {3: 4}, expected a Settings, a dictionary"),
    ("ensemble", 1.5, "ensemble is 1.5, expected a whole number"),
    ("ensemble", True, "ensemble is True, expected a whole number"),
    ("out", 5, "out is 5, expected a path or None"),
    ("seed", "a", "seed is 'a', expected a whole number"),
    ("preset", None, "preset is None, expected text"),
    ("overrides", ["a"], "overrides is .*, expected a dictionary of text or None"),
    ("overrides", {"age": 3}, "overrides is .*, expected a dictionary of text or None"),
    ("strict", "no", "strict is 'no', expected True or False"),
    ("if_exists", "banana", "if_exists is 'banana', expected 'error', 'resume' or 'overwrite'"),
    ("progress", 1, "progress is 1, expected True or False"),
]


@pytest.mark.parametrize(("name", "value", "message"), WRONG)
def test_an_argument_of_the_wrong_type_is_named_with_what_was_found_and_what_is_expected(name, value, message):
    with pytest.raises(ArgumentError, match=message) as caught:
        train(**{"data": "karate", "target": "node:faction", name: value})
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, TypeError)  # and a ValueError, as all errors of the library are


@pytest.mark.parametrize("data", [None, 5, [], ["CCO"], np.ones(3)])
def test_data_of_no_known_type_are_named(data):
    with pytest.raises(ValueError, match=f"data is a {type(data).__name__}, expected a path, a name, a table"):
        train(data, "node:y")


@pytest.mark.parametrize("path", [None, 5, b"x", ["a"]])
@pytest.mark.parametrize("function", [load_run, resume_run])
def test_a_path_that_is_none_is_named(function, path):
    with pytest.raises(ArgumentError, match="expected a path"):
        function(path)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda run: run.predict(payments(), keep="banana"), "keep is 'banana', expected 'ids' or 'all'"),
        (lambda run: run.predict(payments(), 3), "level is 3, expected text or None"),
        (lambda run: run.predict(payments(), pairs=[("a", "b")]), "pairs is .*, expected a DataFrame or None"),
        (lambda run: run.predict(payments(), top="3"), "top is '3', expected a whole number or None"),
        (lambda run: run.embed(payments(), strict="yes"), "strict is 'yes', expected True or False"),
        (lambda run: run.evaluate(payments(), progress=3), "progress is 3, expected True or False"),
        (lambda run: run.save(None), "path is None, expected a path"),
        (lambda _: load_data("karate", features="banana"), "features is 'banana', expected 'rich', 'paper' or"),
        (lambda _: load_data("karate", schema=3), "schema is 3, expected a Schema or None"),
        (lambda _: replicate("karate", "node:faction", replicates=2, vary="banana"), "expected 'both', 'split' or"),
        (lambda _: replicate("karate", "node:faction", replicates=2.5), "replicates is 2.5, expected a whole number"),
        (lambda _: make_settings("strong", "node", ["a"]), "changes is .*, expected a Settings, a dictionary"),
        (lambda _: load_data("karate").results("node", pd.DataFrame(), keep="banana"), "keep is 'banana', expected"),
    ],
)
def test_choices_and_types_of_other_calls_are_checked_too(call, message, run):
    with pytest.raises(ArgumentError, match=message):
        call(run)


@pytest.fixture(scope="module")
def run() -> Run:
    return train(payments(), "node:vip", settings=quick(training__epochs=1))


@pytest.mark.parametrize(("name", "value"), [("preset", 3), ("settings", ["a"]), ("settings", {3: 4})])
def test_an_estimator_names_its_parameter(name, value):
    with pytest.raises(ArgumentError, match=f"{name} is "):
        CensNetClassifier(**{name: value}).fit(["CCO", "CCN"] * 4, [0, 1] * 4)


def test_what_is_right_is_taken(tmp_path):
    settings = quick(training__epochs=1)
    run = train(payments(), ("node:vip",), Path(tmp_path) / "run", seed=np.int64(3), settings=settings)
    assert run.config.settings.seed == 3
    assert len(run.predict(payments(), keep="ids", top=None)) == 30
