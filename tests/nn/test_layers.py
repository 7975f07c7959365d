"""The two layers against the dense textbook, with every setting, and the laws that they obey."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from layer_checks import check_autocast, check_layer, check_sparse_nodes, layer_gradients
from strategies import LAWS, Changed, Sample, assert_near, features, graphs, incidences, shaken, simple_graphs
from torch import Tensor

from censnet.nn import EdgeLayer, Hop, Lanczos, NodeLayer, PageRank
from censnet.nn.ensemble import stack_members
from censnet.ops import Incidence, propagate_edges, propagate_nodes, textbook

Layer = NodeLayer | EdgeLayer

LAYERS = (NodeLayer, EdgeLayer)
PATH = Incidence(torch.tensor([[0, 1], [1, 2]]), 3)
TANGLE = Incidence(torch.tensor([[0, 1, 2, 1, 3, 3, 3], [1, 2, 0, 0, 3, 0, 3]]), 5)  # parallel, loops, an isolated node
OUT = 4
RULES: list[dict[str, str]] = [
    *(
        {"self_weight": own, "normalization": way}
        for own in ("incident", "one", "learned", "one_plus_learned")
        for way in ("symmetric", "row")
    ),
    {"variant": "released"},
]
GATES = ("linear", "bounded")
HEADS = (1, 2, OUT)
WIDTHS = ((3, 5), (5, 3))  # of nodes and edges: fewer and more than go out, and so both orders of mixing and moving


def multigraph(seed: int, num_nodes: int = 9, num_edges: int = 20) -> Incidence:
    return Incidence(torch.randint(num_nodes, (2, num_edges), generator=torch.Generator().manual_seed(seed)), num_nodes)


def dense(layer: Layer, nodes: Tensor, edges: Tensor, incidence: Incidence) -> Tensor:
    """S H W + H W_self + b with textbook.py's S, one for each head."""
    T = textbook.incidence_matrix(incidence.ends, incidence.num_nodes)
    rows, read = (nodes, edges) if isinstance(layer, NodeLayer) else (edges, nodes)
    gates = read @ layer.gate_weight
    gates = 2 / (1 + torch.exp(-gates)) if layer.gate == "bounded" else gates
    if layer.variant == "released":
        rule = textbook.released_node_operator if isinstance(layer, NodeLayer) else textbook.released_edge_operator
        S = [rule(T, gate) for gate in gates.unbind(1)]
    else:
        operator = textbook.node_operator if isinstance(layer, NodeLayer) else textbook.edge_operator
        own = {"learned": 0.0, "one_plus_learned": "one"}.get(layer.self_weight, layer.self_weight)
        S = [operator(T, gate, own, layer.normalization) for gate in gates.unbind(1)]
    out = textbook.multiply(torch.stack(S), rows @ layer.weight)
    if layer.root_weight is not None:
        out = out + rows @ layer.root_weight
    return out if layer.bias is None else out + layer.bias


# -- against the textbook ---------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: "-".join(rule.values()))
@pytest.mark.parametrize("kind", LAYERS)
def test_every_setting_is_the_textbook(kind: type[Layer], rule: dict[str, str], gate: str) -> None:
    for seed, (heads, bias, widths) in enumerate(product(HEADS, (True, False), WIDTHS)):
        layer = shaken(kind(*widths, OUT, bias=bias, heads=heads, gate=gate, **rule), seed)
        for incidence in (multigraph(seed), TANGLE):
            check_layer(layer, dense, *features(incidence, *widths, seed), incidence)


