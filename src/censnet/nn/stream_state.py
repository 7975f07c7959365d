"""The state of a stream: running sums of nodes and of pairs, which grow as new ones appear."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
FEWEST = 64  # rows of a state at first, and entries of a window that are dropped at once


class PairRows:
    """A row for each ordered pair of nodes that had an edge; row 0 is that of all others, and stays empty."""

    def __init__(self) -> None:
        self.rows: dict[tuple[int, int], int] = {}

    def find(self, source: int, target: int) -> int:
        """The row of a pair, 0 if it has none."""
        return self.rows.get((source, target), 0)

    def add(self, source: int, target: int) -> int:
        """The row of a pair, a new one if it has none."""
        return self.rows.setdefault((source, target), len(self.rows) + 1)


@dataclass
class Window:
    """What came to a list within the widest window: times, and the sums before each label."""

    edges: list[float] = field(default_factory=list)
    labels: list[float] = field(default_factory=list)
    sums: list[Array] = field(default_factory=list)

    def forget(self, since: float) -> None:
        """Drop what came before a time, some at once."""
        old = bisect_left(self.edges, since)
        if old >= FEWEST:
            del self.edges[:old]
        old = bisect_left(self.labels, since)
        if old >= FEWEST:
            del self.labels[:old], self.sums[:old]


class ClockState:
    """Counts, last times, sums of labels and windows of each row and relation: what `censnet.nn.clock` describes.

    Args:
        relations: lists of each row: 2 of a node, those that leave and those that arrive; 1 of a pair.
        label_width: channels of labels.
        windows: their widths, in rising order.
    """

    def __init__(self, relations: int, label_width: int, windows: Sequence[float]) -> None:
        self.relations, self.label_width, self.windows = relations, label_width, tuple(windows)
        self.count = np.zeros((FEWEST, relations), np.int64)
        self.last = np.zeros((FEWEST, relations))
        self.last_label = np.zeros((FEWEST, relations))
        self.sums = np.zeros((FEWEST, relations, label_width + 1))  # and the number of labels
        self.recent: dict[tuple[int, int], Window] = {}

    def reserve(self, row: int) -> None:
        """Make room for a row."""
        if row >= len(self.count):
            for name in ("count", "last", "last_label", "sums"):
                setattr(self, name, grown(getattr(self, name), row))

    def describe(self, rows: Array, time: float, unit: float, dtype: Any) -> Array:
        """The channels of `censnet.nn.clock.describe`. (n, relations, clock_width)"""
        k, count, sums = self.label_width, self.count[rows], self.sums[rows]
        out = np.empty((*count.shape, 2 + (k + 1) + len(self.windows) * (k + 2)))
        out[..., 0] = np.log1p(count)
        out[..., 1] = np.log1p(np.where(count > 0, time - self.last[rows], 0.0) / unit)
        out[..., 2 : 2 + k] = sums[..., :-1] / (sums[..., -1:] + 1)
        out[..., 2 + k] = np.log1p(sums[..., -1])
        if self.windows:
            at = 3 + k
            out[..., at:] = 0
            for i, row in enumerate(rows):
                for relation in range(self.relations):
                    window = self.recent.get((int(row), relation))
                    if window is not None:
                        self._describe_windows(out[i, relation, at:], window, sums[i, relation], time)
        return cast(Array, out.astype(dtype))

    def _describe_windows(self, out: Array, window: Window, sums: Array, time: float) -> None:
        k, at = self.label_width, 0
        for width in self.windows:
            out[at] = np.log1p(len(window.edges) - bisect_left(window.edges, time - width))
            first = bisect_left(window.labels, time - width)
            if first < len(window.labels):
                found = sums - window.sums[first]
                out[at + 1 : at + 1 + k] = found[:-1] / (found[-1] + 1)
                out[at + 1 + k] = np.log1p(found[-1])
            at += k + 2

    def add(self, row: int, relation: int, time: float) -> None:
        """Count an edge."""
        self.count[row, relation] += 1
        self.last[row, relation] = time
        if self.windows:
            self._recent(row, relation, time).edges.append(time)

    def add_label(self, row: int, relation: int, label: Array, time: float) -> None:
        """Add a label that has arrived."""
        if self.windows:
            window = self._recent(row, relation, time)
            window.labels.append(time)
            window.sums.append(self.sums[row, relation].copy())
        self.sums[row, relation, :-1] += label
        self.sums[row, relation, -1] += 1
        self.last_label[row, relation] = time

    def _recent(self, row: int, relation: int, time: float) -> Window:
        window = self.recent.setdefault((row, relation), Window())
        window.forget(time - self.windows[-1])
        return window


class LayerState:
    """The sums of the messages of one layer, for each row and relation.

    The channels of a message are those that stay and those that decay, and behind both a count that decays for each
    rate; of labels, also a count that stays.

    Args:
        relations: lists of each row.
        width, message_width: channels of messages, and of those of labels.
        rates: decay rates.
    """

    def __init__(self, relations: int, width: int, message_width: int, rates: Array) -> None:
        self.rates = rates
        self.decay = _channel_rates(width, rates, 0)
        self.label_decay = _channel_rates(message_width, rates, 1)
        self.sums = np.zeros((FEWEST, relations, len(self.decay)))
        self.label_sums = np.zeros((FEWEST, relations, len(self.label_decay)))

    def reserve(self, row: int) -> None:
        """Make room for a row."""
        if row >= len(self.sums):
            self.sums, self.label_sums = grown(self.sums, row), grown(self.label_sums, row)

    def means(self, rows: Array, clock: ClockState, time: float, dtype: Any) -> Array:
        """The means of messages, relation by relation, and then those of labels. (n, channels)"""
        sums, labels, count = self.sums[rows], self.label_sums[rows], clock.count[rows]
        k = len(self.rates)
        if k:
            gap = np.where(count > 0, time - clock.last[rows], 0.0)
            sums = sums * np.exp(-self.decay * gap[..., None])
            gap = np.where(clock.sums[rows][..., -1] > 0, time - clock.last_label[rows], 0.0)
            labels = labels * np.exp(-self.label_decay * gap[..., None])
        edges = _divide(sums, count[..., None], k)
        width = labels.shape[-1] - 1 - k
        known = labels[..., width : width + 1]
        labels = np.concatenate([labels[..., :width], labels[..., width + 1 :]], -1)
        labels = _divide(labels, known, k)
        return np.concatenate([edges.reshape(len(rows), -1), labels.reshape(len(rows), -1)], 1).astype(dtype)

    def add(self, row: int, relation: int, message: Array, gap: float) -> None:
        """Add a message, so long after the one before it."""
        _add(self.sums[row, relation], self.decay, message, gap, len(self.rates))

    def add_label(self, row: int, relation: int, message: Array, gap: float) -> None:
        """Add the message of a label."""
        whole = self.label_sums[row, relation]
        _add(whole, self.label_decay, message, gap, len(self.rates))
        whole[len(message)] += 1


def _channel_rates(width: int, rates: Array, counts: int) -> Array:
    """The rate of each channel of a state: 0 for those that stay."""
    k = len(rates)
    if not k:
        return np.zeros(width + counts)
    return np.concatenate([np.zeros(width // 2), np.repeat(rates, width // 2 // k), np.zeros(counts), rates])


def _add(state: Array, decay: Array, message: Array, gap: float, rates: int) -> None:
    if rates:
        state *= np.exp(-decay * gap)
        state[len(state) - rates :] += 1
    state[: len(message)] += message


def _divide(sums: Array, count: Array, rates: int) -> Array:
    """Sums over counts: those that stay over `count`, those that decay over counts that do, which are the last."""
    if not rates:
        return cast(Array, sums / np.maximum(count, 1))
    width = sums.shape[-1] - rates
    half, each = width // 2, width // 2 // rates
    decayed = np.maximum(sums[..., width:], 1)
    return np.concatenate(
        [sums[..., :half] / np.maximum(count, 1), sums[..., half:width] / np.repeat(decayed, each, -1)], -1
    )


def grown(rows: Array, row: int) -> Array:
    """The array with room for a row, twice as long or longer."""
    more = np.zeros((max(2 * len(rows), row + 1), *rows.shape[1:]), rows.dtype)
    more[: len(rows)] = rows
    return more
