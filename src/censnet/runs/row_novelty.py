"""Why one edge is unlike training edges, as `LevelNovelty.describe` says it of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import torch

from censnet.ops.arrays import Array
from censnet.runs.novelty import NEAREST, FeatureRange, LevelNovelty


class RowNovelty:
    """The features and the distance of one edge after the other.

    Args:
        novelty: of edges.
    """

    def __init__(self, novelty: LevelNovelty) -> None:
        self.novelty = novelty
        self._edges, self._nodes = (_Ranges(novelty.ranges.get(table, [])) for table in ("edges", "nodes"))
        self._mean, self._scale = (np.array(values, np.float32) for values in (novelty.mean, novelty.scale))
        self._references = np.array(novelty.references, np.float32)
        self._squares = (self._references.astype(np.float64) ** 2).sum(1) if novelty.references else np.zeros(0)

    def describe(self, edge: Array, start: Array, end: Array, embedded: Array) -> str | None:
        """Why an edge is unusual; None where it is not.

        Args:
            edge, start, end: features of the edge and of its two nodes.
            embedded: the embedding of the edge by the first member.
        """
        reasons = [each.describe(torch.from_numpy(edge)[None]) for each in self._edges.outside(edge)]
        first, other = ({id(each): each for each in self._nodes.outside(node)} for node in (start, end))
        for each in self._nodes.ranges if first or other else ():
            node = start if id(each) in first else end if id(each) in other else None
            if node is not None:
                reasons.append(each.describe(torch.from_numpy(node)[None]))
        threshold = self.novelty.threshold
        if threshold is not None:
            times = self.distance(embedded) / threshold
            if times > 1:
                reasons.append(f"embedding far from training rows ({times:.2f} times the threshold)")
        return "; ".join(reasons) or None

    def distance(self, embedded: Array) -> float:
        """The mean distance from the nearest training rows that are stored."""
        x = ((embedded - self._mean) / self._scale).astype(np.float32)
        apart = self._squares - 2 * (self._references @ x).astype(np.float64) + float(x.astype(np.float64) @ x)
        nearest = np.partition(apart, NEAREST - 1)[:NEAREST] if len(apart) > NEAREST else apart
        return float(np.sqrt(np.maximum(nearest, 0)).mean())


class _Ranges:
    """The ranges of one table, looked at together."""

    def __init__(self, ranges: Sequence[FeatureRange]) -> None:
        self.ranges = list(ranges)
        self._numbers = [each for each in ranges if each.low is not None]
        self._words = [each for each in ranges if each.low is None]
        self._at = np.array([each.start for each in self._numbers], np.int64)
        self._low, self._high = (
            np.array([cast(float, getattr(each, side)) for each in self._numbers], np.float32)
            for side in ("low", "high")
        )
        self._wide = any(each.stop > each.start + 1 for each in self._numbers)

    def outside(self, features: Array) -> list[FeatureRange]:
        """The ranges that a row is outside of, in their order."""
        if not self.ranges:
            return []
        if self._wide:
            row = torch.from_numpy(features)[None]
            return [each for each in self.ranges if each.outside(row)[0]]
        x = features[self._at]
        odd = (x < self._low) | (x > self._high)
        found = {id(each) for each in self._words if features[each.start : each.stop].max() < 0.999}
        if odd.any():
            found |= {id(self._numbers[number]) for number in np.flatnonzero(odd)}
        return [each for each in self.ranges if id(each) in found] if found else []
