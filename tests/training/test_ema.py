"""Exponential moving average: torch's AveragedModel with a decay that grows during the first steps."""

from __future__ import annotations

import torch
from torch import nn

from censnet.training.ema import EMA


def test_the_average_is_that_of_the_formula_to_the_bit():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    ema, decay = EMA(model, 0.6), 0.6
    expected = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for step in range(30):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter))
        model(torch.randn(5, 3))  # moves the running statistics
        ema.update_parameters(model)
        share = 1 - min(decay, (1 + step) / (10 + step))
        for name, tensor in model.state_dict().items():
            old = expected[name]
            expected[name] = old.lerp(tensor, share) if tensor.is_floating_point() else tensor.clone()
        for name, tensor in ema.module.state_dict().items():
            assert tensor.equal(expected[name]), name


def test_a_restored_average_goes_on_to_the_same_bits():
    def moved(model: nn.Module, ema: EMA, steps: int) -> None:
        for _ in range(steps):
            with torch.no_grad():
                model.weight.add_(torch.randn_like(model.weight))
            ema.update_parameters(model)

    torch.manual_seed(0)
    model = nn.Linear(3, 4)
    ema = EMA(model, 0.9)
    moved(model, ema, 5)
    state, weights = ema.state_dict(), model.state_dict()
    other = nn.Linear(3, 4)
    again = EMA(other, 0.9)
    other.load_state_dict(weights)
    again.load_state_dict(state)
    for one, average in ((model, ema), (other, again)):
        torch.manual_seed(1)
        moved(one, average, 20)
    assert again.module.weight.equal(ema.module.weight)
