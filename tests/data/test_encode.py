"""One pass: data are typed by all rows, split, fitted on training rows alone, and encoded once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from censnet import Graph
from censnet.data import DataError, Dataset, Tables, load_data
from censnet.data.dataset import TypedData
from censnet.data.load import read_data
from censnet.data.splits.links import LinkSplit, links
from censnet.data.splits.split_file import Split
from censnet.data.tables import feature_encoding, typed_column
from censnet.ops.graph_set import GraphSet


def random_tables(seed: int = 0) -> Tables:
    """Columns of every kind, with gaps, on a graph with loops and parallel edges."""
    rng = np.random.default_rng(seed)
    nodes = pd.DataFrame(
        {
            "id": [f"n{number}" for number in range(30)],
            "age": np.where(rng.random(30) < 0.2, np.nan, rng.normal(40, 9, 30)),
            "city": rng.choice(["Oslo", "Rome", "Lima"], 30),
            "x": [rng.normal(0, 50, 2).tolist() for _ in range(30)],
            "label": rng.choice(["a", "b"], 30),
        }
    )
    ends = rng.integers(0, 30, (2, 60))
    edges = {"source": nodes["id"][ends[0]].to_numpy(), "target": nodes["id"][ends[1]].to_numpy()}
    day = pd.to_datetime("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, 60), unit="D")
    return Tables(
        nodes, pd.DataFrame({**edges, "eur": rng.lognormal(3, 1, 60), "day": day, "new": rng.random(60) < 0.5})
    )


def same(one: Dataset, other: Dataset) -> None:
    assert one.schema == other.schema
    torch.testing.assert_close(one.graph.nodes, other.graph.nodes, rtol=0, atol=0)
    torch.testing.assert_close(one.graph.edges, other.graph.edges, rtol=0, atol=0)
    assert torch.equal(one.graph.ends, other.graph.ends)
    for level in ("node", "edge", "graph"):
        assert torch.equal(one.rows(level), other.rows(level))


def test_encoding_with_training_rows_is_what_reading_with_them_gives() -> None:
    rows = {"node": torch.arange(0, 30, 2), "edge": torch.arange(20, 60)}
    options = {"target": "node:label", "overrides": {"city": "category"}}
    typed, every = read_data(random_tables(), **options), load_data(random_tables(), **options)
    encoded = typed.encode(rows)
    same(encoded, load_data(random_tables(), train_rows=rows, **options))
    assert encoded.schema != every.schema
    assert encoded.notes == every.notes
    same(typed.encode({}), every)  # what one set of rows left out, another may need


def test_typed_data_have_a_structure_and_kinds_but_no_features_and_no_statistics() -> None:
    typed = read_data(random_tables(), target="node:label")
    assert (typed.graph.num_nodes, typed.graph.node_width, typed.graph.edge_width) == (30, 0, 0)
    encoded = typed.encode()
    kinds = [column.kind for column in typed.schema.nodes.columns]
    assert kinds == [column.kind for column in encoded.schema.nodes.columns] == ["number", "category", "vector"]
    assert typed.schema.nodes.columns[0].mean == [0.0] != encoded.schema.nodes.columns[0].mean
    for level in ("node", "edge", "graph"):
        assert torch.equal(typed.rows(level), encoded.rows(level))


def test_features_are_the_formula_with_the_statistics_of_training_rows() -> None:
    """The reference: mean and standard deviation of the training rows, applied to every row, in plain numpy."""
    tables = random_tables()
    encoded = read_data(tables, target="node:label").encode({"node": torch.arange(20), "edge": torch.arange(40)})
    names = encoded.schema.nodes.names
    age = tables.nodes["age"].to_numpy()
    mean, deviation = np.nanmean(age[:20]), np.nanstd(age[:20])
    expected = np.where(np.isnan(age), 0, (age - mean) / deviation)
    np.testing.assert_allclose(encoded.graph.nodes[:, names.index("age")], expected, rtol=1e-5, atol=1e-6)
    x = np.array(tables.nodes["x"].tolist())
    expected = (x - x[:20].mean(0)) / x[:20].std(0)
    np.testing.assert_allclose(encoded.graph.nodes[:, names.index("x[0]")], expected[:, 0], rtol=1e-5, atol=1e-6)
    eur = tables.edges["eur"].to_numpy()
    expected = (eur - eur[:40].mean()) / eur[:40].std()
    np.testing.assert_allclose(encoded.graph.edges[encoded.rows("edge"), 0], expected, rtol=1e-5, atol=1e-6)


def test_each_column_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = []
    read = typed_column.parse_values
    monkeypatch.setattr(typed_column, "parse_values", lambda kind, *rest: parsed.append(kind) or read(kind, *rest))
    monkeypatch.setattr(feature_encoding, "parse_values", None)
    read_data(random_tables(), target="node:label").encode({"node": torch.arange(20)})
    assert sorted(parsed) == ["boolean", "date", "number", "number", "vector"]


def test_a_fitted_schema_reads_the_same_tables_the_same_way() -> None:
    encoded = read_data(random_tables(), target="node:label").encode({"node": torch.arange(12), "edge": [1, 2, 3, 5]})
    same(encoded, load_data(random_tables(), schema=encoded.schema))


def test_values_outside_the_training_rows_change_no_statistic() -> None:
    changed = random_tables()
    changed.nodes.loc[20:, "age"] = 1e5
    changed.edges.loc[40:, "eur"] = -3e7
    rows = {"node": torch.arange(20), "edge": torch.arange(40)}
    one, other = (load_data(tables, target="node:label", train_rows=rows) for tables in (random_tables(), changed))
    assert one.schema == other.schema
    kept = other.rows("edge")[:40]
    torch.testing.assert_close(one.graph.edges[one.rows("edge")[:40]], other.graph.edges[kept], rtol=0, atol=0)


def test_kinds_bad_rows_and_merged_edges_stay_as_they_were_found() -> None:
    """In training rows alone `w` would be numbers and `note` a constant: a row would turn bad, and edges be merged."""
    edges = pd.DataFrame(
        {
            "source": [0, 1, 1, 2, 7],
            "target": [1, 0, 2, 1, 2],
            "w": ["1", "2", "3", "x", "y"],
            "note": ["a", "a", "a", "b", "b"],
        }
    )
    data = read_data(Tables(pd.DataFrame({"id": [0, 1, 2], "z": [1.0, 2.0, 3.0]}), edges), overrides={"w": "category"})
    encoded = data.encode({"edge": [0, 1, 2]})
    assert encoded.rows("edge").tolist() == data.rows("edge").tolist()
    assert encoded.problems == data.problems
    names = ["w=1", "w=2", "w=3", "w is another", "note=a", "note=b", "note is another"]
    assert encoded.schema.edges.names == names
    assert "edges: column note: no two different values in training rows, so statistics are those of all rows" in (
        encoded.notes
    )
    row = encoded.rows("edge").tolist()[3]
    torch.testing.assert_close(encoded.graph.edges[row], torch.tensor([1 / 3, 1 / 3, 1 / 3, 0.0, 0.0, 1.0, 0.0]))


def test_a_column_that_says_nothing_in_training_rows_is_kept_with_the_statistics_of_all() -> None:
    """Empty there, or always the same: neighbours that do not train may have values."""
    known = [None, None, None, 4.0, 8.0, 6.0]
    nodes = pd.DataFrame({"id": range(6), "known": known, "x": [5.0, 5.0, 5.0, 6.0, 5.0, 5.0], "y": list("aab") * 2})
    nodes["v"] = [[1.0, 0], [1.0, 1], [1.0, 0], [3.0, 0], [1.0, 0], [3.0, 1]]
    nodes["flag"], nodes["city"] = [0, 0, 0, 1, 0, 1], [None, None, None, "Rome", "Oslo", "Rome"]
    edges = pd.DataFrame({"source": [0, 0, 1, 3, 4], "target": [1, 2, 3, 4, 5]})
    encoded = read_data(Tables(nodes, edges), target="node:y").encode({"node": [0, 1, 2]})
    schema = encoded.schema.nodes
    assert schema.names == [
        *("known", "known is missing", "x", "v[0]", "v[1]", "flag"),
        *("city=Oslo", "city=Rome", "city is another", "city is missing"),
    ]
    statistics = {column.name: column.statistics for column in schema.columns}
    assert statistics == {"known": "all", "x": "all", "v": "all", "flag": "training", "city": "all"}
    told = "nodes: 4 columns (known, x, v, city): no two different values in training rows, so statistics are those"
    assert any(note.startswith(told) for note in encoded.notes)
    np.testing.assert_allclose(encoded.graph.nodes[:, 0], [0, 0, 0, -(1.5**0.5), 1.5**0.5, 0], atol=1e-6)
    assert encoded.graph.nodes[:, 1].tolist() == [1, 1, 1, 0, 0, 0]
    assert encoded.graph.nodes[:, 5].tolist() == nodes["flag"].tolist()  # an indicator has no scale to be found
    same(encoded, load_data(Tables(nodes, edges), target="node:y", train_rows=[0, 1, 2]))
    same(encoded, load_data(Tables(nodes, edges), schema=encoded.schema))


def test_what_the_user_says_of_a_column_wins_or_is_an_error_that_names_it() -> None:
    nodes = pd.DataFrame({"id": range(4), "known": [None, None, 7.0, 7.0], "word": ["a", "b", "c", "d"], "none": None})
    tables = Tables(nodes, pd.DataFrame({"source": [0, 1, 2], "target": [1, 2, 3]}), names={"nodes": "people.csv"})
    for rows in ({}, {"node": [0, 1]}, {"node": [2, 3]}):
        known = read_data(tables, overrides={"known": "number"}).encode(rows).schema.nodes.columns[0]
        assert (known.kind, known.width > 0, known.mean) == ("number", True, [7.0])
    for kind, what in (("number", "is not a finite number"), ("date", "is not a date"), ("vector", "is not a list")):
        with pytest.raises(DataError, match=f"^people.csv, row 1, column word: 'a' {what}.*nor is any other value"):
            load_data(tables, overrides={"word": kind})
        with pytest.raises(DataError, match=r"^people.csv, column none: holds no value in any row"):
            load_data(tables, overrides={"none": kind})
    with pytest.raises(DataError, match=r"^people.csv, column none: holds no value in any row"):
        load_data(tables, overrides={"none": "category"})


def test_merged_edges_are_encoded_once_each() -> None:
    edges = pd.DataFrame({"source": [5, 7, 6, 7, 5], "target": [6, 5, 5, 7, 7], "w": [1.0, 2.0, 1.0, 9.0, 2.0]})
    encoded = read_data(edges).encode({"edge": [0, 1, 2, 4]})
    w = np.array(edges["w"])
    expected = (w - 1.5) / 0.5
    np.testing.assert_allclose(encoded.graph.edges[encoded.rows("edge"), 0], expected, rtol=1e-6)


@pytest.mark.parametrize("features", [True, False])
def test_many_graphs_take_the_nodes_and_edges_of_training_graphs(features: bool) -> None:
    rng = np.random.default_rng(1)
    nodes = pd.DataFrame({"graph": np.repeat([9, 4, 6], 5), "id": np.tile(range(5), 3)}).sample(frac=1, random_state=3)
    edges = pd.DataFrame({"graph": np.repeat([4, 6, 9], 4), "source": np.tile([0, 1, 2, 3], 3), "target": 4})
    edges.loc[edges["graph"] == 9, "target"] = [1, 2, 3, 4]
    edges = edges.sample(frac=1, random_state=5)
    if features:
        nodes, edges = nodes.assign(x=rng.normal(size=15)), edges.assign(w=rng.normal(size=12))
    graphs = pd.DataFrame({"graph": [4, 6, 9, 1], "y": [0, 1, 0, 1]})
    tables = Tables(nodes, edges, graphs)
    data = read_data(tables, target="graph:y")
    encoded = data.encode({"graph": torch.tensor([0, 2, 3])})
    same(encoded, load_data(tables, target="graph:y", train_rows=[0, 2, 3]))
    assert encoded.schema != data.encode().schema
    assert "y" in encoded.schema.graphs.targets


def test_a_word_in_a_number_column_keeps_its_node_and_its_row_without_result() -> None:
    nodes = pd.DataFrame({"id": list("dabc"), "x": ["9", "1", "3", "old"]})
    tables = Tables(nodes, pd.DataFrame({"source": list("abd"), "target": list("bca")}))
    encoded = read_data(tables, overrides={"x": "number"}).encode({"node": [1, 2]})
    assert encoded.rows("node").tolist() == [0, 1, 2, -1]
    assert encoded.graph.nodes.tolist() == [[7.0], [-1.0], [1.0], [0.0]]


def test_tensors_and_a_given_schema_stay_as_they_are() -> None:
    path = Graph(torch.ones(3, 4), torch.ones(2, 1), torch.tensor([[0, 1], [1, 2]]))
    for given in (path, GraphSet.pack([path, path])):
        assert read_data(given).encode({"node": [0]}).graph is given
    schema = load_data(random_tables(), target="node:label").schema
    later = read_data(random_tables(), schema=schema)
    same(later.encode({"node": [0, 1]}), load_data(random_tables(), schema=schema))
    assert later.encode({"node": [0, 1]}).schema == schema


def test_rows_that_are_not_there_are_an_error() -> None:
    data = read_data(random_tables(), target="node:label")
    with pytest.raises(DataError, match="train_rows of node are not rows of nodes, expected some from 0 to 29"):
        data.encode({"node": [30]})
    with pytest.raises(DataError, match="level is 'vertex', expected node, edge or graph"):
        data.encode({"vertex": [0]})


def test_files_are_read_once(tmp_path: Path) -> None:
    tables = random_tables()
    tables.nodes.to_parquet(tmp_path / "nodes.parquet")
    tables.edges.to_parquet(tmp_path / "edges.parquet")
    data = read_data(tmp_path, target="node:label")
    for path in tmp_path.iterdir():
        path.unlink()
    same(data.encode({"node": torch.arange(9)}), load_data(tables, target="node:label", train_rows=torch.arange(9)))


SMILES = ["CCO", "c1ccncc1", "C1CC", "CC(=O)Cl", "C#N", "CBr"]


def test_the_vocabulary_of_paper_bonds_is_that_of_training_molecules(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"smiles": SMILES, "y": range(6)})
    data = read_data(frame, target="graph:y", features="paper")
    expected = load_data(frame, target="graph:y", features="paper", train_rows=[0, 3, 2])
    monkeypatch.setattr("censnet.data.molecules.assemble.read_smiles", None)
    encoded = data.encode({"graph": torch.tensor([0, 3, 2])})
    assert encoded.schema.vocabulary == expected.schema.vocabulary == ["C-C", "C-O", "C=O", "C-Cl"]
    same(encoded, expected)


def test_rich_molecules_depend_on_no_training_rows() -> None:
    data = read_data(pd.DataFrame({"smiles": SMILES, "y": range(6)}), target="graph:y")
    same(data.encode({"graph": torch.tensor([0, 3])}), data.encode())


@pytest.mark.parametrize("table", [random_tables(), pd.DataFrame({"smiles": SMILES})], ids=["one graph", "molecules"])
def test_what_is_known_of_the_order_is_not_computed_again(table: object) -> None:
    typed = read_data(table)
    if isinstance(typed.graph, GraphSet):
        order = typed.graph._incidence
        assert typed.encode({"graph": [0, 3]}).graph._incidence is order
    else:
        assert typed.encode({"node": [0, 3]}).graph.incidence is typed.graph.incidence


def hide(data: TypedData, validation: list[int], test: list[int]) -> LinkSplit:
    """A link split that hides these input rows of edges."""
    part = np.zeros(len(data.rows("edge")), int)
    part[validation], part[test] = 1, 2
    pair = torch.tensor([[0], [1]])
    return LinkSplit(Split.of(part).to_graph(data.rows("edge")), pair, pair, pair, pair)


@pytest.mark.parametrize("degrees", [True, False])
def test_a_hidden_link_changes_nothing_that_the_model_sees(degrees: bool) -> None:
    """Neither where the hidden links go nor what they carry: the same tensors to the bit."""
    rng = np.random.default_rng(0)
    nodes = pd.DataFrame({"id": range(20)} if degrees else {"id": range(20), "x": rng.normal(size=20)})
    edges = pd.DataFrame(rng.integers(0, 20, (40, 2)), columns=["source", "target"]).assign(w=rng.normal(size=40))
    other = edges.copy()
    other.loc[30:, "source"], other.loc[30:, "w"] = 7, 1e4
    seen = []
    for table in (edges, other):
        typed = read_data(Tables(nodes, table))
        split = hide(typed, list(range(30, 35)), list(range(35, 40)))
        data = typed.encode({}, links=split)
        seen.append((data.message_graph(split), data.schema))
    assert seen[0][1] == seen[1][1]
    assert torch.equal(seen[0][0].nodes, seen[1][0].nodes)
    assert torch.equal(seen[0][0].edges, seen[1][0].edges)
    assert torch.equal(seen[0][0].ends, seen[1][0].ends)
    if degrees:
        degree = np.bincount(edges[["source", "target"]].to_numpy()[:30].ravel(), minlength=20)
        expected = (degree - degree.mean()) / degree.std()
        np.testing.assert_allclose(seen[0][0].nodes[:, 0], expected, rtol=1e-5, atol=1e-6)


def test_hidden_links_give_no_statistics_where_others_say_nothing() -> None:
    edges = pd.DataFrame({"source": range(12), "target": range(1, 13), "w": [2.0] * 8 + [3.0, 4.0, 5.0, 6.0]})
    seen = []
    for far in (1.0, 1000.0):
        typed = read_data(edges.assign(w=[2.0] * 8 + [3.0, 4.0, 5.0, far]))
        split = hide(typed, [8, 9], [10, 11])
        data = typed.encode({}, links=split)
        seen.append((data.schema, data.message_graph(split).edges))
    assert seen[0][0] == seen[1][0]
    assert torch.equal(seen[0][1], seen[1][1])


def test_the_links_of_many_graphs_are_seen_in_their_union() -> None:
    ring = {"source": [0, 1, 2, 3, 4, 5], "target": [1, 2, 3, 4, 5, 0]}
    edges = pd.concat([pd.DataFrame({"graph": graph, **ring}) for graph in "pqr"])
    data = read_data(Tables(edges=edges))
    union = data.graph.batch(torch.arange(3))
    split = links(union, seed=1)
    seen = data.encode({}, links=split).message_graph(split)
    assert seen.num_edges == len(split.rows.train) == 16
    degree = np.bincount(seen.ends.reshape(-1).numpy(), minlength=18)
    np.testing.assert_allclose(seen.nodes[:, 0], (degree - degree.mean()) / degree.std(), rtol=1e-5)


def test_features_of_a_column_stay_when_links_are_hidden() -> None:
    data = load_data(random_tables(), target="node:label")
    split = links(data.graph, seed=2)
    seen = data.message_graph(split)
    assert seen.nodes is data.graph.nodes
    torch.testing.assert_close(seen.edges, data.graph.edges[split.rows.train])


def test_training_molecules_without_a_bond_leave_bonds_without_features() -> None:
    frame = pd.DataFrame({"smiles": ["C", "N", "CC"], "y": [0, 1, 2]})
    encoded = read_data(frame, target="graph:y", features="paper").encode({"graph": [0, 1]})
    assert encoded.graph.edge_width == 0
    assert load_data(frame, schema=encoded.schema).graph.edge_width == 0
