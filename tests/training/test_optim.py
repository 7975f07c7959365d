"""Schedules by their values, gradient clipping against torch's, weight decay by name, frozen parameters."""

from __future__ import annotations

import copy
import math
from collections import OrderedDict

import pytest
import torch
from torch import nn

from censnet.errors import SettingsError
from censnet.nn.encoder import CensNet
from censnet.nn.ensemble import split_members, stack_members
from censnet.settings.schema import TrainingSettings
from censnet.training.optim import clip_gradients, lr_factor, make_optimizer, step_seed


def rates(steps: int, **settings: object) -> list[float]:
    stated = TrainingSettings(**settings)
    return [lr_factor(stated.schedule, stated.warmup, step, steps) for step in range(steps)]


def test_a_constant_rate_stays():
    assert set(rates(50)) == {1.0}


def test_a_cosine_starts_at_the_learning_rate_and_falls_to_zero():
    found = rates(1000, schedule="cosine")
    assert found[0] == 1.0
    assert found[500] == pytest.approx(0.5)
    assert found[-1] == pytest.approx(0.5 * (1 + math.cos(math.pi * 0.999)))
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize("schedule", ["constant", "cosine", "warmup-cosine"])
def test_a_warmup_rises_linearly_to_the_learning_rate(schedule):
    found = rates(1000, schedule=schedule, warmup=0.1)
    assert found[0] == pytest.approx(0.04 + 0.96 / 100)
    assert found[49] == pytest.approx(0.04 + 0.96 / 2)
    assert found[99] == pytest.approx(1.0) == pytest.approx(found[100])
    assert max(found) == pytest.approx(1.0)


def test_warmup_cosine_ends_at_a_ten_thousandth():
    found = rates(10_000, schedule="warmup-cosine", warmup=0.1)
    assert found[1000] == pytest.approx(1.0)
    assert found[-1] == pytest.approx(1e-4, rel=1e-2)


@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize("warmup", [0.0, 0.3, 0.99])
@pytest.mark.parametrize("schedule", ["constant", "cosine", "warmup-cosine"])
def test_short_trainings_have_a_schedule_too(steps, warmup, schedule):
    assert all(0 < rate <= 1 for rate in rates(steps, schedule=schedule, warmup=warmup))


@pytest.mark.parametrize("longest", [1e-3, 1.0, 1e3])
def test_clipping_of_one_model_is_torchs(longest):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2))
    model(torch.randn(5, 4)).square().sum().backward()
    twin = copy.deepcopy(model)
    for parameter, other in zip(model.parameters(), twin.parameters(), strict=True):
        other.grad = parameter.grad.clone()
    clip_gradients(list(model.parameters()), longest)
    nn.utils.clip_grad_norm_(twin.parameters(), longest)
    for parameter, other in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad, other.grad)


def test_members_are_clipped_each_by_itself():
    torch.manual_seed(0)
    alone = [CensNet(3, 2, 4, "NE", norm="batch") for _ in range(3)]
    many = stack_members(alone)
    for number, parameter in enumerate(many.parameters()):
        parameter.grad = torch.randn_like(parameter) * (number + 1)
    for model, grads in zip(alone, _gradients(many), strict=True):
        for name, parameter in model.named_parameters():
            parameter.grad = grads[name]
    clip_gradients(list(many.parameters()), 0.5, members=3)
    for model, grads in zip(alone, _gradients(many), strict=True):
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        for name, parameter in model.named_parameters():
            torch.testing.assert_close(parameter.grad, grads[name])


def _gradients(many: nn.Module) -> list[dict[str, torch.Tensor]]:
    """The gradient of each member, by the names of its parameters."""
    holder = copy.deepcopy(many)
    with torch.no_grad():
        for parameter, own in zip(holder.parameters(), many.parameters(), strict=True):
            parameter.copy_(own.grad)
    return [{name: p.detach().clone() for name, p in member.named_parameters()} for member in split_members(holder)]


def test_weight_decay_is_that_of_the_longest_name_that_fits():
    model = nn.ModuleDict({"encoder": nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)), "head": nn.Linear(2, 1)})
    settings = TrainingSettings(weight_decay=0.1, weight_decay_by_name={"encoder": 0.2, "encoder.1": 0.3})
    optimizer = make_optimizer(model, settings)
    decay = {id(p): group["weight_decay"] for group in optimizer.param_groups for p in group["params"]}
    found = {name: decay[id(p)] for name, p in model.named_parameters()}
    assert found == {
        "encoder.0.weight": 0.2, "encoder.0.bias": 0.2, "encoder.1.weight": 0.3, "encoder.1.bias": 0.3,
        "head.weight": 0.1, "head.bias": 0.1,
    }  # fmt: skip


@pytest.mark.parametrize(("name", "kind"), [("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW)])
def test_the_optimizer_is_torchs_own(name, kind):
    torch.manual_seed(0)
    model, twin = nn.Linear(3, 1), nn.Linear(3, 1)
    twin.load_state_dict(model.state_dict())
    ours = make_optimizer(model, TrainingSettings(optimizer=name, learning_rate=0.1, weight_decay=0.01))
    theirs = kind(twin.parameters(), lr=0.1, weight_decay=0.01)
    for _ in range(5):
        x = torch.randn(4, 3)
        for network, optimizer in ((model, ours), (twin, theirs)):
            optimizer.zero_grad()
            network(x).square().sum().backward()
            optimizer.step()
    torch.testing.assert_close(model.weight, twin.weight)


def test_a_weight_decay_may_name_the_end_of_parameters_and_the_last_that_fits_counts() -> None:
    model = nn.Sequential(OrderedDict(encoder=nn.Linear(2, 2), head=nn.Linear(2, 2)))
    settings = TrainingSettings(weight_decay=0.1, weight_decay_by_name={"encoder": 0.2, ".bias": 0.3})
    found = {
        id(p): group["weight_decay"] for group in make_optimizer(model, settings).param_groups for p in group["params"]
    }
    named = {name: found[id(parameter)] for name, parameter in model.named_parameters()}
    assert named == {"encoder.weight": 0.2, "encoder.bias": 0.3, "head.weight": 0.1, "head.bias": 0.3}


def test_a_weight_decay_by_a_name_that_fits_nothing_is_an_error():
    with pytest.raises(
        SettingsError, match="weight_decay_by_name has 'pooling', which no parameter begins or ends with: weight"
    ):
        make_optimizer(nn.Linear(2, 2), TrainingSettings(weight_decay_by_name={"pooling": 0.1}))


def test_every_step_of_every_training_has_a_seed_of_its_own():
    seeds = {step_seed(seed, number) for seed in range(20) for number in range(-50, 500)}
    assert len(seeds) == 20 * 550
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert step_seed(0, 1) == step_seed(0, 1)
