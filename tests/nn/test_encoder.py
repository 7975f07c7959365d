"""CensNet: words of layers, what is done after each, and that it learns."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import LAWS, Changed, Sample, assert_near, features, graphs, incidences, shaken
from torch import Tensor

from censnet.nn import CensNet, Chebyshev, EdgeLayer, Lanczos, NodeLayer
from censnet.nn.encoder import ACTIVATIONS
from censnet.ops import Incidence, textbook

WORDS = ("N", "E", "NE", "EN", "NEN", "ENE", "NNEE", "ENNNE")
TANGLE = Incidence(torch.tensor([[0, 1, 2, 1, 3, 3, 3], [1, 2, 0, 0, 3, 0, 3]]), 5)  # parallel, loops, an isolated node


def dense(model: CensNet, nodes: Tensor, edges: Tensor, incidence: Incidence, last_linear: bool) -> tuple[Tensor, ...]:
    """The network in eval mode, with textbook.py's matrices and ReLU: on what was renewed, or on both sides."""
    T = textbook.incidence_matrix(incidence.ends, incidence.num_nodes)
    released = model.variant == "released"
    node_rule = textbook.released_node_operator if released else textbook.node_operator
    edge_rule = textbook.released_edge_operator if released else textbook.edge_operator
    for depth, (letter, layer) in enumerate(zip(model.layer_order, model.layers, strict=True)):
        last = last_linear and depth == len(model.layer_order) - 1
        if letter == "N":
            nodes = node_rule(T, (edges @ layer.gate_weight).squeeze(1)) @ nodes @ layer.weight + layer.bias
        else:
            edges = edge_rule(T, (nodes @ layer.gate_weight).squeeze(1)) @ edges @ layer.weight + layer.bias
        if not last and (released or letter == "N"):
            nodes = nodes.clamp(min=0)
        if not last and (released or letter == "E"):
            edges = edges.clamp(min=0)
    return nodes, edges


# -- against the textbook ---------------------------------------------------------------------------------------------


def lively(model: CensNet, seed: int = 0) -> CensNet:
    return shaken(model, seed, scale=0.7)


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["paper", "released"])
@pytest.mark.parametrize("word", WORDS)
@given(incidence=incidences(max_nodes=6), out=st.sampled_from([None, 3]), seed=st.integers(0, 2**16))
@settings(max_examples=8)
def test_layers_are_applied_in_order(word: str, variant: str, incidence: Incidence, out: int | None, seed: int) -> None:
    model = lively(CensNet(4, 2, 5, word, out_width=out, variant=variant, dropout=0.5), seed).eval()
    inputs = features(incidence, 4, 2, seed)
    with torch.no_grad():
        found = model(*inputs, incidence)
        expected = dense(model, *inputs, incidence, last_linear=out is not None)
    for mine, theirs, width in zip(found, expected, (model.out_node_width, model.out_edge_width), strict=True):
        assert mine.shape[1] == width
        assert_near(mine, theirs, 1e-9)


@pytest.mark.parametrize(
    ("word", "variant", "out", "layers", "ends_with"),
    [
        ("N", "paper", None, ["NodeLayer(4 -> 8, reads 2, 'incident')"], (8, 2)),
        ("E", "paper", None, ["EdgeLayer(2 -> 8, reads 4, 'incident')"], (4, 8)),
        ("E", "paper", 3, ["EdgeLayer(2 -> 3, reads 4, 'incident')"], (4, 3)),
        (
            "NEN",
            "paper",
            3,
            [
                "NodeLayer(4 -> 8, reads 2, 'incident')",
                "EdgeLayer(2 -> 8, reads 8, 'incident')",
                "NodeLayer(8 -> 3, reads 8, 'incident')",
            ],
            (3, 8),
        ),
        (
            "NEN",
            "released",
            3,
            [
                "NodeLayer(4 -> 8, reads 2, 'released')",
                "EdgeLayer(2 -> 2, reads 8, 'released')",
                "NodeLayer(8 -> 3, reads 2, 'released')",
            ],
            (3, 2),
        ),
        (
            "ENE",
            "released",
            3,
            [
                "EdgeLayer(2 -> 2, reads 4, 'released')",
                "NodeLayer(4 -> 8, reads 2, 'released')",
                "EdgeLayer(2 -> 3, reads 8, 'released')",
            ],
            (8, 3),
        ),
    ],
)
def test_widths_are_tracked(
    word: str, variant: str, out: int | None, layers: list[str], ends_with: tuple[int, int]
) -> None:
    model = CensNet(4, 2, 8, word, out_width=out, variant=variant)
    assert [repr(layer) for layer in model.layers] == layers
    assert (model.out_node_width, model.out_edge_width) == ends_with
    nodes, edges = model(torch.randn(5, 4), torch.randn(7, 2), TANGLE)
    assert (nodes.shape[1], edges.shape[1]) == ends_with


