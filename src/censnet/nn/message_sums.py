"""Running sums of the messages of a stream, of each node or pair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import scipy.sparse

from censnet.nn.growing_rows import BITS, GrowingRows
from censnet.nn.stream_clock import COUNT, KNOWN, LAST, LAST_LABEL
from censnet.ops.arrays import Array

_AT_ONCE = 1 << 16  # messages that are added up in float64


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
