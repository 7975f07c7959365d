"""How weights move: the optimiser, its rate over the steps, the length of the gradient, and the seed of each step."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils.hooks import RemovableHandle

from censnet.errors import SettingsError
from censnet.settings.schema import TrainingSettings

# Parts that a network may lack, by its other settings
PARTS = ("encoder", "encoder.pre_layers.0", "encoder.layers", "heads", "decoder", ".gate_weight", ".root_weight")


def make_optimizer(model: nn.Module, settings: TrainingSettings) -> Optimizer:
    """Adam or AdamW, with a weight decay of its own for some parameters."""
    groups: dict[float, list[nn.Parameter]] = {}
    known = [name for name, _ in model.named_parameters()]
    for part in settings.weight_decay_by_name:
        if part not in PARTS and not any(_is_of(part, name) for name in known):
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
    """Whether a parameter's name begins or ends so."""
    return name.startswith(part) or name.endswith(part)


def freeze_gates(model: nn.Module, still: Tensor) -> list[RemovableHandle]:
    """Take the gradient from the gates and self maps of the layers of some members, so that they stay where they start.

    Args:
        learner: a network of one member or several.
        still: (members,), whether those of each stay.

    Returns:
        what ends it.
    """

    def zero_grad_of(gradient: Tensor) -> Tensor:
        return gradient.reshape(len(still), -1).masked_fill(still.unsqueeze(1), 0).view_as(gradient)

    return [
        parameter.register_hook(zero_grad_of)  # type: ignore[no-untyped-call]
        for name, parameter in model.named_parameters()
        if name.startswith(("encoder.", "heads.")) and name.endswith((".gate_weight", ".root_weight"))
    ]


def lr_factor(settings: TrainingSettings, step: int, steps: int) -> float:
    """The learning rate at a step, as a share of the one set.

    With a warmup it first rises linearly from a 25th. Then it stays, or falls to 0 as a cosine does; "warmup-cosine"
    is a cosine that ends at a 10,000th.
    """
    warm = settings.warmup * steps
    if step < warm:
        return min(0.04 + 0.96 * (step + 1) / warm, 1.0)
    if settings.schedule == "constant":
        return 1.0
    least = 1e-4 if settings.schedule == "warmup-cosine" else 0.0
    along = (step - warm) / max(steps - warm, 1)
    return least + (1 - least) * 0.5 * (1 + math.cos(math.pi * along))


def step_seed(seed: int, number: int) -> int:
    """A seed for one step, far from those of other steps and trainings (SplitMix64)."""
    mixed = (seed * 0x9E3779B97F4A7C15 + (number + 1) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & (2**64 - 1)
    return (mixed ^ (mixed >> 31)) >> 1


def seed_generators(seed: int, device: torch.device) -> None:
    """Seed what dropout draws from. `torch.manual_seed` also looks for devices that are not there, at each step."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.manual_seed(seed)
    elif device.type != "cpu":
        torch.manual_seed(seed)


def clip_gradients(parameters: Sequence[nn.Parameter], longest: float, members: int = 1) -> None:
    """Shorten the gradient of each member to a length."""
    if members == 1:
        nn.utils.clip_grad_norm_(parameters, longest)
        return
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    length = torch.stack([gradient.reshape(members, -1).norm(dim=1) for gradient in gradients]).norm(dim=0)
    factor = (longest / (length + 1e-6)).clamp(max=1.0)
    for gradient in gradients:
        gradient.view(members, -1).mul_(factor.unsqueeze(1).to(gradient.dtype))
