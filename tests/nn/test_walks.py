"""Walks in few numbers against the matrix that they stand for."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from strategies import incidences
from torch import Tensor

from censnet.nn.walks import TELEPORT, WIDTH, neighbours, signs, walk
from censnet.ops import Incidence


def slow_operator(incidence: Incidence) -> Tensor:
    """D^-1/2 (A + I) D^-1/2 with A of 0 and 1."""
    A = torch.eye(incidence.num_nodes, dtype=torch.float64)
    for i, j in incidence.ends.t().tolist():
        if i != j:
            A[i, j] = A[j, i] = 1
    scale = A.sum(1).rsqrt()
    return scale[:, None] * A * scale


def slow_walks(incidence: Incidence, steps: int) -> Tensor:
    """K, whose row i says where walks from i end."""
    power, K = torch.eye(incidence.num_nodes, dtype=torch.float64), torch.zeros(())
    for k in range(steps):
        K, power = K + TELEPORT * (1 - TELEPORT) ** k * power, slow_operator(incidence) @ power
    return K + (1 - TELEPORT) ** steps * power


@given(incidence=incidences(), steps=st.integers(1, 5))
def test_signs_are_carried_along_the_walks(incidence: Incidence, steps: int) -> None:
    x = signs(incidence.num_nodes).double()
    torch.testing.assert_close(neighbours(incidence, torch.float64)(x), slow_operator(incidence) @ x)
    expected = F.normalize(slow_walks(incidence, steps) @ x, dim=1)
    torch.testing.assert_close(walk(incidence, steps, torch.float64), expected, rtol=1e-9, atol=1e-9)


def test_cosines_are_those_of_where_walks_end() -> None:
    ring = torch.arange(60)
    incidence = Incidence(torch.stack([ring, (ring + 1) % 60]), 60)
    K, found = F.normalize(slow_walks(incidence, 8), dim=1), walk(incidence, 8, torch.float64)
    error = found @ found.t() - K @ K.t()
    assert error.square().mean().sqrt() < WIDTH**-0.5
    assert (found[0] @ found[1]) > (found[0] @ found[2]) > (found[0] @ found[30]) + 0.2


def test_signs_are_even_and_each_node_has_its_own() -> None:
    r = signs(2000).double()
    assert set(r.unique().tolist()) == {-1, 1}
    assert abs(r.mean()) < 0.01
    assert r.mean(0).abs().max() < 0.1
    products = (r @ r.t() / WIDTH).fill_diagonal_(0)
    assert products.std() == pytest.approx(WIDTH**-0.5, rel=0.02)
    torch.testing.assert_close(signs(10).double(), r[:10])  # whatever else is in the graph


def test_a_graph_without_nodes_has_no_walks() -> None:
    assert walk(Incidence(torch.empty(2, 0, dtype=torch.long), 0), 3, torch.float32).shape == (0, WIDTH)
