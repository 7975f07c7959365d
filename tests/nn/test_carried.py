"""A history in chunks with carried sums gives what the whole history gives, whatever the bounds, delays and ties."""

from __future__ import annotations

import pytest
import torch
from timed_samples import CASES, Timed, encoder_of, timed
from torch import Tensor

from censnet.nn.carried import CarriedSums, ChunkInput
from censnet.nn.causal_encoder import CausalEncoder
from censnet.ops.graph import Graph

NO_DECAY = [(ties, delay, 0, windows) for ties, delay, _, windows in CASES]


def graph_of(sample: Timed) -> Graph:
    return Graph(sample.nodes, sample.edges, sample.incidence.ends, directed=True, times=sample.times)


def whole(encoder: CausalEncoder, graph: Graph) -> Tensor:
    assert graph.times is not None
    found: Tensor = encoder(graph.nodes, graph.edges, graph.incidence, graph.times)[1]
    return found


def in_chunks(encoder: CausalEncoder, graph: Graph, bounds: Tensor) -> Tensor:
    assert graph.times is not None
    chunk = torch.searchsorted(bounds, graph.times, right=True)
    found = torch.full((graph.num_edges, 3 * encoder.hidden), torch.nan, dtype=graph.edges.dtype)
    carried: list[CarriedSums] = []
    clocks: dict[int, tuple[Tensor, Tensor]] = {}
    for number in range(len(bounds) + 1):
        part = encoder.forward_chunk(ChunkInput(graph, bounds, number, carried, clocks))
        found[chunk == number] = part
    return found


@pytest.mark.parametrize("case", NO_DECAY)
@pytest.mark.parametrize("seed", range(5))
def test_chunks_are_the_whole_history(case: tuple[str, float, int, tuple[float, ...]], seed: int) -> None:
    encoder, sample = encoder_of(case), timed(seed)
    generator = torch.Generator().manual_seed(seed)
    bounds = (torch.rand(seed, generator=generator, dtype=torch.float64) * sample.times.max()).sort().values
    bounds = torch.cat([bounds, sample.times[20:21]]).sort().values  # also one at the time of an edge
    with torch.no_grad():
        found = in_chunks(encoder, graph_of(sample), bounds)
        torch.testing.assert_close(found, whole(encoder, graph_of(sample)), rtol=1e-10, atol=1e-10)


def test_a_chunk_has_the_gradient_of_its_own_messages() -> None:
    encoder, sample = encoder_of(NO_DECAY[0]), timed(3)
    graph, bounds = graph_of(sample), sample.times[20:21]
    later = torch.searchsorted(bounds, sample.times, right=True) == 1

    def loss(encoder: CausalEncoder, chunks: bool) -> list[Tensor]:
        found = in_chunks(encoder, graph, bounds) if chunks else whole(encoder, graph)
        (found[~later] ** 2).sum().backward()
        return [weight.grad.clone() for weight in encoder.parameters() if weight.grad is not None]

    torch.testing.assert_close(loss(encoder_of(NO_DECAY[0]), True), loss(encoder, False), rtol=1e-8, atol=1e-8)


def test_decays_are_refused() -> None:
    sample = timed(0)
    with pytest.raises(ValueError, match="no rates"):
        in_chunks(encoder_of(CASES[1]), graph_of(sample), sample.times[20:21])
