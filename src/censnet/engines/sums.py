"""Sums by an integer key, of many columns: in one array where it fits, else partition by partition of the keys.

A hash table has a state of 16 bytes for each key and column, and where it does not fit, DuckDB writes these states to
the disk, for nearly every row that comes in. Keys that are dense need no hash table, and what comes in is a quarter as
large: it is written to the disk by ranges of keys, each of which is summed in an array.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import torch

from censnet.engines.columns import Group, read_integers, write_batch
from censnet.engines.engine import BATCH_ROWS
from censnet.engines.files import open_parquet

MAX_PARTITIONS = 256
_EXACT = 8  # bytes of a sum


@dataclass
class KeySums:
    """The sums of the rows of each key.

    Args:
        schema: of the rows: their key, and the columns of a group.
        group: that is summed.
        keys: their number: every key is below it.
        memory: bytes of the array.
        folder: of what does not fit, which is there.
    """

    schema: pa.Schema
    group: Group
    keys: int
    memory: int
    folder: Path

    @property
    def partitions(self) -> int:
        """The number of ranges of keys."""
        size = self.keys * max(1, self.group.width) * _EXACT
        return min(MAX_PARTITIONS, max(1, -(-size // self.memory)))

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The keys in order, each with its sums."""
        if self.partitions == 1:
            yield from self._sum(batches, 0, self.keys)
            return
        width = -(-self.keys // self.partitions)
        paths = [self.folder / f"part{number}.parquet" for number in range(self.partitions)]
        try:
            with ExitStack() as stack:
                files = [
                    stack.enter_context(
                        pa.parquet.ParquetWriter(
                            path, self.schema, compression="none", use_dictionary=False, write_statistics=False
                        )
                    )
                    for path in paths
                ]
                for batch in batches:
                    part = batch.column(0).to_numpy() // width
                    order = np.argsort(part, kind="stable")
                    bounds = np.searchsorted(part[order], np.arange(len(files) + 1))
                    ordered = batch.take(pa.array(order))
                    for number, file in enumerate(files):
                        file.write_batch(ordered.slice(bounds[number], bounds[number + 1] - bounds[number]))
            for number, path in enumerate(paths):
                with open_parquet(path) as file:
                    rows = file.iter_batches(BATCH_ROWS)
                    yield from self._sum(rows, number * width, min(self.keys, (number + 1) * width))
                path.unlink()
        finally:
            for path in paths:
                path.unlink(missing_ok=True)

    def _sum(self, batches: Iterator[pa.RecordBatch], first: int, last: int) -> Iterator[pa.RecordBatch]:
        """The sums of a range of keys."""
        sums = torch.zeros(max(0, last - first), self.group.width, dtype=torch.float64)
        for batch in batches:
            keys = read_integers(batch, self.schema.names[0]) - first
            sums.index_add_(0, keys, self.group.read(batch).double())
        for start in range(0, len(sums), BATCH_ROWS):
            rows = sums[start : start + BATCH_ROWS]
            keys = pa.array(np.arange(first + start, first + start + len(rows)))
            yield write_batch(self.schema, [keys], [(self.group, rows)])
