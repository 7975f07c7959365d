"""Optimizer, learning-rate schedule, gradient clipping, frozen parameters, and the random seed of each step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils.hooks import RemovableHandle

from censnet.errors import SettingsError
from censnet.settings.schema import TrainingSettings

# Parameters that a model may lack, by its other settings
OPTIONAL = ("encoder", "encoder.pre_layers.0", "encoder.layers", "heads", "decoder", ".gate_weight", ".root_weight")


def make_optimizer(model: nn.Module, settings: TrainingSettings) -> Optimizer:
    """Adam or AdamW, with the weight decay that the settings give some parameters by name."""
    groups: dict[float, list[nn.Parameter]] = {}
    known = [name for name, _ in model.named_parameters()]
    for part in settings.weight_decay_by_name:
        if part not in OPTIONAL and not any(_is_of(part, name) for name in known):
            raise SettingsError(
                f"training.weight_decay_by_name has {part!r}, which no parameter begins or ends with: "
                f"{', '.join(known[:8])}"
            )
    for name, parameter in model.named_parameters():
        fitting = [decay for part, decay in settings.weight_decay_by_name.items() if _is_of(part, name)]
        groups.setdefault(fitting[-1] if fitting else settings.weight_decay, []).append(parameter)
    kind = torch.optim.Adam if settings.optimizer == "adam" else torch.optim.AdamW
    stated = [{"params": parameters, "weight_decay": decay} for decay, parameters in groups.items()]
    return kind(stated, lr=settings.learning_rate, fused=True)


def _is_of(part: str, name: str) -> bool:
    """Whether the name of a parameter begins or ends so."""
    return name.startswith(part) or name.endswith(part)


def freeze(model: nn.Module, frozen: Mapping[str, Tensor]) -> list[RemovableHandle]:
    """Zero the gradient of some parameters of some members, so that they keep their initial values.

    Args:
        model: a model of one member or several.
        frozen: pattern of names of parameters (`fnmatch`) -> whether they are frozen in each member, (members,).

    Returns:
        handles whose `remove` ends it.
    """

    def zero_grad_of(members: Tensor, gradient: Tensor) -> Tensor:
        return gradient.reshape(len(members), -1).masked_fill(members.unsqueeze(1), 0).view_as(gradient)

    return [
        parameter.register_hook(partial(zero_grad_of, members))  # type: ignore[no-untyped-call]
        for pattern, members in frozen.items()
        for name, parameter in model.named_parameters()
        if fnmatchcase(name, pattern)
    ]


def lr_factor(schedule: str, warmup: float, step: int, steps: int) -> float:
    """Learning-rate schedule: the factor of the learning rate at a step of so many.

    A pure function of the step, rather than a torch scheduler, so that resuming needs no state of it.

    Args:
        schedule: "constant"; "cosine", which falls to 0; or "warmup-cosine", which falls to 1e-4.
        warmup: share of the steps in which the factor first rises linearly from 0.04.
        step: from 0.
        steps: of the whole training.
    """
    warm = warmup * steps
    if step < warm:
        return min(0.04 + 0.96 * (step + 1) / warm, 1.0)
    if schedule == "constant":
        return 1.0
    least = 1e-4 if schedule == "warmup-cosine" else 0.0
    along = (step - warm) / max(steps - warm, 1)
    return least + (1 - least) * 0.5 * (1 + math.cos(math.pi * along))


def step_seed(seed: int, number: int) -> int:
    """Seed of one step, unlike those of other steps and trainings (SplitMix64).

    `numpy.random.SeedSequence((seed, step))` would do the same with other numbers, and so change every training.
    """
    mixed = (seed * 0x9E3779B97F4A7C15 + (number + 1) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & (2**64 - 1)
    return (mixed ^ (mixed >> 31)) >> 1


def seed_generators(seed: int, device: torch.device) -> None:
    """Seed the random generators of dropout. `torch.manual_seed` would look for absent devices at each step."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.manual_seed(seed)
    elif device.type != "cpu":
        torch.manual_seed(seed)


def clip_gradients(parameters: Sequence[nn.Parameter], max_norm: float, members: int = 1) -> None:
    """Clip the norm of the gradient of each member."""
    if members == 1:
        nn.utils.clip_grad_norm_(parameters, max_norm)
        return
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    length = torch.stack([gradient.reshape(members, -1).norm(dim=1) for gradient in gradients]).norm(dim=0)
    factor = (max_norm / (length + 1e-6)).clamp(max=1.0)
    for gradient in gradients:
        gradient.view(members, -1).mul_(factor.unsqueeze(1).to(gradient.dtype))
