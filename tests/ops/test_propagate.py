"""The two propagations against the printed rules, and the laws that they obey."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import (
    LAWS,
    NORMALIZATIONS,
    SELF_WEIGHTS,
    Changed,
    Sample,
    assert_near,
    check_by_textbook,
    fill,
    graphs,
    random_sample,
    simple_graphs,
    value_and_gradients,
)
from torch import Tensor

from censnet.ops import Incidence, propagate_edges, propagate_nodes, textbook
from censnet.ops.propagate import BLOCK

EVERY_SETTING = [(self_weight, way) for self_weight in SELF_WEIGHTS for way in NORMALIZATIONS]


def both_sides(sample: Sample) -> list[tuple[Callable[..., Tensor], Callable[..., Tensor], Tensor, Tensor]]:
    """For nodes and for edges: the propagation, the textbook's operator, what is propagated, the gates."""
    return [
        (propagate_nodes, textbook.node_operator, sample.nodes, sample.edge_weight),
        (propagate_edges, textbook.edge_operator, sample.edges, sample.node_weight),
    ]


# -- by hand ----------------------------------------------------------------------------------------------------------


def test_path_of_three_nodes_by_hand() -> None:
    path = Incidence(torch.tensor([[0, 1], [1, 2]]), num_nodes=3)  # D_v = 2, 3, 2
    out = propagate_nodes(torch.tensor([[1.0], [2.0], [3.0]]), torch.ones(2), path)
    expected = torch.tensor([[1 / 2 + 2 / 6**0.5], [4 / 6**0.5 + 4 / 3], [3 / 2 + 2 / 6**0.5]])
    torch.testing.assert_close(out, expected)


def test_edges_of_a_path_by_hand() -> None:
    path = Incidence(torch.tensor([[0, 1], [1, 2]]), num_nodes=3)  # D_e = 2, 2
    out = propagate_edges(torch.tensor([[1.0], [10.0]]), torch.tensor([1.0, 2.0, 4.0]), path)
    torch.testing.assert_close(out, torch.tensor([[(3 + 20) / 2], [(2 + 60) / 2]]))


def test_parallel_edges_by_hand() -> None:
    pair = Incidence(torch.tensor([[0, 1], [1, 0]]), num_nodes=2)  # D_v = 2, 2; D_e = 2, 2
    out = propagate_nodes(torch.tensor([[1.0], [10.0]]), torch.tensor([3.0, 5.0]), pair)
    torch.testing.assert_close(out, torch.tensor([[44.0], [44.0]]))
    out = propagate_edges(torch.tensor([[1.0], [10.0]]), torch.tensor([3.0, 5.0]), pair)
    torch.testing.assert_close(out, torch.tensor([[44.0], [44.0]]))
    out = propagate_edges(torch.tensor([[1.0], [10.0]]), torch.tensor([3.0, 5.0]), pair, "one", "row")
    torch.testing.assert_close(out, torch.tensor([[(1 + 80) / 2], [(8 + 10) / 2]]))


def test_a_loop_by_hand() -> None:
    looped = Incidence(torch.tensor([[0, 0], [0, 1]]), num_nodes=2)  # D_v = 2, 2; D_e = 2, 2
    out = propagate_nodes(torch.tensor([[1.0], [10.0]]), torch.tensor([3.0, 5.0]), looped)
    torch.testing.assert_close(out, torch.tensor([[(8 + 50) / 2], [(5 + 50) / 2]]))
    out = propagate_edges(torch.tensor([[1.0], [10.0]]), torch.tensor([3.0, 5.0]), looped)
    torch.testing.assert_close(out, torch.tensor([[(3 + 30) / 2], [(3 + 80) / 2]]))