@pytest.mark.slow
@pytest.mark.parametrize("kind", LAYERS)
@given(
    incidence=incidences(),
    rule=st.sampled_from(RULES),
    gate=st.sampled_from(GATES),
    heads=st.sampled_from(HEADS),
    widths=st.sampled_from(WIDTHS),
    seed=st.integers(0, 2**16),
)
@settings(max_examples=60)
def test_any_graph_is_as_in_the_textbook(
    kind: type[Layer],
    incidence: Incidence,
    rule: dict[str, str],
    gate: str,
    heads: int,
    widths: tuple[int, int],
    seed: int,
) -> None:
    layer = shaken(kind(*widths, OUT, heads=heads, gate=gate, **rule), seed)
    check_layer(layer, dense, *features(incidence, *widths, seed), incidence)


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: "-".join(rule.values()))
@pytest.mark.parametrize("kind", LAYERS)
def test_gradients_of_a_whole_layer_pass_gradcheck(kind: type[Layer], rule: dict[str, str]) -> None:
    for widths, heads in ((WIDTHS[0], 1), (WIDTHS[1], 2)):
        layer = shaken(kind(*widths, OUT, gate="bounded", heads=heads, **rule), seed=1)
        names = [name for name, _ in layer.named_parameters()]

        def whole(
            nodes: Tensor, edges: Tensor, *parameters: Tensor, layer: Layer = layer, names: list[str] = names
        ) -> Tensor:
            values = dict(zip(names, parameters, strict=True))
            return torch.func.functional_call(layer, values, (nodes, edges, TANGLE))

        inputs = [*features(TANGLE, *widths), *(parameter.detach() for parameter in layer.parameters())]
        assert torch.autograd.gradcheck(whole, tuple(tensor.requires_grad_() for tensor in inputs))


@pytest.mark.parametrize(("dtype", "relative"), [(torch.float32, 1e-5), (torch.bfloat16, 3e-2)])
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: "-".join(rule.values()))
@pytest.mark.parametrize("kind", LAYERS)
def test_low_precision_is_close(kind: type[Layer], rule: dict[str, str], dtype: torch.dtype, relative: float) -> None:
    for seed, widths in enumerate(WIDTHS):
        incidence = multigraph(seed)
        layer = shaken(kind(*widths, OUT, gate="bounded", heads=2, **rule), seed).to(dtype)
        nodes, edges = (tensor.to(dtype) for tensor in features(incidence, *widths, seed))
        out = layer(nodes, edges, incidence)
        assert out.dtype == dtype
        expected = dense(layer.double(), nodes.double(), edges.double(), incidence)
        assert_near(out.detach(), expected.detach(), relative)


@pytest.mark.parametrize("kind", LAYERS)
def test_autocast_is_close_and_parameters_keep_their_precision(kind: type[Layer]) -> None:
    for widths in WIDTHS:
        layer = shaken(kind(*widths, OUT), seed=3)
        check_autocast(layer, dense, *features(TANGLE, *widths), TANGLE)


# -- sparse nodes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: "-".join(rule.values()))
@pytest.mark.parametrize("widths", WIDTHS)
@pytest.mark.parametrize("kind", LAYERS)
def test_sparse_nodes_are_as_dense_ones(kind: type[Layer], widths: tuple[int, int], rule: dict[str, str]) -> None:
    for heads, gate in product((1, 2), GATES):
        layer = shaken(kind(*widths, OUT, heads=heads, gate=gate, **rule), seed=4)
        check_sparse_nodes(layer, *features(TANGLE, *widths), TANGLE)


# -- where a layer starts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize("kind", LAYERS)
def test_a_bounded_gate_starts_at_exactly_one(kind: type[Layer], heads: int) -> None:
    layer = kind(5, 6, OUT, heads=heads, gate="bounded").double()
    nodes, edges = features(TANGLE, 5, 6)
    read = edges if kind is NodeLayer else nodes
    assert layer.gates(1e6 * read).equal(torch.ones(len(read), heads, dtype=torch.float64))
    propagate, rows = (propagate_nodes, nodes) if kind is NodeLayer else (propagate_edges, edges)
    plain = propagate(rows @ layer.weight, torch.ones(len(read), dtype=torch.float64), TANGLE)
    assert_near(layer(nodes, edges, TANGLE).detach(), plain.detach(), 1e-14)


def test_a_bounded_gate_stays_between_0_and_2() -> None:
    layer = NodeLayer(2, 1, 2, gate="bounded")
    torch.nn.init.ones_(layer.gate_weight)
    torch.testing.assert_close(
        layer.gates(torch.tensor([[-100.0], [0.0], [100.0]])), torch.tensor([[0.0], [1.0], [2.0]])
    )


