"""Recomputation: the backward pass computes what is inside a layer again, so that it need not be kept until then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TypeVar, cast

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

Out = TypeVar("Out")


class Recomputing(nn.Module):
    """An encoder whose layers can be computed again in the backward pass; `recompute` switches that on."""

    recompute = False

    def call(self, function: Callable[..., Out], *inputs: object) -> Out:
        """function(*inputs); in training with `recompute` the inputs alone are kept for the backward pass.

        Dropout draws the same again, and batch norm counts the rows once, so that all bits are those without it.

        Args:
            function: a pure function of its inputs and of the parameters of the encoder.
            inputs: tensors, and anything else that the function needs.
        """
        if not (self.recompute and self.training and torch.is_grad_enabled()):
            return function(*inputs)

        def contexts() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
            return nullcontext(), _statistics_kept(self)

        return cast(Out, checkpoint(function, *inputs, use_reentrant=False, context_fn=contexts))


@contextmanager
def _statistics_kept(module: nn.Module) -> Iterator[None]:
    """Afterwards the running statistics of batch norms are as before: a step that is computed again has counted."""
    before = [(buffer, buffer.clone()) for buffer in module.buffers()]
    try:
        yield
    finally:
        for buffer, value in before:
            buffer.data.copy_(value)  # by its data: autograd has nothing to do with it
