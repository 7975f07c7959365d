"""Random walks follow edges, and embeddings score links above non-links."""

from __future__ import annotations

import pytest
import torch

from censnet.ops.graph import Graph
from censnet_experiments.baselines.walks import random_walks, window_pairs
from censnet_experiments.models import LINK_MODELS
from censnet_experiments.table3 import score_links


@pytest.fixture
def cliques() -> Graph:
    """Two cliques of 12 with one edge between them, and a node alone."""
    one = torch.combinations(torch.arange(12))
    ends = torch.cat([one, one + 12, torch.tensor([[0, 12]])]).t().contiguous()
    return Graph(torch.eye(25), torch.ones(ends.shape[1], 2), ends)


def test_every_step_of_a_walk_is_an_edge(cliques: Graph) -> None:
    walks = random_walks(
        cliques, torch.arange(cliques.num_nodes).repeat(3), length=6, generator=torch.Generator().manual_seed(0)
    )
    assert walks.shape == (75, 6)
    adjacent = torch.zeros(25, 25, dtype=torch.bool)
    adjacent[cliques.ends[0], cliques.ends[1]] = True
    adjacent[24, 24] = True  # who has no neighbour stays
    assert bool((adjacent | adjacent.t())[walks[:, :-1], walks[:, 1:]].all())
    assert torch.bincount(walks[:, 0]).tolist() == [3] * 25


def test_steps_are_uniform_over_neighbors() -> None:
    star = Graph(torch.ones(5, 1), torch.ones(4, 1), torch.tensor([[0, 0, 0, 0], [1, 2, 3, 4]]))
    walks = random_walks(
        star, torch.arange(star.num_nodes).repeat(4000), length=2, generator=torch.Generator().manual_seed(1)
    )
    share = torch.bincount(walks[walks[:, 0] == 0][:, 1], minlength=5).float() / 4000
    torch.testing.assert_close(share, torch.tensor([0.0, 0.25, 0.25, 0.25, 0.25]), atol=0.03, rtol=0)


def test_windows_hold_every_two_nodes_that_are_near() -> None:
    pairs = window_pairs(torch.tensor([[0, 1, 2, 3]]), window=2)
    found = sorted(map(tuple, pairs.t().tolist()))
    assert found == [(0, 1), (0, 2), (1, 0), (1, 2), (1, 3), (2, 0), (2, 1), (2, 3), (3, 1), (3, 2)]


OPTIONS = {
    "censnet-vae": {"hidden": 16, "latent": 8, "balanced": True},
    "deepwalk": {"embedding": 8, "walks": 1.0, "length": 10, "window": 3},
    "spectral": {"embeddings": [2]},  # further eigenvectors set apart the very nodes whose edge is hidden
    "vgae": {},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LINK_MODELS)
def test_every_method_finds_the_cliques(name: str, cliques: Graph) -> None:
    """Hidden pairs within a clique score higher than pairs across, far above chance."""
    hidden = torch.tensor([[1, 2, 3, 13, 14, 15], [5, 6, 7, 17, 18, 19]])
    keep = ~((cliques.ends.unsqueeze(2) == hidden.unsqueeze(1)).all(0)).any(1)
    seen = Graph(cliques.nodes, cliques.edges[keep], cliques.ends[:, keep])
    assert seen.num_edges == cliques.num_edges - 6
    model = LINK_MODELS[name](seen, **OPTIONS[name])
    embedding = model.embed(150, 0.02, 0, lambda embedding: 0.0)
    pairs = torch.cat([hidden, torch.tensor([[1, 2, 3, 4, 5, 6], [14, 15, 16, 17, 18, 19]])], dim=1)
    assert score_links(embedding, pairs, torch.tensor([1.0] * 6 + [0.0] * 6))["auc"] > 0.9


@pytest.mark.parametrize("name", ["censnet-vae", "deepwalk", "vgae"])
def test_a_seed_gives_the_same_embedding(name: str, cliques: Graph) -> None:
    model = LINK_MODELS[name](cliques, **OPTIONS[name])
    first, again, other = (model.embed(2, 0.02, seed, lambda embedding: 0.0) for seed in (1, 1, 2))
    torch.testing.assert_close(first, again, rtol=0, atol=0)
    assert not torch.equal(first, other)