@given(sample=simple_graphs(), seed=st.integers(0, 2**16))
def test_a_node_layer_with_gates_at_one_is_a_gcn(sample: Sample, seed: int) -> None:
    A = textbook.normalize(textbook.node_adjacency(sample.T))  # D^-1/2 (A + I) D^-1/2
    for out in (1, 8):
        torch.manual_seed(seed)
        layer = NodeLayer(sample.nodes.shape[1], sample.edges.shape[1], out, self_weight="one", gate="bounded").double()
        torch.nn.init.normal_(layer.bias)
        found = layer(sample.nodes, sample.edges, sample.incidence)
        assert_near(found.detach(), (A @ sample.nodes @ layer.weight + layer.bias).detach(), 1e-12)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: "-".join(rule.values()))
@pytest.mark.parametrize("kind", LAYERS)
def test_reset_parameters_restarts(kind: type[Layer], rule: dict[str, str]) -> None:
    torch.manual_seed(5)
    layer = kind(3, 5, OUT, heads=2, kernel="chebyshev", **rule)
    fresh = {name: value.clone() for name, value in layer.state_dict().items()}
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.fill_(7)
    torch.manual_seed(6)
    layer.reset_parameters()
    for name, value in layer.state_dict().items():
        constant = name in ("bias", "kernel.coefficients") or (
            name == "root_weight" and layer.self_weight == "one_plus_learned"
        )
        assert value.equal(fresh[name]) == constant, name
        assert not (value == 7).any()
    torch.manual_seed(5)
    layer.reset_parameters()
    assert all(value.equal(fresh[name]) for name, value in layer.state_dict().items())


def test_weights_start_within_glorot_s_bound_and_the_released_gate_vector_as_a_normal() -> None:
    torch.manual_seed(0)
    layer = NodeLayer(100, 50, 200, self_weight="learned")
    for weight in (layer.weight, layer.root_weight):
        bound = (6 / 300) ** 0.5
        assert 0.98 * bound < float(weight.detach().abs().max()) <= bound
    assert float(layer.gate_weight.detach().abs().max()) <= (6 / 51) ** 0.5
    gate_weight = EdgeLayer(4000, 3, 3, variant="released").gate_weight.detach()
    assert abs(float(gate_weight.mean())) < 5 / 4000**0.5
    assert abs(float(gate_weight.std()) - 1) < 5 / 8000**0.5


# -- one number more for each edge ------------------------------------------------------------------------------------


def test_edge_scale_is_a_further_gate() -> None:
    for heads, gate in product((1, 2), GATES):
        layer = shaken(NodeLayer(3, 5, OUT, heads=heads, gate=gate, self_weight="one"))
        nodes, edges = features(TANGLE, 3, 5)
        scale = torch.linspace(-1, 2, TANGLE.num_edges, dtype=torch.float64)
        gates = layer.gates(edges) * scale.unsqueeze(1)
        expected = propagate_nodes(nodes @ layer.weight, gates, TANGLE, "one") + layer.bias
        assert_near(layer(nodes, edges, TANGLE, scale), expected.detach(), 1e-12)
        assert layer(nodes, edges, TANGLE, torch.ones_like(scale)).equal(layer(nodes, edges, TANGLE))
        assert torch.autograd.gradcheck(
            lambda s, layer=layer, nodes=nodes, edges=edges: layer(nodes, edges, TANGLE, s), scale.requires_grad_()
        )


def test_edges_that_are_scaled_to_nothing_pass_nothing() -> None:
    layer = shaken(NodeLayer(3, 5, OUT, self_weight="one", bias=False))
    nodes, edges = features(TANGLE, 3, 5)
    out = layer(nodes, edges, TANGLE, torch.zeros(TANGLE.num_edges, dtype=torch.float64))
    assert_near(out.detach(), (nodes @ layer.weight / TANGLE.node_degree.unsqueeze(1)).detach(), 1e-12)


