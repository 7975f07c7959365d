"""The state of a stream after a whole history, from one pass over it instead of an event at a time."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import cast

import numpy as np
import torch
from torch import Tensor

from censnet.nn.causal import CausalLayer
from censnet.nn.causal_encoder import CausalEncoder
from censnet.nn.stream_clock import COUNT, KNOWN, LAST, LAST_LABEL, LATEST, NEIGHBORS, SUMS, ClockState, Window
from censnet.nn.stream_state import SentEvent, StreamState
from censnet.ops.arrays import Array
from censnet.ops.history import History
from censnet.ops.incidence import Incidence


@torch.no_grad()
def state_after(
    encoder: CausalEncoder,
    nodes: Tensor,
    edges: Tensor,
    incidence: Incidence,
    times: Tensor,
    numbers: Sequence[int] | None = None,
) -> StreamState:
    """The state after the last edge, as of `CausalStream` fed with one edge after the other, each with its label.

    Args:
        encoder: trained. It is set to evaluate.
        nodes, edges, incidence, times: as `CausalEncoder.forward` takes them, edges in any order.
        numbers: of the edges, by which their labels can still be set; their rows if None.

    Example:
        >>> path = Incidence(torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
        >>> encoder = CausalEncoder(node_width=4, edge_width=2, hidden=8)
        >>> state = state_after(encoder, torch.randn(3, 4), torch.randn(2, 2), path, torch.tensor([1.0, 2.0]).double())
        >>> state.now, state.num_events, len(state.pending)
        (2.0, 2, 1)
    """
    encoder.eval()
    state = StreamState.empty(encoder)
    if not len(times):
        return state
    past = _Past(encoder, edges, incidence, times, numbers)
    state.now, state.num_events = past.now, len(times)
    state.reserve(incidence.num_nodes - 1)
    known = past.committed
    for source, target in past.ends[:, known].T.tolist():
        state.pairs.add(source, target)
    state.pair_clock.reserve(len(state.pairs) - 1)
    state.pair_sums.reserve(len(state.pairs) - 1)
    pair = np.array([state.pairs.find(*ends) for ends in past.ends.T.tolist()], np.int64)
    keys = [(state.clock, 0, past.ends[0]), (state.clock, 1, past.ends[1]), (state.pair_clock, 0, pair)]
    for clock, relation, key in keys:
        _count(clock, relation, key, past)
    for clock in (state.clock, state.pair_clock):
        _find_windows(clock, [key for other, _, key in keys if other is clock], past)
    sent = dict[int, list[tuple[Array, Array]]]()
    hooks = [
        layer.register_forward_pre_hook(_Collect(depth, state, past, keys, sent))
        for depth, layer in enumerate(encoder.layers)
    ]
    try:
        encoder(nodes, edges, incidence, times)
    finally:
        for hook in hooks:
            hook.remove()
    _keep_events(state, past, sent)
    return state


class _Past:
    """A history in numpy, and what of it later edges see already."""

    def __init__(
        self, encoder: CausalEncoder, edges: Tensor, incidence: Incidence, times: Tensor, numbers: Sequence[int] | None
    ) -> None:
        self.times, self.ends = times.numpy(), incidence.ends.numpy()
        self.labels = edges[:, edges.shape[1] - encoder.label_width :].numpy()
        self.numbers = list(range(len(self.times))) if numbers is None else list(numbers)
        self.now, self.arrival = float(self.times.max()), self.times + encoder.label_delay
        self.labeled = (self.labels != 0).any(1)
        at_once = encoder.ties == "row"
        self.committed = (self.times < self.now) | at_once
        self.arrived = self.labeled & ((self.arrival < self.now) | (at_once and not encoder.label_delay))
        seen = np.flatnonzero(self.committed)
        self.is_first = np.zeros(len(self.times), bool)  # between its nodes, the same way
        self.is_first[seen[np.unique(self.ends[:, seen], axis=1, return_index=True)[1]]] = True
        kept = ~self.committed | (self.labeled & ~self.arrived)
        kept |= ~self.labeled if encoder.label_width else False
        self.kept = np.flatnonzero(kept)[np.argsort(self.times[kept], kind="stable")]  # of events, in their order


class _Collect:
    """Adds what a layer sends to the sums of a state, just before it computes."""

    def __init__(
        self,
        depth: int,
        state: StreamState,
        past: _Past,
        keys: Sequence[tuple[ClockState, int, Array]],
        sent: dict[int, list[tuple[Array, Array]]],
    ) -> None:
        self.depth, self.state, self.past, self.keys, self.sent = depth, state, past, keys, sent

    def __call__(self, module: torch.nn.Module, inputs: tuple[Tensor, Tensor, Tensor, History]) -> None:
        layer, (edges, states, labels, _), past = cast(CausalLayer, module), inputs, self.past
        found, _ = layer.send(edges, states, labels)
        messages = [each.numpy() for each in found[:3]]
        for (clock, relation, key), message in zip(self.keys, messages, strict=True):
            sums = self.state.sums if clock is self.state.clock else self.state.pair_sums
            last, known = _last(clock, relation), past.committed
            gaps = last[key, 0] - past.times
            sums.add_many(self.depth, relation, key[known], message[known], gaps[known], labels=False)
            if layer.message_width:
                gaps, known = last[key, 1] - past.arrival, past.arrived
                sums.add_many(self.depth, relation, key[known], found.label.numpy()[known], gaps[known], labels=True)
        few = torch.from_numpy(past.kept)
        each = edges[few] @ layer.edge_weight[:, 6 * layer.width :]
        each = each.view(len(few), layer.label_width, layer.message_width) + layer.label_bias
        own = np.stack([message[past.kept] for message in messages], 1)
        self.sent[self.depth] = list(zip(own, each.numpy(), strict=True))


def _last(clock: ClockState, relation: int) -> Array:
    """The times of the last edge and the last label of each row. (rows, 2)"""
    return clock.rows.stacked(len(clock.rows))[:, relation][:, [LAST, LAST_LABEL]]


def _count(clock: ClockState, relation: int, key: Array, past: _Past) -> None:
    """Counts, last times and sums of labels of all rows."""
    found = clock.rows.stacked(len(clock.rows))
    own, size = found[:, relation], len(found)
    for seen, when, count, last in (
        (past.committed, past.times, COUNT, LAST),
        (past.arrived, past.arrival, KNOWN, LAST_LABEL),
    ):
        own[:, count] = np.bincount(key[seen], minlength=size)
        latest = np.full(size, -np.inf)
        np.maximum.at(latest, key[seen], when[seen])
        own[:, last] = np.where(own[:, count] > 0, latest, 0)
    last = past.arrived & (past.arrival == own[key, LAST_LABEL])
    own[:, LATEST] = np.bincount(key[last], minlength=size)
    for start, seen in ((SUMS, past.arrived), (SUMS + clock.label_width, last)):
        for channel in range(clock.label_width):
            values = past.labels[seen, channel].astype(np.float64)
            own[:, start + channel] = np.bincount(key[seen], values, size)
    if clock.relations > 1:
        own[:, NEIGHBORS] = np.bincount(key[past.is_first], minlength=size)
    clock.rows.fill(found)


def _find_windows(clock: ClockState, keys: Sequence[Array], past: _Past) -> None:
    """The entries of each list within the widest window."""
    if not clock.windows:
        return
    recent, since = dict[int, Window](), past.now - clock.windows[-1]
    for relation, key in enumerate(keys):
        lists = key * clock.relations + relation
        for row in _sorted(past.committed & (past.times >= since), past.times):
            recent.setdefault(int(lists[row]), Window()).edges.append(float(past.times[row]))
        late = _sorted(past.arrived & (past.arrival >= since), past.arrival)
        before = dict[int, Array]()
        for row in late[::-1]:  # from the sums of all labels back to those before each
            own = before.get(int(lists[row]))
            if own is None:
                read = clock.rows[int(key[row])][relation]
                own = before[int(lists[row])] = np.append(read[SUMS : SUMS + clock.label_width], read[KNOWN])
            own -= np.append(past.labels[row], 1)
        for row in late:
            window = recent.setdefault(int(lists[row]), Window())
            window.labels.append(float(past.arrival[row]))
            own = before[int(lists[row])]
            window.sums.extend(own.tolist())
            own += np.append(past.labels[row], 1)
    clock.set_windows(recent)


def _sorted(chosen: Array, when: Array) -> Array:
    rows = np.flatnonzero(chosen)
    return cast(Array, rows[np.argsort(when[rows], kind="stable")])


def _keep_events(state: StreamState, past: _Past, sent: dict[int, list[tuple[Array, Array]]]) -> None:
    """The events whose messages or labels are not seen yet."""
    for number, row in enumerate(past.kept.tolist()):
        each = [sent[depth][number] for depth in range(len(sent))]
        pending = not past.committed[row]
        messages = np.stack([own for own, _ in each]) if pending else None
        source, target = past.ends[:, row].tolist()
        when = float(past.times[row])
        event = SentEvent(past.numbers[row], source, target, when, messages, np.stack([label for _, label in each]))
        if pending:
            state.pending.append(event)
        if past.labels.shape[1] and not past.labeled[row]:
            state.unlabeled[event.number] = event
        elif past.labeled[row] and not past.arrived[row]:
            arriving = float(past.arrival[row]), event.number, event, past.labels[row].copy()
            heapq.heappush(state.arriving, arriving)
