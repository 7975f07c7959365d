"""Edges stand beside the others of their node, and every result still finds its row."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from censnet.data import Tables, load_data
from censnet.data.tables.row_order import inverse_permutation, order_by_end
from censnet.data.tables.table_graph import take_rows

pairs = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=40)


@given(pairs)
def test_the_order_is_a_stable_sort_by_the_lower_end(pairs: list[tuple[int, int]]) -> None:
    ends = np.array(pairs).T
    expected = sorted(range(len(pairs)), key=lambda edge: min(pairs[edge]))
    order = order_by_end(ends, 10)
    assert expected == (list(range(len(pairs))) if order is None else order.tolist())


@pytest.mark.slow
@given(pairs, st.booleans())
def test_edges_are_in_order_and_results_on_their_rows(pairs: list[tuple[int, int]], many: bool) -> None:
    """A row whose end is missing stays a row; the weight of each edge comes back to where it was given."""
    table = pd.DataFrame(pairs, columns=["source", "target"]).astype("Int64").assign(w=np.arange(len(pairs)) + 1.0)
    if many:
        table["graph"] = table.index % 3
    table.loc[len(table)] = {"source": None, "target": 3, "w": 0.0, **({"graph": 0} if many else {})}
    data = load_data(table, overrides={"w": "number"})
    ends, rows = data.graph.ends.numpy(), data.rows("edge").numpy()
    assert rows[-1] == -1
    starts = data.graph.edge_offset.tolist() if many else [0, ends.shape[1]]
    for start, stop in pairwise(starts):
        assert (np.diff(ends[:, start:stop].min(0)) >= 0).all()
    result = data.results("edge", pd.DataFrame({"edge": np.arange(ends.shape[1])}))
    assert result["edge"].tolist()[:-1] == rows[:-1].tolist()
    assert result["w"].tolist() == table["w"].tolist()
    ids = data.tables.nodes["id"].astype(int).to_numpy()
    first_node = np.zeros(len(rows), int)
    if many:
        first_node = data.graph.node_offset.numpy()[table["graph"]]
    id_of = np.empty(len(ids), int)
    id_of[data.rows("node").numpy()] = ids
    for row, pair in enumerate(pairs):
        assert id_of[ends[:, rows[row]] + first_node[row]].tolist() == list(pair)


def test_parallel_edges_keep_their_input_order() -> None:
    nodes = pd.DataFrame({"id": [0, 1, 2, 3], "x": [1.0, 2.0, 3.0, 4.0]})
    edges = pd.DataFrame({"source": [3, 1, 0, 1, 2], "target": [2, 2, 3, 2, 1], "w": [9.0, 1.0, 2.0, 3.0, 4.0]})
    data = load_data(Tables(nodes, edges))
    assert data.graph.ends.tolist() == [[0, 1, 1, 2, 3], [3, 2, 2, 1, 2]]
    assert data.rows("edge").tolist() == [4, 1, 0, 2, 3]


def test_edges_in_order_are_left_alone() -> None:
    assert order_by_end(np.array([[0, 3, 1], [2, 0, 1]]), 4) is None
    assert order_by_end(np.zeros((2, 0), np.int64), 4) is None


def test_rows_in_an_order_are_the_rows_of_that_order() -> None:
    features, order = torch.randn(300_000, 2), np.random.default_rng(0).permutation(300_000)
    torch.testing.assert_close(take_rows(features, order), features[torch.from_numpy(order)], rtol=0, atol=0)
    assert (inverse_permutation(order)[order] == np.arange(300_000)).all()
    assert take_rows(torch.zeros(5, 0), order[:0]).shape == (0, 0)
