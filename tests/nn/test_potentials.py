"""The layer of potentials against its formula, the law of parities, and features on a scale of decades."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import assert_near, incidences, shaken
from torch import Tensor

from censnet.nn.ensemble import split_members, stack_members
from censnet.nn.log_features import LogFeatures
from censnet.nn.oriented_encoder import OrientedNet
from censnet.nn.potentials import SMALLEST, PotentialLayer, bounded_exp
from censnet.ops import textbook
from censnet.ops.incidence import Incidence

WIDTHS = {"node": 3, "even": 2, "odd": 4}
GRID = Incidence(torch.tensor([[0, 1, 2, 3, 0, 4, 5], [1, 2, 3, 0, 2, 5, 6]]), 7, torch.tensor([0] * 4 + [1] * 3), 2)


def rows(incidence: Incidence, seed: int, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    """Nodes, even and odd channels of edges, and the input features of nodes and edges."""
    generator = torch.Generator().manual_seed(seed)
    nodes, edges = incidence.num_nodes, incidence.num_edges
    shapes = ((nodes, 3), (edges, 2), (edges, 4), (nodes, 5), (edges, 3))
    return [torch.randn(shape, generator=generator, dtype=dtype) for shape in shapes]


def make_layer(seed: int, zero: Tensor | None = None) -> PotentialLayer:
    layer = PotentialLayer(WIDTHS, (5, 3), potentials=2, measures=True)
    if zero is not None:
        layer.set_zero(zero)
    return shaken(layer, seed).double()


@given(incidence=incidences(), seed=st.integers(0, 2**16))
def test_the_layer_is_the_printed_rule(incidence: Incidence, seed: int) -> None:
    zero = torch.tensor([0.5, torch.nan, 0.0, torch.nan, -1.0])
    layer, (x, a, b, features, edge_features) = make_layer(seed, zero), rows(incidence, seed)
    S, R = textbook.end_matrices(incidence.ends, incidence.num_nodes)
    B = (R - S).double()
    w = bounded_exp(a @ layer.edge_weight + edge_features @ layer.edge_feature_weight + layer.edge_bias)
    g = bounded_exp(x @ layer.node_weight + features @ layer.node_feature_weight + layer.ground_bias)
    amounts = torch.where(zero.isnan(), 0.0, features - zero.nan_to_num())
    q, h = (amounts @ layer.injection_weight).chunk(2, dim=1)
    source = b @ layer.source_weight
    potential = textbook.potentials(B, w, g, q + g * h + B @ (w * source))
    flow = w * (source - B.t() @ potential)
    count = max(incidence.num_edges, 1)
    size = ((flow @ layer.size_weight).square().sum() / count + SMALLEST**2).sqrt()
    nodes, odd, found = layer(x, a, b, (features, edge_features), Incidence(incidence.ends, incidence.num_nodes))
    assert_near(nodes.detach(), (x + potential @ layer.node_out).detach(), 1e-6)
    assert_near(odd.detach(), (b + flow / size @ layer.odd_out).detach(), 1e-6)
    assert_near(found.detach(), size.detach().expand_as(found), 1e-6)


def test_only_numbers_are_injected_and_each_potential_starts_with_one() -> None:
    layer = PotentialLayer(WIDTHS, (3, 3), potentials=4)
    layer.set_zero(torch.tensor([torch.nan, 0.25, 2.0]))
    assert layer.injection_weight[:, :4].tolist() == [[0, 0, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1]]
    amounts = layer._amounts(torch.tensor([[1.0, 0.25, 2.0], [1.0, 1.25, 0.0]]))
    assert amounts.tolist() == [[0, 0, 0], [0, 1, -2]]
    layer.set_zero(torch.full((3,), torch.nan))  # no number at all says nothing of what is one
    assert layer.is_number.tolist() == [0, 1, 1]


def test_flows_of_a_graph_are_relative_to_their_size() -> None:
    """Ten times what is injected gives ten times the size, and the same relative flows."""
    layer, (x, a, b, features, edges) = make_layer(0, torch.zeros(5)), rows(GRID, 0)
    torch.nn.init.zeros_(layer.node_feature_weight)
    _, odd, size = layer(x, a, 0 * b, (features, edges), GRID)
    _, more, ten = layer(x, a, 0 * b, (10 * features, edges), GRID)
    assert_near(more, odd.detach(), 1e-2)
    assert_near(ten, 10 * size.detach(), 1e-2)
    assert size[:5].unique().numel() == size[5:].unique().numel() == 1
    assert not torch.equal(size[0], size[-1])
    with pytest.raises(ValueError, match="size is None"):
        PotentialLayer(WIDTHS, (5, 3), 2)(
            *(each.float() for each in (x, a, b)), (features.float(), edges.float()), GRID
        )


@pytest.mark.parametrize("pre_layers", [0, 1])
def test_members_answer_as_alone(pre_layers: int) -> None:
    options = {"pre_layers": pre_layers, "edge_pre_layer": bool(pre_layers), "norm": "batch", "residual": True}
    options |= {"hidden": 4, "layers": "ENENE"}
    models = [OrientedNet(5, 4, 1, potentials=3, log_features=True, **options) for _ in range(2)]
    generator = torch.Generator().manual_seed(0)
    nodes, edges = (torch.randn(7, width, generator=generator, dtype=torch.float64) for width in (5, 4))
    for number, model in enumerate(models):
        shaken(model, number).eval()
        model.set_statistics(edges + number, torch.tensor([0.0, 0.5, torch.nan, 0.0, 0.0]), torch.zeros(4))
    together = stack_members(models)
    alone = [torch.cat(side, dim=1) for side in zip(*(model(nodes, edges, GRID) for model in models), strict=True)]
    for found, expected in zip(together(nodes, edges, GRID), alone, strict=True):
        assert_near(found.detach(), expected.detach(), 1e-4)
    again = split_members(together)[1](nodes, edges, GRID)[0]
    assert torch.equal(again, models[1](nodes, edges, GRID)[0])


def test_features_on_a_scale_of_decades() -> None:
    features = LogFeatures(2)
    sizes = torch.tensor([1e-4, 1e-3, 1e-2, 1e-1, 1.0])
    scaled = torch.stack([(sizes - 0.3) / 0.5, torch.ones(5)], dim=1)
    features.fit(scaled, zero=torch.tensor([-0.3 / 0.5, torch.nan]))
    found = features(scaled)
    assert torch.equal(found[:, :2], scaled)
    assert not found[:, 3].any()
    steps = found[1:, 2].diff()
    assert (steps > 0.9 * steps.max()).all()
    assert found[:, 2].mean().abs() < 1e-5
