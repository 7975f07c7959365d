"""Graphs, many of them packed, and batches that come with their sorted order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import FrozenInstanceError, replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import assert_near, fill, incidences
from torch import Tensor

from censnet.data.digests import fingerprint
from censnet.ops import Incidence, propagate_edges, propagate_nodes
from censnet.ops.caching import stored
from censnet.ops.ego import ego_graphs, mark_egos
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.ops.sampling import sample_neighbors
from censnet.ops.segments import LONGEST, Segments

NO_ENDS = torch.empty(2, 0, dtype=torch.int64)


def union(graphs: Sequence[Graph]) -> Graph:
    """All graphs as one batch."""
    return GraphSet.pack(graphs).batch(torch.arange(len(graphs)))


def graph_of(incidence: Incidence, seed: int = 0) -> Graph:
    sample = fill(incidence, 4, None, seed)
    return Graph(sample.nodes, sample.edges[:, :2], incidence.ends)


def star(leaves: int, seed: int = 0) -> Graph:
    ends = torch.stack([torch.zeros(leaves, dtype=torch.int64), torch.arange(1, leaves + 1)])
    return graph_of(Incidence(ends, leaves + 1), seed)


PATH = graph_of(Incidence(torch.tensor([[0, 1], [1, 2]]), 3), seed=1)
DOT = graph_of(Incidence(NO_ENDS, 1), seed=2)
LOOPED = graph_of(Incidence(torch.tensor([[0, 1, 1, 0], [0, 1, 0, 1]]), 2), seed=3)
TRIANGLE = graph_of(Incidence(torch.tensor([[0, 1, 2], [1, 2, 0]]), 3), seed=4)


def by_loop(graphs: Sequence[Graph]) -> Graph:
    """The batch of all graphs, by a loop over them."""
    ends, owner, first = [], [], 0
    for number, graph in enumerate(graphs):
        ends.append(graph.ends + first)
        owner += graph.num_nodes * [number]
        first += graph.num_nodes
    return Graph(
        torch.cat([graph.nodes for graph in graphs]),
        torch.cat([graph.edges for graph in graphs]),
        torch.cat(ends, dim=1),
        torch.tensor(owner),
        len(graphs),
    )


def assert_same(found: object, expected: object) -> None:
    """Equal to the bit and in dtype, through segments and their chunks."""
    if isinstance(expected, Tensor):
        assert isinstance(found, Tensor)
        assert found.dtype == expected.dtype
        assert found.equal(expected)
    elif isinstance(expected, Segments):
        assert isinstance(found, Segments)
        for name in ("index", "offset"):
            assert_same(getattr(found, name), getattr(expected, name))
        assert (found.chunks is None) == (expected.chunks is None)
        if found.chunks is not None and expected.chunks is not None:
            for name in ("long", "offset", "segment"):
                assert_same(getattr(found.chunks, name), getattr(expected.chunks, name))
    else:
        assert found == expected


def assert_same_graph(found: Graph, expected: Graph) -> None:
    """The same features and ends, and in the incidence what a fresh one computes."""
    for name in ("nodes", "edges", "ends", "owner", "num_graphs"):
        assert_same(getattr(found, name), getattr(expected, name))
    mine, fresh = found.incidence, Incidence(expected.ends, expected.num_nodes, expected.owner, expected.num_graphs)
    assert mine.ends is found.ends
    assert mine.owner is found.owner
    assert (mine.num_nodes, mine.num_edges, mine.num_graphs) == (fresh.num_nodes, fresh.num_edges, fresh.num_graphs)
    assert_same(mine.csr.edge, fresh.csr.edge)
    assert_same(mine.csr.other, fresh.csr.other)
    assert_same(mine.pairs.index, fresh.pairs.index)
    assert_same(mine.pairs.offset, fresh.pairs.offset)
    for key, other in zip(mine.sorted_pairs, fresh.sorted_pairs, strict=True):
        assert_same(key, other)
    for name in ("node_degree", "edge_degree", "edge_count", "multiplicity", "is_first"):
        assert_same(getattr(mine, name), getattr(fresh, name))
    for name in ("is_loop", "csr_mask", "pair_mask"):
        assert_same(getattr(mine, name), getattr(fresh, name))
    for side, rows in (("node", found.nodes), ("edge", found.edges)):
        assert_same(mine.pool(rows, side), fresh.pool(rows, side))
        if found.owner is not None:
            assert_same(mine._by_graph[side], fresh._by_graph[side])
    assert_same(mine.edge_owner, fresh.edge_owner)
    assert repr(mine) == repr(fresh)


@st.composite
def sets(draw: st.DrawFn, loops: bool = True) -> list[Graph]:
    parts = draw(st.lists(incidences(union=False, max_nodes=4, loops=loops), min_size=1, max_size=5))
    return [graph_of(part, seed) for seed, part in enumerate(parts)]


# -- one graph --------------------------------------------------------------------------------------------------------


def test_a_graph_counts_its_nodes_and_edges() -> None:
    assert (PATH.num_nodes, PATH.num_edges, PATH.node_width, PATH.edge_width) == (3, 2, 4, 2)
    assert PATH.incidence is PATH.incidence
    assert PATH.incidence.node_degree.tolist() == [2, 3, 2]
    with pytest.raises(FrozenInstanceError):
        PATH.nodes = torch.ones(3, 4)


def test_reprs() -> None:
    assert repr(PATH) == "Graph(3 nodes x 4, 2 edges x 2)"
    assert repr(replace(PATH, nodes=PATH.nodes.to_sparse_csr())) == "Graph(3 nodes x 4 sparse, 2 edges x 2)"
    assert repr(union([PATH, DOT])) == "Graph(4 nodes x 4, 2 edges x 2, 2 graphs)"
    assert repr(union([DOT])) == "Graph(1 node x 4, 0 edges x 2, 1 graph)"
    assert repr(GraphSet.pack([PATH, DOT])) == "GraphSet(2 graphs, 4 nodes x 4, 2 edges x 2)"
    whole = [replace(graph, graph_features=torch.ones(1, 5)) for graph in (PATH, DOT)]
    assert repr(whole[0]) == "Graph(3 nodes x 4, 2 edges x 2, the graph x 5)"
    assert repr(union(whole)) == "Graph(4 nodes x 4, 2 edges x 2, 2 graphs x 5)"
    assert repr(GraphSet.pack(whole)) == "GraphSet(2 graphs x 5, 4 nodes x 4, 2 edges x 2)"


def test_ends_of_any_whole_numbers_and_rows_without_channels() -> None:
    graph = Graph(torch.ones(3, 0), torch.ones(2, 0), PATH.ends.int())
    assert graph.incidence.ends.dtype == torch.int64
    assert (graph.node_width, graph.edge_width) == (0, 0)


def test_another_device_has_the_same_graph() -> None:
    for graph in (PATH, union([PATH, DOT])):
        moved = graph.to("cpu")
        assert moved is not graph
        assert_same_graph(moved, graph)
    sparse = replace(PATH, nodes=PATH.nodes.to_sparse_csr()).to("cpu")
    assert sparse.nodes.layout == torch.sparse_csr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes": torch.ones(3)}, r"^nodes has shape \(3,\), expected \(\*, \*\): \(N, node_width\)$"),
        (
            {"nodes": torch.ones(3, 4).long()},
            r"^nodes has dtype torch.int64, expected a floating-point one: call nodes",
        ),
        ({"nodes": torch.ones(0, 4)}, r"^nodes has no row, expected at least one: a graph without nodes has nothing"),
        (
            {"nodes": torch.ones(3, 4).to_sparse_coo()},
            r"^nodes has layout torch.sparse_coo, expected dense or CSR: call nodes.to_sparse_csr\(\)$",
        ),
        ({"edges": torch.ones(3, 2)}, r"^edges has shape \(3, 2\), expected \(2, \*\): \(E, edge_width\), a row for"),
        ({"edges": torch.ones(2)}, r"^edges has shape \(2,\), expected \(2, \*\)"),
        ({"edges": torch.ones(2, 2).bool()}, r"^edges has dtype torch.bool, expected a floating-point one: call edges"),
        ({"edges": torch.ones(2, 2, device="meta")}, r"^edges is on meta, expected cpu as nodes: move one with .to"),
        ({"ends": torch.zeros(2, 2, device="meta").long()}, r"^ends is on meta, expected cpu as nodes: move one with"),
        (
            {"ends": torch.tensor([[0, 1]])},
            r"^ends has shape \(1, 2\), expected \(2, \*\): \(2, E\), one column for each",
        ),
        (
            {"ends": torch.tensor([[0, 1], [1, 3]])},
            r"^ends\[1, 1\] is 3, expected a node from 0 to 2: there are 3 nodes$",
        ),
        ({"ends": torch.tensor([[0, -1], [1, 2]])}, r"^ends\[0, 1\] is -1, expected a node from 0 to 2"),
        ({"ends": torch.tensor([[0.0, 1.0], [1.0, 2.0]])}, r"^ends has dtype torch.float32, expected whole numbers"),
        (
            {"owner": torch.tensor([0, 0]), "num_graphs": 1},
            r"^owner has shape \(2,\), expected \(3,\): \(N,\), one graph",
        ),
        ({"owner": torch.tensor([0, 0, 1])}, r"^owner\[2\] is 1, expected a graph from 0 to 0: there are 1 graphs$"),
        (
            {"graph_features": torch.ones(2, 5)},
            r"^graph_features has shape \(2, 5\), expected \(1, \*\): \(G, graph_width\), a row for",
        ),
        (
            {"graph_features": torch.ones(1, 5).long()},
            r"^graph_features has dtype torch.int64, expected a floating-point one",
        ),
    ],
)
def test_wrong_graphs_are_named(change: dict[str, Tensor], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(PATH, **change)


def test_features_of_graphs_go_wherever_their_graph_goes() -> None:
    parts = [
        replace(graph, graph_features=torch.tensor([[float(n), -n]])) for n, graph in enumerate((PATH, DOT, LOOPED))
    ]
    every, numbers = GraphSet.pack(parts), torch.tensor([2, 0, 2])
    expected = torch.tensor([[2.0, -2], [0, 0], [2, -2]])
    again = every.with_features(every.nodes * 2, every.edges)
    for graphs in (every, again, every.to("cpu"), every.subset(torch.tensor([0, 1, 2]))):
        for found in (graphs.batch(numbers), graphs.batch(numbers).to("cpu"), graphs.subset(numbers)):
            torch.testing.assert_close(found.graph_features, expected)
        torch.testing.assert_close(graphs[1].graph_features, torch.tensor([[1.0, -1.0]]))
    bare = every.with_graph_features(None)
    assert bare.graph_features is None
    assert bare.batch(numbers).graph_features is None
    assert every.batch(numbers).with_features(torch.ones(7, 1), torch.ones(10, 1)).graph_width == 2
    with pytest.raises(ValueError, match="graph 1 has 0 features of its own, expected 2 as graph 0"):
        GraphSet.pack([parts[0], DOT])


# -- unions and sets --------------------------------------------------------------------------------------------------


def test_times_go_wherever_their_edges_go() -> None:
    times = torch.tensor([1.5e9, 7.0], dtype=torch.float64)
    graph = PATH.with_times(times)
    assert repr(graph).endswith("with times)")
    others = [graph.to("cpu"), graph.with_features(PATH.nodes, PATH.edges), graph.with_edges(torch.tensor([0, 1]))]
    both = GraphSet.pack([graph, graph])
    others += [both[1], both.batch(torch.tensor([1])), both.to("cpu").subset(torch.tensor([0]))[0]]
    others += [sample_neighbors(graph, torch.tensor([0]), fanout=(None, None)).graph]
    others += [mark_egos(ego_graphs(graph, torch.tensor([1]), 1))]
    for other in others:
        assert other.times is not None
        torch.testing.assert_close(other.times, times, rtol=0, atol=0)
    assert both.whole.times is not None
    assert len(both.whole.times) == 4
    assert graph.with_times(None).times is None
    assert fingerprint(graph) != fingerprint(PATH)


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (torch.ones(3, dtype=torch.float64), r"times has shape \(3,\), expected \(2,\)"),
        (torch.ones(2), "times has dtype torch.float32, expected torch.float64"),
        (torch.tensor([1.0, torch.nan], dtype=torch.float64), r"times\[1\] is nan, expected a finite number"),
    ],
)
def test_wrong_times_are_named(times: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PATH.with_times(times)
    with pytest.raises(ValueError, match=message):
        GraphSet.pack([PATH]).with_times(times)


def test_graphs_with_times_and_without_cannot_be_packed() -> None:
    with pytest.raises(ValueError, match="graph 1 has times of edges, expected no times as graph 0"):
        GraphSet.pack([PATH, PATH.with_times(torch.ones(2, dtype=torch.float64))])


def test_a_batch_of_all_graphs_by_hand() -> None:
    batch = union([PATH, DOT, LOOPED])
    assert batch.ends.tolist() == [[0, 1, 4, 5, 5, 4], [1, 2, 4, 5, 4, 5]]
    assert batch.owner is not None
    assert batch.owner.tolist() == [0, 0, 0, 1, 2, 2]
    assert batch.num_graphs == 3
    assert batch.nodes.equal(torch.cat([PATH.nodes, DOT.nodes, LOOPED.nodes]))


@given(graphs=sets())
def test_a_batch_of_all_graphs_is_a_loop_over_them(graphs: list[Graph]) -> None:
    assert_same_graph(union(graphs), by_loop(graphs))


@given(graphs=sets(), data=st.data())
def test_a_batch_has_its_graphs_in_order(graphs: list[Graph], data: st.DataObject) -> None:
    numbers = data.draw(st.lists(st.integers(0, len(graphs) - 1), min_size=1, max_size=7))
    batch = GraphSet.pack(graphs).batch(torch.tensor(numbers))
    index = [graphs[number] for number in numbers]
    assert_same_graph(batch, by_loop(index))
    assert_same_graph(batch, union(index))


@pytest.mark.parametrize("numbers", [[3, 1, 0, 2], [2, 2, 1, 2], [1], [1, 1], [2], [0, 3]])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_batches_with_repeats_loops_and_graphs_without_edges(numbers: list[int], dtype: torch.dtype) -> None:
    graphs = [PATH, DOT, LOOPED, TRIANGLE]
    batch = GraphSet.pack(graphs).batch(torch.tensor(numbers, dtype=dtype))
    assert_same_graph(batch, by_loop([graphs[number] for number in numbers]))


@pytest.mark.parametrize("numbers", [[0, 1, 2], [1, 1], [2, 0], [0]])
@pytest.mark.parametrize("leaves", [LONGEST, LONGEST + 1, 3 * LONGEST])
def test_batches_of_a_set_with_a_hub(leaves: int, numbers: list[int]) -> None:
    graphs = [PATH, star(leaves), LOOPED]
    batch = GraphSet.pack(graphs).batch(torch.tensor(numbers))
    assert_same_graph(batch, by_loop([graphs[number] for number in numbers]))


def test_batches_of_a_set_with_a_large_graph_that_has_no_hub() -> None:
    nodes = torch.arange(LONGEST + 9)
    ring = graph_of(Incidence(torch.stack([nodes, nodes.roll(-1)]), len(nodes)), seed=5)
    graphs = [PATH, ring, TRIANGLE]
    batch = GraphSet.pack(graphs).batch(torch.tensor([2, 1, 1]))
    assert stored(batch.incidence, "csr")
    assert_same_graph(batch, by_loop([TRIANGLE, ring, ring]))


def test_a_set_of_a_billion_edges_numbers_them_in_64_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Incidence, "_integer", torch.int64)
    graphs = [PATH, DOT, LOOPED, TRIANGLE]
    assert_same_graph(GraphSet.pack(graphs).batch(torch.tensor([3, 2, 0])), by_loop([TRIANGLE, LOOPED, PATH]))


def test_a_batch_comes_with_the_cached_properties_that_layers_read() -> None:
    batch = GraphSet.pack([PATH, DOT, TRIANGLE]).batch(torch.tensor([2, 0]))
    names = ("csr", "pairs", "node_degree", "edge_degree", "edge_owner", "multiplicity", "is_loop")
    assert stored(batch.incidence, *names).keys() == set(names)


def test_a_set_whose_ends_are_int32_makes_the_same_batches() -> None:
    graphs = [PATH, LOOPED, TRIANGLE]
    narrow = GraphSet.pack([replace(graph, ends=graph.ends.int()) for graph in graphs])
    assert_same_graph(narrow.batch(torch.tensor([2, 0])), by_loop([TRIANGLE, PATH]))


@given(graphs=sets(), data=st.data())
def test_a_batch_propagates_as_each_graph_alone(graphs: list[Graph], data: st.DataObject) -> None:
    numbers = data.draw(st.lists(st.integers(0, len(graphs) - 1), min_size=1, max_size=5))
    batch = GraphSet.pack(graphs).batch(torch.tensor(numbers))

    def propagate(graph: Graph) -> tuple[Tensor, Tensor]:
        edge_weight, node_weight = graph.edges[:, 0], graph.nodes[:, 0]
        return (
            propagate_nodes(graph.nodes, edge_weight, graph.incidence, "one"),
            propagate_edges(graph.edges, node_weight, graph.incidence),
        )

    alone = [propagate(graphs[number]) for number in numbers]
    for together, parts in zip(propagate(batch), zip(*alone, strict=True), strict=True):
        assert_near(together, torch.cat(parts), 1e-12)


def test_a_set_gives_its_graphs_back() -> None:
    graphs = [PATH, DOT, LOOPED]
    packed = GraphSet.pack(graphs)
    assert len(packed) == 3
    assert packed.node_offset.tolist() == [0, 3, 4, 6]
    assert packed.edge_offset.tolist() == [0, 2, 2, 6]
    for number, graph in enumerate(graphs):
        assert_same_graph(packed[number], graph)
        assert_same_graph(packed[number - 3], graph)
    assert [graph.num_nodes for graph in packed] == [3, 1, 2]
    for number in (3, -4):
        with pytest.raises(IndexError, match=rf"^graph {number} was asked for, expected one from 0 to 2$"):
            packed[number]


def test_a_subset_is_the_set_of_those_graphs() -> None:
    subset = GraphSet.pack([PATH, DOT, LOOPED]).subset(torch.tensor([2, 0, 2]))
    expected = GraphSet.pack([LOOPED, PATH, LOOPED])
    for name in ("nodes", "edges", "ends", "node_offset", "edge_offset"):
        assert_same(getattr(subset, name), getattr(expected, name))
    assert_same_graph(subset.batch(torch.tensor([1, 2])), by_loop([PATH, LOOPED]))


def test_another_device_has_the_same_set() -> None:
    packed = GraphSet.pack([PATH, DOT])
    moved = packed.to("cpu")
    assert moved is not packed
    for name in ("nodes", "edges", "ends", "node_offset", "edge_offset"):
        assert_same(getattr(moved, name), getattr(packed, name))


def test_gradients_reach_the_features_of_a_set() -> None:
    packed = GraphSet.pack([PATH, DOT, LOOPED])
    nodes = packed.nodes.clone().requires_grad_()
    batch = replace(packed, nodes=nodes).batch(torch.tensor([0, 0, 1]))
    (grad,) = torch.autograd.grad(batch.nodes.sum(), nodes)
    assert grad[:, 0].tolist() == [2, 2, 2, 1, 0, 0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes": torch.ones(4)}, r"^nodes has shape \(4,\), expected \(\*, \*\): \(N, node_width\)$"),
        ({"edges": torch.ones(2)}, r"^edges has shape \(2,\), expected \(\*, \*\): \(E, edge_width\)$"),
        ({"nodes": torch.ones(4, 4).int()}, r"^nodes has dtype torch.int32, expected a floating-point one"),
        ({"edges": torch.ones(2, 2).int()}, r"^edges has dtype torch.int32, expected a floating-point one"),
        ({"ends": NO_ENDS}, r"^ends has shape \(2, 0\), expected \(2, 2\): \(2, E\), one column for each edge$"),
        (
            {"nodes": torch.ones(4, 4).to_sparse_csr()},
            r"^nodes has layout torch.sparse_csr, expected dense: the rows of a batch are gathered$",
        ),
        (
            {"node_offset": torch.tensor([0, 3])},
            r"^node_offset is \[0, 3\], expected to rise from 0 to 4, by at least 1 for each graph$",
        ),
        ({"node_offset": torch.tensor([0, 4, 4])}, r"^node_offset is \[0, 4, 4\], expected to rise from 0 to 4"),
        ({"node_offset": torch.tensor([1, 3, 4])}, r"^node_offset is \[1, 3, 4\], expected to rise from 0"),
        ({"node_offset": torch.tensor([4])}, r"^node_offset is \[4\], expected to rise"),
        ({"node_offset": torch.empty(0).long()}, r"^node_offset is \[\], expected to rise"),
        ({"node_offset": torch.tensor([0, 1, 2, 3, 5])}, r"^node_offset is \[0, 1, 2, 3, \.\.\.\], expected to rise"),
        ({"node_offset": torch.tensor([[0, 3, 4]])}, r"^node_offset has shape \(1, 3\), expected \(\*,\): \(G \+ 1,\)"),
        (
            {"edge_offset": torch.tensor([0, 3, 2])},
            r"^edge_offset is \[0, 3, 2\], expected to rise from 0 to 2, by at least 0 for each graph$",
        ),
        (
            {"edge_offset": torch.tensor([0, 2])},
            r"^edge_offset has shape \(2,\), expected \(3,\): \(G \+ 1,\), as node",
        ),
        ({"ends": torch.tensor([[0, 1], [1, -2]])}, r"^ends\[1, 1\] is -2, expected a node from 0 to 3"),
        (
            {"ends": torch.tensor([[0, 1], [1, 3]])},
            r"^ends\[:, 1\] is \[1, 3\], expected nodes from 0 to 2: each graph numbers its own nodes from 0$",
        ),
        (
            {"ends": torch.ones(2, 2)},
            r"^ends has dtype torch.float32, expected whole numbers: number each node from 0$",
        ),
    ],
)
def test_wrong_sets_are_named(change: dict[str, Tensor], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(GraphSet.pack([PATH, DOT]), **change)


def test_what_cannot_be_packed_is_named() -> None:
    with pytest.raises(ValueError, match=r"^graphs is empty, expected at least one: a set without graphs has no"):
        GraphSet.pack([])
    with pytest.raises(ValueError, match=r"^graphs is empty, expected at least one"):
        union([])
    wide = replace(PATH, nodes=torch.ones(3, 5, dtype=torch.float64))
    with pytest.raises(
        ValueError,
        match=r"^graph 1 has node and edge widths 5, 2, expected 4, 2 as graph 0: a set has the same features",
    ):
        GraphSet.pack([PATH, wide])
    with pytest.raises(ValueError, match=r"^graph 1 is a batch of 2, expected single graphs$"):
        GraphSet.pack([PATH, union([PATH, DOT])])


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        (torch.empty(0).long(), r"^index is empty, expected at least one graph$"),
        (torch.tensor([[0, 1]]), r"^index has shape \(1, 2\), expected \(\*,\): \(B,\), the graphs of the batch$"),
        (torch.tensor([0, 2]), r"^index\[1\] is 2, expected a graph from 0 to 1: there are 2 graphs$"),
        (torch.tensor([-1]), r"^index\[0\] is -1, expected a graph from 0 to 1"),
        (torch.tensor([0.0]), r"^index has dtype torch.float32, expected whole numbers: number each graph from 0$"),
        (torch.tensor([True, False]), r"^index has dtype torch.bool, expected whole numbers"),
    ],
)
def test_wrong_numbers_are_named(numbers: Tensor, message: str) -> None:
    packed = GraphSet.pack([PATH, DOT])
    for batch_index in (packed.batch, packed.subset):
        with pytest.raises(ValueError, match=message):
            batch_index(numbers)


def test_sparse_graphs_cannot_be_packed() -> None:
    sparse = replace(PATH, nodes=PATH.nodes.to_sparse_csr())
    with pytest.raises(ValueError, match=r"^nodes has layout torch.sparse_csr, expected dense"):
        GraphSet.pack([sparse, sparse])
