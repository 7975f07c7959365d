"""Devices: the Accelerator of a training, the device of a prediction, and the memory they have."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import psutil
import torch
from accelerate import Accelerator, InitProcessGroupKwargs
from accelerate.state import AcceleratorState

from censnet.errors import ArgumentError, SettingsError, quote
from censnet.isolated import isolated_python
from censnet.ops.graph import Graph
from censnet.settings.schema import TrainingSettings
from censnet.training.processes import PATIENCE
from censnet.training.task_data import TaskData


def make_accelerator(precision: str = "float32", device: str | None = None) -> Accelerator:
    """Make the Accelerator of a training: device, processes and precision. A training makes one and hands it on.

    accelerate keeps its state in the process and does not change it, so that of an earlier training is dropped.

    >>> make_accelerator(device="gpu")
    Traceback (most recent call last):
    censnet.errors.ArgumentError: device is 'gpu', expected cpu, cuda or another that torch knows
    """
    asked = _parse_device(device)
    AcceleratorState._reset_state(reset_partial_state=True)
    accelerator = Accelerator(
        mixed_precision="bf16" if precision == "bf16" else "no",
        cpu=asked is not None and asked.type == "cpu",
        kwargs_handlers=[InitProcessGroupKwargs(timeout=PATIENCE)],
    )
    found = accelerator.device
    _check_available(asked, found)
    if precision == "bf16" and found.type == "cpu" and torch.backends.mkldnn.enabled and not multiplies_bf16():
        raise SettingsError(
            "training.precision is bf16, which this CPU says it has and does not: leave it out, or train on a GPU"
        )
    return accelerator


def find_device(device: str | torch.device | None = None) -> torch.device:
    """The device that a prediction is computed on: the given one, or the best available."""
    if isinstance(device, torch.device):
        return device
    asked = _parse_device(device)
    best = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    found = torch.device("cpu") if best is None or (asked is not None and asked.type == "cpu") else best
    _check_available(asked, found)
    return found


def _parse_device(device: str | None) -> torch.device | None:
    try:
        return None if device is None else torch.device(device)
    except (RuntimeError, TypeError, ValueError):
        raise ArgumentError(f"device is {quote(device)}, expected cpu, cuda or another that torch knows") from None


def _check_available(asked: torch.device | None, found: torch.device) -> None:
    """Raise unless the device found is the one asked for."""
    if asked is not None and asked.type != found.type:
        raise ArgumentError(f"device is '{asked}', but what is there is {found}: leave it out, or ask for {found.type}")
    if asked is not None and asked.index not in (None, found.index or 0):
        raise ArgumentError(f"device is '{asked}', but {found} is in use: choose another by CUDA_VISIBLE_DEVICES")


@cache
def multiplies_bf16() -> bool:
    """Whether this CPU can multiply in bf16, which another process tries.

    In some virtual machines it is an illegal instruction, which ends the process, although CPU and torch report it.
    """
    command = isolated_python("import torch; torch.ones(2, 64, 64).bfloat16() @ torch.ones(2, 64, 64).bfloat16()")
    try:
        done = subprocess.run(command, capture_output=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return True  # nothing was found out
    return done.returncode in (0, 1)  # with 1 an import failed, and nothing was found out either


def total_memory(device: torch.device) -> int:
    """Total memory of a device in bytes."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    return min(int(psutil.virtual_memory().total), *(limit for limit, _ in _container_memory()), sys.maxsize)


def free_memory() -> int:
    """Free memory in bytes of this machine, or of the container that this process runs in."""
    left = [max(0, limit - used) for limit, used in _container_memory()]
    return min(int(psutil.virtual_memory().available), *left, sys.maxsize)


def _container_memory() -> list[tuple[int, int]]:
    """Limit and usage of the Linux control group of this process, if it has one."""
    for names in (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes")):
        try:
            limit, used = (Path("/sys/fs/cgroup", name).read_text().strip() for name in names)
        except OSError:
            continue
        return [(int(limit), int(used))] if limit.isdigit() else []
    return []


def check_processes(
    accelerator: Accelerator, task_data: TaskData, settings: TrainingSettings, ego_hops: int = 0
) -> None:
    """Raise if there are several processes and full-batch training, where all would do the same work."""
    count, parts = accelerator.num_processes, settings.sampling in ("neighbors", "proportional") or ego_hops > 0
    if count > 1 and isinstance(task_data.graph, Graph) and not parts:
        raise SettingsError(
            f"{count} processes would all do the same work on one whole graph: start one process, or set "
            "training.sampling=neighbors"
        )
