"""What a row has that no training row has, as `LevelNovelty.describe` says it, row by row and without the whole table.

The text of a row is JSON: the number of each range that it is outside of, and what to say of it. So those of the two
nodes of an edge can be told apart from each other when they are put beside those of the edge.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from torch import Tensor

from censnet.engines.engine import Engine
from censnet.runs.novelty import FeatureRange

ROUNDING = 1e-6  # of a distance: the threshold is that of a row, which sums in another order must not put beyond it


@dataclass(frozen=True)
class Explode:
    """The text of each row in as many columns as there are ranges, as a function of Arrow batches.

    Args:
        ranges: their number.
    """

    ranges: int

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [f"u{number}" for number in range(self.ranges)]

    @property
    def schema(self) -> pa.Schema:
        """Of the table."""
        return pa.schema(
            [("number", pa.int64()), ("graph", pa.int64()), *((name, pa.string()) for name in self.columns)]
        )

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        texts = [read_unusual(text) for text in batch.column("unusual").to_pylist()]
        columns = [pa.array([text.get(number) for text in texts], pa.string()) for number in range(self.ranges)]
        keys = [batch.column("number"), batch.column("graph")]
        return pa.RecordBatch.from_arrays([*keys, *columns], schema=self.schema)


def first_unusual(engine: Engine, table: str, base: str, key: str, ranges: int) -> str:
    """The table `TABLE_first` of what is unusual in each graph: for each range, the first of its rows that is outside.

    Args:
        engine: that computes it.
        table: nodes or edges.
        base: the table of the graph with these, by their `key`.
        ranges: their number.
    """
    work = Explode(ranges)
    source = f"SELECT u.number, b.graph, u.unusual FROM {table}_unusual u JOIN {base} b ON b.{key} = u.number"
    engine.map(f"{table}_each", source, work, work.schema)
    first = [f"min_by({name}, CASE WHEN {name} IS NOT NULL THEN number END) AS {name}" for name in work.columns]
    engine.query(f"{table}_first", f"SELECT {', '.join(['graph', *first])} FROM {table}_each GROUP BY graph")
    return f"{table}_first"


def find_unusual(ranges: Sequence[FeatureRange], features: Tensor) -> list[str | None]:
    """The text of each row; None where nothing is unusual."""
    found: dict[int, dict[int, str]] = {}
    for number, one in enumerate(ranges):
        for row in one.outside(features).nonzero()[0].tolist() if len(features) else ():
            found.setdefault(row, {})[number] = one.describe(features[[row]])
    return [json.dumps(found[row]) if row in found else None for row in range(len(features))]


def join_ends(texts: Iterable[str | None]) -> list[str]:
    """What is unusual of the two nodes of an edge: of each range, what the first of them has.

    >>> join_ends(['{"1": "age is 3"}', '{"0": "height is 9", "1": "age is 90"}'])
    ['height is 9', 'age is 3']
    """
    found: dict[int, str] = {}
    for text in texts:
        found = {**read_unusual(text), **found}
    return [found[number] for number in sorted(found)]


def is_beyond(times: Tensor) -> Tensor:
    """Which distances, in units of the threshold, are beyond it. (n,)"""
    return times > 1 + ROUNDING


def join_reasons(reasons: Iterable[str | None], times: float) -> str | None:
    """Why a row is unlike training rows, in words.

    Args:
        reasons: what is unusual, in order; None is left out.
        times: the distance of its embedding from training rows, in units of the threshold; 0 where it is not asked.

    >>> join_reasons(["amount is 9", None, "age is 3", "amount is 9"], 1.5)
    'amount is 9; age is 3; embedding far from training rows (1.50 times the threshold)'
    """
    found = [reason for reason in reasons if reason is not None]
    if times > 1 + ROUNDING:
        found.append(f"embedding far from training rows ({times:.2f} times the threshold)")
    return "; ".join(dict.fromkeys(found)) or None


def read_unusual(text: str | None) -> Mapping[int, str]:
    """Range -> what to say, in order."""
    found = {} if text is None else json.loads(text)
    return {number: found[str(number)] for number in sorted(map(int, found))}