def test_settings_reach_every_layer() -> None:
    model = CensNet(
        4,
        2,
        8,
        "NE",
        bias=False,
        self_weight="learned",
        heads=4,
        gate="bounded",
        normalization="row",
        kernel=Chebyshev(2),
    )
    for layer, kind in zip(model.layers, (NodeLayer, EdgeLayer), strict=True):
        assert isinstance(layer, kind)
        assert layer.bias is None
        assert (layer.self_weight, layer.heads, layer.gate, layer.normalization) == ("learned", 4, "bounded", "row")
        assert repr(layer.kernel) == "Chebyshev(2)"
    assert model.layers[0].kernel is not model.layers[1].kernel


def test_a_last_layer_whose_width_has_no_such_heads_has_one() -> None:
    model = CensNet(4, 2, 8, "NEN", out_width=3, heads=4)
    assert [layer.heads for layer in model.layers] == [4, 4, 1]
    assert [layer.heads for layer in CensNet(4, 2, 8, "NEN", out_width=12, heads=4).layers] == [4, 4, 4]
    with pytest.raises(ValueError, match=r"^heads is 4, expected a divisor of out_width 6$"):
        CensNet(4, 2, 6, "NEN", out_width=12, heads=4)


# -- what is done after a layer ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_follow_every_layer_but_a_linear_last(name: str) -> None:
    by_hand = {
        "relu": lambda x: x.clamp(min=0),
        "elu": lambda x: torch.where(x > 0, x, x.exp() - 1),
        "gelu": lambda x: 0.5 * x * (1 + torch.erf(x / 2**0.5)),
        "silu": lambda x: x / (1 + (-x).exp()),
        "tanh": lambda x: (x.exp() - (-x).exp()) / (x.exp() + (-x).exp()),
        "none": lambda x: x,
    }[name]
    nodes, edges = features(TANGLE, 4, 2)
    for out in (None, 3):
        model = lively(CensNet(4, 2, 5, "NE", activation=name, out_width=out))
        new_nodes = by_hand(model.layers[0](nodes, edges, TANGLE))
        new_edges = model.layers[1](new_nodes, edges, TANGLE)
        found = model(nodes, edges, TANGLE)
        torch.testing.assert_close(found[0], new_nodes)
        torch.testing.assert_close(found[1], new_edges if out else by_hand(new_edges))


def test_a_residual_is_added_only_where_widths_agree() -> None:
    nodes, edges = features(TANGLE, 4, 5)
    model = lively(CensNet(4, 5, 5, "NEN", residual=True))
    first = model.layers[0](nodes, edges, TANGLE).relu()  # 4 -> 5
    middle = model.layers[1](first, edges, TANGLE).relu() + edges  # 5 -> 5
    last = model.layers[2](first, middle, TANGLE).relu() + first  # 5 -> 5
    found = model(nodes, edges, TANGLE)
    torch.testing.assert_close(found, (last, middle))

    linear = lively(CensNet(4, 5, 5, "NEN", residual=True, out_width=5))  # nothing is done after a linear last layer
    first = linear.layers[0](nodes, edges, TANGLE).relu()
    middle = linear.layers[1](first, edges, TANGLE).relu() + edges
    torch.testing.assert_close(linear(nodes, edges, TANGLE)[0], linear.layers[2](first, middle, TANGLE))


