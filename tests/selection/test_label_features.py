"""Counts and factors of known labels: where they are tried, and that validation selects."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from censnet.cli.render_run import run_screen
from censnet.data.tables.files import Tables
from censnet.errors import SettingsError
from censnet.pipeline import train
from censnet.pipeline.prepare import prepare
from censnet.pipeline.resolve import COMPARED_EPOCHS
from censnet.runs import load_run

SHORT = {"training.epochs": 4, "model.hidden": 8, "model.head": [8]}
KNOWN = {"label_counts": True, "label_factors": True}


def transfers(rare: float = 0.03, count: int = 800, people: int = 100) -> Tables:
    """Transfers between people, of which a few receive most of the fraud."""
    rng = np.random.default_rng(0)
    ends = rng.integers(0, people, (2, count))
    fraud = rng.permutation(count) < rare * count
    ends[1, fraud] = rng.integers(0, 4, fraud.sum())
    edges = pd.DataFrame({"source": ends[0], "target": ends[1], "fraud": np.where(fraud, "yes", "no")})
    return Tables(edges=edges)


def ratings(users: int = 30, items: int = 40, count: int = 1200) -> Tables:
    """Ratings of items by users."""
    rng = np.random.default_rng(0)
    pair = rng.permutation(users * items)[:count]
    source, target = pair // items, pair % items
    names = np.char.add("u", source.astype(str)), np.char.add("i", target.astype(str))
    rating = rng.normal(size=users)[source] + rng.normal(size=items)[target] + rng.normal(size=count)
    return Tables(edges=pd.DataFrame({"source": names[0], "target": names[1], "rating": rating}))


def tried(data: object, target: str, preset: str = "strong", **changes: object) -> list[tuple[bool, bool]]:
    """Whether counts and factors are inputs of each training."""
    settings = {name.replace("__", "."): value for name, value in changes.items()}
    recipes = prepare(data, target, preset, settings).recipes
    return [(one.model.label_counts, one.model.label_factors) for one in recipes]


def test_counts_are_tried_where_a_class_is_rare_and_factors_where_nodes_have_many_ratings():
    without, counts, both = (False, False), (True, False), (True, True)
    assert tried(transfers(), "edge:fraud") == [without, counts]
    assert tried(transfers(rare=0.2), "edge:fraud") == [without]
    assert tried(transfers(), "edge:fraud", model__known_labels=False) == [without]
    assert tried(transfers(), "edge:fraud", preset="paper") == [without]
    assert tried(transfers(), "edge:fraud", data__fractions=(0.8, 0, 0.2)) == [without], "nothing to choose by"
    assert tried(transfers(), "edge:fraud", model__label_counts=True) == [counts]
    assert tried(transfers(), "edge:fraud", model__label_counts=False) == [without]
    assert tried(ratings(), "edge:rating") == [without, both]
    assert tried(ratings(), "edge:rating", training__sampling="neighbors") == [without]
    assert tried(ratings(count=900), "edge:rating") == [without], "18 training ratings of an item"


def test_two_trainings_have_fewer_epochs_each_unless_their_number_is_asked_for():
    one, two = (prepare(transfers(rare), "edge:fraud").recipes[0].training.epochs for rare in (0.2, 0.03))
    assert two == round(COMPARED_EPOCHS * one)
    assert [each.training.epochs for each in prepare(transfers(), "edge:fraud", changes=SHORT).recipes] == [4, 4]


@pytest.mark.parametrize("name", KNOWN)
def test_they_need_known_labels(name):
    asked = {"model.known_labels": False, f"model.{name}": True}
    with pytest.raises(SettingsError, match=rf"model\.{name} is true, expected false or auto: model\.known_labels is"):
        prepare(transfers(), "edge:fraud", changes=asked)


def test_validation_selects_and_a_loaded_run_answers_the_same(tmp_path):
    data = transfers()
    run = train(data, "edge:fraud", tmp_path / "run", settings=SHORT)
    selection = run.config.selection
    assert [one.label_features for one in selection.candidates] == [False, True]
    assert selection.best[0][selection.selected[0]] == max(selection.best[0])
    assert run.config.settings.model.label_counts is selection.candidates[selection.selected[0]].label_features
    console = Console(file=io.StringIO(), width=200)
    console.print(run_screen(run))
    assert "2 trainings; selected on validation: " in console.file.getvalue()
    assert "counts of known labels" in console.file.getvalue()
    found = load_run(tmp_path / "run").predict(data)
    pd.testing.assert_frame_equal(found, run.predict(data))


@pytest.mark.parametrize(("data", "target", "other"), [(transfers(), "fraud", "yes"), (ratings(), "rating", 9.0)])
def test_the_label_of_a_row_does_not_reach_its_answer(data, target, other):
    asked = {**SHORT, **{f"model.{name}": True for name in KNOWN}}
    run = train(data, f"edge:{target}", settings=asked)
    edges = data.edges.copy()
    row = int((edges[target] != other).to_numpy().nonzero()[0][3])
    edges.loc[row, target] = other
    column = "fraud_p_yes" if target == "fraud" else "rating_predicted"
    before, after = (run.predict(one)[column].to_numpy() for one in (data, Tables(edges=edges)))
    assert before[row] == after[row], "bit by bit"
    if run.config.shows_labels:
        assert (before != after).any()
    hidden = [run.predict(one, known_labels=False)[column] for one in (data, Tables(edges=edges))]
    assert hidden[0].equals(hidden[1])
