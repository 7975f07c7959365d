"""A causal encoder event by event: the embedding of each new edge from running sums, as the batch pass gives it."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import cast

import numpy as np
import torch

from censnet.nn.causal_encoder import CausalEncoder
from censnet.nn.clock import describe_triads
from censnet.nn.stream_clock import COUNT, KNOWN, LAST, LAST_LABEL, SUMS
from censnet.nn.stream_state import SentEvent, StreamState
from censnet.nn.stream_weights import LayerWeights, activation_of, normalize, read_norm, stack_norms
from censnet.ops.arrays import Array
from censnet.ops.past_triads import TYPES, legs_to_types, triad_width
from censnet.ops.triangles import MAX_DEGREE

NODE, EDGE = 0, 1


class CausalStream:
    """Embed the edges of a history one after the other, with the numbers of the batch pass.

    `step` embeds a new edge from the sums of its nodes, and keeps what it sends. Later edges see that: with ties by
    "time", edges at a later time, so that edges of one time do not see each other. `tell` gives the label of an edge;
    edges that happen after it has arrived see it. The cost of a step does not depend on the length of the history.

    Args:
        encoder: trained. Dropout is off here.
        state: to go on from; an empty one if None.

    Example:
        >>> encoder = CausalEncoder(node_width=1, edge_width=3, label_width=2, hidden=8)
        >>> stream = CausalStream(encoder)
        >>> stream.step(0, 1, 1.0, start=[0.5], end=[0.1], edge=[2.0]).shape
        (24,)
        >>> stream.set_label(0, label=[1.0, 0.0])
        >>> stream.step(1, 0, 2.0, start=[0.1], end=[0.5], edge=[1.0]).shape
        (24,)
    """

    def __init__(self, encoder: CausalEncoder, state: StreamState | None = None) -> None:
        self.encoder = encoder
        weights = {name: values.detach().cpu().numpy() for name, values in encoder.state_dict().items()}
        self.dtype = weights["node_pre_layer.weight"].dtype
        self._node_pre, self._edge_pre, self._ends_pre = (
            np.ascontiguousarray(weights[f"{name}_pre_layer.weight"].T) for name in ("node", "edge", "ends")
        )
        self._pre_bias = weights["node_pre_layer.bias"], weights["edge_pre_layer.bias"]
        self._layers = [
            LayerWeights({name.removeprefix(start): x for name, x in weights.items() if name.startswith(start)})
            for start in (f"layers.{depth}." for depth in range(len(encoder.layers)))
        ]
        self._pre_norms = read_norm(encoder.node_pre_norm), read_norm(encoder.edge_pre_norm)
        pairs = zip(map(read_norm, encoder.edge_norms), map(read_norm, encoder.node_norms), strict=True)
        self._norms = [stack_norms(edge, node, node) for edge, node in pairs]
        self._activate = activation_of(encoder.activation)
        depth, shape = len(self._layers), self._layers[0].label_bias.shape
        self._messages = np.zeros((depth, 3, encoder.hidden), self.dtype)
        self._label_messages = np.zeros((depth, *shape), self.dtype)
        self.state = StreamState.empty(encoder) if state is None else state

    def step(
        self,
        source: int,
        target: int,
        time: float,
        start: Sequence[float] | Array,
        end: Sequence[float] | Array,
        edge: Sequence[float] | Array,
        number: int | None = None,
    ) -> Array:
        """Embed a new edge: [edge | start | end] just before it, (3 * hidden,).

        Args:
            source, target: its nodes, numbered from 0.
            time: not before that of the last one.
            start, end: features of the two nodes.
            edge: features of the edge, without labels.
            number: by which its label is set later; `num_events` if None.
        """
        self.advance(time)
        state, unit, dtype = self.state, self.encoder.unit, self.dtype
        state.reserve(max(source, target))
        nodes = source, target
        pair = state.pairs.find(source, target), state.pairs.find(target, source)
        read, of_pair = [state.clock.read(node) for node in nodes], [state.pair_clock.read(row) for row in pair]
        clocks = [state.clock.describe(node, each, time, unit) for node, each in zip(nodes, read, strict=True)]
        rows = [[*features, *clock] for features, clock in zip((start, end), clocks, strict=True)]
        x = np.array(rows, dtype) @ self._node_pre + self._pre_bias[NODE]
        x = self._activate(normalize(x, self._pre_norms[NODE]))
        own = [*edge]
        for row, each in zip(pair, of_pair, strict=True):
            own += state.pair_clock.describe(row, each, time, unit)
        if self.encoder.triads:
            own += self._triads(source, target)
        h = np.array(own, dtype) @ self._edge_pre + self._pre_bias[EDGE] + x.reshape(-1) @ self._ends_pre
        h = self._activate(normalize(h, self._pre_norms[EDGE]))
        z = np.empty((3, len(h)), dtype)
        z[0], z[1:] = h, x
        seen = state.sums.means(nodes, read, time, dtype)
        pairs = None
        if any(each[0][COUNT] or each[0][KNOWN] for each in of_pair):
            pairs = state.pair_sums.means(pair, of_pair, time, dtype)
        messages, labels = self._messages.copy(), self._label_messages.copy()
        for depth, layer in enumerate(self._layers):
            new, sent, label = layer(z, seen[depth], None if pairs is None else pairs[depth])
            z = self._finish(new, z, self._norms[depth])
            messages[depth], labels[depth] = sent, label
        event = SentEvent(state.num_events if number is None else number, source, target, time, messages, labels)
        state.num_events += 1
        state.pending.append(event)
        if self.encoder.label_width:
            state.unlabeled[event.number] = event
        if self.encoder.ties == "row":
            self._commit()
        return cast(Array, z.reshape(-1))

    def set_label(self, event: int, label: Sequence[float] | Array, time: float | None = None) -> None:
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
        state = self.state
        state.reserve(node)
        read = state.clock.read(node)
        row = [*features, *state.clock.describe(node, read, time, self.encoder.unit)]
        x = np.array([row], self.dtype) @ self._node_pre + self._pre_bias[NODE]
        x = self._activate(normalize(x, self._pre_norms[NODE]))
        seen = state.sums.means([node], [read], time, self.dtype)
        for depth, layer in enumerate(self._layers):
            norm = self._norms[depth]
            of_nodes = None if norm is None else (norm[0][1:2], norm[1][1:2], norm[2])
            x = self._finish(layer.update_nodes(x, seen[depth]), x, of_nodes)
        return cast(Array, x[0])

    def _triads(self, source: int, target: int) -> list[float]:
        """The channels of `censnet.nn.clock.clock_of_triads`, from the sums of pairs."""
        state, width = self.state, self.encoder.label_width
        third = state.pairs.between(source, target, MAX_DEGREE)
        if not third:
            return [0.0] * (TYPES * triad_width(width))
        find, rows = state.pairs.find, state.pair_clock.rows
        legs = [row for k in third for row in (find(source, k), find(k, source), find(k, target), find(target, k))]
        found_rows = np.zeros((len(legs), rows.shape[1]))
        for number, row in enumerate(legs):
            if row:  # row 0 is empty
                found_rows[number] = rows[row]
        sums = torch.from_numpy(found_rows.reshape(len(third), 4, -1).swapaxes(0, 1))
        labels, known = sums[..., SUMS : SUMS + width], sums[..., KNOWN]
        found: list[float] = describe_triads(legs_to_types(sums[..., COUNT], known, labels).sum(0)).flatten().tolist()
        return found

    def _finish(self, new: Array, old: Array, norm: tuple[Array, Array, float] | None) -> Array:
        new = self._activate(normalize(new, norm))
        return old + new if self.encoder.residual else new

    # -- the state ----------------------------------------------------------------------------------------------------

    def _commit(self) -> None:
        """Add what the events of the present time have sent."""
        state = self.state
        for sent in state.pending:
            is_new = not state.pairs.find(sent.source, sent.target)
            pair, time = state.pairs.add(sent.source, sent.target), sent.time
            state.pair_clock.reserve(pair)
            state.pair_sums.reserve(pair)
            clock, messages = state.clock, cast(Array, sent.messages)
            for relation, node in enumerate((sent.source, sent.target)):
                gap = time - float(clock.rows[node][relation, LAST])
                state.sums.add(node, relation, messages[:, relation], gap)
                clock.add(node, relation, time, is_new)
            state.pair_sums.add(pair, 0, messages[:, 2], 0.0)
            state.pair_clock.add(pair, 0, time)
            sent.messages = None
        state.pending.clear()

    def _add_label(self, sent: SentEvent, label: Array, arrival: float) -> None:
        state, messages = self.state, label @ sent.labels
        pair, clock = state.pairs.find(sent.source, sent.target), state.clock
        for relation, node in enumerate((sent.source, sent.target)):
            gap = arrival - float(clock.rows[node][relation, LAST_LABEL])
            state.sums.add(node, relation, messages, gap, labels=True)
            clock.add_label(node, relation, label, arrival)
        state.pair_sums.add(pair, 0, messages, 0.0, labels=True)
        state.pair_clock.add_label(pair, 0, label, arrival)