def test_a_rezero_residual_is_added_by_its_gain_which_starts_at_0() -> None:
    nodes, edges = features(TANGLE, 4, 5)
    model = lively(CensNet(4, 5, 5, "NENEN", residual="rezero", out_width=3))
    assert model.rezero_gain is not None
    assert len(model.rezero_gain) == 2  # the first of each side embeds it, whatever its width, and the last is linear
    with torch.no_grad():
        model.rezero_gain.copy_(torch.tensor([0.5, -1.0]))
    x = model.layers[0](nodes, edges, TANGLE).relu()
    z = model.layers[1](x, edges, TANGLE).relu()
    x = x + 0.5 * model.layers[2](x, z, TANGLE).relu()
    z = z - 1.0 * model.layers[3](x, z, TANGLE).relu()
    for found, expected in zip(model(nodes, edges, TANGLE), (model.layers[4](x, z, TANGLE), z), strict=True):
        assert_near(found, expected.detach(), 1e-12)
    model.reset_parameters()
    assert not model.rezero_gain.any()
    first = model.layers[0](nodes, edges, TANGLE).relu()  # deep, and yet what a shallow one gives
    second = model.layers[1](first, edges, TANGLE).relu()
    assert_near(model(nodes, edges, TANGLE)[0], model.layers[4](first, second, TANGLE).detach(), 1e-12)
    model(nodes, edges, TANGLE)[0].square().sum().backward()
    assert bool((model.rezero_gain.grad != 0).all())  # and every layer may come to count
    assert CensNet(5, 5, 5, "EN", residual="rezero").rezero_gain is None
    assert CensNet(5, 5, 5, "EN", residual=True).rezero_gain is None
    lifted = CensNet(5, 5, 5, "EN", residual="rezero", pre_layers=1, edge_pre_layer=True).rezero_gain
    assert lifted is not None
    assert len(lifted) == 2


@pytest.mark.parametrize("norm", ["batch", "layer"])
def test_norms_come_before_the_activation(norm: str) -> None:
    nodes, edges = features(TANGLE, 4, 2)
    model = lively(CensNet(4, 2, 5, "NE", norm=norm, out_width=3))
    assert [type(module).__name__ for module in model.norms] == [
        {"batch": "BatchNorm", "layer": "LayerNorm"}[norm],
        "Identity",
    ]
    x = model.layers[0](nodes, edges, TANGLE)
    axis = 0 if norm == "batch" else 1
    x = (x - x.mean(axis, keepdim=True)) / (x.var(axis, correction=0, keepdim=True) + 1e-5).sqrt()
    first = (x * model.norms[0].weight + model.norms[0].bias).relu()
    found = model(nodes, edges, TANGLE)
    torch.testing.assert_close(found, (first, model.layers[1](first, edges, TANGLE)))


@pytest.mark.parametrize("norm", ["batch", "layer", None])
def test_a_graph_with_one_edge_or_none_can_be_learnt_from(norm: str | None) -> None:
    for ends in (torch.empty(2, 0, dtype=torch.int64), torch.tensor([[0], [1]])):
        model = CensNet(4, 2, 5, "NEN", norm=norm)
        nodes, edges = model(torch.randn(3, 4), torch.randn(ends.shape[1], 2), Incidence(ends, 3))
        assert nodes.isfinite().all()
        assert edges.shape == (ends.shape[1], 5)


def test_dropout_is_off_in_eval_and_drops_while_training() -> None:
    nodes, edges = features(TANGLE, 4, 2)
    model, plain = (lively(CensNet(4, 2, 64, "NE", dropout=p, activation="none")) for p in (0.5, 0.0))
    torch.manual_seed(0)
    first = model(nodes, edges, TANGLE)
    again = model(nodes, edges, TANGLE)
    torch.manual_seed(0)
    same = model(nodes, edges, TANGLE)
    for one, other, repeated in zip(first, again, same, strict=True):
        assert 0.3 < float((one == 0).double().mean()) < 0.7
        assert not one.equal(other)
        assert one.equal(repeated)
    expected = plain(nodes, edges, TANGLE)
    kept = first[0] != 0
    torch.testing.assert_close(first[0][kept], 2 * expected[0][kept])
    model.eval()
    torch.testing.assert_close(model(nodes, edges, TANGLE), expected, rtol=0, atol=0)


