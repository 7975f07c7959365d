"""Parts of a graph: exact when everything around is taken, fair when some is drawn, small however big the rest."""

from __future__ import annotations

import time
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2
from strategies import assert_near, incidences
from torch import Tensor

from censnet.nn import CensNet
from censnet.nn.encoder import receptive_field
from censnet.ops.graph import Graph
from censnet.ops.incidence import Incidence
from censnet.ops.sampling import Subgraph, incident_edges, induced_subgraph, proportional_batches, sample_neighbors

NODE_WIDTH, EDGE_WIDTH = 3, 2


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def filled(incidence: Incidence, seed: int = 0) -> Graph:
    nodes = torch.randn(incidence.num_nodes, NODE_WIDTH, generator=seeded(seed), dtype=torch.float64)
    edges = torch.randn(incidence.num_edges, EDGE_WIDTH, generator=seeded(seed + 1), dtype=torch.float64)
    return Graph(nodes, edges, incidence.ends, incidence.owner, incidence.num_graphs)


def random_graph(num_nodes: int, num_edges: int, seed: int = 0) -> Graph:
    return filled(Incidence(torch.randint(num_nodes, (2, num_edges), generator=seeded(seed)), num_nodes))


def stars(hubs: int, leaves: int) -> Graph:
    """Hubs first; edge r of hub h has the number h * leaves + r."""
    ends = torch.stack([torch.arange(hubs).repeat_interleave(leaves), torch.arange(hubs * leaves) + hubs])
    return filled(Incidence(ends, hubs * (1 + leaves)))


TANGLE = filled(Incidence(torch.tensor([[0, 1, 2, 1, 3, 3, 3], [1, 2, 0, 0, 3, 0, 3]]), 5))  # and an isolated node


def shaken(model: CensNet) -> CensNet:
    """In float64, no parameter at a special value; of the released gates many are the largest of their column."""
    generator = seeded(0)
    with torch.no_grad():
        for name, parameter in model.double().named_parameters():
            large = model.variant == "released" and name.endswith("gate_weight")
            parameter.normal_(0, 6 if large else 1, generator=generator)
    return model


def check_part(part: Subgraph, graph: Graph, rows: Tensor, level: str) -> None:
    """Everything in a part is what it is in the graph, each once and in order, and the seeds are the rows."""
    assert part.nodes.equal(torch.unique(part.nodes))
    assert part.edges.equal(torch.unique(part.edges))
    assert part.nodes[part.graph.ends].equal(graph.ends[:, part.edges])
    assert part.graph.nodes.equal(graph.nodes[part.nodes])
    assert part.graph.edges.equal(graph.edges[part.edges])
    assert (part.nodes if level == "node" else part.edges)[part.seeds].equal(rows)
    if graph.owner is not None:
        assert part.graph.owner is not None
        assert part.graph.owner.equal(graph.owner[part.nodes])
        assert part.graph.num_graphs == graph.num_graphs


def surroundings(graph: Graph, rows: Tensor, level: str, hops: int) -> tuple[set[int], set[int]]:
    """The nodes and edges within some hops, by loops."""
    pairs = [tuple(pair) for pair in graph.ends.t().tolist()]
    edges = set(rows.tolist()) if level == "edge" else set()
    nodes = {end for edge in edges for end in pairs[edge]} if level == "edge" else set(rows.tolist())
    for _ in range(hops):
        edges |= {number for number, pair in enumerate(pairs) if nodes & set(pair)}
        nodes = nodes | {end for edge in edges for end in pairs[edge]}
    return nodes, edges


def chi_square(times: list[int]) -> float:
    """How likely it is for counts to be so uneven, when all are equally likely."""
    counts = np.array(times)
    expected = counts.mean()
    return float(chi2.sf(((counts - expected) ** 2 / expected).sum(), len(counts) - 1))


# -- what is around rows -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["node", "edge"])
@given(incidence=incidences(max_nodes=9), hops=st.integers(0, 3), seed=st.integers(0, 2**16))
@settings(max_examples=60, deadline=None)
def test_with_all_edges_it_is_everything_within_the_hops(
    level: str, incidence: Incidence, hops: int, seed: int
) -> None:
    graph = filled(incidence)
    count = graph.num_nodes if level == "node" else graph.num_edges
    if count == 0:
        return
    rows = torch.randint(count, (3,), generator=seeded(seed))  # one may come twice
    part = sample_neighbors(graph, rows, level, (None,) * hops)
    check_part(part, graph, rows, level)
    nodes, edges = surroundings(graph, rows, level, hops)
    assert set(part.nodes.tolist()) == nodes
    assert set(part.edges.tolist()) == edges


