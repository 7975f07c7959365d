"""The same data give the same tensors, whatever the door: columns, lists, CSV, Parquet, frames, PyG, networkx."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from torch_geometric.data import Data

from censnet.data import Dataset, Tables, load_data
from censnet.data.load import read_data
from censnet.data.tables.files import write_table

Array = np.ndarray[Any, Any]

ENTRIES: dict[str, Callable[[], st.SearchStrategy[float]]] = {
    "indicator": lambda: st.sampled_from([0.0, 1.0]),
    "count": lambda: st.integers(0, 9).map(float),
    "mostly 0": lambda: st.sampled_from([0.0, 0.0, 0.0, 0.25, 3.0]),
    "real": lambda: st.integers(-8000, 8000).map(lambda number: number / 8),
    "small": lambda: st.integers(1, 15).map(lambda number: number / 2**20),
    "constant": lambda: st.just(7.0),
}


@st.composite
def matrices(draw: st.DrawFn) -> tuple[Array, Array]:
    """Numbers for each of some nodes, columns of every sort, some of them missing here and there; and training rows."""
    rows = draw(st.integers(4, 9))
    columns = []
    for sort in draw(st.lists(st.sampled_from(sorted(ENTRIES)), min_size=1, max_size=5)):
        column = draw(st.lists(ENTRIES[sort](), min_size=rows, max_size=rows))
        gaps = draw(st.sampled_from([[], [], [0], [1, 2], list(range(rows))]))
        columns.append([np.nan if row in gaps else value for row, value in enumerate(column)])
    train = draw(st.lists(st.integers(0, rows - 1), min_size=2, unique=True))
    return np.array(columns, np.float64).T, np.array(sorted(train))


def as_columns(matrix: Array) -> pd.DataFrame:
    return pd.DataFrame({f"c{number}": matrix[:, number] for number in range(matrix.shape[1])})


def as_lists(matrix: Array) -> pd.DataFrame:
    rows = [None if np.isnan(row).all() else row.tolist() for row in matrix]
    return pd.DataFrame({"x": pd.Series(rows, dtype=object)})


def as_truths(matrix: Array) -> pd.DataFrame:
    """Columns of 0 and 1 as truth values."""
    frame = as_columns(matrix)
    for name in frame:
        if frame[name].dropna().isin([0, 1]).all():
            frame[name] = frame[name].map({0.0: False, 1.0: True}).astype(object).where(frame[name].notna(), None)
    return frame


def as_attributes(matrix: Array) -> list[dict[str, float]]:
    """Of the first row all, so that they are in order; later ones lack what is missing."""
    return [
        {f"c{number}": float(value) for number, value in enumerate(row) if value == value or not first}
        for first, row in enumerate(matrix)
    ]


def doors(nodes: Array, edges: Array, folder: Path) -> Iterator[tuple[str, object]]:
    """A chain of nodes, and what is known of each node and each edge, in every form."""
    count = len(nodes)
    ends = {"source": range(count - 1), "target": range(1, count)}
    for name, form in (("columns", as_columns), ("lists", as_lists), ("truths", as_truths)):
        tables = Tables(
            pd.concat([pd.DataFrame({"id": range(count)}), form(nodes)], axis=1),
            pd.concat([pd.DataFrame(ends), form(edges)], axis=1),
        )
        yield name, tables
        for suffix in ("csv", "parquet"):
            place = folder / f"{name}_{suffix}"
            place.mkdir()
            for table, frame in tables.frames().items():
                write_table(frame, place / f"{table}.{suffix}")
            yield f"{name} as {suffix}", place
    chain = torch.tensor([list(ends["source"]), list(ends["target"])])
    yield "PyG", Data(x=torch.tensor(nodes).float(), edge_index=chain, edge_attr=torch.tensor(edges).float())
    yield "PyG in float64", Data(x=torch.tensor(nodes), edge_index=chain, edge_attr=torch.tensor(edges))
    separate, listed = nx.Graph(), nx.Graph()
    separate.add_nodes_from(enumerate(as_attributes(nodes)))
    separate.add_edges_from(zip(*ends.values(), as_attributes(edges), strict=True))
    listed.add_nodes_from((number, {"x": row.tolist()}) for number, row in enumerate(nodes))
    listed.add_edges_from(zip(*ends.values(), ({"x": row.tolist()} for row in edges), strict=True))
    yield "attributes of networkx", separate
    yield "lists of networkx", listed


def features(data: Dataset) -> tuple[list[list[float]], list[list[float]]]:
    return data.graph.nodes.tolist(), data.graph.edges.tolist()


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(drawn=matrices())
def test_the_same_matrix_gives_the_same_tensors_through_every_door(drawn: tuple[Array, Array]) -> None:
    """For nodes and edges, with the statistics of all rows and of some: to the bit."""
    matrix, train = drawn
    rows = {"node": train, "edge": train[train < len(matrix) - 1]}
    rows = {level: chosen for level, chosen in rows.items() if len(chosen)}
    expected = None
    with tempfile.TemporaryDirectory() as folder:
        for name, door in doors(matrix, matrix[1:], Path(folder)):
            data = read_data(door)
            found = features(data.encode()), features(data.encode(rows))
            expected = expected or found
            assert found == expected, name


def test_indicators_stay_0_and_1_and_a_rare_word_is_not_far_away() -> None:
    words = np.zeros((183, 3))
    words[7, 0], words[::2, 1], words[:, 2] = 1, 1, np.arange(183) % 5
    with tempfile.TemporaryDirectory() as folder:
        for name, door in doors(words, words[1:], Path(folder)):
            data = load_data(door)
            np.testing.assert_array_equal(data.graph.nodes[:, :2], words[:, :2], name)
            assert data.graph.nodes[:, 2].mean() == pytest.approx(0, abs=1e-6)


def test_counts_that_are_mostly_0_keep_their_0_and_their_others_are_of_size_1() -> None:
    counts = np.zeros((50, 1))
    counts[:10, 0] = [1, 2, 3, 4, 5, 1, 2, 3, 4, 5]
    found = load_data(Tables(as_columns(counts).assign(id=range(50)), pd.DataFrame({"source": [0], "target": [1]})))
    np.testing.assert_allclose(found.graph.nodes.numpy(), counts / 11**0.5, rtol=1e-6)
    assert found.schema.nodes.columns[0].reason == "numbers, 0 in most rows"


def test_what_is_missing_in_the_same_rows_is_told_once() -> None:
    survey = pd.DataFrame(
        {"id": range(4), "a": [1.0, 2, None, None], "b": [5.0, 4, None, None], "c": [None, 1.0, 2, 4]}
    )
    edges = pd.DataFrame({"source": [0, 1, 2], "target": [1, 2, 3]})
    assert load_data(Tables(survey, edges)).schema.nodes.names == ["a", "a is missing", "b", "c", "c is missing"]


def test_columns_of_graphs_that_are_no_features_take_no_mark_from_those_that_are() -> None:
    frame = pd.DataFrame(
        {"smiles": ["C", "CC", "CCC"], "other": [1.0, None, 3.0], "ph": [7.0, None, 5.0], "y": [1, 2, 3]}
    )
    data = load_data(frame, target="graph:y", overrides={"ph": "number"})
    assert data.schema.of_graphs.names == ["ph", "ph is missing"]
