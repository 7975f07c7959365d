"""The causal encoder: dense masks, the scan and the stream give one function, and no future or own label enters it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from timed_samples import CASES, Timed, encoder_of, timed
from torch import Tensor

from censnet.nn.causal import CausalLayer, is_known
from censnet.nn.causal_encoder import CausalEncoder
from censnet.nn.causal_stream import CausalStream
from censnet.nn.clock import clock_of_nodes
from censnet.ops import textbook
from censnet.ops.history import History
from censnet.ops.incidence import Incidence

# -- dense ------------------------------------------------------------------------------------------------------------


def dense_layer(layer: CausalLayer, h: Tensor, x: Tensor, labels: Tensor, history: History) -> tuple[Tensor, Tensor]:
    """The docstring of `CausalLayer` with masks (2E + N, E), for ties by time."""
    (start, end), n, t = history.incidence.ends, history.incidence.num_nodes, history.times
    arrival = t if history.arrivals is None else history.arrivals
    later = torch.nextafter(t.max(), torch.tensor(torch.inf).double()).expand(n)
    asked, now = torch.cat([start, end, torch.arange(n)]), torch.cat([t, t, later])
    width = layer.width
    gate_o, gate_i, u_o, u_i, u_p, own, label = (h @ layer.edge_weight).split(
        [width] * 6 + [layer.label_width * layer.message_width], 1
    )
    x_s, x_t = x[: len(h)], x[len(h) : 2 * len(h)]
    p = 2 * torch.sigmoid(gate_o) * (x_t @ layer.out_weight) + u_o
    q = 2 * torch.sigmoid(gate_i) * (x_s @ layer.in_weight) + u_i
    each = label.view(len(h), layer.label_width, -1) + layer.label_bias
    said = torch.einsum("ek,ekc->ec", labels, each)
    known = is_known(labels)

    def mean(
        key: Tensor, entry: Tensor, asked: Tensor, now: Tensor, rows: Tensor, count: Tensor, decays: bool
    ) -> Tensor:
        rates = layer.rates if decays else None
        half = rows.shape[1] // 2
        A = textbook.past(key, entry, asked, now)
        plain = A @ rows / (A @ count).clamp(min=1)
        if rates is None:
            return plain
        found = [plain[:, :half]]
        for rate, share in zip(rates, rows[:, half:].chunk(len(rates), 1), strict=True):
            A = textbook.past(key, entry, asked, now, rate=float(rate.detach()))
            found.append(A @ share / (A @ count).clamp(min=1))
        return torch.cat(found, 1)

    one = torch.ones_like(known)
    z = [mean(start, t, asked, now, p, one, True), mean(end, t, asked, now, q, one, True)]
    z += [mean(key, arrival, asked, now, said, known, True) for key in (start, end)]
    seen = torch.cat(z, 1)
    pair, back = start * n + end, end * n + start
    pairs = [
        torch.cat([mean(pair, t, to, t, u_p, one, False), mean(pair, arrival, to, t, said, known, False)], 1)
        for to in (pair, back)
    ]
    out = own + layer.edge_bias + pairs[0] @ layer.parallel_seen + pairs[1] @ layer.reciprocal_seen
    for state, z_v, weight, of_seen in (
        (x_s, seen[: len(h)], layer.start_weight, layer.start_seen),
        (x_t, seen[len(h) : 2 * len(h)], layer.end_weight, layer.end_seen),
    ):
        gate, content = (state @ weight).chunk(2, 1)
        out = out + content + 2 * torch.sigmoid(gate) * (z_v @ of_seen)
    return out, x @ layer.node_weight + seen @ layer.node_seen + layer.node_bias


FEW, MANY = range(6), range(6, 250)  # histories of each of four cases: 1,000 in all


@pytest.mark.parametrize("seeds", [FEW, pytest.param(MANY, marks=pytest.mark.slow)], ids=["few", "many"])
@pytest.mark.parametrize("delay", [0.0, 1.0])
@pytest.mark.parametrize("rates", [0, 2])
def test_layer_is_the_dense_rule_with_gradients(delay: float, rates: int, seeds: range) -> None:
    for seed in seeds:
        sample = timed(seed)
        layer = CausalLayer(8, 2, 4, rates, (0.5, 3.0)[:rates]).double()
        generator = torch.Generator().manual_seed(seed)
        for weight in layer.parameters():
            weight.data.normal_(0, 0.5, generator=generator)
        arrivals = sample.times + delay if delay else None
        history = History(sample.incidence, sample.times, arrivals)
        count, labels = len(sample.times), sample.edges[:, 2:]
        h, x = (
            torch.randn(n, 8, generator=generator, dtype=torch.float64).requires_grad_()
            for n in (count, 2 * count + sample.incidence.num_nodes)
        )
        found = [layer(h, x, labels, history), dense_layer(layer, h, x, labels, history)]
        names = [name for name, _ in layer.named_parameters() if name != "log_rate"]
        of = [h, x, *(layer.get_parameter(name) for name in names)]
        for mine, expected in zip(*found, strict=True):
            torch.testing.assert_close(mine, expected, rtol=1e-10, atol=1e-10)
            grad = torch.randn(mine.shape, generator=generator, dtype=torch.float64)
            gradients = (
                torch.autograd.grad(out, of, grad, allow_unused=True, retain_graph=True) for out in (mine, expected)
            )
            for one, other in zip(*gradients, strict=True):
                assert (one is None) == (other is None)
                if one is not None:
                    torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


def test_rates_are_learned() -> None:
    sample, layer = timed(1), CausalLayer(4, 2, 4, 2, (0.5, 3.0)).double()
    history = History(sample.incidence, sample.times)
    h, x = torch.randn(40, 4).double(), torch.randn(80 + sample.incidence.num_nodes, 4).double()

    def loss(log_rate: Tensor) -> Tensor:
        values = {"log_rate": log_rate}
        edges, states = torch.func.functional_call(layer, values, (h, x, sample.edges[:, 2:], history))
        return (edges**2).sum() + (states**3).sum()

    assert layer.log_rate is not None
    assert torch.autograd.gradcheck(loss, (layer.log_rate.detach().clone().requires_grad_(),))


# -- the stream -------------------------------------------------------------------------------------------------------


def after(sample: Timed) -> float:
    """A time right after the last edge."""
    return float(np.nextafter(float(sample.times[-1]), np.inf))


def run_stream(encoder: CausalEncoder, sample: Timed) -> tuple[np.ndarray, np.ndarray]:
    """The embeddings of all edges, and of the nodes after the last one, event by event."""
    stream, found = CausalStream(encoder), []
    nodes, edges = sample.nodes.numpy(), sample.edges.numpy()
    for number, (s, t) in enumerate(sample.incidence.ends.t().tolist()):
        found.append(stream.step(s, t, float(sample.times[number]), nodes[s], nodes[t], edges[number, :2]))
        if edges[number, 2:].any():
            stream.set_label(number, edges[number, 2:])
    return np.stack(found), np.stack([stream.node(v, nodes[v], after(sample)) for v in range(len(nodes))])


@pytest.mark.parametrize("seeds", [FEW, pytest.param(MANY, marks=pytest.mark.slow)], ids=["few", "many"])
@pytest.mark.parametrize("case", CASES)
def test_stream_is_the_batch_pass(case: tuple[str, float, int, tuple[float, ...]], seeds: range) -> None:
    encoder = encoder_of(case)
    for seed in seeds:
        sample = timed(seed)
        with torch.no_grad():
            as_of = torch.full((len(sample.nodes),), after(sample), dtype=torch.float64)
            nodes, edges = encoder(sample.nodes, sample.edges, sample.incidence, sample.times, as_of)
        by_event, states = run_stream(encoder, sample)
        np.testing.assert_allclose(by_event, edges.numpy(), rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(states, nodes.numpy(), rtol=1e-10, atol=1e-10)


def test_stream_in_float32_and_over_dropped_windows() -> None:
    encoder, sample = encoder_of(CASES[1]).float(), timed(0, edges=700)
    with torch.no_grad():
        _, edges = encoder(sample.nodes.float(), sample.edges.float(), sample.incidence, sample.times)
    by_event, _ = run_stream(encoder, sample)
    assert by_event.dtype == np.float32
    np.testing.assert_allclose(by_event, edges.numpy(), rtol=1e-3, atol=2e-4)


def test_stream_refuses_what_comes_late() -> None:
    stream = CausalStream(encoder_of(CASES[0]))
    zeros = np.zeros(3), np.zeros(3), np.zeros(2)
    stream.step(0, 1, 5.0, *zeros)
    with pytest.raises(ValueError, match=r"time is 4.0, expected 5.0 or later: the event comes late"):
        stream.step(0, 1, 4.0, *zeros)
    with pytest.raises(ValueError, match="event is 3, expected one of 1 events without a label"):
        stream.set_label(3, [1.0, 0.0])
    with pytest.raises(ValueError, match=r"time is 2.0, expected 5.0 or later: the label comes late"):
        stream.set_label(0, [1.0, 0.0], time=2.0)


# -- only the past ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "seeds", [range(5, 8), pytest.param(range(8, 28), marks=pytest.mark.slow)], ids=["few", "more"]
)
@pytest.mark.parametrize("case", CASES)
def test_nothing_that_is_later_changes_a_bit(case: tuple[str, float, int, tuple[float, ...]], seeds: range) -> None:
    encoders = [encoder_of(case).to(dtype) for dtype in (torch.float32, torch.float64)]
    for seed in seeds:
        sample = timed(seed)
        early = sample.times <= sample.times.median()
        other = torch.where(early.unsqueeze(1), sample.edges, sample.edges.flip(1) * 9)
        shorter = Incidence(sample.incidence.ends[:, early], sample.incidence.num_nodes)
        for encoder, tolerance in zip(encoders, (1e-5, 1e-12), strict=True):
            dtype = encoder.node_pre_layer.weight.dtype
            nodes, edges, later = (rows.to(dtype) for rows in (sample.nodes, sample.edges, other))
            with torch.no_grad():
                whole = encoder(nodes, edges, sample.incidence, sample.times)[1][early]
                changed = encoder(nodes, later, sample.incidence, sample.times)[1][early]
                rest = encoder(nodes, edges[early], shorter, sample.times[early])[1]
            assert torch.equal(whole, changed)
            torch.testing.assert_close(whole, rest, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("case", CASES)
def test_own_label_never_reaches_the_own_embedding(case: tuple[str, float, int, tuple[float, ...]]) -> None:
    encoder, sample = encoder_of(case), timed(8)
    edges = sample.edges.clone().requires_grad_()
    _, found = encoder(sample.nodes, edges, sample.incidence, sample.times)
    for number in range(0, len(edges), 7):
        (grad,) = torch.autograd.grad(found[number].sum(), edges, retain_graph=True)
        ahead = sample.times >= sample.times[number] if case[0] == "time" else torch.arange(len(edges)) >= number
        assert bool((grad[:, 2:][ahead] == 0).all())
        assert bool((grad[:, :2][ahead & (torch.arange(len(edges)) != number)] == 0).all())
        changed = sample.edges.clone()
        changed[number, 2:] = torch.tensor([5.0, 0.0])
        with torch.no_grad():
            again = encoder(sample.nodes, changed, sample.incidence, sample.times)[1]
        assert torch.equal(again[number], found[number].detach())


def test_a_node_is_what_it_is_as_of_a_time() -> None:
    encoder, sample = encoder_of(CASES[1]), timed(3)
    as_of = torch.full((len(sample.nodes),), float(sample.times.median()), dtype=torch.float64)
    early = sample.times <= as_of[0]
    shorter = Incidence(sample.incidence.ends[:, early], sample.incidence.num_nodes)
    with torch.no_grad():
        whole, _ = encoder(sample.nodes, sample.edges, sample.incidence, sample.times, as_of)
        rest, _ = encoder(sample.nodes, sample.edges[early], shorter, sample.times[early], as_of)
    torch.testing.assert_close(whole, rest, rtol=1e-12, atol=1e-12)


def test_renumbering_nodes_and_edges_renumbers_the_result() -> None:
    encoder, sample = encoder_of(CASES[1]), timed(4)
    generator = torch.Generator().manual_seed(0)
    nodes, edges = (torch.randperm(n, generator=generator) for n in (len(sample.nodes), len(sample.edges)))
    number = nodes.argsort()
    ends = number[sample.incidence.ends[:, edges]]
    with torch.no_grad():
        one = encoder(sample.nodes, sample.edges, sample.incidence, sample.times)
        incidence = Incidence(ends, len(nodes))
        other = encoder(sample.nodes[nodes], sample.edges[edges], incidence, sample.times[edges])
    torch.testing.assert_close(one[0][nodes], other[0], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(one[1][edges], other[1], rtol=1e-12, atol=1e-12)


def test_clock_counts_what_a_node_has_seen() -> None:
    path = Incidence(torch.tensor([[0, 0, 0], [1, 2, 2]]), num_nodes=3)
    history = History(path, torch.tensor([1.0, 3.0, 4.0]).double())
    labels, known = torch.tensor([[1.0], [5.0], [0.0]]), torch.tensor([1.0, 1.0, 0.0])
    clock = clock_of_nodes(history, labels, known, (1.5,), unit=1.0)
    gap = [np.log(2) / 4, np.log(1 + 1.5 / 1.01) / 4]  # 1 unit ago
    log = {count: np.log(1 + count) / 2 for count in (1, 2)}
    # two edges left node 0 before the last one: their labels 1 and 5; one of them within 1.5; the last label is 5
    expected = [log[2], *gap, 6 / 3, log[2], log[1], 5 / 2, log[1], 5, *gap]
    torch.testing.assert_close(clock[2, :11], torch.tensor(expected, dtype=torch.float32))
    torch.testing.assert_close(clock[2, -2:], torch.tensor([log[2], 0], dtype=torch.float32))  # neighbors out, in
    torch.testing.assert_close(clock[6, -2:], torch.tensor([log[2], 0], dtype=torch.float32))  # after a parallel edge
    assert not clock[0].any()


def test_the_last_labels_are_those_of_one_time_that_are_known() -> None:
    path = Incidence(torch.tensor([[0] * 5, [1, 2, 3, 4, 5]]), num_nodes=6)
    history = History(path, torch.tensor([1.0, 2.0, 2.0, 3.0, 4.0]).double())
    labels, known = torch.tensor([[1.0], [4.0], [6.0], [0.0], [9.0]]), torch.tensor([1.0, 1.0, 1.0, 0.0, 1.0])
    clock = clock_of_nodes(history, labels, known, (), unit=1.0)
    assert clock[:5, 5].tolist() == [0.0, 1.0, 1.0, 5.0, 5.0]


def test_what_would_see_the_future_is_refused() -> None:
    with pytest.raises(ValueError, match="norm is 'batch', expected 'layer' or None: statistics over rows"):
        CausalEncoder(1, 1, norm="batch")
    with pytest.raises(ValueError, match="layers is 'CN', expected letters C"):
        CausalEncoder(1, 1, layers="CN")
    with pytest.raises(ValueError, match="num_rates is 3, expected a divisor of half of width 8"):
        CausalLayer(8, 2, num_rates=3, time_scales=(1.0, 2.0, 3.0))
