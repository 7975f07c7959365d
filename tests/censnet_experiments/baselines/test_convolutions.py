"""The layers of PyTorch Geometric whose products are taken in another order give the same."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.nn import ChebConv, SAGEConv

from censnet_experiments.baselines.convolutions import ChebyNet, GraphSAGE, both_ways
from censnet_experiments.data import NodeData


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_chebynet_has_the_layers_of_pytorch_geometric(order: int, citations: NodeData) -> None:
    graph = citations.graph
    model = ChebyNet(graph, 3, hidden=4, order=order, dropout=0.0)
    layers = [ChebConv(graph.node_width, 4, order), ChebConv(4, 3, order)]
    for layer, ours in zip(layers, (model.first, model.second), strict=True):
        layer.load_state_dict(ours.state_dict())
    nodes, index = model.inputs(graph)[0], both_ways(graph)
    expected = layers[1](layers[0](nodes, index).relu(), index)
    torch.testing.assert_close(model(*model.inputs(graph)), expected, atol=1e-5, rtol=1e-5)


def test_graphsage_has_the_layers_of_pytorch_geometric(citations: NodeData) -> None:
    graph = citations.graph
    model = GraphSAGE(graph, 3, hidden=4, dropout=0.0)
    layers = [SAGEConv(graph.node_width, 4), SAGEConv(4, 3)]
    for layer, ours in zip(layers, (model.first, model.second), strict=True):
        layer.load_state_dict(ours.state_dict())
    nodes, index = model.inputs(graph)
    expected = layers[1](layers[0](nodes, index).relu(), index)
    torch.testing.assert_close(model(nodes, index), expected, atol=1e-5, rtol=1e-5)
