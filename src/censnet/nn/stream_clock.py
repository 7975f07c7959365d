"""The clock of a stream: counts, last times, sums of labels and windows of each node or pair."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import log1p

from censnet.nn.clock import COUNT_SCALE, FINE, GAP_SCALE
from censnet.nn.growing_rows import GrowingRows
from censnet.ops.arrays import Array

_LEAST_SHARE = 16  # of a list is dropped at once, one part in so many

COUNT, LAST, KNOWN, LAST_LABEL, NEIGHBORS, LATEST, SUMS = range(7)  # columns of a row of `ClockState`


@dataclass(slots=True)
class Window:
    """The entries of a list within the widest window: times, and the sums before each label, one after the other."""

    edges: array[float] = field(default_factory=lambda: array("d"))
    labels: array[float] = field(default_factory=lambda: array("d"))
    sums: array[float] = field(default_factory=lambda: array("d"))

    def forget(self, since: float, width: int) -> bool:
        """Drop what came before a time, and say whether anything is left. `width`: of the sums of a label.

        Of a long list it is dropped when it has become a share of all, so that what is left is not moved each time.
        """
        old = bisect_left(self.edges, since)
        if old * _LEAST_SHARE >= len(self.edges):
            del self.edges[:old]
        old = bisect_left(self.labels, since)
        if old * _LEAST_SHARE >= len(self.labels):
            del self.labels[:old], self.sums[: old * width]
        return bool(self.edges or self.labels)


class ClockState:
    """Counts, last times, sums of labels and windows of each row and relation: what `censnet.nn.clock` describes.

    Args:
        relations: lists of each row: 2 of a node, those that leave and those that arrive; 1 of a pair.
        label_width: channels of labels.
        windows: their widths, in rising order.
    """

    def __init__(self, relations: int, label_width: int, windows: Sequence[float]) -> None:
        self.relations, self.label_width, self.windows = relations, label_width, tuple(windows)
        self.rows = GrowingRows(relations, SUMS + 2 * label_width)
        self.recent: dict[int, Window] = {}  # by row * relations + relation
        self._order, self._next = list[int](), 0  # of the windows, and that which is looked through next

    def reserve(self, row: int) -> None:
        """Make room for a row."""
        self.rows.reserve(row)

    def read(self, row: int) -> list[list[float]]:
        """For each relation all columns of a row.

        [count, last time, known labels, time of the last one, neighbors, number of the labels that arrived last,
        sums of labels..., sums of those that arrived last...]
        """
        found: list[list[float]] = self.rows[row].tolist()
        return found

    def describe(self, row: int, read: Sequence[Sequence[float]], time: float, unit: float) -> list[float]:
        """The channels of `censnet.nn.clock.describe`, relation by relation; `read` is what `read` gives.

        Of a node, the numbers of neighbors follow.
        """
        found: list[float] = []
        k, widest = self.label_width, max(self.windows, default=unit)
        for relation, each in enumerate(read):
            count, last, known = each[: KNOWN + 1]
            sums = each[SUMS : SUMS + k]
            found.append(log1p(count) / COUNT_SCALE)
            found += _gaps(time - last, unit, widest) if count else (0.0, 0.0)
            found += [total / (known + 1) for total in sums]
            found.append(log1p(known) / COUNT_SCALE)
            if self.windows:
                window = self.recent.get(row * self.relations + relation)
                if window is None:
                    found += [0.0] * (len(self.windows) * (k + 2))
                else:
                    self._describe_windows(found, window, sums, known, time)
            found += [total / max(each[LATEST], 1) for total in each[SUMS + k :]]
            found += _gaps(time - each[LAST_LABEL], unit, widest) if known else (0.0, 0.0)
        if self.relations > 1:
            found += [log1p(each[NEIGHBORS]) / COUNT_SCALE for each in read]
        return found

    def _describe_windows(
        self, found: list[float], window: Window, sums: Sequence[float], known: float, time: float
    ) -> None:
        k, edges, labels = self.label_width, window.edges, window.labels
        for width in self.windows:
            found.append(log1p(len(edges) - bisect_left(edges, time - width)) / COUNT_SCALE)
            first = bisect_left(labels, time - width)
            if first < len(labels):
                before = window.sums[first * (k + 1) : (first + 1) * (k + 1)]
                number = known - before[k]
                found += [(total - earlier) / (number + 1) for total, earlier in zip(sums, before, strict=False)]
                found.append(log1p(number) / COUNT_SCALE)
            else:
                found += [0.0] * (k + 1)

    def add(self, row: int, relation: int, time: float, is_new: bool = False) -> None:
        """Count an edge, of a node with a new neighbor or not."""
        read = self.rows[row][relation]
        read[COUNT] += 1
        read[LAST] = time
        read[NEIGHBORS] += is_new
        if self.windows:
            self._recent(row, relation, time).edges.append(time)

    def add_label(self, row: int, relation: int, label: Array, time: float) -> None:
        """Add a label that has arrived."""
        read = self.rows[row][relation]
        if self.windows:
            window = self._recent(row, relation, time)
            window.labels.append(time)
            window.sums.extend(read[SUMS : SUMS + self.label_width].tolist())
            window.sums.append(float(read[KNOWN]))
        if time > read[LAST_LABEL] or not read[KNOWN]:
            read[LATEST] = read[SUMS + self.label_width :] = 0
        read[SUMS : SUMS + self.label_width] += label
        read[SUMS + self.label_width :] += label
        read[KNOWN] += 1
        read[LATEST] += 1
        read[LAST_LABEL] = time

    def _recent(self, row: int, relation: int, time: float) -> Window:
        """The window of a list. Two others are looked through, so that none keeps for long what no window holds."""
        since, key = time - self.windows[-1], row * self.relations + relation
        for _ in range(min(2, len(self._order))):
            self._next = self._next % len(self._order)
            other = self._order[self._next]
            if other == key or self.recent[other].forget(since, self.label_width + 1):
                self._next += 1
            else:
                del self.recent[other]
                self._order[self._next] = self._order[-1]
                self._order.pop()
                if not self._order:
                    break
        window = self.recent.get(key)
        if window is None:
            window = self.recent[key] = Window()
            self._order.append(key)
        else:
            window.forget(since, self.label_width + 1)
        return window

    def set_windows(self, recent: dict[int, Window]) -> None:
        """Replace the windows of all lists."""
        self.recent, self._order, self._next = recent, list(recent), 0


def _gaps(gap: float, unit: float, widest: float) -> tuple[float, float]:
    return log1p(gap / unit) / GAP_SCALE, log1p(widest / (gap + FINE * unit)) / GAP_SCALE
