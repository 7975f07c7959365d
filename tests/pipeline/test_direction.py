"""The direction of edges: found, said, stored, learned and overruled."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from samples import quick
from torch_geometric.data import Data

from censnet import Graph, train
from censnet.data.load import load_data
from censnet.data.tables.files import Tables
from censnet.errors import DataError, SettingsError

ROWS = pd.DataFrame({"source": [0, 1, 2, 3], "target": [1, 2, 3, 0], "amount": [1.0, 2.0, 3.0, 5.0]})


def twice(rows: pd.DataFrame) -> pd.DataFrame:
    back = rows.rename(columns={"source": "target", "target": "source"})
    return pd.concat([rows, back], ignore_index=True)


def ranks(nodes: int = 60, rows: int = 600, seed: int = 0) -> Tables:
    """Edges whose label is whether x rises from source to target: nothing but direction tells it."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=nodes)
    source, target = rng.integers(nodes, size=(2, rows))
    edges = pd.DataFrame({"source": source, "target": target, "up": x[source] < x[target]})
    return Tables(pd.DataFrame({"id": range(nodes), "x": x}), edges)


def test_tables_are_directed_unless_each_edge_is_there_twice() -> None:
    data = load_data(ROWS)
    assert data.graph.directed
    assert data.schema.directed
    assert any("edges are directed, from source to target; directed=False overrules" in note for note in data.notes)
    data = load_data(twice(ROWS))
    assert not data.graph.directed
    assert data.graph.num_edges == 4
    assert any("edges are undirected; directed=True overrules" in note for note in data.notes)


def test_the_user_overrules_what_was_found() -> None:
    assert not load_data(ROWS, directed=False).graph.directed
    data = load_data(twice(ROWS), directed=True)
    assert data.graph.directed
    assert data.graph.num_edges == 8, "each row is an edge of its own"


def test_later_data_are_read_as_the_schema_says() -> None:
    schema = load_data(ROWS, directed=False).schema
    assert not load_data(ROWS, schema=schema).graph.directed
    schema = load_data(ROWS).schema
    assert load_data(twice(ROWS), schema=schema).graph.num_edges == 8


def test_other_libraries_are_what_they_say() -> None:
    assert load_data(nx.DiGraph([(0, 1), (1, 0)])).graph.directed
    assert not load_data(nx.Graph([(0, 1), (1, 2)])).graph.directed
    one_way = torch.tensor([[0, 1, 2], [1, 2, 0]])
    assert load_data(Data(x=torch.eye(3), edge_index=one_way)).graph.directed
    both = torch.cat([one_way, one_way.flip(0)], dim=1)
    assert not load_data(Data(x=torch.eye(3), edge_index=both)).graph.directed
    assert not load_data("karate").graph.directed
    graph = Graph(torch.eye(3), torch.ones(3, 1), one_way, directed=True)
    assert load_data(graph).graph.directed
    with pytest.raises(
        DataError, match=r"data\.directed is false, but these data say themselves that edges are directed"
    ):
        load_data(graph, directed=False)


def test_many_graphs_keep_the_order_of_ends() -> None:
    rows = pd.concat([ROWS.assign(graph=g) for g in "ab"], ignore_index=True)
    data = load_data(Tables(edges=rows))
    assert data.graph.directed
    batch = data.graph.batch(torch.tensor([1, 0]))
    assert batch.directed
    start, end = batch.ends[:, data.rows("edge")[:4]]
    assert ((end - start) % 4 == 1).all()


def test_a_label_that_depends_on_direction_alone_is_learned_and_not_without_it() -> None:
    settings = {"training.epochs": 60, "model.hidden": 16, "model.layers": "NE", "training.learning_rate": 0.02}
    run = train(ranks(), "edge:up", settings=settings)
    assert run.schema.directed
    assert run.config.settings.model.directed is True
    assert run.metrics["test"]["edge"]["auc"] > 0.97
    blind = train(ranks(), "edge:up", settings=settings, directed=False)
    assert not blind.schema.directed
    assert blind.metrics["test"]["edge"]["auc"] < 0.75
    reverse = ranks().edges.rename(columns={"source": "target", "target": "source"})[["source", "target"]]
    flipped = run.predict(Tables(ranks().nodes, reverse), known_labels=False)["up_p_True"]
    assert np.corrcoef(flipped, run.predict(ranks(), known_labels=False)["up_p_True"])[0, 1] < -0.8


def test_the_presets_of_the_paper_have_no_direction_and_asking_for_it_is_clear() -> None:
    run = train(ranks(rows=100), "edge:up", preset="paper", settings={"training.epochs": 1})
    assert run.config.settings.model.directed is False
    with pytest.raises(
        SettingsError, match=r"model\.directed is true, expected false or auto: the edges of the data have"
    ):
        train(ranks(rows=100), "edge:up", settings=quick(model__directed=True), directed=False)