def test_the_released_network_drops_on_both_sides_and_nothing_after_its_last_layer() -> None:
    nodes, edges = features(TANGLE, 40, 60)
    model = lively(CensNet(40, 60, 64, "N", variant="released", dropout=0.5, activation="none"))
    _, passed = model(nodes, edges, TANGLE)
    kept = passed != 0
    assert 0.3 < float(kept.double().mean()) < 0.7
    torch.testing.assert_close(passed[kept], 2 * edges[kept])
    model = lively(CensNet(40, 60, 64, "N", variant="released", dropout=0.5, out_width=64))
    out, passed = model(nodes, edges, TANGLE)
    assert passed.equal(edges)
    torch.testing.assert_close(out, model.layers[0](nodes, edges, TANGLE))


# -- sparse nodes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["paper", "released"])
@pytest.mark.parametrize("word", ["N", "NEN", "ENE", "EEN"])
@pytest.mark.parametrize("training", [True, False])
def test_sparse_nodes_are_as_dense_ones(word: str, variant: str, training: bool) -> None:
    """Training is with a dropout that drops almost surely nothing, so that it can be compared."""
    nodes, edges = features(TANGLE, 4, 2)
    nodes = nodes * (nodes > 0)
    model = lively(CensNet(4, 2, 4, word, variant=variant, dropout=1e-9, out_width=3)).train(training)
    expected = model(nodes, edges, TANGLE)
    found = model(nodes.to_sparse_csr(), edges, TANGLE)
    for mine, theirs in zip(found, expected, strict=True):
        assert_near(mine.detach().to_dense(), theirs.detach(), 1e-3 if training else 1e-12)


def test_sparse_nodes_of_the_same_width_are_a_residual_too() -> None:
    nodes, edges = features(TANGLE, 4, 2)
    model = lively(CensNet(4, 2, 4, "N", residual=True))
    expected, _ = model(nodes, edges, TANGLE)
    found, _ = model(nodes.to_sparse_csr(), edges, TANGLE)
    assert_near(found.detach(), expected.detach(), 1e-12)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_released_network_activates_sparse_nodes(activation: str) -> None:
    nodes, edges = features(TANGLE, 4, 2)
    model = lively(CensNet(4, 2, 4, "EN", variant="released", activation=activation))
    expected = model(nodes, edges, TANGLE)
    for mine, theirs in zip(model(nodes.to_sparse_csr(), edges, TANGLE), expected, strict=True):
        assert_near(mine.detach(), theirs.detach(), 1e-12)


# -- laws -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@given(sample=graphs(), variant=st.sampled_from(["paper", "released"]))
@settings(max_examples=15)
def test_laws(law: Callable[[Sample], Changed], sample: Sample, variant: str) -> None:
    changed, width = law(sample), sample.nodes.shape[1]
    model = lively(CensNet(width, width, 6, "NENE", norm="layer", residual=True, gate="bounded", variant=variant))
    after = changed.sample
    with torch.no_grad():
        nodes, edges = model(after.nodes, after.edges, after.incidence)
        expected_nodes, expected_edges = model(sample.nodes, sample.edges, sample.incidence)
    assert_near(nodes[changed.nodes], expected_nodes, 1e-8)
    assert_near(edges[changed.edges], expected_edges, 1e-8)


