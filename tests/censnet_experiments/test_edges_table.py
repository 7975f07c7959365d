"""Every kind of method of the table `edges`, on tiny tasks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import roc_auc_score

from censnet.data.tables.files import Tables
from censnet.errors import ArgumentError
from censnet.levels import Level
from censnet.pipeline.prepare import prepare
from censnet.pipeline.train import train
from censnet_experiments.cells import find_cell
from censnet_experiments.edge_tasks import (
    EdgeTask,
    bond_task,
    direction_task,
    grid_task,
    karate_task,
    otc_task,
    patterns_task,
)
from censnet_experiments.edge_trees import describe_history, fit_trees
from censnet_experiments.edges.bde import bond_data
from censnet_experiments.edges.grids import grid_data
from censnet_experiments.edges_table import train_task
from censnet_experiments.plan import EdgePeer, Pipeline, Plan, Recipe, Trees
from censnet_experiments.records import Record, append, missing_seeds, record_path
from censnet_experiments.runner import reproduce
from censnet_experiments.spec import find_spec, load_specs

CPU = torch.device("cpu")
FEW = {"training.epochs": 15}


@pytest.fixture
def direction() -> EdgeTask:
    return direction_task(find_cell("edges", "direction"), 0, num_nodes=60, num_edges=500)


def run(method: str, cell: str, task: EdgeTask) -> Record:
    """The record of a method with fewer epochs."""
    plan = find_spec("edges", method).plan()
    if isinstance(plan.recipe, Pipeline):
        plan = replace(plan, recipe=replace(plan.recipe, changes={**plan.recipe.changes, **FEW}))
    if isinstance(plan.recipe, EdgePeer):
        plan = replace(plan, recipe=replace(plan.recipe, epochs=40, learning_rates=(0.01,)))
    return train_task(plan, (cell, 0), task, CPU)


@pytest.mark.slow
def test_strong_is_what_train_gives(direction: EdgeTask) -> None:
    record = run("strong", "direction", direction)
    expected = train(direction.stated(), "edge:label", settings=FEW)
    assert record.metrics["auc"] == pytest.approx(expected.metrics["test"]["edge"]["auc"], abs=1e-5)
    assert record.metrics["validation_auc"] == pytest.approx(expected.metrics["validation"]["edge"]["auc"], abs=1e-5)
    assert record.chosen["epoch"] == expected.config.best_epoch[0]
    assert record.chosen["shows_labels"] == float(expected.config.shows_labels)
    assert record.settings["resolved"]["training"]["epochs"] == 15
    assert record.metrics["auc"] > 0.9


@pytest.mark.slow
def test_without_direction_the_label_is_chance(direction: EdgeTask) -> None:
    assert abs(run("strong-no-direction", "direction", direction).metrics["auc"] - 0.5) < 0.3


@pytest.mark.slow
@pytest.mark.parametrize("method", ["gine", "transformer"])
def test_peers_see_direction(direction: EdgeTask, method: str) -> None:
    record = run(method, "direction", direction)
    assert record.metrics["auc"] > 0.8
    assert (record.num_candidates, record.chosen["learning_rate"]) == (1, 0.01)


@pytest.mark.slow
def test_trees_of_edges_and_of_nodes(direction: EdgeTask) -> None:
    raw = run("trees-raw", "direction", direction)
    assert raw.metrics["auc"] > 0.9
    assert (raw.chosen["features"], raw.chosen["shows_labels"], raw.num_candidates) == (2, 0, 3)
    patterns = patterns_task(find_cell("edges", "patterns-deg-in"), 0, num_nodes=600)
    assert run("trees", "patterns-deg-in", patterns).metrics["f1"] > 0.95
    karate = run("trees", "karate-9", karate_task(find_cell("edges", "karate-9"), 0))
    assert karate.metrics["accuracy"] >= 0.5


def rated_in_time(count: int = 800) -> Tables:
    """Ratings that follow from who is rated, one after the other."""
    draw = np.random.default_rng(0)
    source, target = draw.integers(0, 40, (2, count))
    sign = (draw.random(count) < np.where(target < 8, 0.1, 0.95)).astype(int)
    edges = pd.DataFrame({"source": source, "target": target, "rating": 2 * sign - 1, "time": range(count)})
    return Tables(edges=edges.assign(sign=sign))


@pytest.mark.slow
def test_trees_by_time_choose_how_labels_are_shown() -> None:
    record = run("trees-gaps", "otc-sign-time", otc_task(rated_in_time(), find_cell("edges", "otc-sign-time"), 3))
    assert (record.num_candidates, record.split_seed) == (9, 0)
    assert record.metrics["auc"] > 0.8
    assert record.metrics["ap"] > 0.5


@pytest.mark.slow
def test_trees_of_a_stream_read_the_past_alone() -> None:
    cell = find_cell("edges", "otc-sign-stream")
    tables = rated_in_time()
    record = run("trees", "otc-sign-stream", otc_task(tables, cell, 3))
    assert (record.num_candidates, record.split_seed) == (3, 0)
    assert record.metrics["auc"] > 0.8
    found = []
    for changed in (None, 500):
        edges = tables.edges.copy()
        if changed is not None:  # its own label, and all that comes later, is something else
            edges.loc[changed:, "sign"] = np.roll(edges.loc[changed:, "sign"], 3)
        task = otc_task(tables.with_frames({"edges": edges}), cell, 0)
        prepared = prepare(task.stated(), list(task.targets), "strong", {**task.settings, "data.time": task.time}, 0)
        data = prepared.task_data.with_inputs(prepared.settings.model)
        found.append(describe_history(data, prepared.settings))
    assert data.graph.times is not None
    past = data.graph.times.numpy() <= 500  # rows of a graph have an order of their own
    assert (found[0][past] == found[1][past]).all()
    assert (found[0][~past] != found[1][~past]).any()


@pytest.mark.slow
def test_predictions_of_a_stream_are_in_the_order_of_the_table() -> None:
    task = otc_task(rated_in_time(), find_cell("edges", "otc-sign-stream"), 0)
    found = fit_trees(Trees("graph"), task, 0, ["auc"]).predicted["sign"]["test"]
    edges = task.tables.frames()["edges"].iloc[task.split.test.numpy()]
    assert (found.labels == 1 - edges["sign"].to_numpy()).all(), "the rarer sign is the positive class"
    assert roc_auc_score(edges["target"] < 8, found.values) > 0.8, "who is rated says the sign"


@pytest.mark.slow
def test_ablations_change_what_they_say(direction: EdgeTask) -> None:
    for method, spec in load_specs("edges").items():
        if isinstance(spec.recipe, Pipeline) and method != "strong" and spec.is_for("direction"):
            resolved = spec.plan().settings("direction")
            assert resolved != find_spec("edges", "strong").plan().settings("direction"), method
    stream = find_spec("edges", "strong-no-edge-stream").recipe.changes_for("edge")
    assert set(stream["model.layers"]) == {"N"}


def test_answers_of_a_column_are_scored(direction: EdgeTask) -> None:
    labels = direction.tables.edges["label"]
    task = replace(direction, peers={"label": labels + 0.1})
    plan = find_spec("edges", "dc-flow").plan()
    record = train_task(plan, ("otc-rating", 0), task, CPU)
    assert record.metrics == {"rmse": 0.1, "validation_rmse": 0.1}
    with pytest.raises(ArgumentError, match="no answers of a simpler model"):
        train_task(plan, ("otc-rating", 0), direction, CPU)


def test_a_recipe_of_another_table_is_refused(direction: EdgeTask) -> None:
    with pytest.raises(ArgumentError, match="gcn has no recipe of the table edges"):
        train_task(Plan("edges", "gcn", Recipe("gcn")), ("direction", 0), direction, CPU)


@pytest.mark.slow
def test_records_are_resumed_by_seed_and_checked(tmp_path: Path) -> None:
    reproduce("edges", ["direction"], ["trees-raw"], seeds=1, results=tmp_path)
    path = record_path(tmp_path, "edges", "direction", "trees-raw")
    plan = find_spec("edges", "trees-raw").plan()
    assert missing_seeds(path, plan, range(3)) == [1, 2]
    other = replace(plan, recipe=replace(plan.recipe, ensemble=1))
    with pytest.raises(ValueError, match="has records with another ensemble"):
        missing_seeds(path, other, range(3))


def test_settings_of_a_record_are_those_of_the_section_of_its_cell(tmp_path: Path) -> None:
    plan = find_spec("edges", "strong").plan()
    of_edges, of_nodes = plan.settings("direction"), plan.settings("karate")
    assert of_edges["resolved"]["model"]["layers"] != of_nodes["resolved"]["model"]["layers"]
    assert "resolved_high_label" in of_nodes
    record = Record.of(plan, ("karate", 0), {"accuracy": 1.0}, 1.0, CPU)
    path = record_path(tmp_path, "edges", "karate", "strong")
    append(path, [record])
    assert missing_seeds(path, plan, range(2)) == [1]


def test_a_method_is_for_its_cells(tmp_path: Path) -> None:
    gaps = find_spec("edges", "trees-gaps")
    assert gaps.is_for("otc-sign")
    assert not gaps.is_for("karate")
    with pytest.raises(ArgumentError, match="trees-gaps is not for karate"):
        reproduce("edges", ["karate"], ["trees-gaps"], results=tmp_path)


@pytest.fixture
def grid() -> EdgeTask:
    """Twelve samples of a ring of six nodes, whose flows are the differences of angles, and a peer with an error."""
    draw = np.random.default_rng(0)
    ends = np.array([[number, (number + 1) % 6] for number in range(6)])
    angle = draw.normal(size=(12, 6))
    flow = angle[:, ends[:, 0]] - angle[:, ends[:, 1]]
    nodes = np.stack([angle + 0.1 * draw.normal(size=(12, 6)), angle], 2)
    edges = np.concatenate([np.tile(ends, (12, 1, 1)), np.stack([draw.random((12, 6)), flow, flow + 0.1], 2)], 2)
    data = grid_data(nodes, edges, ["p_in", "Va*"], ["from", "to", "r", "P*", "P_dc"])
    return grid_task(data, find_cell("edges", "case118"), 0)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["strong", "strong-no-edge-features", "trees", "gine", "dc-flow"])
def test_flows_and_angles_are_predicted_together(grid: EdgeTask, method: str) -> None:
    record = run(method, "case118", grid)
    assert {"nrmse_P", "validation_nrmse_P"} <= set(record.metrics)
    assert ("nrmse_Va" in record.metrics) == (method != "dc-flow")
    labels = grid.tables.edges["P"].to_numpy()[grid.rows(Level.EDGE).test]
    if method == "dc-flow":
        assert record.metrics["nrmse_P"] == pytest.approx(0.1 / labels.std(), abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["strong", "gine", "trees"])
def test_bonds_are_predicted_for_molecules(method: str) -> None:
    smiles = ["CO", "CCO", "CN", "CCN", "CCC", "CC", "COC", "CCCO"]
    rows = [
        {"molecule": one, "bond_index": bond, "bde": 80.3 + bond / 7, "bdfe": 70.1 + bond / 9, "set": part}
        for one, part in zip(smiles, ["train"] * 5 + ["valid"] + ["test"] * 2, strict=True)
        for bond in range(3)
    ]
    record = run(method, "bde", bond_task(bond_data(pd.DataFrame(rows)), find_cell("edges", "bde"), 0))
    assert {"mae_bde", "mae_bdfe", "validation_mae_bde", "validation_mae_bdfe"} == set(record.metrics)
    assert record.split_seed == 0
