"""Exponential moving average (EMA) of the weights."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


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
        super().__init__(model, multi_avg_fn=self._average, use_buffers=True)
        self.decay = decay
        self.update_parameters(model)

    def _average(self, averaged: Sequence[Tensor], current: Sequence[Tensor], _: Tensor | int) -> None:
        updates = int(self.n_averaged)  # on the CPU, so that no GPU is waited for
        decay = min(self.decay, updates / (9 + updates))
        if averaged[0].is_floating_point():
            get_ema_multi_avg_fn(decay)(averaged, current, updates)  # type: ignore[no-untyped-call]
            return
        for old, new in zip(averaged, current, strict=True):  # such as the number of batches of a batch norm
            old.copy_(new)