@pytest.mark.parametrize("level", ["node", "edge"])
@given(incidence=incidences(max_nodes=9), fanout=st.lists(st.integers(0, 4), max_size=3), seed=st.integers(0, 2**16))
@settings(max_examples=60, deadline=None)
def test_each_node_met_before_the_last_hop_has_its_draw(
    level: str, incidence: Incidence, fanout: list[int], seed: int
) -> None:
    graph = filled(incidence)
    count = graph.num_nodes if level == "node" else graph.num_edges
    if count == 0:
        return
    rows = torch.randint(count, (2,), generator=seeded(seed))
    part = sample_neighbors(graph, rows, level, fanout, seeded(seed))
    check_part(part, graph, rows, level)
    have = Counter(node for pair in graph.ends[:, part.edges].t().tolist() for node in set(pair))
    whole = graph.incidence.edge_count.tolist()
    nodes, edges = surroundings(part.graph, part.seeds, level, len(fanout))
    assert len(nodes) == part.graph.num_nodes
    assert len(edges) == part.graph.num_edges
    starts = set(rows.tolist() if level == "node" else graph.ends[:, rows].reshape(-1).tolist())
    if fanout:
        assert all(have[node] >= min(fanout[0], whole[node]) for node in starts)
    most = sum(count * size for count, size in zip(_most_met(len(starts), fanout), fanout, strict=True))
    assert part.graph.num_edges <= most + (len(rows) if level == "edge" else 0)


def _most_met(seeds: int, fanout: list[int]) -> list[int]:
    """The most nodes that each hop can draw around."""
    met = [seeds]
    for size in fanout:
        met.append(met[-1] * size)
    return met[:-1]


WORDS = ("N", "E", "NE", "EN", "NEN", "ENE", "NEEN", "NENEN")
SETTINGS: list[dict[str, object]] = [
    {},
    {"self_weight": "one", "normalization": "row"},
    {"self_weight": "learned", "gate": "bounded", "heads": 2, "residual": True},
    {"variant": "released"},
    {"kernel": "power"},
]


def big(kind: str) -> Graph:
    """A long circle with chords, so that most of it is out of reach, or with loops and parallel edges as well."""
    count = 200
    ring = torch.stack([torch.arange(count), (torch.arange(count) + 1) % count])
    start = torch.randint(count, (60,), generator=seeded(3))
    ends = torch.cat([ring, torch.stack([start, (start + 3) % count])], dim=1)
    if kind == "multigraph":
        ends = torch.cat([ends, ends[:, ::4].flip(0), ends[:1, ::7].expand(2, -1)], dim=1)
    if kind == "hubs":  # more edges than a bag holds in one piece
        leaves = torch.arange(count, count + 1300)
        ends = torch.cat([ends, torch.stack([leaves % 2, leaves])], dim=1)
        count += 1300
    ends = ends[:, torch.randperm(ends.shape[1], generator=seeded(4))]
    return filled(Incidence(ends, count + 1))


@pytest.mark.parametrize("kind", ["simple", "multigraph", "hubs"])
@pytest.mark.parametrize("level", ["node", "edge"])
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize("word", WORDS)
def test_seeds_have_the_embedding_that_they_have_in_the_whole_graph(
    word: str, setting: dict[str, object], level: str, kind: str
) -> None:
    graph = big(kind)
    model = shaken(CensNet(NODE_WIDTH, EDGE_WIDTH, 4, word, activation="tanh", **setting))
    released, steps = setting.get("variant") == "released", 2 if setting.get("kernel") == "power" else 1
    hops = receptive_field(word, level, steps, released)
    rows = torch.tensor([20, 21, 90, 20, 0])
    part = sample_neighbors(graph, rows, level, (None,) * hops)
    place = 0 if level == "node" else 1
    whole = model(graph.nodes, graph.edges, graph.incidence)[place][rows]
    found = model(part.graph.nodes, part.graph.edges, part.graph.incidence)[place][part.seeds]
    assert_near(found.detach(), whole.detach(), 1e-12)
    if kind == "simple" and hops < 4:
        assert part.graph.num_nodes < graph.num_nodes  # or there is nothing to show


