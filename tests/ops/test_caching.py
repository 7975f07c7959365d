"""Rows of few kinds are gathered from the few, and are the same to the bit."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from censnet.ops.caching import FEWEST, MAX_DISTINCT, DictionaryRows
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet


def asked(table: Tensor) -> DictionaryRows:
    """A table of which every row was taken, so that it is encoded."""
    encoded = DictionaryRows(table)
    for _ in range(2):
        assert encoded.take(torch.arange(len(table))).equal(table)
    return encoded


def kinds(count: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Rows of so many kinds, in a random order."""
    draw = torch.Generator().manual_seed(count)
    every = torch.randn(count, 5, generator=draw).to(dtype)
    return every[torch.randint(count, (3 * FEWEST,), generator=draw)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_few_kinds_are_found_and_taken_to_the_bit(dtype: torch.dtype) -> None:
    table = kinds(40, dtype)
    encoded = asked(table)
    assert repr(encoded) == f"DictionaryRows({len(table)} rows, 40 distinct)"
    rows = torch.randint(len(table), (1000,), generator=torch.Generator().manual_seed(0))
    assert encoded.take(rows).equal(table[rows])
    assert encoded.take(rows).dtype == dtype


def test_a_table_is_encoded_only_after_every_row_could_have_been_taken() -> None:
    encoded = DictionaryRows(kinds(3))
    encoded.take(torch.arange(100))
    assert "distinct" not in repr(encoded)


@pytest.mark.parametrize(
    "table",
    [
        kinds(MAX_DISTINCT + 500),
        kinds(3)[: FEWEST - 1],
        kinds(3).t().contiguous().t(),
        torch.ones(2 * FEWEST, 1),
    ],
    ids=["many kinds", "few rows", "by columns", "one column"],
)
def test_any_other_table_gives_its_rows(table: Tensor) -> None:
    encoded = asked(table)
    rows = torch.arange(len(table) - 1, -1, -7)
    assert encoded.take(rows).equal(table[rows])


def test_rows_that_are_equal_but_not_to_the_bit_stay_distinct() -> None:
    """-0 equals 0, and NaN equals nothing; an infinity hides what is added to it."""
    zeros = torch.zeros(2 * FEWEST, 2)
    zeros[5] = -0.0
    assert asked(zeros).take(torch.tensor([5, 6])).signbit().tolist() == [[True, True], [False, False]]
    table = kinds(4)
    table[3], table[8, 0], table[9, 0] = torch.nan, torch.inf, torch.inf
    encoded = DictionaryRows(table)
    for _ in range(2):
        torch.testing.assert_close(encoded.take(torch.arange(len(table))), table, equal_nan=True, rtol=0, atol=0)


def test_a_table_that_is_changed_in_place_gives_its_new_rows() -> None:
    table = kinds(4)
    encoded = asked(table)
    table.mul_(2)
    assert encoded.take(torch.tensor([11, 3])).equal(table[[11, 3]])


def test_gradients_pass() -> None:
    table = kinds(4).requires_grad_()
    encoded = asked(table)
    encoded.take(torch.tensor([2, 2, 0])).sum().backward()
    assert table.grad is not None
    assert table.grad[:3].sum(1).tolist() == [5.0, 0.0, 10.0]


def test_later_epochs_of_a_set_have_the_batches_of_the_first() -> None:
    draw = torch.Generator().manual_seed(0)
    atoms, bonds = torch.eye(6), torch.eye(3)
    graphs = []
    for size in torch.randint(2, 40, (400,), generator=draw).tolist():
        ends = torch.stack([torch.arange(size - 1), torch.arange(1, size)])
        kind = torch.randint(6, (size,), generator=draw)
        graphs.append(Graph(atoms[kind], bonds[kind[1:] % 3], ends))
    every = GraphSet.pack(graphs)
    numbers = [torch.randperm(400, generator=draw)[:50] for _ in range(20)]
    first = [every.batch(some) for some in numbers]
    assert [repr(encoded)[-11:] for encoded in (every._nodes, every._edges)] == ["6 distinct)", "3 distinct)"]
    for some, before in zip(numbers, first, strict=True):
        after = every.batch(some)
        assert after.nodes.equal(before.nodes)
        assert after.edges.equal(before.edges)