# -- starting, keeping, learning --------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["batch", "layer", None])
def test_reset_parameters_gives_a_fresh_model(norm: str | None) -> None:
    def make() -> CensNet:
        return CensNet(4, 2, 6, "NENE", norm=norm, self_weight="learned", heads=2, kernel="chebyshev", out_width=2)

    torch.manual_seed(3)
    fresh = make()
    torch.manual_seed(4)
    other = make()
    other(torch.randn(5, 4), torch.randn(7, 2), TANGLE)  # moves the statistics of a batch norm
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(1)
    torch.manual_seed(3)
    other.reset_parameters()
    mine, theirs = other.state_dict(), fresh.state_dict()
    assert mine.keys() == theirs.keys()
    assert all(mine[name].equal(theirs[name]) for name in mine)


@pytest.mark.parametrize("norm", ["batch", "layer"])
def test_sixteen_alternations_with_norms_and_residuals_stay_finite(norm: str) -> None:
    torch.manual_seed(0)
    ends = torch.randint(40, (2, 120))
    model = CensNet(8, 4, 16, 16 * "NE", norm=norm, residual=True, dropout=0.1)
    nodes, edges = model(torch.randn(40, 8), torch.randn(120, 4), Incidence(ends, 40))
    (nodes.square().sum() + edges.square().sum()).backward()
    assert nodes.isfinite().all()
    assert edges.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())
    assert float(nodes.detach().abs().max()) < 1e3


def two_circles(seed: int) -> tuple[Tensor, Tensor, Incidence, Tensor]:
    """34 nodes in two halves; the features say little, an edge says whether it joins one half, and 2 are labeled."""
    generator = torch.Generator().manual_seed(seed)
    label = (torch.arange(34) >= 17).long()
    ends = torch.randint(34, (2, 110), generator=generator)
    ends = ends[:, ends[0] != ends[1]][:, :78]
    within = (label[ends[0]] == label[ends[1]]).float()
    edges = torch.stack([within, 1 - within], dim=1) + 0.1 * torch.randn(ends.shape[1], 2, generator=generator)
    nodes = 0.3 * F.one_hot(label, 2).float() + torch.randn(34, 2, generator=generator)
    return torch.cat([nodes, torch.ones(34, 1)], dim=1), edges, Incidence(ends, 34), label


@pytest.mark.slow
@pytest.mark.parametrize(
    "recipe",
    [
        {},
        {"variant": "released"},
        {"norm": "batch", "residual": True, "dropout": 0.1, "gate": "bounded", "self_weight": "learned", "heads": 2},
        {"kernel": "chebyshev", "gate": "bounded"},
        {"kernel": Lanczos(3, (1, 2)), "gate": "bounded", "self_weight": "one"},
    ],
    ids=str,
)
def test_the_loss_falls(recipe: dict[str, object]) -> None:
    torch.manual_seed(0)
    nodes, edges, incidence, label = two_circles(0)
    model = CensNet(3, 2, 16, "NEN", out_width=2, **recipe)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    losses = []
    for _ in range(100):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(nodes, edges, incidence)[0], label)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * min(losses[0], 0.7)
    model.eval()
    found = model(nodes, edges, incidence)[0].argmax(1)
    assert float((found == label).double().mean()) > 0.8


def test_a_saved_model_is_the_same_to_the_bit() -> None:
    nodes, edges, incidence, _ = two_circles(1)
    model = CensNet(3, 2, 8, "NENE", norm="batch", self_weight="learned", heads=2, kernel="lanczos")
    model(nodes, edges, incidence)
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    other = CensNet(3, 2, 8, "NENE", norm="batch", self_weight="learned", heads=2, kernel="lanczos")
    other.load_state_dict(torch.load(file, weights_only=True))
    expected, found = model.eval()(nodes, edges, incidence), other.eval()(nodes, edges, incidence)
    assert all(mine.equal(theirs) for mine, theirs in zip(found, expected, strict=True))


