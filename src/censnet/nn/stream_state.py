"""The state of a stream: running sums of nodes and of pairs, which grow as new ones appear."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import log1p
from typing import Any, cast

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from censnet.nn.clock import COUNT_SCALE, FINE, GAP_SCALE

Array = NDArray[Any]
BITS = 10  # of the number of a row within its block
_LEAST_SHARE = 16  # of a list is dropped at once, one part in so many
_AT_ONCE = 1 << 16  # messages that are added up in float64
COUNT, LAST, KNOWN, LAST_LABEL, NEIGHBORS, LATEST, SUMS = range(7)  # columns of a row of `ClockState`


class GrowingRows:
    """Rows of numbers in blocks: zeros at first, more of them without a copy of the others.

    Example:
        >>> rows = GrowingRows(2)
        >>> rows.reserve(5000)
        >>> rows[5000][:] = 1
        >>> rows.stacked(5001).sum()
        np.float64(2.0)
    """

    def __init__(self, *shape: int) -> None:
        self.shape, self.blocks = shape, list[Array]()

    def __len__(self) -> int:
        return len(self.blocks) << BITS

    def __getitem__(self, row: int) -> Array:
        return cast(Array, self.blocks[row >> BITS][row & ((1 << BITS) - 1)])

    def reserve(self, row: int) -> None:
        """Make room for a row."""
        while row >= len(self.blocks) << BITS:
            self.blocks.append(np.zeros((1 << BITS, *self.shape)))

    def stacked(self, count: int) -> Array:
        """The first rows in one array."""
        blocks = [block[: max(0, count - (number << BITS))] for number, block in enumerate(self.blocks)]
        return np.concatenate(blocks) if blocks else np.zeros((0, *self.shape))

    def fill(self, rows: Array) -> None:
        """Set the first rows."""
        if len(rows):
            self.reserve(len(rows) - 1)
        for number, block in enumerate(self.blocks):
            part = rows[number << BITS : (number + 1) << BITS]
            block[: len(part)] = part


class PairRows:
    """A row for each ordered pair of nodes that had an edge; row 0 is that of all others, and stays empty.

    Args:
        neighbors: of each node that had an edge, in either direction; kept by those that look for triads alone.
    """

    def __init__(self, triads: bool = False) -> None:
        self.rows: dict[int, int] = {}  # whole numbers alone, which the garbage collector need not look at
        self.neighbors: dict[int, set[int]] | None = {} if triads else None

    def __len__(self) -> int:
        return len(self.rows) + 1

    def find(self, source: int, target: int) -> int:
        """The row of a pair, 0 if it has none."""
        return self.rows.get(source << 32 | target, 0)

    def add(self, source: int, target: int) -> int:
        """The row of a pair, a new one if it has none."""
        if self.neighbors is not None and source != target:
            self.neighbors.setdefault(source, set()).add(target)
            self.neighbors.setdefault(target, set()).add(source)
        return self.rows.setdefault(source << 32 | target, len(self.rows) + 1)

    def set_rows(self, keys: Sequence[int]) -> None:
        """Replace the pairs, by source << 32 | target, in the order of their rows."""
        self.rows = {}
        if self.neighbors is not None:
            self.neighbors = {}
        for key in keys:
            self.add(key >> 32, key & 0xFFFFFFFF)

    def between(self, source: int, target: int, most: int) -> list[int]:
        """The third nodes of triads: those that both had an edge with; none if both met more than so many nodes."""
        if self.neighbors is None or source == target:
            return []
        first, second = self.neighbors.get(source), self.neighbors.get(target)
        if not first or not second or min(len(first), len(second)) > most:
            return []
        return sorted(first & second)


@dataclass(slots=True)
class Window:
    """What came to a list within the widest window: times, and the sums before each label, one after the other."""

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


class MessageSums:
    """The sums of the messages of all layers, for each row and relation.

    Of each layer a row has the messages of edges, relation by relation, and then those of labels: the channels that
    stay and those that decay, for each rate as many. Behind them are a count for each rate that decays as they do, of
    edges and then of labels, relation by relation.

    Args:
        relations: lists of each row.
        width, message_width: channels of messages, and of those of labels.
        rates: decay rates of each layer. (layers, K)
    """

    def __init__(self, relations: int, width: int, message_width: int, rates: Array) -> None:
        self.relations, self.width, self.message_width, self.rates = relations, width, message_width, rates
        layers, k = rates.shape
        self.channels = relations * (width + message_width)
        self.rows = GrowingRows(layers, self.channels + 2 * relations * k)
        kinds = np.arange(2 * relations).reshape(2, relations)
        index = np.repeat(kinds[0], width), np.repeat(kinds[1], message_width)
        self._index = np.concatenate(index)  # of a count or a gap, for each channel
        self._at = [0, relations * width, self.channels, self.channels + relations * k]  # of each kind's first entry
        if k:
            self._of_rates()

    def _of_rates(self) -> None:
        """For each entry of a row its rate, 0 where it stays, its gap, and for each channel the count it is over."""
        (layers, k), relations = self.rates.shape, self.relations
        rate = np.zeros((layers, self.rows.shape[1]))
        over = self._index.copy()  # of counts that stay, followed by those that decay
        for kind, each in enumerate((self.width, self.message_width)):
            for relation in range(relations):
                start, half = self._at[kind] + relation * each, each // 2
                if each:
                    rate[:, start + half : start + each] = np.repeat(self.rates, half // k, axis=1)
                    own = 2 * relations + (kind * relations + relation) * k
                    over[start + half : start + each] = own + np.repeat(np.arange(k), half // k)
        counts = np.repeat(np.arange(2 * relations), k)
        rate[:, self.channels :] = np.tile(self.rates, 2 * relations)
        self._rate, self._over = rate, over
        self._gap_index = np.concatenate([self._index, counts])

    def reserve(self, row: int) -> None:
        """Make room for a row."""
        self.rows.reserve(row)

    def means(self, rows: Sequence[int], read: Sequence[Sequence[Sequence[float]]], time: float, dtype: Any) -> Array:
        """The means of messages, relation by relation, and then those of labels. (layers, n, channels)

        Args:
            rows: which ones.
            read: what the clock reads of each.
            time: now.
            dtype: of the result.
        """
        relations = range(self.relations)
        found = np.empty((self.rows.shape[0], len(rows), self.rows.shape[1]))
        for number, row in enumerate(rows):
            found[:, number] = self.rows[row]
        counts = [[one[r][COUNT] for r in relations] + [one[r][KNOWN] for r in relations] for one in read]
        least = np.maximum(np.array(counts), 1.0)
        if not self.rates.shape[1]:
            found /= least[:, self._index]
            return found.astype(dtype)
        gaps = [
            [time - one[r][LAST] if one[r][COUNT] else 0.0 for r in relations]
            + [time - one[r][LAST_LABEL] if one[r][KNOWN] else 0.0 for r in relations]
            for one in read
        ]
        found *= np.exp(-self._rate[:, None] * np.array(gaps)[:, self._gap_index])
        decayed = np.maximum(found[..., self.channels :], 1)
        pool = np.concatenate([np.broadcast_to(least, (len(found), *least.shape)), decayed], -1)
        return cast(Array, (found[..., : self.channels] / pool[..., self._over]).astype(dtype))

    def add(self, row: int, relation: int, messages: Array, gap: float, labels: bool = False) -> None:
        """Add a message of each layer, so long after the one before it. (layers, width)"""
        state, kind = self.rows[row], int(labels)
        width = messages.shape[1]
        start = self._at[kind] + relation * width
        own = state[:, start : start + width]
        k = self.rates.shape[1]
        if k:
            at = self._at[2 + kind] + relation * k
            count = state[:, at : at + k]
            if gap > 0:
                own *= np.exp(-self._rate[:, start : start + width] * gap)
                count *= np.exp(-self.rates * gap)
            count += 1
        own += messages

    def add_many(self, depth: int, relation: int, rows: Array, messages: Array, gaps: Array, labels: bool) -> None:
        """Add messages of one layer at once to rows that have room, each so long before the last of its row. (n, width)

        Only to rows that have no message of this relation yet.
        """
        kind, width, k = int(labels), messages.shape[1], self.rates.shape[1]
        start = self._at[kind] + relation * width
        size = int(rows.max()) + 1 if len(rows) else 0
        total = np.zeros((size, width + k))
        for first in range(0, len(rows), _AT_ONCE):
            few = slice(first, first + _AT_ONCE)
            part = np.concatenate([messages[few], np.ones((len(messages[few]), k))], 1, dtype=np.float64)
            if k:
                rate = np.concatenate([self._rate[depth, start : start + width], self.rates[depth]])
                part *= np.exp(-rate * gaps[few, None])
            ones = np.ones(len(part)), rows[few], np.arange(len(part) + 1)
            total += scipy.sparse.csr_array(ones, shape=(len(part), size)).T @ part
        at = self._at[2 + kind] + relation * k
        for number, block in enumerate(self.rows.blocks):
            own = total[number << BITS : (number + 1) << BITS]
            block[: len(own), depth, start : start + width] = own[:, :width]
            block[: len(own), depth, at : at + k] = own[:, width:]
