"""Exponential moving average (EMA) of the weights."""

from __future__ import annotations

from itertools import chain

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel


class EMA(AveragedModel):
    r"""Exponential moving average of the weights and of the floating-point buffers of a model, in a copy of it.

    After step t = 0, 1, ... of the training, with the weights w,

    .. math::
        m := a_t m + (1 - a_t) w, \qquad a_t = \min\Bigl(a, \frac{1 + t}{10 + t}\Bigr),

    so that the initial weights are soon forgotten. `update_parameters` is called after each step; `module` has m.

    Args:
        model: the model that is trained.
        decay: a; 0.98 averages over about 50 steps.

    Example:
        >>> import torch
        >>> model = nn.Linear(1, 1, bias=False)
        >>> nn.init.zeros_(model.weight).item()
        0.0
        >>> ema = EMA(model, decay=0.5)
        >>> ema.update_parameters(nn.init.ones_(model.weight) and model)
        >>> round(ema.module.weight.item(), 4)
        0.9
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        super().__init__(model, use_buffers=True)
        self.decay = decay
        pairs = list(zip(_tensors(self.module), _tensors(model), strict=True))  # found once: a step has to be short
        self._floats = [pair for pair in pairs if pair[0].is_floating_point()]
        self._others = [pair for pair in pairs if not pair[0].is_floating_point()]
        self.update_parameters(model)

    @torch.no_grad()
    def update_parameters(self, model: nn.Module) -> None:
        """Add the weights of the model, which is the one given at first."""
        updates = int(self.n_averaged)  # on the CPU, so that no GPU is waited for
        averaged, current = zip(*self._floats, strict=True)
        torch._foreach_lerp_(averaged, current, 1 - min(self.decay, updates / (9 + updates)))
        for old, new in self._others:  # such as the number of batches of a batch norm
            old.copy_(new)
        self.n_averaged += 1


def _tensors(model: nn.Module) -> list[Tensor]:
    return list(chain(model.parameters(), model.buffers()))