@pytest.mark.slow
@pytest.mark.parametrize(("word", "level"), [("NEN", "node"), ("EN", "node"), ("ENE", "edge"), ("NENEN", "node")])
@pytest.mark.parametrize("released", [False, True])
def test_fewer_hops_than_the_reach_are_too_few(word: str, level: str, released: bool) -> None:
    graph = big("simple")
    model = shaken(CensNet(3, 2, 4, word, activation="tanh", variant="released" if released else "paper"))
    place, hops = 0 if level == "node" else 1, receptive_field(word, level, released=released)
    whole = model(graph.nodes, graph.edges, graph.incidence)[place]
    furthest = 0.0
    for row in range(0, 200, 5):
        part = sample_neighbors(graph, torch.tensor([row]), level, (None,) * (hops - 1))
        found = model(part.graph.nodes, part.graph.edges, part.graph.incidence)[place][part.seeds]
        furthest = max(furthest, (found - whole[row]).abs().max().item())
    assert furthest > 1e-9


def test_sparse_features_and_gradients_of_dense_ones_come_along() -> None:
    sparse = Graph((TANGLE.nodes * (TANGLE.nodes > 0)).to_sparse_csr(), TANGLE.edges, TANGLE.ends)
    part = sample_neighbors(sparse, torch.tensor([4, 2, 4]), fanout=(None,))
    assert part.graph.nodes.layout == torch.sparse_csr
    assert part.graph.nodes.to_dense().equal(sparse.nodes.to_dense()[part.nodes])

    nodes = TANGLE.nodes.clone().requires_grad_()
    part = sample_neighbors(Graph(nodes, TANGLE.edges, TANGLE.ends), torch.tensor([4]), fanout=(None,))
    part.graph.nodes.sum().backward()
    assert nodes.grad is not None
    assert nodes.grad.nonzero()[:, 0].unique().tolist() == [4]


# -- degrees -----------------------------------------------------------------------------------------------------------


def test_degrees_are_of_the_subgraph_inside_and_of_the_whole_graph_at_the_boundary() -> None:
    hub = Graph(  # 0 has ten leaves; leaf 1 has four of its own, of which 11 has one more
        torch.zeros(16, 1),
        torch.zeros(15, 1),
        torch.tensor([[0] * 10 + [1, 1, 1, 1, 11], [*range(1, 11), 11, 12, 13, 14, 15]]),
    )
    part = sample_neighbors(hub, torch.tensor([0]), fanout=(4,), generator=seeded(0))
    degree = dict(zip(part.nodes.tolist(), part.graph.incidence.node_degree.tolist(), strict=True))
    whole = hub.incidence.node_degree
    assert degree.pop(0) == 5  # four of its ten edges
    assert degree
    assert all(degree[leaf] == whole[leaf] for leaf in degree)
    for edge, (i, j) in zip(part.edges.tolist(), hub.ends[:, part.edges].t().tolist(), strict=True):
        place = int((part.edges == edge).nonzero())
        assert part.graph.incidence.edge_degree[place] == 4 + hub.incidence.edge_count[j] - 1
        assert i == 0


def test_a_part_keeps_its_degrees_when_it_is_moved() -> None:
    graph = random_graph(100, 300)
    part = sample_neighbors(graph, torch.tensor([3, 50]), fanout=(2, 2), generator=seeded(0))
    moved = part.to("cpu")
    assert moved.graph is not part.graph
    assert not moved.graph.incidence.node_degree.equal(Incidence(part.graph.ends, len(part.nodes)).node_degree)
    assert moved.graph.incidence.node_degree.equal(part.graph.incidence.node_degree)
    assert moved.graph.incidence.edge_degree.equal(part.graph.incidence.edge_degree)
    check_part(moved, graph, torch.tensor([3, 50]), "node")


def test_an_average_over_drawn_edges_is_right_on_average() -> None:
    """With rows normalised, a node has the mean over what was drawn, which is unbiased, whatever the fanout."""
    hubs = torch.arange(1000)
    graph = stars(len(hubs), 20)
    model = CensNet(NODE_WIDTH, EDGE_WIDTH, out_width=1, layers="N", gate="bounded", self_weight="one").double()
    model.layers[0].normalization = "row"
    part = sample_neighbors(graph, hubs, fanout=(7,), generator=seeded(1))
    with torch.no_grad():
        whole = 21 * model(graph.nodes, graph.edges, graph.incidence)[0][hubs]
        found = 8 * model(part.graph.nodes, part.graph.edges, part.graph.incidence)[0][part.seeds]
        own = graph.nodes[hubs] @ model.layers[0].weight
    error = (found - own) / 7 - (whole - own) / 20
    assert error.std() > 0.1
    assert error.mean().abs() < 4 * error.std() / len(hubs) ** 0.5


