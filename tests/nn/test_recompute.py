"""Recomputation: the same bits from less memory."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from censnet.inspection.peak_memory import PeakMemory
from censnet.nn import CausalEncoder, CensNet, LayerOptions
from censnet.nn.oriented_encoder import OrientedNet
from censnet.ops import Incidence

TANGLE = Incidence(torch.tensor([[0, 1, 2, 1, 3, 3, 3], [1, 2, 0, 0, 3, 0, 3]]), 5)  # parallel, loops, an isolated node
TIMES = torch.arange(7, dtype=torch.float64)
DIRECTED = LayerOptions(self_weight="learned", normalization="row", gate="bounded", directed=True, edge_content=True)
MAKE: dict[str, Callable[[], nn.Module]] = {
    "paper": lambda: CensNet(4, 6, 8, "NENE", dropout=0.3),
    "released": lambda: CensNet(4, 6, 6, "NEN", variant="released", dropout=0.3),
    "directed": lambda: CensNet(
        4, 6, 8, "ENE", norm="batch", residual=True, dropout=0.3, pre_layers=1, options=DIRECTED
    ),
    "rezero": lambda: CensNet(4, 6, 8, "NENE", norm="layer", residual="rezero", edge_pre_layer=True, pre_layers=1),
    "oriented": lambda: OrientedNet(4, 6, 2, hidden=8, layers="ENEN", norm="batch", residual="rezero", potentials=4),
    "causal": lambda: CausalEncoder(4, 6, 2, 8, "CC", dropout=0.3, windows=(2.0,)),
}


def train(model: nn.Module, steps: int = 3) -> dict[str, Tensor]:
    """The parameters and running statistics after some steps, and the last gradients."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    torch.manual_seed(1)
    nodes, edges = torch.randn(5, 4), torch.rand(7, 6) + 0.5
    for _ in range(steps):
        found = model(nodes, edges, TANGLE, *([TIMES] if getattr(model, "reads_times", False) else []))
        optimizer.zero_grad()
        sum(each.square().mean() for each in found).backward()
        optimizer.step()
    gradients = {f"gradient of {name}": weight.grad for name, weight in model.named_parameters()}
    return {**model.state_dict(), **{name: grad for name, grad in gradients.items() if grad is not None}}


@pytest.mark.parametrize("kind", MAKE)
def test_recomputed_trainings_have_the_same_bits(kind: str) -> None:
    trained = []
    for recompute in (False, True):
        torch.manual_seed(0)
        model = MAKE[kind]()
        model.recompute = recompute  # type: ignore[assignment]
        trained.append(train(model))
    assert trained[0].keys() == trained[1].keys()
    for name, value in trained[0].items():
        assert torch.equal(value, trained[1][name]), name


@pytest.mark.parametrize("kind", ["directed", "causal"])
def test_each_layer_is_computed_twice_in_training_and_once_otherwise(kind: str) -> None:
    model = MAKE[kind]()
    model.recompute = True  # type: ignore[assignment]
    calls = list[int]()
    model.get_submodule("layers.0").register_forward_hook(lambda *_: calls.append(1))
    train(model, steps=1)
    assert len(calls) == 2
    model.eval()
    train(model, steps=1)
    assert len(calls) == 3


def test_layers_keep_their_inputs_alone() -> None:
    generator = torch.Generator().manual_seed(0)
    graph = Incidence(torch.randint(300, (2, 3000), generator=generator), 300)
    inputs = torch.randn(300, 16, generator=generator), torch.randn(3000, 16, generator=generator)
    peaks = []
    for recompute in (False, True):
        model = CensNet(16, 16, 16, "ENENENEN", norm="layer", residual=True, dropout=0.3, options=DIRECTED)
        model.recompute = recompute
        model(*inputs, graph)  # what is computed once for a graph
        with PeakMemory() as memory:
            sum(each.sum() for each in model(*inputs, graph)).backward()
        peaks.append(memory.peak)
    assert peaks[1] < 0.5 * peaks[0]
