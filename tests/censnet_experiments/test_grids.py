"""Samples of a grid become tables of many graphs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from censnet.data.load import load_data
from censnet.ops.graph_set import GraphSet
from censnet_experiments.grids import read_grids


def test_samples_become_graphs(tmp_path: Path) -> None:
    bus = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    branch = np.array([[[0, 1, 0.5, -1], [2, 1, 0.2, 4]], [[0, 1, 0.1, -3], [2, 1, 0.7, 2]]], np.float32)
    np.savez(
        tmp_path / "grid.npz", bus=bus, branch=branch, bus_cols=["p_in", "Va*"], branch_cols=["from", "to", "x", "P*"]
    )
    tables = read_grids(tmp_path / "grid.npz")
    assert tables.edges is not None
    assert tables.edges.columns.tolist() == ["graph", "source", "target", "x", "P"]
    data = load_data(tables, target=["edge:P=oriented", "node:Va"])
    assert isinstance(data.graph, GraphSet)
    assert data.graph.ends[:, data.rows("edge")].tolist() == [[0, 2, 0, 2], [1, 1, 1, 1]]
