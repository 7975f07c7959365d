"""What a row has that no training row has, as `LevelNovelty.describe` says it, row by row and without the whole table.

The text of a row is JSON: the number of each range that it is outside of, and what to say of it. So those of the two
nodes of an edge can be told apart from each other when they are put beside those of the edge.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from torch import Tensor

from censnet.runs.novelty import FeatureRange

ROUNDING = 1e-6  # of a distance: the threshold is that of a row, which sums in another order must not put beyond it

def find_unusual(ranges: Sequence[FeatureRange], features: Tensor) -> list[str | None]:
    """The text of each row; None where nothing is unusual."""
    found: dict[int, dict[int, str]] = {}
    for number, one in enumerate(ranges):
        for row in one.outside(features).nonzero()[0].tolist() if len(features) else ():
            found.setdefault(row, {})[number] = one.describe(features[[row]])
    return [json.dumps(found[row]) if row in found else None for row in range(len(features))]


def join_unusual(own: str | None, others: Iterable[str | None], times: float | None) -> str | None:
    """Why a row is unlike training rows.

    Args:
        own: the text of the row.
        others: those of its nodes, of which the first that is outside of a range is named.
        times: the distance of its embedding from training rows, in units of the threshold; None where it is not asked.

    >>> join_unusual('{"0": "amount is 9"}', [None, '{"1": "age is 3"}'], 1.5)
    'amount is 9; age is 3; embedding far from training rows (1.50 times the threshold)'
    """
    reasons = list(read_unusual(own).values())
    nodes: dict[int, str] = {}
    for text in others:
        nodes = {**read_unusual(text), **nodes}
    reasons += [nodes[number] for number in sorted(nodes)]
    if times is not None and times > 1 + ROUNDING:
        reasons.append(f"embedding far from training rows ({times:.2f} times the threshold)")
    return "; ".join(dict.fromkeys(reasons)) or None


def read_unusual(text: str | None) -> Mapping[int, str]:
    """Range -> what to say, in order."""
    return {} if text is None else {int(number): reason for number, reason in sorted(json.loads(text).items(), key=_number)}


def _number(item: tuple[str, str]) -> int:
    return int(item[0])


