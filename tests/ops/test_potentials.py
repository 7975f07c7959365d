"""Potentials against a dense solution, with gradients, and each graph of a batch by itself."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import assert_near, incidences
from torch import Tensor

from censnet.ops import textbook
from censnet.ops.incidence import Incidence
from censnet.ops.potentials import solve_potentials


def system(incidence: Incidence, seed: int, width: int = 3) -> tuple[Tensor, Tensor, Tensor]:
    """Conductances of edges, and of nodes to the ground, and what is injected."""
    generator = torch.Generator().manual_seed(seed)
    counts = incidence.num_edges, incidence.num_nodes, incidence.num_nodes
    opens, ground, injection = (torch.randn(count, width, generator=generator, dtype=torch.float64) for count in counts)
    return opens.exp().requires_grad_(), (ground - 2).exp().requires_grad_(), injection.requires_grad_()


@given(incidence=incidences(), seed=st.integers(0, 2**16))
def test_potentials_are_the_dense_solution_with_its_gradients(incidence: Incidence, seed: int) -> None:
    rows = system(incidence, seed)
    S, R = textbook.end_matrices(incidence.ends, incidence.num_nodes)
    found, expected = solve_potentials(*rows, incidence), textbook.potentials(R - S, *rows)
    assert_near(found, expected, 1e-8)
    weight = torch.randn(found.shape, generator=torch.Generator().manual_seed(seed), dtype=found.dtype)
    for one, other in zip(
        torch.autograd.grad((found * weight).sum(), rows),
        torch.autograd.grad((expected * weight).sum(), rows),
        strict=True,
    ):
        assert_near(one, other, 1e-7)


def test_a_graph_has_the_same_potentials_alone_and_in_a_batch() -> None:
    path, cycle = torch.tensor([[0, 1, 2], [1, 2, 3]]), torch.tensor([[0, 1, 2], [1, 2, 0]])
    owner = torch.tensor([0, 0, 0, 0, 1, 1, 1])
    both = Incidence(torch.cat([path, cycle + 4], dim=1), 7, owner, 2)
    conductance, ground, injection = (rows.detach().float() for rows in system(both, 0))
    injection[4:] *= 1e6  # another graph whose residuals are large for long
    together = solve_potentials(conductance, ground, injection, both)
    alone = solve_potentials(conductance[:3], ground[:4], injection[:4], Incidence(path, 4))
    assert torch.allclose(together[:4], alone, rtol=1e-6)


def test_all_that_is_injected_flows_to_the_one_node_that_is_grounded() -> None:
    """Kirchhoff's first law: at all other nodes, what comes in goes out again."""
    grid = Incidence(torch.tensor([[0, 1, 2, 3, 0, 1], [1, 2, 3, 0, 2, 3]]), 4)
    conductance, _, injection = (rows.detach() for rows in system(grid, 3))
    ground = torch.tensor([1e3, 1e-12, 1e-12, 1e-12], dtype=torch.float64).unsqueeze(1).expand(4, 3)
    flow = -conductance * grid.difference(solve_potentials(conductance, ground, injection, grid))
    assert_near(grid.divergence(flow)[1:], -injection[1:], 1e-6)


def test_no_edges_and_no_injection_are_fine() -> None:
    alone = Incidence(torch.zeros(2, 0, dtype=torch.int64), 2)
    found = solve_potentials(torch.zeros(0, 1), torch.full((2, 1), 2.0), torch.tensor([[4.0], [0.0]]), alone)
    assert found.tolist() == [[2.0], [0.0]]
