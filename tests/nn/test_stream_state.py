"""The state of a stream: stored at any moment, made from a whole history at once, and bounded."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from timed_samples import CASES, Timed, encoder_of, timed

from censnet.nn.causal_encoder import CausalEncoder
from censnet.nn.causal_stream import CausalStream
from censnet.nn.growing_rows import GrowingRows
from censnet.nn.stream_arrays import from_arrays, to_arrays
from censnet.nn.stream_clock import ClockState
from censnet.nn.stream_warm_up import state_after
from censnet.ops.incidence import Incidence

Case = tuple[str, float, int, tuple[float, ...]]


def step(stream: CausalStream, sample: Timed, row: int, tell: bool = True) -> np.ndarray:
    nodes, edges = sample.nodes.numpy(), sample.edges.numpy()
    source, target = sample.incidence.ends[:, row].tolist()
    found = stream.step(source, target, float(sample.times[row]), nodes[source], nodes[target], edges[row, :2], row)
    if tell and edges[row, 2:].any():
        stream.set_label(row, edges[row, 2:])
    return found


@pytest.mark.parametrize("case", CASES)
def test_a_stored_state_goes_on_to_the_same_bits(case: Case) -> None:
    encoder, sample = encoder_of(case).float(), timed(3)
    stream, resumed = CausalStream(encoder), CausalStream(encoder)
    for row in range(len(sample.times)):
        stored = {name: values.copy() for name, values in to_arrays(resumed.state).items()}
        resumed = CausalStream(encoder, from_arrays(encoder, stored))
        assert (step(stream, sample, row) == step(resumed, sample, row)).all()


@pytest.mark.parametrize("case", CASES)
def test_state_of_a_history_is_that_of_its_events(case: Case) -> None:
    encoder = encoder_of(case)
    for seed in range(4):
        sample = timed(seed)
        for count in (1, 17, 40):
            part = Incidence(sample.incidence.ends[:, :count], sample.incidence.num_nodes)
            at_once = state_after(encoder, sample.nodes, sample.edges[:count], part, sample.times[:count])
            stream = CausalStream(encoder)
            stream.state.reserve(part.num_nodes - 1)
            for row in range(count):
                step(stream, sample, row)
            other = CausalStream(encoder, at_once)
            check_same_rows(stream, other)
            assert (at_once.now, at_once.num_events) == (stream.state.now, count)
            assert set(at_once.unlabeled) == set(stream.state.unlabeled)
            for row in range(count, len(sample.times)):
                np.testing.assert_allclose(step(other, sample, row), step(stream, sample, row), rtol=1e-9, atol=1e-9)


def check_same_rows(one: CausalStream, other: CausalStream) -> None:
    """Sums and clocks of all nodes and pairs."""
    first, second = (to_arrays(stream.state) for stream in (one, other))
    order = [np.argsort(each["pairs"]) + 1 for each in (first, second)]
    for name in ("nodes.clock", "nodes.sums", "pairs.clock", "pairs.sums"):
        one_row, other_row = (
            each[name][places] if name.startswith("pairs") else each[name]
            for each, places in zip((first, second), order, strict=True)
        )
        np.testing.assert_allclose(one_row, other_row, rtol=1e-9, atol=1e-9)


def test_rows_of_a_history_may_be_in_any_order() -> None:
    encoder, sample = encoder_of(CASES[1]), timed(2)
    order = torch.randperm(len(sample.times), generator=torch.Generator().manual_seed(1))
    part = Incidence(sample.incidence.ends[:, order], sample.incidence.num_nodes)
    mixed = state_after(encoder, sample.nodes, sample.edges[order], part, sample.times[order], order.tolist())
    plain = state_after(encoder, sample.nodes, sample.edges, sample.incidence, sample.times)
    check_same_rows(CausalStream(encoder, mixed), CausalStream(encoder, plain))
    assert set(mixed.unlabeled) == set(plain.unlabeled)


def test_windows_keep_little_beside_what_they_hold() -> None:
    clock = ClockState(1, 1, (5.0,))
    clock.reserve(999)
    for time in range(20_000):
        clock.add(time % 1000, 0, float(time))
        clock.add_label(time % 1000, 0, np.ones(1), float(time))
    kept = sum(len(window.edges) + len(window.labels) for window in clock.recent.values())
    assert kept < 2000
    assert len(clock.recent) == len(clock._order) < 1000


def test_a_long_window_drops_shares_at_once() -> None:
    clock = ClockState(1, 1, (1000.0,))
    clock.reserve(0)
    sizes = list[int]()
    for time in range(5000):
        clock.add(0, 0, float(time))
        clock.add_label(0, 0, np.ones(1), float(time))
        sizes.append(len(clock.recent[0].edges))
        found: list[float] = []
        clock._describe_windows(found, clock.recent[0], [time + 1.0], time + 1.0, float(time))
        seen = min(time, 1000) + 1
        assert found[0] == pytest.approx(np.log1p(seen) / 2)
        assert found[1:] == pytest.approx([seen / (seen + 1), np.log1p(seen) / 2])
    assert max(sizes) < 1080  # at most one part in 16 more than the window holds
    assert np.mean(np.diff(sizes[2000:]) < 0) < 0.02  # seldom moved


def test_rows_grow_without_a_copy() -> None:
    rows = GrowingRows(3)
    rows.reserve(10)
    first = rows[10]
    rows.reserve(100_000)
    first[:] = 7
    assert rows[10].tolist() == [7, 7, 7]
    assert rows.stacked(100_001).shape == (100_001, 3)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("nodes.sums", lambda x: x[:, :, :-1], r"nodes\.sums has shape .* expected"),
        ("nodes.clock", lambda x: x * np.nan, r"nodes\.clock has values that are not finite"),
        ("now", lambda x: x * np.nan, "now is nan after 40 events, expected a time"),
        ("pairs", lambda x: x * 0, "a pair comes twice, or is of nodes beyond"),
        ("events.ends", lambda x: x + 1000, "an event comes twice, or is of a node that is not there"),
        ("events.unlabeled", lambda x: x * 0, "an event comes twice"),
        ("nodes.windows.keys", lambda x: x + 10**6, "has a list twice, or one that is not there"),
        ("nodes.windows.edges", lambda x: x[::-1], "has times that are not in order"),
        ("nodes.windows.counts", lambda x: x - 1000, "has a list twice, or one that is not there"),
        ("events.times", lambda x: x.astype(np.float32), "expected .* and float64"),
    ],
)
def test_arrays_that_are_no_state_are_refused(name: str, change: object, words: str) -> None:
    encoder, sample = encoder_of(CASES[1]), timed(0)
    stream = CausalStream(encoder)
    for row in range(len(sample.times)):
        step(stream, sample, row)
    stored = to_arrays(stream.state)
    stored[name] = change(stored[name])  # type: ignore[operator]
    with pytest.raises(ValueError, match=words):
        from_arrays(encoder, stored)
    with pytest.raises(ValueError, match="'more' is there, expected no such array"):
        from_arrays(encoder, {**to_arrays(stream.state), "more": np.zeros(1)})
    with pytest.raises(ValueError, match="now is missing"):
        from_arrays(encoder, {name: x for name, x in to_arrays(stream.state).items() if name != "now"})


def test_a_state_is_of_its_encoder() -> None:
    encoder, sample = encoder_of(CASES[1]), timed(0)
    stream = CausalStream(encoder)
    step(stream, sample, 0)
    with pytest.raises(ValueError, match=r"nodes\.sums has shape"):
        from_arrays(CausalEncoder(3, 4, 2, 16, "CC", windows=(1.0,)), to_arrays(stream.state))
