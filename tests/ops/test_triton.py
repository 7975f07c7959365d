"""The Triton kernels against float64 on a CPU, with every output filled with NaN before it is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial

import pytest
import torch
from strategies import poisoned_memory
from torch import Tensor

from censnet.ops import Incidence, propagate_edges, propagate_edges_released, propagate_nodes, sparse

DEVICE = "cuda"
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta"),
]

RELATIVE = {torch.float64: 1e-10, torch.float32: 1e-5, torch.bfloat16: 2e-2}
WIDTHS = (1, 3, 7, 32, 33, 64, 300)
WIDTHS_AND_HEADS = [(width, heads) for width in WIDTHS for heads in sorted({1, 2, width}) if width % heads == 0] + [
    (120, 5)
]
NUM_NODES = 90


@pytest.fixture(autouse=True)
def _poison() -> Iterator[None]:
    with poisoned_memory():
        yield


@cache
def make_ends(loops: bool, in_order: bool) -> Tensor:
    """Parallel edges, two hubs that are cut (1,100 and 520 edges), five isolated nodes; shuffled, or sorted by ends."""
    generator = torch.Generator().manual_seed(int(loops))
    ends = torch.randint(NUM_NODES - 5, (2, 2000), generator=generator)
    ends[0, :1100], ends[1, 1100:1620] = 0, 1
    plain = ends[0] != ends[1]
    ends = ends[:, torch.where(plain, True, torch.tensor(loops))]
    if not in_order:
        return ends
    ends = ends.sort(dim=0).values
    return ends[:, torch.argsort(ends[0] * NUM_NODES + ends[1], stable=True)]


def numbers(*shape: int, dtype: torch.dtype, seed: int) -> Tensor:
    """The same numbers in every precision, as far as it has them; on the CPU."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


def value_and_gradients(function: Callable[..., Tensor], *inputs: Tensor) -> list[Tensor]:
    """What a function gives, and the gradients of its inputs for a gradient that its shape decides; on the CPU."""
    leaves = [tensor.detach().requires_grad_() for tensor in inputs]
    out = function(*leaves)
    grad = numbers(*out.shape, dtype=torch.float32, seed=7).bfloat16().to(out.device, out.dtype)
    return [tensor.cpu() for tensor in (out.detach(), *torch.autograd.grad(out, leaves, grad))]


def assert_near(found: Tensor, expected: Tensor, relative: float) -> None:
    scale = float(expected.abs().max()) if expected.numel() else 0.0
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=relative * (scale or 1.0))


def check(function: Callable[..., Tensor], incidence: Incidence, *inputs: Tensor) -> None:
    """The device against float64 on the CPU, values and gradients, and the same to the bit when done again."""
    dtype = inputs[0].dtype
    expected = value_and_gradients(partial(function, incidence=incidence), *(tensor.double() for tensor in inputs))
    runs = []
    for _ in range(2):
        there = Incidence(incidence.ends.to(DEVICE), incidence.num_nodes)
        runs.append(value_and_gradients(partial(function, incidence=there), *(tensor.to(DEVICE) for tensor in inputs)))
    for first, again, wanted in zip(*runs, expected, strict=True):
        assert first.dtype == dtype
        assert_near(first, wanted, RELATIVE[dtype])
        assert first.equal(again)


def weight_shape(count: int, heads: int) -> tuple[int, ...]:
    return (count,) if heads == 1 else (count, heads)


@pytest.mark.parametrize("dtype", RELATIVE, ids=str)
@pytest.mark.parametrize(("width", "heads"), WIDTHS_AND_HEADS)
@pytest.mark.parametrize("self_weight", ["incident", "one"])
@pytest.mark.parametrize("side", ["nodes", "edges"])
def test_both_sides_are_those_of_float64(
    side: str, self_weight: str, width: int, heads: int, dtype: torch.dtype
) -> None:
    propagate = propagate_nodes if side == "nodes" else propagate_edges
    for loops, in_order in ((False, False), (False, True), (True, False), (True, True)):
        incidence = Incidence(make_ends(loops, in_order), NUM_NODES)
        counts = (NUM_NODES, incidence.num_edges)
        num_rows, num_weights = counts if side == "nodes" else reversed(counts)
        rows = numbers(num_rows, width, dtype=dtype, seed=1)
        weight = numbers(*weight_shape(num_weights, heads), dtype=dtype, seed=2)
        check(partial(propagate, self_weight=self_weight), incidence, rows, weight)


@pytest.mark.parametrize("normalization", ["symmetric", "row"])
@pytest.mark.parametrize("self_weight", ["incident", "one", 0.0, 2.5])
@pytest.mark.parametrize("heads", [1, 2])
def test_every_setting_in_float32(heads: int, self_weight: str | float, normalization: str) -> None:
    settings = {"self_weight": self_weight, "normalization": normalization}
    for loops in (False, True):
        incidence = Incidence(make_ends(loops, False), NUM_NODES)
        nodes = numbers(NUM_NODES, 32, dtype=torch.float32, seed=1)
        edges = numbers(incidence.num_edges, 32, dtype=torch.float32, seed=2)
        node_weight = numbers(NUM_NODES, heads, dtype=torch.float32, seed=3)
        edge_weight = numbers(incidence.num_edges, heads, dtype=torch.float32, seed=4)
        check(partial(propagate_nodes, **settings), incidence, nodes, edge_weight)
        check(partial(propagate_edges, **settings), incidence, edges, node_weight)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(("width", "heads"), [(1, 1), (33, 1), (64, 2), (7, 7)])
