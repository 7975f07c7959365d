"""Oriented layers against the printed rules, and the law of parities: only the flipped rows' odd channels change."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import assert_near, incidences, random_sample, shaken
from torch import Tensor, nn

from censnet.nn.ensemble import split_members, stack_members
from censnet.nn.heads import GraphHead, RowHead
from censnet.nn.model import Model
from censnet.nn.oriented import OddLayerNorm, OddNorm, OrientedEdgeLayer, OrientedNodeLayer
from censnet.nn.oriented_encoder import OrientedNet
from censnet.nn.oriented_head import OrientedHead, even_channels
from censnet.ops import textbook
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.ops.incidence import Incidence

WIDTHS = {"node": 3, "even": 2, "odd": 4}


def rows(incidence: Incidence, seed: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    """Features of nodes, and even and odd ones of edges."""
    generator = torch.Generator().manual_seed(seed)
    counts = {"node": incidence.num_nodes, "even": incidence.num_edges, "odd": incidence.num_edges}
    found = [torch.randn(counts[name], width, generator=generator, dtype=dtype) for name, width in WIDTHS.items()]
    return found[0], found[1], found[2]


def matrices(incidence: Incidence) -> tuple[Tensor, Tensor]:
    """T and B = R - S."""
    S, R = textbook.end_matrices(incidence.ends, incidence.num_nodes)
    return textbook.incidence_matrix(incidence.ends, incidence.num_nodes), R - S


def gates(layer: nn.Module, read: Tensor, name: str, width: int = 6) -> Tensor:
    gate = read @ getattr(layer, name)
    gate = gate if layer.gate == "linear" else 2 * torch.sigmoid(gate)
    return gate.repeat_interleave(width // gate.shape[1], dim=1)


def exchange(incidence: Incidence, chosen: Tensor) -> Incidence:
    """The same graph with the ends of some edges exchanged."""
    ends = torch.where(chosen, incidence.ends.flip(0), incidence.ends)
    return Incidence(ends, incidence.num_nodes, incidence.owner, incidence.num_graphs)


def subset(count: int, seed: int) -> Tensor:
    return torch.rand(count, generator=torch.Generator().manual_seed(seed)) < 0.5


@given(incidence=incidences(), seed=st.integers(0, 2**16), heads=st.sampled_from([1, 2, 6]), bounded=st.booleans())
def test_layers_are_the_printed_rules(incidence: Incidence, seed: int, heads: int, bounded: bool) -> None:
    gate = "bounded" if bounded else "linear"
    node = shaken(OrientedNodeLayer(WIDTHS, 6, heads, gate, bias=False), seed)
    edge = shaken(OrientedEdgeLayer(WIDTHS, 6, heads, gate, bias=False), seed + 1)
    x, a, b = rows(incidence, seed)
    T, B = matrices(incidence)
    names = {"W_0": "root_weight", "W": "weight", "U": "content", "U_b": "odd_content"}
    weights = {letter: getattr(node, name) for letter, name in names.items()}
    expected = textbook.oriented_node_update(T, B, x, a, b, gates(node, a, "gate_weight"), weights)
    assert_near(node(x, a, b, incidence).detach(), expected.detach(), 1e-10)
    letters = ("W_0", "W", "W_b", "V", "M", "N", "W_0'", "W'", "W_a", "V'", "G", "G_x")
    weights = {letter: getattr(edge, name) for letter, name in zip(letters, edge.matrices, strict=True)}
    u = gates(edge, x, "gate_weight"), gates(edge, x, "odd_gate_weight")
    for found, wanted in zip(
        edge(x, a, b, incidence), textbook.oriented_edge_update(T, B, x, a, b, u, weights), strict=True
    ):
        assert_near(found.detach(), wanted.detach(), 1e-10)


def test_layers_are_the_printed_rules_on_many_multigraphs_with_gradients() -> None:
    layer = shaken(OrientedEdgeLayer(WIDTHS, 4, 2, "bounded"))
    letters = ("W_0", "W", "W_b", "V", "M", "N", "W_0'", "W'", "W_a", "V'", "G", "G_x")
    for seed in range(200):
        incidence = random_sample(seed).incidence
        inputs = [one.requires_grad_() for one in rows(incidence, seed)]
        weights = {letter: getattr(layer, name) for letter, name in zip(letters, layer.matrices, strict=True)}
        u = gates(layer, inputs[0], "gate_weight", 4), gates(layer, inputs[0], "odd_gate_weight", 4)
        even, odd, _ = textbook.oriented_edge_update(*matrices(incidence), *inputs, u, weights)
        update = layer(*inputs, incidence)
        assert_near(update.even, even + layer.bias, 1e-10)
        found, wanted = ((one.sin().sum() + two.sin().sum()) for one, two in (update[:2], (even + layer.bias, odd)))
        for one, two in zip(torch.autograd.grad(found, inputs), torch.autograd.grad(wanted, inputs), strict=True):
            assert_near(one, two, 1e-10)


def test_a_path_by_hand() -> None:
    path = Incidence(torch.tensor([[0, 2], [1, 1]]), num_nodes=3)  # both edges end in node 1
    assert path.difference(torch.tensor([[1.0], [5.0], [7.0]])).tolist() == [[4.0], [-2.0]]
    assert path.divergence(torch.tensor([[1.0], [10.0]])).tolist() == [[-1.0], [11.0], [-10.0]]


@given(incidence=incidences(), seed=st.integers(0, 2**16))
def test_exchanged_ends_flip_the_odd_channels_of_a_layer_alone(incidence: Incidence, seed: int) -> None:
    node = shaken(OrientedNodeLayer(WIDTHS, 6), seed)
    edge = shaken(OrientedEdgeLayer(WIDTHS, 6), seed)
    (x, a, b), chosen = rows(incidence, seed), subset(incidence.num_edges, seed)
    sign = torch.where(chosen, -1.0, 1.0).double().unsqueeze(1)
    other = exchange(incidence, chosen)
    assert_near(node(x, a, sign * b, other), node(x, a, b, incidence), 1e-12)
    before, after = edge(x, a, b, incidence), edge(x, a, sign * b, other)
    assert_near(after.even, before.even, 1e-12)
    assert_near(after.gate, before.gate, 1e-12)
    loops = (incidence.ends[0] == incidence.ends[1]).unsqueeze(1)  # the odd channels of a loop have no order to follow
    assert_near(sign * after.odd, torch.where(loops, sign * after.odd, before.odd), 1e-12)


def whole_model(dtype: torch.dtype, norm: str | None, residual: bool | str, seed: int = 0) -> Model:
    """An encoder with every option, and heads of all levels; an odd and an even target of edges."""
    torch.manual_seed(seed)
    encoder = OrientedNet(
        3, 6, 4, hidden=8, layers="ENENEN", norm=norm, residual=residual, pre_layers=1, edge_pre_layer=True, heads=8,
        gate="bounded",
    )  # fmt: skip
    widths = encoder.out_node_width, encoder.out_edge_width
    heads = {
        "node": RowHead("node", *widths, 2, [8]),
        "edge": OrientedHead(*widths, encoder.out_odd_width, [False, True, False, True], [8], reads_nodes=True),
        "graph": GraphHead(*widths, 1, ["mean", "sum"], "both"),
    }
    model = Model(encoder, heads)
    with torch.no_grad():  # no parameter and no statistic at a special value
        for name, value in (*model.named_parameters(), *model.named_buffers()):
            if not value.is_floating_point():
                continue
            value.add_(0.2 * torch.rand_like(value) if "running" in name else 0.1 * torch.randn_like(value))
    return model.to(dtype).eval()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("norm", "residual"), [(None, False), ("batch", True), ("layer", "rezero")])
@pytest.mark.parametrize("training", [False, True])
def test_100_subsets_of_rows_flip_exactly_their_oriented_answers(
    dtype: torch.dtype, norm: str | None, residual: bool | str, training: bool
) -> None:
    model = whole_model(dtype, norm, residual).train(training)
    generator = torch.Generator().manual_seed(0)
    owner = torch.arange(40) // 20
    ends = torch.randint(20, (2, 120), generator=generator) + 20 * (torch.arange(120) // 60)  # loops, parallel edges
    nodes, edges = (torch.randn(count, width, generator=generator).to(dtype) for count, width in ((40, 3), (120, 6)))
    before = model(Graph(nodes, edges, ends, owner, 2, odd_width=4)).by_level
    assert before["edge"][:, 1].abs().max() > 0.01
    for number in range(100):
        chosen = subset(120, number)
        sign = torch.where(chosen, -1.0, 1.0).to(dtype).unsqueeze(1)
        flipped = torch.cat([edges[:, :2], sign * edges[:, 2:]], dim=1)
        other = Graph(nodes, flipped, torch.where(chosen, ends.flip(0), ends), owner, 2, odd_width=4)
        after = model(other).by_level
        assert torch.equal(after["node"], before["node"])  # to the bit, which is well within 1e-6
        assert torch.equal(after["graph"], before["graph"])
        assert torch.equal(after["edge"][:, ::2], before["edge"][:, ::2])
        assert torch.equal(sign * after["edge"][:, 1::2], before["edge"][:, 1::2])
    loops = ends[0] == ends[1]
    assert loops.any()
    assert not before["edge"][loops][:, 1::2].any()  # a loop answers 0


@pytest.mark.parametrize("norm", [None, "batch", "layer"])
def test_answers_do_not_depend_on_the_numbering_of_nodes(norm: str | None) -> None:
    """Edges are computed from lower to higher node: renumbering exchanges their ends inside, and must not be seen."""
    model = whole_model(torch.float64, norm, True)
    generator = torch.Generator().manual_seed(1)
    ends = torch.randint(20, (2, 60), generator=generator)
    nodes, edges = (
        torch.randn(count, width, generator=generator, dtype=torch.float64) for count, width in ((20, 3), (60, 6))
    )
    order = torch.randperm(20, generator=generator)
    place = torch.empty_like(order).scatter(0, order, torch.arange(20))
    before = model(Graph(nodes, edges, ends, odd_width=4)).by_level
    after = model(Graph(nodes[order], edges, place[ends], odd_width=4)).by_level
    assert_near(after["edge"], before["edge"], 1e-12)
    assert_near(after["node"], before["node"][order], 1e-12)
    assert_near(after["graph"], before["graph"], 1e-12)


def test_oriented_net_without_odd_features_still_has_odd_answers() -> None:
    encoder = OrientedNet(3, 0, hidden=8, layers="EN").double()
    path = Incidence(torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
    nodes = torch.randn(3, 3, dtype=torch.float64)
    _, edges = encoder(nodes, torch.zeros(2, 0, dtype=torch.float64), path)
    _, other = encoder(nodes, torch.zeros(2, 0, dtype=torch.float64), exchange(path, torch.tensor([True, False])))
    assert edges[:, 8:].abs().min() > 0
    torch.testing.assert_close(other[:, 8:], edges[:, 8:] * torch.tensor([[-1.0], [1.0]]))


@pytest.mark.parametrize("head", [[], [8]])
def test_members_are_each_alone(head: list[int]) -> None:
    models = []
    for seed in range(3):
        model = whole_model(torch.float64, "batch", "rezero", seed)
        width = model.encoder.out_node_width, model.encoder.out_edge_width, model.encoder.out_odd_width
        model.heads["edge"] = OrientedHead(*width, [True, False], head, reads_nodes=bool(head)).double()
        models.append(model.eval())
    stack = stack_members(models)
    incidence = random_sample(3).incidence
    nodes, even, odd = rows(incidence, 0)
    graph = Graph(nodes, torch.cat([even, odd], dim=1), incidence.ends, odd_width=4)
    for level, found in stack(graph).by_level.items():
        assert_near(found, torch.cat([model(graph).by_level[level] for model in models], dim=1), 1e-10)
    for one, two in zip(split_members(stack), models, strict=True):
        torch.testing.assert_close(one(graph).by_level["edge"], two(graph).by_level["edge"])


def test_norms_of_odd_channels_neither_center_nor_shift() -> None:
    odd = torch.randn(50, 6, dtype=torch.float64) + 3
    for norm in (OddNorm(6).double(), OddLayerNorm(6).double()):
        torch.testing.assert_close(norm(-odd), -norm(odd))
        assert not norm(torch.zeros(2, 6, dtype=torch.float64)).any()
    norm = OddNorm(6).double()
    torch.testing.assert_close(norm(odd).square().mean(0), torch.ones(6, dtype=torch.float64), atol=1e-4, rtol=0)
    assert torch.isfinite(norm(odd[:1])).all()  # a single row has the running statistics


def test_two_graphs_in_a_batch_are_each_alone() -> None:
    model = whole_model(torch.float64, "batch", True)
    graphs = []
    for seed in (2, 5):
        incidence = random_sample(seed).incidence
        nodes, even, odd = rows(incidence, seed)
        graphs.append(Graph(nodes, torch.cat([even, odd], dim=1), incidence.ends, odd_width=4))
    both = GraphSet.pack(graphs).batch(torch.tensor([1, 0]))
    assert both.odd_width == 4
    found = model(both).by_level["edge"]
    assert_near(found, torch.cat([model(graphs[number]).by_level["edge"] for number in (1, 0)]), 1e-12)


def test_even_channels_stay_and_odd_ones_become_their_size() -> None:
    edges = torch.tensor([[1.0, -2.0, 3.0, -4.0]])
    assert even_channels(edges, 2).tolist() == [[1, -2, 3, 4]]
    assert even_channels(edges, 1, members=2).tolist() == [[1, 2, 3, 4]]


def test_reprs_and_errors() -> None:
    assert repr(OrientedNodeLayer(WIDTHS, 8, 2, "bounded")) == (
        "OrientedNodeLayer(3 node, 2 even, 4 odd -> 8, heads=2, gate='bounded')"
    )
    with pytest.raises(ValueError, match="odd_width is 3, expected 0 to 2"):
        OrientedNet(4, 2, 3)
    with pytest.raises(ValueError, match="heads is 3, expected a divisor of out_width 8"):
        OrientedNodeLayer(WIDTHS, 8, 3)
    ends = torch.tensor([[0], [1]])
    with pytest.raises(ValueError, match="odd_width is 1 in a directed graph, expected 0"):
        Graph(torch.ones(2, 1), torch.ones(1, 1), ends, directed=True, odd_width=1)
    graph = Graph(torch.ones(2, 1), torch.ones(1, 3), ends, odd_width=2)
    assert repr(graph) == "Graph(2 nodes x 1, 1 edge x 3, 2 odd)"
    assert graph.with_features(graph.nodes, graph.edges).odd_width == graph.with_edges(torch.tensor([0])).odd_width == 2
