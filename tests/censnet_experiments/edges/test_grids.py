from __future__ import annotations

import sys

import numpy as np
import pytest

from censnet.errors import DataError
from censnet_experiments.edges import grids
from censnet_experiments.edges.grids import BRANCH, BUS, generate_power, grid_data, power_arrays, read_grid


def test_samples_become_rows_with_inputs_answers_and_peers_apart():
    nodes = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    edges = np.array([[[0, 1, 5, 7, 8], [2, 1, 6, 9, 8]], [[0, 1, 3, 4, 8], [2, 1, 2, 1, 8]]], np.float32)
    data = grid_data(nodes, edges, ["demand", "head*"], ["from", "to", "length", "flow*", "P_dc"])
    assert data.tables.graphs["graph"].tolist() == [0, 1]
    assert data.tables.nodes["graph"].tolist() == [0, 0, 0, 1, 1, 1]
    assert data.tables.nodes["id"].tolist() == [0, 1, 2, 0, 1, 2]
    assert data.tables.nodes["head"].tolist() == [1, 3, 5, 7, 9, 11]
    assert data.tables.edges[["graph", "source", "target"]].to_numpy().tolist() == [
        [0, 0, 1],
        [0, 2, 1],
        [1, 0, 1],
        [1, 2, 1],
    ]
    assert data.tables.edges["flow"].tolist() == [7, 9, 4, 1]
    assert (data.node_inputs, data.node_answers) == (["demand"], ["head"])
    assert (data.edge_inputs, data.edge_answers, data.peers) == (["length"], ["flow"], ["P_dc"])
    with pytest.raises(DataError, match="expected \\['from', 'to'\\]"):
        grid_data(nodes, edges, ["demand", "head*"], ["length", "from", "to", "flow*", "P_dc"])


@pytest.mark.parametrize(
    ("name", "samples", "nodes", "edges", "answers"),
    [
        ("case57", 200, 57, 80, (["Vm", "Va"], ["P", "Q"])),
        ("case118", 400, 118, 186, (["Vm", "Va"], ["P", "Q"])),
        ("Net3", 200, 97, 119, (["head", "pressure"], ["flow", "headloss"])),
        ("ky4", 100, 964, 1158, (["head", "pressure"], ["flow", "headloss"])),
    ],
)
def test_the_shipped_samples_are_read(real_data, name, samples, nodes, edges, answers):
    data = read_grid(name)
    assert len(data.tables.graphs) == samples
    assert len(data.tables.nodes) == samples * nodes
    assert len(data.tables.edges) == samples * edges
    assert (data.node_answers, data.edge_answers) == answers
    assert not set(data.peers) & set(data.edge_inputs)
    assert data.tables.edges[["source", "target"]].max().max() < nodes


def test_power_that_enters_a_bus_leaves_it_again(real_data):
    """Where no slack is and lines lose nothing, flows out of a bus add up to its input: the DC flow says so exactly."""
    data = read_grid("case118")
    nodes = data.tables.nodes.query("graph == 0").set_index("id")
    edges = data.tables.edges.query("graph == 0")
    left = np.bincount(edges["source"], edges["P_dc"], 118) - np.bincount(edges["target"], edges["P_dc"], 118)
    inner = (nodes["type"] != "kind 3").to_numpy()
    np.testing.assert_allclose(left[inner], nodes["p_in"][inner], atol=0.05)


def test_generated_samples_are_kept_in_the_cache(monkeypatch, tmp_path):
    drawn = np.ones((2, 3, len(BUS)), np.float32), np.zeros((2, 4, len(BRANCH)), np.float32)
    monkeypatch.setattr(grids, "cache_dir", lambda: tmp_path)
    monkeypatch.setattr(grids, "power_arrays", lambda case, samples, seed: drawn)
    first = grids.read_generated("case9", 2, 7)
    monkeypatch.setattr(grids, "power_arrays", None)
    second = grids.read_generated("case9", 2, 7)
    assert [path.name for path in (tmp_path / "edges").iterdir()] == ["case9-2-7.npz"]
    assert len(first.tables.nodes) == 6
    assert first.tables.edges.equals(second.tables.edges)
    assert first.edge_answers == ["P", "Q"]


def test_unknown_names_are_refused():
    with pytest.raises(DataError, match="no grid is called 'case9'"):
        read_grid("case9")


def test_a_missing_pandapower_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandapower", None)
    with pytest.raises(ImportError, match=r"pip install 'censnet\[grids\]'"):
        generate_power("case14", 1, 0)


@pytest.mark.slow
def test_generated_grids_have_the_columns_and_the_physics_of_the_shipped_ones():
    pytest.importorskip("pandapower")
    bus, branch = power_arrays("case14", 4, seed=0)
    assert bus.shape == (4, 14, len(BUS))
    assert branch.shape == (4, 20, len(BRANCH))
    assert (branch[:, :, BRANCH.index("status")] == 0).sum(1).tolist() == [0, 1, 0, 1]
    again = power_arrays("case14", 4, seed=0)
    np.testing.assert_array_equal(branch, again[1])
    slack = bus[0, :, BUS.index("type")] == 3
    assert (bus[:, slack, BUS.index("p_in")] == 0).all()
    data = generate_power("case14", 2, seed=0)
    assert data.edge_answers == ["P", "Q"]