def test_the_released_rule_is_that_of_float64(width: int, heads: int, dtype: torch.dtype) -> None:
    for loops in (False, True):
        incidence = Incidence(make_ends(loops, False), NUM_NODES)
        edges = numbers(incidence.num_edges, width, dtype=dtype, seed=1)
        weight = numbers(*weight_shape(NUM_NODES, heads), dtype=dtype, seed=2)
        check(propagate_edges_released, incidence, edges, weight)


@pytest.mark.parametrize("dtype", RELATIVE, ids=str)
@pytest.mark.parametrize("width", WIDTHS)
def test_gather_and_scatter_are_those_of_float64(width: int, dtype: torch.dtype) -> None:
    for loops, in_order in ((False, False), (False, True), (True, False), (True, True)):
        incidence = Incidence(make_ends(loops, in_order), NUM_NODES)
        nodes = numbers(NUM_NODES, width, dtype=dtype, seed=1)
        edges = numbers(incidence.num_edges, width, dtype=dtype, seed=2)
        check(lambda x, incidence: incidence.gather(x), incidence, nodes)
        check(lambda z, incidence: incidence.scatter(z), incidence, edges)


@pytest.mark.parametrize("dtype", RELATIVE, ids=str)
def test_sparse_features_are_those_of_float64(dtype: torch.dtype) -> None:
    dense = numbers(1300, 40, dtype=dtype, seed=1)
    dense[dense.abs() < 0.5] = 0
    dense[:, 3] = 1  # a long column
    matrix = numbers(40, 33, dtype=dtype, seed=2)
    expected = value_and_gradients(lambda W: dense.double() @ W, matrix.double())
    there = dense.to_sparse_csr().to(DEVICE)
    found = value_and_gradients(lambda W: sparse.matmul(there, W), matrix.to(DEVICE))
    again = value_and_gradients(lambda W: sparse.matmul(there, W), matrix.to(DEVICE))
    for mine, same, theirs in zip(found, again, expected, strict=True):
        assert_near(mine, theirs, RELATIVE[dtype])
        assert mine.equal(same)


@pytest.mark.parametrize("self_weight", ["incident", "one"])
@pytest.mark.parametrize("ends", [[[], []], [[0], [0]], [[0], [2]]], ids=["no edge", "a loop", "an edge"])
def test_the_smallest_graphs(ends: list[list[int]], self_weight: str) -> None:
    for num_nodes in (3, 1) if not ends[0] else (3,):
        incidence = Incidence(torch.tensor(ends, dtype=torch.int64), num_nodes)
        nodes = numbers(num_nodes, 4, dtype=torch.float32, seed=1)
        edges = numbers(incidence.num_edges, 4, dtype=torch.float32, seed=2)
        node_weight = numbers(num_nodes, 2, dtype=torch.float32, seed=3)
        edge_weight = numbers(incidence.num_edges, 2, dtype=torch.float32, seed=4)
        check(partial(propagate_nodes, self_weight=self_weight), incidence, nodes, edge_weight)
        check(partial(propagate_edges, self_weight=self_weight), incidence, edges, node_weight)


def test_rows_that_are_not_contiguous_and_gradients_that_are_expanded() -> None:
    incidence = Incidence(make_ends(False, False), NUM_NODES)
    there = incidence.to(DEVICE)
    weight = numbers(incidence.num_edges, dtype=torch.float64, seed=2)
    nodes = numbers(8, NUM_NODES, dtype=torch.float64, seed=1).t()
    node_weight = numbers(2 * NUM_NODES, dtype=torch.float64, seed=3)[::2]
    edges = numbers(8, incidence.num_edges, dtype=torch.float64, seed=4).t()
    for propagate, rows, gates in ((propagate_nodes, nodes, weight), (propagate_edges, edges, node_weight)):
        results = []
        for where in (incidence, there):
            leaves = [tensor.to(where.ends.device).requires_grad_() for tensor in (rows, gates)]
            out = propagate(*leaves, where)
            results.append([out.detach().cpu(), *(grad.cpu() for grad in torch.autograd.grad(out.sum(), leaves))])
        for mine, theirs in zip(*results, strict=True):
            assert_near(theirs, mine, 1e-10)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("self_weight", ["incident", "one"])
def test_a_star_of_a_hundred_thousand_leaves(self_weight: str, dtype: torch.dtype) -> None:
    count = 100_000
    ends = torch.stack([torch.zeros(count, dtype=torch.int64), torch.arange(1, count + 1)])
    star = Incidence(ends, count + 1)
    nodes, weight = numbers(count + 1, 4, dtype=dtype, seed=1), numbers(count, dtype=dtype, seed=2)
    edges, gates = numbers(count, 4, dtype=dtype, seed=3), numbers(count + 1, dtype=dtype, seed=4)
    check(partial(propagate_nodes, self_weight=self_weight), star, nodes, weight)
    check(partial(propagate_edges, self_weight=self_weight), star, edges, gates)
