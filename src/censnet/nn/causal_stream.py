"""A causal encoder event by event: the embedding of each new edge from running sums, as the batch pass gives it."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from censnet.nn.causal import CausalLayer
from censnet.nn.causal_encoder import CausalEncoder
from censnet.nn.encoder import ACTIVATIONS
from censnet.nn.stream_state import ClockState, LayerState, PairRows

Array = NDArray[Any]
NODE, EDGE = 0, 1


@dataclass
class SentEvent:
    """An edge that has happened, with what it sends in each layer, now and when its label is known."""

    number: int
    source: int
    target: int
    time: float
    messages: list[tuple[Array, Array, Array]] = field(default_factory=list)  # to out, in and pair
    labels: list[Array] = field(default_factory=list)  # the message of each label channel


@dataclass
class StreamState:
    """All that a stream remembers.

    Args:
        clock, layers: of nodes.
        pair_clock, pair_layers, pairs: of ordered pairs of nodes.
        now: the time of the last event.
        num_events: how many there were.
        pending: events of the present time, which no other event sees yet.
        unlabeled: events whose label was not told, by their numbers.
        arriving: labels that were told, by the time when they arrive: a heap of (time, number, event, label).
    """

    clock: ClockState
    layers: list[LayerState]
    pair_clock: ClockState
    pair_layers: list[LayerState]
    pairs: PairRows = field(default_factory=PairRows)
    now: float = -np.inf
    num_events: int = 0
    pending: list[SentEvent] = field(default_factory=list)
    unlabeled: dict[int, SentEvent] = field(default_factory=dict)
    arriving: list[tuple[float, int, SentEvent, Array]] = field(default_factory=list)


class CausalStream:
    """Embed the edges of a history one after the other, with the numbers of the batch pass.

    `step` embeds a new edge from the sums of its nodes, and keeps what it sends. Later edges see that: with ties by
    "time", edges at a later time, so that edges of one time do not see each other. `tell` gives the label of an edge;
    edges that happen after it has arrived see it. The cost of a step does not depend on the length of the history.

    Args:
        encoder: trained. Dropout is off here.

    Example:
        >>> encoder = CausalEncoder(node_width=1, edge_width=3, label_width=2, hidden=8)
        >>> stream = CausalStream(encoder)
        >>> stream.step(0, 1, 1.0, start=[0.5], end=[0.1], edge=[2.0]).shape
        (24,)
        >>> stream.tell(0, label=[1.0, 0.0])
        >>> stream.step(1, 0, 2.0, start=[0.1], end=[0.5], edge=[1.0]).shape
        (24,)
    """

    def __init__(self, encoder: CausalEncoder) -> None:
        self.encoder = encoder
        weights = {name: values.detach().cpu().numpy() for name, values in encoder.state_dict().items()}
        self.dtype = weights["node_pre_layer.weight"].dtype
        self._node_pre, self._edge_pre, self._ends_pre = (
            np.ascontiguousarray(weights[f"{name}_pre_layer.weight"].T) for name in ("node", "edge", "ends")
        )
        self._pre_bias = weights["node_pre_layer.bias"], weights["edge_pre_layer.bias"]
        self._layers = []
        for depth in range(len(encoder.layers)):
            start = f"layers.{depth}."
            self._layers.append({name.removeprefix(start): x for name, x in weights.items() if name.startswith(start)})
        self._pre_norms = _norm(encoder.node_pre_norm), _norm(encoder.edge_pre_norm)
        self._norms = [_norm(norm) for norm in encoder.node_norms], [_norm(norm) for norm in encoder.edge_norms]
        self._activate = _activation(encoder.activation)
        self.state = self._empty()

    def _empty(self) -> StreamState:
        encoder, none = self.encoder, np.zeros(0)
        layers = [cast(CausalLayer, layer) for layer in encoder.layers]
        rates = [none if layer.rates is None else layer.rates.detach().double().cpu().numpy() for layer in layers]
        width, of_label = encoder.hidden, [layer.message_width for layer in layers]
        return StreamState(
            ClockState(2, encoder.label_width, encoder.windows),
            [LayerState(2, width, label, rate) for label, rate in zip(of_label, rates, strict=True)],
            ClockState(1, encoder.label_width, encoder.windows),
            [LayerState(1, width, label, none) for label in of_label],
        )

    def step(
        self,
        source: int,
        target: int,
        time: float,
        start: Sequence[float] | Array,
        end: Sequence[float] | Array,
        edge: Sequence[float] | Array,
    ) -> Array:
        """Embed a new edge: [edge | start | end] just before it, (3 * hidden,). It gets the number `num_events`.

        Args:
            source, target: its nodes, numbered from 0.
            time: not before that of the last one.
            start, end: features of the two nodes.
            edge: features of the edge, without labels.
        """
        self.advance(time)
        state, unit = self.state, self.encoder.unit
        self._reserve(max(source, target))
        nodes = np.array([source, target])
        pair = np.array([state.pairs.find(source, target), state.pairs.find(target, source)])
        clock = state.clock.describe(nodes, time, unit, self.dtype).reshape(2, -1)
        x = self._enter_nodes(np.array([start, end], self.dtype).reshape(2, -1), clock)
        of_pair = state.pair_clock.describe(pair, time, unit, self.dtype).reshape(-1)
        h = np.concatenate([np.asarray(edge, self.dtype), of_pair]) @ self._edge_pre + self._pre_bias[EDGE]
        h = self._activate(_normalize(h + x.reshape(-1) @ self._ends_pre, self._pre_norms[EDGE]))
        sent = SentEvent(state.num_events, source, target, time)
        for depth in range(len(self._layers)):
            h, x = self._layer(depth, h, x, nodes, pair, time, sent)
        state.num_events += 1
        state.pending.append(sent)
        if self.encoder.label_width:
            state.unlabeled[sent.number] = sent
        if self.encoder.ties == "row":
            self._commit()
        return np.concatenate([h, *x])

    def tell(self, event: int, label: Sequence[float] | Array, time: float | None = None) -> None:
        """Give the label of an event.

        Args:
            event: its number.
            label: its channels, as `ModelInputs` has them.
            time: when it arrives; after the label delay of the encoder, or now if that is over, if None.
        """
        state = self.state
        if event not in state.unlabeled:
            raise ValueError(f"event is {event}, expected one of {len(state.unlabeled)} events without a label")
        sent = state.unlabeled[event]
        arrival = max(sent.time + self.encoder.label_delay, state.now) if time is None else time
        if arrival < max(state.now, sent.time):
            raise ValueError(f"time is {time}, expected {max(state.now, sent.time)} or later: the label comes late")
        del state.unlabeled[event]
        channels = np.asarray(label, self.dtype)
        if self.encoder.ties == "row" and arrival == sent.time:
            self._add_label(sent, channels, arrival)
        else:
            heapq.heappush(state.arriving, (arrival, event, sent, channels))

    def advance(self, time: float) -> None:
        """Go on to a time: all that was sent, and all labels that arrived, before it are seen from now on."""
        state = self.state
        if not time >= state.now:
            raise ValueError(f"time is {time}, expected {state.now} or later: the event comes late")
        if time > state.now:
            self._commit()
            while state.arriving and state.arriving[0][0] < time:
                arrival, _, sent, label = heapq.heappop(state.arriving)
                self._add_label(sent, label, arrival)
            state.now = time

    def node(self, node: int, features: Sequence[float] | Array, time: float) -> Array:
        """The state of a node just before a time, (hidden,); events from then on must not be before it."""
        self.advance(time)
        state, nodes = self.state, np.array([node])
        self._reserve(node)
        clock = state.clock.describe(nodes, time, self.encoder.unit, self.dtype).reshape(1, -1)
        x = self._enter_nodes(np.asarray(features, self.dtype).reshape(1, -1), clock)
        for depth in range(len(self._layers)):
            seen = state.layers[depth].means(nodes, state.clock, time, self.dtype)
            x = self._finish(NODE, depth, self._update_nodes(depth, x, seen), x)
        return cast(Array, x[0])

    # -- the rule of `CausalLayer` for one edge -----------------------------------------------------------------------

    def _enter_nodes(self, features: Array, clock: Array) -> Array:
        rows = np.concatenate([features, clock], 1) @ self._node_pre + self._pre_bias[NODE]
        return cast(Array, self._activate(_normalize(rows, self._pre_norms[NODE])))

    def _layer(
        self, depth: int, h: Array, x: Array, nodes: Array, pair: Array, time: float, sent: SentEvent
    ) -> tuple[Array, Array]:
        of, state, width = self._layers[depth], self.state, self.encoder.hidden
        parts = h @ of["edge_weight"]
        gate = _gate(parts[: 2 * width])
        out = gate[:width] * (x[1] @ of["out_weight"]) + parts[2 * width : 3 * width]
        into = gate[width:] * (x[0] @ of["in_weight"]) + parts[3 * width : 4 * width]
        sent.messages.append((out, into, parts[4 * width : 5 * width].copy()))
        sent.labels.append(parts[6 * width :].reshape(of["label_bias"].shape) + of["label_bias"])
        seen = state.layers[depth].means(nodes, state.clock, time, self.dtype)
        pairs = state.pair_layers[depth].means(pair, state.pair_clock, time, self.dtype)
        new = parts[5 * width : 6 * width] + of["edge_bias"]
        new = new + pairs[0] @ of["parallel_seen"] + pairs[1] @ of["reciprocal_seen"]
        for end, side in enumerate(("start", "end")):
            read = x[end] @ of[f"{side}_weight"]
            new = new + read[width:] + _gate(read[:width]) * (seen[end] @ of[f"{side}_seen"])
        return self._finish(EDGE, depth, new, h), self._finish(NODE, depth, self._update_nodes(depth, x, seen), x)

    def _update_nodes(self, depth: int, x: Array, seen: Array) -> Array:
        of = self._layers[depth]
        return cast(Array, x @ of["node_weight"] + seen @ of["node_seen"] + of["node_bias"])

    def _finish(self, side: int, depth: int, new: Array, old: Array) -> Array:
        new = self._activate(_normalize(new, self._norms[side][depth]))
        return old + new if self.encoder.residual else new

    # -- the state ----------------------------------------------------------------------------------------------------

    def _reserve(self, node: int) -> None:
        self.state.clock.reserve(node)
        for layer in self.state.layers:
            layer.reserve(node)

    def _commit(self) -> None:
        """Add what the events of the present time have sent."""
        state = self.state
        for sent in state.pending:
            pair, time = state.pairs.add(sent.source, sent.target), sent.time
            state.pair_clock.reserve(pair)
            for layer in state.pair_layers:
                layer.reserve(pair)
            clock = state.clock
            gaps = time - clock.last[sent.source, 0], time - clock.last[sent.target, 1]
            for depth, (out, into, between) in enumerate(sent.messages):
                state.layers[depth].add(sent.source, 0, out, gaps[0])
                state.layers[depth].add(sent.target, 1, into, gaps[1])
                state.pair_layers[depth].add(pair, 0, between, 0.0)
            clock.add(sent.source, 0, time)
            clock.add(sent.target, 1, time)
            state.pair_clock.add(pair, 0, time)
        state.pending.clear()

    def _add_label(self, sent: SentEvent, label: Array, arrival: float) -> None:
        state = self.state
        pair, clock = state.pairs.find(sent.source, sent.target), state.clock
        gaps = arrival - clock.last_label[sent.source, 0], arrival - clock.last_label[sent.target, 1]
        for depth, each in enumerate(sent.labels):
            message = label @ each
            state.layers[depth].add_label(sent.source, 0, message, gaps[0])
            state.layers[depth].add_label(sent.target, 1, message, gaps[1])
            state.pair_layers[depth].add_label(pair, 0, message, 0.0)
        clock.add_label(sent.source, 0, label, arrival)
        clock.add_label(sent.target, 1, label, arrival)
        state.pair_clock.add_label(pair, 0, label, arrival)


def _gate(x: Array) -> Array:
    """2 sigmoid(x)"""
    found: Array = 1 + np.tanh(x / 2)
    return found


def _norm(norm: nn.Module) -> tuple[Array, Array, float] | None:
    if not isinstance(norm, nn.LayerNorm):
        return None
    return norm.weight.detach().cpu().numpy(), norm.bias.detach().cpu().numpy(), norm.eps


def _normalize(rows: Array, norm: tuple[Array, Array, float] | None) -> Array:
    if norm is None:
        return rows
    weight, bias, eps = norm
    width = rows.shape[-1]  # np.add.reduce costs half of what mean does
    centered = rows - np.add.reduce(rows, -1, keepdims=True) / width
    variance = np.add.reduce(centered * centered, -1, keepdims=True) / width
    found: Array = centered / np.sqrt(variance + eps) * weight + bias
    return found


def _activation(name: str) -> Any:
    if name == "relu":
        return lambda rows: np.maximum(rows, 0)
    return lambda rows: ACTIVATIONS[name](torch.from_numpy(rows)).numpy()
