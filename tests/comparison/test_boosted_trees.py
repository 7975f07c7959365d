from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from censnet.comparison.boosted_trees import (
    TreeSettings,
    negative_rmse,
)
from censnet.comparison.fit_trees import fit_boosted_trees
from censnet.comparison.tree_graph import TreeGraph
from censnet.data.splits.splitters import by_time, ratio
from censnet_experiments.edges.otc import read_otc, split_at_random

QUICK = (TreeSettings(learning_rate=0.2, max_leaf_nodes=7, min_samples_leaf=10, l2_regularization=1.0, max_iter=40),)


@pytest.fixture(scope="module")
def ratings() -> pd.DataFrame:
    """Edges whose label is a noisy opinion of the target, known from the other edges alone."""
    draw = np.random.default_rng(0)
    source, target = draw.integers(0, 300, 6_000), draw.integers(0, 300, 6_000)
    opinion = draw.normal(size=300)
    rating = opinion[target] + 0.5 * draw.normal(size=6_000)
    columns = {"source": source, "target": target, "rating": rating, "opinion": opinion[target]}
    return pd.DataFrame(columns).assign(sign=(rating > 0).astype(int))


def test_known_labels_of_the_target_predict_the_sign_and_the_rating(ratings):
    graph, split = TreeGraph.of(ratings), ratio(len(ratings), seed=1)
    sign, rating, test = ratings["sign"].to_numpy(), ratings["rating"].to_numpy(), split.test.numpy()
    result = fit_boosted_trees(graph, sign, split, candidates=QUICK, ensemble=1)
    best = roc_auc_score(sign[test], ratings["opinion"].to_numpy()[test])  # who knows the opinion itself
    assert roc_auc_score(sign[test], result.test) > best - 0.03
    blind = fit_boosted_trees(graph, sign, split, known_labels=False, candidates=QUICK, ensemble=1)
    assert roc_auc_score(sign[test], blind.test) < best - 0.1  # better than chance: degrees tell some nodes apart
    found = fit_boosted_trees(graph, rating, split, numeric=True, validation_labels=True, candidates=QUICK, ensemble=2)
    assert -negative_rmse(rating[test], found.test) < 0.6
    assert len(found.validation) == len(split.validation)


def test_training_rows_of_one_class_give_that_class(ratings):
    split = ratio(len(ratings), seed=0)
    sign = np.zeros(len(ratings), np.int64)
    sign[split.validation[:5].numpy()] = 1  # rare labels in the order of time, say
    result = fit_boosted_trees(TreeGraph.of(ratings), sign, split, candidates=QUICK, ensemble=1)
    assert (result.test == 0).all()


def test_shuffled_labels_end_at_chance(ratings):
    areas = []
    for seed in range(3):
        shuffled = np.random.default_rng(seed).permutation(ratings["sign"].to_numpy())
        split = ratio(len(shuffled), (0.5, 0.1, 0.4), seed=seed)
        result = fit_boosted_trees(TreeGraph.of(ratings), shuffled, split, candidates=QUICK, ensemble=1)
        areas.append(roc_auc_score(shuffled[split.test.numpy()], result.test))
    assert abs(np.mean(areas) - 0.5) < 0.02


def test_labels_of_test_rows_are_not_read(ratings):
    graph, split, sign = TreeGraph.of(ratings), ratio(len(ratings), seed=1), ratings["sign"].to_numpy()
    other = sign.copy()
    other[split.test.numpy()] = 0
    first, again = (
        fit_boosted_trees(graph, labels, split, validation_labels=True, candidates=QUICK, ensemble=1)
        for labels in (sign, other)
    )
    np.testing.assert_array_equal(first.test, again.test)


def test_a_split_by_time_chooses_how_labels_are_shown(ratings):
    time = np.arange(len(ratings), dtype=float)
    split, sign = by_time(time), ratings["sign"].to_numpy()
    result = fit_boosted_trees(TreeGraph.of(ratings), sign, split, ordered=time, candidates=QUICK, ensemble=1)
    assert result.scheme in ("all", "past")
    assert roc_auc_score(sign[split.test.numpy()], result.test) > 0.88


def test_nodes_are_told_by_their_neighbors():
    draw = np.random.default_rng(0)
    labels = np.arange(600) % 3
    source, target = draw.integers(0, 600, (2, 20_000))
    keep = (labels[source] == labels[target]) | (draw.random(20_000) < 0.1)
    edges = pd.DataFrame({"source": source[keep], "target": target[keep]})
    graph, split = TreeGraph.of(edges, pd.DataFrame({"id": range(600)})), ratio(600, seed=0)
    result = fit_boosted_trees(graph, labels, split, level="node", candidates=QUICK, ensemble=1)
    assert result.test.shape == (60, 3)
    assert (result.test.argmax(1) == labels[split.test.numpy()]).mean() > 0.95


def test_categories_are_split_as_categories():
    draw = np.random.default_rng(0)
    channel = draw.choice([f"c{number}" for number in range(40)], 4_000)
    even = np.array([int(name[1:]) % 2 for name in channel])
    ends = draw.integers(0, 50, (2, 4_000))
    edges = pd.DataFrame({"source": ends[0], "target": ends[1], "channel": channel})
    graph = TreeGraph.of(edges, edge_columns=["channel"])
    split = ratio(4_000, seed=0)
    result = fit_boosted_trees(graph, even, split, structure=False, known_labels=False, candidates=QUICK, ensemble=1)
    assert result.features == ["channel"]
    assert roc_auc_score(even[split.test.numpy()], result.test) > 0.99


@pytest.mark.slow
def test_shuffled_signs_of_otc_end_at_chance(real_data):
    edges = read_otc().edges
    areas = []
    for seed in range(3):
        split = split_at_random(edges, seed)
        sign = np.random.default_rng(seed).permutation(edges["sign"].to_numpy())
        result = fit_boosted_trees(TreeGraph.of(edges), sign, split, candidates=QUICK, ensemble=1)
        areas.append(roc_auc_score(sign[split.test.numpy()], result.test))
    assert abs(np.mean(areas) - 0.5) < 0.02