# -- laws -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@given(sample=graphs(), rule=st.sampled_from(RULES), heads=st.sampled_from(HEADS), out=st.sampled_from([4, 8]))
@settings(max_examples=30)
def test_laws(law: Callable[[Sample], Changed], sample: Sample, rule: dict[str, str], heads: int, out: int) -> None:
    changed, width = law(sample), sample.nodes.shape[1]
    after = changed.sample
    for kind, place in ((NodeLayer, changed.nodes), (EdgeLayer, changed.edges)):
        layer = shaken(kind(width, width, out, heads=heads, gate="bounded", **rule))
        found = layer(after.nodes, after.edges, after.incidence)[place]
        assert_near(found.detach(), layer(sample.nodes, sample.edges, sample.incidence).detach(), 1e-11)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: "-".join(rule.values()))
@pytest.mark.parametrize("kind", LAYERS)
def test_without_edges_there_is_the_bias_and_what_a_node_gives_itself(kind: type[Layer], rule: dict[str, str]) -> None:
    alone = Incidence(torch.empty(2, 0, dtype=torch.int64), 3)
    layer = shaken(kind(3, 5, OUT, **rule))
    nodes, edges = features(alone, 3, 5)
    found = layer_gradients(lambda x, z: layer(x, z, alone), layer, nodes, edges)
    if kind is EdgeLayer:
        assert found[0].shape == (0, OUT)
    else:
        own = 0 * layer.weight if layer.self_weight in ("incident", "learned") else layer.weight
        own = own if layer.root_weight is None else own + layer.root_weight
        assert_near(found[0], (nodes @ own + layer.bias).detach(), 1e-12)
    assert all(tensor.isfinite().all() for tensor in found)


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("variant", ["paper", "released"])
@pytest.mark.parametrize("members", [1, 3])
def test_positive_gate_vectors_are_signed_ones_without_their_sign(
    kind: type[Layer], variant: str, members: int
) -> None:
    torch.manual_seed(0)
    drawn = stack_members([kind(40, 40, OUT, variant=variant) for _ in range(members)])
    torch.manual_seed(0)
    positive = stack_members([kind(40, 40, OUT, variant=variant, gate_init="positive") for _ in range(members)])
    assert (drawn.gate_weight < 0).any()
    assert positive.gate_weight.equal(drawn.gate_weight.abs())
    assert positive.weight.equal(drawn.weight)
    positive.reset_parameters()
    assert (positive.gate_weight > 0).all()


