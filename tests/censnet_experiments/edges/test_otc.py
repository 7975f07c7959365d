from __future__ import annotations

import pandas as pd
import torch

from censnet_experiments.edges.otc import read_otc, split_at_random, split_by_time


def test_ratings_are_read_with_their_signs(real_data):
    edges = read_otc().edges
    assert list(edges) == ["source", "target", "rating", "time", "sign"]
    assert len(edges) == 35_592
    assert len(set(edges["source"]) | set(edges["target"])) == 5_881
    assert edges["rating"].between(-10, 10).all()
    assert (edges["rating"] != 0).all()
    assert abs(edges["sign"].mean() - 0.9) < 0.005
    assert not edges.duplicated(["source", "target"]).any()


def test_splits_have_the_stated_shares_and_time_runs_forward():
    edges = pd.DataFrame({"time": [float(7 * row % 100) for row in range(100)]})
    split = split_by_time(edges)
    assert (len(split.train), len(split.validation), len(split.test)) == (80, 10, 10)
    time = torch.tensor(edges["time"].to_numpy())
    assert time[split.train].max() < time[split.validation].min()
    assert time[split.validation].max() < time[split.test].min()
    first, again, other = (split_at_random(edges, seed) for seed in (0, 0, 1))
    assert (len(first.train), len(first.validation), len(first.test)) == (80, 10, 10)
    assert torch.equal(first.test, again.test)
    assert not torch.equal(first.test, other.test)
