from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
import samples

from censnet.comparison import compare, load_comparison, run
from censnet.comparison.methods import METHODS, OURS, Method
from censnet.comparison.records import FILE, Record
from censnet.data.tables.files import Tables
from censnet.errors import DataError, RunError
from censnet.pipeline import train

EPOCHS = {"training.epochs": 2, "model.hidden": 8}


@pytest.fixture
def quick_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few trees: what is tested here is not how good they are."""
    from censnet.comparison import boosted_trees

    monkeypatch.setattr(boosted_trees, "STEP", 10)
    quick = (boosted_trees.TreeSettings(0.2, max_leaf_nodes=8, min_samples_leaf=5, max_iter=30),)
    for name in ("CANDIDATES", "FEW_ROWS"):
        monkeypatch.setattr(boosted_trees, name, quick)


@pytest.mark.slow
def test_every_method_has_the_split_of_train(tmp_path, quick_trees):
    data = samples.payments()
    found = compare(data, ["edge:fraud", "node:vip"], tmp_path / "out", seeds=1, settings=EPOCHS)
    alone = train(data, ["edge:fraud", "node:vip"], settings=EPOCHS)
    scores = found.scores.query(f"method == '{OURS}' and part == 'test' and level == 'edge' and metric == 'fraud/auc'")
    assert scores["value"].item() == alone.metrics["test"]["edge"]["fraud/auc"]
    table = found.table
    assert set(table["target"]) == {"edge:fraud", "node:vip"}
    assert set(table["method"]) >= {method.name for method in METHODS if method.key != "forest"}
    assert table[table["note"] == ""]["mean"].notna().all()
    stored = json.loads((tmp_path / "out" / FILE).read_text())
    assert stored["sentence"] == found.sentence
    assert len(stored["table"]) == len(table)
    pd.testing.assert_frame_equal(load_comparison(tmp_path / "out").table, table)


@pytest.mark.slow
def test_a_killed_comparison_goes_on_where_it_was(tmp_path, quick_trees, monkeypatch):
    frame = samples.smiles()
    target = "graph:size"
    whole = compare(frame, target, tmp_path / "whole", seeds=1, settings=EPOCHS).scores
    real, ran = run.run_method, list[str]()

    def killed(method: Method, *rest: Any) -> Record:
        if method.key == OURS:
            raise KeyboardInterrupt
        return real(method, *rest)

    def noted(method: Method, *rest: Any) -> Record:
        ran.append(method.key)
        return real(method, *rest)

    monkeypatch.setattr(run, "run_method", killed)
    with pytest.raises(KeyboardInterrupt):
        compare(frame, target, tmp_path / "part", seeds=1, settings=EPOCHS)
    before = load_comparison(tmp_path / "part")
    assert [one.method for one in before.stored.records] == ["trees-own", "trees-neighbors", "forest"]
    monkeypatch.setattr(run, "run_method", noted)
    again = compare(frame, target, tmp_path / "part", seeds=1, settings=EPOCHS, if_exists="resume")
    assert ran[0] == OURS
    pd.testing.assert_frame_equal(again.scores, whole)
    with pytest.raises(RunError, match="was started with changes"):
        compare(frame, target, tmp_path / "part", settings={}, if_exists="resume")
    stored = json.loads((tmp_path / "part" / FILE).read_text())
    stored["records"].pop()  # so that the data are read again
    (tmp_path / "part" / FILE).write_text(json.dumps(stored))
    with pytest.raises(RunError, match="the data are not those"):
        compare(frame.iloc[:-2], target, tmp_path / "part", seeds=1, settings=EPOCHS, if_exists="resume")
    with pytest.raises(RunError, match="holds a comparison"):
        compare(frame, target, tmp_path / "part", settings=EPOCHS)


@pytest.mark.slow
def test_bad_rows_and_missing_labels_stay_out_for_every_method(quick_trees):
    draw = np.random.default_rng(0)
    edges = pd.DataFrame(
        {
            "source": draw.integers(0, 20, 120),
            "target": draw.integers(0, 20, 120),
            "amount": [f"{value:.2f}" for value in draw.lognormal(size=120)],
            "fee": np.where(draw.random(120) < 0.2, np.nan, draw.normal(size=120)),
            "late": draw.choice(["yes", "no"], 120),
        }
    )
    edges.loc[4, "amount"] = "lots"
    found = compare(edges, "edge:fee,late", seeds=1, settings=EPOCHS).table
    assert found[found["note"] == ""]["mean"].notna().all()
    assert set(found["metric"]) == {"rmse", "mae", "r2", "auc", "ap", "accuracy"}


@pytest.mark.slow
def test_links_are_compared_with_the_ablations_alone():
    found = compare("karate", "link", seeds=1, settings={"training.epochs": 2}).table
    notes = found.set_index("method")["note"]
    assert notes["trees on neighbors"] == "links are predicted, and trees predict columns"
    assert found.query("method == 'CensNet'")["mean"].notna().all()


@pytest.mark.slow
def test_trees_win_where_neighbors_say_nothing_and_are_said_to(quick_trees):
    draw = np.random.default_rng(0)
    x = draw.normal(size=(500, 2))
    steps = ((x[:, 0] > 0.5) ^ (x[:, 1] > -0.3)).astype(int)  # which trees split at once
    edges = pd.DataFrame({"source": draw.integers(0, 400, 500), "target": draw.integers(0, 400, 500)})
    edges = edges.assign(a=x[:, 0], b=x[:, 1], label=steps)
    found = compare(Tables(edges=edges), "edge:label", seeds=3, settings={"training.epochs": 1, "model.hidden": 8})
    assert re.search(r"trees on (own columns|neighbors) are better than CensNet by", found.sentence), found.sentence


def test_a_folder_that_holds_something_else_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(RunError, match=re.escape("notes.txt")):
        compare("karate", "node:faction", tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / FILE).write_text('{"start": 7}')
    with pytest.raises(RunError, match="is not a comparison: start"):
        compare("karate", "node:faction", tmp_path / "other", if_exists="resume")


def test_data_without_a_label_to_compare_on_say_so_before_a_training() -> None:
    edges = pd.DataFrame({"source": [0, 1, 2], "target": [1, 2, 0], "amount": [1.0, 2.0, 3.0], "late": [1, 0, 0]})
    with pytest.raises(DataError, match="no test row has a label of edge:late, expected some to compare on"):
        compare(edges, "edge:late", seeds=1, settings={"training.epochs": 1, "model.hidden": 4})
