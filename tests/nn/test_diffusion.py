"""The diffusion embedding against the matrix that it approximates."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from strategies import incidences
from torch import Tensor

from censnet.nn import diffusion
from censnet.nn.diffusion import TELEPORT, WIDTH, normalized_adjacency, orthonormalize
from censnet.ops import Incidence


def embed(incidence: Incidence, steps: int, dtype: torch.dtype, features: Tensor | None = None) -> Tensor:
    """The diffusion embedding, of nodes that have no features unless they are given."""
    if features is None:
        features = torch.zeros(incidence.num_nodes, 1, device=incidence.ends.device)
    return diffusion.diffusion_embedding(features, incidence, steps, dtype)


def slow_operator(incidence: Incidence) -> Tensor:
    """D^-1/2 (A + I) D^-1/2 with A of 0 and 1."""
    A = torch.eye(incidence.num_nodes, dtype=torch.float64)
    for i, j in incidence.ends.t().tolist():
        if i != j:
            A[i, j] = A[j, i] = 1
    scale = A.sum(1).rsqrt()
    return scale[:, None] * A * scale


def slow_diffusion(incidence: Incidence, steps: int) -> Tensor:
    """K, whose row i says where walks from i end."""
    power, K = torch.eye(incidence.num_nodes, dtype=torch.float64), torch.zeros(())
    for k in range(steps):
        K, power = K + TELEPORT * (1 - TELEPORT) ** k * power, slow_operator(incidence) @ power
    return K + (1 - TELEPORT) ** steps * power


def communities(count: int = 300, groups: int = 10, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Edges between nodes most of which are of one group, and the groups."""
    rng = np.random.default_rng(seed)
    group = np.arange(count) % groups
    one, other = np.triu_indices(count, 1)
    there = rng.random(len(one)) < np.where(group[one] == group[other], 0.15, 0.004)
    return torch.from_numpy(np.stack([one[there], other[there]])), torch.from_numpy(group)


@given(incidence=incidences(), steps=st.integers(1, 4))
def test_of_few_nodes_the_cosines_are_those_of_the_diffusion_matrix(incidence: Incidence, steps: int) -> None:
    """Fewer nodes than directions: nothing is left out."""
    x = torch.randn(incidence.num_nodes, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(normalized_adjacency(incidence, torch.float64)(x), slow_operator(incidence) @ x)
    K, found = F.normalize(slow_diffusion(incidence, steps), dim=1), embed(incidence, steps, torch.float64)
    torch.testing.assert_close(found @ found.t(), K @ K.t(), rtol=0, atol=1e-4)


def test_of_many_nodes_they_are_those_of_the_best_view_of_that_rank() -> None:
    ends, group = communities()
    incidence = Incidence(ends, len(group))
    value, vector = torch.linalg.eigh(slow_diffusion(incidence, 4))
    best = F.normalize((vector * value)[:, value.argsort(descending=True)[:WIDTH]], dim=1)
    found = embed(incidence, 4, torch.float64)
    assert (found @ found.t() - best @ best.t()).square().mean().sqrt() < 0.02


@pytest.mark.parametrize("featured", [True, False])
def test_the_order_of_nodes_and_edges_does_not_matter(featured: bool) -> None:
    """Nodes of a graph like this one differ in their surroundings, also where they have no features."""
    ends, group = communities(seed=1)  # where no two nodes are alike
    draw = torch.Generator().manual_seed(0)
    order, edges = torch.randperm(len(group), generator=draw), torch.randperm(ends.shape[1], generator=draw)
    features = torch.randn(len(group), 3, generator=draw) if featured else torch.ones(len(group), 3)
    moved = torch.empty_like(features).index_copy(0, order, features)
    found = embed(Incidence(ends, len(group)), 4, torch.float64, features)
    again = embed(Incidence(order[ends][:, edges].flip(0), len(group)), 4, torch.float64, moved)[order]
    torch.testing.assert_close(again @ again.t(), found @ found.t(), rtol=0, atol=1e-9)


def test_nodes_of_one_group_are_near_each_other() -> None:
    ends, group = communities()
    found = embed(Incidence(ends, len(group)), 4, torch.float32)
    near, same = found @ found.t(), group[:, None] == group
    assert near[same].mean() > near[~same].mean() + 0.3


@pytest.mark.parametrize("rank", [1, 3, 5])
def test_orthonormal_columns_span_the_same(rank: int) -> None:
    draw = torch.Generator().manual_seed(0)
    rows = torch.randn(40, rank, generator=draw) @ torch.randn(rank, 5, generator=draw)
    found = orthonormalize(rows)
    value = torch.linalg.eigvalsh(found.t() @ found)
    torch.testing.assert_close(value, torch.tensor([0.0] * (5 - rank) + [1.0] * rank), rtol=0, atol=1e-4)
    torch.testing.assert_close(found @ (found.t() @ rows), rows, rtol=0, atol=1e-4)


def test_the_embedding_of_a_graph_is_cached() -> None:
    ends, group = communities(50)
    incidence = Incidence(ends, len(group))
    assert embed(incidence, 4, torch.float32) is embed(incidence, 4, torch.float32)
    assert embed(incidence, 3, torch.float32) is not embed(incidence, 4, torch.float32)


def test_half_precision_around_it_does_not_reach_it() -> None:
    ends, group = communities(50)
    with torch.autocast("cpu", torch.bfloat16):
        found = embed(Incidence(ends, len(group)), 4, torch.float32)
    torch.testing.assert_close(found, embed(Incidence(ends, len(group)), 4, torch.float32))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_nodes_without_edges_stay_where_they_are(count: int) -> None:
    found = embed(Incidence(torch.empty(2, 0, dtype=torch.long), count), 3, torch.float64)
    assert found.shape == (count, WIDTH)
    torch.testing.assert_close(found @ found.t(), torch.eye(count, dtype=torch.float64))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_a_gpu_gives_the_embedding_of_a_cpu() -> None:
    ends, group = communities()
    here, there = (embed(Incidence(ends.to(place), len(group)), 4, torch.float32).cpu() for place in ("cpu", "cuda"))
    torch.testing.assert_close(there @ there.t(), here @ here.t(), rtol=0, atol=1e-3)
