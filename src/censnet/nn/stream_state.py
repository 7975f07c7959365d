"""The state of a stream: the clocks and sums of its nodes and pairs, and the events that others do not see yet."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import numpy as np

from censnet.nn.causal import CausalLayer
from censnet.nn.causal_encoder import CausalEncoder
from censnet.nn.growing_rows import PairRows
from censnet.nn.message_sums import MessageSums
from censnet.nn.stream_clock import ClockState
from censnet.ops.arrays import Array


@dataclass(slots=True)
class SentEvent:
    """An edge that has happened, with what it sends.

    Args:
        number, source, target, time: of the edge.
        messages: to the lists out, in and pair, of each layer; None when they have been added. (layers, 3, width)
        labels: the message of each label channel. (layers, label_width, message_width)
    """

    number: int
    source: int
    target: int
    time: float
    messages: Array | None
    labels: Array


@dataclass
class StreamState:
    """All that a stream remembers.

    Args:
        clock, sums: of nodes.
        pair_clock, pair_sums, pairs: of ordered pairs of nodes.
        now: the time of the last event.
        num_events: how many there were.
        num_nodes: one more than the highest node.
        pending: events of the present time, which no other event sees yet.
        unlabeled: events without a label so far, by their numbers.
        arriving: labels that have been set, by the time when they arrive: a heap of (time, number, event, label).
    """

    clock: ClockState
    sums: MessageSums
    pair_clock: ClockState
    pair_sums: MessageSums
    pairs: PairRows = field(default_factory=PairRows)
    now: float = -np.inf
    num_events: int = 0
    num_nodes: int = 0
    pending: list[SentEvent] = field(default_factory=list)
    unlabeled: dict[int, SentEvent] = field(default_factory=dict)
    arriving: list[tuple[float, int, SentEvent, Array]] = field(default_factory=list)

    @classmethod
    def empty(cls, encoder: CausalEncoder) -> StreamState:
        """That of a stream before its first event."""
        layers = [cast(CausalLayer, layer) for layer in encoder.layers]
        none, width = np.zeros((len(layers), 0)), layers[0].message_width
        rates = [layer.rates.detach().double().cpu().numpy() for layer in layers if layer.rates is not None]
        clocks = [ClockState(relations, encoder.label_width, encoder.windows) for relations in (2, 1)]
        sums = MessageSums(2, encoder.hidden, width, np.stack(rates) if rates else none)
        pairs = PairRows(encoder.triads)
        found = cls(clocks[0], sums, clocks[1], MessageSums(1, encoder.hidden, width, none), pairs)
        found.pair_clock.reserve(0)
        found.pair_sums.reserve(0)
        return found

    def reserve(self, node: int) -> None:
        """Make room for a node."""
        if node >= self.num_nodes:
            self.num_nodes = node + 1
            self.clock.reserve(node)
            self.sums.reserve(node)
