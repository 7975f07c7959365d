from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from censnet.data.splits.split_file import Split
from censnet.data.tables.files import Tables
from censnet.errors import ArgumentError
from censnet.levels import Level
from censnet.pipeline.prepare import prepare
from censnet_experiments.cells import TABLES, find_cell
from censnet_experiments.edge_tasks import (
    EdgeTasks,
    bond_task,
    direction_task,
    grid_task,
    karate_task,
    make_task,
    otc_task,
    patterns_task,
    payments_task,
    unseen_task,
)
from censnet_experiments.edges.bde import bond_data
from censnet_experiments.edges.grids import grid_data
from censnet_experiments.edges.payments import simulate_payments


def sizes(split: Split) -> list[int]:
    return [len(rows) for rows in split.parts.values()]


def test_direction_is_all_that_its_label_depends_on():
    task = direction_task(find_cell("edges", "direction"), 3, num_nodes=60, num_edges=400)
    x, edges = task.tables.nodes["x"].to_numpy(), task.tables.edges
    assert ((x[edges["source"]] < x[edges["target"]]) == edges["label"]).all()
    assert (edges["source"] != edges["target"]).all()
    assert sizes(task.split) == [320, 40, 40]
    assert (task.columns("edges"), task.columns("nodes")) == ([], ["x"])


def test_payments_are_split_at_random_or_by_time():
    tables = simulate_payments(2_000, seed=1)
    cells = [find_cell("edges", name) for name in ("payments", "payments-time")]
    drawn, other = (payments_task(tables, cells[0], seed) for seed in (0, 1))
    by_time = payments_task(tables, cells[1], 1)
    assert not torch.equal(drawn.split.test, other.split.test)
    assert by_time.time == "time"
    time = by_time.tables.edges["time"].to_numpy()
    assert time[by_time.split.train].max() < time[by_time.split.test].min()
    assert set(by_time.columns("edges")) == {"time", "amount", "currency", "channel"}
    stated = by_time.stated(edge_columns=False).edges
    assert list(stated) == ["source", "target", "is_fraud", "split"]
    assert (stated["split"] == "test").sum() == len(by_time.split.test)


def test_a_label_of_otc_does_not_come_with_the_other():
    edges = pd.DataFrame({"source": range(20), "target": range(1, 21), "rating": 5, "time": range(20), "sign": 1})
    for cell, left in (("otc-sign", "sign"), ("otc-rating", "rating"), ("otc-sign-time", "sign")):
        task = otc_task(Tables(edges=edges), find_cell("edges", cell), 0)
        assert list(task.tables.edges) == [name for name in edges if name not in {"sign", "rating"} - {left}]
        assert task.columns("edges") == ["time"]


def test_patterns_are_three_graphs_one_for_each_part():
    task = patterns_task(find_cell("edges", "patterns-fan-in"), 2, num_nodes=64)
    assert list(task.tables.nodes) == ["id", "fan_in", "graph"]
    assert sizes(task.rows(Level.NODE)) == [64, 64, 64]
    assert list(task.stated().graphs["split"]) == ["train", "validation", "test"]
    nodes, again = task.tables.nodes, patterns_task(find_cell("edges", "patterns-fan-in"), 3, num_nodes=64).tables.nodes
    assert not nodes["fan_in"].equals(again["fan_in"])


def test_karate_has_its_default_split_or_9_labels():
    split = karate_task(find_cell("edges", "karate"), 3).split
    found = prepare("karate", "node:faction", "strong", {}, 3).splits["node"]
    assert all(torch.equal(rows, found.parts[part]) for part, rows in split.parts.items())
    assert sizes(karate_task(find_cell("edges", "karate-9"), 0).split) == [9, 5, 20]


def test_a_grid_that_is_not_seen_is_the_test_part_alone():
    columns = ["p_in", "Vm*", "Va*"], ["from", "to", "r", "P*", "P_dc"]
    grids = [
        grid_data(
            np.full((10, buses, 3), buses, np.float32), np.tile(np.float32([[0, 1, 1, 2, 3]]), (10, 1, 1)), *columns
        )
        for buses in (2, 3, 4)
    ]
    task = unseen_task(grids[:2], grids[2], find_cell("edges", "case118-unseen"), 0)
    assert sizes(task.split) == [18, 2, 10]
    nodes = task.tables.nodes.assign(part=task.rows(Level.NODE).codes(len(task.tables.nodes)))
    assert set(nodes.loc[nodes["part"] == 2, "p_in"]) == {4}
    assert set(nodes.loc[nodes["part"] < 2, "p_in"]) == {2, 3}
    assert nodes.groupby("graph")["p_in"].agg(["size", "max"]).eval("size == max").all()
    assert list(task.tables.nodes) == ["graph", "id", "p_in"]
    assert len(task.peers["P"]) == 30


def test_grids_hide_the_peer_and_the_other_answers():
    nodes, edges = torch.rand(10, 4, 3).numpy(), torch.rand(10, 5, 5).numpy()
    edges[..., :2] = [0, 1]
    grid = grid_data(nodes, edges, ["p_in", "Vm*", "Va*"], ["from", "to", "r", "P*", "P_dc"])
    about = find_cell("edges", "case118")
    task = grid_task(grid, about, 0)
    assert list(task.tables.nodes) == ["graph", "id", "p_in", "Va"]
    assert list(task.tables.edges) == ["graph", "source", "target", "r", "P"]
    assert task.peers["P"].tolist() == grid.tables.edges["P_dc"].tolist()
    assert sizes(task.rows(Level.EDGE)) == [40, 5, 5]


def test_bonds_are_split_by_the_authors():
    table = pd.DataFrame(
        {
            "molecule": ["CO", "CO", "CC", "CN"],
            "bond_index": [0, 1, 0, 0],
            "bde": [90.0, 100, 80, 70],
            "bdfe": [80.0, 90, 70, 60],
            "set": ["train", "train", "valid", "test"],
        }
    )
    task = bond_task(bond_data(table), find_cell("edges", "bde"), 4)
    assert task.has_molecules
    assert task.settings == {"data.hydrogens": "explicit"}
    assert list(task.stated().graphs["split"]) == ["train", "validation", "test"]
    assert list(task.tables.edges) == ["molecule", "bond_index", "bde", "bdfe"]


def test_a_cell_belongs_to_its_data():
    with pytest.raises(ArgumentError, match="karate is no cell of otc"):
        EdgeTasks("otc").task("karate", 0)
    assert sizes(EdgeTasks("karate").task("karate-9", 1).split) == [9, 5, 20]


@pytest.mark.slow
def test_real_cells_can_be_made(real_data):
    for cell in ("otc-sign", "otc-sign-time", "otc-sign-stream", "otc-rating", "bde", "bde-10"):
        task = make_task(cell, 0)
        assert all(sizes(task.split))
        assert {spec.column for spec in task.specs} <= set(task.tables.edges)
    assert len(TABLES["edges"]) == 24
