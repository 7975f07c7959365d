"""Baselines of Table 2: a GCN over atoms, and random forests and linear models over pooled features."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn
from torch_geometric.nn import GCNConv

from censnet.ops.arrays import Array
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet


class MoleculeGCN(nn.Module):
    """A GCN on every molecule of a batch; the output is the mean over its atoms. Bond types are not used.

    Args:
        graph: gives the input widths.
        out_width: the number of targets.
        hidden: channels between layers.
        layers: number of layers; the last one is the output.
        dropout: after every layer but the last.
    """

    def __init__(
        self, graph: Graph | GraphSet, out_width: int, hidden: int = 32, layers: int = 3, dropout: float = 0.0
    ) -> None:
        super().__init__()
        widths = [graph.node_width, *[hidden] * (layers - 1), out_width]
        self.layers = nn.ModuleList(GCNConv(one, other, normalize=False) for one, other in pairwise(widths))
        self.dropout = dropout

    def inputs(self, batch: Graph) -> tuple[Any, ...]:
        """The atoms, the entries of D^-1/2 (A + I) D^-1/2, and which molecule each atom is in."""
        root = batch.incidence.node_degree.to(batch.nodes.dtype).rsqrt()
        loops = torch.arange(batch.num_nodes, device=root.device).expand(2, -1)
        index = torch.cat([batch.ends, batch.ends.flip(0), loops], dim=1)
        return batch.nodes, index, root[index[0]] * root[index[1]], batch.owner, batch.incidence.count("node")

    def forward(self, nodes: Tensor, index: Tensor, weight: Tensor, owner: Tensor, count: Tensor) -> Tensor:
        """The outputs. (graphs, out_width)"""
        for layer in self.layers[:-1]:
            nodes = F.dropout(F.relu(layer(nodes, index, weight)), self.dropout, self.training)
        atoms = self.layers[-1](nodes, index, weight)
        total = torch.zeros_like(atoms[: len(count)]).index_add(0, owner, atoms)
        return total / count.unsqueeze(1)


def pooled_features(graphs: GraphSet) -> Array:
    """Features of the classical models: the means of the atom and bond features of a molecule, and their counts.

    The paper does not report the features of its forests and regressions. These are the features of the networks,
    without the graph; a molecule without bonds has zeros there.
    """
    every = graphs.batch(torch.arange(len(graphs), device=graphs.nodes.device))
    pooled = []
    for rows, side in ((every.nodes, "node"), (every.edges, "edge")):
        count = every.incidence.count(side).to(rows.dtype).unsqueeze(1)  # type: ignore[arg-type]
        total = every.incidence.pool(rows, side)  # type: ignore[arg-type]
        pooled += [total / count.clamp(min=1), count]
    return torch.cat(pooled, dim=1).cpu().numpy()


class Forest:
    """A random forest for each target, with a cross-validated minimum leaf size.

    Args:
        trees: number of trees.
        leaves: candidates for the minimum leaf size.
        share: of the features considered at a split.
        folds: of the cross-validation, within the training set.
    """

    def __init__(
        self,
        trees: int = 100,
        leaves: Sequence[int] = (1, 3, 10),
        share: float = 1 / 3,
        folds: int = 3,
    ) -> None:
        self.trees, self.folds, self.share = trees, folds, share
        self.grid = {"min_samples_leaf": list(leaves)}
        self.num_candidates = len(leaves)

    def predict(self, features: Array, labels: Array, train: Array, regression: bool, seed: int) -> Array:
        """Fit one target on the training set, and predict scores for all molecules."""
        kind = RandomForestRegressor if regression else RandomForestClassifier
        score = "neg_root_mean_squared_error" if regression else "roc_auc"
        forest = kind(self.trees, max_features=self.share, random_state=seed, n_jobs=-1)
        search = GridSearchCV(forest, self.grid, scoring=score, cv=self.folds)
        search.fit(features[train], labels[train])
        return _scores(search, features, regression)


class Linear:
    """Logistic regression for binary targets, linear regression for numbers, on standardized features.

    The paper selects no features for these. The weight of a bond type of one training molecule is not determined, so
    both have scikit-learn's default penalty, which is not tuned.

    Args:
        penalty: of the squared weights, beside the sum of the losses.
    """

    num_candidates = 1

    def __init__(self, penalty: float = 1.0) -> None:
        self.penalty = penalty

    def predict(self, features: Array, labels: Array, train: Array, regression: bool, seed: int) -> Array:
        """Fit one target on the training set, and predict scores for all molecules."""
        logistic = LogisticRegression(C=1 / self.penalty, max_iter=1000, random_state=seed)
        model = make_pipeline(StandardScaler(), Ridge(self.penalty) if regression else logistic)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # ranks are the same
            model.fit(features[train], labels[train])
        return _scores(model, features, regression)


def _scores(model: Any, features: Array, regression: bool) -> Array:
    return np.asarray(model.predict(features) if regression else model.predict_proba(features)[:, 1])
