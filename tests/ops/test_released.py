"""The rules of the released code: the fast path against the dense one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import LAWS, Changed, Sample, assert_near, check_by_textbook, fill, graphs, random_sample
from torch import Tensor

from censnet.ops import Incidence, propagate_edges_released, propagate_nodes, textbook
from censnet.ops.released import column_maximum
from censnet.ops.segments import LONGEST


def check_edges(sample: Sample) -> tuple[Tensor, ...]:
    """The value and the gradients of edges and gates, which are those of the textbook."""
    return check_by_textbook(
        propagate_edges_released, textbook.released_edge_operator, sample.edges, sample.node_weight, sample
    )


@given(sample=graphs())
def test_edges_are_the_released_rule(sample: Sample) -> None:
    check_edges(sample)


@given(sample=graphs())
def test_nodes_are_the_released_rule(sample: Sample) -> None:
    fast = partial(propagate_nodes, self_weight="one", normalization="row")
    check_by_textbook(fast, textbook.released_node_operator, sample.nodes, sample.edge_weight, sample)


@given(sample=graphs(), size=st.sampled_from([0.1, 1.0, 10.0, 1000.0]), sign=st.sampled_from([-1.0, 1.0]))
def test_gates_of_one_sign_and_any_size(sample: Sample, size: float, sign: float) -> None:
    gates = sign * size * sample.node_weight.abs()
    check_edges(Sample(sample.incidence, sample.nodes, sample.edges, gates, sample.edge_weight))


@pytest.mark.slow
def test_three_hundred_random_multigraphs() -> None:
    for seed in range(300):
        sample = random_sample(seed)
        check_edges(sample)
        check_edges(sample.to(torch.float32))


@pytest.mark.parametrize("heads", [None, 2, 4])
def test_hubs(heads: int | None) -> None:
    generator = torch.Generator().manual_seed(0)
    ends = torch.randint(40, (2, 800), generator=generator)
    ends[0, : LONGEST + 10] = 0
    check_edges(fill(Incidence(ends, 40), 4, heads, seed=1))


@given(sample=graphs())
def test_columns_have_their_maxima(sample: Sample) -> None:
    gates = sample.node_weight if sample.node_weight.dim() == 2 else sample.node_weight.unsqueeze(1)
    found = column_maximum(gates, sample.incidence)
    adjacency = textbook.normalize(textbook.edge_adjacency(sample.T), "row", loop=2.0)
    for head, gate in enumerate(gates.unbind(1)):
        M = textbook.with_self_weight(sample.T.t() @ torch.diag(gate) @ sample.T, "one") * adjacency
        expected = M.max(dim=0).values if len(M) else gate.new_zeros(0)
        assert_near(found[:, head], expected, 1e-12)


def test_path_by_hand() -> None:
    path = Incidence(torch.tensor([[0, 1], [1, 2]]), num_nodes=3)  # D = 3, 3; M = [[2, u_1], [u_1, 2]] / 3
    z = torch.tensor([[1.0], [10.0]])
    small = propagate_edges_released(z, torch.tensor([9.0, 1.0, 9.0]), path)  # the diagonal is the largest: c = 2 / 3
    torch.testing.assert_close(small, torch.tensor([[1 + 5.0], [0.5 + 10]]))
    large = propagate_edges_released(z, torch.tensor([9.0, 4.0, 9.0]), path)  # u_1 is: c = 4 / 3
    torch.testing.assert_close(large, torch.tensor([[0.5 + 10], [1 + 5.0]]))
    negative = propagate_edges_released(z, torch.tensor([9.0, -4.0, 9.0]), path)
    torch.testing.assert_close(negative, torch.tensor([[1 - 20.0], [-2 + 10.0]]))


def test_one_edge_is_divided_by_itself() -> None:
    for ends in ([[0], [1]], [[1], [1]]):
        sample = fill(Incidence(torch.tensor(ends), 3), 4, 2, seed=0)
        torch.testing.assert_close(
            propagate_edges_released(sample.edges, sample.node_weight, sample.incidence), sample.edges
        )
        check_edges(sample)


def test_no_edge_gives_no_edge() -> None:
    sample = fill(Incidence(torch.empty(2, 0, dtype=torch.int64), 3), 4, None, seed=0)
    out, grad_edges, grad_weight = check_edges(sample)
    assert out.shape == grad_edges.shape == (0, 4)
    assert grad_weight.equal(torch.zeros(3, dtype=torch.float64))


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@given(sample=graphs())
def test_laws(law: Callable[[Sample], Changed], sample: Sample) -> None:
    changed = law(sample)
    after = changed.sample
    edges = propagate_edges_released(after.edges, after.node_weight, after.incidence)
    expected = propagate_edges_released(sample.edges, sample.node_weight, sample.incidence)
    assert_near(edges[changed.edges], expected, 1e-12)


@pytest.mark.parametrize("heads", [None, 2])
def test_gradients_pass_gradcheck(heads: int | None) -> None:
    ends = torch.tensor([[0, 1, 2, 1, 3, 3, 3], [1, 2, 0, 0, 3, 0, 3]])
    sample = fill(Incidence(ends, 5), 4, heads, seed=2)
    fast = partial(propagate_edges_released, incidence=sample.incidence)
    assert torch.autograd.gradcheck(fast, (sample.edges.requires_grad_(), sample.node_weight.requires_grad_()))


def test_a_star_of_100_000_leaves_ends() -> None:
    count = 100_000
    star = Incidence(torch.stack([torch.zeros(count, dtype=torch.int64), torch.arange(1, count + 1)]), count + 1)
    sample = fill(star, 2, None, seed=0)
    gates = sample.node_weight.index_fill(0, torch.tensor([0]), 3.0).unsqueeze(1)  # D = count + 1, and c = 3 / D
    expected = (3 * (sample.edges.sum(0) - sample.edges) + 2 * sample.edges) / 3
    assert_near(propagate_edges_released(sample.edges, gates, star), expected, 1e-10)


@pytest.mark.parametrize(
    ("edges", "weight", "message"),
    [
        (torch.ones(3, 4), torch.ones(3), r"^edges has shape \(3, 4\), expected \(2, \*\): \(E, d\)$"),
        (torch.ones(2, 4), torch.ones(2), r"^node_weight has shape \(2,\), expected \(3,\): \(N,\) or \(N, heads\)$"),
        (torch.ones(2, 4), torch.ones(3, 3), r"^node_weight has 3 heads and edges 4 channels, expected heads that"),
        (torch.ones(2, 4).long(), torch.ones(3), r"^edges has dtype torch.int64, expected a floating-point one"),
        (torch.ones(2, 4), torch.ones(3).double(), r"^node_weight has dtype torch.float64, expected torch.float32"),
    ],
)
def test_wrong_arguments_are_named(edges: Tensor, weight: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        propagate_edges_released(edges, weight, Incidence(torch.tensor([[0, 1], [1, 2]]), 3))
