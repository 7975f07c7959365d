"""Where a training or a prediction is computed."""

from __future__ import annotations

import psutil
import torch
from accelerate import Accelerator, DistributedDataParallelKwargs
from accelerate.state import AcceleratorState

from censnet.ops.graph import Graph
from censnet.training.config import SettingsError, TrainingSettings
from censnet.training.lesson import Lesson


def make_accelerator(precision: str = "float32", device: str | None = None) -> Accelerator:
    """Where to compute: the given device, or the best that is there.

    >>> make_accelerator(device="gpu")
    Traceback (most recent call last):
    ValueError: device is 'gpu', expected cpu, cuda or another that torch knows
    """
    try:
        asked = None if device is None else torch.device(device)
    except RuntimeError:
        raise ValueError(f"device is {device!r}, expected cpu, cuda or another that torch knows") from None
    AcceleratorState._reset_state(reset_partial_state=True)
    # a last layer may renew a side that no head reads, and then has no gradient
    several = DistributedDataParallelKwargs(find_unused_parameters=True)
    accelerator = Accelerator(
        mixed_precision="bf16" if precision == "bf16" else "no",
        cpu=asked is not None and asked.type == "cpu",
        kwargs_handlers=[several],
    )
    found = accelerator.device
    if asked is not None and asked.type != found.type:
        raise ValueError(f"device is {device!r}, but what is there is {found}: leave it out, or ask for {found.type}")
    if asked is not None and asked.index not in (None, found.index or 0):
        raise ValueError(f"device is {device!r}, but {found} is in use: choose another by CUDA_VISIBLE_DEVICES")
    return accelerator


def total_memory(device: torch.device) -> int:
    """The bytes a device has in all."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    return int(psutil.virtual_memory().total)


def check_processes(accelerator: Accelerator, lesson: Lesson, settings: TrainingSettings) -> None:
    """Raise if there are several processes and one whole graph, on which all would do the same work."""
    count, parts = accelerator.num_processes, settings.sampling in ("neighbours", "proportional")
    if count > 1 and isinstance(lesson.graph, Graph) and not parts:
        raise SettingsError(
            f"{count} processes would all do the same work on one whole graph: start one, or set training.sampling to "
            "neighbours"
        )
