"""Sums by key are the same however many ranges of keys there are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch

from censnet.engines.columns import Group, schema_of, write_batch
from censnet.engines.sums import KeySums


@pytest.mark.parametrize("memory", [10**6, 100 * 8 * 3 // 4, 1])
def test_sums_by_ranges_of_keys_are_the_sums(memory: int, tmp_path: Path) -> None:
    group, random = Group("c", 3), np.random.default_rng(0)
    schema = schema_of({"key": pa.int64()}, [group])
    keys, rows = random.integers(0, 100, 1000), torch.from_numpy(random.standard_normal((1000, 3), np.float32))
    batches = [
        write_batch(schema, [pa.array(keys[start : start + 64])], [(group, rows[start : start + 64])])
        for start in range(0, 1000, 64)
    ]
    sums = KeySums(schema, group, 100, memory, tmp_path)
    assert sums.partitions == {10**6: 1, 600: 4, 1: 256}[memory]
    found = pa.Table.from_batches(list(sums(iter(batches))))
    assert found["key"].to_pylist() == list(range(100))
    expected = torch.zeros(100, 3, dtype=torch.float64).index_add(0, torch.from_numpy(keys), rows.double())
    torch.testing.assert_close(group.read(found.combine_chunks().to_batches()[0]).double(), expected)
    assert list(tmp_path.iterdir()) == []
