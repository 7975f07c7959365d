"""Oriented columns and targets in tables: what is refused, how they are scaled, and edges that are there twice."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from censnet.data.load import load_data
from censnet.data.tables.files import Tables
from censnet.data.tables.schema import Schema
from censnet.data.tables.target_spec import TargetSpec, parse_targets
from censnet.errors import DataError
from censnet.ops.graph_set import GraphSet
from censnet.tasks.targets import Target, target_range

PIPES = pd.DataFrame(
    {
        "source": ["a", "b", "c", "a", "d"],
        "target": ["b", "c", "a", "d", "d"],
        "length": [1.0, 2.0, 3.0, 5.0, 8.0],
        "slope": [0.5, -0.5, None, 2.0, 0.0],
        "flow": [10.0, -20.0, 5.0, None, 0.0],
    }
)


def twice(edges: pd.DataFrame, negated: tuple[str, ...]) -> pd.DataFrame:
    """Each edge once in each order, the negated columns with the other sign in the second row."""
    back = edges[edges["source"] != edges["target"]].rename(columns={"source": "target", "target": "source"})
    back = back.assign(**{name: -back[name] for name in negated})
    return pd.concat([edges, back])[edges.columns].sort_index(kind="stable").reset_index(drop=True)


def test_oriented_features_stand_last_scaled_by_their_size_and_never_centered() -> None:
    data = load_data(PIPES, target="edge:flow=oriented", overrides={"slope": "oriented"})
    size = np.sqrt((0.5**2 + 0.5**2 + 2.0**2) / 3)
    assert data.schema.edges.names == ["length", "slope is missing", "slope"]
    assert (data.graph.odd_width, data.graph.directed) == (1, False)
    rows = data.rows("edge")
    np.testing.assert_allclose(
        data.graph.edges[rows, -1], np.array([0.5, -0.5, 0, 2, 0]) / size, rtol=1e-6
    )  # missing: 0, with an even indicator
    assert data.graph.edges[rows, 1].tolist() == [0, 0, 1, 0, 0]
    ends = data.graph.ends[:, rows].t().tolist()
    assert ends == [[0, 1], [1, 2], [2, 0], [0, 3], [3, 3]]  # the order of the rows is kept
    assert any("the order of source and target is arbitrary" in note for note in data.notes)


def test_the_schema_goes_through_json_and_reads_later_data_alike() -> None:
    data = load_data(PIPES, target="edge:flow=oriented", overrides={"slope": "oriented"})
    schema = Schema.from_json(data.schema.to_json())
    later = load_data(PIPES.drop(columns="flow"), schema=schema)
    assert later.graph.odd_width == 1
    assert torch.equal(later.graph.edges, data.graph.edges)


def test_many_graphs_keep_their_odd_width() -> None:
    edges = pd.concat([PIPES.assign(graph="g"), PIPES.assign(graph="h", slope=-PIPES["slope"])])
    nodes = pd.DataFrame({"graph": ["g"] * 4 + ["h"] * 4, "id": list("abcd") * 2, "load": range(8)})
    data = load_data(Tables(nodes=nodes, edges=edges.reset_index(drop=True)), overrides={"slope": "oriented"})
    graphs = data.graph
    assert isinstance(graphs, GraphSet)
    index = torch.tensor([1, 0])
    assert (
        graphs.odd_width == graphs.batch(index).odd_width == graphs.subset(index).odd_width == graphs[0].odd_width == 1
    )
    assert graphs.to("cpu").odd_width == 1


def test_a_constant_oriented_column_is_a_direction() -> None:
    data = load_data(PIPES.assign(way=1), overrides={"way": "oriented"})
    assert data.graph.edges[:, -1].tolist() == [1.0] * 5


def test_oriented_labels_have_no_mean_and_symmetric_limits() -> None:
    target = Target.fit(PIPES["flow"], "edge", "flow", kind="oriented")
    assert (target.mean, target.low, target.high) == (0.0, -20.0, 20.0)
    assert target.scale == pytest.approx(np.sqrt((100 + 400 + 25 + 0) / 4))
    assert (target.is_number, target.width, target.name) == (True, 1, "edge:flow")
    flipped = Target.fit(-PIPES["flow"], "edge", "flow", kind="oriented")
    assert flipped == target
    low, high = target_range([target])  # type: ignore[misc]
    assert float(low) == -float(high)
    assert Target.model_validate_json(target.model_dump_json()) == target
    with pytest.raises(ValueError, match="a mean of 0"):
        Target(level="edge", column="flow", kind="oriented", mean=1.0)


@pytest.mark.parametrize("target", ["node:load=oriented", "graph:load=oriented", ("node", "load", "oriented")])
def test_nodes_and_graphs_have_no_oriented_targets(target: str) -> None:
    with pytest.raises(DataError, match=r"load=oriented is of (nodes|graphs), expected one of edges"):
        parse_targets([target])


def test_an_oriented_target_is_written_and_read() -> None:
    assert parse_targets("edge:flow=oriented,size")[0] == [
        TargetSpec("edge", "flow", "oriented"),  # type: ignore[arg-type]
        TargetSpec("edge", "size"),  # type: ignore[arg-type]
    ]
    assert TargetSpec("edge", "flow", "oriented").text == "edge:flow=oriented"  # type: ignore[arg-type]
    with pytest.raises(DataError, match="expected binary, multiclass, regression or oriented"):
        parse_targets('edge:"flow"=orientated')


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["yes", "no", "yes", "no"], "row 1, column flow: 'yes' is no number"),
        ([1.0, "high", -2.0, 3.0], "row 2, column flow: 'high' is no number"),
        ([True, False, True, False], "row 1, column flow: holds true and false, which are classes"),
        ([None, 0, 1, 1], "row 2, column flow: is 0 or 1 in each labeled row, which are two classes"),
        (["1.5", "-2", ">3", "1"], "row 3, column flow: '>3' is a limit"),
        ([None, None, None, None], "column flow: has no label in any row"),
    ],
)
def test_oriented_classes_text_and_limits_are_refused_by_row_and_column(labels: list[object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Target.fit(pd.Series(labels, dtype=object).infer_objects(), "edge", "flow", kind="oriented")


def test_only_columns_of_edges_are_oriented() -> None:
    nodes = pd.DataFrame({"id": list("abcd"), "slope": [1.0, 2.0, 3.0, 4.0], "load": [1.0, 2.0, 3.0, 4.0]})
    tables = Tables(nodes=nodes, edges=PIPES)
    with pytest.raises(DataError, match=r"nodes, column load: is said to be oriented, expected a column of edges"):
        load_data(tables, overrides={"load": "oriented"})
    with pytest.raises(DataError, match=r"nodes, column slope: .*: say edges.slope=oriented"):
        load_data(tables, overrides={"slope": "oriented"})
    assert load_data(tables, overrides={"edges.slope": "oriented"}).graph.odd_width == 1
    with pytest.raises(
        DataError, match=r"column flow: is predicted, and said to be oriented.*target='edge:flow=oriented'"
    ):
        load_data(PIPES, target="edge:flow", overrides={"flow": "oriented"})
    with pytest.raises(DataError, match=r"row 1, column word: 'x' is not a finite number, nor is any other value"):
        load_data(PIPES.assign(word="x"), overrides={"word": "oriented"})


def test_a_word_in_an_oriented_column_is_a_bad_row() -> None:
    slope = pd.Series(["0.5", "steep", "1", "-1", "2"])
    data = load_data(PIPES.assign(slope=slope), overrides={"slope": "oriented"})
    assert list(data.problems["edges"]) == [1]
    assert "'steep' is not a finite number" in data.problems["edges"][1]


def test_directed_and_oriented_is_explained() -> None:
    expected = "slope, flow to be oriented, expected one of both.*enters as an oriented column that is 1 in each row"
    with pytest.raises(DataError, match=expected):
        load_data(PIPES, target="edge:flow=oriented", overrides={"slope": "oriented"}, directed=True)
    assert not load_data(PIPES, target="edge:flow=oriented").graph.directed


def test_two_rows_of_an_edge_are_the_negative_of_each_other() -> None:
    rows = twice(PIPES, ("slope", "flow"))
    data = load_data(rows, target="edge:flow=oriented", overrides={"slope": "oriented"})
    assert (data.schema.edge_form, data.graph.num_edges) == ("twice", 5)
    assert data.is_flipped is not None
    assert data.is_flipped.tolist() == [False, True] * 4 + [False]


def test_rows_with_the_same_oriented_value_in_both_orders_are_explained() -> None:
    with pytest.raises(
        DataError, match=r"row 1, column slope: is the same here and in row 2, its reverse, expected the neg"
    ):
        load_data(twice(PIPES.fillna(1.0), ("flow",)), target="edge:flow=oriented", overrides={"slope": "oriented"})
    with pytest.raises(
        DataError, match=r"row 1, column flow: is 10 here and in row 2, its reverse, expected the negative"
    ):
        load_data(twice(PIPES, ("slope",)), target="edge:flow=oriented", overrides={"slope": "oriented"})


def test_one_pair_of_labels_that_contradict_each_other_is_left_out() -> None:
    rows = twice(PIPES.fillna(7.0), ("slope", "flow"))
    rows.loc[0, "flow"] = 11.0
    data = load_data(rows, target="edge:flow=oriented", overrides={"slope": "oriented"})
    assert list(data.problems["edges"]) == [0, 1]
    assert "with its sign in one of them" in data.problems["edges"][0]


def test_bonds_and_atoms_are_not_oriented() -> None:
    molecules = pd.DataFrame(
        {"smiles": ["CCO", "CC"], "charge": [[0.1, -0.2, 0.1], [0.5, -0.5]], "pull": [[1.0, -2.0], [3.0]]}
    )
    with pytest.raises(DataError, match="bond has no order of its ends"):
        load_data(molecules, target="bond:pull=oriented")
    with pytest.raises(DataError, match="expected one of edges"):
        load_data(molecules, target="atom:charge=oriented")


def test_what_0_became_is_known_for_numbers_alone() -> None:
    nodes = pd.DataFrame({"id": [0, 1, 2], "kind": ["a", "b", "a"], "load": [3.0, 5.0, 0.0]})
    edges = pd.DataFrame({"source": [0, 1], "target": [1, 2], "shift": [1.0, -2.0], "length": [4.0, 0.0]})
    data = load_data(Tables(nodes, edges), overrides={"shift": "oriented"})
    zeros = data.schema.nodes.zeros
    assert [name for name, zero in zip(data.schema.nodes.names, zeros, strict=True) if zero == zero] == ["load"]
    assert zeros[data.schema.nodes.names.index("load")] == pytest.approx(float(data.graph.nodes[2, -1]))
    assert data.schema.edges.names[-1] == "shift"
    assert data.schema.edges.zeros == [pytest.approx(float(data.graph.edges[1, 0])), pytest.approx(np.nan, nan_ok=True)]
