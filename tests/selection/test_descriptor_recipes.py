"""Descriptors of molecules at the head: where they are tried, and that validation selects."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console
from samples import payments, quick, smiles

from censnet.cli.render_run import run_screen
from censnet.errors import DataError
from censnet.pipeline import resume_run, train
from censnet.pipeline.prepare import prepare
from censnet.runs import load_run

SHORT = quick(training__epochs=3)
CUBES = {"data.descriptors": "compare", "data.fractions": (0.6, 0.2, 0.2)}


def tried(data: object, target: str = "graph:size=regression", preset: str = "strong", **changes: object) -> list[bool]:
    """Whether descriptors are features in each training, and that the data have them where one needs them."""
    settings = {name.replace("__", "."): value for name, value in changes.items()}
    prepared = prepare(data, target, preset, settings)
    found = [one.data.descriptors for one in prepared.recipes]
    assert not any(found) or prepared.task_data.descriptors > 100
    return [value is True for value in found]


def test_descriptors_are_tried_for_hundreds_of_molecules_with_validation_rows():
    assert tried(smiles(199)) == [False]
    assert tried(smiles(200)) == [False, True]
    assert tried(smiles(200), preset="paper") == [False]
    assert tried(smiles(200), data__fractions=(0.8, 0, 0.2)) == [False], "nothing to choose by"
    assert tried(smiles(200), data__descriptors=True) == [True]
    assert tried(smiles(200), data__descriptors=False) == [False]
    assert tried(smiles(30), data__descriptors="compare") == [False, True]
    with pytest.raises(DataError, match="descriptors are asked for"):
        prepare(payments(), "edge:fraud", changes={"data.descriptors": "compare"})


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_better_of_both_trainings_on_validation_is_the_run(seed: int, tmp_path: Path):
    """It is the training that one gets by asking for it, to the bit, and without descriptors it has none."""
    data = smiles(60, seed)
    data["size"] += data["smiles"].str.len() % 3
    runs = {
        value: train(data, "graph:size", settings=SHORT | CUBES | {"data.descriptors": value}, seed=seed)
        for value in (False, True)
    }
    both = train(data, "graph:size", tmp_path / "run", settings=SHORT | CUBES, seed=seed)
    assert both.config.selection is not None
    assert [one.descriptors for one in both.config.selection.candidates] == [False, True]
    scores = [runs[value].metrics["validation"]["graph"]["rmse"] for value in (False, True)]
    assert both.config.selection.best[0] == pytest.approx(scores)
    chosen = scores[1] < scores[0]
    assert both.config.settings.data.descriptors is chosen
    assert (both.schema.descriptors.width > 0) is chosen
    expected = runs[chosen]
    pd.testing.assert_frame_equal(both.predict(data), expected.predict(data))
    pd.testing.assert_frame_equal(load_run(tmp_path / "run").predict(data), expected.predict(data))
    console = Console(width=200)
    with console.capture() as screen:
        console.print(run_screen(both))
    said = "RDKit descriptors, which predictions also take time for" if chosen else "selected on validation: no descr"
    assert said in screen.get()


def test_an_ensemble_selects_by_the_mean_of_its_members_and_it_can_be_made_longer(tmp_path: Path):
    data, path = smiles(60), tmp_path / "molecules.csv"
    data.to_csv(path, index=False)
    target, settings = "graph:size=regression", SHORT | CUBES
    run = train(str(path), target, tmp_path / "run", settings=settings, ensemble=2)
    assert run.config.selection is not None
    assert len(run.config.selection.best) == 2
    again = train(str(path), target, tmp_path / "run", settings=settings, ensemble=2, if_exists="resume")
    pd.testing.assert_frame_equal(again.predict(data), run.predict(data))

    longer = resume_run(tmp_path / "run", settings={"training.epochs": 4})
    assert longer.config.selection is not None
    assert [one.descriptors for one in longer.config.selection.candidates] == [False, True]
