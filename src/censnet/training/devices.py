"""Where a training or a prediction is computed."""

from __future__ import annotations

import torch
from accelerate import Accelerator, DistributedDataParallelKwargs
from accelerate.state import AcceleratorState


def make_accelerator(precision: str = "float32", device: str | None = None) -> Accelerator:
    """Where to compute: the given device, or the best that is there."""
    AcceleratorState._reset_state(reset_partial_state=True)
    cpu = device is not None and torch.device(device).type == "cpu"
    # a last layer may renew a side that no head reads, and then has no gradient
    several = DistributedDataParallelKwargs(find_unused_parameters=True)
    return Accelerator(mixed_precision="bf16" if precision == "bf16" else "no", cpu=cpu, kwargs_handlers=[several])