# -- lifted nodes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("word", "pre_layers"), [("EN", 1), ("NEN", 2), ("", 1)])
def test_pre_layers_map_each_node_by_itself_before_the_first_layer(word: str, pre_layers: int, sparse: bool) -> None:
    nodes, edges = features(TANGLE, 4, 2)
    model = lively(CensNet(4, 2, 8, word, pre_layers=pre_layers, residual=True)).eval()
    rest = CensNet(8, 2, 8, word or "N", residual=True).double().eval()
    found = model(nodes.to_sparse_csr() if sparse else nodes, edges, TANGLE)
    for number in range(pre_layers):
        own = dict(model.pre_layers[number].named_parameters())
        nodes = F.relu(nodes @ own["weight"] + own["bias"])
    expected = nodes, edges
    if word:
        rest.load_state_dict(
            {name: p for name, p in model.state_dict().items() if not name.startswith(("pre_layers", "edge_pre"))}
        )
        expected = rest(nodes, edges, TANGLE)
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs)
    assert model.out_node_width == 8


@pytest.mark.parametrize("pre_layers", [0, 1])
def test_the_edge_pre_layer_reads_the_two_nodes_of_an_edge(pre_layers: int) -> None:
    nodes, edges = features(TANGLE, 4, 2)
    model = lively(CensNet(4, 2, 8, "EN", pre_layers=pre_layers, edge_pre_layer=True)).eval()
    rest = CensNet(8 if pre_layers else 4, 8, 8, "EN").double().eval()
    rest.load_state_dict(
        {name: p for name, p in model.state_dict().items() if not name.startswith(("pre_layers", "edge_pre"))}
    )
    own = dict(model.named_parameters())
    if pre_layers:
        nodes, given = F.relu(nodes @ own["pre_layers.0.weight"] + own["pre_layers.0.bias"]), nodes
    else:
        given = nodes
    ends = nodes[TANGLE.ends[0]] + nodes[TANGLE.ends[1]]
    ends[TANGLE.ends[0] == TANGLE.ends[1]] /= 2  # a loop touches its one node once
    lifted = F.relu(
        edges @ own["edge_pre_layer.weight"] + own["edge_pre_layer.bias"] + ends @ own["edge_pre_ends.weight"]
    )
    for mine, theirs in zip(model(given, edges, TANGLE), rest(nodes, lifted, TANGLE), strict=True):
        torch.testing.assert_close(mine, theirs)


def test_wrong_features_of_a_pre_layer_are_named() -> None:
    with pytest.raises(ValueError, match=r"^features has shape \(5, 3\), expected \(\*, 4\): \(n, width\)$"):
        CensNet(4, 2, 8, pre_layers=1)(torch.ones(5, 3), torch.ones(7, 2), TANGLE)


# -- the door ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"layers": ""}, r"^layers is '', expected a sequence of N and E, such as 'NEN'$"),
        ({"layers": "NXN"}, r"^layers is 'NXN', expected a sequence of N and E, such as 'NEN'$"),
        ({"layers": "nen"}, r"^layers is 'nen', expected a sequence of N and E, such as 'NEN'$"),
        ({"residual": "banana"}, r"^residual is 'banana', expected True, False or 'rezero'"),
        ({"activation": "sigmoid"}, r"^activation is 'sigmoid', expected one of 'relu', 'elu', 'gelu', 'silu', 'tanh'"),
        ({"norm": "group"}, r"^norm is 'group', expected 'batch', 'layer' or None$"),
        ({"dropout": 1.5}, r"^p is 1.5, expected a probability from 0 to 1$"),
        ({"variant": "printed"}, r"^variant is 'printed', expected one of 'paper', 'released'$"),
        ({"heads": 3}, r"^heads is 3, expected a divisor of out_width 8$"),
        ({"variant": "released", "self_weight": "learned"}, r"^self_weight is 'learned', expected 'one' with variant"),
    ],
)
def test_wrong_settings_are_named(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CensNet(4, 2, 8, **wrong)


def test_wrong_features_are_named() -> None:
    model = CensNet(4, 2, 8)
    with pytest.raises(ValueError, match=r"^nodes has shape \(5, 3\), expected \(5, 4\): \(N, node_width\)$"):
        model(torch.ones(5, 3), torch.ones(7, 2), TANGLE)
    with pytest.raises(ValueError, match=r"^edges has shape \(6, 2\), expected \(7, 2\): \(E, edge_width\)$"):
        model(torch.ones(5, 4), torch.ones(6, 2), TANGLE)
