"""Sums of groups of rows, and how long groups are cut."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from censnet.ops.segments import (
    LONGEST,
    EndPairs,
    Segments,
    chunk_segments,
    linear_map,
    offsets,
    ranges,
    sum_pairs,
    sum_segments,
)


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def cut_bags(index: Tensor, lengths: Tensor) -> tuple[Segments, Tensor]:
    """Bags of these lengths, cut, and the order their entries are then in."""
    order, offset, chunks = chunk_segments(lengths)
    order = torch.arange(len(index)) if order is None else order
    return Segments(index[order], offset, chunks), order


def test_offsets_by_hand() -> None:
    assert offsets(torch.tensor([2, 0, 3])).tolist() == [0, 2, 2, 5]
    assert offsets(torch.empty(0, dtype=torch.int64)).tolist() == [0]


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5)), max_size=8))
def test_ranges_are_the_runs_one_after_the_other(runs: list[tuple[int, int]]) -> None:
    starts, lengths = torch.tensor(runs, dtype=torch.int64).reshape(-1, 2).unbind(1)
    expected = [number for start, length in runs for number in range(start, start + length)]
    assert ranges(starts, lengths).tolist() == expected


def test_short_segments_are_not_chunked() -> None:
    order, offset, chunks = chunk_segments(torch.tensor([0, 1, LONGEST, 3]))
    assert order is None
    assert chunks is None
    assert offset.tolist() == [0, 0, 1, 1 + LONGEST, 4 + LONGEST]


def test_a_segment_of_one_entry_too_many_has_two_chunks() -> None:
    order, offset, chunks = chunk_segments(torch.tensor([1, LONGEST + 1, 2]))
    assert order is not None
    assert chunks is not None
    assert offset.tolist() == [0, 1, 1 + LONGEST, 3 + LONGEST, 4 + LONGEST]
    assert (chunks.long.tolist(), chunks.offset.tolist(), chunks.segment.tolist()) == ([1], [0, 1], [1])
    assert order.tolist() == [*range(LONGEST + 1), LONGEST + 2, LONGEST + 3, LONGEST + 1]


LENGTHS = (0, 1, LONGEST - 1, LONGEST, LONGEST + 1, 2 * LONGEST - 1, 2 * LONGEST, 2 * LONGEST + 1, 3 * LONGEST, 5000)


@pytest.mark.parametrize("around", [(), (0,), (3, LONGEST + 7), (2 * LONGEST,)])
@pytest.mark.parametrize("length", LENGTHS)
def test_chunks_are_short_and_concatenated_are_the_segments(length: int, around: tuple[int, ...]) -> None:
    lengths = torch.tensor([*around, length, *around])
    order, offset, chunks = chunk_segments(lengths)
    assert int(offset.diff().max()) <= LONGEST
    assert int(offset[-1]) == int(lengths.sum())
    entries = list(range(int(lengths.sum()))) if order is None else order.tolist()
    segments = [entries[offset[row] : offset[row + 1]] for row in range(len(lengths))]
    if chunks is not None:
        assert chunks.long.tolist() == [row for row, each in enumerate(lengths.tolist()) if each > LONGEST]
        assert chunks.segment.tolist() == torch.repeat_interleave(chunks.long, chunks.offset.diff()).tolist()
        for number, segment in enumerate(chunks.segment.tolist()):
            row = len(lengths) + number
            segments[segment] += entries[offset[row] : offset[row + 1]]
    starts = offsets(lengths).tolist()
    assert segments == [list(range(start, start + each)) for start, each in zip(starts, lengths.tolist(), strict=False)]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("length", LENGTHS)
def test_sum_segments_is_the_sum_of_each_segment(length: int, weighted: bool) -> None:
    lengths = torch.tensor([2, length, 0, length, 1])
    index = torch.randint(9, (int(lengths.sum()),), generator=torch.Generator().manual_seed(length))
    table, weight = numbers(9, 3), numbers(len(index), seed=1)
    segments, order = cut_bags(index, lengths)
    assert segments.num_rows == 5
    each = weight.unsqueeze(1) * table[index] if weighted else table[index]
    expected = torch.stack([part.sum(0) for part in each.split(lengths.tolist())])
    torch.testing.assert_close(sum_segments(table, segments, weight[order] if weighted else None), expected)


def test_a_million_equal_numbers_are_summed_closely_in_float32() -> None:
    count = 1_000_000  # one after the other, they would be off by 1e-2
    segments, _ = cut_bags(torch.zeros(count, dtype=torch.int64), torch.tensor([count]))
    assert sum_segments(torch.full((1, 1), 0.1), segments).item() == pytest.approx(0.1 * count, rel=1e-4)


def test_segments_without_entries_and_tables_without_columns_sum_to_zero() -> None:
    nothing = Segments(torch.empty(0, dtype=torch.int32), torch.zeros(4, dtype=torch.int32))
    assert sum_segments(numbers(5, 2), nothing).equal(torch.zeros(3, 2, dtype=torch.float64))
    assert sum_segments(numbers(0, 2), nothing).equal(torch.zeros(3, 2, dtype=torch.float64))
    one = Segments(torch.zeros(1, dtype=torch.int32), torch.tensor([0, 1], dtype=torch.int32))
    assert sum_segments(numbers(5, 0), one).shape == (1, 0)


def test_a_table_that_is_not_contiguous_is_summed_alike() -> None:
    table = numbers(3, 4).t()
    segments = Segments(torch.tensor([0, 3, 1]), torch.tensor([0, 2, 3]))
    torch.testing.assert_close(sum_segments(table, segments), torch.stack([table[0] + table[3], table[1]]))


@pytest.mark.parametrize("heads", [1, 2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_sum_pairs_is_the_two_rows_and_its_own(heads: int, weighted: bool) -> None:
    table, own, own_weight, weight = numbers(5, 4), numbers(3, 4, seed=1), numbers(3, heads, seed=2), numbers(6, seed=3)
    pairs = EndPairs(torch.tensor([0, 1, 4, 4, 2, 0]))
    each = (weight.unsqueeze(1) if weighted else 1) * table[pairs.index]
    two = each.view(3, 2, 4).sum(1)
    found = sum_pairs(table, pairs, weight if weighted else None)
    torch.testing.assert_close(found, two)
    found = sum_pairs(table, pairs, weight if weighted else None, own, own_weight)
    torch.testing.assert_close(found, two + own * own_weight.repeat_interleave(4 // heads, dim=1))


def test_part_of_the_pairs_is_those_pairs() -> None:
    table, pairs = numbers(5, 2), EndPairs(torch.tensor([0, 1, 4, 4, 2, 0, 3, 1]))
    assert len(pairs) == 4
    assert pairs.offset.tolist() == [0, 2, 4, 6, 8]
    part = pairs.part(1, 3)
    assert len(part) == 2
    torch.testing.assert_close(sum_pairs(table, part), sum_pairs(table, pairs)[1:3])


def test_the_gradient_of_a_linear_map_is_its_transpose() -> None:
    A = numbers(3, 5)
    x = numbers(5, 2, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: linear_map(x, lambda x: A @ x, lambda y: A.t() @ y), x)
