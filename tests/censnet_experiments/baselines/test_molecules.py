"""Features of the classical models; missing labels and other graphs do not change predictions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch_geometric.nn import GCNConv, global_mean_pool

from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet_experiments.baselines.molecules import Forest, Linear, MoleculeGCN, pooled_features


def two_graphs() -> GraphSet:
    path = Graph(torch.tensor([[1.0, 0], [2, 0], [3, 3]]), torch.tensor([[1.0], [3]]), torch.tensor([[0, 1], [1, 2]]))
    dot = Graph(torch.tensor([[5.0, 7]]), torch.ones(0, 1), torch.empty(2, 0, dtype=torch.long))
    return GraphSet.pack([path, dot])


def test_pooled_features_are_means_and_numbers() -> None:
    found = pooled_features(two_graphs())
    np.testing.assert_allclose(found, [[2, 1, 3, 2, 2], [5, 7, 1, 0, 0]])  # atoms, their number, bonds, their number


def test_the_gcn_is_pygs_with_mean_pooling() -> None:
    """Precomputed entries give what GCNConv computes for itself on the same batch."""
    batch = two_graphs().batch(torch.tensor([1, 0]))
    model = MoleculeGCN(batch, 2, hidden=4, layers=2)
    index = torch.cat([batch.ends, batch.ends.flip(0)], dim=1)
    theirs = []
    for layer in model.layers:
        conv = GCNConv(layer.in_channels, layer.out_channels)
        conv.load_state_dict(layer.state_dict())
        theirs.append(conv)
    hidden = F.relu(theirs[0](batch.nodes, index))
    expected = global_mean_pool(theirs[1](hidden, index), batch.owner)
    torch.testing.assert_close(model(*model.inputs(batch)), expected)


@pytest.mark.slow
def test_classical_models_are_fitted_on_the_training_set_only() -> None:
    draw = np.random.default_rng(0)
    features = draw.normal(size=(120, 3))
    number = 2 * features[:, 0] - features[:, 1]
    train = np.arange(80)
    changed = np.where(np.arange(120) < 80, number, 1e6)
    for model in (Linear(), Forest(trees=20, leaves=[1])):
        answer = model.predict(features, number, train, regression=True, seed=0)
        again = model.predict(features, changed, train, regression=True, seed=0)
        np.testing.assert_allclose(answer, again, rtol=1e-9)
        assert np.corrcoef(answer[80:], number[80:])[0, 1] > 0.8
        chance = model.predict(features, (number > 0).astype(float), train, regression=False, seed=0)
        assert np.mean((chance[80:] > 0.5) == (number[80:] > 0)) > 0.8
        assert 0 <= chance.min() <= chance.max() <= 1