# -- reprs and the door -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layer", "text"),
    [
        (NodeLayer(4, 2, 8), "NodeLayer(4 -> 8, reads 2, 'incident')"),
        (EdgeLayer(4, 2, 8), "EdgeLayer(2 -> 8, reads 4, 'incident')"),
        (NodeLayer(4, 2, 8, self_weight="one", bias=False), "NodeLayer(4 -> 8, reads 2, 'one', bias=False)"),
        (EdgeLayer(4, 2, 8, self_weight="learned", heads=4), "EdgeLayer(2 -> 8, reads 4, 'learned', heads=4)"),
        (NodeLayer(4, 2, 8, normalization="row"), "NodeLayer(4 -> 8, reads 2, 'incident', normalization='row')"),
        (NodeLayer(4, 2, 8, variant="released"), "NodeLayer(4 -> 8, reads 2, 'released')"),
        (NodeLayer(4, 2, 8, gate_init="positive"), "NodeLayer(4 -> 8, reads 2, 'incident', gate_init='positive')"),
        (EdgeLayer(4, 2, 8, gate="bounded"), "EdgeLayer(2 -> 8, reads 4, 'incident', gate='bounded')"),
        (NodeLayer(4, 2, 8, kernel="power"), "NodeLayer(4 -> 8, reads 2, 'incident', kernel=Power(2))"),
        (
            EdgeLayer(4, 2, 8, kernel=PageRank(3, 0.2)),
            "EdgeLayer(2 -> 8, reads 4, 'incident', kernel=PageRank(3, teleport=0.2))",
        ),
        (
            NodeLayer(4, 2, 8, kernel=Lanczos(3, (2, 1)), bias=False),
            "NodeLayer(4 -> 8, reads 2, 'incident', kernel=Lanczos(3, scales=(1, 2)), bias=False)",
        ),
        (NodeLayer(4, 2, 8, kernel=Hop()), "NodeLayer(4 -> 8, reads 2, 'incident')"),
    ],
)
def test_reprs_are_signatures(layer: Layer, text: str) -> None:
    assert repr(layer) == text


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"variant": "printed"}, r"^variant is 'printed', expected one of 'paper', 'released'$"),
        ({"gate_init": "negative"}, r"^gate_init is 'negative', expected one of 'signed', 'positive'$"),
        ({"gate": "open"}, r"^gate is 'open', expected one of 'linear', 'bounded'$"),
        (
            {"self_weight": "two"},
            r"^self_weight is 'two', expected one of 'incident', 'one', 'learned', 'one_plus_learned'$",
        ),
        ({"normalization": "column"}, r"^normalization is 'column', expected one of 'symmetric', 'row'$"),
        ({"kernel": "heat"}, r"^kernel is 'heat', expected a Kernel or one of 'hop', 'power', 'pagerank', 'chebyshev'"),
        ({"heads": 3}, r"^heads is 3, expected a divisor of out_width 4$"),
        ({"heads": 0}, r"^heads is 0, expected a divisor of out_width 4$"),
        ({"heads": -2}, r"^heads is -2, expected a divisor of out_width 4$"),
        (
            {"variant": "released", "self_weight": "incident"},
            r"^self_weight is 'incident', expected 'one' with variant='released': leave it out$",
        ),
        (
            {"variant": "released", "normalization": "symmetric"},
            r"^normalization is 'symmetric', expected 'row' with variant='released': leave it out$",
        ),
    ],
)
def test_wrong_settings_are_named(kind: type[Layer], wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kind(3, 5, OUT, **wrong)


@pytest.mark.parametrize("kind", LAYERS)
def test_options_that_the_released_variant_has_anyway_may_be_given(kind: type[Layer]) -> None:
    said = kind(3, 5, OUT, variant="released", self_weight="one", normalization="row")
    assert repr(said) == repr(kind(3, 5, OUT, variant="released"))


NODES, EDGES = torch.ones(3, 3), torch.ones(2, 5)


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        (torch.ones(2, 3), EDGES, r"^nodes has shape \(2, 3\), expected \(3, 3\): \(N, node_width\)$"),
        (torch.ones(3, 4), EDGES, r"^nodes has shape \(3, 4\), expected \(3, 3\): \(N, node_width\)$"),
        (torch.ones(3), EDGES, r"^nodes has shape \(3,\), expected \(3, 3\): \(N, node_width\)$"),
        (NODES, torch.ones(3, 5), r"^edges has shape \(3, 5\), expected \(2, 5\): \(E, edge_width\)$"),
        (NODES, torch.ones(2, 1), r"^edges has shape \(2, 1\), expected \(2, 5\): \(E, edge_width\)$"),
        (NODES.long(), EDGES, r"^nodes has dtype torch.int64, expected a floating-point one: call nodes.float\(\)$"),
        (NODES, EDGES.int(), r"^edges has dtype torch.int32, expected a floating-point one: call edges.float\(\)$"),
        (NODES.double(), EDGES, r"^nodes has dtype torch.float64, expected torch.float32"),
        (NODES, EDGES.double(), r"^edges has dtype torch.float64, expected torch.float32"),
    ],
)
def test_wrong_features_are_named(kind: type[Layer], nodes: Tensor, edges: Tensor, message: str) -> None:
    for out in (1, 8):  # mixed first, moved first
        with pytest.raises(ValueError, match=message):
            kind(3, 5, out)(nodes, edges, PATH)


def test_a_wrong_edge_scale_is_named() -> None:
    with pytest.raises(ValueError, match=r"^edge_scale has shape \(3,\), expected \(2,\): \(E,\)$"):
        NodeLayer(3, 5, OUT)(NODES, EDGES, PATH, torch.ones(3))
