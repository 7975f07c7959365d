"""The decoder of directed links: a virtual edge is one of a directed layer, and all pairs are scored as each alone."""

from __future__ import annotations

import pytest
import torch
from strategies import assert_near, features, shaken
from torch import Tensor

from censnet.nn.directed import DirectedEdgeLayer
from censnet.nn.directed_decoder import DirectedPairDecoder, DirectedPairInputs
from censnet.ops.graph import Graph
from censnet.ops.incidence import Incidence

ENDS = torch.tensor([[0, 1, 2, 1, 3, 3, 3, 2], [1, 2, 0, 0, 3, 0, 3, 0]])  # loops, an isolated node
EVERY = torch.cartesian_prod(torch.arange(5), torch.arange(5)).t()


def graph(sparse: bool = False) -> Graph:
    nodes, edges = features(Incidence(ENDS, 5), 6, 2)
    nodes = nodes * (nodes > 0)
    return Graph(nodes.to_sparse_csr() if sparse else nodes, edges, ENDS, directed=True)


def make(**options: object) -> tuple[DirectedPairDecoder, DirectedPairInputs, Tensor, Tensor]:
    decoder = shaken(DirectedPairDecoder(4, 3, 8, **options))
    nodes, edges = features(Incidence(ENDS, 5), 4, 3, seed=1)
    return decoder, decoder(nodes, edges, graph(bool(options.get("sparse")))), nodes, edges


def test_a_virtual_edge_is_a_further_edge_of_a_directed_layer() -> None:
    layer = shaken(DirectedEdgeLayer(4, 3, 8, gate="bounded"))
    nodes, edges = features(Incidence(ENDS, 5), 4, 3)
    at_start, at_end = layer.of_virtual_edges(nodes, edges, Incidence(ENDS, 5))
    for i, j in EVERY.t().tolist():
        if i != j:
            longer = Incidence(torch.cat([ENDS, torch.tensor([[i], [j]])], dim=1), 5)
            expected = layer(nodes, torch.cat([edges, torch.zeros(1, 3, dtype=torch.float64)]), longer)[-1]
            assert_near((at_start[i] + at_end[j]).detach(), expected.detach(), 1e-12)


@pytest.mark.parametrize("options", [{}, {"diffusion_steps": 2}, {"features": False}, {"edges": False}])
def test_all_pairs_are_scored_as_each_alone(options: dict[str, object]) -> None:
    decoder, inputs, *_ = make(**options)
    expected = decoder.score(inputs, EVERY).view(5, 5).detach()
    assert_near(decoder.score_all_pairs(inputs, torch.arange(5)), expected, 1e-12)
    assert_near(decoder.score_all_pairs(inputs, torch.tensor([3, 1]), start=2), expected[[3, 1], 2:], 1e-12)
    with torch.no_grad():
        assert_near(decoder.score(inputs, EVERY).view(5, 5), expected, 1e-12)
    assert (expected - expected.t()).abs().max() > 1e-3


def test_sparse_features_are_as_dense_ones() -> None:
    decoder = shaken(DirectedPairDecoder(4, 3, 8))
    nodes, edges = features(Incidence(ENDS, 5), 4, 3)
    one, other = (decoder(nodes, edges, graph(sparse)) for sparse in (False, True))
    assert_near(decoder.score(other, EVERY).detach(), decoder.score(one, EVERY).detach(), 1e-12)
    assert_near(decoder.score_all_pairs(other, torch.arange(5)), decoder.score_all_pairs(one, torch.arange(5)), 1e-12)


def test_every_parameter_that_is_read_has_a_gradient() -> None:
    decoder, _, nodes, edges = make(diffusion_steps=2)
    inputs = decoder(nodes, edges, graph())
    decoder.loss(inputs, graph(), EVERY[:, :7], EVERY[:, 7:]).backward()
    for name, parameter in decoder.named_parameters():
        if parameter.requires_grad:
            assert parameter.grad is not None, name
            assert parameter.grad.abs().max() > 0, name
    assert [name for name, p in decoder.named_parameters() if not p.requires_grad] == ["edge_layer.root_weight"]


def test_embeddings_of_both_roles_have_length_one() -> None:
    decoder, inputs, nodes, _ = make()
    assert inputs.embedding.shape == (5, 16)
    for half in decoder.embed_nodes(nodes).chunk(2, dim=1):
        assert_near(half.norm(dim=1).detach(), torch.ones(5, dtype=torch.float64), 1e-12)
    assert inputs.to("cpu").embedding.equal(inputs.embedding)


def test_reset_parameters_and_repr() -> None:
    decoder = DirectedPairDecoder(4, 3, 8, diffusion_steps=2)
    assert decoder.extra_repr() == "4 -> 8, diffusion_steps=2"
    before = decoder.projection.clone()
    decoder.reset_parameters()
    assert not before.equal(decoder.projection)
    with pytest.raises(ValueError, match=r"^diffusion_steps is -1, expected a number of steps, or 0 for none$"):
        DirectedPairDecoder(4, 3, diffusion_steps=-1)
    with pytest.raises(ValueError, match=r"^pairs\[1, 0\] is 5, expected a node from 0 to 4"):
        decoder.double().score(decoder(*features(Incidence(ENDS, 5), 4, 3), graph()), torch.tensor([[0], [5]]))
