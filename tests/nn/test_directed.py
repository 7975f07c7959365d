"""The directed layers against dense references, the laws that they obey, and what they share with undirected ones."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import product

import networkx as nx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from layer_checks import check_autocast, check_layer, check_sparse_nodes, layer_gradients
from strategies import LAWS, Changed, Sample, assert_near, features, graphs, incidences, shaken, swap_ends
from torch import Tensor

from censnet.nn import CensNet, EdgeLayer, NodeLayer
from censnet.nn.directed import DirectedEdgeLayer, DirectedLayer, DirectedNodeLayer
from censnet.nn.ensemble import split_members, stack_members
from censnet.ops import Incidence, textbook

LAYERS = (DirectedNodeLayer, DirectedEdgeLayer)
TANGLE = Incidence(torch.tensor([[0, 1, 2, 1, 3, 3, 3, 2], [1, 2, 0, 0, 3, 0, 3, 0]]), 5)  # loops, an isolated node
OUT = 4
HEADS = (1, 2, OUT)
GATES = ("linear", "bounded")
WIDTHS = ((3, 5), (5, 3))
FURTHER = ({}, {"edge_content": True, "pair_means": True})
SETTINGS = [
    {"gate": gate, "heads": heads, "bias": bias, **more}
    for gate, heads, bias, more in product(GATES, HEADS, (True, False), FURTHER)
]
EXCHANGED = {  # the parameters that trade places when every edge is turned around
    DirectedNodeLayer: [("weight", "in_weight"), ("out_content", "in_content"), ("gate_weight", "in_gate_weight")],
    DirectedEdgeLayer: [
        ("weight", "same_end_weight"),
        ("into_start_weight", "out_of_end_weight"),
        ("gate_weight", "end_gate_weight"),
        ("start_content", "end_content"),
    ],
}


def multigraph(seed: int) -> Incidence:
    """A multigraph with loops, parallel edges and isolated nodes; one in three is a union of graphs."""
    generator = torch.Generator().manual_seed(seed)

    def number(low: int, high: int) -> int:
        return int(torch.randint(low, high + 1, (1,), generator=generator))

    ends, owner, num_graphs = [], [], number(1, 3) if seed % 3 == 0 else 1
    for graph in range(num_graphs):
        num_nodes = number(1, 9)
        ends.append(len(owner) + torch.randint(num_nodes, (2, number(0, 20)), generator=generator))
        owner += number(0, 2) * [graph] + num_nodes * [graph]
    union = {"owner": torch.tensor(owner), "num_graphs": num_graphs} if num_graphs > 1 else {}
    return Incidence(torch.cat(ends, dim=1), len(owner), **union)


def dense(layer: DirectedLayer, nodes: Tensor, edges: Tensor, incidence: Incidence) -> Tensor:
    """The rules as printed in the docstrings, with textbook.py's matrices."""
    S, R = textbook.end_matrices(incidence.ends, incidence.num_nodes)

    def gates(read: Tensor, p: Tensor) -> list[Tensor]:
        gate = read @ p
        return list((2 / (1 + torch.exp(-gate)) if layer.gate == "bounded" else gate).unbind(1))

    if isinstance(layer, DirectedNodeLayer):
        to_start, to_end = textbook.row_means(S), textbook.row_means(R)  # D_o^-1 S, D_i^-1 R
        out = nodes @ layer.root_weight
        for mean, read, W, p in ((to_start, R, layer.weight, layer.gate_weight),
                                 (to_end, S, layer.in_weight, layer.in_gate_weight)):  # fmt: skip
            each = [mean @ torch.diag(w) @ read.t() for w in gates(edges, p)]
            out = out + textbook.multiply(torch.stack(each), nodes @ W)
        if "out_content" in layer.names:
            out = out + to_start @ edges @ layer.out_content + to_end @ edges @ layer.in_content
    else:
        m = [operator @ edges for operator in textbook.directed_edge_operators(S, R)]
        u_s, u_t = (
            torch.stack(gates(nodes, p), 1).repeat_interleave(OUT // layer.heads, 1)
            for p in (layer.gate_weight, layer.end_gate_weight)
        )
        out = (S.t() @ u_s) * (m[0] @ layer.weight + m[1] @ layer.into_start_weight)
        out = out + (R.t() @ u_t) * (m[2] @ layer.out_of_end_weight + m[3] @ layer.same_end_weight)
        out = out + edges @ layer.root_weight + S.t() @ nodes @ layer.start_content + R.t() @ nodes @ layer.end_content
        if "parallel_weight" in layer.names:
            out = out + m[4] @ layer.parallel_weight + m[5] @ layer.reciprocal_weight
    return out if layer.bias is None else out + layer.bias


# -- against the textbook ---------------------------------------------------------------------------------------------


def test_an_edge_of_a_small_graph_by_hand() -> None:
    ends = torch.tensor([[0, 0, 2, 1, 1], [1, 3, 0, 3, 0]])  # 0 -> 1, and 0 -> 3, 2 -> 0, 1 -> 3, 1 -> 0, which meet it
    layer = DirectedEdgeLayer(1, 1, 1, bias=False, pair_means=True).double()
    values = {"weight": 1, "into_start_weight": 10, "out_of_end_weight": 100, "same_end_weight": 1000,
              "reciprocal_weight": 1e4, "gate_weight": 3, "end_gate_weight": 7}  # fmt: skip
    with torch.no_grad():
        for name, parameter in layer.named_parameters():
            parameter.fill_(values.get(name, 0))
    edges = torch.tensor([[1.0], [2.0], [3.0], [4.0], [5.0]], dtype=torch.float64)
    out = layer(torch.ones(4, 1, dtype=torch.float64), edges, Incidence(ends, 4))
    assert out[0].item() == 3 * (1 * 2 + 10 * (3 + 5) / 2) + 7 * (100 * (4 + 5) / 2 + 1000 * 0) + 1e4 * 5


@pytest.mark.slow
@pytest.mark.parametrize("kind", LAYERS)
def test_three_hundred_multigraphs_are_as_in_the_textbook(kind: type[DirectedLayer]) -> None:
    for seed in range(300):
        options, widths, incidence = SETTINGS[seed % len(SETTINGS)], WIDTHS[seed // len(SETTINGS) % 2], multigraph(seed)
        layer = shaken(kind(*widths, OUT, **options), seed)
        check_layer(layer, dense, *features(incidence, *widths, seed), incidence)


@pytest.mark.parametrize("options", SETTINGS, ids=lambda options: "-".join(map(str, options.values())))
@pytest.mark.parametrize("kind", LAYERS)
def test_every_setting_is_the_textbook(kind: type[DirectedLayer], options: dict[str, object]) -> None:
    for widths in WIDTHS:
        layer = shaken(kind(*widths, OUT, **options))
        check_layer(layer, dense, *features(TANGLE, *widths), TANGLE)


@pytest.mark.slow
@pytest.mark.parametrize("kind", LAYERS)
@given(incidence=incidences(), options=st.sampled_from(SETTINGS), widths=st.sampled_from(WIDTHS))
@settings(max_examples=60)
def test_any_graph_is_as_in_the_textbook(
    kind: type[DirectedLayer], incidence: Incidence, options: dict[str, object], widths: tuple[int, int]
) -> None:
    layer = shaken(kind(*widths, OUT, **options))
    check_layer(layer, dense, *features(incidence, *widths), incidence)


@pytest.mark.slow
@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize("kind", LAYERS)
def test_gradients_of_a_whole_layer_pass_gradcheck(kind: type[DirectedLayer], heads: int) -> None:
    layer = shaken(kind(3, 2, OUT, gate="bounded", heads=heads, edge_content=True, pair_means=True), seed=1)
    names = [name for name, _ in layer.named_parameters()]

    def whole(nodes: Tensor, edges: Tensor, *parameters: Tensor) -> Tensor:
        values = dict(zip(names, parameters, strict=True))
        return torch.func.functional_call(layer, values, (nodes, edges, TANGLE))

    inputs = [*features(TANGLE, 3, 2), *(parameter.detach() for parameter in layer.parameters())]
    assert torch.autograd.gradcheck(whole, tuple(tensor.requires_grad_() for tensor in inputs))


@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize("kind", LAYERS)
def test_hubs_whose_sums_are_chunked_are_as_in_the_textbook(kind: type[DirectedLayer], heads: int) -> None:
    generator = torch.Generator().manual_seed(0)
    ends = torch.randint(40, (2, 1300), generator=generator)
    ends[0, :600], ends[1, 600:1200] = 0, 1
    incidence = Incidence(ends[:, torch.randperm(1300, generator=generator)], 40)
    layer = shaken(kind(3, 5, OUT, heads=heads, edge_content=True, pair_means=True))
    check_layer(layer, dense, *features(incidence, 3, 5), incidence)


@pytest.mark.parametrize(("dtype", "relative"), [(torch.float32, 1e-5), (torch.bfloat16, 3e-2)])
@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize("kind", LAYERS)
def test_low_precision_is_close(kind: type[DirectedLayer], heads: int, dtype: torch.dtype, relative: float) -> None:
    for seed, widths in enumerate(WIDTHS):
        layer = shaken(kind(*widths, OUT, gate="bounded", heads=heads, edge_content=True, pair_means=True), seed)
        nodes, edges = (tensor.to(dtype) for tensor in features(TANGLE, *widths, seed))
        out = layer.to(dtype)(nodes, edges, TANGLE)
        assert out.dtype == dtype
        expected = dense(layer.double(), nodes.double(), edges.double(), TANGLE)
        assert_near(out.detach(), expected.detach(), relative)


@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize("kind", LAYERS)
def test_autocast_is_close_and_parameters_keep_their_precision(kind: type[DirectedLayer], heads: int) -> None:
    layer = shaken(kind(3, 5, OUT, heads=heads, edge_content=True, pair_means=True), seed=3)
    check_autocast(layer, dense, *features(TANGLE, 3, 5), TANGLE)


@pytest.mark.parametrize("options", SETTINGS[::5], ids=lambda options: "-".join(map(str, options.values())))
@pytest.mark.parametrize("kind", LAYERS)
def test_sparse_nodes_are_as_dense_ones(kind: type[DirectedLayer], options: dict[str, object]) -> None:
    layer = shaken(kind(5, 3, OUT, **options), seed=4)
    check_sparse_nodes(layer, *features(TANGLE, 5, 3), TANGLE)


# -- laws -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", LAYERS)
@given(sample=graphs(), options=st.sampled_from(SETTINGS))
@settings(max_examples=40)
def test_turning_all_edges_around_and_exchanging_the_roles_changes_nothing(
    kind: type[DirectedLayer], sample: Sample, options: dict[str, object]
) -> None:
    incidence, width = sample.incidence, sample.nodes.shape[1]
    layer, mirrored = (shaken(kind(width, width, OUT, **options)) for _ in range(2))
    values = dict(layer.named_parameters())
    with torch.no_grad():
        for one, other in EXCHANGED[kind]:
            if one in values:
                getattr(mirrored, one).copy_(values[other])
                getattr(mirrored, other).copy_(values[one])
    back = Incidence(incidence.ends.flip(0), incidence.num_nodes, incidence.owner, incidence.num_graphs)
    found, expected = mirrored(sample.nodes, sample.edges, back), layer(sample.nodes, sample.edges, incidence)
    assert_near(found.detach(), expected.detach(), 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("law", [law for law in LAWS if law is not swap_ends], ids=lambda law: law.__name__)
@given(sample=graphs(), options=st.sampled_from(SETTINGS))
@settings(max_examples=30)
def test_laws(law: Callable[[Sample], Changed], sample: Sample, options: dict[str, object]) -> None:
    changed, width = law(sample), sample.nodes.shape[1]
    after = changed.sample
    for kind, place in ((DirectedNodeLayer, changed.nodes), (DirectedEdgeLayer, changed.edges)):
        layer = shaken(kind(width, width, OUT, **options))
        found = layer(after.nodes, after.edges, after.incidence)[place]
        assert_near(found.detach(), layer(sample.nodes, sample.edges, sample.incidence).detach(), 1e-11)


@pytest.mark.parametrize("kind", LAYERS)
def test_turning_one_edge_around_changes_an_answer(kind: type[DirectedLayer]) -> None:
    layer = shaken(kind(3, 5, OUT))
    nodes, edges = features(TANGLE, 3, 5)
    ends = TANGLE.ends.clone()
    ends[:, 0] = ends[:, 0].flip(0)
    assert (layer(nodes, edges, TANGLE) - layer(nodes, edges, Incidence(ends, 5))).abs().max() > 1e-3


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize("steps", [(1,), (1, 2), (1, 3, 4)])
def test_tied_weights_without_content_are_the_undirected_layers(steps: tuple[int, ...], heads: int, gate: str) -> None:
    """Up to the choice of degrees: a directed layer divides the sum of each relation by the number of its edges.

    Here k edges leave and k reach each node, none of them parallel or a loop, so that the sums of a node layer are over
    k and k edges, and those of an edge layer over k - 1, k, k and k - 1. An undirected layer with row normalization
    divides their sum by 2k + 1 and by 4k - 1, the degrees with the row itself. So each weight is W times the ratio.
    """
    count, k = 11, len(steps)
    start = torch.arange(count).repeat(k)
    incidence = Incidence(torch.stack([start, (start + torch.tensor(steps).repeat_interleave(count)) % count]), count)
    nodes, edges = features(incidence, 3, 5)
    ratios = {
        DirectedNodeLayer: (NodeLayer, 2 * k + 1, {"weight": k, "in_weight": k}),
        DirectedEdgeLayer: (
            EdgeLayer,
            4 * k - 1,
            {"weight": k - 1, "into_start_weight": k, "out_of_end_weight": k, "same_end_weight": k - 1},
        ),
    }
    for kind, (undirected_kind, degree, sums) in ratios.items():
        undirected = shaken(
            undirected_kind(3, 5, OUT, heads=heads, gate=gate, self_weight="learned", normalization="row")
        )
        layer = kind(3, 5, OUT, heads=heads, gate=gate).double()
        with torch.no_grad():
            for name, count_of_sum in sums.items():
                getattr(layer, name).copy_(undirected.weight * count_of_sum / degree)
            for name in ("gate_weight", *layer.gated):
                getattr(layer, name).copy_(undirected.gate_weight)
            layer.root_weight.copy_(undirected.root_weight), layer.bias.copy_(undirected.bias)
            for name in layer.names:
                if name.endswith("content"):
                    getattr(layer, name).zero_()
        assert_near(layer(nodes, edges, incidence).detach(), undirected(nodes, edges, incidence).detach(), 1e-12)


@given(incidence=incidences(union=False))
def test_the_relation_of_w_2_is_the_transposed_line_graph_of_networkx(incidence: Incidence) -> None:
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(range(incidence.num_nodes))
    keys = [(s, t, graph.add_edge(s, t)) for s, t in incidence.ends.t().tolist()]
    line = nx.line_graph(graph)
    A = torch.zeros(len(keys), len(keys), dtype=torch.float64)
    place = {key: number for number, key in enumerate(keys)}
    for first, second, *_ in line.edges:
        if first != second:
            A[place[first], place[second]] = 1
    layer = DirectedEdgeLayer(1, incidence.num_edges or 1, incidence.num_edges or 1, bias=False).double()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.zero_()
        layer.gate_weight.fill_(1)
        layer.into_start_weight.copy_(torch.eye(len(layer.into_start_weight)))
    h = torch.eye(incidence.num_edges, incidence.num_edges or 1, dtype=torch.float64)
    found = layer(torch.ones(incidence.num_nodes, 1, dtype=torch.float64), h, incidence).detach()
    assert_near(found[:, : incidence.num_edges], textbook.row_means(A.t()), 1e-12)


# -- stacks, starting, one number more for each edge ------------------------------------------------------------------


@pytest.mark.parametrize("options", SETTINGS[::3], ids=lambda options: "-".join(map(str, options.values())))
@pytest.mark.parametrize("kind", LAYERS)
def test_a_stack_is_each_member_alone(kind: type[DirectedLayer], options: dict[str, object]) -> None:
    members = [shaken(kind(3, 5, OUT, **options), seed) for seed in range(3)]
    stack, (nodes, edges) = stack_members(members), features(TANGLE, 3, 5)
    for x, z in ((nodes, edges), (nodes.repeat(1, 3), edges.repeat(1, 3)), (nodes, edges.repeat(1, 3))):
        expected = torch.cat([member(nodes, edges, TANGLE) for member in members], dim=1)
        assert_near(stack(x, z, TANGLE).detach(), expected.detach(), 1e-12)
    grad = torch.randn(expected.shape, dtype=torch.float64)
    found = torch.autograd.grad(stack(nodes, edges, TANGLE), list(stack.parameters()), grad)
    for mine, each in zip(found, zip(*(member.parameters() for member in members), strict=True), strict=True):
        theirs = torch.autograd.grad(expected, each, grad, retain_graph=True)
        assert_near(mine.reshape(3, -1), torch.stack([tensor.flatten() for tensor in theirs]), 1e-12)
    for member, again in zip(members, split_members(stack), strict=True):
        assert again(nodes, edges, TANGLE).equal(member(nodes, edges, TANGLE))


def test_a_stack_of_directed_networks_is_each_member_alone() -> None:
    def make(seed: int) -> CensNet:
        return shaken(
            CensNet(3, 5, 4, "ENE", directed=True, edge_content=True, pair_means=True, heads=4, residual=True), seed
        )

    members, (nodes, edges) = [make(seed) for seed in range(2)], features(TANGLE, 3, 5)
    found = stack_members(members)(nodes, edges, TANGLE)
    expected = (torch.cat(pair, dim=1) for pair in zip(*(m(nodes, edges, TANGLE) for m in members), strict=True))
    for mine, theirs in zip(found, expected, strict=True):
        assert_near(mine.detach(), theirs.detach(), 1e-11)


@pytest.mark.parametrize("kind", LAYERS)
def test_reset_parameters_restarts(kind: type[DirectedLayer]) -> None:
    torch.manual_seed(5)
    layer = kind(3, 5, OUT, heads=2, edge_content=True, pair_means=True)
    fresh = {name: value.clone() for name, value in layer.state_dict().items()}
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.fill_(7)
    layer.reset_parameters()
    for name, value in layer.state_dict().items():
        assert value.equal(fresh[name]) == (name == "bias"), name
        assert not (value == 7).any()


@pytest.mark.parametrize("kind", LAYERS)
def test_bounded_gates_start_at_one_for_both_ends(kind: type[DirectedLayer]) -> None:
    layer = kind(3, 5, OUT, gate="bounded", heads=2)
    for name in ("gate_weight", *layer.gated):
        read = torch.randn(4, layer.read_width)
        assert layer.gates(read, getattr(layer, name)).equal(torch.ones(4, 2))


@pytest.mark.parametrize("heads", HEADS)
def test_edge_scale_multiplies_the_gates_and_the_content(heads: int) -> None:
    layer = shaken(DirectedNodeLayer(3, 5, OUT, heads=heads, edge_content=True))
    nodes, edges = features(TANGLE, 3, 5)
    scale = torch.linspace(-1, 2, TANGLE.num_edges, dtype=torch.float64)
    expected = dense(layer, nodes, edges * scale.unsqueeze(1), TANGLE)  # linear gates are linear in the edges
    assert_near(layer(nodes, edges, TANGLE, scale).detach(), expected.detach(), 1e-12)
    assert torch.autograd.gradcheck(lambda s: layer(nodes, edges, TANGLE, s), scale.requires_grad_())
    with pytest.raises(ValueError, match=r"^edge_scale has shape \(3,\), expected \(8,\): \(E,\)$"):
        layer(nodes, edges, TANGLE, torch.ones(3))


@pytest.mark.parametrize("kind", LAYERS)
def test_without_edges_there_is_the_root_weight(kind: type[DirectedLayer]) -> None:
    alone = Incidence(torch.empty(2, 0, dtype=torch.int64), 3)
    layer = shaken(kind(3, 5, OUT, edge_content=True, pair_means=True))
    nodes, edges = features(alone, 3, 5)
    found = layer_gradients(lambda x, z: layer(x, z, alone), layer, nodes, edges)
    if kind is DirectedNodeLayer:
        assert_near(found[0], (nodes @ layer.root_weight + layer.bias).detach(), 1e-12)
    else:
        assert found[0].shape == (0, OUT)
    assert all(tensor.isfinite().all() for tensor in found)


@pytest.mark.parametrize("from_hub", [True, False])
def test_a_star_of_100_000_leaves(from_hub: bool) -> None:
    """It ends only if nothing E x E is built."""
    leaves = 100_000
    hub, leaf = torch.zeros(leaves, dtype=torch.int64), torch.arange(1, leaves + 1)
    star = Incidence(torch.stack([hub, leaf] if from_hub else [leaf, hub]), leaves + 1)
    edges = torch.randn(leaves, 2, dtype=torch.float64)
    begin = time.perf_counter()
    layer = shaken(DirectedEdgeLayer(1, 2, 2, pair_means=True))
    out = layer(torch.ones(leaves + 1, 1, dtype=torch.float64), edges, star)
    out.sum().backward()
    assert time.perf_counter() - begin < 20
    gate, W = (layer.gate_weight, layer.weight) if from_hub else (layer.end_gate_weight, layer.same_end_weight)
    mean = (edges.sum(0) - edges[:5]) / (leaves - 1)
    own = edges[:5] @ layer.root_weight + layer.start_content + layer.end_content + layer.bias
    assert_near(out[:5].detach(), (gate * (mean @ W) + own).detach(), 1e-10)
    nodes = shaken(DirectedNodeLayer(1, 2, 2, edge_content=True))(torch.ones(leaves + 1, 1).double(), edges, star)
    assert nodes.isfinite().all()


# -- reprs and the door -----------------------------------------------------------------------------------------------


def test_reprs() -> None:
    assert repr(DirectedNodeLayer(3, 5, 4, heads=2)) == "DirectedNodeLayer(3 -> 4, reads 5, 'learned', heads=2)"
    assert repr(DirectedEdgeLayer(3, 5, 4)) == "DirectedEdgeLayer(5 -> 4, reads 3, 'learned')"


@pytest.mark.parametrize("kind", LAYERS)
def test_wrong_options_are_named(kind: type[DirectedLayer]) -> None:
    for wrong, expected in (
        ({"self_weight": "one"}, "self_weight is 'one', expected 'learned' in a directed layer: leave it out"),
        ({"normalization": "symmetric"}, "normalization is 'symmetric', expected 'row' in a directed layer"),
        ({"variant": "released"}, "variant is 'released', expected 'paper': the released code has no direction"),
        ({"kernel": "pagerank"}, "kernel is .*, expected 'hop': a directed operator is not symmetric"),
        ({"heads": 3}, "heads is 3, expected a divisor of out_width 4"),
    ):
        with pytest.raises(ValueError, match=f"^{expected}"):
            kind(3, 5, 4, **wrong)


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        (torch.ones(4, 3), torch.ones(8, 5), r"^nodes has shape \(4, 3\), expected \(5, 3\): \(N, node_width\)$"),
        (torch.ones(5, 3), torch.ones(8, 1), r"^edges has shape \(8, 1\), expected \(8, 5\): \(E, edge_width\)$"),
        (torch.ones(5, 3), torch.ones(8, 5).long(), r"^edges has dtype torch.int64, expected a floating-point one"),
        (torch.ones(5, 3).double(), torch.ones(8, 5), r"^nodes has dtype torch.float64, expected torch.float32"),
    ],
)
def test_wrong_features_are_named(kind: type[DirectedLayer], nodes: Tensor, edges: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kind(3, 5, 4)(nodes, edges, TANGLE)
