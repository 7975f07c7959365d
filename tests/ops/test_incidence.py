"""T without T: gather and scatter, the sorted order, and the degrees of multigraphs with loops."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import Sample, assert_near, graphs, incidences, value_and_gradients
from torch import Tensor

from censnet.ops import textbook
from censnet.ops.incidence import Incidence
from censnet.ops.segments import LONGEST, Segments


class ByHand(NamedTuple):
    """A small graph, its incidence matrix and its degrees."""

    ends: list[list[int]]
    matrix: list[list[int]]
    node_degree: list[int]
    edge_degree: list[int]
    multiplicity: list[int]
    edge_count: list[int]


BY_HAND = {
    "path": ByHand([[0, 1], [1, 2]], [[1, 0], [1, 1], [0, 1]], [2, 3, 2], [2, 2], [1, 1], [1, 2, 1]),
    "triangle": ByHand(
        [[0, 1, 2], [1, 2, 0]], [[1, 0, 1], [1, 1, 0], [0, 1, 1]], [3, 3, 3], [3, 3, 3], [1, 1, 1], [2, 2, 2]
    ),
    "star": ByHand(
        [[0, 0, 3], [1, 2, 0]],
        [[1, 1, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1]],
        [4, 2, 2, 2],
        [3, 3, 3],
        [1, 1, 1],
        [3, 1, 1, 1],
    ),
    "two parallel edges and one more": ByHand(
        [[0, 1, 1], [1, 0, 2]], [[1, 1, 0], [1, 1, 1], [0, 0, 1]], [2, 3, 2], [3, 3, 3], [2, 2, 1], [2, 3, 1]
    ),
    "a loop, an edge, an isolated node": ByHand(
        [[0, 0], [0, 1]], [[1, 1], [0, 1], [0, 0]], [2, 2, 1], [2, 2], [1, 1], [2, 1, 0]
    ),
    "two loops at one node": ByHand([[1, 1], [1, 1]], [[0, 0], [1, 1]], [1, 1], [2, 2], [2, 2], [0, 2]),
}


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def bag(segments: Segments, values: Tensor, row: int) -> list[int]:
    """The values at the entries of one bag, its further pieces included."""
    found = values[segments.offset[row] : segments.offset[row + 1]].tolist()
    if segments.chunks is not None:
        for number in (segments.chunks.segment == row).nonzero().squeeze(1).tolist():
            found += values[
                segments.offset[segments.num_rows + number] : segments.offset[segments.num_rows + number + 1]
            ].tolist()
    return found


@pytest.fixture(params=BY_HAND)
def case(request: pytest.FixtureRequest) -> ByHand:
    return BY_HAND[request.param]


@pytest.fixture
def incidence(case: ByHand) -> Incidence:
    return Incidence(torch.tensor(case.ends), num_nodes=len(case.matrix))


@pytest.mark.parametrize("name", ["node_degree", "edge_degree", "multiplicity", "edge_count"])
def test_degrees_by_hand(name: str, case: ByHand, incidence: Incidence) -> None:
    assert getattr(incidence, name).tolist() == getattr(case, name)


def test_gather_and_scatter_by_hand(case: ByHand, incidence: Incidence) -> None:
    T = torch.tensor(case.matrix, dtype=torch.float64)
    torch.testing.assert_close(textbook.incidence_matrix(incidence.ends, incidence.num_nodes), T)
    torch.testing.assert_close(incidence.gather(torch.eye(len(T), dtype=torch.float64)), T.t())
    torch.testing.assert_close(incidence.scatter(torch.eye(T.shape[1], dtype=torch.float64)), T)


@given(sample=graphs())
def test_gather_and_scatter_are_products_with_the_textbook_matrix(sample: Sample) -> None:
    for function, operator, rows in (
        (sample.incidence.gather, sample.T.t(), sample.nodes),
        (sample.incidence.scatter, sample.T, sample.edges),
    ):
        expected = value_and_gradients(lambda x, A=operator: A @ x, rows)
        for found, wanted in zip(value_and_gradients(function, rows), expected, strict=True):
            assert_near(found, wanted, 1e-12)


@given(sample=graphs())
def test_degrees_are_the_row_sums_of_the_textbook(sample: Sample) -> None:
    T, incidence = sample.T, sample.incidence
    assert incidence.node_degree.tolist() == (1 + textbook.node_adjacency(T).sum(1)).tolist()
    assert incidence.edge_degree.tolist() == (1 + textbook.edge_adjacency(T).sum(1)).tolist()
    assert incidence.edge_count.tolist() == T.sum(1).tolist()
    same = (T.t().unsqueeze(1) == T.t().unsqueeze(0)).all(2)
    assert incidence.multiplicity.tolist() == same.sum(1).tolist()


# -- the sorted order -------------------------------------------------------------------------------------------------


@given(incidence=incidences())
def test_the_csr_entries_are_the_rows_of_the_matrix(incidence: Incidence) -> None:
    check_slots(incidence)


def check_slots(incidence: Incidence) -> None:
    T = textbook.incidence_matrix(incidence.ends, incidence.num_nodes)
    csr = incidence.csr
    mask = torch.ones_like(csr.edge.index).bool() if incidence.csr_mask is None else incidence.csr_mask
    assert len(csr.edge.index) == len(csr.other.index) == 2 * incidence.num_edges
    for node in range(incidence.num_nodes):
        edges, others = bag(csr.edge, csr.edge.index, node), bag(csr.other, csr.other.index, node)
        once = [edge for edge, kept in zip(edges, bag(csr.edge, mask, node), strict=True) if kept]
        assert sorted(once) == T[node].nonzero().squeeze(1).tolist()
        for edge, other in zip(edges, others, strict=True):
            assert sorted((node, other)) == sorted(incidence.ends[:, edge].tolist())


@given(incidence=incidences())
def test_pairs_are_the_columns_of_the_matrix(incidence: Incidence) -> None:
    pairs = incidence.pairs.index.view(-1, 2)
    assert pairs.t().equal(incidence.ends.to(pairs.dtype))
    loops = (incidence.ends[0] == incidence.ends[1]).tolist()
    if incidence.pair_mask is None:
        assert not any(loops)
    else:
        assert incidence.pair_mask.view(-1, 2).tolist() == [[True, not loop] for loop in loops]


def test_loops_are_marked_only_where_there_are_some() -> None:
    plain = Incidence(torch.tensor([[0, 1], [1, 2]]), 3)
    assert (plain.is_loop, plain.pair_mask, plain.csr_mask) == (None, None, None)
    looped = Incidence(torch.tensor([[0, 1], [1, 1]]), 3)
    assert looped.is_loop is not None
    assert looped.is_loop.tolist() == [False, True]


def test_the_order_is_computed_once_and_cached() -> None:
    incidence = Incidence(torch.tensor([[0, 1, 1], [1, 2, 1]]), 3)
    for name in ("csr", "pairs", "sorted_pairs", "node_degree", "edge_degree", "multiplicity", "csr_mask"):
        assert getattr(incidence, name) is getattr(incidence, name)
    made = incidence.cache(("a", 1), lambda: torch.ones(1))
    assert incidence.cache(("a", 1), lambda: torch.zeros(1)) is made
    assert incidence.cache(("a", 2), lambda: torch.zeros(1)) is not made


def test_indices_are_small_integers() -> None:
    incidence = Incidence(torch.tensor([[0, 1], [1, 2]]), 3)
    assert incidence.csr.edge.index.dtype == incidence.csr.other.offset.dtype == torch.int32
    assert incidence.pairs.index.dtype == incidence.pairs.offset.dtype == torch.int32


# -- hubs -------------------------------------------------------------------------------------------------------------


def segment(degree: int, loops: bool) -> Incidence:
    """Two hubs in shuffled order among other edges, with parallel ones; the ends of edges swapped at random."""
    generator = torch.Generator().manual_seed(degree)
    leaves = torch.randint(2, 60, (2 * degree,), generator=generator)
    long = torch.cat([torch.zeros(degree, dtype=torch.int64), torch.ones(degree, dtype=torch.int64)])
    others = torch.randint(2, 60, (2, 40), generator=generator)
    ends = torch.cat([torch.stack([long, leaves]), others[:, others[0] != others[1]]], dim=1)
    if loops:
        ends = torch.cat([ends, torch.tensor([[0, 1, 0, 7], [0, 1, 0, 7]])], dim=1)
    ends = ends[:, torch.randperm(ends.shape[1], generator=generator)]
    swap = torch.rand(ends.shape[1], generator=generator) < 0.5
    return Incidence(torch.where(swap, ends.flip(0), ends), 61)


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("degree", [LONGEST - 2, LONGEST, LONGEST + 1, 2 * LONGEST, 5000])
def test_hubs_are_chunked_and_nothing_changes(degree: int, loops: bool) -> None:
    incidence = segment(degree, loops)
    T = textbook.incidence_matrix(incidence.ends, incidence.num_nodes)
    if degree > LONGEST:
        assert incidence.csr.edge.chunks is not None
        assert incidence.csr.edge.chunks.long.tolist()[:2] == [0, 1]
    for function, operator, rows in (
        (incidence.gather, T.t(), numbers(61, 3)),
        (incidence.scatter, T, numbers(incidence.num_edges, 3, seed=1)),
    ):
        expected = value_and_gradients(lambda x, A=operator: A @ x, rows)
        for found, wanted in zip(value_and_gradients(function, rows), expected, strict=True):
            assert_near(found, wanted, 1e-12)
    assert incidence.edge_count.tolist() == T.sum(1).tolist()


@pytest.mark.parametrize("loops", [False, True])
def test_the_csr_entries_of_hubs_are_the_rows_of_the_matrix(loops: bool) -> None:
    check_slots(segment(2 * LONGEST, loops))


# -- starts and ends --------------------------------------------------------------------------------------------------


@given(sample=graphs())
def test_starts_and_ends_are_products_with_the_textbook_matrices(sample: Sample) -> None:
    incidence = sample.incidence
    S, R = textbook.end_matrices(incidence.ends, incidence.num_nodes)
    for function, operator, rows in (
        (incidence.gather_start, S.t(), sample.nodes),
        (incidence.gather_end, R.t(), sample.nodes),
        (incidence.scatter_start, S, sample.edges),
        (incidence.scatter_end, R, sample.edges),
        (lambda z: torch.cat(incidence.scatter_both(z)), torch.cat([S, R]), sample.edges),
    ):
        expected = value_and_gradients(lambda x, A=operator: A @ x, rows)
        for found, wanted in zip(value_and_gradients(function, rows), expected, strict=True):
            assert_near(found, wanted, 1e-12)
    assert incidence.out_degree.tolist() == S.sum(1).tolist()
    assert incidence.in_degree.tolist() == R.sum(1).tolist()


@given(incidence=incidences())
def test_starts_and_ends_make_the_incidence_matrix(incidence: Incidence) -> None:
    S, R = textbook.end_matrices(incidence.ends, incidence.num_nodes)
    assert (S + R - S * R).equal(textbook.incidence_matrix(incidence.ends, incidence.num_nodes))


@given(sample=graphs())
def test_sums_over_pairs_are_products_with_the_textbook_matrices(sample: Sample) -> None:
    incidence = sample.incidence
    S, R = textbook.end_matrices(incidence.ends, incidence.num_nodes)
    parallel, reciprocal = (S.t() @ S) * (R.t() @ R), (S.t() @ R) * (R.t() @ S)
    for function, operator in ((incidence.sum_parallel, parallel), (incidence.sum_reciprocal, reciprocal)):
        expected = value_and_gradients(lambda x, A=operator: A @ x, sample.edges)
        for found, wanted in zip(value_and_gradients(function, sample.edges), expected, strict=True):
            assert_near(found, wanted, 1e-12)
    assert incidence.parallel_count.tolist() == parallel.sum(1).tolist()
    assert incidence.reciprocal_count.tolist() == reciprocal.sum(1).tolist()
    assert incidence.port.tolist() == parallel.tril(-1).sum(1).tolist()


def test_parallel_and_reciprocal_edges_by_hand() -> None:
    incidence = Incidence(torch.tensor([[0, 1, 0, 2, 2, 0], [1, 0, 1, 2, 2, 2]]), 3)
    edges = torch.tensor([[1.0], [2.0], [4.0], [8.0], [16.0], [32.0]])
    assert incidence.sum_parallel(edges).squeeze(1).tolist() == [5, 2, 5, 24, 24, 32]
    assert incidence.sum_reciprocal(edges).squeeze(1).tolist() == [2, 5, 2, 24, 24, 0]
    assert incidence.parallel_count.tolist() == [2, 1, 2, 2, 2, 1]
    assert incidence.reciprocal_count.tolist() == [1, 2, 1, 2, 2, 0]
    assert incidence.port.tolist() == [0, 0, 1, 0, 1, 0]
    assert (incidence.out_degree.tolist(), incidence.in_degree.tolist()) == ([3, 1, 2], [1, 2, 3])


@given(sample=graphs())
def test_what_a_compiler_sees_of_starts_ends_and_pairs_is_the_same(sample: Sample) -> None:
    names = ("scatter_start", "scatter_end", "sum_parallel", "sum_reciprocal")
    fresh = Incidence(sample.incidence.ends, sample.incidence.num_nodes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.compiler, "is_compiling", lambda: True)
        found = [getattr(fresh, name)(sample.edges) for name in names]
        found += [fresh.gather_start(sample.nodes), fresh.gather_end(sample.nodes), *fresh.scatter_both(sample.edges)]
        counts = fresh.parallel_count, fresh.reciprocal_count
    incidence = sample.incidence
    expected = [getattr(incidence, name)(sample.edges) for name in names]
    expected += [incidence.gather_start(sample.nodes), incidence.gather_end(sample.nodes)]
    expected += incidence.scatter_both(sample.edges)
    for mine, theirs in zip(found, expected, strict=True):
        assert_near(mine, theirs, 1e-12)
    assert all(a.equal(b) for a, b in zip(counts, (incidence.parallel_count, incidence.reciprocal_count), strict=True))


@pytest.mark.parametrize("degree", [LONGEST, LONGEST + 1, 5000])
def test_starts_and_ends_of_hubs(degree: int) -> None:
    incidence = segment(degree, loops=True)
    S, R = textbook.end_matrices(incidence.ends, incidence.num_nodes)
    z, x = numbers(incidence.num_edges, 3), numbers(61, 3)
    for found, expected in (
        (incidence.scatter_start(z), S @ z),
        (incidence.scatter_end(z), R @ z),
        (incidence.gather_start(x), S.t() @ x),
        (incidence.sum_parallel(z), ((S.t() @ S) * (R.t() @ R)) @ z),
    ):
        assert_near(found, expected, 1e-12)


def test_wrong_rows_of_starts_and_ends_are_named() -> None:
    incidence = Incidence(torch.tensor([[0, 1], [1, 2]]), 3)
    for name in ("scatter_start", "scatter_end", "scatter_both", "sum_parallel", "sum_reciprocal"):
        with pytest.raises(ValueError, match=r"^edges has shape \(3, 4\), expected \(2, \*\): \(E, d\)$"):
            getattr(incidence, name)(torch.ones(3, 4))
    for name in ("gather_start", "gather_end"):
        with pytest.raises(ValueError, match=r"^nodes has dtype torch.int64, expected a floating-point one"):
            getattr(incidence, name)(torch.ones(3, 4).long())


# -- the graphs of a union --------------------------------------------------------------------------------------------


def membership(owner: Tensor | None, rows: int, num_graphs: int) -> Tensor:
    """(graphs, rows): 1 where the row is in the graph."""
    if owner is None:
        return torch.ones(1, rows, dtype=torch.float64)
    return (owner == torch.arange(num_graphs).unsqueeze(1)).double()


@given(sample=graphs())
def test_pool_is_the_sum_over_each_graph(sample: Sample) -> None:
    incidence = sample.incidence
    edge_owner = None if incidence.owner is None else incidence.owner[incidence.ends[0]]
    for side, owner, rows in (("node", incidence.owner, sample.nodes), ("edge", edge_owner, sample.edges)):
        M = membership(owner, len(rows), incidence.num_graphs)
        assert incidence.count(side).tolist() == M.sum(1).tolist()
        expected = value_and_gradients(lambda x, M=M: M @ x, rows)
        found = value_and_gradients(lambda x, side=side: incidence.pool(x, side), rows)
        for mine, theirs in zip(found, expected, strict=True):
            assert_near(mine, theirs, 1e-12)


def test_pool_by_hand() -> None:
    ends, owner = torch.tensor([[0, 2, 2], [1, 2, 4]]), torch.tensor([0, 0, 2, 0, 2])
    union = Incidence(ends, 5, owner, num_graphs=4)
    assert union.edge_owner is not None
    assert union.edge_owner.tolist() == [0, 2, 2]
    assert union.count("node").tolist() == [3, 0, 2, 0]
    assert union.count("edge").tolist() == [1, 0, 2, 0]
    assert union.pool(torch.tensor([[1.0], [2.0], [4.0], [8.0], [16.0]]), "node").tolist() == [[11], [0], [20], [0]]
    assert union.pool(torch.tensor([[1.0], [2.0], [4.0]]), "edge").tolist() == [[1], [0], [6], [0]]
    assert Incidence(ends, 5).edge_owner is None


def test_pool_of_a_graph_of_many_nodes() -> None:
    owner = torch.arange(4 * LONGEST) % 3 % 2  # two in three are in graph 0, in no order
    union = Incidence(torch.empty(2, 0, dtype=torch.int64), 4 * LONGEST, owner, num_graphs=2)
    M = membership(owner, 4 * LONGEST, 2)
    expected = value_and_gradients(lambda x: M @ x, numbers(4 * LONGEST, 3))
    for mine, theirs in zip(
        value_and_gradients(lambda x: union.pool(x, "node"), numbers(4 * LONGEST, 3)), expected, strict=True
    ):
        assert_near(mine, theirs, 1e-12)
    assert union.pool(torch.ones(0, 3), "edge").equal(torch.zeros(2, 3))


def test_what_a_compiler_sees_of_a_pool_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    union = Incidence(torch.tensor([[0, 3], [1, 2]]), 4, torch.tensor([0, 0, 1, 1]), num_graphs=2)
    expected = union.pool(numbers(4, 2), "node"), union.pool(numbers(2, 2), "edge")
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    found = union.pool(numbers(4, 2), "node"), union.pool(numbers(2, 2), "edge")
    torch.testing.assert_close(found, expected)


# -- the door ---------------------------------------------------------------------------------------------------------


def test_repr() -> None:
    ends = torch.tensor([[0, 1], [1, 2]])
    assert repr(Incidence(ends, 3)) == "Incidence(3 nodes, 2 edges)"
    union = Incidence(ends, 4, owner=torch.tensor([0, 0, 0, 1]), num_graphs=2)
    assert repr(union) == "Incidence(4 nodes, 2 edges, 2 graphs)"


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32, torch.int64])
def test_ends_may_be_any_whole_numbers(dtype: torch.dtype) -> None:
    incidence = Incidence(torch.tensor([[0, 1], [1, 2]], dtype=dtype), 3)
    assert incidence.ends.dtype == torch.int64
    assert incidence.node_degree.tolist() == [2, 3, 2]


def test_a_graph_without_edges() -> None:
    incidence = Incidence(torch.empty(2, 0, dtype=torch.int64), 3)
    assert incidence.gather(torch.ones(3, 2)).shape == (0, 2)
    assert incidence.scatter(torch.ones(0, 2)).equal(torch.zeros(3, 2))
    assert incidence.node_degree.tolist() == [1, 1, 1]
    assert incidence.edge_degree.tolist() == incidence.multiplicity.tolist() == []
    assert incidence.csr.edge.offset.tolist() == [0, 0, 0, 0]


def test_another_device_has_the_same_incidence() -> None:
    union = Incidence(torch.tensor([[0, 1], [1, 2]]), 4, owner=torch.tensor([0, 0, 0, 1]), num_graphs=2)
    moved = union.to("cpu")
    assert moved is not union
    assert moved.ends.equal(union.ends)
    assert moved.owner is not None
    assert moved.owner.tolist() == [0, 0, 0, 1]
    assert (moved.num_nodes, moved.num_graphs) == (4, 2)
    assert Incidence(union.ends, 3).to(torch.device("cpu")).owner is None


@pytest.mark.parametrize(
    ("ends", "num_nodes", "message"),
    [
        (torch.zeros(3, 2, dtype=torch.int64), 3, r"ends has shape \(3, 2\), expected \(2, \*\): \(2, E\), one column"),
        (torch.zeros(2, dtype=torch.int64), 3, r"ends has shape \(2,\), expected \(2, \*\)"),
        (
            torch.tensor([[0.0, 1.0], [1.0, 2.0]]),
            3,
            r"^ends has dtype torch.float32, expected whole numbers: number each node from 0$",
        ),
        (
            torch.tensor([[0.0, 1.0], [1.0, float("nan")]]),
            3,
            r"^ends has dtype torch.float32 and holds NaN at \(1, 1\), expected whole numbers: number each node from",
        ),
        (torch.zeros(2, 0), 3, r"ends has dtype torch.float32, expected whole numbers"),
        (
            torch.tensor([[True], [False]]),
            3,
            r"^ends has dtype torch.bool, expected whole numbers: number each node from 0$",
        ),
        (
            torch.tensor([[0, 1], [1, -1]]),
            3,
            r"^ends\[1, 1\] is -1, expected a node from 0 to 2: there are 3 nodes$",
        ),
        (torch.tensor([[0, 3], [1, 7]]), 3, r"^ends\[0, 1\] is 3, expected a node from 0 to 2: there are 3 nodes$"),
        (torch.tensor([[0], [300]], dtype=torch.int32), 300, r"^ends\[1, 0\] is 300, expected a node from 0 to 299"),
    ],
)
def test_wrong_ends_are_named(ends: Tensor, num_nodes: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Incidence(ends, num_nodes)


@pytest.mark.parametrize(
    ("owner", "message"),
    [
        (torch.tensor([0, 0]), r"^owner has shape \(2,\), expected \(3,\): \(N,\), one graph for each node$"),
        (torch.tensor([0, 0, 2]), r"^owner\[2\] is 2, expected a graph from 0 to 1: there are 2 graphs$"),
        (torch.tensor([0.0, 0.0, 1.0]), r"owner has dtype torch.float32, expected whole numbers: number each graph"),
    ],
)
def test_wrong_owners_are_named(owner: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Incidence(torch.tensor([[0], [1]]), 3, owner=owner, num_graphs=2)


def test_wrong_rows_are_named() -> None:
    incidence = Incidence(torch.tensor([[0, 1], [1, 2]]), 3)
    with pytest.raises(ValueError, match=r"^nodes has shape \(2, 4\), expected \(3, \*\): \(N, d\)$"):
        incidence.gather(torch.ones(2, 4))
    with pytest.raises(ValueError, match=r"^edges has shape \(3, 4\), expected \(2, \*\): \(E, d\)$"):
        incidence.scatter(torch.ones(3, 4))
    with pytest.raises(ValueError, match=r"^edges has shape \(2,\), expected \(2, \*\): \(E, d\)$"):
        incidence.scatter(torch.ones(2))
    with pytest.raises(ValueError, match=r"^nodes has dtype torch.int64, expected a floating-point one"):
        incidence.gather(torch.ones(3, 4).long())
    with pytest.raises(ValueError, match=r"^edges has dtype torch.int64, expected a floating-point one"):
        incidence.scatter(torch.ones(2, 4).long())


def test_rows_on_another_device_are_named() -> None:
    incidence = Incidence(torch.tensor([[0, 1], [1, 2]]), 3)
    with pytest.raises(
        ValueError, match=r"(nodes|incidence) is on (meta|cpu), expected (cpu|meta) as (nodes|incidence)"
    ):
        incidence.gather(torch.ones(3, 4, device="meta"))
    with pytest.raises(
        ValueError, match=r"(edges|incidence) is on (meta|cpu), expected (cpu|meta) as (edges|incidence)"
    ):
        incidence.scatter(torch.ones(2, 4, device="meta"))


@given(incidence=incidences(), seed=st.integers(0, 2**16))
def test_gather_and_scatter_pass_gradcheck(incidence: Incidence, seed: int) -> None:
    nodes = numbers(incidence.num_nodes, 1, seed=seed).requires_grad_()
    edges = numbers(incidence.num_edges, 1, seed=seed).requires_grad_()
    assert torch.autograd.gradcheck(incidence.gather, nodes, fast_mode=True)
    assert torch.autograd.gradcheck(incidence.scatter, edges, fast_mode=True)
