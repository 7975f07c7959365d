"""Equal neighborhoods are computed once: as without that, to rounding, in all outputs, gradients and statistics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from censnet.nn import CensNet
from censnet.nn.ensemble import stack_members
from censnet.ops import quotient
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.ops.incidence import Incidence

OPTIONS: dict[str, Any] = {
    "heads": 8, "self_weight": "learned", "gate": "bounded", "norm": "batch", "residual": True,
    "pre_layers": 1, "edge_pre_layer": True,
}  # fmt: skip
CHANGES: dict[str, dict[str, Any]] = {
    "as the preset": {},
    "one head": {"heads": 1},
    "two heads, row": {"heads": 2, "normalization": "row"},
    "content": {"edge_content": True},
    "linear gates, layer norm": {"gate": "linear", "norm": "layer"},
    "rezero": {"residual": "rezero"},
    "without what is optional": {"norm": None, "residual": False, "pre_layers": 0, "edge_pre_layer": False},
}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotient, "FEWEST", 1)


def molecules(count: int = 40) -> Graph:
    """Random trees with some rings of few kinds of nodes and edges, a graph of one node, and two parallel edges."""
    draw = torch.Generator().manual_seed(0)

    def features(n: int, kinds: int) -> Tensor:
        table = torch.randn(kinds, 3, generator=torch.Generator().manual_seed(kinds), dtype=torch.float64)
        return table[torch.randint(kinds, (n,), generator=draw)]

    graphs = [Graph(features(1, 2), features(0, 2), torch.empty(2, 0, dtype=torch.int64))]
    for _ in range(count):
        size = int(torch.randint(2, 9, (1,), generator=draw))
        ends = torch.stack(
            [torch.arange(1, size), (torch.rand(size - 1, generator=draw) * torch.arange(1, size)).long()]
        )
        if size > 6:
            ends = torch.cat([ends, torch.tensor([[0, 0], [size - 1, size - 1]])], dim=1)
        graphs.append(Graph(features(size, 2), features(ends.shape[1], 2), ends))
    return GraphSet.pack(graphs).batch(torch.arange(count + 1))


def make(**changes: Any) -> CensNet:
    torch.manual_seed(0)
    encoder = CensNet(3, 3, 8, "NENEN", **{**OPTIONS, **changes}).double()
    for parameter in encoder.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return encoder


def outcome(encoder: CensNet, graph: Graph) -> Iterator[Tensor]:
    """Embeddings, gradients and running statistics."""
    encoder.zero_grad()
    nodes, edges = encoder(graph.nodes, graph.edges, graph.incidence)
    draw = torch.Generator().manual_seed(1)
    loss = sum(
        (torch.randn(rows.shape, generator=draw, dtype=rows.dtype) * rows.sin()).sum() for rows in (nodes, edges)
    )
    loss.backward()
    yield from (nodes, edges)
    yield from (parameter.grad for parameter in encoder.parameters() if parameter.grad is not None)
    yield from (buffer.clone() for buffer in encoder.buffers())


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of colors of nodes that were used."""
    found = []

    def find(*arguments: Any) -> quotient.Quotient | None:
        quotient_of_batch = quotient.find_quotient(*arguments)
        if quotient_of_batch is not None:
            found.append(len(quotient_of_batch.nodes.first))
        return quotient_of_batch

    monkeypatch.setattr("censnet.nn.encoder.find_quotient", find)
    return found


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", CHANGES)
def test_the_quotient_computes_the_same(
    name: str, training: bool, used: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = molecules()
    found = list(outcome(make(**CHANGES[name]).train(training), graph))
    assert len(used) == 1
    assert used[0] < graph.num_nodes / 4
    monkeypatch.setattr(CensNet, "quotient", lambda *_: None)
    for one, other in zip(found, outcome(make(**CHANGES[name]).train(training), graph), strict=True):
        torch.testing.assert_close(one, other, atol=1e-9, rtol=1e-9)


def test_members_share_the_colors(used: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    graph = molecules()
    encoder = stack_members([make(), make(gate="bounded")])
    found = list(outcome(encoder, graph))
    assert used
    monkeypatch.setattr(CensNet, "quotient", lambda *_: None)
    encoder = stack_members([make(), make()])
    for one, other in zip(found, outcome(encoder, graph), strict=True):
        torch.testing.assert_close(one, other, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize(
    "changes", [{"dropout": 0.1}, {"self_weight": "one"}, {"directed": True}, {"kernel": "pagerank"}, {"out_width": 2}]
)
def test_other_models_do_not_use_it(changes: dict[str, Any], used: list[int]) -> None:
    graph = molecules()
    make(**changes)(graph.nodes, graph.edges, graph.incidence)
    assert not used


def test_a_model_with_dropout_uses_it_for_predictions(used: list[int]) -> None:
    graph = molecules()
    make(dropout=0.1).eval()(graph.nodes, graph.edges, graph.incidence)
    assert used


def test_different_features_are_not_searched(used: list[int]) -> None:
    graph = molecules()
    make()(torch.randn(graph.num_nodes, 3, dtype=torch.float64), graph.edges, graph.incidence)
    loop = Incidence(torch.tensor([[0, 1], [0, 0]]), 2, torch.tensor([0, 0]), 1)
    make()(torch.ones(2, 3, dtype=torch.float64), torch.ones(2, 3, dtype=torch.float64), loop)
    assert not used


def test_random_numbers_stay_where_more_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotient, "_table", torch.empty(3, 0, dtype=torch.int64))
    few = quotient._random(10).clone()
    assert quotient._random(1000)[:, : few.shape[1]].equal(few)