def test_each_head_weighs_its_own_share_of_the_channels() -> None:
    path = Incidence(torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
    nodes, weight = torch.arange(12.0).reshape(3, 4), torch.tensor([[1.0, -2.0], [0.5, 3.0]])
    out = propagate_nodes(nodes, weight, path, "one")
    torch.testing.assert_close(out[:, :2], propagate_nodes(nodes[:, :2], weight[:, 0], path, "one"))
    torch.testing.assert_close(out[:, 2:], propagate_nodes(nodes[:, 2:], weight[:, 1], path, "one"))


# -- against the textbook ---------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("self_weight", "normalization"), EVERY_SETTING)
@given(sample=graphs())
@settings(max_examples=40)
def test_the_fast_path_is_the_printed_rule(self_weight: str | float, normalization: str, sample: Sample) -> None:
    check_against_textbook(sample, self_weight, normalization, torch.float64)


def check_against_textbook(sample: Sample, self_weight: str | float, normalization: str, dtype: torch.dtype) -> None:
    sample = sample.to(dtype)
    for propagate, operator, rows, weight in both_sides(sample):
        fast = partial(propagate, self_weight=self_weight, normalization=normalization)
        check_by_textbook(fast, operator, rows, weight, sample, self_weight, normalization)


@pytest.mark.slow
def test_three_hundred_random_multigraphs_agree_in_both_precisions() -> None:
    for seed in range(300):
        sample = random_sample(seed)
        for dtype in (torch.float64, torch.float32):
            check_against_textbook(sample, *EVERY_SETTING[seed % len(EVERY_SETTING)], dtype)


@pytest.mark.slow
@pytest.mark.parametrize("heads", [None, 2])
@pytest.mark.parametrize(("self_weight", "normalization"), EVERY_SETTING)
def test_hubs_agree_with_the_textbook(self_weight: str | float, normalization: str, heads: int | None) -> None:
    generator = torch.Generator().manual_seed(0)
    ends = torch.randint(40, (2, 800), generator=generator)
    ends[0, :520], ends[1, 280:] = 0, 1
    ends = ends[:, torch.randperm(800, generator=generator)]
    sample = fill(Incidence(ends, 40), 4, heads, seed=1)
    assert sample.incidence.csr.edge.chunks is not None
    assert sample.incidence.csr.edge.chunks.long.tolist() == [0, 1]
    check_against_textbook(sample, self_weight, normalization, torch.float64)


@pytest.mark.slow
@pytest.mark.parametrize(("self_weight", "normalization"), EVERY_SETTING)
def test_gradients_pass_gradcheck(self_weight: str | float, normalization: str) -> None:
    ends = torch.tensor([[0, 1, 2, 1, 3, 3, 3], [1, 2, 0, 0, 3, 0, 3]])
    for heads in (None, 2, 4):
        sample = fill(Incidence(ends, 5), 4, heads, seed=2)
        for propagate, _, rows, weight in both_sides(sample):
            fast = partial(propagate, incidence=sample.incidence, self_weight=self_weight, normalization=normalization)
            assert torch.autograd.gradcheck(fast, (rows.requires_grad_(), weight.requires_grad_()))


@pytest.mark.parametrize("self_weight", SELF_WEIGHTS)
def test_one_gradient_alone_is_the_same(self_weight: str | float) -> None:
    sample = random_sample(5)
    for propagate, _, rows, weight in both_sides(sample):
        fast = partial(propagate, incidence=sample.incidence, self_weight=self_weight)
        _, grad_rows, grad_weight = value_and_gradients(fast, rows, weight)
        (_, rows_alone), (_, weight_alone) = (
            value_and_gradients(lambda x, fast=fast, weight=weight: fast(x, weight), rows),
            value_and_gradients(partial(fast, rows), weight),
        )
        assert rows_alone.equal(grad_rows)
        assert weight_alone.equal(grad_weight)


@pytest.mark.parametrize("self_weight", SELF_WEIGHTS)
@pytest.mark.parametrize("heads", [None, 2, 4])
def test_bfloat16_is_close(heads: int | None, self_weight: str | float) -> None:
    for seed in range(5):
        ends = torch.randint(30, (2, 80), generator=torch.Generator().manual_seed(seed))
        sample = fill(Incidence(ends, 30), 4, heads, seed)
        check_low_precision(sample, self_weight, torch.bfloat16, 2e-2)


def test_rows_that_are_not_contiguous_and_gradients_that_are_expanded() -> None:
    sample = random_sample(3)
    for propagate, _, rows, weight in both_sides(sample):
        expected = propagate(rows, weight, sample.incidence)
        assert propagate(rows.t().contiguous().t(), weight, sample.incidence).equal(expected)
        x = rows.clone().requires_grad_()
        (summed,) = torch.autograd.grad(propagate(x, weight, sample.incidence).sum(), x)
        (ones,) = torch.autograd.grad(propagate(x, weight, sample.incidence), x, torch.ones_like(x))
        assert summed.equal(ones)


# -- laws -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@given(sample=graphs(), setting=st.sampled_from(EVERY_SETTING))
def test_laws(law: Callable[[Sample], Changed], sample: Sample, setting: tuple[str | float, str]) -> None:
    changed = law(sample)
    before, after = sample, changed.sample
    nodes = propagate_nodes(after.nodes, after.edge_weight, after.incidence, *setting)
    assert_near(
        nodes[changed.nodes], propagate_nodes(before.nodes, before.edge_weight, before.incidence, *setting), 1e-12
    )
    edges = propagate_edges(after.edges, after.node_weight, after.incidence, *setting)
    assert_near(
        edges[changed.edges], propagate_edges(before.edges, before.node_weight, before.incidence, *setting), 1e-12
    )


@given(sample=simple_graphs())
def test_unit_weights_and_one_for_itself_make_a_gcn(sample: Sample) -> None:
    from torch_geometric.nn import GCNConv

    incidence, width = sample.incidence, sample.nodes.shape[1]
    gcn = GCNConv(width, width, bias=False).double()
    with torch.no_grad():
        gcn.lin.weight.copy_(torch.eye(width))
    both_ways = torch.cat([incidence.ends, incidence.ends.flip(0)], dim=1)
    unit = torch.ones(incidence.num_edges, dtype=torch.float64)
    found = propagate_nodes(sample.nodes, unit, incidence, self_weight="one")
    assert_near(found, gcn(sample.nodes, both_ways).detach(), 1e-10)


@pytest.mark.slow
@given(sample=graphs())
def test_rows_of_unit_weights_sum_to_one(sample: Sample) -> None:
    incidence = sample.incidence
    simple = incidence.multiplicity.numel() == 0 or int(incidence.multiplicity.max()) == 1
    ones, unit = torch.ones_like(sample.nodes), torch.ones(incidence.num_edges, dtype=torch.float64)
    if simple:
        torch.testing.assert_close(propagate_nodes(ones, unit, incidence, "one", "row"), ones)


def test_self_weight_one_is_the_number_one() -> None:
    sample = random_sample(8)
    for propagate, _, rows, weight in both_sides(sample):
        one = propagate(rows, weight, sample.incidence, "one")
        assert propagate(rows, weight, sample.incidence, 1.0).equal(one)
        assert propagate(rows, weight, sample.incidence, 1).equal(one)


@pytest.mark.parametrize(("heads", "self_weight"), [(None, "incident"), (2, "one")])
def test_repeated_calls_and_thread_counts_agree_to_the_bit(heads: int | None, self_weight: str) -> None:
    generator = torch.Generator().manual_seed(0)
    ends = torch.randint(3000, (2, 20_000), generator=generator)
    ends[0, :4000] = 7  # a hub
    sample = fill(Incidence(ends, 3000), 8, heads, seed=0).to(torch.float32)
    threads, results = torch.get_num_threads(), []
    try:
        for count in (1, 2, 2):
            torch.set_num_threads(count)
            fresh = Incidence(ends, 3000)
            results.append([])
            for propagate, _, rows, weight in both_sides(sample):
                results[-1] += value_and_gradients(
                    partial(propagate, incidence=fresh, self_weight=self_weight), rows, weight
                )
    finally:
        torch.set_num_threads(threads)
    for first, *others in zip(*results, strict=True):
        assert all(first.equal(other) for other in others)


# -- edges of the world -----------------------------------------------------------------------------------------------


def test_a_star_of_100_000_leaves_ends_and_is_right() -> None:
    count = 100_000
    star = Incidence(torch.stack([torch.zeros(count, dtype=torch.int64), torch.arange(1, count + 1)]), count + 1)
    sample = fill(star, 2, None, seed=0)
    x, w, z, u = sample.nodes, sample.edge_weight.unsqueeze(1), sample.edges, sample.node_weight.unsqueeze(1)
    centre, leaf = (count + 1) ** -0.5, 2**-0.5
    on_edge = w * (centre * x[:1] + leaf * x[1:])
    nodes = torch.cat([centre * on_edge.sum(0, keepdim=True), leaf * on_edge])
    edges = (u[0] * z.sum(0) + u[1:] * z) / count
    assert_near(propagate_nodes(x, sample.edge_weight, star), nodes, 1e-10)
    assert_near(propagate_edges(z, sample.node_weight, star), edges, 1e-10)

    check_low_precision(sample, "incident", torch.float32, 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("leaves", "dtype", "relative"), [(100_000, torch.float32, 1e-5), (1000, torch.bfloat16, 2e-2)]
)
@pytest.mark.parametrize("self_weight", SELF_WEIGHTS)
def test_the_gradients_at_a_hub_are_not_lost_to_rounding(
    self_weight: str | float, leaves: int, dtype: torch.dtype, relative: float
) -> None:
    star = Incidence(torch.stack([torch.zeros(leaves, dtype=torch.int64), torch.arange(1, leaves + 1)]), leaves + 1)
    check_low_precision(fill(star, 2, None, seed=0), self_weight, dtype, relative)


def check_low_precision(sample: Sample, self_weight: str | float, dtype: torch.dtype, relative: float) -> None:
    """Values and gradients against the same in float64, of numbers that both precisions have."""
    for propagate, _, rows, weight in both_sides(sample.to(dtype)):
        fast = partial(propagate, incidence=sample.incidence, self_weight=self_weight)
        expected = value_and_gradients(fast, rows.double(), weight.double())
        for mine, theirs in zip(value_and_gradients(fast, rows, weight), expected, strict=True):
            assert mine.dtype == dtype
            assert_near(mine, theirs, relative)


@pytest.mark.parametrize("heads", [1, 2])
def test_more_edges_than_a_block_have_the_gradient_of_plain_tensors(heads: int) -> None:
    generator = torch.Generator().manual_seed(0)
    num_edges = 2 * BLOCK + 5
    ends = torch.randint(2000, (2, num_edges), generator=generator)
    sample = fill(Incidence(ends, 2000), 2, heads, seed=0)
    scale = sample.incidence.node_degree.double().rsqrt().unsqueeze(1)
    other = (ends[0] != ends[1]).double().unsqueeze(1)

    def plain(nodes: Tensor, weight: Tensor) -> Tensor:
        x = scale * nodes
        z = weight.repeat_interleave(2 // heads, dim=1) * (x[ends[0]] + other * x[ends[1]])
        return scale * torch.zeros_like(x).index_add(0, ends[0], z).index_add(0, ends[1], other * z)

    found = value_and_gradients(partial(propagate_nodes, incidence=sample.incidence), sample.nodes, sample.edge_weight)
    expected = value_and_gradients(plain, sample.nodes, sample.edge_weight)
    for mine, theirs in zip(found, expected, strict=True):
        assert_near(mine, theirs, 1e-10)


@pytest.mark.parametrize(("self_weight", "normalization"), EVERY_SETTING)
def test_without_edges_a_node_has_itself_alone(self_weight: str | float, normalization: str) -> None:
    own = {"incident": 0.0, "one": 1.0}.get(self_weight, self_weight)
    for num_nodes in (1, 3):
        for heads in (None, 2):
            sample = fill(Incidence(torch.empty(2, 0, dtype=torch.int64), num_nodes), 4, heads, seed=0)
            for propagate, _, rows, weight in both_sides(sample):
                fast = partial(
                    propagate, incidence=sample.incidence, self_weight=self_weight, normalization=normalization
                )
                out, grad_rows, grad_weight = value_and_gradients(fast, rows, weight)
                torch.testing.assert_close(out, own * rows)
                assert grad_rows.shape == rows.shape
                assert grad_weight.equal(torch.zeros_like(weight))


def test_rows_without_channels_stay_without() -> None:
    path = Incidence(torch.tensor([[0, 1], [1, 2]]), 3)
    for self_weight in SELF_WEIGHTS:
        assert propagate_nodes(torch.ones(3, 0), torch.ones(2), path, self_weight).shape == (3, 0)
        assert propagate_edges(torch.ones(2, 0), torch.ones(3), path, self_weight).shape == (2, 0)


@pytest.mark.parametrize(("self_weight", "normalization"), EVERY_SETTING)
def test_what_a_compiler_sees_is_the_same(
    monkeypatch: pytest.MonkeyPatch, self_weight: str | float, normalization: str
) -> None:
    for seed in range(10):
        sample = random_sample(seed)
        for propagate, _, rows, weight in both_sides(sample):
            fast = partial(propagate, incidence=sample.incidence, self_weight=self_weight, normalization=normalization)
            expected = value_and_gradients(fast, rows, weight)
            with monkeypatch.context() as patch:
                patch.setattr(torch.compiler, "is_compiling", lambda: True)
                found = value_and_gradients(fast, rows, weight)
            for mine, theirs in zip(found, expected, strict=True):
                assert_near(mine, theirs, 1e-10)


def test_autocast_brings_the_weight_to_the_rows() -> None:
    path = Incidence(torch.tensor([[0, 1], [1, 2]]), 3)
    weight = torch.ones(2, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert propagate_nodes(torch.ones(3, 2), weight.bfloat16(), path).dtype == torch.float32
        out = propagate_nodes(torch.ones(3, 2) @ torch.eye(2), weight, path)
    assert out.dtype == torch.bfloat16
    (grad,) = torch.autograd.grad(out.sum(), weight)
    assert grad.dtype == torch.float32


def test_tensors_cached_in_inference_mode_serve_training() -> None:
    sample = random_sample(3)
    for propagate, _, rows, weight in both_sides(sample):
        expected = value_and_gradients(partial(propagate, incidence=sample.incidence, self_weight="one"), rows, weight)
        fresh = Incidence(sample.incidence.ends, sample.incidence.num_nodes)
        with torch.inference_mode():
            propagate(rows, weight, fresh, "one")
        found = value_and_gradients(partial(propagate, incidence=fresh, self_weight="one"), rows, weight)
        assert all(mine.equal(theirs) for mine, theirs in zip(found, expected, strict=True))


# -- the door ---------------------------------------------------------------------------------------------------------

TWO, THREE = torch.ones(2, 4), torch.ones(3, 4)


@pytest.mark.parametrize(
    ("nodes", "weight", "message"),
    [
        (TWO, torch.ones(2), r"^nodes has shape \(2, 4\), expected \(3, \*\): \(N, d\)$"),
        (torch.ones(3), torch.ones(2), r"^nodes has shape \(3,\), expected \(3, \*\): \(N, d\)$"),
        (THREE, torch.ones(3), r"^edge_weight has shape \(3,\), expected \(2,\): \(E,\) or \(E, heads\)$"),
        (THREE, torch.ones(3, 2), r"^edge_weight has shape \(3, 2\), expected \(2, \*\): \(E,\) or \(E, heads\)$"),
        (THREE, torch.ones(()), r"^edge_weight has shape \(\), expected \(2, \*\)"),
        (
            THREE,
            torch.ones(2, 3),
            r"^edge_weight has 3 heads and nodes 4 channels, expected heads that divide the channels: each head weighs",
        ),
        (THREE, torch.ones(2, 0), r"^edge_weight has 0 heads and nodes 4 channels"),
        (THREE.long(), torch.ones(2), r"^nodes has dtype torch.int64, expected a floating-point one: call nodes.float"),
        (
            THREE.double(),
            torch.ones(2),
            r"^edge_weight has dtype torch.float32, expected torch.float64 as nodes: convert one with .to\(dtype\)$",
        ),
        (
            THREE,
            torch.ones(2, device="meta"),
            r"^edge_weight is on meta, expected cpu as nodes: move one with .to\(device\)$",
        ),
        (THREE.to("meta"), torch.ones(2), r"^edge_weight is on cpu, expected meta as nodes: move one with"),
        (
            THREE.to("meta"),
            torch.ones(2, device="meta"),
            r"^incidence is on cpu, expected meta as nodes: move one with .to\(device\)$",
        ),
    ],
)
def test_wrong_arguments_of_propagate_nodes_are_named(nodes: Tensor, weight: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        propagate_nodes(nodes, weight, Incidence(torch.tensor([[0, 1], [1, 2]]), 3))


@pytest.mark.parametrize(
    ("edges", "weight", "message"),
    [
        (THREE, torch.ones(3), r"^edges has shape \(3, 4\), expected \(2, \*\): \(E, d\)$"),
        (TWO, torch.ones(2), r"^node_weight has shape \(2,\), expected \(3,\): \(N,\) or \(N, heads\)$"),
        (TWO, torch.ones(2, 2), r"^node_weight has shape \(2, 2\), expected \(3, \*\): \(N,\) or \(N, heads\)$"),
        (TWO, torch.ones(3, 8), r"^node_weight has 8 heads and edges 4 channels, expected heads that divide"),
        (
            TWO.int(),
            torch.ones(3),
            r"^edges has dtype torch.int32, expected a floating-point one: call edges.float\(\)$",
        ),
        (TWO, torch.ones(3).bfloat16(), r"^node_weight has dtype torch.bfloat16, expected torch.float32 as edges"),
        (TWO, torch.ones(3, device="meta"), r"^node_weight is on meta, expected cpu as edges"),
    ],
)
def test_wrong_arguments_of_propagate_edges_are_named(edges: Tensor, weight: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        propagate_edges(edges, weight, Incidence(torch.tensor([[0, 1], [1, 2]]), 3))


@pytest.mark.parametrize(("propagate", "rows", "weight"), [(propagate_nodes, THREE, 2), (propagate_edges, TWO, 3)])
def test_unknown_settings_are_named(propagate: Callable[..., Tensor], rows: Tensor, weight: int) -> None:
    path, ones = Incidence(torch.tensor([[0, 1], [1, 2]]), 3), torch.ones(weight)
    with pytest.raises(ValueError, match=r"^normalization is 'column', expected one of 'symmetric', 'row'$"):
        propagate(rows, ones, path, normalization="column")
    with pytest.raises(ValueError, match=r"^self_weight is 'two', expected 'incident', 'one' or a number$"):
        propagate(rows, ones, path, self_weight="two")
    with pytest.raises(ValueError, match=r"^self_weight is None, expected 'incident', 'one' or a number$"):
        propagate(rows, ones, path, self_weight=None)
