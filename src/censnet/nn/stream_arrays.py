"""The state of a stream as arrays, and back: what is stored of it, checked before it is used."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from censnet.nn.causal_encoder import CausalEncoder
from censnet.nn.stream_clock import ClockState, Window
from censnet.nn.stream_state import SentEvent, StreamState
from censnet.ops.arrays import Array

MAX_NODES = 1 << 31  # so that a pair of them is one number


def to_arrays(state: StreamState) -> dict[str, Array]:
    """All that a stream remembers, by name. `from_arrays` gives back a state with the same answers, bit by bit."""
    nodes, pairs = state.num_nodes, len(state.pairs)
    found = {
        "now": np.array([state.now]),
        "num_events": np.array([state.num_events]),
        "nodes.clock": state.clock.rows.stacked(nodes),
        "nodes.sums": state.sums.rows.stacked(nodes),
        "pairs": np.fromiter(state.pairs.rows, np.int64, pairs - 1),
        "pairs.clock": state.pair_clock.rows.stacked(pairs),
        "pairs.sums": state.pair_sums.rows.stacked(pairs),
    }
    for side, clock in (("nodes", state.clock), ("pairs", state.pair_clock)):
        found |= {f"{side}.windows.{name}": values for name, values in _of_windows(clock).items()}
    return found | {f"events.{name}": values for name, values in _of_events(state).items()}


def _of_windows(clock: ClockState) -> dict[str, Array]:
    keys, windows = list(clock.recent), list(clock.recent.values())
    flat = {
        name: np.concatenate([np.frombuffer(getattr(window, name)) for window in windows if getattr(window, name)])
        if any(getattr(window, name) for window in windows)
        else np.zeros(0)
        for name in ("edges", "labels", "sums")
    }
    counts = [[len(window.edges), len(window.labels)] for window in windows]
    return {"keys": np.array(keys, np.int64), "counts": np.array(counts, np.int64).reshape(-1, 2), **flat}


def _of_events(state: StreamState) -> dict[str, Array]:
    events = {id(event): event for event in state.unlabeled.values()}
    events |= {id(event): event for event in state.pending} | {id(each[2]): each[2] for each in state.arriving}
    at = {key: number for number, key in enumerate(events)}
    every = list(events.values())
    waiting = [at[id(event)] for event in state.unlabeled.values()]
    shape, width = (state.sums.rows.shape[0], state.clock.label_width, state.sums.message_width), state.sums.width
    return {
        "ends": np.array([[e.number, e.source, e.target] for e in every], np.int64).reshape(-1, 3),
        "times": np.array([event.time for event in every]),
        "labels": np.array([event.labels for event in every], np.float64).reshape(-1, *shape),
        "unlabeled": np.array(waiting, np.int64),
        "pending": np.array([at[id(event)] for event in state.pending], np.int64),
        "messages": np.array([event.messages for event in state.pending], np.float64).reshape(-1, shape[0], 3, width),
        "arriving": np.array([at[id(each[2])] for each in state.arriving], np.int64),
        "arrivals": np.array([each[0] for each in state.arriving]),
        "arriving_labels": np.array([each[3] for each in state.arriving], np.float64).reshape(-1, shape[1]),
    }


def from_arrays(encoder: CausalEncoder, arrays: Mapping[str, Array]) -> StreamState:
    """The state that `to_arrays` stored; a `ValueError` says what does not fit the encoder, or itself."""
    state = StreamState.empty(encoder)
    check = _Checked(arrays)
    nodes = check.rows("nodes.clock", *state.clock.rows.shape)
    pairs = check.rows("pairs.clock", *state.pair_clock.rows.shape)
    check.rows("nodes.sums", *state.sums.rows.shape, count=nodes)
    check.rows("pairs.sums", *state.pair_sums.rows.shape, count=pairs)
    if pairs < 1 or nodes >= MAX_NODES:
        raise ValueError(f"there are {nodes:,} nodes and {pairs:,} pairs, expected fewer, and one empty pair")
    now, number = check("now", np.float64, 1), check("num_events", np.int64, 1)
    state.now, state.num_events, state.num_nodes = float(now[0]), int(number[0]), nodes
    if np.isnan(state.now) or state.now == np.inf or state.num_events < 0:
        raise ValueError(f"now is {state.now} after {state.num_events} events, expected a time")
    keys = check("pairs", np.int64, pairs - 1)
    ends = np.stack([keys >> 32, keys & 0xFFFFFFFF])
    if len(np.unique(keys)) < len(keys) or bool((ends >= nodes).any() or (keys < 0).any()):
        raise ValueError(f"a pair comes twice, or is of nodes beyond the {nodes:,} that there are")
    state.pairs.set_rows(keys.tolist())
    for part, rows in (
        (state.clock.rows, "nodes.clock"),
        (state.sums.rows, "nodes.sums"),
        (state.pair_clock.rows, "pairs.clock"),
        (state.pair_sums.rows, "pairs.sums"),
    ):
        part.fill(check.finite(rows))
    if nodes:
        state.reserve(nodes - 1)
    for side, clock, count in (("nodes", state.clock, nodes), ("pairs", state.pair_clock, pairs)):
        clock.set_windows(_read_windows(check, f"{side}.windows", clock, count))
    _read_events(check, state, nodes, encoder)
    check.done()
    return state


def _read_windows(check: _Checked, name: str, clock: ClockState, rows: int) -> dict[int, Window]:
    keys = check(f"{name}.keys", np.int64, None)
    counts = check(f"{name}.counts", np.int64, len(keys), 2)
    if len(np.unique(keys)) < len(keys) or _beyond(keys, rows * clock.relations) or bool((counts < 0).any()):
        raise ValueError(f"{name} has a list twice, or one that is not there")
    if len(keys) and not clock.windows:
        raise ValueError(f"{name} has lists, expected none: the model has no windows")
    width = clock.label_width + 1
    edges = check.finite(f"{name}.edges", int(counts[:, 0].sum()))
    labels = check.finite(f"{name}.labels", int(counts[:, 1].sum()))
    sums = check.finite(f"{name}.sums", len(labels) * width)
    found, (first, other) = dict[int, Window](), (0, 0)
    for key, (n, m) in zip(keys.tolist(), counts.tolist(), strict=True):
        parts = edges[first : first + n], labels[other : other + m], sums[other * width : (other + m) * width]
        if any(bool((part[1:] < part[:-1]).any()) for part in parts[:2]):
            raise ValueError(f"{name} has times that are not in order")
        found[key] = Window(*(array("d", part.tobytes()) for part in parts))
        first, other = first + n, other + m
    return found


def _read_events(check: _Checked, state: StreamState, nodes: int, encoder: CausalEncoder) -> None:
    layers, width = state.sums.rows.shape[0], state.sums.width
    ends, dtype = check("events.ends", np.int64, None, 3), encoder.node_pre_layer.weight.detach().cpu().numpy().dtype
    times = check.finite("events.times", len(ends))
    labels = check.finite("events.labels", len(ends), layers, encoder.label_width, state.sums.message_width)
    waiting, pending, arriving = (
        check(f"events.{name}", np.int64, None) for name in ("unlabeled", "pending", "arriving")
    )
    messages = check.finite("events.messages", len(pending), layers, 3, width)
    arrivals = check.finite("events.arrivals", len(arriving))
    arriving_labels = check.finite("events.arriving_labels", len(arriving), encoder.label_width)
    every = np.concatenate([waiting, pending, arriving])
    again = any(len(np.unique(each)) < len(each) for each in (waiting, pending, arriving))
    if _beyond(ends[:, 1:].ravel(), nodes) or _beyond(every, len(ends)) or again:
        raise ValueError("an event comes twice, or is of a node that is not there")
    if np.isin(waiting, arriving).any():
        raise ValueError("an event has a label and waits for one")
    events = [
        SentEvent(number, source, target, time, None, own.astype(dtype))
        for (number, source, target), time, own in zip(ends.tolist(), times.tolist(), labels, strict=True)
    ]
    state.unlabeled = {events[row].number: events[row] for row in waiting.tolist()}
    for row, message in zip(pending.tolist(), messages, strict=True):
        events[row].messages = message.astype(dtype)
        state.pending.append(events[row])
    for row, time, label in zip(arriving.tolist(), arrivals.tolist(), arriving_labels, strict=True):
        state.arriving.append((time, events[row].number, events[row], label.astype(dtype)))
    state.arriving.sort(key=lambda each: each[:2])  # a sorted list is a heap


def _beyond(rows: Array, count: int) -> bool:
    return bool(((rows < 0) | (rows >= count)).any())


class _Checked:
    """Arrays by name, of which each is asked for once and has the shape and the type that is expected."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self.arrays, self.asked = arrays, set[str]()

    def __call__(self, name: str, dtype: Any, *shape: int | None) -> Array:
        """An array of a shape, in which None is any size."""
        self.asked.add(name)
        found = self.arrays.get(name)
        if found is None:
            raise ValueError(f"{name} is missing")
        fits = found.ndim == len(shape) and all(
            want in (None, size) for want, size in zip(shape, found.shape, strict=True)
        )
        if not fits or found.dtype != dtype:
            expected = tuple("any" if size is None else size for size in shape)
            raise ValueError(
                f"{name} has shape {found.shape} and {found.dtype}, expected {expected} and {np.dtype(dtype)}"
            )
        return found

    def finite(self, name: str, *shape: int | None) -> Array:
        """An array of finite numbers; of any shape if none is given."""
        found = self(name, np.float64, *shape) if shape else self.arrays[name]
        if not np.isfinite(found).all():
            raise ValueError(f"{name} has values that are not finite")
        return found

    def rows(self, name: str, *shape: int, count: int | None = None) -> int:
        """The number of rows of an array."""
        return len(self(name, np.float64, count, *shape))

    def done(self) -> None:
        """Raise if there are arrays that nobody asked for."""
        others: Sequence[str] = sorted(set(self.arrays) - self.asked)
        if others:
            raise ValueError(f"{others[0][:100]!r} is there, expected no such array")


__all__ = ["from_arrays", "to_arrays"]