# -- draws -------------------------------------------------------------------------------------------------------------


def test_every_set_of_edges_is_drawn_equally_often() -> None:
    hubs = torch.arange(4000)
    part = sample_neighbors(stars(len(hubs), 6), hubs, fanout=(3,), generator=seeded(0))
    drawn = (part.edges % 6).view(-1, 3).tolist()  # in the order of the hubs
    sets = {three: number for number, three in enumerate(combinations(range(6), 3))}
    times = Counter(sets[tuple(three)] for three in drawn)
    assert chi_square([times[number] for number in range(20)]) > 1e-3


def test_edges_of_chunked_hubs_are_sampled_equally_often() -> None:
    hubs = torch.arange(50)
    part = sample_neighbors(stars(len(hubs), 1500), hubs, fanout=(200,), generator=seeded(0))
    assert (torch.bincount(part.edges // 1500) == 200).all()
    assert chi_square(torch.bincount(part.edges % 1500 // 100).tolist()) > 1e-3


@pytest.mark.parametrize("kind", ["loops", "parallel"])
def test_loops_and_parallel_edges_are_drawn_as_often_as_others(kind: str) -> None:
    hubs = 3000
    graph = stars(hubs, 6)
    ends = graph.ends.clone().view(2, hubs, 6)
    ends[1, :, 2] = ends[1, :, 4] = ends[0, :, 0] if kind == "loops" else ends[1, :, 0]
    graph = Graph(graph.nodes, graph.edges, ends.view(2, -1))
    part = sample_neighbors(graph, torch.arange(hubs), fanout=(2,), generator=seeded(0))
    assert (torch.bincount(part.edges // 6) == 2).all()
    assert chi_square(torch.bincount(part.edges % 6, minlength=6).tolist()) > 1e-3


def test_a_generator_decides() -> None:
    graph = random_graph(300, 2000)
    rows = torch.tensor([7, 250, 7])
    one, same, other = (sample_neighbors(graph, rows, fanout=(3, 2), generator=seeded(seed)) for seed in (0, 0, 1))
    assert one.edges.equal(same.edges)
    assert one.graph.ends.equal(same.graph.ends)
    assert not one.edges.equal(other.edges)
    torch.manual_seed(5)
    first = sample_neighbors(graph, rows, fanout=(3,))
    torch.manual_seed(5)
    assert sample_neighbors(graph, rows, fanout=(3,)).edges.equal(first.edges)


@pytest.mark.parametrize("fanout", [(5,), (5, 5), (None,)])
def test_an_isolated_seed_is_a_part_alone(fanout: tuple[int | None, ...]) -> None:
    part = sample_neighbors(TANGLE, torch.tensor([4, 4]), fanout=fanout)
    assert part.graph.num_edges == 0
    assert part.nodes.tolist() == [4]
    assert part.seeds.tolist() == [0, 0]
    assert part.graph.incidence.node_degree.tolist() == [1]


def test_an_edge_is_there_with_both_ends_though_none_is_drawn() -> None:
    part = sample_neighbors(TANGLE, torch.tensor([3, 4, 3]), "edge", (0, 0))
    assert part.edges.tolist() == [3, 4]
    assert part.nodes.tolist() == [0, 1, 3]
    assert part.seeds.tolist() == [0, 1, 0]


@pytest.mark.slow
def test_a_hub_costs_no_more_than_another_node() -> None:
    """Edges are drawn around a node of a million in the time of a node of a hundred, but for noise."""
    ends = torch.stack([torch.zeros(1_000_000, dtype=torch.int64), torch.randint(1, 200_000, (1_000_000,))])
    ends[0, :100] = 200_000
    graph = Graph(torch.zeros(200_001, 1), torch.zeros(1_000_000, 1), ends)

    def seconds(node: int) -> float:
        rows, best = torch.tensor([node]), float("inf")
        for _ in range(5):
            start = time.process_time()
            sample_neighbors(graph, rows, fanout=(10,), generator=seeded(0))
            best = min(best, time.process_time() - start)
        return best

    seconds(0)  # what is made once for the graph
    assert seconds(0) < 10 * seconds(200_000) + 1e-3


# -- nodes and what is between them ------------------------------------------------------------------------------------


@given(incidence=incidences(max_nodes=9), seed=st.integers(0, 2**16))
@settings(max_examples=60, deadline=None)
def test_induced_has_all_edges_between_its_nodes(incidence: Incidence, seed: int) -> None:
    graph = filled(incidence)
    nodes = torch.randint(graph.num_nodes, (4,), generator=seeded(seed))
    part = induced_subgraph(graph, nodes)
    check_part(part, graph, nodes, "node")
    chosen = set(nodes.tolist())
    assert set(part.nodes.tolist()) == chosen
    expected = [e for e, (i, j) in enumerate(graph.ends.t().tolist()) if i in chosen and j in chosen]
    assert part.edges.tolist() == expected
    fresh = Incidence(part.graph.ends, part.graph.num_nodes)  # degrees are its own
    assert part.graph.incidence.node_degree.equal(fresh.node_degree)
    assert part.graph.incidence.edge_degree.equal(fresh.edge_degree)


def test_all_nodes_are_the_graph_itself() -> None:
    graph = big("multigraph")
    part = induced_subgraph(graph, torch.arange(graph.num_nodes))
    assert part.graph.ends.equal(graph.ends)
    assert part.graph.nodes.equal(graph.nodes)


@given(incidence=incidences(max_nodes=9))
@settings(max_examples=40, deadline=None)
def test_the_edges_around_a_node_are_each_there_once(incidence: Incidence) -> None:
    edge, offset = incident_edges(incidence)
    for node in range(incidence.num_nodes):
        expected = [e for e, pair in enumerate(incidence.ends.t().tolist()) if node in pair]
        assert sorted(edge[offset[node] : offset[node + 1]].tolist()) == expected


# -- in proportion -----------------------------------------------------------------------------------------------------


@given(
    codes=st.lists(st.integers(-1, 2), min_size=1, max_size=60),
    batch_size=st.integers(1, 70),
    seed=st.integers(0, 2**16),
)
@settings(max_examples=100, deadline=None)
def test_batches_hold_every_part_in_proportion_and_each_node_once(codes: list[int], batch_size: int, seed: int) -> None:
    code = torch.tensor(codes)
    batches = proportional_batches(code, batch_size, seeded(seed))
    assert torch.cat(batches).sort().values.tolist() == list(range(len(codes)))
    planned = -(-len(codes) // batch_size)
    for nodes in batches:
        for part in range(-1, 3):
            share = int((code == part).sum()) / planned
            assert abs(int((code[nodes] == part).sum()) - share) <= 1
    same = proportional_batches(code, batch_size, seeded(seed))
    assert all(one.equal(other) for one, other in zip(batches, same, strict=True))


def test_another_epoch_has_other_batches() -> None:
    generator, codes = seeded(0), torch.tensor([0, 1, 2, -1] * 25)
    first, second = (proportional_batches(codes, 20, generator) for _ in range(2))
    assert not first[0].sort().values.equal(second[0].sort().values)


# -- the door ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([], {}, r"^rows is empty, expected at least one node$"),
        ([5], {}, r"^rows\[0\] is 5, expected a node from 0 to 4: there are 5 nodes$"),
        ([0, -1], {}, r"^rows\[1\] is -1, expected a node from 0 to 4"),
        ([7], {"level": "edge"}, r"^rows\[0\] is 7, expected a edge from 0 to 6: there are 7 edges$"),
        ([[0]], {}, r"^rows has shape \(1, 1\), expected \(\*,\): \(n,\), some nodes of the graph$"),
        ([0], {"level": "graph"}, r"^level is 'graph', expected 'node' or 'edge'$"),
        ([0], {"fanout": (3, -1)}, r"^fanout has -1, expected a number of edges, or None for all$"),
    ],
)
def test_what_cannot_be_drawn_is_named(rows: list[int], options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sample_neighbors(TANGLE, torch.tensor(rows, dtype=torch.int64), **options)


def test_wrong_nodes_and_batches_are_named() -> None:
    with pytest.raises(ValueError, match=r"^nodes is empty, expected at least one node$"):
        induced_subgraph(TANGLE, torch.tensor([], dtype=torch.int64))
    with pytest.raises(ValueError, match=r"^nodes\[0\] is 9, expected a node from 0 to 4"):
        induced_subgraph(TANGLE, torch.tensor([9]))
    with pytest.raises(ValueError, match=r"^batch_size is 0, expected at least 1$"):
        proportional_batches(torch.zeros(1), 0, seeded(0))
