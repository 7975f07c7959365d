"""The model is its encoder, its heads and its decoder, and nothing else; a letter more is a class and a line."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from censnet.nn import (
    LAYERS,
    CausalLayer,
    CensNet,
    EdgeLayer,
    GraphHead,
    Head,
    LayerOptions,
    Model,
    NodeLayer,
    PairDecoder,
    RowHead,
    VariationalDecoder,
)
from censnet.nn.encoder import receptive_field
from censnet.nn.ensemble import stack_members
from censnet.nn.heads import LayerHead
from censnet.nn.layers import letters
from censnet.ops.graph import Graph

ENDS = torch.tensor([[0, 1, 2, 1, 3, 3], [1, 2, 0, 0, 3, 4]])


def graph(seed: int = 0) -> Graph:
    draw = torch.Generator().manual_seed(seed)
    nodes, edges = torch.randn(5, 4, generator=draw), torch.randn(6, 2, generator=draw)
    return Graph(nodes, edges, ENDS, graph_features=torch.randn(1, 3, generator=draw))


def encoder(**options: Any) -> CensNet:
    return CensNet(4, 2, 8, "NEN", **options)


def heads() -> dict[str, Head]:
    return {
        "node": RowHead("node", 8, 8, 3),
        "edge": RowHead("edge", 8, 8, 1, reads_nodes=True),
        "graph": GraphHead(8, 8, 2, graph_width=3),
    }


def test_outputs_are_those_of_the_heads_over_the_embeddings() -> None:
    model, one = Model(encoder(), heads()), graph()
    outputs = model(one)
    nodes, edges = model.encoder(one.nodes, one.edges, one.incidence)
    assert list(outputs.by_level) == ["node", "edge", "graph"]
    for level, head in model.heads.items():
        torch.testing.assert_close(outputs.by_level[level], head(nodes, edges, one))
    assert outputs.link_inputs is None
    again = model.apply_heads(*model.embed(one), one)
    assert all(again.by_level[level].equal(found) for level, found in outputs.by_level.items())


@pytest.mark.parametrize("decoder", [PairDecoder(8, 8, 4), VariationalDecoder(8, 4)], ids=["pairs", "variational"])
def test_every_decoder_gives_inputs_a_loss_and_scores(decoder: PairDecoder | VariationalDecoder) -> None:
    model, one = Model(encoder(), {}, decoder), graph()
    inputs = model(one).link_inputs
    assert inputs is not None
    assert inputs.embedding.shape == (5, 4)
    pairs = torch.tensor([[0, 2], [4, 3]])
    loss = decoder.loss(inputs, one, pairs, pairs.flip(0))
    loss.backward()
    assert loss.isfinite()
    every = decoder.score_all_pairs(inputs, torch.arange(5))
    torch.testing.assert_close(decoder.score(inputs, pairs).detach(), every[pairs[0], pairs[1]])
    assert decoder.embed_nodes(model.embed(one)[0]).shape[0] == 5
    assert model.samples_pairs == isinstance(decoder, PairDecoder)


def test_outputs_are_clipped_outside_of_training_alone() -> None:
    limits = torch.tensor([[-0.01], [0.01]])
    model, one = Model(encoder(), {"node": RowHead("node", 8, 8, 1, target_range=limits)}), graph()
    raw = model(one)
    assert not raw.unclipped
    found = model.eval()(one)
    torch.testing.assert_close(found.unclipped["node"], raw.by_level["node"])
    assert found.by_level["node"].equal(raw.by_level["node"].clamp(-0.01, 0.01))


def test_entries_of_sparse_features_are_dropped_while_training() -> None:
    one = graph()
    sparse = Graph(one.nodes.to_sparse_csr(), one.edges, one.ends)
    model = Model(encoder(), {"node": RowHead("node", 8, 8, 1)}, feature_dropout=0.5)
    assert not model(sparse).by_level["node"].equal(model(sparse).by_level["node"])
    assert model.eval()(sparse).by_level["node"].equal(model(sparse).by_level["node"])


def test_a_head_that_is_a_layer_widens_the_receptive_field() -> None:
    last = LayerHead("E", 8, 8, 2, LayerOptions())
    assert Model(encoder(), {"node": RowHead("node", 8, 8, 1)}).receptive_field == receptive_field("NEN", "node") == 2
    assert Model(encoder(), {"edge": last}).receptive_field == receptive_field("NENE", "edge") == 2
    assert Model(encoder(), {}, PairDecoder(8, 8)).receptive_field == 2
    ends = RowHead("edge", 8, 8, 1, reads_nodes=True)
    assert Model(encoder(), {"edge": ends}).receptive_field == 2
    assert Model(encoder(), {"edge": RowHead("edge", 8, 8, 1)}).receptive_field == 1
    nodes, edges = torch.randn(5, 8), torch.randn(6, 8)
    torch.testing.assert_close(last(nodes, edges, graph()), last.layer(nodes, edges, graph().incidence))


def test_reset_parameters_restarts_every_part() -> None:
    torch.manual_seed(0)
    fresh = Model(encoder(), heads(), PairDecoder(8, 8)).state_dict()
    torch.manual_seed(1)
    model = Model(encoder(), heads(), PairDecoder(8, 8))
    torch.manual_seed(0)
    model.reset_parameters()
    assert all(model.state_dict()[name].equal(value) for name, value in fresh.items())


def test_stacked_models_are_each_of_them() -> None:
    models, one = [Model(encoder(norm="batch"), heads()) for _ in range(3)], graph()
    together = stack_members(models)(one).by_level
    for level in heads():
        expected = torch.cat([model(one).by_level[level] for model in models], dim=1)
        torch.testing.assert_close(together[level], expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="decoder is a PairDecoder, which cannot have members"):
        stack_members([Model(encoder(), {}, PairDecoder(8, 8))])


def test_a_head_of_the_user_is_a_head() -> None:
    class Bilinear(Head):
        def __init__(self, width: int) -> None:
            super().__init__(out_width=1)
            self.bilinear = nn.Bilinear(width, width, 1)

        def forward(self, nodes: Tensor, edges: Tensor, graph: Graph) -> Tensor:
            first, second = nodes[graph.ends]
            outputs: Tensor = self.bilinear(first, second) + self.bilinear(second, first)
            return outputs

    assert Model(encoder(), {"edge": Bilinear(8)})(graph()).by_level["edge"].shape == (6, 1)


# -- the registry of layers -------------------------------------------------------------------------------------------


def test_each_letter_states_the_sides_that_it_updates_and_reads() -> None:
    assert {letter: (layer.updates, layer.reads) for letter, layer in LAYERS.items()} == {
        "N": ("node", "edge"),
        "E": ("edge", "node"),
        "C": ("edge", "node"),
    }
    assert list(LAYERS.values()) == [NodeLayer, EdgeLayer, CausalLayer]
    assert letters() == ["N", "E"]
    assert letters(causal=True) == ["C"]


def test_a_new_letter_is_a_class_and_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class MeanLayer(NodeLayer):
        """Nodes by themselves, without the graph."""

        def forward(self, nodes: Tensor, edges: Tensor, incidence: object, edge_scale: Tensor | None = None) -> Tensor:
            return nodes @ self.weight

    monkeypatch.setitem(LAYERS, "M", MeanLayer)
    model, one = CensNet(4, 2, 8, "MEN", norm="layer", residual=True), graph()
    nodes, edges = model(one.nodes, one.edges, one.incidence)
    assert (nodes.shape, edges.shape) == ((5, 8), (6, 8))
    assert receptive_field("MEN") == 2
    with pytest.raises(ValueError, match=r"^layers is 'X', expected a sequence of N and E and M"):
        CensNet(4, 2, 8, "X")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"edge": RowHead("node", 8, 8, 1)}, "a head of level 'node' for 'edge', expected one of that level"),
        ({"node": GraphHead(8, 8, 1)}, "a head of level 'graph' for 'node'"),
        ({"node": LayerHead("E", 8, 8, 1, LayerOptions())}, "a head of level 'edge' for 'node'"),
        ({"link": RowHead("node", 8, 8, 1)}, "heads has 'link', expected levels: node, edge, graph"),
    ],
)
def test_a_head_of_another_level_is_refused(wrong: dict[str, Head], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Model(encoder(), wrong)
