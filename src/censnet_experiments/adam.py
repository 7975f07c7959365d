"""Adam for many networks at once, each with a learning rate of its own."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


class Adam:
    """Adam (Kingma and Ba 2015) as in torch, for parameters that hold members one after the other.

    Torch has one learning rate for a parameter, here it is one for each member: of a parameter p, ``p.view(M, -1)[m]``
    is member m's. The number of steps is on the device, so that a step can be captured as a CUDA graph.

    Args:
        parameters: leaves, contiguous, whose first dimension the members divide.
        learning_rates: (M,)
        weight_decay: for each parameter, what of it is added to its gradient.
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        learning_rates: Tensor,
        weight_decay: Sequence[float],
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        self.parameters, self.weight_decay, self.betas, self.eps = list(parameters), list(weight_decay), betas, eps
        self.rate = learning_rates.to(self.parameters[0]).unsqueeze(1)
        self.first = [torch.zeros_like(p) for p in self.parameters]
        self.second = [torch.zeros_like(p) for p in self.parameters]
        self.powers = torch.ones(2, dtype=torch.float64, device=self.rate.device)  # beta_1^t and beta_2^t
        self.factors = torch.tensor(betas, dtype=torch.float64, device=self.rate.device)

    @torch.no_grad()
    def go_on(self, old: Adam, members: Tensor) -> None:
        """Take over from an optimiser of more members, of whom these are left: their parameters and all moments."""
        for ours, theirs in zip(
            (*self.parameters, *self.first, *self.second), (*old.parameters, *old.first, *old.second), strict=True
        ):
            ours.view(len(self.rate), -1).copy_(theirs.view(len(old.rate), -1)[members])
        self.powers.copy_(old.powers)

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor]) -> None:
        """Move every parameter against its gradient."""
        self.powers.mul_(self.factors)
        left = (1 - self.powers).to(self.rate.dtype)
        size, root = self.rate / left[0], left[1].sqrt()
        for p, grad, m, v, decay in zip(
            self.parameters, gradients, self.first, self.second, self.weight_decay, strict=True
        ):
            grad = grad + decay * p if decay else grad
            m.lerp_(grad, 1 - self.betas[0])
            v.mul_(self.betas[1]).addcmul_(grad, grad, value=1 - self.betas[1])
            step = m / (v.sqrt() / root + self.eps)
            p.view(len(size), -1).sub_(step.view(len(size), -1) * size)
