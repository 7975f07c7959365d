"""Ego graphs: every neighborhood whole and by itself, and an ego in its own is embedded as in the whole graph."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import assert_near, incidences
from torch import Tensor

from censnet.nn import CensNet
from censnet.nn.encoder import receptive_field
from censnet.ops.ego import ego_batches, ego_graphs, ego_sizes, mark_egos
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.ops.incidence import Incidence

ROW, PAGERANK = {"normalization": "row"}, {"kernel": "pagerank", "self_weight": "one"}
DIRECTED = {"directed": True, "edge_content": True, "pair_means": True}


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def filled(incidence: Incidence, seed: int = 0, directed: bool = False) -> Graph:
    nodes = torch.randn(incidence.num_nodes, 3, generator=seeded(seed), dtype=torch.float64)
    edges = torch.randn(incidence.num_edges, 2, generator=seeded(seed + 1), dtype=torch.float64)
    return Graph(nodes, edges, incidence.ends, directed=directed)


def random_graph(num_nodes: int, num_edges: int, seed: int = 0) -> Graph:
    """With loops, parallel and reciprocal edges, and isolated nodes."""
    ends = torch.randint(num_nodes - 2, (2, num_edges), generator=seeded(seed))
    ends = torch.cat([ends, ends[:, :5], ends[:, 5:10].flip(0), torch.tensor([[3, 3], [3, 3]])], dim=1)
    return filled(Incidence(ends, num_nodes), directed=True)


def around(graph: Graph, node: int, hops: int) -> tuple[set[int], set[int]]:
    """The nodes within some hops and the edges between them, by loops."""
    pairs = [tuple(pair) for pair in graph.ends.t().tolist()]
    nodes = {node}
    for _ in range(hops):
        nodes = nodes | {end for pair in pairs if nodes & set(pair) for end in pair}
    return nodes, {number for number, pair in enumerate(pairs) if set(pair) <= nodes}


@given(incidence=incidences(max_nodes=9), hops=st.integers(0, 3), seed=st.integers(0, 2**16))
@settings(max_examples=80, deadline=None)
def test_each_ego_graph_is_the_induced_neighborhood(incidence: Incidence, hops: int, seed: int) -> None:
    graph = filled(incidence)
    egos = torch.randint(graph.num_nodes, (4,), generator=seeded(seed))  # one may come twice
    found = ego_graphs(graph, egos, hops)
    owner, ends = found.graph.owner, found.graph.ends
    assert owner is not None
    assert found.graph.num_graphs == len(egos)
    assert found.nodes[found.seeds].equal(egos)
    assert owner[found.seeds].equal(torch.arange(len(egos)))
    assert owner[ends[0]].equal(owner[ends[1]])
    assert found.nodes[ends].equal(graph.ends[:, found.edges])
    assert found.graph.nodes.equal(graph.nodes[found.nodes])
    assert found.graph.edges.equal(graph.edges[found.edges])
    for number, ego in enumerate(egos.tolist()):
        nodes, edges = around(graph, ego, hops)
        assert found.nodes[owner == number].tolist() == sorted(nodes)
        assert sorted(found.edges[owner[ends[0]] == number].tolist()) == sorted(edges)


@given(incidence=incidences(max_nodes=9), hops=st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_what_is_known_of_parallel_edges_and_loops_is_what_a_new_incidence_finds(
    incidence: Incidence, hops: int
) -> None:
    graph = filled(incidence)
    known = ego_graphs(graph, torch.arange(graph.num_nodes), hops).graph.incidence
    new = Incidence(known.ends, known.num_nodes, known.owner, known.num_graphs)
    assert known.multiplicity.equal(new.multiplicity)
    assert (known.is_loop is None) == (new.is_loop is None)
    assert known.port.equal(new.port)
    assert known.port.equal(graph.incidence.port[ego_graphs(graph, torch.arange(graph.num_nodes), hops).edges])


@pytest.mark.parametrize("options", [{}, ROW, PAGERANK, DIRECTED], ids=["paper", "row", "pagerank", "directed"])
@pytest.mark.parametrize("layers", ["N", "EN", "NEN", "ENEN"])
def test_an_ego_is_embedded_as_in_the_whole_graph(layers: str, options: dict[str, object]) -> None:
    graph = random_graph(40, 60)
    model = CensNet(3, 2, hidden=6, layers=layers, heads=2, **options).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.3, generator=seeded(0))
    hops = receptive_field(layers, steps=model.steps)
    found = ego_graphs(graph, torch.arange(graph.num_nodes), hops)

    @torch.no_grad()
    def embed(graph: Graph) -> Tensor:
        embedded: Tensor = model(graph.nodes, graph.edges, graph.incidence)[0]
        return embedded

    assert_near(embed(found.graph)[found.seeds], embed(graph), 1e-10)
    if model.steps == 1 and layers != "N":  # one hop less is not enough: the graph is not all within reach
        less = ego_graphs(graph, torch.arange(graph.num_nodes), hops - 1)
        assert float((embed(less.graph)[less.seeds] - embed(graph)).abs().max()) > 1e-4


def test_marks_are_one_at_egos_and_nowhere_else() -> None:
    graph = random_graph(20, 30)
    found = ego_graphs(graph, torch.tensor([7, 3, 7]), 2)
    marked = mark_egos(found)
    assert marked.node_width == graph.node_width + 1
    assert marked.nodes[:, -1].nonzero().squeeze(1).equal(found.seeds)
    assert marked.nodes[:, :-1].equal(found.graph.nodes)
    assert marked.directed


@pytest.mark.parametrize("hops", [0, 1, 2, 4])
def test_sizes_bound_the_ego_graphs_and_batches_keep_the_bound(hops: int) -> None:
    graph = random_graph(50, 80)
    sizes = ego_sizes(graph.incidence, hops)
    for node in range(graph.num_nodes):
        one = ego_graphs(graph, torch.tensor([node]), hops)
        starting = int(graph.incidence.out_degree[one.nodes].sum())
        assert int(sizes[node]) == len(one.nodes) + starting
        assert len(one.edges) <= starting
    order = torch.randperm(graph.num_nodes, generator=seeded(0))
    batches = ego_batches(graph, order, hops, most=60)
    assert torch.cat(batches).equal(order)
    assert len(batches) > 1
    assert all(int(sizes[batch].sum()) <= 60 + int(sizes.max()) for batch in batches)


def test_a_set_of_graphs_is_one_graph_whose_parts_do_not_meet() -> None:
    graphs = [random_graph(12, 15, seed) for seed in range(3)]
    whole = GraphSet.pack(graphs).whole
    found = ego_graphs(whole, torch.arange(whole.num_nodes), 9)
    alone = [ego_graphs(graph, torch.arange(12), 9) for graph in graphs]
    assert found.nodes.equal(torch.cat([part.nodes + 12 * number for number, part in enumerate(alone)]))
    assert found.graph.nodes.equal(torch.cat([part.graph.nodes for part in alone]))


def test_a_leaf_of_a_large_star_is_found_without_its_siblings() -> None:
    leaves = 100_000
    star = Incidence(torch.stack([torch.zeros(leaves).long(), torch.arange(1, leaves + 1)]), leaves + 1)
    found = ego_graphs(Graph(torch.ones(leaves + 1, 1), torch.ones(leaves, 1), star.ends), torch.tensor([5, 9]), 1)
    assert found.nodes.tolist() == [0, 5, 0, 9]
    assert found.edges.tolist() == [4, 8]


def test_wrong_arguments_are_refused() -> None:
    graph = random_graph(10, 12)
    with pytest.raises(ValueError, match="hops is -1, expected 0 or more"):
        ego_graphs(graph, torch.tensor([0]), -1)
    with pytest.raises(ValueError, match="nodes"):
        ego_graphs(graph, torch.tensor([10]), 1)
