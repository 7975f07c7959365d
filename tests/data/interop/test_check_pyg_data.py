"""PyG objects with wrong shapes and types: an error that states the shape, and nothing dropped without a word."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data, HeteroData, InMemoryDataset, TemporalData
from torch_geometric.transforms import ToSparseTensor

from censnet.data import load_data
from censnet.errors import DataError

ENDS = torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 4, 2]])


def path(**attributes: object) -> Data:
    found = {"x": torch.arange(10.0).reshape(5, 2), "edge_index": ENDS, "edge_attr": torch.ones(5, 1)}
    found["edge_attr"][0] = 2
    return Data(**{name: value for name, value in (found | attributes).items() if value is not None})


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"edge_index": ENDS.t().contiguous()}, r"edge_index has shape \(5, 2\), expected \(2, E\): give edge_index.t"),
        ({"edge_index": ENDS[0]}, r"edge_index has shape \(5,\), expected \(2, E\): the two rows"),
        ({"edge_index": torch.ones(3, 5, dtype=torch.long)}, r"edge_index has shape \(3, 5\), expected \(2, E\)"),
        ({"edge_index": ENDS.float()}, "edge_index has dtype float32, expected whole numbers: give edge_index.long"),
        ({"edge_index": ENDS > 1}, "edge_index has dtype bool, expected whole numbers"),
        ({"edge_index": "0-1"}, r"edge_index is a str, expected a tensor \(2, E\)"),
        ({"edge_index": [[0, 1], [1]]}, "edge_index is a list, expected two of equal length"),
        ({"edge_attr": torch.ones(4, 1)}, r"edge_attr has shape \(4, 1\), expected a row for each of 5 edges"),
        (
            {"edge_attr": None, "edge_weight": torch.ones(6)},
            r"edge_weight has shape \(6,\), expected a row for each of",
        ),
        ({"x": torch.ones(4, 2), "num_nodes": 5}, r"x has shape \(4, 2\), expected a row for each of 5 nodes"),
        ({"x": torch.ones(5, 2, dtype=torch.complex64)}, "x has dtype complex64, expected real numbers"),
        ({"x": np.ones((5, 2), complex)}, "x has dtype complex128, expected real numbers"),
        (
            {"edge_attr": torch.ones(5, 1, dtype=torch.complex64)},
            "edge_attr has dtype complex64, expected real numbers",
        ),
    ],
)
def test_a_wrong_shape_or_type_is_an_error_that_states_it(attributes, message):
    with pytest.raises(DataError, match=message):
        load_data(path(**attributes))


def test_labels_that_fit_no_table_are_an_error():
    with pytest.raises(
        DataError, match=r"y has shape \(6,\), expected a row for each row of a table: there are 5 nodes"
    ):
        load_data(path(y=torch.arange(6)), target="node:y")


@pytest.mark.parametrize("form", [np.asarray, torch.Tensor.tolist, torch.Tensor.int])
def test_arrays_and_lists_are_read_as_tensors_are(form):
    expected = load_data(path())
    other = path(x=np.asarray(path().x), edge_index=form(ENDS), edge_attr=np.asarray(path().edge_attr))
    found = load_data(other)
    torch.testing.assert_close(found.graph.nodes, expected.graph.nodes)
    torch.testing.assert_close(found.graph.edges, expected.graph.edges)
    assert found.graph.ends.tolist() == expected.graph.ends.tolist()
    several = load_data([other, other])
    assert several.graph.node_width == 2


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_sparse_features_are_read_as_dense_ones_are(layout):
    sparse = path().x.to_sparse(layout=layout)
    torch.testing.assert_close(load_data(path(x=sparse)).graph.nodes, load_data(path()).graph.nodes)


def test_a_missing_number_is_marked_and_an_infinite_one_makes_its_row_bad():
    x = path().x.clone()
    x[1, 0], x[3, 1] = torch.nan, torch.inf
    data = load_data(path(x=x))
    assert list(data.problems["nodes"]) == [3]
    assert data.graph.nodes.isfinite().all()


@pytest.mark.parametrize("ends", [ENDS - 1, ENDS + 3])
def test_an_edge_to_no_node_is_a_bad_row_and_in_a_list_of_graphs_an_error(ends):
    data = load_data(path(edge_index=ends))
    bad = [row for row in range(5) if int(ends[:, row].min()) < 0 or int(ends[:, row].max()) > 4]
    assert sorted(data.problems["edges"]) == bad
    with pytest.raises(DataError, match=r"edge_index of graph 1 has -?\d in row \d, column \d, expected 0 to 4: "):
        load_data([path(), path(edge_index=ends)])


def test_attributes_that_fit_no_table_are_named_once_and_names_are_not(caplog):
    graph = path(
        other=torch.ones(7), edge_label_index=torch.ones(2, 3), name="a path", temperature=3.5, y=[1, 2, 3, 4, 5]
    )
    with caplog.at_level(logging.WARNING, "censnet"):
        data = load_data(graph)
    assert caplog.messages == [
        "not used, as they fit neither 5 nodes nor 5 edges: other shape (7,), edge_label_index shape (2, 3)"
    ]
    assert "y" in data.tables.nodes


def test_labels_and_features_as_long_as_the_edges_are_of_the_edges():
    graph = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1, 2, 0], [1, 2, 0, 2]]), y=torch.arange(4))
    assert load_data(graph, target="edge:y").labels("edge", "y").tolist() == [0, 1, 2, 3]


def test_the_graphs_of_a_union_are_many_graphs():
    union = Batch.from_data_list([path(), path()])
    plain = Data(x=union.x, edge_index=union.edge_index, edge_attr=union.edge_attr, batch=union.batch)
    assert len(load_data(plain).graph) == len(load_data(union).graph) == 2


def test_the_number_of_nodes_is_what_the_graph_says_or_what_its_edges_need():
    assert load_data(path(x=None, num_nodes=9)).graph.num_nodes == 9
    assert load_data(path(x=None)).graph.num_nodes == 5
    assert load_data(path(x=None, y=torch.arange(8)), target="node:y").graph.num_nodes == 8


class OneGraph(InMemoryDataset):
    def __init__(self, *graphs: Data) -> None:
        super().__init__()
        self.data, self.slices = self.collate(list(graphs))


def test_other_objects_say_how_to_make_one_that_is_read():
    for data, message in (
        (HeteroData(), r"data is a HeteroData, expected one kind of nodes and of edges: give data\.to_homogeneous\(\)"),
        (TemporalData(src=ENDS[0], dst=ENDS[1], t=ENDS[0]), r"data is a TemporalData, expected a Data: give Data\("),
        (ToSparseTensor(layout=torch.sparse_csr)(path()), "data has adj_t and no edge_index, expected edge_index"),
        (OneGraph(path()), r"data is a OneGraph of 1 graphs, expected its graphs: give data\[0\]"),
        (OneGraph(path(), path()), r"data is a OneGraph of 2 graphs, expected its graphs: give list\(data\)"),
        ([path(), HeteroData()], "item 1 of the list is a HeteroData, expected Data"),
    ):
        with pytest.raises(DataError, match=message):
            load_data(data)


def test_a_graph_without_edges_is_said_to_have_none(caplog):
    with caplog.at_level(logging.WARNING, "censnet"):
        load_data(path(edge_index=None, edge_attr=None))
    assert caplog.messages == ["there is no edge_index, so the graph has no edges"]
